/* gpuraid test: what a crash left in the journal, and what is made of it.
 *
 * Each case is compared with the reference too, row by row.
 *
 * run-tests: no-thread
 * It has one thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/bits.h"
#include "tests/array/replay/replay-reference.h"

#define ZERO JOURNAL_ENTRY_ZERO
#define DIRECT JOURNAL_ENTRY_DIRECT

static struct crash c;
static struct replay r;

/* With all slots: member i has slot i. */
static void
begin (unsigned k, unsigned m, unsigned rows_per_chunk, uint64_t tail)
{
  crash_begin (&c, k, m, rows_per_chunk);
  for (unsigned slot = 0; slot < k + m; slot++)
    crash_add_member (&c, slot, tail);
}

/* A record with one block for this row; no block of it is good if bad. */
static void
add_block (unsigned member, uint64_t seq, uint64_t row, uint64_t roles,
           bool bad)
{
  crash_add_entry (crash_add_record (&c, member, seq, 0), row, 1, roles, 0,
                   bad);
}

/* What kind of source each slot has: '.' in place, 'R' in a ring, '0'
 * zeroes, 'D' in place by a transaction, 'X' erased; NULL: the journal says
 * nothing.
 */
static void
expect (uint64_t row, const char *kinds)
{
  static const char letter[] = {
    [REPLAY_IN_PLACE] = '.', [REPLAY_RING] = 'R', [REPLAY_ZERO] = '0',
    [REPLAY_ERASED] = 'X', [REPLAY_DIRECT] = 'D',
  };
  const struct replay_run *run = replay_find (&r, row);
  char got[MAX_SLOTS + 1] = "";

  assert_int_equal (run != NULL, kinds != NULL);
  if (run == NULL)
    return;
  for (unsigned slot = 0; slot < c.g.k + c.g.m; slot++)
    got[slot] = letter[run->source[slot].kind];
  assert_string_equal (got, kinds);
}

static const struct replay_source *
source (uint64_t row, unsigned slot)
{
  return &replay_find (&r, row)->source[slot];
}

/* ---- directed: which transactions count --------------------------------- */

static void
test_nothing (void **state)
{
  crash_begin (&c, 2, 1, 16);
  crash_check (&c, 4, &r);              /* no members */
  assert_int_equal (r.next_seq, 1);
  assert_int_equal (r.newest, 0);
  assert_int_equal (r.nr_runs, 0);
  replay_free (&r);

  begin (2, 1, 16, 7);                  /* all was freed */
  crash_check (&c, 4, &r);
  assert_int_equal (r.next_seq, 7);
  assert_int_equal (r.tail, 7);
  assert_int_equal (r.newest, 0);
  assert_false (r.hole);
  assert_false (r.incomplete);
  expect (0, NULL);
  replay_free (&r);

  begin (2, 1, 16, 0);                  /* no headers */
  crash_check (&c, 4, &r);
  assert_int_equal (r.next_seq, 1);
  replay_free (&r);
}

/* The tail is the greatest of all headers, for all rings. */
static void
test_tail (void **state)
{
  crash_begin (&c, 2, 1, 16);
  crash_add_member (&c, 0, 5);
  crash_add_member (&c, 1, 7);
  crash_add_member (&c, 2, 6);
  add_block (0, 6, 0, 5, false);        /* older */
  add_block (0, 7, 1, 5, false);
  add_block (2, 6, 0, 5, false);
  add_block (2, 7, 1, 5, false);
  crash_check (&c, 4, &r);
  assert_int_equal (r.tail, 7);
  assert_int_equal (r.newest, 7);
  assert_int_equal (r.next_seq, 8);
  assert_false (r.hole);
  expect (0, NULL);
  expect (1, "R.R");
  replay_free (&r);

  /* All records are older. */
  c.ring[1].header.seq = 8;
  crash_check (&c, 4, &r);
  assert_int_equal (r.tail, 8);
  assert_int_equal (r.newest, 0);
  assert_int_equal (r.next_seq, 8);
  assert_int_equal (r.nr_runs, 0);
  replay_free (&r);
}

