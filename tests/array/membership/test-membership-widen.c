/* gpuraid: one more data member enters the record, and is taken back: the
 * traces that broke simpler rules (tests/model/reshape/widen_quorum.py).
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

static unsigned old_k, old_m, nr;       /* slots before */

static uint32_t
crc_of (unsigned k)
{
  return code_parity_crc (CODE_RS, 8, k, old_m);
}

/* An array that is open for writing, and has a spare. */
static void
open_all (unsigned k, unsigned m)
{
  old_k = k;
  old_m = m;
  nr = k + m;
  create (k, m);
  start (first_members (nr), DEGRADED_ALLOW);
  finish ();
  add_target (nr, SLOT_NONE);
}

static int
widen (void)
{
  return membership_begin_widen (&ms, nr, crc_of (old_k + 1), why);
}

static int
cancel (void)
{
  return membership_begin_widen_cancel (&ms, crc_of (old_k), why);
}

static uint64_t
new_size (void)
{
  return ms.shape.data_len * (old_k + 1);
}

static int
end (void)
{
  return membership_end_widening (&ms, new_size (), why);
}

/* One more record of the same members. */
static void
again (void)
{
  begin_remove (0);
  finish ();
}

static void
open_and_widen (unsigned k, unsigned m)
{
  open_all (k, m);
  assert_int_equal (widen (), 0);
  finish ();
}

static void
fails (unsigned i)
{
  const struct device_set devs = set_of (1u << i);

  membership_fail (&ms, &devs);
}

/* What a running array is: with the slot, or without. */
static void
check_slots (bool more, bool widening)
{
  const struct ballot_set *self = &ms.cur.self;

  assert_int_equal (self->k, old_k + more);
  assert_int_equal (self->m, old_m);
  assert_int_equal (self->widening, widening);
  assert_int_equal (ms.shape.k, self->k);
  assert_int_equal (ms.shape.widening, widening);
  assert_int_equal (ms.shape.matrix_crc, crc_of (self->k));
  assert_int_equal (ms.shape.fixed, 0);
  for (unsigned dev = 0; dev < SB_MAX_DEVICES && !more; dev++)
    assert_false (ms.device[dev].state != DEVICE_NONE &&
                  ms.device[dev].slot == nr);
}

/* What these say, whether they open or not. */
static void
check_found (unsigned mask, bool more, bool widening)
{
  const struct superblock *sb = &decision.sb;

  decide (mask, DEGRADED_ALLOW);
  assert_int_equal (sb->g.k, old_k + more);
  assert_int_equal (sb->record.self.k, old_k + more);
  assert_int_equal (sb->g.widening, widening);
  assert_int_equal (sb->record.self.widening, widening);
  assert_int_equal (sb->matrix_crc, crc_of (sb->g.k));
  assert_null (superblock_check (sb));
}

static unsigned
count (unsigned mask)
{
  return nr_bits (mask);
}

/* Of the n disks, as many as are needed open, and no fewer. */
static void
check_quorum (unsigned n, unsigned need)
{
  for (unsigned mask = 1; mask < 1u << n; mask++)
    if (opens (mask) != (count (mask) >= need))
      fail_msg ("%#x of %u: %s", mask, n, decision.why);
}

/* From the beginning to the end, opened at each step. */
static void
test_whole_way (void **state)
{
  open_all (4, 2);
  check_quorum (nr, 4);
  assert_int_equal (widen (), 0);
  finish ();
  check_slots (true, true);
  check_found (first_members (nr + 1), true, true);
  assert_false (decision.degraded);
  assert_int_equal (decision.sb.g.size, identity.g.size);
  again ();
  check_quorum (nr + 1, 5);

  assert_int_equal (end (), 0);
  finish ();
  check_slots (true, false);
  check_found (first_members (nr + 1), true, false);
  assert_int_equal (decision.sb.g.size, new_size ());
  /* Until no record says that it was widened. */
  assert_int_equal (decision.sb.incompat, SB_INCOMPAT_RESHAPED);
  check_quorum (nr + 1, 5);
  start (first_members (nr + 1), DEGRADED_ALLOW);
  finish ();
  assert_int_equal (ms.cur.base.k, 5);
  check_found (first_members (nr + 1), true, false);
  assert_int_equal (decision.sb.incompat, 0);
  assert_int_equal (end (), -1);

  /* And once more. */
  old_k++;
  nr++;
  add_target (nr, SLOT_NONE);
  assert_int_equal (widen (), 0);
  finish ();
  check_slots (true, true);
  again ();
  check_quorum (nr + 1, 6);
}

