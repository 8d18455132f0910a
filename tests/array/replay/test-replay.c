/* gpuraid test: what a row consists of after a crash.
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
#include "tests/array/replay/replay-crash.h"

#define ZERO JOURNAL_ENTRY_ZERO
#define DIRECT JOURNAL_ENTRY_DIRECT

static void
test_complete (void **state)
{
  struct ring_record *rec;

  begin_crash (2, 1, 16, 5);
  rec = crash_add_record (&c, 0, 5, BIT (2));
  crash_add_entry (rec, 3, 2, 5, 0, 0);
  crash_add_entry (rec, 9, 1, 5, 0, 0);
  rec = crash_add_record (&c, 2, 5, BIT (0));
  crash_add_entry (rec, 3, 2, 5, 0, 0);
  crash_add_entry (rec, 9, 1, 5, 0, 0);
  crash_check (&c, 12, &r);
  for (unsigned row = 3; row <= 4; row++) {
    expect_row (row, "R.R");                /* slot 1 counts in place */
    assert_int_equal (replay_find (&r, row)->changed, 5);
    assert_true (replay_find (&r, row)->newest);
  }
  expect_row (2, NULL);
  expect_row (5, NULL);
  expect_row (8, NULL);
  expect_row (9, "R.R");
  expect_row (10, NULL);
  /* The header is one block. */
  assert_int_equal (source_of (4, 0)->dev, crash_dev (0));
  assert_int_equal (source_of (4, 0)->place, c.record[0][0].r.place + 2);
  assert_int_equal (source_of (9, 2)->dev, crash_dev (2));
  assert_int_equal (source_of (9, 2)->place, c.record[2][0].r.place + 3);
  replay_free (&r);
}

/* Two of three blocks are torn in row 1, one in row 0. */
static void
test_torn (void **state)
{
  begin_crash (2, 1, 16, 5);
  crash_add_entry (crash_add_record (&c, 0, 5, 6), 0, 3, 7, 0, 2);
  crash_add_entry (crash_add_record (&c, 1, 5, 5), 0, 3, 7, 0, 3);
  crash_add_entry (crash_add_record (&c, 2, 5, 3), 0, 3, 7, 0, 0);
  crash_check (&c, 4, &r);
  expect_row (0, "RXR");
  expect_row (1, NULL);
  expect_row (2, "RRR");
  assert_int_equal (r.nr_dropped, 1);
  assert_int_equal (replay_find (&r, 0)->erased, 2);
  replay_free (&r);
}

/* Without the newest, what the one before made of the row counts. */
static void
test_torn_above_another (void **state)
{
  begin_crash (2, 1, 16, 5);
  add_block (0, 5, 0, 5, false);
  add_block (2, 5, 0, 5, true);
  add_block (0, 6, 0, 7, true);
  add_block (1, 6, 0, 7, true);
  add_block (2, 6, 0, 7, false);
  crash_check (&c, 4, &r);
  expect_row (0, "R.X");
  assert_int_equal (source_of (0, 0)->place, c.record[0][0].r.place + 1);
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
  begin_crash (2, 1, 16, 5);
  add_block (0, 5, 0, 5, false);
  add_block (2, 5, 0, 5, false);
  add_block (1, 6, 0, 6, true);
  add_block (2, 6, 0, 6, false);
  crash_check (&c, 4, &r);
  expect_row (0, "RXR");
  assert_int_equal (source_of (0, 0)->place, c.record[0][0].r.place + 1);
  assert_int_equal (source_of (0, 2)->place, c.record[2][1].r.place + 1);
  assert_int_equal (replay_find (&r, 0)->changed, 7);
  assert_int_equal (replay_find (&r, 0)->erased, 2);
  replay_free (&r);

  /* Nor does a later one mend it that leaves the slot alone. */
  add_block (0, 7, 0, 5, false);
  add_block (2, 7, 0, 5, false);
  crash_check (&c, 4, &r);
  expect_row (0, "RXR");
  assert_int_equal (source_of (0, 0)->place, c.record[0][1].r.place + 1);
  replay_free (&r);
}

