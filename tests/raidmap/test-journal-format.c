/* gpuraid test: the records in a journal ring.
 *
 * run-tests: no-thread
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "common/bytes/crc32c.h"
#include "common/bytes/le.h"
#include "tests/format-random.h"

#define MAX_ENTRIES 60u
#define MAX_BLOCKS 80u          /* of an entry that has crcs */
#define MAX_LEN (8 * BLOCK_LEN)

static struct rng rng;
static struct ring_id id;
static struct journal_entry entry[MAX_ENTRIES], entry_back[MAX_ENTRIES];
static uint32_t crc[MAX_ENTRIES * MAX_BLOCKS], crc_back[ARRAY_LEN (crc)];
static struct journal_record rec, back;
static uint8_t buf[MAX_LEN];
static size_t len;              /* of the header in buf */

static void
make_record (uint32_t nr_entries, uint32_t nr_blocks)
{
  random_ring_id (&rng, &id);
  random_journal_record (&rng, &id, nr_entries, nr_blocks, entry, crc, &rec);
  assert_true (journal_record_check (&rec, &id));
  len = journal_header_blocks (rec.nr_entries, rec.nr_crcs) * BLOCK_LEN;
  assert_true (len <= MAX_LEN);
  journal_record_encode (&rec, &id, buf);
}

/* The same, where the first entry has a crc and a block. */
static void
make_plain_record (uint32_t nr_entries, uint32_t nr_blocks)
{
  do
    make_record (nr_entries, nr_blocks);
  while (entry[0].flags != 0);
}

static bool
decode (size_t n, const struct ring_id *of, uint32_t place)
{
  if (!journal_record_peek (buf, of, place, &back) ||
      back.nr_entries > ARRAY_LEN (entry) ||
      back.nr_crcs > ARRAY_LEN (crc))
    return false;
  back.entry = entry_back;
  back.crc = crc_back;
  return journal_record_decode (buf, n, of, place, &back);
}

/* Made anew from the documentation. */
static void
fix_crc (uint8_t *p, size_t n)
{
  uint8_t tail[20];

  memcpy (tail, id.array_uuid.b, 16);
  put_le32 (tail + 16, id.slot);
  memset (p + 8, 0, 4);
  put_le32 (p + 8, crc32c_more (crc32c (p, n), tail, sizeof tail));
}

static void
test_round_trip (void **state)
{
  static uint8_t again[MAX_LEN];

  for (unsigned i = 0; i < 1000; ++i) {
    make_record (MAX_ENTRIES, MAX_BLOCKS);
    assert_true (decode (i % 2 ? len : sizeof buf, &id, rec.place));
    assert_memory_equal (entry, entry_back, rec.nr_entries * sizeof *entry);
    assert_memory_equal (crc, crc_back, rec.nr_crcs * sizeof *crc);
    journal_record_encode (&back, &id, again);
    assert_memory_equal (buf, again, len);
    back.entry = entry;
    back.crc = crc;
    assert_memory_equal (&rec, &back, sizeof rec);
  }
}

static void
test_bit_flips (void **state)
{
  for (unsigned i = 0; i < 3; ++i) {
    make_record (i ? MAX_ENTRIES : 1, i ? MAX_BLOCKS : 1);
    for (size_t bit = 0; bit < len * 8; ++bit) {
      buf[bit / 8] ^= 1 << bit % 8;
      assert_false (decode (sizeof buf, &id, rec.place));
      buf[bit / 8] ^= 1 << bit % 8;
    }
    assert_true (decode (sizeof buf, &id, rec.place));
  }
}

static void
test_truncation (void **state)
{
  do
    make_record (MAX_ENTRIES, MAX_BLOCKS);
  while (len < 3 * BLOCK_LEN);
  for (size_t n = 0; n < len; ++n)
    assert_false (decode (n, &id, rec.place));
  assert_true (decode (len, &id, rec.place));

  /* The end never got there: zeroes instead, in a full-length buffer. */
  for (size_t n = len; n-- > 0; ) {
    bool change = buf[n] != 0;

    buf[n] = 0;
    if (change)
      assert_false (decode (sizeof buf, &id, rec.place));
  }
}