/* The members of slot k + m, if parity was added before: it stays there. */
static void
test_beside_fixed (void **state)
{
  const uuid_bytes uuid = members_uuid (3);
  struct device_set three = set_of (8);
  unsigned dev;

  create (2, 1);
  start (7, DEGRADED_ALLOW);
  finish ();
  assert_int_equal (membership_begin_parity (&ms, &uuid,
                                             code_parity_crc (CODE_RS, 8, 2, 2),
                                             &dev, why), 0);
  finish ();
  add_target (4, SLOT_NONE);
  nr = 4;
  old_k = old_m = 2;
  assert_int_equal (widen (), -1);      /* it is not active yet */
  assert_int_equal (membership_begin_activate (&ms, &three, why), 0);
  finish ();
  assert_int_equal (widen (), 0);
  finish ();
  assert_int_equal (ms.shape.fixed, 8);
  assert_int_equal (ms.device[4].slot, 4);
  assert_true (opens (0x1f));
  assert_int_equal (decision.sb.g.fixed, 8);
  assert_int_equal (cancel (), 0);
  finish ();
  assert_int_equal (ms.shape.fixed, 8);
  assert_true (opens (0xf));
}

static void
refuses (const char *text)
{
  assert_int_equal (widen (), -1);
  if (strstr (why, text) == NULL)
    fail_msg ("\"%s\" does not say \"%s\"", why, text);
}

/* Not while a member is lost, rebuilt or replaced, nor two at once. */
static void
test_when (void **state)
{
  const uuid_bytes uuid = members_uuid (7);
  const struct device_set new = set_of (1u << 7);
  struct sb_shape shape;
  unsigned dev;

  open_all (4, 2);
  assert_int_equal (cancel (), -1);
  assert_int_equal (end (), -1);
  add_target (nr + 1, 1);
  refuses ("rebuilt");
  assert_int_equal (membership_begin_activate (&ms, &new, why), 0);
  refuses ("under way");
  finish ();
  refuses ("replaced");
  begin_remove (2);
  finish ();
  begin_remove (1);
  finish ();
  refuses ("lost");

  open_and_widen (4, 2);
  again ();
  add_target (nr + 1, SLOT_NONE);
  assert_int_equal (membership_begin_widen (&ms, nr + 1, 0, why), -1);
  assert_non_null (strstr (why, "data member is being added"));
  assert_int_equal (membership_begin_parity (&ms, &uuid, 0, &dev, why), -1);
  shape = ms.shape;
  assert_int_equal (membership_begin_grow (&ms, &shape, why), -1);
  fails (0);
  finish ();
  assert_int_equal (end (), -1);
  assert_non_null (strstr (why, "lost"));

  /* As many members as there can be. */
  open_all (4, 2);
  ms.shape.k = MAX_SLOTS - ms.shape.m;
  refuses ("as many members");
}

/* not-told: a spare that is missing does not have the record in force. */
static void
test_not_told (void **state)
{
  open_all (2, 1);
  start (7, DEGRADED_ALLOW);
  finish ();
  assert_int_equal (ms.device[3].state, DEVICE_MISSING);
  refuses ("spare");
}

/* ---- crashes --------------------------------------------------------- */

static bool
is_quorum (unsigned mask, const struct ballot_set *s)
{
  const unsigned there = count (mask & (unsigned) s->active.w[0]);

  return there >= membership_quorum (s->k, device_set_count (&s->active)) &&
    (s->m < s->k || count (mask) > s->k);
}

