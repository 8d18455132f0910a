/* gpuraid: what opens and what does not, and which record comes next:
 * the traces that broke simpler rules, every reason to refuse, and,
 * given a file from tests/model/membership.py --dump, that the decision
 * is the model's.
 *
 *   test-membership [STATES]
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
#include "tests/membership-members.h"

static struct disk disk[MEMBERS_MAX];
static struct found found[MEMBERS_MAX];
static struct membership_decision d;
static struct membership ms;
static struct superblock identity;
static uint64_t session = 100;
static char why[MEMBERSHIP_TEXT_LEN];

static const struct device_set nobody;

static struct device_set
set_of (unsigned mask)
{
  return (struct device_set) {{ mask, 0 }};
}

/* ---- steps of a scenario -------------------------------------------- */

static void
create (unsigned k, unsigned m)
{
  memset (disk, 0, sizeof disk);
  members_superblock (&identity, k, m);
  members_create (disk, MEMBERS_MAX, k, m, 1);
}

static size_t
decide (unsigned mask, enum degraded_policy policy)
{
  size_t nr = members_find (disk, mask, found);

  membership_open (found, nr, policy, &d);
  assert_int_equal (d.open, d.why[0] == '\0');
  assert_null (strstr (d.notice, "error"));
  return nr;
}

static bool
opens (unsigned mask)
{
  decide (mask, DEGRADED_ALLOW);
  return d.open;
}

static void
start (unsigned mask, enum degraded_policy policy)
{
  size_t nr = decide (mask, policy);

  assert_true (d.open);
  membership_start (&ms, &d, found, nr, ++session);
  membership_begin_open (&ms, found, nr, policy != DEGRADED_FORCE);
}

/* Of the takers, these get it; dev i is disk i. */
static void
give (unsigned mask)
{
  struct device_set takers;

  membership_takers (&ms, &takers);
  for (unsigned i = 0; i < MEMBERS_MAX; i++)
    if ((mask >> i & 1) && device_set_has (&takers, i)) {
      if (ms.phase != MEMBERSHIP_ACCEPT)
        members_write (&disk[i], &ms, i, &identity, false, 4);
      if (ms.phase != MEMBERSHIP_PROPOSE)
        members_write (&disk[i], &ms, i, &identity, true, 4);
    }
}

#define ALL (~0u)

static void
finish (void)
{
  assert_int_equal (ms.phase, MEMBERSHIP_PROPOSE);
  give (ALL);
  assert_int_equal (membership_proposed (&ms, &nobody), MEMBERSHIP_ACCEPT);
  give (ALL);
  if (membership_accepted (&ms, &nobody) == MEMBERSHIP_TELL) {
    give (ALL);
    membership_told (&ms, &nobody);
  }
  assert_int_equal (ms.phase, MEMBERSHIP_IDLE);
  assert_true (ms.in_force);
}

/* A session of these members that crashes, its record accepted by some. */
static void
crash (unsigned mask, unsigned accepted)
{
  start (mask, DEGRADED_ALLOW);
  give (ALL);
  membership_proposed (&ms, &nobody);
  give (accepted);
}

/* Disk i, a new member, becomes a target for a slot; dev i too. */
static void
add_target (unsigned i, uint8_t to)
{
  uuid_bytes uuid = members_uuid (i);
  unsigned dev;

  assert_int_equal (membership_begin_target (&ms, &uuid, to, false, &dev, why),
                    0);
  assert_int_equal (dev, i);
  finish ();
}

static void
begin_add (unsigned i, uint8_t to)
{
  struct device_set devs = set_of (1u << i);

  add_target (i, to);
  assert_int_equal (membership_begin_activate (&ms, &devs, why), 0);
}