static void
test_wrong_place (void **state)
{
  struct ring_id other;

  make_record (MAX_ENTRIES, MAX_BLOCKS);
  for (uint32_t place = 0; place < 200; ++place)
    assert_int_equal (decode (len, &id, place), place == rec.place);
  for (unsigned i = 0; i < 32; ++i)
    assert_false (decode (len, &id, rec.place ^ (uint32_t) BIT (i)));
  other = id;
  for (other.slot = 0; other.slot < MAX_SLOTS; ++other.slot)
    assert_int_equal (decode (len, &other, rec.place), other.slot == id.slot);
  other = id;
  for (unsigned i = 0; i < 128; ++i) {
    other.array_uuid.b[i / 8] ^= 1 << i % 8;
    assert_false (decode (len, &other, rec.place));
    other.array_uuid.b[i / 8] ^= 1 << i % 8;
  }
  assert_true (decode (len, &other, rec.place));

  /* A shorter ring, whose end it would straddle. */
  other.nr_blocks = rec.place + len / BLOCK_LEN + rec.nr_blocks - 1;
  assert_false (decode (len, &other, rec.place));
}

/* Everything right but one value. */
#define REFUSED(what) do {                                              \
    struct journal_record was = rec;                                    \
    struct journal_entry was_entry = entry[0];                          \
    what;                                                               \
    assert_false (journal_record_check (&rec, &id));                    \
    journal_record_encode (&rec, &id, buf);                             \
    assert_false (decode (sizeof buf, &id, rec.place));                 \
    rec = was;                                                          \
    entry[0] = was_entry;                                               \
  } while (0)

static void
test_values (void **state)
{
  make_plain_record (3, 5);
  rec.move_first = rec.move_rows = 0;
  rec.dev = 3;
  device_set_add (&rec.participants, 3);
  rec.place_of[3] = rec.place;
  device_set_remove (&rec.participants, 4);
  rec.place_of[4] = 0;
  journal_record_encode (&rec, &id, buf);
  assert_true (decode (len, &id, rec.place));

  REFUSED (rec.seq = UINT64_C (7) << 32);
  REFUSED (rec.seq |= UINT64_C (1) << 63);
  REFUSED (rec.place = 1; rec.place_of[3] = 1);
  REFUSED (rec.place = rec.place_of[3] = id.nr_blocks - 1);
  REFUSED (rec.dev = 4);
  REFUSED (rec.dev = SB_MAX_DEVICES);
  REFUSED (rec.place_of[3]++);
  REFUSED (rec.place_of[4] = 7);
  REFUSED (device_set_add (&rec.participants, 4));
  REFUSED (device_set_add (&rec.participants, 4); rec.place_of[4] = 1);
  REFUSED (device_set_add (&rec.participants, 4);
           rec.place_of[4] = id.nr_blocks);
  REFUSED (device_set_add (&rec.participants, SB_MAX_DEVICES));
  REFUSED (device_set_remove (&rec.participants, 3));
  REFUSED (entry[0].nr_blocks++);
  REFUSED (entry[0].nr_blocks = 0);
  REFUSED (rec.nr_crcs++);
  REFUSED (rec.nr_crcs--);
  REFUSED (rec.nr_blocks--);
  REFUSED (rec.nr_blocks = rec.nr_crcs + 1);
  REFUSED (entry[0].flags = JOURNAL_ENTRY_ZERO);
  REFUSED (entry[0].flags = JOURNAL_ENTRY_DIRECT);
  REFUSED (entry[0].roles = 0);
  REFUSED (entry[0].first_block = LAYOUT_MAX_SIZE / BLOCK_LEN);
  REFUSED (entry[0].first_block = UINT64_MAX);

  rec.nr_entries = 0;
  assert_false (journal_record_check (&rec, &id));
  rec.nr_entries = UINT32_MAX;
  rec.nr_blocks = UINT32_MAX;
  assert_false (journal_record_check (&rec, &id));
}