/* The record under way crashed.  Enough of both open, and what opens is of one
 * of them.
 */
static void
check_crashed (const struct ballot_set *was, const struct ballot_set *next,
               bool accepted)
{
  const unsigned all = first_members (nr + 1);

  for (unsigned mask = 1; mask <= all; mask++) {
    const struct record *r = &decision.sb.record;
    const struct ballot_set *won;

    if (!opens (mask)) {
      if (mask == all || (is_quorum (mask, was) && is_quorum (mask, next)))
        fail_msg ("%#x: %s", mask, decision.why);
      continue;
    }
    won = r->self.ballot.epoch == next->ballot.epoch ? next : was;
    assert_int_equal (r->self.ballot.epoch, won->ballot.epoch);
    assert_int_equal (decision.sb.g.k, won->k);
    assert_int_equal (decision.sb.g.widening, won->widening);
    assert_true (decision.nr_slots >= won->k);
    assert_null (superblock_check (&decision.sb));
    assert_true (won == next || !accepted);
  }
}

static void
crash_at_each (void (*prepare) (unsigned, unsigned), int (*begin) (void),
               unsigned k, unsigned m)
{
  const unsigned all = first_members (k + m + 1);

  for (unsigned step = 0; step <= 2 * all; step++) {
    struct ballot_set was, next;
    unsigned takers;

    prepare (k, m);
    was = ms.cur.self;
    assert_int_equal (begin (), 0);
    next = ms.next.self;
    takers = next.active.w[0];
    give (MIN (step, all));
    if (step > all) {
      membership_proposed (&ms, &no_device);
      give (step - all);
    }
    check_crashed (&was, &next,
                   step > all && (~(step - all) & takers) == 0);
  }
}

static void
widened (unsigned k, unsigned m)
{
  open_and_widen (k, m);
  again ();
}

static void
test_crashes (void **state)
{
  static const struct { unsigned k, m; } sizes[] = {
    { 1, 1 }, { 2, 1 }, { 3, 1 }, { 1, 2 }, { 2, 2 },
  };

  for (size_t i = 0; i < ARRAY_LEN (sizes); i++) {
    crash_at_each (open_all, widen, sizes[i].k, sizes[i].m);
    crash_at_each (widened, cancel, sizes[i].k, sizes[i].m);
    crash_at_each (widened, end, sizes[i].k, sizes[i].m);
  }
}

/* base-new-k: the members of before need their own k. */
static void
test_base_k (void **state)
{
  open_all (2, 1);
  assert_int_equal (widen (), 0);
  accept_and_crash (1);
  assert_true (opens (0xb));
  assert_int_equal (decision.sb.g.k, 3);
}

/* winner-old-k: m more of them are no quorum. */
static void
test_winner_k (void **state)
{
  const struct device_set zero = set_of (1);

  open_all (2, 1);
  assert_int_equal (widen (), 0);
  give (ALL);
  membership_proposed (&ms, &no_device);
  give (0xd);
  assert_int_equal (membership_accepted (&ms, &zero), MEMBERSHIP_PROPOSE);
  accept_and_crash (2);
  assert_false (opens (6));
  assert_true (opens (0xe));
}

/* keep-old-k: nor can one more than m go. */
static void
test_kept_k (void **state)
{
  struct device_set one = set_of (2);

  widened (2, 1);
  fails (0);
  finish ();
  assert_false (membership_can_lose (&ms, &one));
  assert_int_equal (cancel (), -1);
  fails (1);
  assert_int_equal (ms.phase, MEMBERSHIP_STOPPED);
}

/* no-again: once it is taken back, k of the members are enough only when one
 * more record says so.
 */
static void
test_again (void **state)
{
  widened (2, 1);
  assert_int_equal (cancel (), 0);
  finish ();
  assert_false (opens (3));
  again ();
  assert_true (opens (3));
  check_found (3, false, false);
}