/* The first n members. */
static unsigned
first (unsigned n)
{
  return (1u << n) - 1;
}

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
    assert_true (opens (first (n)));
    assert_true (d.in_force);
    assert_false (d.degraded);
    assert_string_equal (d.notice, "");
    for (unsigned gone = 1; gone <= sizes[i].m; gone++)
      assert_int_equal (opens (first (n - gone)), gone <= sizes[i].may);
    /* Force needs k and nothing else; even that not fewer. */
    decide (first (sizes[i].k), DEGRADED_FORCE);
    assert_true (d.open);
    if (sizes[i].k > 1) {
      decide (first (sizes[i].k - 1), DEGRADED_FORCE);
      assert_false (d.open);
    }
  }
}

static void
test_text (void **state)
{
  create (1, 1);
  assert_false (opens (2));
  assert_string_equal (d.why, "too few members: d1 found with current data "
                       "(1), 2 needed; missing: slot 0; add the missing "
                       "members, or use degraded=force if they are lost");
  create (4, 2);
  assert_true (opens (0x1e));
  assert_string_equal (d.notice, "missing: slots 0, 5");
  decide (0x1e, DEGRADED_REFUSE);
  assert_false (d.open);
  assert_non_null (strstr (d.why, "all 6 slots needed with degraded=refuse"));
  decide (0x3f, DEGRADED_REFUSE);
  assert_true (d.open);
  assert_false (opens (7));
  assert_non_null (strstr (d.why, "4 slots needed"));
  assert_null (strstr (d.why, "force"));
  start (0x1f, DEGRADED_ALLOW);
  finish ();
  assert_true (opens (0x3f));
  assert_int_equal (found[5].state, FOUND_STALE);
  assert_true (found[5].covered);
  assert_non_null (strstr (d.notice, "d5: out of date, brought up"));
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
  assert_true (d.in_force);
  assert_false (opens (1));
  assert_true (opens (3));
  assert_int_equal (found[0].state, FOUND_FAILED);
  start (3, DEGRADED_ALLOW);
  assert_int_equal (ms.next_device[0].state, DEVICE_FAILED);
}

/* ---- the traces that broke simpler rules ------------------------------ */

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
  struct device_set one = set_of (2), zero = set_of (1);

  create (2, 1);
  start (7, DEGRADED_ALLOW);
  finish ();
  begin_add (3, 0);
  assert_int_equal (device_set_count (&ms.next.self.active), 4);
  give (ALL);
  membership_proposed (&ms, &nobody);
  give (0xd);
  assert_int_equal (membership_accepted (&ms, &one), MEMBERSHIP_PROPOSE);
  assert_false (ms.in_force);
  assert_int_equal (ms.next.self.active.w[0], 0xd);
  finish ();
  assert_int_equal (membership_begin_remove (&ms, &zero, DEVICE_FAILED, why),
                    0);
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
  give (ALL);
  membership_proposed (&ms, &nobody);
  give (0x8);                           /* and a crash */
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

/* 1+1, 0 and the rebuilt 2: a spare hears of the record that adds 2, and
 * nobody else, and 0 is lost in the next session.  What 2 was proposed
 * then must not hide that it was to become active.
 */
