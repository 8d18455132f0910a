/* gpuraid: changes of membership: what fails while a record is on its way,
 * and what becomes of targets and of members that come back.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "tests/array/membership/membership-scenario.h"

/* ---- a change on its way -------------------------------------------- */

/* A target that can't be told is out, and so is a member that fails
 * meanwhile.
 */
static void
test_fail_while_told (void **state)
{
  struct device_set one = set_of (2), four = set_of (16);
  uuid_bytes uuid = members_uuid (4);
  unsigned dev;

  create (2, 2);
  start (0x7, DEGRADED_ALLOW);
  finish ();
  assert_int_equal (membership_begin_target (&ms, &uuid, 3, false, &dev, why),
                    0);
  give (ALL);
  membership_proposed (&ms, &no_device);
  give (ALL);
  assert_int_equal (disk[4].result[SB_A1], SB_BLANK);
  assert_int_equal (membership_accepted (&ms, &no_device), MEMBERSHIP_TELL);
  assert_true (ms.in_force);
  assert_int_equal (dev, 4);
  membership_fail (&ms, &one);
  assert_int_equal (membership_told (&ms, &four), MEMBERSHIP_PROPOSE);
  assert_int_equal (ms.next.self.active.w[0], 0x5);
  assert_int_equal (ms.next.base.ballot.epoch, 3);
  assert_int_equal (ms.next_device[4].state, DEVICE_FAILED);
  finish ();
}

/* A record only adds or only removes: where a member fails while another
 * is added, the addition waits.
 */
static void
test_addition_waits (void **state)
{
  struct device_set zero = set_of (1), five = set_of (8);

  create (2, 1);
  start (7, DEGRADED_ALLOW);
  finish ();
  begin_add (3, 2);
  give (ALL);
  assert_int_equal (membership_proposed (&ms, &zero), MEMBERSHIP_PROPOSE);
  assert_int_equal (ms.next.self.active.w[0], 0x6);
  assert_int_equal (ms.next_device[3].state, DEVICE_REBUILDING);
  assert_int_equal (ms.next_device[0].state, DEVICE_FAILED);
  finish ();
  /* The added one itself fails: nothing is added. */
  assert_int_equal (membership_begin_activate (&ms, &five, why), 0);
  assert_int_equal (membership_proposed (&ms, &five), MEMBERSHIP_PROPOSE);
  assert_int_equal (ms.next.self.active.w[0], 0x6);
  finish ();
  /* Fewer than k: stop. */
  membership_fail (&ms, &(struct device_set) {{ 4, 0 }});
  assert_int_equal (ms.phase, MEMBERSHIP_STOPPED);
  assert_int_equal (membership_begin_remove (&ms, &zero, DEVICE_FAILED, why),
                    -1);
}

/* What failed meanwhile is dealt with when the phase ends. */
static void
test_fail_meanwhile (void **state)
{
  struct device_set one = set_of (2), two = set_of (4);

  create (2, 2);
  start (0xf, DEGRADED_ALLOW);
  membership_fail (&ms, &one);
  give (ALL);
  assert_int_equal (membership_proposed (&ms, &no_device), MEMBERSHIP_PROPOSE);
  assert_int_equal (ms.next.self.active.w[0], 0xd);
  assert_int_equal (ms.next.parent.ballot.epoch, 1);
  give (ALL);
  membership_proposed (&ms, &no_device);
  membership_fail (&ms, &two);
  give (0x9);
  assert_int_equal (membership_accepted (&ms, &no_device), MEMBERSHIP_PROPOSE);
  assert_int_equal (ms.next.self.active.w[0], 0x9);
  assert_int_equal (ms.next.parent.ballot.epoch, 3);
  assert_int_equal (ms.next.base.ballot.epoch, 1);
  finish ();
}

/* ---- two active members of a slot --------------------------------------- */

/* 0 of 2+1 is replaced by 3. */
static void
make_two (void)
{
  create (2, 1);
  start (7, DEGRADED_ALLOW);
  finish ();
  begin_add (3, 0);
}

