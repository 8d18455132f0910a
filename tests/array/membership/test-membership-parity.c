/* gpuraid: one more parity member enters the record, and is taken back: the
 * traces that broke simpler rules (tests/model/reshape/).
 *
 * Disk k + m is NEW.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "array/plan/code.h"
#include "common/bits.h"
#include "tests/array/membership/membership-scenario.h"

static unsigned nr;             /* slots before */

static uint32_t
crc_of (unsigned m)
{
  return code_parity_crc (CODE_RS, 8, identity.g.k, m);
}

/* An array that is open for writing. */
static void
open_all (unsigned k, unsigned m)
{
  nr = k + m;
  create (k, m);
  start (first_members (nr), DEGRADED_ALLOW);
  finish ();
}

static int
add_disk (unsigned i)
{
  const uuid_bytes uuid = members_uuid (i);
  unsigned dev;

  return membership_begin_parity (&ms, &uuid, crc_of (identity.g.m + 1), &dev,
                                  why);
}

static int
add (void)
{
  return add_disk (nr);
}

static void
open_and_add (unsigned k, unsigned m)
{
  open_all (k, m);
  assert_int_equal (add (), 0);
  finish ();
}

static int
cancel (void)
{
  return membership_begin_cancel (&ms, crc_of (identity.g.m), why);
}

static void
activate (unsigned i)
{
  const struct device_set devs = set_of (1u << i);

  assert_int_equal (membership_begin_activate (&ms, &devs, why), 0);
}

/* What a running array is: with the slot, or without. */
static void
check_slots (bool more, bool first)
{
  const struct ballot_set *self = &ms.cur.self;

  assert_int_equal (self->k + self->m, nr + more);
  assert_int_equal (self->first, first);
  assert_int_equal (ms.shape.m, self->m);
  assert_int_equal (ms.shape.fixed, more ? BIT (nr) : 0);
  assert_int_equal (ms.shape.first, first);
  assert_int_equal (ms.shape.matrix_crc, crc_of (self->m));
  for (unsigned dev = 0; dev < SB_MAX_DEVICES && !more; dev++)
    assert_false (ms.device[dev].state != DEVICE_NONE &&
                  ms.device[dev].slot == nr);
}

/* All disks open, with that. */
static void
check_opens (bool more, bool first)
{
  assert_true (opens (first_members (nr)));
  assert_int_equal (decision.sb.g.k + decision.sb.g.m, nr + more);
  assert_int_equal (decision.sb.g.fixed, more ? BIT (nr) : 0);
  assert_int_equal (decision.sb.record.self.first, first);
  assert_int_equal (decision.sb.matrix_crc, crc_of (decision.sb.g.m));
}

/* From the beginning to the end, opened at each step. */
static void
test_whole_way (void **state)
{
  open_and_add (4, 2);
  check_slots (true, true);
  check_opens (true, true);
  assert_false (decision.degraded);
  decide (first_members (nr), DEGRADED_REFUSE);
  assert_true (decision.open);
  decide (first_members (nr + 1), DEGRADED_ALLOW);
  assert_true (decision.target[nr] != -1);
  /* m is the old one until NEW is active. */
  assert_true (opens (0xf));
  assert_false (opens (0x47));

  activate (nr);
  finish ();
  check_slots (true, false);
  check_opens (true, false);
  assert_true (decision.degraded);
  assert_true (opens (0x4f));
  /* Two more records, and none has the old m. */
  for (unsigned i = 0; i < 2; i++) {
    start (first_members (nr + 1), DEGRADED_ALLOW);
    finish ();
  }
  assert_int_equal (ms.cur.base.m, 3);
  assert_int_equal (ms.cur.parent.m, 3);
  assert_true (opens (0xf));
  assert_true (opens (0x71));
  assert_false (opens (0x7));
}