/* Rows that move: all entries are of them. */
static void
test_moves (void **state)
{
  do
    make_plain_record (1, 5);
  while (entry[0].first_block == 0);
  rec.move_first = entry[0].first_block;
  rec.move_rows = entry[0].nr_blocks;
  journal_record_encode (&rec, &id, buf);
  assert_true (decode (len, &id, rec.place));
  assert_int_equal (back.move_first, rec.move_first);
  assert_int_equal (back.move_rows, rec.move_rows);
  REFUSED (rec.move_rows = 0);
  REFUSED (rec.move_rows--);
  REFUSED (rec.move_first++);
  REFUSED (rec.move_first--);
  REFUSED (rec.move_first++; rec.move_rows++);
  REFUSED (rec.move_first = UINT64_MAX - 1);
  REFUSED (rec.move_rows = 0; rec.move_first = UINT64_MAX);

  entry[0].first_block = JOURNAL_MAX_ROWS - 5;
  entry[0].nr_blocks = 5;
  rec.move_first = entry[0].first_block;
  rec.nr_blocks = rec.nr_crcs = rec.move_rows = 5;
  rec.place = rec.place_of[rec.dev] = JOURNAL_NR_HEADERS;
  journal_record_encode (&rec, &id, buf);
  assert_true (decode (sizeof buf, &id, rec.place));
  REFUSED (rec.move_rows++);
  REFUSED (rec.move_rows = UINT32_MAX);
}

/* A record of one entry, alone, at the start of the ring. */
static bool
one_entry_ok (uint32_t flags, uint32_t nr_blocks, uint32_t nr_crcs,
              uint32_t nr_in_record)
{
  bool ok;

  entry[0].flags = flags;
  entry[0].nr_blocks = nr_blocks;
  rec.nr_entries = 1;
  rec.move_first = rec.move_rows = 0;
  rec.nr_crcs = nr_crcs;
  rec.nr_blocks = nr_in_record;
  memset (&rec.participants, 0, sizeof rec.participants);
  memset (rec.place_of, 0, sizeof rec.place_of);
  device_set_add (&rec.participants, rec.dev);
  rec.place = rec.place_of[rec.dev] = JOURNAL_NR_HEADERS;
  ok = journal_record_check (&rec, &id);
  journal_record_encode (&rec, &id, buf);
  assert_int_equal (decode (sizeof buf, &id, rec.place), ok);
  return ok;
}

/* No flag or one that is known, and each has its own sums. */
static void
test_flags (void **state)
{
  make_record (1, 1);
  for (uint32_t n = 1; n <= 7; ++n)
    for (uint32_t flags = 0; flags < 16; ++flags) {
      assert_int_equal (one_entry_ok (flags, n, 0, 0), flags == 1);
      assert_int_equal (one_entry_ok (flags, n, n, 0), flags == 2);
      assert_int_equal (one_entry_ok (flags, n, n, n), flags == 0);
      assert_false (one_entry_ok (flags, n, 0, n));
    }
  for (unsigned i = 2; i < 32; ++i)
    for (uint32_t known = 0; known < 4; ++known) {
      assert_false (one_entry_ok (known | BIT (i), 3, 0, 0));
      assert_false (one_entry_ok (known | BIT (i), 3, 3, 0));
      assert_false (one_entry_ok (known | BIT (i), 3, 3, 3));
    }
}

