/* gpuraid fuzzer: the superblock.
 *
 * What decodes must be what encoding it again gives, and be sound: the
 * numbers in it are used, as an opener would, with the overflow checks
 * of the sanitizer on.  The harness makes the crc right, so that bytes
 * get as far as the checks of values; the mutator starts from sound
 * superblocks, which no chance would find.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <stddef.h>

#include "common/bytes/crc32c.h"
#include "common/bytes/le.h"
#include "raidmap/layout/reshape.h"
#include "raidmap/superblock.h"
#include "tests/fuzz/fuzzing.h"

size_t
fuzzing_seed (struct rng *r, uint8_t *data, size_t max)
{
  static struct superblock sb;

  random_superblock (r, &sb);
  superblock_encode (&sb, data);
  return SB_LEN;
}

/* Now and then start anew from a sound superblock; else change a few
 * bytes, more often a number than anything.
 */
size_t
LLVMFuzzerCustomMutator (uint8_t *data, size_t size, size_t max,
                         unsigned seed)
{
  struct rng r = { seed };
  unsigned at;

  if (max < SB_LEN)
    return LLVMFuzzerMutate (data, size, max);
  if (size < SB_LEN || rng_below (&r, 64) == 0)
    return fuzzing_seed (&r, data, max);
  at = 12 + rng_below (&r, SB_LEN - 12 - 8);
  switch (rng_below (&r, 4)) {
  case 0:
    LLVMFuzzerMutate (data, SB_LEN, SB_LEN);
    break;
  case 1:
    put_le64 (data + at, rng_bits (&r, 64));
    break;
  case 2:
    put_le64 (data + (at & ~7u), get_le64 (data + (at & ~7u)) +
              (rng_below (&r, 2) ? 4096 : -4096));
    break;
  default:
    data[at] ^= BIT (rng_below (&r, 8));
    break;
  }
  return SB_LEN;
}

static void
use_parts (const struct member_layout *l)
{
  uint64_t nr_pages = 0, end = l->ring_off + l->ring_len, len = 0;
  struct layout_part p;

  assert (l->nr_grown <= LAYOUT_MAX_GROWN);
  for (unsigned i = 0; i <= l->nr_grown; ++i) {
    layout_part (l, i, &p);
    assert (p.start == len && p.len > 0);
    assert (p.table_off >= end);
    assert (p.table_off + p.nr_table_pages * 2 * 4096 <= p.bitmap_off);
    assert (p.bitmap_off + p.nr_bitmap_pages * 2 * BITMAP_PAGE_LEN <=
            p.data_off);
    assert (p.data_off % (1 << 20) == 0);
    assert (layout_data_off (l, len) == p.data_off);
    nr_pages += p.nr_bitmap_pages;
    len += p.len;
    end = p.data_off + p.len;
    assert (layout_data_off (l, len - 1) == end - 1);
  }
  assert (len == l->data_len);
  assert (nr_pages == bitmap_nr_pages (l));
}

/* All that code after decoding adds and multiplies. */
static void
use (const struct superblock *sb)
{
  const struct member_layout *l = &sb->l;
  const struct geometry *g = &sb->g;
  uint64_t nr_stripes = layout_nr_stripes (g);
  struct geometry data = *g;    /* of rows that have not moved */
  struct piece p;

  assert (superblock_check (sb) == NULL);
  assert (nr_stripes * g->chunk == l->data_len);
  assert (layout_end (l) <= LAYOUT_MAX_SIZE);
  use_parts (l);
  if (g->widening)
    reshape_old (g, &data);
  layout_piece (&data, g->size - 1, 1, &p);
  assert (p.stripe == nr_stripes - 1 && p.role < data.k);
  assert (layout_address (&data, p.stripe, p.role, p.chunk_off) ==
          g->size - 1);
  for (unsigned slot = 0; slot < g->k + g->m; ++slot)
    assert (layout_slot (g, p.stripe, layout_role (g, p.stripe, slot))
            == slot);
  assert (g->k == sb->record.self.k && g->m == sb->record.self.m);
  assert (g->widening == sb->record.self.widening && g->frontier == 0);
  assert (sb->record.base.k + sb->record.base.m <= MAX_SLOTS);
  assert (sb->record.parent.k + sb->record.parent.m <= MAX_SLOTS);
  for (unsigned i = 0; i < SB_MAX_DEVICES; ++i) {
    const struct device *d = &sb->device[i];

    assert (d->slot == SLOT_NONE || d->slot < g->k + g->m);
    assert (d->cursor <= l->data_len);
    if (device_set_has (&sb->record.self.active, i))
      assert (d->slot < g->k + g->m && d->state == DEVICE_ACTIVE);
    assert (!d->replaced || d->state == DEVICE_ACTIVE);
  }
  assert (strlen (sb->label) <= SB_LABEL_LEN);
  assert (strlen (sb->host) <= SB_HOST_LEN);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  static struct superblock sb, back;
  uint8_t buf[SB_LEN] = { 0 }, again[SB_LEN];
  enum sb_copy copy;
  const char *why;

  memcpy (buf, data, MIN (size, SB_LEN));
  superblock_decode (buf, SB_A1, &sb, NULL);

  memcpy (buf, "GPURAIDS", 8);
  memset (buf + 8, 0, 4);
  put_le32 (buf + 8, crc32c (buf, SB_LEN));
  copy = buf[184] % SB_NR_COPIES;
  if (superblock_decode (buf, copy, &sb, &why) != SB_OK) {
    assert (why != NULL);
    return 0;
  }
  assert (why == NULL);
  use (&sb);
  superblock_encode (&sb, again);
  assert (memcmp (buf, again, SB_LEN) == 0);
  assert (superblock_decode (again, copy, &back, NULL) == SB_OK);
  assert (memcmp (&sb, &back, sizeof sb) == 0);
  return 0;
}