/* Zeroes of many rows; a later block in the middle of them. */
static void
test_zeroes (void **state)
{
  begin_crash (2, 1, 16, 5);
  for (unsigned i = 0; i < 3; i++)
    crash_add_entry (crash_add_record (&c, i, 5, 7), 10, 1000, 7, ZERO, 0);
  add_block (1, 6, 500, 5, false);      /* role 2 there */
  add_block (2, 6, 500, 5, false);      /* role 0 */
  crash_check (&c, 1020, &r);
  expect_row (9, NULL);
  expect_row (10, "000");
  expect_row (499, "000");
  expect_row (500, "0RR");
  expect_row (501, "000");
  expect_row (1009, "000");
  expect_row (1010, NULL);
  assert_false (replay_find (&r, 499)->newest);
  assert_true (replay_find (&r, 500)->newest);
  replay_free (&r);

  /* The later one is dropped. */
  c.record[1][1].good[0] = c.record[2][1].good[0] = false;
  crash_check (&c, 1020, &r);
  expect_row (500, "000");
  assert_int_equal (r.nr_dropped, 1);
  replay_free (&r);

  /* The zeroes are not, although one ring alone has the record. */
  c.ring[0].nr_records = 1;
  c.ring[1].nr_records = c.ring[2].nr_records = 0;
  crash_check (&c, 1020, &r);
  expect_row (500, "000");
  assert_int_equal (r.nr_dropped, 0);
  replay_free (&r);

  /* Of an older one a record that is missing is an erasure: a newer one of the
   * slot may be missing with it.
   */
  c.ring[1].nr_records = 1;
  add_block (0, 6, 2000, 1, false);
  crash_check (&c, 2020, &r);
  expect_row (500, "00X");
  replay_free (&r);
}

/* So it is where a member is behind, also of the newest. */
static void
test_zeroes_behind (void **state)
{
  const uint64_t missed = 1;
  struct replay_input in;

  for (unsigned i = 0; i < 2; i++) {
    begin_crash (2, 1, 16, 5);
    crash_add_entry (crash_add_record (&c, 0, 5, 7), 0, 4, 7, ZERO, 0);
    crash_add_entry (crash_add_record (&c, 1, 5, 7), 0, 4, 7, ZERO, 0);
    if (i == 1) {
      c.member[2].missed = &missed;
      c.member[2].region_rows = 16;
    }
    in = crash_input (&c);
    assert_int_equal (replay_decide (&in, &r), 0);
    expect_row (0, i == 0 ? "000" : "00X");
    replay_free (&r);
  }
}

/* The ring of a member that is lost counts where the newest transaction makes
 * a row zeroes, and only there.
 */
static void
test_zeroes_of_a_lost_ring (void **state)
{
  struct replay_input in;
  struct ring_record *rec;

  begin_crash (2, 1, 16, 5);
  for (unsigned i = 0; i < 3; i++)
    crash_add_entry (crash_add_record (&c, i, 5, 7), 0, 2, 7, 0, 0);
  crash_add_entry (&c.record[2][0], 8, 1, 7, ZERO, 0);  /* older */
  rec = crash_add_record (&c, 2, 6, 7);
  crash_add_entry (rec, 0, 1, 7, ZERO, 0);
  crash_add_entry (rec, 1, 1, 4, ZERO, 0);              /* not of all */
  in = crash_input (&c);
  in.nr_members = 2;
  in.nr_lost = 1;
  for (unsigned known = 6; known < 8; known++) {
    in.known = known;
    assert_int_equal (replay_decide (&in, &r), 0);
    assert_int_equal (r.newest, known);
    assert_int_equal (r.incomplete, known == 6);
    expect_row (0, known == 6 ? "00." : "RR.");
    expect_row (1, "RR.");
    expect_row (8, NULL);
    replay_free (&r);
  }
}

/* Blocks in place that can't be read; the newest is dropped if that is one too
 * many.
 */