static void
test_entry_length (void **state)
{
  make_record (1, 1);
  assert_true (one_entry_ok (0, 1024, 1024, 1024));
  assert_false (one_entry_ok (0, 1025, 1025, 1025));
  assert_true (one_entry_ok (JOURNAL_ENTRY_DIRECT, 1024, 1024, 0));
  assert_false (one_entry_ok (JOURNAL_ENTRY_DIRECT, 1025, 1025, 0));
  assert_true (one_entry_ok (JOURNAL_ENTRY_ZERO, 1025, 0, 0));
  assert_true (one_entry_ok (JOURNAL_ENTRY_ZERO, 1 << 24, 0, 0));
  assert_false (one_entry_ok (JOURNAL_ENTRY_ZERO, (1 << 24) + 1, 0, 0));
  assert_false (one_entry_ok (JOURNAL_ENTRY_ZERO, UINT32_MAX, 0, 0));
  assert_false (one_entry_ok (JOURNAL_ENTRY_ZERO, 0, 0, 0));
  assert_false (one_entry_ok (0, 0, 0, 0));

  entry[0].first_block = LAYOUT_MAX_SIZE / BLOCK_LEN - 5000;
  assert_true (one_entry_ok (JOURNAL_ENTRY_ZERO, 5000, 0, 0));
  assert_false (one_entry_ok (JOURNAL_ENTRY_ZERO, 5001, 0, 0));
}

static bool
peek (uint32_t nr_entries, uint32_t nr_crcs, uint32_t nr_blocks)
{
  put_le32 (buf + 32, JOURNAL_NR_HEADERS);
  put_le32 (buf + 36, nr_entries);
  put_le32 (buf + 40, nr_blocks);
  put_le32 (buf + 448, nr_crcs);
  assert_false (journal_record_peek (buf, &id, JOURNAL_NR_HEADERS + 1, &back));
  if (!journal_record_peek (buf, &id, JOURNAL_NR_HEADERS, &back))
    return false;
  assert_int_equal (back.nr_entries, nr_entries);
  assert_int_equal (back.nr_crcs, nr_crcs);
  assert_int_equal (back.nr_blocks, nr_blocks);
  return true;
}

/* What the caller makes room for fits in the ring. */
static void
test_peek (void **state)
{
  const uint32_t room = 98;     /* blocks of the ring for records */
  const uint32_t most = (room * BLOCK_LEN - 512 - 32) / 4;

  make_record (1, 1);
  id.nr_blocks = JOURNAL_NR_HEADERS + room;
  assert_false (peek (0, 0, 0));
  assert_true (peek (1, 0, 0));
  assert_false (peek (1, 0, 1));
  assert_true (peek (1, 5, 5));
  assert_false (peek (1, 5, 6));
  assert_true (peek (1, most, 0));
  assert_false (peek (1, most + 1, 0));
  assert_false (peek (1, most, 1));
  assert_true (peek (1, room - 1, room - 1));
  assert_false (peek (1, room, room));
  assert_true (peek ((room * BLOCK_LEN - 512) / 32, 0, 0));
  assert_false (peek ((room * BLOCK_LEN - 512) / 32 + 1, 0, 0));
  assert_false (peek (1, UINT32_C (1) << 30, 0));
  assert_false (peek (1, UINT32_MAX, 0));
  assert_false (peek (1, UINT32_MAX, UINT32_MAX));
  assert_false (peek (UINT32_MAX, 0, 0));
  assert_false (peek (UINT32_MAX, UINT32_MAX, UINT32_MAX));
  id.nr_blocks = UINT32_C (1) << 28;
  assert_false (peek (1, UINT32_MAX, UINT32_MAX));
}

/* The arrays are of the numbers that peek saw: no others will do. */
static void
test_numbers_changed (void **state)
{
  static const unsigned number[] = { 36, 40, 448 };

  make_plain_record (3, 5);
  assert_true (decode (len, &id, rec.place));
  for (unsigned i = 0; i < ARRAY_LEN (number); ++i) {
    uint32_t was = get_le32 (buf + number[i]);

    put_le32 (buf + number[i], was + 1);
    fix_crc (buf, len);
    if (journal_record_decode (buf, len, &id, rec.place, &back))
      fail_msg ("at %u", number[i]);
    put_le32 (buf + number[i], was);
  }
  fix_crc (buf, len);
  assert_true (journal_record_decode (buf, len, &id, rec.place, &back));
}