/* Of these members, 3 is read and 0 goes. */
static void
expect_three_stays (unsigned mask)
{
  assert_true (opens (mask));
  assert_string_equal (found[decision.active[0]].name, "d3");
  assert_string_equal (found[decision.other[0]].name, "d0");
  assert_true (decision.sb.device[0].replaced);
  assert_false (decision.sb.device[3].replaced);
}

/* Whatever accepted it, and however many sessions have it as the parent. */
static void
test_replaced_goes (void **state)
{
  make_two ();
  assert_true (ms.next_device[0].replaced);
  assert_false (ms.next_device[1].replaced || ms.next_device[3].replaced);
  give (ALL);
  membership_proposed (&ms, &no_device);
  for (unsigned i = 0; i < 4; i++) {
    give (1u << i);
    expect_three_stays (0xf);
  }
  for (unsigned i = 0; i < 3; i++) {
    expect_three_stays (0xf);
    expect_three_stays (0xd);
    start (i == 1 ? 0xd : 0xf, DEGRADED_ALLOW);
    assert_true (ms.next_device[0].replaced);
    finish ();
  }
  begin_remove (1);
  assert_false (ms.next_device[0].replaced);
  finish ();
}

/* Where the new one is gone the old one is as any other. */
static void
test_replaced_stays (void **state)
{
  struct device_set one = set_of (2), three = set_of (8);

  make_two ();
  give (ALL);
  assert_int_equal (membership_proposed (&ms, &three), MEMBERSHIP_PROPOSE);
  assert_int_equal (ms.next.self.active.w[0], 0x7);
  assert_false (ms.next_device[0].replaced);
  finish ();

  /* Another fails: the addition waits. */
  make_two ();
  give (ALL);
  assert_int_equal (membership_proposed (&ms, &one), MEMBERSHIP_PROPOSE);
  assert_int_equal (ms.next.self.active.w[0], 0x5);
  assert_false (ms.next_device[0].replaced);
  finish ();

  make_two ();
  finish ();
  assert_true (ms.device[0].replaced);
  membership_fail (&ms, &three);
  assert_false (ms.next_device[0].replaced);
  finish ();

  make_two ();
  finish ();
  begin_remove (8);
  assert_false (ms.next_device[0].replaced);

  make_two ();
  finish ();
  start (0x7, DEGRADED_ALLOW);
  assert_int_equal (ms.next_device[3].state, DEVICE_MISSING);
  assert_false (ms.next_device[0].replaced);
}

/* The early version had no bit: the parent says it, and the next record
 * says it as well.
 */
static void
test_replaced_unsaid (void **state)
{
  make_two ();
  finish ();
  for (unsigned i = 0; i < 4; i++)
    for (unsigned c = 0; c < SB_NR_COPIES; c++)
      disk[i].sb[c].device[0].replaced = false;
  expect_three_stays (0xf);
  start (0xf, DEGRADED_ALLOW);
  assert_true (ms.next_device[0].replaced);
  finish ();
  expect_three_stays (0xf);
}

/* The record with both is known by name only, from the one without the old
 * member, or from one that did not get as far as adding the new one.
 */
static void
test_replaced_by_name (void **state)
{
  make_two ();
  finish ();
  begin_remove (1);
  give (ALL);                           /* a crash, and rot */
  for (unsigned i = 1; i < 4; i++)
    disk[i].result[SB_A2] = disk[i].result[SB_B2] = SB_CORRUPT;
  decide (0xe, DEGRADED_ALLOW);
  assert_int_equal (decision.sb.record.self.active.w[0], 0xf);
  assert_true (decision.sb.device[0].replaced);

  make_two ();
  give (ALL);
  for (unsigned i = 0; i < 4; i++)
    disk[i].result[SB_A2] = disk[i].result[SB_B2] = SB_CORRUPT;
  decide (0xf, DEGRADED_ALLOW);
  assert_int_equal (decision.sb.record.self.active.w[0], 0x7);
  assert_false (decision.sb.device[0].replaced);
}

/* ---- targets and members that come back ------------------------------- */