/* ---- members that fail ------------------------------------------------ */

/* Member i fails while the record is proposed, or accepted by the others. */
static void
fails_while (unsigned i, bool accepted)
{
  const struct device_set gone = set_of (1u << i);
  const unsigned others = first_members (nr + 1) & ~(1u << i);

  if (!accepted) {
    give (1);
    membership_proposed (&ms, &gone);
    return;
  }
  give (ALL);
  membership_proposed (&ms, &no_device);
  give (others);
  membership_accepted (&ms, &gone);
}

static void
test_fails_while_added (void **state)
{
  for (unsigned accepted = 0; accepted < 2; accepted++) {
    open_all (2, 1);
    assert_int_equal (widen (), 0);
    fails_while (2, accepted);
    finish ();
    assert_int_equal (ms.cur.self.active.w[0], accepted ? 0xb : 3);
    check_slots (accepted, accepted);
    assert_int_equal (ms.device[3].state,
                      accepted ? DEVICE_ACTIVE : DEVICE_SPARE);
    check_found (0xb, accepted, accepted);

    /* NEW itself. */
    open_all (2, 1);
    assert_int_equal (widen (), 0);
    fails_while (3, accepted);
    finish ();
    assert_int_equal (ms.cur.self.active.w[0], 7);
    check_slots (accepted, accepted);
    assert_int_equal (ms.device[3].state,
                      accepted ? DEVICE_FAILED : DEVICE_NONE);
    assert_true (opens (7));
    assert_int_equal (decision.degraded, accepted);
  }
  /* It can be taken back without NEW, and with another one in its slot. */
  add_target (4, 3);
  assert_int_equal (cancel (), 0);
  finish ();
  check_slots (false, false);
  assert_true (opens (7));
  assert_false (decision.degraded);
}

static void
test_fails_while_taken_back (void **state)
{
  for (unsigned accepted = 0; accepted < 2; accepted++) {
    widened (2, 2);
    assert_int_equal (cancel (), 0);
    fails_while (2, accepted);
    finish ();
    assert_int_equal (ms.cur.self.active.w[0], accepted ? 0xb : 0x1b);
    check_slots (!accepted, !accepted);
    check_found (0x1b, !accepted, !accepted);
  }
  /* With m = 1 too few of the last record in force would be left, until NEW is
   * found again, or member 2.
   */
  widened (2, 1);
  assert_int_equal (cancel (), 0);
  fails_while (2, true);
  assert_int_equal (ms.phase, MEMBERSHIP_STOPPED);
  assert_false (opens (3));
  assert_true (opens (0xb));
  assert_true (opens (7));
  check_found (0xb, false, false);
}

static void
test_fails_at_the_end (void **state)
{
  for (unsigned accepted = 0; accepted < 2; accepted++) {
    widened (2, 1);
    assert_int_equal (end (), 0);
    fails_while (2, accepted);
    finish ();
    assert_int_equal (ms.cur.self.active.w[0], 0xb);
    check_slots (true, !accepted);
    assert_int_equal (ms.shape.size,
                      accepted ? new_size () : identity.g.size);
    check_found (0xb, true, !accepted);
  }
}

/* NEW is no member any more, and can be one again. */
static void
test_taken_back (void **state)
{
  widened (4, 2);
  assert_int_equal (cancel (), 0);
  finish ();
  check_slots (false, false);
  check_found (0x7f, false, false);
  assert_true (decision.open);
  assert_int_equal (found[nr].state, FOUND_FAILED);
  again ();
  assert_int_equal (ms.device[nr].state, DEVICE_NONE);
  assert_true (opens (0x7f));
  assert_int_equal (found[nr].state, FOUND_UNLISTED);
  assert_int_equal (cancel (), -1);
  again ();
  assert_int_equal (disk[0].sb[SB_A2].incompat, 0);

  disk[nr].result[SB_A1] = disk[nr].result[SB_A2] = disk[nr].result[SB_B1] =
    disk[nr].result[SB_B2] = SB_BLANK;
  add_target (nr, SLOT_NONE);
  assert_int_equal (widen (), 0);
  finish ();
  check_slots (true, true);
  again ();
  check_quorum (nr + 1, 5);
}