static void
test_take_back (void **state)
{
  open_all (4, 2);
  assert_int_equal (cancel (), -1);
  assert_int_equal (add (), 0);
  finish ();
  assert_int_equal (add (), -1);
  assert_int_equal (cancel (), 0);
  finish ();
  check_slots (false, false);
  check_opens (false, false);
  decide (first_members (nr + 1), DEGRADED_ALLOW);
  assert_true (decision.open);
  assert_int_equal (found[nr].state, FOUND_UNLISTED);
  for (unsigned i = 0; i < 2; i++) {
    start (first_members (nr), DEGRADED_ALLOW);
    finish ();
  }
  assert_false (sb_is_reshaped (&disk[0].sb[SB_A2]));
  assert_int_equal (disk[0].sb[SB_A2].incompat, 0);

  /* Another disk can be NEW then, and once one was active it stays. */
  disk[nr].result[SB_A1] = disk[nr].result[SB_A2] = disk[nr].result[SB_B1] =
    disk[nr].result[SB_B2] = SB_BLANK;
  assert_int_equal (add (), 0);
  finish ();
  activate (nr);
  finish ();
  assert_int_equal (cancel (), -1);
}

/* Not while a member is lost, rebuilt or replaced. */
static void
test_when (void **state)
{
  open_all (4, 2);
  add_target (nr, 1);
  assert_int_equal (add_disk (nr + 1), -1);
  assert_non_null (strstr (why, "rebuilt"));
  activate (nr);
  finish ();
  assert_int_equal (add_disk (nr + 1), -1);
  assert_non_null (strstr (why, "replaced"));
  begin_remove (2);
  finish ();
  begin_remove (1);
  finish ();
  assert_int_equal (add_disk (nr + 1), -1);
  assert_non_null (strstr (why, "lost"));
}

/* counts-at-once: where k = m + 1 the second half of the quorum would count
 * the slot.
 */
static void
test_counts_at_once (void **state)
{
  open_all (2, 1);
  assert_int_equal (add (), 0);
  accept_and_crash (1);
  assert_true (opens (0x6));
  assert_true (opens (0x3));
}

/* found-new: nor does NEW count among those found. */
static void
test_found_new (void **state)
{
  open_and_add (2, 2);
  begin_remove (1);
  finish ();
  begin_remove (0);
  finish ();
  assert_false (opens (0xc));
  assert_false (opens (0x1c));
  assert_true (opens (0xe));
}

/* drop-m, drop-lists, drop-fixed: a member fails while the slot is proposed. */
static void
test_fails_while_proposed (void **state)
{
  struct device_set two = set_of (4), new = set_of (8);

  for (unsigned accepted = 0; accepted < 2; accepted++) {
    open_all (2, 1);
    assert_int_equal (add (), 0);
    give (0x3);
    if (accepted) {
      give (0x4);
      assert_int_equal (membership_proposed (&ms, &no_device),
                        MEMBERSHIP_ACCEPT);
      give (0x3);
      assert_int_equal (membership_accepted (&ms, &two), MEMBERSHIP_PROPOSE);
    }
    else
      assert_int_equal (membership_proposed (&ms, &two), MEMBERSHIP_PROPOSE);
    finish ();
    assert_int_equal (ms.cur.self.active.w[0], 3);
    check_slots (accepted, accepted);
    assert_int_equal (ms.device[3].state, accepted ? DEVICE_REBUILDING :
                      DEVICE_NONE);
  }
  /* NEW itself. */
  open_all (2, 1);
  assert_int_equal (add (), 0);
  membership_fail (&ms, &new);
  assert_int_equal (membership_proposed (&ms, &no_device), MEMBERSHIP_PROPOSE);
  finish ();
  check_slots (false, false);
}

/* It is taken back, and a member fails meanwhile. */
static void
test_fails_while_taken_back (void **state)
{
  struct device_set two = set_of (4);

  for (unsigned accepted = 0; accepted < 2; accepted++) {
    open_and_add (2, 1);
    assert_int_equal (cancel (), 0);
    if (accepted) {
      give (ALL);
      membership_proposed (&ms, &no_device);
      assert_int_equal (membership_accepted (&ms, &two), MEMBERSHIP_PROPOSE);
    }
    else
      assert_int_equal (membership_proposed (&ms, &two), MEMBERSHIP_PROPOSE);
    finish ();
    check_slots (!accepted, !accepted);
    assert_int_equal (ms.device[3].state, accepted ? DEVICE_NONE :
                      DEVICE_REBUILDING);
  }
}

/* bit-cleared: the record with NEW active is dropped. */
static void
test_activation_dropped (void **state)
{
  struct device_set two = set_of (4);

  open_and_add (2, 1);
  activate (3);
  assert_false (ms.next.self.first);
  assert_int_equal (membership_proposed (&ms, &two), MEMBERSHIP_PROPOSE);
  finish ();
  check_slots (true, true);
  assert_int_equal (cancel (), 0);
}