static void
test_hole (void **state)
{
  begin (2, 1, 16, 5);
  add_block (0, 5, 0, 5, false);
  add_block (0, 7, 1, 5, false);
  add_block (2, 7, 1, 5, false);
  crash_check (&c, 4, &r);
  assert_true (r.hole);                 /* 6 is in no ring */
  replay_free (&r);

  add_block (1, 6, 2, 6, false);        /* one record is enough */
  crash_check (&c, 4, &r);
  assert_false (r.hole);
  replay_free (&r);

  c.ring[1].header.seq = 4;             /* the oldest is missing */
  c.ring[0].header.seq = 4;
  c.ring[2].header.seq = 4;
  crash_check (&c, 4, &r);
  assert_true (r.hole);
  replay_free (&r);
}

/* Records, and no header that says which of them count. */
static void
test_no_headers (void **state)
{
  crash_begin (&c, 1, 1, 16);
  crash_add_member (&c, 0, 0);
  crash_add_member (&c, 1, 0);
  c.ring[1].max_seq = 6;
  crash_check (&c, 4, &r);
  assert_true (r.hole);
  assert_int_equal (r.next_seq, 7);
  replay_free (&r);

  c.ring[0].begun = true;               /* one is enough */
  c.ring[0].header.seq = 7;
  crash_check (&c, 4, &r);
  assert_false (r.hole);
  replay_free (&r);
}

/* No seq has zeroes as its low half: not a hole, and not the next one. */
static void
test_skipped_seq (void **state)
{
  const uint64_t last = UINT64_C (0x5ffffffff);

  begin (1, 1, 16, last);
  add_block (0, last, 0, 3, false);
  add_block (1, last, 0, 3, false);
  crash_check (&c, 4, &r);
  assert_true (r.next_seq == last + 2);
  replay_free (&r);

  add_block (0, last + 2, 0, 3, false);
  add_block (1, last + 2, 0, 3, false);
  crash_check (&c, 4, &r);
  assert_false (r.hole);
  assert_true (r.next_seq == last + 3);
  replay_free (&r);

  /* Seen in another session, and on a member without a header. */
  c.ring[1].max_seq = UINT64_C (0x6ffffffff);
  crash_check (&c, 4, &r);
  assert_true (r.next_seq == UINT64_C (0x700000001));
  replay_free (&r);
  crash_add_member (&c, 1, 0);
  c.ring[2].max_seq = UINT64_C (0x800000005);
  crash_check (&c, 4, &r);
  assert_true (r.next_seq == UINT64_C (0x800000006));
  assert_true (r.newest == last + 2);
  replay_free (&r);
}

static void
test_incomplete (void **state)
{
  struct ring_record *rec;

  begin (2, 1, 16, 5);
  add_block (0, 5, 0, 5, true);         /* not of the newest */
  rec = crash_add_record (&c, 0, 6, BIT (2));
  crash_add_entry (rec, 0, 3, 5, 0, 0);
  crash_check (&c, 4, &r);
  assert_true (r.incomplete);           /* member 2 has no record */
  replay_free (&r);

  crash_add_entry (crash_add_record (&c, 2, 6, BIT (0)), 0, 3, 5, 0, 0);
  crash_check (&c, 4, &r);
  assert_false (r.incomplete);          /* member 1 takes no part */
  replay_free (&r);

  rec->good[2] = false;
  crash_check (&c, 4, &r);
  assert_true (r.incomplete);
  replay_free (&r);

  /* It is of a device that is not there. */
  rec->good[2] = true;
  device_set_add (&rec->r.participants, 3);
  crash_check (&c, 4, &r);
  assert_false (r.incomplete);
  replay_free (&r);
}

/* ---- directed: what a row consists of ----------------------------------- */