/* ---- a winner that is known by its name alone ------------------------- */

/* All have the proposal under way, and no accepted copy is left. */
static void
leave_names (void)
{
  give (ALL);
  for (unsigned i = 0; i <= nr; i++)
    for (enum sb_copy c = SB_A2; c < SB_NR_COPIES; c += SB_B2 - SB_A2)
      disk[i].result[c] = SB_CORRUPT;
}

static void
test_by_name (void **state)
{
  /* Before: NEW is a spare again. */
  open_all (2, 1);
  assert_int_equal (widen (), 0);
  leave_names ();
  check_found (0xf, false, false);
  assert_int_equal (decision.sb.device[3].state, DEVICE_SPARE);
  assert_int_equal (found[3].state, FOUND_SPARE);

  /* The one that widened it: the last slot is NEW's. */
  widened (2, 1);
  assert_int_equal (cancel (), 0);
  leave_names ();
  check_found (0x7, true, true);
  assert_int_equal (decision.sb.device[3].state, DEVICE_ACTIVE);
  assert_int_equal (decision.sb.device[3].slot, 3);
  assert_false (decision.sb.device[3].replaced);
  assert_int_equal (decision.sb.g.size, identity.g.size);

  /* Likewise, with another one of the same k after it. */
  open_all (2, 1);
  assert_int_equal (widen (), 0);
  finish ();
  begin_remove (0);
  leave_names ();
  check_found (0xf, true, true);

  /* It was to end: then no row is old. */
  widened (2, 1);
  assert_int_equal (end (), 0);
  leave_names ();
  check_found (0xf, true, false);
  assert_int_equal (decision.sb.g.size, new_size ());
}

/* A member that was away has a record of another k: it is of this array. */
static void
test_long_away (void **state)
{
  widened (2, 2);
  fails (0);
  finish ();
  begin_remove (0);
  finish ();
  add_target (5, 0);
  assert_int_equal (membership_begin_activate (&ms, &(struct device_set)
                                               {{ 0x20, 0 }}, why), 0);
  finish ();
  assert_int_equal (end (), 0);
  finish ();
  assert_true (opens (0x3f));
  assert_int_equal (found[0].state, FOUND_UNLISTED);
  assert_int_equal (decision.sb.g.k, 3);
}

/* The record misses d0, whose data force would need. */
static void
misses_first (int (*begin) (void))
{
  assert_int_equal (begin (), 0);
  fails_while (0, true);
  finish ();
}

/* Force does not go back to where rows were before they moved. */
static void
test_force (void **state)
{
  open_all (2, 2);
  misses_first (widen);
  decide (3, DEGRADED_FORCE);
  assert_false (decision.open);
  assert_null (strstr (decision.why, "degraded=force"));
  decide (0xe, DEGRADED_FORCE);
  assert_true (decision.open);

  widened (2, 2);
  misses_first (end);
  decide (3, DEGRADED_FORCE);
  assert_false (decision.open);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_whole_way),
    cmocka_unit_test (test_beside_fixed),
    cmocka_unit_test (test_when),
    cmocka_unit_test (test_not_told),
    cmocka_unit_test (test_crashes),
    cmocka_unit_test (test_base_k),
    cmocka_unit_test (test_winner_k),
    cmocka_unit_test (test_kept_k),
    cmocka_unit_test (test_again),
    cmocka_unit_test (test_fails_while_added),
    cmocka_unit_test (test_fails_while_taken_back),
    cmocka_unit_test (test_fails_at_the_end),
    cmocka_unit_test (test_taken_back),
    cmocka_unit_test (test_by_name),
    cmocka_unit_test (test_long_away),
    cmocka_unit_test (test_force),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