/* Reserved bytes are zero, even if the crc is good. */
static void
test_reserved (void **state)
{
  uint32_t at;

  make_record (3, 5);
  for (at = 464; at < len; ++at) {
    bool in_entry = false;
    bool tail = at >= 512 + 32 * rec.nr_entries + 4 * rec.nr_crcs;

    if (at >= 512 && !in_entry && !tail)
      continue;
    buf[at] ^= 1;
    fix_crc (buf, len);
    if (decode (len, &id, rec.place))
      fail_msg ("byte %" PRIu32, at);
    buf[at] ^= 1;
  }
  fix_crc (buf, len);
  assert_true (decode (len, &id, rec.place));
}

/* Numbers that only a writer gone wrong would put under a good crc. */
static void
test_contradictions (void **state)
{
  static const struct { unsigned at; uint32_t more; } change[] = {
    { 12, 1 }, { 12, -1 },              /* header blocks */
    { 32, 1 },                          /* the place, in one of two ways */
    { 512 + 20, 1 }, { 512 + 20, 100000 }, { 512 + 20, -1 },
    { 512 + 24, 1 }, { 512 + 24, 2 }, { 512 + 24, 3 }, { 512 + 24, 4 },
    { 36, 1 }, { 36, -1 }, { 40, 1 }, { 40, -1 }, { 40, 5000 },
    { 448, 1 }, { 448, -1 }, { 448, 5000 },
  };

  do
    make_plain_record (3, 5);
  while (rec.nr_entries == 1);
  for (unsigned i = 0; i < ARRAY_LEN (change); ++i) {
    uint8_t *p = buf + change[i].at;
    uint32_t was = get_le32 (p);

    put_le32 (p, was + change[i].more);
    fix_crc (buf, len);
    if (decode (sizeof buf, &id, rec.place) ||
        decode (sizeof buf, &id, get_le32 (buf + 32)))
      fail_msg ("change %u", i);
    put_le32 (p, was);
  }
}