static void
test_spare_has_no_part (void **state)
{
  struct device_set one = set_of (2), two = set_of (4);

  create (1, 1);
  start (3, DEGRADED_ALLOW);
  finish ();
  assert_int_equal (membership_begin_remove (&ms, &one, DEVICE_FAILED, why),
                    0);
  finish ();
  add_target (2, 1);
  add_target (3, SLOT_NONE);
  assert_int_equal (membership_begin_activate (&ms, &two, why), 0);
  give (ALL);
  membership_proposed (&ms, &nobody);
  give (0x8);                           /* and a crash */
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
  struct device_set gone = set_of (0x18), both = set_of (0x60);

  create (2, 3);
  start (0x1f, DEGRADED_ALLOW);
  finish ();
  assert_int_equal (membership_begin_remove (&ms, &gone, DEVICE_FAILED, why),
                    0);
  finish ();
  add_target (5, 3);
  add_target (6, 4);
  assert_int_equal (membership_begin_activate (&ms, &both, why), 0);
  give (ALL);
  membership_proposed (&ms, &nobody);
  give (0x4);                           /* and a crash */
  start (0x63, DEGRADED_ALLOW);
  give (0x60);                          /* and a crash */
  assert_true (opens (0x67));
  assert_true (opens (0x7f));
}

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
  membership_proposed (&ms, &nobody);
  give (ALL);
  assert_int_equal (disk[4].result[SB_A1], SB_BLANK);
  assert_int_equal (membership_accepted (&ms, &nobody), MEMBERSHIP_TELL);
  assert_true (ms.in_force);
  assert_int_equal (dev, 4);
  membership_fail (&ms, &one);
  assert_int_equal (membership_told (&ms, &four), MEMBERSHIP_PROPOSE);
  assert_int_equal (ms.next.self.active.w[0], 0x5);
  assert_int_equal (ms.next.base.ballot.epoch, 3);
  assert_int_equal (ms.next_device[4].state, DEVICE_FAILED);
  finish ();
}

static void
test_torn (void **state)
{
  create (1, 1);
  for (unsigned i = 0; i < 4; i++) {
    start (3, DEGRADED_ALLOW);
    give (ALL);
    membership_proposed (&ms, &nobody);
    members_write (&disk[0], &ms, 0, &identity, true, i % 2 ? 1 : 3);
    assert_true (opens (3));
  }
}

/* ---- a change on its way -------------------------------------------- */

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
  assert_int_equal (membership_proposed (&ms, &nobody), MEMBERSHIP_PROPOSE);
  assert_int_equal (ms.next.self.active.w[0], 0xd);
  assert_int_equal (ms.next.parent.ballot.epoch, 1);
  give (ALL);
  membership_proposed (&ms, &nobody);
  membership_fail (&ms, &two);
  give (0x9);
  assert_int_equal (membership_accepted (&ms, &nobody), MEMBERSHIP_PROPOSE);
  assert_int_equal (ms.next.self.active.w[0], 0x9);
  assert_int_equal (ms.next.parent.ballot.epoch, 3);
  assert_int_equal (ms.next.base.ballot.epoch, 1);
  finish ();
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
  membership_set_cursor (&ms, 3, 65536);
  for (unsigned i = 1; i < 4; i++)
    members_write (&disk[i], &ms, i, &identity, true, i == 2 ? 2 : 4);
  assert_true (opens (0xe));
  assert_int_equal (d.target[0], 2);
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
  assert_int_equal (d.sb.record.self.ballot.epoch, 3);
  assert_int_equal (d.sb.record.self.active.w[0], 7);
  assert_true (d.in_force);
  assert_int_equal (d.sb.device[3].state, DEVICE_REBUILDING);
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
    assert_false (d.open);
    assert_non_null (strstr (d.why, "epoch 2 on d1, epoch 2 on d0"));
  }
  start (1, DEGRADED_ALLOW);
  finish ();
  decide (3, DEGRADED_ALLOW);
  assert_non_null (strstr (d.why, "epoch 3 on d0, epoch 2 on d1"));
  members_find (disk, 2, found);
  assert_int_equal (membership_meet (&ms, found, &identity, why), -1);
  assert_non_null (strstr (why, "branch"));
}

static void
refused (unsigned mask, const char *text)
{
  decide (mask, DEGRADED_FORCE);
  assert_false (d.open);
  if (strstr (d.why, text) == NULL)
    fail_msg ("\"%s\" does not say \"%s\"", d.why, text);
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
  assert_false (d.open);
  assert_true (d.why[0] != '\0');
}

/* ---- against the model ---------------------------------------------- */

static unsigned k, m, nr_members, slot[MEMBERS_MAX];

