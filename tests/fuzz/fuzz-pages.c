/* gpuraid fuzzer: bitmap and table pages, ring headers and records.
 *
 * The first byte chooses; the rest is what was read from the member.
 * The harness makes the crc right.  What decodes must be what encoding
 * it again gives.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <stddef.h>

#include "common/bytes/crc32c.h"
#include "common/bytes/le.h"
#include "tests/fuzz/fuzzing.h"

#define MAX_BLOCKS 8u           /* of a record header */
#define MAX_LEN (MAX_BLOCKS * BLOCK_LEN)

enum { BITMAP, TABLE, RING, RECORD, NR_KINDS };

static const struct ring_id id = { { { 1, 2, 3 } }, 5, 65536 };
static uint8_t buf[MAX_LEN], again[MAX_LEN];

static void
fix_crc (size_t len, size_t crc_at)
{
  uint8_t tail[20];

  memcpy (tail, id.array_uuid.b, 16);
  put_le32 (tail + 16, id.slot);
  memset (buf + crc_at, 0, 4);
  put_le32 (buf + crc_at,
            crc32c_more (crc32c (buf, len), tail, sizeof tail));
}

static size_t
make_record (struct rng *r, uint8_t *data)
{
  static struct journal_entry entry[60];
  static uint32_t crc[60 * 40];
  struct journal_record rec;

  random_journal_record (r, &id, 60, 40, entry, crc, &rec);
  journal_record_encode (&rec, &id, data);
  return journal_header_blocks (rec.nr_entries, rec.nr_crcs) * BLOCK_LEN;
}

static size_t
make_page (struct rng *r, unsigned kind, uint8_t *data)
{
  static struct bitmap_page b;
  static struct table_page t;
  struct ring_header h;

  switch (kind) {
  case BITMAP:
    random_bitmap_page (r, &b);
    bitmap_page_encode (&b, &id.array_uuid, id.slot, data);
    break;
  case TABLE:
    random_table_page (r, &t);
    table_page_encode (&t, &id.array_uuid, id.slot, data);
    break;
  case RING:
    random_ring_header (r, &id, &h);
    ring_header_encode (&h, &id, rng_below (r, 2), data);
    break;
  }
  return BLOCK_LEN;
}

size_t
fuzzing_seed (struct rng *r, uint8_t *data, size_t max)
{
  data[0] = rng_below (r, NR_KINDS);
  return 1 + (data[0] == RECORD ? make_record (r, data + 1) :
              make_page (r, data[0], data + 1));
}

/* Records are all that has much to decide, so most are those. */
size_t
LLVMFuzzerCustomMutator (uint8_t *data, size_t size, size_t max,
                         unsigned seed)
{
  struct rng r = { seed };
  unsigned at;

  if (max < 1 + MAX_LEN)
    return LLVMFuzzerMutate (data, size, max);
  if (size < 1 + BLOCK_LEN || rng_below (&r, 64) == 0) {
    data[0] = RECORD;
    return 1 + make_record (&r, data + 1);
  }
  at = 1 + rng_below (&r, 1024 - 8);
  switch (rng_below (&r, 4)) {
  case 0:
    return LLVMFuzzerMutate (data, size, max);
  case 1:
    data[0] = rng_below (&r, NR_KINDS);
    break;
  case 2:
    put_le32 (data + at, rng_bits (&r, 32));
    break;
  default:
    data[at] ^= BIT (rng_below (&r, 8));
    break;
  }
  return size;
}

static void
try_bitmap (void)
{
  static struct bitmap_page p;
  uint64_t page_no = get_le64 (buf + 16);

  memcpy (buf, "GPURAIDB", 8);
  fix_crc (BITMAP_PAGE_LEN, 8);
  if (!bitmap_page_decode (buf, &id.array_uuid, id.slot, page_no, &p))
    return;
  assert (p.page_no == page_no);
  bitmap_page_encode (&p, &id.array_uuid, id.slot, again);
  assert (memcmp (buf, again, BITMAP_PAGE_LEN) == 0);
}

static void
try_table (void)
{
  static struct table_page p;
  uint32_t page_no = get_le32 (buf + 4);

  fix_crc (TABLE_PAGE_LEN, 0);
  if (!table_page_decode (buf, &id.array_uuid, id.slot, page_no, &p))
    abort ();           /* every page with a good crc is one */
  table_page_encode (&p, &id.array_uuid, id.slot, again);
  assert (memcmp (buf, again, TABLE_PAGE_LEN) == 0);
}

static void
try_ring (void)
{
  struct ring_header h;

  memcpy (buf, "GPURAIDH", 8);
  fix_crc (BLOCK_LEN, 8);
  if (!ring_header_decode (buf, &id, buf[12] & 1, &h))
    return;
  assert (h.place >= 2 && h.place < id.nr_blocks);
  ring_header_encode (&h, &id, buf[12] & 1, again);
  assert (memcmp (buf, again, BLOCK_LEN) == 0);
}

/* The arrays hold what they say, and the flags are of those known. */
static void
look_at_entries (const struct journal_record *rec)
{
  uint64_t nr_crcs = 0, nr_blocks = 0;

  for (uint32_t i = 0; i < rec->nr_entries; ++i) {
    const struct journal_entry *e = &rec->entry[i];

    assert (e->flags <= JOURNAL_ENTRY_DIRECT);
    assert (e->nr_blocks <= (e->flags == JOURNAL_ENTRY_ZERO ? 1 << 24 : 1024));
    nr_crcs += e->flags == JOURNAL_ENTRY_ZERO ? 0 : e->nr_blocks;
    nr_blocks += e->flags == 0 ? e->nr_blocks : 0;
  }
  assert (nr_crcs == rec->nr_crcs && nr_blocks == rec->nr_blocks);
}

/* len bytes were read, and no more may be looked at. */
static void
try_record (size_t len)
{
  struct journal_record rec;
  size_t header_len;
  uint8_t *only;
  bool ok;

  memcpy (buf, "GPURAIDR", 8);
  if (len < BLOCK_LEN ||
      !journal_record_peek (buf, &id, get_le32 (buf + 32), &rec))
    return;
  header_len = journal_header_blocks (rec.nr_entries, rec.nr_crcs) *
    (size_t) BLOCK_LEN;
  assert (header_len / BLOCK_LEN + rec.nr_blocks <= id.nr_blocks);
  if (header_len <= len) {      /* else it needs no arrays */
    fix_crc (header_len, 8);
    rec.entry = malloc (rec.nr_entries * sizeof *rec.entry);
    rec.crc = malloc (rec.nr_crcs * sizeof *rec.crc);
  }
  only = malloc (len);
  memcpy (only, buf, len);
  ok = journal_record_decode (only, len, &id, get_le32 (buf + 32), &rec);
  assert (!ok || header_len <= len);
  if (ok) {
    assert (journal_record_check (&rec, &id));
    look_at_entries (&rec);
    journal_record_encode (&rec, &id, again);
    assert (memcmp (only, again, header_len) == 0);
  }
  free (rec.crc);
  free (rec.entry);
  free (only);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  size_t len;

  if (size < 1)
    return 0;
  len = MIN (size - 1, sizeof buf);
  memset (buf, 0, sizeof buf);
  memcpy (buf, data + 1, len);
  switch (data[0] % NR_KINDS) {
  case BITMAP: try_bitmap (); break;
  case TABLE: try_table (); break;
  case RING: try_ring (); break;
  default: try_record (len); break;
  }
  return 0;
}
