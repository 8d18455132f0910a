/* gpuraid: what opens and what does not: quorums, and every reason to refuse.
 *
 * run-tests: check=plain,address,thread
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "common/bits.h"
#include "tests/array/membership/membership-scenario.h"

/* ---- quorums -------------------------------------------------------- */

static void
test_missing (void **state)
{
  static const struct { unsigned k, m, may; } sizes[] = {
    { 1, 1, 0 }, { 2, 2, 1 }, { 4, 2, 2 }, { 10, 4, 4 }, { 1, 2, 0 },
    { 2, 1, 1 }, { 3, 1, 1 }, { 8, 3, 3 },
  };

  for (size_t i = 0; i < ARRAY_LEN (sizes); i++) {
    unsigned n = sizes[i].k + sizes[i].m;

    create (sizes[i].k, sizes[i].m);
    assert_true (opens (first_members (n)));
    assert_true (decision.in_force);
    assert_false (decision.degraded);
    assert_string_equal (decision.notice, "");
    for (unsigned gone = 1; gone <= sizes[i].m; gone++)
      assert_int_equal (opens (first_members (n - gone)), gone <= sizes[i].may);
    /* Force needs k and nothing else; even that not fewer. */
    decide (first_members (sizes[i].k), DEGRADED_FORCE);
    assert_true (decision.open);
    if (sizes[i].k > 1) {
      decide (first_members (sizes[i].k - 1), DEGRADED_FORCE);
      assert_false (decision.open);
    }
  }
}

static void
test_text (void **state)
{
  create (1, 1);
  assert_false (opens (2));
  assert_string_equal (decision.why,
                       "too few members: d1 found with current data "
                       "(1), 2 needed; missing: slot 0; add the missing "
                       "members, or use degraded=force if they are lost");
  create (4, 2);
  assert_true (opens (0x1e));
  assert_string_equal (decision.notice, "missing: slots 0, 5");
  decide (0x1e, DEGRADED_REFUSE);
  assert_false (decision.open);
  assert_non_null (strstr (decision.why,
                           "all 6 slots needed with degraded=refuse"));
  decide (0x3f, DEGRADED_REFUSE);
  assert_true (decision.open);
  assert_false (opens (7));
  assert_non_null (strstr (decision.why, "4 slots needed"));
  assert_null (strstr (decision.why, "force"));
  start (0x1f, DEGRADED_ALLOW);
  finish ();
  assert_true (opens (0x3f));
  assert_int_equal (found[5].state, FOUND_STALE);
  assert_true (found[5].covered);
  assert_non_null (strstr (decision.notice, "d5: out of date, brought up"));
}

/* A failure that was recorded does not keep the others from opening. */
static void
test_recorded_failure (void **state)
{
  struct device_set devs = set_of (1);

  create (1, 1);
  start (3, DEGRADED_ALLOW);
  finish ();
  membership_fail (&ms, &devs);
  finish ();
  assert_true (opens (2));
  assert_true (decision.in_force);
  assert_false (opens (1));
  assert_true (opens (3));
  assert_int_equal (found[0].state, FOUND_FAILED);
  start (3, DEGRADED_ALLOW);
  assert_int_equal (ms.next_device[0].state, DEVICE_FAILED);
}

/* ---- reasons to refuse ------------------------------------------------ */

static void
test_branch (void **state)
{
  create (1, 1);
  start (1, DEGRADED_FORCE);
  finish ();
  start (2, DEGRADED_FORCE);
  finish ();
  for (enum degraded_policy p = DEGRADED_ALLOW; p <= DEGRADED_FORCE; p++) {
    decide (3, p);
    assert_false (decision.open);
    assert_non_null (strstr (decision.why, "epoch 2 on d1; epoch 2 on d0"));
  }
  start (1, DEGRADED_ALLOW);
  finish ();
  decide (3, DEGRADED_ALLOW);
  assert_non_null (strstr (decision.why, "epoch 3 on d0; epoch 2 on d1"));
  members_find (disk, 2, found);
  assert_int_equal (membership_meet (&ms, found, &identity, why), -1);
  assert_non_null (strstr (why, "written in two ways"));
  assert_non_null (strstr (why, "--force"));
}

/* Of the side that did not win its newest epoch is told, as gpuraid examine
 * shows it, not the one at which the two parted.
 */
static void
test_branch_epochs (void **state)
{
  create (2, 2);
  start (3, DEGRADED_FORCE);
  finish ();
  start (3, DEGRADED_ALLOW);
  finish ();
  for (unsigned i = 0; i < 3; i++) {
    start (0xc, i ? DEGRADED_ALLOW : DEGRADED_FORCE);
    finish ();
  }
  decide (0xf, DEGRADED_ALLOW);
  assert_false (decision.open);
  assert_non_null (strstr (decision.why, "epoch 4 on d2, d3; epoch 3 on d0, "
                           "d1: leave out"));
  assert_non_null (strstr (decision.why, "replace --force"));
}