static void
test_complete (void **state)
{
  struct ring_record *rec;

  begin (2, 1, 16, 5);
  rec = crash_add_record (&c, 0, 5, BIT (2));
  crash_add_entry (rec, 3, 2, 5, 0, 0);
  crash_add_entry (rec, 9, 1, 5, 0, 0);
  rec = crash_add_record (&c, 2, 5, BIT (0));
  crash_add_entry (rec, 3, 2, 5, 0, 0);
  crash_add_entry (rec, 9, 1, 5, 0, 0);
  crash_check (&c, 12, &r);
  for (unsigned row = 3; row <= 4; row++) {
    expect (row, "R.R");                /* slot 1 counts in place */
    assert_int_equal (replay_find (&r, row)->changed, 5);
    assert_true (replay_find (&r, row)->newest);
  }
  expect (2, NULL);
  expect (5, NULL);
  expect (8, NULL);
  expect (9, "R.R");
  expect (10, NULL);
  /* The header is one block. */
  assert_int_equal (source (4, 0)->dev, crash_dev (0));
  assert_int_equal (source (4, 0)->place, c.record[0][0].r.place + 2);
  assert_int_equal (source (9, 2)->dev, crash_dev (2));
  assert_int_equal (source (9, 2)->place, c.record[2][0].r.place + 3);
  replay_free (&r);
}

/* Two of three blocks are torn in row 1, one in row 0. */
static void
test_torn (void **state)
{
  begin (2, 1, 16, 5);
  crash_add_entry (crash_add_record (&c, 0, 5, 6), 0, 3, 7, 0, 2);
  crash_add_entry (crash_add_record (&c, 1, 5, 5), 0, 3, 7, 0, 3);
  crash_add_entry (crash_add_record (&c, 2, 5, 3), 0, 3, 7, 0, 0);
  crash_check (&c, 4, &r);
  expect (0, "RXR");
  expect (1, NULL);
  expect (2, "RRR");
  assert_int_equal (r.nr_dropped, 1);
  assert_int_equal (replay_find (&r, 0)->erased, 2);
  replay_free (&r);
}

/* Without the newest, what the one before made of the row counts. */
static void
test_torn_above_another (void **state)
{
  begin (2, 1, 16, 5);
  add_block (0, 5, 0, 5, false);
  add_block (2, 5, 0, 5, true);
  add_block (0, 6, 0, 7, true);
  add_block (1, 6, 0, 7, true);
  add_block (2, 6, 0, 7, false);
  crash_check (&c, 4, &r);
  expect (0, "R.X");
  assert_int_equal (source (0, 0)->place, c.record[0][0].r.place + 1);
  assert_false (replay_find (&r, 0)->newest);
  assert_int_equal (replay_find (&r, 0)->changed, 5);
  assert_int_equal (r.nr_dropped, 1);
  replay_free (&r);
}

/* A slot that changed is erased where its block is not good, whatever older
 * transactions have of it.
 */
static void
test_erased (void **state)
{
  begin (2, 1, 16, 5);
  add_block (0, 5, 0, 5, false);
  add_block (2, 5, 0, 5, false);
  add_block (1, 6, 0, 6, true);
  add_block (2, 6, 0, 6, false);
  crash_check (&c, 4, &r);
  expect (0, "RXR");
  assert_int_equal (source (0, 0)->place, c.record[0][0].r.place + 1);
  assert_int_equal (source (0, 2)->place, c.record[2][1].r.place + 1);
  assert_int_equal (replay_find (&r, 0)->changed, 7);
  assert_int_equal (replay_find (&r, 0)->erased, 2);
  replay_free (&r);

  /* Nor does a later one mend it that leaves the slot alone. */
  add_block (0, 7, 0, 5, false);
  add_block (2, 7, 0, 5, false);
  crash_check (&c, 4, &r);
  expect (0, "RXR");
  assert_int_equal (source (0, 0)->place, c.record[0][1].r.place + 1);
  replay_free (&r);
}

