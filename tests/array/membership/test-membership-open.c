/* gpuraid: what opens and what does not: quorums, every reason to refuse,
 * and, given a file from tests/model/membership.py --dump, or from
 * tests/model/reshape/parity.py, that the
 * decision is the model's.
 *
 *   test-membership-open [STATES]
 *
 * run-tests: check=plain,address,thread
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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

/* ---- against the model ---------------------------------------------- */

static unsigned k, m, nr_members, hides, slot[MEMBERS_MAX];

/* What a record says of parity that was added. */
enum { WIDE = 1, FIXED = 2, FIRST = 4, LISTS = 8 };

/* Returns its shape. */
static unsigned
read_set (FILE *f, struct ballot_set *s)
{
  unsigned shape;

  assert_int_equal (fscanf (f, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %u",
                            &s->ballot.epoch, &s->ballot.session,
                            &s->active.w[0], &shape), 4);
  s->k = k;
  s->m = m + (shape & WIDE ? 1 : 0);
  s->first = shape & FIRST;
  return shape;
}

static void
set_shape (struct superblock *sb, unsigned shape)
{
  struct sb_shape s;

  sb_get_shape (sb, &s);
  s.m = sb->record.self.m;
  s.fixed = shape & FIXED ? BIT (k + m) : 0;
  s.matrix_crc += shape & WIDE ? 1 : 0;
  sb_set_shape (sb, &s);
}

/* In the slot of added parity there is a target, if it lists one. */
static void
set_device (struct superblock *sb, unsigned j, unsigned shape, bool goes)
{
  const bool active = device_set_has (&sb->record.self.active, j);

  if (slot[j] == k + m && !(shape & WIDE))
    return;
  sb->device[j] = (struct device) {
    .uuid = members_uuid (j), .slot = slot[j],
    .state = active ? DEVICE_ACTIVE :
      slot[j] == k + m && shape & LISTS ? DEVICE_REBUILDING : DEVICE_MISSING,
    .replaced = goes,
  };
}

/* One record into two copies.  The first of all records is not always
 * among those seen: whatever the model did not see is a branch.
 */
static void
read_record (FILE *f, unsigned i, bool accepted)
{
  struct superblock *sb = &disk[i].sb[accepted ? SB_A2 : SB_A1];
  struct record *r = &sb->record;
  char kind[2];
  unsigned nr_seen, goes, shape;

  assert_int_equal (fscanf (f, "%1s", kind), 1);
  if (kind[0] == '-')
    return;
  *sb = identity;
  sb->member_uuid = members_uuid (i);
  shape = read_set (f, &r->self);
  read_set (f, &r->base);
  read_set (f, &r->parent);
  assert_int_equal (fscanf (f, "%u %u", &goes, &nr_seen), 2);
  while (nr_seen-- > 0) {
    struct ballot *b = &r->seen[r->nr_seen++];

    assert_int_equal (fscanf (f, "%" SCNu64 " %" SCNu64, &b->epoch,
                              &b->session), 2);
  }
  r->seen[r->nr_seen++] = (struct ballot) { 1, 999 };
  set_shape (sb, shape);
  for (unsigned j = 0; j < nr_members; j++)
    set_device (sb, j, shape, goes >> j & 1);
  disk[i].result[accepted ? SB_A2 : SB_A1] = SB_OK;
  disk[i].result[accepted ? SB_B2 : SB_B1] = SB_OK;
  disk[i].sb[accepted ? SB_B2 : SB_B1] = *sb;
}

static void
read_state (FILE *f)
{
  assert_int_equal (fscanf (f, "%u %u %u %u", &k, &m, &nr_members, &hides),
                    4);
  create (k, m);
  for (unsigned i = 0; i < MEMBERS_MAX; i++)
    for (unsigned c = 0; c < SB_NR_COPIES; c++)
      disk[i].result[c] = SB_BLANK;
  /* The slots are known before the records. */
  for (unsigned i = 0; i < nr_members; i++)
    assert_int_equal (fscanf (f, "%u", &slot[i]), 1);
  for (unsigned i = 0; i < nr_members; i++) {
    read_record (f, i, false);
    read_record (f, i, true);
  }
}

static unsigned
bit_of (const struct found *one)
{
  return 1u << strtoul (one->name + 1, NULL, 10);
}

static unsigned
current_of (size_t nr)
{
  unsigned got = 0;

  for (size_t i = 0; i < nr; i++)
    if (found[i].state == FOUND_CURRENT)
      got |= bit_of (&found[i]);
  return got;
}

/* What force goes back to, when fewer than k are current. */
static void
read_back (FILE *f, size_t line, unsigned mask, bool data)
{
  unsigned known, current;
  uint64_t epoch, sess;
  size_t nr;

  assert_int_equal (fscanf (f, "%" SCNu64 " %" SCNu64 " %u %u", &epoch, &sess,
                            &known, &current), 4);
  if (data)
    return;
  nr = decide (mask, DEGRADED_FORCE);
  if (decision.open != (epoch != 0) ||
      (epoch != 0 && (epoch != decision.sb.record.self.ballot.epoch ||
                      sess != decision.sb.record.self.ballot.session ||
                      known != decision.in_force ||
                      current != current_of (nr))))
    fail_msg ("set %zu (%#x) of the model, forced: %s", line, mask,
              decision.why);
}

static void
read_found (FILE *f, size_t line)
{
  unsigned mask, open, known, current, goes, other = 0;
  uint64_t epoch, sess;
  char reason[16];
  size_t nr;

  assert_int_equal (fscanf (f, "%u %u %" SCNu64 " %" SCNu64 " %u %u %u %15s",
                            &mask, &open, &epoch, &sess, &known, &current,
                            &goes, reason), 8);
  nr = decide (mask, DEGRADED_ALLOW);
  if (strcmp (reason, "branch") == 0) {
    assert_non_null (strstr (decision.why, "written in two ways"));
    read_back (f, line, mask, true);
    return;
  }
  for (unsigned s = 0; s < MAX_SLOTS; s++)
    if (decision.other[s] != -1)
      other |= bit_of (&found[decision.other[s]]);
  /* With m >= k the model of k + m alone asks for less. */
  if (open && !decision.open && !hides && m >= k && nr_bits (mask) <= k)
    open = false;
  if (open != decision.open ||
      epoch != decision.sb.record.self.ballot.epoch ||
      sess != decision.sb.record.self.ballot.session ||
      known != decision.in_force || current != current_of (nr) ||
      goes != other)
    fail_msg ("set %zu (%#x) of the model: %s", line, mask, decision.why);
  read_back (f, line, mask, strcmp (reason, "data") != 0);
}

static const char *states;

static void
test_model (void **state)
{
  FILE *f = states ? fopen (states, "r") : NULL;
  char word[8];
  size_t nr = 0;

  if (f == NULL)
    skip ();
  while (fscanf (f, "%7s", word) == 1)
    if (strcmp (word, "state") == 0)
      read_state (f);
    else
      read_found (f, ++nr);
  fclose (f);
  print_message ("%zu sets of members\n", nr);
  assert_true (nr > 1000);
}

int
main (int argc, char **argv)
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
    cmocka_unit_test (test_model),
  };

  if (argc > 1)
    states = argv[1];
  return cmocka_run_group_tests (tests, NULL, NULL);
}