/* The bytes that docs/on-disk-format.md promises. */
static void
test_golden (void **state)
{
  static const struct { unsigned at, len; uint64_t value; } golden[] = {
    { 12, 4, 1 }, { 16, 8, UINT64_C (0x0102030405060708) },
    { 24, 8, UINT64_C (0x1112131415161718) }, { 32, 4, 0x21 },
    { 36, 4, 3 }, { 40, 4, 1 }, { 44, 4, 65 },
    { 48, 8, 4 }, { 56, 8, 2 },
    { 64 + 4 * 2, 4, 0x22 }, { 64 + 4 * 65, 4, 0x21 }, { 448, 4, 3 },
    { 452, 8, 0 }, { 460, 4, 0 },
    { 512, 8, UINT64_C (0x0003132333435363) }, { 520, 8, 5 },
    { 528, 4, 0x41424344 }, { 532, 4, 1 }, { 536, 4, 0 },
    { 544, 4, 0xc0c1c2c3 },
    { 548, 8, 7 }, { 556, 8, 6 }, { 564, 4, 0x51 }, { 568, 4, 0x123456 },
    { 572, 4, 1 },
    { 580, 8, 9 }, { 588, 8, UINT64_C (1) << 63 }, { 596, 4, 0 },
    { 600, 4, 2 }, { 604, 4, 2 }, { 612, 4, 0xd0 }, { 616, 4, 0xe0 },
  };
  uint8_t zero[BLOCK_LEN] = { 0 };

  random_ring_id (&rng, &id);
  memset (&rec, 0, sizeof rec);
  rec.session = UINT64_C (0x0102030405060708);
  rec.seq = UINT64_C (0x1112131415161718);
  rec.place = 0x21;
  rec.dev = 65;
  device_set_add (&rec.participants, 2);
  device_set_add (&rec.participants, 65);
  rec.place_of[2] = 0x22;
  rec.place_of[65] = 0x21;
  rec.nr_entries = 3;
  rec.nr_crcs = 3;
  rec.nr_blocks = 1;
  rec.entry = entry;
  rec.crc = crc;
  entry[0] = (struct journal_entry)
    { UINT64_C (0x0003132333435363), 1, 0x41424344, 5, 0 };
  entry[1] = (struct journal_entry)
    { 7, 0x123456, 0x51, 6, JOURNAL_ENTRY_ZERO };
  entry[2] = (struct journal_entry) { 9, 2, 0, BIT (63), JOURNAL_ENTRY_DIRECT };
  crc[0] = 0xc0c1c2c3;
  crc[1] = 0xd0;
  crc[2] = 0xe0;
  assert_true (journal_record_check (&rec, &id));
  assert_int_equal (journal_header_blocks (3, 3), 1);
  journal_record_encode (&rec, &id, buf);

  len = BLOCK_LEN;
  assert_memory_equal (buf, "GPURAIDR", 8);
  crc[3] = get_le32 (buf + 8);
  fix_crc (buf, len);
  assert_int_equal (crc[3], get_le32 (buf + 8));
  memset (buf, 0, 12);
  for (unsigned i = 0; i < ARRAY_LEN (golden); ++i) {
    uint64_t v = 0;

    memcpy (&v, buf + golden[i].at, golden[i].len);
    if (le64toh (v) != golden[i].value)
      fail_msg ("at %u: %#" PRIx64, golden[i].at, v);
    memset (buf + golden[i].at, 0, golden[i].len);
  }
  assert_memory_equal (buf, zero, BLOCK_LEN);
}

/* Of a transaction that moves rows. */
static void
test_golden_moves (void **state)
{
  make_record (1, 1);
  entry[0].first_block = 0x0102030405;
  rec.move_first = 0x0102030400;
  rec.move_rows = 0x21222324;
  assert_true (journal_record_check (&rec, &id));
  journal_record_encode (&rec, &id, buf);
  assert_memory_equal (buf + 448 + 4, "\x00\x04\x03\x02\x01\0\0\0"
                       "\x24\x23\x22\x21", 12);
}

static void
test_header_blocks (void **state)
{
  assert_int_equal (journal_header_blocks (1, 0), 1);
  assert_int_equal (journal_header_blocks (1, 1), 1);
  assert_int_equal (journal_header_blocks (1, (4096 - 544) / 4), 1);
  assert_int_equal (journal_header_blocks (1, (4096 - 544) / 4 + 1), 2);
  assert_int_equal (journal_header_blocks (99, 99), 1);
  assert_int_equal (journal_header_blocks (99, 104), 1);
  assert_int_equal (journal_header_blocks (99, 105), 2);
  assert_int_equal (journal_header_blocks (112, 0), 1);
  assert_int_equal (journal_header_blocks (113, 0), 2);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_round_trip),
    cmocka_unit_test (test_bit_flips),
    cmocka_unit_test (test_truncation),
    cmocka_unit_test (test_wrong_place),
    cmocka_unit_test (test_values),
    cmocka_unit_test (test_moves),
    cmocka_unit_test (test_flags),
    cmocka_unit_test (test_entry_length),
    cmocka_unit_test (test_peek),
    cmocka_unit_test (test_numbers_changed),
    cmocka_unit_test (test_reserved),
    cmocka_unit_test (test_contradictions),
    cmocka_unit_test (test_golden),
    cmocka_unit_test (test_golden_moves),
    cmocka_unit_test (test_header_blocks),
  };

  rng = rng_start ();
  return cmocka_run_group_tests (tests, NULL, NULL);
}