static void
test_bad (void **state)
{
  begin_crash (2, 1, 16, 5);
  for (unsigned i = 0; i < 3; i += 2) {
    crash_add_entry (crash_add_record (&c, i, 5, 5), 0, 2, 5, 0, 0);
    crash_add_entry (crash_add_record (&c, i, 6, 5), 0, 3, 5, 0, 0);
  }
  crash_add_bad (&c, 0, 2);
  crash_add_bad (&c, 1, 4);             /* a ring has it */
  crash_check (&c, 4, &r);
  expect_row (0, "RXR");
  expect_row (1, "R.R");
  assert_int_equal (r.nr_dropped, 0);
  assert_int_equal (replay_find (&r, 0)->changed, 5);
  replay_free (&r);

  /* The newest alone lacks a block. */
  c.record[2][1].good[0] = false;
  crash_check (&c, 4, &r);
  expect_row (0, "RXR");
  assert_int_equal (source_of (0, 2)->place, c.record[2][0].r.place + 1);
  assert_int_equal (r.nr_dropped, 1);
  replay_free (&r);
}

/* Too many can't be read in place, of those that no transaction changes: the
 * journal lacks nothing, unless a torn block or a lost slot is among the rest.
 */
static void
test_lost_in_place (void **state)
{
  begin_crash (3, 1, 16, 5);
  for (unsigned row = 0; row < 2; row++) {
    add_block (0, 5 + row, row, 9, false);
    add_block (3, 5 + row, row, 9, row == 1);
    crash_add_bad (&c, row, 6);
  }
  crash_check (&c, 2, &r);
  expect_row (0, "RXXR");
  assert_true (replay_find (&r, 0)->lost);
  assert_false (replay_find (&r, 0)->lacks);
  expect_row (1, "RXXX");
  assert_true (replay_find (&r, 1)->lacks);
  replay_free (&r);

  crash_begin (&c, 3, 1, 16);
  for (unsigned slot = 0; slot < 3; slot++)
    crash_add_member (&c, slot, 5);
  add_block (0, 5, 0, 9, false);
  crash_add_bad (&c, 0, 6);
  crash_check (&c, 1, &r);
  assert_true (replay_find (&r, 0)->lacks);     /* slot 3 */
  replay_free (&r);
}

/* In the middle of a run of zeroes that not all slots have.
 */
static void
test_bad_in_zeroes (void **state)
{
  begin_crash (3, 1, 16, 5);
  crash_add_entry (crash_add_record (&c, 0, 5, 9), 2, 4, 9, ZERO, 0);
  crash_add_entry (crash_add_record (&c, 3, 5, 9), 2, 4, 9, ZERO, 0);
  crash_add_bad (&c, 4, 2);
  crash_check (&c, 8, &r);
  expect_row (3, "0..0");
  expect_row (4, "0X.0");
  expect_row (5, "0..0");
  replay_free (&r);

  c.bad[0].row = 2;                     /* the first of them */
  crash_check (&c, 8, &r);
  expect_row (2, "0X.0");
  expect_row (3, "0..0");
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
  expect_row (0, "00..0");
  expect_row (1, "00..0");
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
  expect_row (0, ".R.R");
  expect_row (1, ".R.X");
  assert_int_equal (replay_find (&r, 1)->changed, 0xb);
  assert_int_equal (replay_find (&r, 1)->erased, 8);
  assert_int_equal (r.nr_dropped, 0);
  replay_free (&r);

  c.nr_members = 2;                     /* slots 1 and 2 are left */
  crash_check (&c, 4, &r);
  expect_row (1, ".R..");
  replay_free (&r);
  c.good[0][0][1] = false;
  crash_check (&c, 4, &r);
  expect_row (0, ".R..");
  expect_row (1, NULL);
  assert_int_equal (r.nr_dropped, 1);
  replay_free (&r);
}

