/* gpuraid: tests: an older copy of a member is told from the member
 * (array/membership/older-copy.h), and a member that is one never counts as
 * one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "array/membership/older-copy.h"
#include "tests/array/membership/membership-scenario.h"

/* Save this step on one member, in nr of its copies. */
static void
save_on (unsigned i, uint32_t step, unsigned nr)
{
  static const enum sb_copy order[] = { SB_A2, SB_B2 };

  for (unsigned c = 0; c < nr; c++) {
    struct superblock *sb = &disk[i].sb[order[c]];

    for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++)
      sb->device[dev].step = ms.device[dev].step;
    sb->device[i].step = step;
  }
}

static void
save (unsigned mask, uint32_t step)
{
  for (unsigned i = 0; i < MEMBERS_MAX; i++)
    if (mask >> i & 1)
      save_on (i, step, 2);
  for (unsigned i = 0; i < MEMBERS_MAX; i++)
    if (mask >> i & 1)
      membership_set_step (&ms, i, &ms.device[i].uuid, step);
}

/* A session of all, and two steps. */
static void
begin (unsigned k, unsigned m)
{
  create (k, m);
  start (first_members (k + m), DEGRADED_ALLOW);
  finish ();
  save (first_members (k + m), 1);
  save (first_members (k + m), 2);
}

static void
test_told (void **state)
{
  struct disk copy;

  begin (2, 2);
  copy = disk[1];
  save (0xf, 3);
  save (0xf, 3);                /* tells */
  assert_true (opens (0xf));
  assert_false (found[1].older);
  disk[1] = copy;
  for (enum degraded_policy p = DEGRADED_ALLOW; p <= DEGRADED_FORCE; p++) {
    decide (0xf, p);
    if (p == DEGRADED_REFUSE)
      continue;
    assert_true (decision.open);
    assert_true (found[1].older);
    assert_int_equal (found[1].state, FOUND_STALE);
    assert_false (found[1].covered);
    assert_int_equal (decision.active[1], -1);
    assert_int_equal (decision.sb.device[1].step, 3);
    assert_non_null (strstr (decision.notice,
                             "d1: an older copy of the member"));
  }
  start (0xf, DEGRADED_ALLOW);  /* it is brought up to date, and counts */
  finish ();
  assert_int_equal (ms.device[1].state, DEVICE_REBUILDING);
  assert_false (ms.device[1].by_bitmap);
}

/* As the server does: a record is written to a member with its own step. */
static void
propose (uint32_t step)
{
  give (ALL);
  for (unsigned i = 0; i < MEMBERS_MAX; i++)
    disk[i].sb[SB_A1].device[i].step = disk[i].sb[SB_B1].device[i].step = step;
}

/* An opening finds the copy and crashes in its record: it stays a copy. */
static void
test_proposed (void **state)
{
  for (unsigned accepted = 0; accepted < 0x10; accepted++) {
    struct disk copy;

    if (accepted & 2)
      continue;
    begin (2, 2);
    copy = disk[1];
    save (0xf, 3);
    save (0xf, 3);
    disk[1] = copy;
    start (0xf, DEGRADED_ALLOW);
    propose (3);
    membership_proposed (&ms, &no_device);
    give (accepted);
    assert_true (opens (0xf));
    assert_true (found[1].older);
    assert_int_not_equal (found[1].state, FOUND_CURRENT);
    assert_false (found[1].covered);
  }
}

/* A step that was only proposed is not the member's. */
static void
test_only_proposed (void **state)
{
  begin (2, 2);
  start (0xf, DEGRADED_ALLOW);
  propose (3);
  assert_true (opens (0xf));
  for (unsigned i = 0; i < 4; i++)
    assert_false (found[i].older);
}

/* The table of a record that is known by name only comes from what followed it,
 * as proposed to some member: with its step there.  One member is lost.
 */
static void
test_proposed_source (void **state)
{
  begin (2, 2);
  save_on (0, 3, 2);            /* and the server is killed */
  start (0xf, DEGRADED_ALLOW);
  propose (3);
  membership_proposed (&ms, &no_device);
  give (1);                     /* only this one accepts: killed again */
  disk[0].sb[SB_A2].device[0].step = disk[0].sb[SB_B2].device[0].step = 3;
  start (0xf, DEGRADED_ALLOW);
  give (2);                     /* the next is proposed to one, likewise */
  disk[1].sb[SB_A1].device[1].step = disk[1].sb[SB_B1].device[1].step = 3;
  assert_true (opens (0xe));
  for (unsigned i = 0; i < 3; i++)
    assert_false (found[i].older);
}

/* A crash came between the copies of a save.  Others may know of the step by
 * the next crash, so it stays in one of them.
 */
static void
test_first_copy (void **state)
{
  begin (2, 2);
  save_on (1, 3, 1);
  members_find (disk, 0xf, found);
  assert_int_equal (found_first_copy (&found[1], true), SB_B2);
  assert_int_equal (found_first_copy (&found[0], true), SB_A2);
  disk[1].sb[SB_B2].device[1].step = 4;
  members_find (disk, 0xf, found);
  assert_int_equal (found_first_copy (&found[1], true), SB_A2);
}

