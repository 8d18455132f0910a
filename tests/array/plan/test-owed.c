/* gpuraid: which reads may be made in a client's thread, and which have to go
 * through the loop.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "array/plan/owed.h"
#include "common/bits.h"

#define MS UINT64_C (1000000)
#define LOOP_NS (MS * 15 / 100)

/* The age is never more than that of the oldest read. */
static void
test_age (void **state)
{
  struct owed o = { 0 };
  unsigned first, second, third;

  assert_int_equal (owed_age (&o, 5 * MS), 0);
  first = owed_begin (&o, 10 * MS, 0);
  assert_int_equal (owed_age (&o, 20 * MS), 0);
  /* The next read makes its group complete. */
  second = owed_begin (&o, 21 * MS, 0);
  assert_int_not_equal (first, second);
  assert_int_equal (owed_age (&o, 30 * MS), 9 * MS);
  third = owed_begin (&o, 30 * MS, 0);
  assert_int_equal (third, second);
  assert_int_equal (owed_age (&o, 31 * MS), 10 * MS);
  owed_end (&o, first, 0);
  assert_int_equal (owed_age (&o, 32 * MS), 0);
  first = owed_begin (&o, 33 * MS, 0);
  assert_int_equal (owed_age (&o, 34 * MS), MS);
  owed_end (&o, second, 0);
  assert_int_equal (owed_age (&o, 35 * MS), 2 * MS);
  owed_end (&o, third, 0);
  assert_int_equal (owed_age (&o, 36 * MS), 0);
  owed_end (&o, OWED_NONE, 0);
  owed_end (&o, first, 0);
}

/* One of two that began together hangs: that is seen though no read begins
 * later.
 */
static void
test_together (void **state)
{
  struct owed o = { 0 };
  unsigned first, second;

  first = owed_begin (&o, 10 * MS, 0);
  second = owed_begin (&o, 10 * MS, 0);
  owed_end (&o, second, 0);
  assert_int_equal (owed_age (&o, 20 * MS), 10 * MS);
  assert_false (owed_is_late (&o, 20 * MS, 10 * MS, 0));
  assert_true (owed_is_late (&o, 21 * MS, 10 * MS, 0));
  owed_end (&o, first, 0);
  assert_false (owed_is_late (&o, 22 * MS, 1, 0));
}

/* A stream of reads that take a millisecond never looks much older, and one
 * read that hangs is seen.
 */
static void
test_stream (void **state)
{
  struct owed o = { 0 };
  unsigned group[4] = { OWED_NONE, OWED_NONE, OWED_NONE, OWED_NONE }, hangs;
  uint64_t now = 0;

  for (unsigned i = 0; i < 1000; i++, now += MS / 4) {
    owed_end (&o, group[i % 4], 0);
    assert_in_range (owed_age (&o, now), 0, MS);
    group[i % 4] = owed_begin (&o, now, 0);
  }
  hangs = owed_begin (&o, now, 0);
  for (unsigned i = 0; i < 80; i++, now += MS / 4) {
    owed_end (&o, group[i % 4], 0);
    group[i % 4] = owed_begin (&o, now, 0);
  }
  assert_in_range (owed_age (&o, now), 18 * MS, 20 * MS);
  owed_end (&o, hangs, 0);
  for (unsigned i = 0; i < 8; i++, now += MS / 4) {
    owed_end (&o, group[i % 4], 0);
    group[i % 4] = owed_begin (&o, now, 0);
  }
  assert_in_range (owed_age (&o, now), 0, MS);
}

/* With many reads at once some always take long: a group of reads is late only
 * against those of the other members.
 */