/* Zeroes of many rows; a later block in the middle of them. */
static void
test_zeroes (void **state)
{
  begin (2, 1, 16, 5);
  for (unsigned i = 0; i < 3; i++)
    crash_add_entry (crash_add_record (&c, i, 5, 7), 10, 1000, 7, ZERO, 0);
  add_block (1, 6, 500, 5, false);      /* role 2 there */
  add_block (2, 6, 500, 5, false);      /* role 0 */
  crash_check (&c, 1020, &r);
  expect (9, NULL);
  expect (10, "000");
  expect (499, "000");
  expect (500, "0RR");
  expect (501, "000");
  expect (1009, "000");
  expect (1010, NULL);
  assert_false (replay_find (&r, 499)->newest);
  assert_true (replay_find (&r, 500)->newest);
  replay_free (&r);

  /* The later one is dropped. */
  c.record[1][1].good[0] = c.record[2][1].good[0] = false;
  crash_check (&c, 1020, &r);
  expect (500, "000");
  assert_int_equal (r.nr_dropped, 1);
  replay_free (&r);

  /* The zeroes are not, although one ring alone has the record. */
  c.ring[0].nr_records = 1;
  c.ring[1].nr_records = c.ring[2].nr_records = 0;
  crash_check (&c, 1020, &r);
  expect (500, "000");
  assert_int_equal (r.nr_dropped, 0);
  replay_free (&r);

  /* Of an older one a record that is missing is an erasure: a newer one of the
   * slot may be missing with it.
   */
  c.ring[1].nr_records = 1;
  add_block (0, 6, 2000, 1, false);
  crash_check (&c, 2020, &r);
  expect (500, "00X");
  replay_free (&r);
}

/* So it is where a member is behind, also of the newest. */
static void
test_zeroes_behind (void **state)
{
  const uint64_t missed = 1;

  for (unsigned i = 0; i < 2; i++) {
    begin (2, 1, 16, 5);
    crash_add_entry (crash_add_record (&c, 0, 5, 7), 0, 4, 7, ZERO, 0);
    crash_add_entry (crash_add_record (&c, 1, 5, 7), 0, 4, 7, ZERO, 0);
    if (i == 1) {
      c.member[2].missed = &missed;
      c.member[2].region_rows = 16;
    }
    assert_int_equal (replay_decide (&c.g, c.member, c.nr_members, NULL, 0, &r),
                      0);
    expect (0, i == 0 ? "000" : "00X");
    replay_free (&r);
  }
}

/* Blocks in place that can't be read; the newest is dropped if that is one too
 * many.
 */
static void
test_bad (void **state)
{
  begin (2, 1, 16, 5);
  for (unsigned i = 0; i < 3; i += 2) {
    crash_add_entry (crash_add_record (&c, i, 5, 5), 0, 2, 5, 0, 0);
    crash_add_entry (crash_add_record (&c, i, 6, 5), 0, 3, 5, 0, 0);
  }
  crash_add_bad (&c, 0, 2);
  crash_add_bad (&c, 1, 4);             /* a ring has it */
  crash_check (&c, 4, &r);
  expect (0, "RXR");
  expect (1, "R.R");
  assert_int_equal (r.nr_dropped, 0);
  assert_int_equal (replay_find (&r, 0)->changed, 5);
  replay_free (&r);

  /* The newest alone lacks a block. */
  c.record[2][1].good[0] = false;
  crash_check (&c, 4, &r);
  expect (0, "RXR");
  assert_int_equal (source (0, 2)->place, c.record[2][0].r.place + 1);
  assert_int_equal (r.nr_dropped, 1);
  replay_free (&r);
}

/* In the middle of a run of zeroes that not all slots have.
 */
static void
test_bad_in_zeroes (void **state)
{
  begin (3, 1, 16, 5);
  crash_add_entry (crash_add_record (&c, 0, 5, 9), 2, 4, 9, ZERO, 0);
  crash_add_entry (crash_add_record (&c, 3, 5, 9), 2, 4, 9, ZERO, 0);
  crash_add_bad (&c, 4, 2);
  crash_check (&c, 8, &r);
  expect (3, "0..0");
  expect (4, "0X.0");
  expect (5, "0..0");
  replay_free (&r);

  c.bad[0].row = 2;                     /* the first of them */
  crash_check (&c, 8, &r);
  expect (2, "0X.0");
  expect (3, "0..0");
  replay_free (&r);
}

