/* gpuraid test: which transactions count after a crash.
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

static void
test_nothing (void **state)
{
  crash_begin (&c, 2, 1, 16);
  crash_check (&c, 4, &r);              /* no members */
  assert_int_equal (r.next_seq, 1);
  assert_int_equal (r.newest, 0);
  assert_int_equal (r.nr_runs, 0);
  replay_free (&r);

  begin_crash (2, 1, 16, 7);                  /* all was freed */
  crash_check (&c, 4, &r);
  assert_int_equal (r.next_seq, 7);
  assert_int_equal (r.tail, 7);
  assert_int_equal (r.newest, 0);
  assert_false (r.hole);
  assert_false (r.incomplete);
  expect_row (0, NULL);
  replay_free (&r);

  begin_crash (2, 1, 16, 0);                  /* no headers */
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
  expect_row (0, NULL);
  expect_row (1, "R.R");
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
  begin_crash (2, 1, 16, 5);
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

  begin_crash (1, 1, 16, last);
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

  begin_crash (2, 1, 16, 5);
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
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