/* Too few are left without it. */
static void
test_needed (void **state)
{
  struct disk copy;

  begin (1, 1);
  copy = disk[1];
  save (3, 3);
  save (3, 3);
  disk[1] = copy;
  assert_false (opens (3));
  assert_non_null (strstr (decision.why, "d1: an older copy of the member"));
  decide (3, DEGRADED_FORCE);
  assert_true (decision.open);
  assert_int_equal (decision.nr_slots, 1);
}

/* A crash after each copy of a save, of any members: none is older. */
static void
test_crash_in_save (void **state)
{
  for (unsigned mask = 0; mask < 0x10; mask++)
    for (unsigned i = 0; i < 4; i++)
      for (unsigned nr = 0; nr <= 2; nr++) {
        begin (2, 2);
        for (unsigned j = 0; j < 4; j++)
          if (mask >> j & 1)
            save_on (j, 3, 2);
        save_on (i, 3, nr);
        assert_true (opens (0xf));
        assert_int_equal (decision.nr_slots, 4);
        for (unsigned j = 0; j < 4; j++)
          assert_false (found[j].older);
      }
}

/* A crash in a save left a step in one copy.  The next opening crashes, too,
 * and that copy rots.
 */
static void
test_one_copy (void **state)
{
  begin (2, 2);
  save_on (0, 3, 1);
  start (0xf, DEGRADED_ALLOW);
  give (ALL);
  disk[0].result[SB_A2] = SB_CORRUPT;
  assert_true (opens (0xf));
  assert_false (found[0].older);
  assert_int_equal (found[0].state, FOUND_CURRENT);
}

/* One of its copies is damaged: the others say its step. */
static void
test_damaged (void **state)
{
  for (unsigned c = 0; c < SB_NR_COPIES; c++) {
    begin (2, 2);
    save (0xf, 3);
    disk[1].result[c] = SB_CORRUPT;
    assert_true (opens (0xf));
    assert_int_equal (found[1].state, FOUND_CURRENT);
  }
}

/* It left in this session: what the table knows then stays. */
static void
test_left (void **state)
{
  const struct device_set one = set_of (2);
  struct disk copy, last;

  begin (2, 2);
  copy = disk[1];
  save (0xf, 3);
  last = disk[1];
  membership_fail (&ms, &one);
  finish ();
  members_find (&copy, 1, found);
  assert_int_equal (membership_meet (&ms, found, &identity, why), 0);
  assert_true (found[0].older);
  assert_false (found[0].covered);
  members_find (&last, 1, found);
  assert_int_equal (membership_meet (&ms, found, &identity, why), 0);
  assert_false (found[0].older);
  assert_true (found[0].covered);
  /* In the next session too. */
  disk[1] = copy;
  start (0xf, DEGRADED_ALLOW);
  assert_int_equal (found[1].state, FOUND_FAILED);
  assert_false (found[1].covered);
  finish ();
  assert_int_equal (ms.device[1].step, 3);
}

/* What was rebuilt below the cursor, and written since, is not on it. */
static void
test_target (void **state)
{
  struct disk copy;

  begin (2, 1);
  add_target (3, 0);
  membership_set_cursor (&ms, 3, false, 4096);
  save (0xf, 3);
  for (unsigned i = 0; i < 4; i++)
    for (unsigned c = 0; c < SB_NR_COPIES; c++)
      disk[i].sb[c].device[3].cursor = 4096;
  copy = disk[3];
  save (0xf, 4);
  save (0xf, 4);
  assert_true (opens (0xf));
  assert_int_equal (found[3].cursor, 4096);
  disk[3] = copy;
  assert_true (opens (0xf));
  assert_int_equal (found[3].state, FOUND_TARGET);
  assert_int_equal (found[3].cursor, 0);
}

/* Arrays of versions that did not know it. */
static void
test_unknown (void **state)
{
  create (2, 2);
  start (0xf, DEGRADED_ALLOW);
  finish ();
  assert_true (opens (0xf));
  for (unsigned i = 0; i < 4; i++) {
    assert_int_equal (older_copy_step (&found[i]), 0);
    assert_false (found[i].older);
  }
}

/* What a member knows that missed a session does not count: another may have
 * been rebuilt since, by a session that did not know of that step.
 */
static void
test_stale_knows_nothing (void **state)
{
  begin (2, 2);
  start (7, DEGRADED_ALLOW);
  finish ();
  disk[3].sb[SB_A2].device[1].step = 9;
  assert_true (opens (0xf));
  assert_int_equal (found[3].state, FOUND_STALE);
  assert_false (found[1].older);
  assert_int_equal (decision.nr_slots, 3);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_told),
    cmocka_unit_test (test_proposed),
    cmocka_unit_test (test_only_proposed),
    cmocka_unit_test (test_proposed_source),
    cmocka_unit_test (test_first_copy),
    cmocka_unit_test (test_needed),
    cmocka_unit_test (test_crash_in_save),
    cmocka_unit_test (test_one_copy),
    cmocka_unit_test (test_damaged),
    cmocka_unit_test (test_left),
    cmocka_unit_test (test_target),
    cmocka_unit_test (test_unknown),
    cmocka_unit_test (test_stale_knows_nothing),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