/* A role has another slot in the next stripe; the two slots of which one
 * changes in row 0 and the other in row 1 are absent.
 */
static void
test_zeroes_across_stripes (void **state)
{
  static const unsigned slot[] = { 0, 1, 4 };

  crash_begin (&c, 3, 2, 1);
  for (unsigned i = 0; i < 3; i++) {
    crash_add_member (&c, slot[i], 5);
    crash_add_entry (crash_add_record (&c, i, 5, 7), 0, 2, 0x1b, ZERO, 0);
  }
  crash_check (&c, 4, &r);
  expect (0, "00..0");
  expect (1, "00..0");
  assert_int_equal (replay_find (&r, 0)->changed, 0x17);
  assert_int_equal (replay_find (&r, 1)->changed, 0x1b);
  replay_free (&r);
}

/* A slot without a member is changed too, but it is not known. */
static void
test_absent (void **state)
{
  crash_begin (&c, 2, 2, 16);           /* slot: (role + 1) mod 4 */
  for (unsigned slot = 1; slot < 4; slot++)
    crash_add_member (&c, slot, 5);
  for (unsigned i = 0; i < 3; i += 2)   /* slots 1, 3: roles 0, 2 */
    crash_add_entry (crash_add_record (&c, i, 5, 5), 0, 2, 0xd, 0, i);
  crash_check (&c, 4, &r);
  expect (0, ".R.R");
  expect (1, ".R.X");
  assert_int_equal (replay_find (&r, 1)->changed, 0xb);
  assert_int_equal (replay_find (&r, 1)->erased, 8);
  assert_int_equal (r.nr_dropped, 0);
  replay_free (&r);

  c.nr_members = 2;                     /* slots 1 and 2 are left */
  crash_check (&c, 4, &r);
  expect (1, ".R..");
  replay_free (&r);
  c.good[0][0][1] = false;
  crash_check (&c, 4, &r);
  expect (0, ".R..");
  expect (1, NULL);
  assert_int_equal (r.nr_dropped, 1);
  replay_free (&r);
}

static void
test_lost (void **state)
{
  begin (2, 1, 16, 5);
  add_block (0, 5, 0, 7, true);
  add_block (1, 5, 0, 7, true);
  add_block (2, 5, 0, 7, false);
  for (unsigned i = 0; i < 3; i++)
    add_block (i, 6, 1, 7, false);
  crash_check (&c, 4, &r);              /* not the newest: it stays */
  expect (0, "XXR");
  expect (1, "RRR");
  assert_true (replay_find (&r, 0)->lost);
  assert_false (replay_find (&r, 1)->lost);
  assert_int_equal (r.nr_dropped, 0);
  replay_free (&r);
}

/* Where the row is lost with the newest and without it, what is good with
 * it stands: it may have been acknowledged, and be half in place.
 */
static void
test_lost_either_way (void **state)
{
  begin (2, 1, 16, 5);
  add_block (1, 5, 0, 6, true);
  add_block (2, 5, 0, 6, true);
  add_block (0, 6, 0, 5, false);
  add_block (2, 6, 0, 5, true);
  crash_check (&c, 4, &r);
  expect (0, "RXX");
  assert_true (replay_find (&r, 0)->lost);
  assert_true (replay_find (&r, 0)->newest);
  assert_int_equal (replay_find (&r, 0)->changed, 7);
  assert_int_equal (r.nr_dropped, 0);
  replay_free (&r);

  /* One transaction, and what it leaves alone can't be read. */
  begin (2, 1, 16, 5);
  add_block (0, 5, 0, 5, false);
  add_block (2, 5, 0, 5, true);
  crash_add_bad (&c, 0, 6);
  crash_check (&c, 4, &r);
  expect (0, "RXX");
  assert_true (replay_find (&r, 0)->lost);
  replay_free (&r);

  /* Too few members, and one transaction. */
  crash_begin (&c, 2, 1, 16);
  crash_add_member (&c, 0, 5);
  add_block (0, 5, 0, 5, false);
  crash_check (&c, 4, &r);
  expect (0, "R..");
  assert_true (replay_find (&r, 0)->lost);
  assert_int_equal (r.nr_dropped, 0);
  replay_free (&r);
}