/* no-bit, bit-forgotten: NEW was active, and failed. */
static void
test_failed_later (void **state)
{
  open_and_add (1, 1);
  activate (2);
  finish ();
  begin_remove (4);
  finish ();
  check_slots (true, false);
  assert_int_equal (cancel (), -1);
  start (3, DEGRADED_ALLOW);
  finish ();
  check_slots (true, false);
  assert_int_equal (cancel (), -1);
}

/* NEW fails, or is not there, before it was active: taken back later. */
static void
test_new_lost (void **state)
{
  struct device_set new = set_of (4);

  open_and_add (1, 1);
  start (3, DEGRADED_ALLOW);
  finish ();
  check_slots (true, true);
  assert_int_equal (ms.device[2].state, DEVICE_MISSING);
  start (7, DEGRADED_ALLOW);
  finish ();
  assert_int_equal (ms.device[2].state, DEVICE_REBUILDING);
  membership_fail (&ms, &new);
  finish ();
  assert_int_equal (ms.device[2].state, DEVICE_FAILED);
  check_slots (true, true);
  add_target (3, nr);                   /* replaced */
  assert_int_equal (cancel (), 0);
  finish ();
  check_slots (false, false);
}

/* any-slot: NEW was taken back, but has its own copies of before. */
static void
test_any_slot (void **state)
{
  open_and_add (1, 1);
  assert_int_equal (cancel (), 0);
  finish ();
  start (7, DEGRADED_ALLOW);
  assert_int_equal (found[2].state, FOUND_UNLISTED);
  finish ();
  check_slots (false, false);
}

/* own-m: one member alone has accepted the record that adds the slot. */
static void
test_own_m (void **state)
{
  open_all (2, 1);
  assert_int_equal (add (), 0);
  accept_and_crash (4);
  assert_true (opens (7));
  assert_int_equal (decision.sb.g.m, 2);
  assert_true (opens (3));
  assert_int_equal (decision.sb.g.m, 1);
  start (7, DEGRADED_ALLOW);
  finish ();
  check_slots (true, true);
}

/* Proposals of a session after R, which adds the slot, are found; R was
 * accepted by member 2 alone, and counts.  Made to be of this m.
 */
static void
propose_after (unsigned m)
{
  open_all (2, 1);
  assert_int_equal (add (), 0);
  accept_and_crash (4);
  start (7, DEGRADED_ALLOW);
  give (3);                             /* and a crash */
  for (unsigned i = 0; i < 2; i++)
    for (enum sb_copy c = SB_A1; c < SB_NR_COPIES; c += SB_B1 - SB_A1) {
      struct superblock *sb = &disk[i].sb[c];
      struct sb_shape shape;

      sb_get_shape (sb, &shape);
      shape.m = m;
      shape.fixed = LOW_BITS (2 + m) & ~LOW_BITS (3);
      shape.first = m > 1;
      shape.matrix_crc = crc_of (m);
      sb_set_shape (sb, &shape);
      if (m == 3)
        sb->device[4] = (struct device) {
          .uuid = members_uuid (4), .state = DEVICE_REBUILDING, .slot = 4,
        };
    }
}

/* The winner is known by its name alone: its m says what the slots were. */
static void
test_by_name (void **state)
{
  for (unsigned m = 1; m < 4; m++) {
    propose_after (m);
    assert_true (opens (3));
    assert_int_equal (decision.sb.g.m, 2);
    assert_int_equal (decision.sb.record.self.m, 2);
    assert_int_equal (decision.sb.g.fixed, BIT (3));
    assert_true (decision.sb.record.self.first);
    assert_int_equal (decision.sb.matrix_crc, crc_of (2));
    assert_int_equal (decision.sb.device[4].state, DEVICE_NONE);
  }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_whole_way),
    cmocka_unit_test (test_take_back),
    cmocka_unit_test (test_when),
    cmocka_unit_test (test_counts_at_once),
    cmocka_unit_test (test_found_new),
    cmocka_unit_test (test_fails_while_proposed),
    cmocka_unit_test (test_fails_while_taken_back),
    cmocka_unit_test (test_activation_dropped),
    cmocka_unit_test (test_failed_later),
    cmocka_unit_test (test_new_lost),
    cmocka_unit_test (test_any_slot),
    cmocka_unit_test (test_own_m),
    cmocka_unit_test (test_by_name),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