static bool
read_set (FILE *f, struct ballot_set *s)
{
  return fscanf (f, "%" SCNu64 " %" SCNu64 " %" SCNu64, &s->ballot.epoch,
                 &s->ballot.session, &s->active.w[0]) == 3;
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
  unsigned nr_seen;

  assert_int_equal (fscanf (f, "%1s", kind), 1);
  if (kind[0] == '-')
    return;
  *sb = identity;
  sb->member_uuid = members_uuid (i);
  assert_true (read_set (f, &r->self) && read_set (f, &r->base) &&
               read_set (f, &r->parent));
  assert_int_equal (fscanf (f, "%u", &nr_seen), 1);
  while (nr_seen-- > 0) {
    struct ballot *b = &r->seen[r->nr_seen++];

    assert_int_equal (fscanf (f, "%" SCNu64 " %" SCNu64, &b->epoch,
                              &b->session), 2);
  }
  r->seen[r->nr_seen++] = (struct ballot) { 1, 999 };
  for (unsigned j = 0; j < nr_members; j++)
    sb->device[j] = (struct device) {
      .uuid = members_uuid (j), .slot = slot[j],
      .state = device_set_has (&r->self.active, j) ? DEVICE_ACTIVE :
        DEVICE_MISSING,
    };
  disk[i].result[accepted ? SB_A2 : SB_A1] = SB_OK;
  disk[i].result[accepted ? SB_B2 : SB_B1] = SB_OK;
  disk[i].sb[accepted ? SB_B2 : SB_B1] = *sb;
}

static void
read_state (FILE *f)
{
  assert_int_equal (fscanf (f, "%u %u %u", &k, &m, &nr_members), 3);
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

static void
read_found (FILE *f, size_t line)
{
  unsigned mask, open, known, current, got = 0;
  uint64_t epoch, sess;
  char reason[16];
  size_t nr;

  assert_int_equal (fscanf (f, "%u %u %" SCNu64 " %" SCNu64 " %u %u %15s",
                            &mask, &open, &epoch, &sess, &known, &current,
                            reason), 7);
  nr = decide (mask, DEGRADED_ALLOW);
  if (strcmp (reason, "branch") == 0) {
    assert_non_null (strstr (d.why, "written in two ways"));
    return;
  }
  for (size_t i = 0; i < nr; i++)
    if (found[i].state == FOUND_CURRENT)
      got |= 1u << strtoul (found[i].name + 1, NULL, 10);
  /* With m >= k the model asks for less. */
  if (open && !d.open && m >= k && nr_bits (mask) <= k)
    open = false;
  if (open != d.open || epoch != d.sb.record.self.ballot.epoch ||
      sess != d.sb.record.self.ballot.session || known != d.in_force ||
      current != got)
    fail_msg ("set %zu (%#x) of the model: %s", line, mask, d.why);
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
    cmocka_unit_test (test_no_going_back),
    cmocka_unit_test (test_replace_in_two),
    cmocka_unit_test (test_epochs),
    cmocka_unit_test (test_old_image),
    cmocka_unit_test (test_old_image_is_not_covered),
    cmocka_unit_test (test_spare_has_no_part),
    cmocka_unit_test (test_target_has_no_part),
    cmocka_unit_test (test_fail_while_told),
    cmocka_unit_test (test_torn),
    cmocka_unit_test (test_addition_waits),
    cmocka_unit_test (test_fail_meanwhile),
    cmocka_unit_test (test_cursor),
    cmocka_unit_test (test_target_by_bitmap),
    cmocka_unit_test (test_named_only),
    cmocka_unit_test (test_meet),
    cmocka_unit_test (test_long_away),
    cmocka_unit_test (test_branch),
    cmocka_unit_test (test_unsound),
    cmocka_unit_test (test_create_cut_short),
    cmocka_unit_test (test_model),
  };

  if (argc > 1)
    states = argv[1];
  return cmocka_run_group_tests (tests, NULL, NULL);
}