static void
test_lost (void **state)
{
  begin_crash (2, 1, 16, 5);
  add_block (0, 5, 0, 7, true);
  add_block (1, 5, 0, 7, true);
  add_block (2, 5, 0, 7, false);
  for (unsigned i = 0; i < 3; i++)
    add_block (i, 6, 1, 7, false);
  crash_check (&c, 4, &r);              /* not the newest: it stays */
  expect_row (0, "XXR");
  expect_row (1, "RRR");
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
  begin_crash (2, 1, 16, 5);
  add_block (1, 5, 0, 6, true);
  add_block (2, 5, 0, 6, true);
  add_block (0, 6, 0, 5, false);
  add_block (2, 6, 0, 5, true);
  crash_check (&c, 4, &r);
  expect_row (0, "RXX");
  assert_true (replay_find (&r, 0)->lost);
  assert_true (replay_find (&r, 0)->newest);
  assert_int_equal (replay_find (&r, 0)->changed, 7);
  assert_int_equal (r.nr_dropped, 0);
  replay_free (&r);

  /* One transaction, and what it leaves alone can't be read. */
  begin_crash (2, 1, 16, 5);
  add_block (0, 5, 0, 5, false);
  add_block (2, 5, 0, 5, true);
  crash_add_bad (&c, 0, 6);
  crash_check (&c, 4, &r);
  expect_row (0, "RXX");
  assert_true (replay_find (&r, 0)->lost);
  replay_free (&r);

  /* Too few members, and one transaction. */
  crash_begin (&c, 2, 1, 16);
  crash_add_member (&c, 0, 5);
  add_block (0, 5, 0, 5, false);
  crash_check (&c, 4, &r);
  expect_row (0, "R..");
  assert_true (replay_find (&r, 0)->lost);
  assert_int_equal (r.nr_dropped, 0);
  replay_free (&r);
}

/* One replaces the other: both have records of the slot. */
static void
test_two_members (void **state)
{
  begin_crash (1, 1, 16, 5);
  crash_add_member (&c, 0, 5);
  crash_add_entry (crash_add_record (&c, 0, 5, 7), 0, 4, 3, 0, 1 | 8);
  crash_add_entry (crash_add_record (&c, 1, 5, 7), 0, 4, 3, 0, 0);
  crash_add_entry (crash_add_record (&c, 2, 5, 7), 0, 4, 3, 0, 2 | 8);
  crash_check (&c, 5, &r);
  for (unsigned row = 0; row < 3; row++)
    expect_row (row, "RR");
  expect_row (3, "XR");
  assert_int_equal (source_of (0, 0)->dev, crash_dev (2));
  assert_int_equal (source_of (0, 0)->place, c.record[2][0].r.place + 1);
  assert_int_equal (source_of (1, 0)->dev, crash_dev (0));
  assert_int_equal (source_of (1, 0)->place, c.record[0][0].r.place + 2);
  assert_true (r.incomplete);
  replay_free (&r);

  /* The good block of an older transaction does not serve. */
  add_block (0, 6, 4, 3, false);
  add_block (1, 6, 0, 3, false);
  add_block (2, 6, 0, 3, true);
  crash_check (&c, 5, &r);
  expect_row (0, "XR");
  replay_free (&r);
}

/* Blocks that were written in place have none in the record.  Whether they
 * count is not known here.
 */
static void
test_direct (void **state)
{
  begin_crash (2, 1, 16, 5);
  for (unsigned i = 0; i < 3; i++) {
    struct ring_record *rec = crash_add_record (&c, i, 5, 7);

    crash_add_entry (rec, 0, 1, 7, 0, 0);
    crash_add_entry (rec, 1, 2, 7, DIRECT, 0);
    crash_add_entry (rec, 3, 1, 7, 0, 0);
  }
  crash_check (&c, 4, &r);
  assert_int_equal (source_of (0, 1)->place, c.record[1][0].r.place + 1);
  assert_int_equal (source_of (3, 1)->place, c.record[1][0].r.place + 2);
  replay_free (&r);

  /* With a thousand crcs more the header takes two blocks. */
  for (unsigned i = 0; i < 3; i++)
    crash_add_entry (&c.record[i][0], 4, 1000, 7, DIRECT, 0);
  crash_check (&c, 1004, &r);
  assert_int_equal (source_of (3, 1)->place, c.record[1][0].r.place + 3);
  replay_free (&r);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_complete),
    cmocka_unit_test (test_torn),
    cmocka_unit_test (test_torn_above_another),
    cmocka_unit_test (test_erased),
    cmocka_unit_test (test_zeroes),
    cmocka_unit_test (test_zeroes_behind),
    cmocka_unit_test (test_zeroes_of_a_lost_ring),
    cmocka_unit_test (test_bad),
    cmocka_unit_test (test_lost_in_place),
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