static void
set_checksum (enum checksum checksum)
{
  for (unsigned i = 0; i < 3; i++)
    for (unsigned c = 0; c < SB_NR_COPIES; c++)
      disk[i].sb[c].checksum = checksum;
}

/* d0 and d1 went on without d2, and d1 is lost: force goes back to what d0 and
 * d2 both had.  No copy of theirs is then a branch, but d1 is.
 */
static void
test_go_back (void **state)
{
  create (2, 1);
  start (3, DEGRADED_ALLOW);
  finish ();
  assert_false (opens (5));
  assert_non_null (strstr (decision.why, "2 slots needed"));
  assert_non_null (strstr (decision.why, "out of date: d2"));
  assert_non_null (strstr (decision.why, "degraded=force: it goes back to "
                           "epoch 1"));
  decide (5, DEGRADED_FORCE);
  assert_non_null (strstr (decision.notice, "may be lost or wrong"));
  set_checksum (CHECKSUM_CRC32C);
  decide (5, DEGRADED_FORCE);
  assert_true (decision.open);
  assert_false (found[0].behind);
  assert_true (found[1].behind);
  assert_string_equal (decision.notice,
                       "degraded=force: of epoch 2, the newest, too few "
                       "members are there: going back to epoch 1, with d0, d2"
                       "\n"
                       "degraded=force: d2 is behind: in regions that were "
                       "written since then its blocks are lost: check the file "
                       "systems\n"
                       "degraded=force: once this array is open for writing, "
                       "members that went on without these are refused: "
                       "gpuraid replace --force takes them as new ones\n"
                       "missing: slot 1");
  set_checksum (CHECKSUM_NONE);
  start (5, DEGRADED_FORCE);
  accept_and_crash (4);         /* only d2 has accepted it */
  assert_true (opens (5));
  assert_false (opens (7));
  assert_non_null (strstr (decision.why, "written in two ways"));
  start (5, DEGRADED_ALLOW);
  finish ();
  assert_true (opens (5));
  for (enum degraded_policy p = DEGRADED_ALLOW; p <= DEGRADED_FORCE; p++) {
    decide (7, p);
    assert_false (decision.open);
    assert_non_null (strstr (decision.why, "epoch 2 on d1"));
  }
  members_find (disk, 2, found);
  assert_int_equal (membership_meet (&ms, found, &identity, why), -1);
  assert_non_null (strstr (why, "written in two ways"));
}

/* d3 was to replace d0, went on with d1 alone, and d1 is lost: of slot 0 d3 has
 * all, and d0 is not used.
 */
static void
test_go_back_doubled (void **state)
{
  create (2, 1);
  start (7, DEGRADED_ALLOW);
  finish ();
  begin_add (3, 0);
  finish ();
  start (0xa, DEGRADED_FORCE);
  finish ();
  decide (0xd, DEGRADED_FORCE);
  assert_true (decision.open);
  assert_int_equal (decision.nr_slots, 2);
  assert_string_equal (found[decision.active[0]].name, "d3");
  assert_int_equal (decision.other[0], -1);
  assert_int_equal (found[0].state, FOUND_STALE);
  assert_false (found[0].behind);
  assert_true (found[1].behind);
  /* Without d3 it is d0 that has the slot. */
  decide (0x5, DEGRADED_FORCE);
  assert_true (decision.open);
  assert_string_equal (found[decision.active[0]].name, "d0");
}

/* A member that was away when force went back is rebuilt in full: what was
 * written under the record that is lost may be on the others.
 */
static void
test_go_back_covers_none (void **state)
{
  create (2, 2);
  start (7, DEGRADED_ALLOW);    /* d3 is stale, covered */
  finish ();
  start (3, DEGRADED_FORCE);    /* d0 and d1 went on, and d0 is lost */
  finish ();
  start (6, DEGRADED_FORCE);
  assert_int_equal (decision.sb.record.self.ballot.epoch, 2);
  finish ();
  start (14, DEGRADED_ALLOW);
  assert_int_equal (found[2].state, FOUND_STALE);
  assert_false (found[2].covered);
}

/* d0 and d1 went on without d2 and d4, onto which d3's slot was being rebuilt,
 * and d0 is lost: what d4 has below its cursor may be old.
 */