/* One replaces the other: both have records of the slot. */
static void
test_two_members (void **state)
{
  begin (1, 1, 16, 5);
  crash_add_member (&c, 0, 5);
  crash_add_entry (crash_add_record (&c, 0, 5, 7), 0, 4, 3, 0, 1 | 8);
  crash_add_entry (crash_add_record (&c, 1, 5, 7), 0, 4, 3, 0, 0);
  crash_add_entry (crash_add_record (&c, 2, 5, 7), 0, 4, 3, 0, 2 | 8);
  crash_check (&c, 5, &r);
  for (unsigned row = 0; row < 3; row++)
    expect (row, "RR");
  expect (3, "XR");
  assert_int_equal (source (0, 0)->dev, crash_dev (2));
  assert_int_equal (source (0, 0)->place, c.record[2][0].r.place + 1);
  assert_int_equal (source (1, 0)->dev, crash_dev (0));
  assert_int_equal (source (1, 0)->place, c.record[0][0].r.place + 2);
  assert_true (r.incomplete);
  replay_free (&r);

  /* The good block of an older transaction does not serve. */
  add_block (0, 6, 4, 3, false);
  add_block (1, 6, 0, 3, false);
  add_block (2, 6, 0, 3, true);
  crash_check (&c, 5, &r);
  expect (0, "XR");
  replay_free (&r);
}

/* Blocks that were written in place have none in the record.  Whether they
 * count is not known here.
 */
static void
test_direct (void **state)
{
  begin (2, 1, 16, 5);
  for (unsigned i = 0; i < 3; i++) {
    struct ring_record *rec = crash_add_record (&c, i, 5, 7);

    crash_add_entry (rec, 0, 1, 7, 0, 0);
    crash_add_entry (rec, 1, 2, 7, DIRECT, 0);
    crash_add_entry (rec, 3, 1, 7, 0, 0);
  }
  crash_check (&c, 4, &r);
  assert_int_equal (source (0, 1)->place, c.record[1][0].r.place + 1);
  assert_int_equal (source (3, 1)->place, c.record[1][0].r.place + 2);
  replay_free (&r);

  /* With a thousand crcs more the header takes two blocks. */
  for (unsigned i = 0; i < 3; i++)
    crash_add_entry (&c.record[i][0], 4, 1000, 7, DIRECT, 0);
  crash_check (&c, 1004, &r);
  assert_int_equal (source (3, 1)->place, c.record[1][0].r.place + 3);
  replay_free (&r);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_nothing),
    cmocka_unit_test (test_tail),
    cmocka_unit_test (test_hole),
    cmocka_unit_test (test_no_headers),
    cmocka_unit_test (test_skipped_seq),
    cmocka_unit_test (test_incomplete),
    cmocka_unit_test (test_complete),
    cmocka_unit_test (test_torn),
    cmocka_unit_test (test_torn_above_another),
    cmocka_unit_test (test_erased),
    cmocka_unit_test (test_zeroes),
    cmocka_unit_test (test_zeroes_behind),
    cmocka_unit_test (test_bad),
    cmocka_unit_test (test_bad_in_zeroes),
    cmocka_unit_test (test_zeroes_across_stripes),
    cmocka_unit_test (test_absent),
    cmocka_unit_test (test_lost),
    cmocka_unit_test (test_lost_either_way),
    cmocka_unit_test (test_two_members),
    cmocka_unit_test (test_direct),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