static void
test_others (void **state)
{
  struct owed o = { 0 };
  unsigned first, last, late;
  uint64_t now = MS;

  /* One read at a time: no group is seen to wait for any. */
  for (unsigned i = 0; i < 50; i++, now += 2 * MS)
    owed_end (&o, owed_begin (&o, now, 0), 0);
  assert_int_equal (o.usual, 0);
  /* Of each group the last read ends when the next has been open for 4 ms. */
  last = owed_begin (&o, now, 0);
  for (unsigned i = 0; i < 100; i++) {
    first = owed_begin (&o, now, 0);
    for (unsigned ms = 0; ms < 4; ms++)
      owed_end (&o, owed_begin (&o, now += MS, 0), 0);
    owed_end (&o, last, 0);
    last = first;
  }
  assert_in_range (o.usual, 3 * MS, 4 * MS);
  late = owed_begin (&o, now, 0);
  now += 10 * MS;
  assert_true (owed_is_late (&o, now, MS, 0));
  assert_true (owed_is_late (&o, now, MS, 3 * MS));
  assert_false (owed_is_late (&o, now, MS, 4 * MS));
  assert_true (owed_is_late (&o, now + 10 * MS, MS, 4 * MS));
  owed_end (&o, late, 0);
  owed_end (&o, last, 0);
  /* Groups that end soon make it forget that, in a second. */
  for (unsigned i = 0; i < 50; i++, now += 10 * MS)
    owed_end (&o, owed_begin (&o, now, 0), 0);
  assert_in_range (o.usual, 2 * MS, 3 * MS);
  for (unsigned i = 0; i < 50; i++, now += 100 * MS)
    owed_end (&o, owed_begin (&o, now, 0), 0);
  assert_in_range (o.usual, 0, MS);
}

/* Members that are equally slow get the same reads as with hedge=no; only
 * one that is late against the others does not.
 */
static void
test_long (void **state)
{
  const struct hedge_policy automatic = { 0 }, fixed = { .delay = 2 * MS };

  /* Nothing is known of the others. */
  assert_false (owed_is_long (&automatic, LOOP_NS, 0, 5 * MS));
  assert_false (owed_is_long (&automatic, LOOP_NS, 6 * MS, 2 * MS));
  assert_false (owed_is_long (&automatic, LOOP_NS, 6 * MS, 6 * MS));
  assert_true (owed_is_long (&automatic, LOOP_NS, 6 * MS, 6 * MS + 1));
  assert_true (owed_is_long (&fixed, LOOP_NS, 6 * MS, MS));
  assert_false (owed_is_long (&fixed, LOOP_NS, 6 * MS, MS / 10));
  assert_true (owed_is_long (&automatic, 0, 0, 0));
}

/* What ends without the array lock: all that is neither late nor long, also of
 * members that take long, all alike.
 */
static void
test_quick (void **state)
{
  const struct hedge_policy automatic = { 0 }, fixed = { .delay = 2 * MS };
  const struct hedge_policy off = { .off = true };
  const uint64_t times[] = {
    1, MS / 100, MS / 10 - 1, MS / 10, LOOP_NS - 1, LOOP_NS, MS, 6 * MS - 1,
    6 * MS, 6 * MS + 1, HEDGE_FAST_NS - 1, HEDGE_FAST_NS, 100 * MS
  };

  assert_int_equal (owed_quick_ns (&automatic, LOOP_NS, 6 * MS), 6 * MS);
  assert_int_equal (owed_quick_ns (&automatic, LOOP_NS, 0), MS / 10);
  assert_int_equal (owed_quick_ns (&automatic, LOOP_NS, 300 * MS),
                    HEDGE_FAST_NS);
  assert_int_equal (owed_quick_ns (&fixed, LOOP_NS, 6 * MS), MS / 10);
  assert_int_equal (owed_quick_ns (&off, LOOP_NS, 0), HEDGE_FAST_NS);
  assert_int_equal (owed_quick_ns (&automatic, 0, 6 * MS), 0);
  for (unsigned i = 0; i < sizeof times / sizeof times[0]; i++)
    for (unsigned j = 0; j < 2; j++) {
      const struct hedge_policy *p = j ? &fixed : &automatic;

      for (uint64_t late = 0; late <= 12 * MS; late += 6 * MS)
        if (times[i] < owed_quick_ns (p, LOOP_NS, late)) {
          assert_false (owed_is_long (p, LOOP_NS, late, times[i]));
          assert_false (late > 0 && times[i] > late);
        }
    }
}

/* Threads read the clock in another order than they come. */
static void
test_older_time (void **state)
{
  struct owed o = { 0 };
  unsigned group[2];

  owed_end (&o, owed_begin (&o, 10 * MS, 0), 0);
  group[0] = owed_begin (&o, 5 * MS, 0);
  group[1] = owed_begin (&o, 4 * MS, 0);
  assert_int_equal (owed_age (&o, 9 * MS), 0);
  assert_int_equal (owed_age (&o, 11 * MS), MS);
  for (unsigned i = 0; i < 2; i++)
    owed_end (&o, group[i], 0);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_age),
    cmocka_unit_test (test_together),
    cmocka_unit_test (test_stream),
    cmocka_unit_test (test_others),
    cmocka_unit_test (test_long),
    cmocka_unit_test (test_quick),
    cmocka_unit_test (test_older_time),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
