/* gpuraid: the traces that broke simpler rules of membership.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/array/membership/membership-scenario.h"

/* Going back behind a record because a member present never accepted it. */
static void
test_no_going_back (void **state)
{
  create (2, 2);
  crash (0x7, 0x6);
  crash (0xb, 0x9);
  assert_false (opens (0x6) && opens (0x9));
  assert_true (opens (0xf));
}

/* Replacing in one record: 0 by 3, and member 1 fails in it. */
static void
test_replace_in_two (void **state)
{
  struct device_set one = set_of (2);

  create (2, 1);
  start (7, DEGRADED_ALLOW);
  finish ();
  begin_add (3, 0);
  assert_int_equal (device_set_count (&ms.next.self.active), 4);
  give (ALL);
  membership_proposed (&ms, &no_device);
  give (0xd);
  assert_int_equal (membership_accepted (&ms, &one), MEMBERSHIP_PROPOSE);
  assert_false (ms.in_force);
  assert_int_equal (ms.next.self.active.w[0], 0xd);
  finish ();
  begin_remove (1);
  finish ();                            /* of 2 and 3 alone */
  assert_false (opens (0x3));
  assert_true (opens (0xc));
  assert_true (opens (0xf));
  assert_int_equal (found[0].state, FOUND_UNLISTED);
  assert_int_equal (found[1].state, FOUND_FAILED);
}

/* Two sessions that do not see each other propose; their epochs may be
 * equal, but none that is accepted is.
 */
static void
test_epochs (void **state)
{
  create (2, 2);
  start (0x7, DEGRADED_ALLOW);
  give (0x1);                           /* and a crash */
  start (0xe, DEGRADED_ALLOW);
  assert_int_equal (ms.next.self.ballot.epoch, 2);
  accept_and_crash (0x8);
  assert_true (opens (0xf));
  start (0xf, DEGRADED_ALLOW);
  assert_int_equal (ms.next.self.ballot.epoch, 3);
  finish ();
  assert_true (opens (0xf));
}

/* A target takes newer proposals than the winner, and yet an old image
 * that was taken for one is not current.
 */
static void
test_old_image (void **state)
{
  struct disk image;

  create (2, 2);
  image = disk[0];
  start (0x7, DEGRADED_ALLOW);
  finish ();                            /* writes; then the old image */
  disk[0] = image;
  start (0x7, DEGRADED_ALLOW);
  assert_int_equal (found[0].state, FOUND_STALE);
  give (ALL);                           /* and a crash */
  assert_true (opens (0xf));
  assert_int_equal (found[0].state, FOUND_STALE);
}

/* It does not know what was missed while all were there. */
static void
test_old_image_is_not_covered (void **state)
{
  struct disk image;

  create (2, 1);
  start (7, DEGRADED_ALLOW);
  finish ();
  image = disk[0];
  start (7, DEGRADED_ALLOW);
  finish ();
  disk[0] = image;
  assert_true (opens (7));
  assert_int_equal (found[0].state, FOUND_STALE);
  assert_false (found[0].covered);
}

/* 1+1, 0 and the rebuilt 2: only a spare gets the record that adds 2, and 0 is
 * lost in the next session.  The proposal that 2 got then must not hide that it
 * was to become active.
 */
static void
test_spare_has_no_part (void **state)
{
  struct device_set two = set_of (4);

  create (1, 1);
  start (3, DEGRADED_ALLOW);
  finish ();
  begin_remove (2);
  finish ();
  add_target (2, 1);
  add_target (3, SLOT_NONE);
  assert_int_equal (membership_begin_activate (&ms, &two, why), 0);
  accept_and_crash (0x8);
  start (0x5, DEGRADED_ALLOW);
  give (0x4);                           /* and a crash */
  assert_true (opens (0xd));
  assert_true (opens (0xf));
}

/* 2+3, 0 to 2 and the rebuilt 5 and 6: one member that the next session
 * misses has accepted the record that adds both.
 */
static void
test_target_has_no_part (void **state)
{
  struct device_set both = set_of (0x60);

  create (2, 3);
  start (0x1f, DEGRADED_ALLOW);
  finish ();
  begin_remove (0x18);
  finish ();
  add_target (5, 3);
  add_target (6, 4);
  assert_int_equal (membership_begin_activate (&ms, &both, why), 0);
  accept_and_crash (0x4);
  start (0x63, DEGRADED_ALLOW);
  give (0x60);                          /* and a crash */
  assert_true (opens (0x67));
  assert_true (opens (0x7f));
}

static void
test_torn (void **state)
{
  create (1, 1);
  for (unsigned i = 0; i < 4; i++) {
    start (3, DEGRADED_ALLOW);
    give (ALL);
    membership_proposed (&ms, &no_device);
    members_write (&disk[0], &ms, 0, &identity, true, i % 2 ? 1 : 3);
    assert_true (opens (3));
  }
}

/* 1+1: a crash when one copy of 0 alone has a record that 1 has accepted, and
 * one in the next session, when 1 was proposed another.  Then that copy rots.
 */
static void
test_one_copy (void **state)
{
  create (1, 1);
  start (3, DEGRADED_ALLOW);
  give (ALL);
  membership_proposed (&ms, &no_device);
  give (0x2);
  members_write (&disk[0], &ms, 0, &identity, true, 2);
  start (3, DEGRADED_ALLOW);
  assert_false (decision.in_force);
  give (0x2);                           /* and a crash */
  assert_true (opens (3));
  for (unsigned c = 0; c < SB_NR_COPIES; c++) {
    const enum sb_result result = disk[0].result[c];

    disk[0].result[c] = SB_CORRUPT;
    assert_true (opens (3));
    disk[0].result[c] = result;
  }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_no_going_back),
    cmocka_unit_test (test_replace_in_two),
    cmocka_unit_test (test_epochs),
    cmocka_unit_test (test_old_image),
    cmocka_unit_test (test_old_image_is_not_covered),
    cmocka_unit_test (test_spare_has_no_part),
    cmocka_unit_test (test_target_has_no_part),
    cmocka_unit_test (test_torn),
    cmocka_unit_test (test_one_copy),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
