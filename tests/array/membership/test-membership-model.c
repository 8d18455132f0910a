/* gpuraid: given a file from tests/model/membership.py --dump, or from that of
 * parity.py or widen_quorum.py, that the decision in each state is the model's.
 *
 *   test-membership-model [STATES]
 *
 * run-tests: no-sanitizer
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

static unsigned k, m, nr_members, hides, slot[MEMBERS_MAX];

/* What a record says of parity that was added; DATA: it widens the array. */
enum { WIDE = 1, FIXED = 2, FIRST = 4, LISTS = 8, DATA = 32 };

/* Returns its shape. */
static unsigned
read_set (FILE *f, struct ballot_set *s)
{
  unsigned shape;

  assert_int_equal (fscanf (f, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %u",
                            &s->ballot.epoch, &s->ballot.session,
                            &s->active.w[0], &shape), 4);
  s->k = k + (shape & DATA ? 1 : 0);
  s->m = m + (shape & WIDE ? 1 : 0);
  s->widening = shape & DATA;
  s->first = shape & FIRST;
  return shape;
}

static void
set_shape (struct superblock *sb, unsigned shape)
{
  struct sb_shape s;

  sb_get_shape (sb, &s);
  s.k = sb->record.self.k;
  s.m = sb->record.self.m;
  s.fixed = shape & FIXED ? BIT (k + m) : 0;
  s.matrix_crc += shape & (WIDE | DATA);
  sb_set_shape (sb, &s);
}

/* In the slot of added parity there is a target, if it lists one.  A member
 * that is to widen the array is a spare, or has just been one.
 */
static void
set_device (struct superblock *sb, unsigned j, unsigned shape, bool goes)
{
  const struct record *r = &sb->record;
  const bool active = device_set_has (&r->self.active, j);
  const bool named = device_set_has (&r->base.active, j) ||
    device_set_has (&r->parent.active, j);

  if (slot[j] == k + m && !(shape & (WIDE | DATA))) {
    if (shape & LISTS)
      sb->device[j] = (struct device) {
        members_uuid (j), named ? DEVICE_FAILED : DEVICE_SPARE, SLOT_NONE,
      };
    return;
  }
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
  if (open && !decision.open && !hides && m >= decision.sb.g.k &&
      nr_bits (mask) <= decision.sb.g.k)
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
    cmocka_unit_test (test_model),
  };

  if (argc > 1)
    states = argv[1];
  return cmocka_run_group_tests (tests, NULL, NULL);
}