static void
test_cursor (void **state)
{
  struct device_set zero = set_of (1);

  create (2, 1);
  start (7, DEGRADED_ALLOW);
  finish ();
  membership_fail (&ms, &zero);
  finish ();
  add_target (3, 0);
  membership_set_cursor (&ms, 3, true, 65536);
  for (unsigned i = 1; i < 4; i++)
    members_write (&disk[i], &ms, i, &identity, true, i == 2 ? 2 : 4);
  assert_true (opens (0xe));
  assert_int_equal (decision.target[0], 2);
  assert_int_equal (found[2].state, FOUND_TARGET);
  assert_int_equal (found[2].cursor, 0);        /* 2 is behind */
  members_write (&disk[2], &ms, 2, &identity, true, 4);
  assert_true (opens (0xe));
  assert_int_equal (found[2].cursor, 65536);
  /* A record that it does not hold: from the start. */
  start (0x6, DEGRADED_ALLOW);
  finish ();
  assert_true (opens (0xe));
  assert_int_equal (found[2].cursor, 0);
  start (0xe, DEGRADED_ALLOW);
  assert_int_equal (ms.next_device[3].cursor, 0);
}

/* By the bitmap only while it holds the winner. */
static void
test_target_by_bitmap (void **state)
{
  create (2, 1);
  start (6, DEGRADED_ALLOW);
  finish ();
  start (7, DEGRADED_ALLOW);
  assert_true (ms.next_device[0].by_bitmap);
  finish ();
  assert_true (opens (7));
  assert_int_equal (found[0].state, FOUND_TARGET);
  assert_true (found[0].covered);
  start (6, DEGRADED_ALLOW);
  finish ();
  assert_true (opens (7));
  assert_int_equal (found[0].state, FOUND_STALE);
  assert_false (found[0].covered);
}

/* The winner is known by name only, from a proposal that adds a member:
 * that one is a target still.
 */
static void
test_named_only (void **state)
{
  create (1, 2);
  start (7, DEGRADED_ALLOW);
  finish ();
  begin_add (3, 0);
  give (0x8);                           /* a crash, and rot */
  disk[3].result[SB_A2] = disk[3].result[SB_B2] = SB_CORRUPT;
  assert_false (opens (0x8));
  assert_int_equal (decision.sb.record.self.ballot.epoch, 3);
  assert_int_equal (decision.sb.record.self.active.w[0], 7);
  assert_true (decision.in_force);
  assert_int_equal (decision.sb.device[3].state, DEVICE_REBUILDING);
  assert_int_equal (found[0].state, FOUND_TARGET);
  assert_false (found[0].covered);
}

static void
test_meet (void **state)
{
  struct device_set zero = set_of (1);
  unsigned dev;

  create (2, 2);
  start (0xf, DEGRADED_ALLOW);
  finish ();
  members_find (disk, 1, found);
  assert_int_equal (membership_meet (&ms, found, &identity, why), -1);
  assert_non_null (strstr (why, "in use"));
  membership_fail (&ms, &zero);
  finish ();
  why[0] = '\0';
  assert_int_equal (membership_meet (&ms, found, &identity, why), 0);
  assert_true (found[0].covered);
  assert_int_equal (found[0].state, FOUND_FAILED);
  assert_int_equal (membership_begin_target (&ms, &found[0].sb[0].member_uuid,
                                             0, true, &dev, why), 0);
  assert_int_equal (dev, 0);
  finish ();
  assert_int_equal (ms.device[0].state, DEVICE_REBUILDING);
}

/* More records than a superblock can have seen. */
static void
test_long_away (void **state)
{
  create (2, 1);
  for (unsigned i = 0; i < 3 * SB_MAX_SEEN; i++) {
    start (6, DEGRADED_ALLOW);
    finish ();
    assert_true (opens (7));
    assert_int_equal (found[0].state, FOUND_STALE);
    assert_int_equal (found[0].covered, i < SB_MAX_SEEN);
  }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_fail_while_told),
    cmocka_unit_test (test_addition_waits),
    cmocka_unit_test (test_fail_meanwhile),
    cmocka_unit_test (test_replaced_goes),
    cmocka_unit_test (test_replaced_stays),
    cmocka_unit_test (test_replaced_unsaid),
    cmocka_unit_test (test_replaced_by_name),
    cmocka_unit_test (test_cursor),
    cmocka_unit_test (test_target_by_bitmap),
    cmocka_unit_test (test_named_only),
    cmocka_unit_test (test_meet),
    cmocka_unit_test (test_long_away),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