static void
test_go_back_target (void **state)
{
  struct device_set three = set_of (8);

  create (2, 2);
  start (15, DEGRADED_ALLOW);
  finish ();
  membership_fail (&ms, &three);
  finish ();
  add_target (4, 3);
  membership_set_cursor (&ms, 4, false, 65536);
  for (unsigned i = 0; i < 5; i++)
    if (i != 3)
      members_write (&disk[i], &ms, i, &identity, true, SB_NR_COPIES);
  assert_true (opens (0x17));
  assert_int_equal (found[3].cursor, 65536);
  start (3, DEGRADED_FORCE);
  finish ();
  decide (0x16, DEGRADED_FORCE);
  assert_true (decision.open);
  assert_true (found[1].behind);
  assert_int_equal (found[2].state, FOUND_TARGET);
  assert_int_equal (found[2].cursor, 0);
}

/* No copy of the newest record is left, only its name: nothing opened. */
static void
test_go_back_named (void **state)
{
  create (1, 1);
  for (unsigned i = 0; i < 2; i++) {
    struct superblock *sb = &disk[i].sb[SB_A1];

    sb->record.self.ballot = (struct ballot) { 3, 7 };
    sb->record.parent.ballot = (struct ballot) { 2, 6 };
    sb->record.base = sb->record.parent;
  }
  assert_false (opens (3));
  assert_non_null (strstr (decision.why, "none found with current data"));
  decide (3, DEGRADED_FORCE);
  assert_true (decision.open);
  assert_int_equal (decision.nr_slots, 2);
  assert_int_equal (decision.past.epoch, 2);
  start (3, DEGRADED_FORCE);
  assert_int_equal (ms.next.self.ballot.epoch, 4);
  finish ();
  assert_true (opens (3));
}

/* Members that are there and can't be used are named, with the reason. */
static void
test_useless (void **state)
{
  struct device_set devs = set_of (0x20);

  create (4, 2);
  start (0x3f, DEGRADED_ALLOW);
  finish ();
  membership_fail (&ms, &devs);
  finish ();
  assert_false (opens (0x31));
  assert_non_null (strstr (decision.why, "taken out earlier, and out of "
                           "date: d5"));
  assert_non_null (strstr (decision.why, "missing: slots 1, 2, 3"));
}

static void
refused (unsigned mask, const char *text)
{
  decide (mask, DEGRADED_FORCE);
  assert_false (decision.open);
  if (strstr (decision.why, text) == NULL)
    fail_msg ("\"%s\" does not say \"%s\"", decision.why, text);
  create (2, 1);
}

static void
test_unsound (void **state)
{
  create (2, 1);
  refused (0, "no member");
  refused (0xf, "d3: not a member of an array");
  for (unsigned c = 0; c < SB_NR_COPIES; c++)
    disk[1].result[c] = SB_CORRUPT;
  refused (7, "d1: all copies of its superblock are damaged");
  disk[2].result[SB_A1] = SB_TOO_NEW;
  refused (7, "d2: made by a newer version");
  for (unsigned c = 0; c < SB_NR_COPIES; c++)
    disk[0].sb[c].array_uuid.b[5] = 1;
  refused (7, "d0: a member of another array than d1");
  for (unsigned c = 0; c < SB_NR_COPIES; c++)
    disk[2].sb[c].g.chunk *= 2;
  refused (7, "d2: not like d0 of the same array: chunk size differs");
  disk[2].sb[SB_B1].member_uuid.b[9] = 1;
  refused (7, "d2: its superblock copies are of different members");
  memcpy (disk[3].sb, disk[0].sb, sizeof disk[0].sb);
  memcpy (disk[3].result, disk[0].result, sizeof disk[0].result);
  refused (0xf, "d0 and d3 are the same member");
}

/* Creating was cut short before anything was accepted. */
static void
test_create_cut_short (void **state)
{
  create (2, 1);
  for (unsigned i = 0; i < 3; i++)
    disk[i].result[SB_A2] = disk[i].result[SB_B2] = SB_BLANK;
  decide (7, DEGRADED_FORCE);
  assert_false (decision.open);
  assert_true (decision.why[0] != '\0');
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_missing),
    cmocka_unit_test (test_text),
    cmocka_unit_test (test_recorded_failure),
    cmocka_unit_test (test_branch),
    cmocka_unit_test (test_branch_epochs),
    cmocka_unit_test (test_go_back),
    cmocka_unit_test (test_go_back_doubled),
    cmocka_unit_test (test_go_back_covers_none),
    cmocka_unit_test (test_go_back_target),
    cmocka_unit_test (test_go_back_named),
    cmocka_unit_test (test_useless),
    cmocka_unit_test (test_unsound),
    cmocka_unit_test (test_create_cut_short),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
