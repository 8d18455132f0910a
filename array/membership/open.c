/* gpuraid: decide, from the superblocks found, which record counts and
 * which members hold current data.
 *
 * No record is ignored: one that may have been in force counts.  This is why
 * an opener never goes back behind an acknowledged write: two sets of a
 * quorum R overlap, and a set of R overlaps any k that went on without the
 * rest.  So an opener sees the epoch of every proposal that any member
 * accepted, and uses a greater one.  Two accepted records never tie, and
 * every record that was in force is an ancestor of the winner.
 *
 * docs/rules.md has the rules, M1 to M10; winner.c finds the record that
 * counts, back.c is for where force goes back, text.c makes the messages.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/membership/older-copy.h"
#include "array/membership/rules.h"
#include "common/bits.h"
#include "common/plant.h"

/* Where an interrupted scrub is, and what is paused: any member that the winner
 * lists knows all saves that have ended, a spare does not.
 */
static void
take_scrub (struct membership_decision *d, const struct found *found,
            size_t nr)
{
  const struct record *r = &d->sb.record;

  for (size_t i = 0; i < nr; i++) {
    const struct superblock *sb = found_accepted (&found[i]);

    if (found[i].dev == -1 || sb == NULL ||
        !device_set_has (&r->self.active, found[i].dev) ||
        !ballot_equal (&sb->record.self.ballot, &r->self.ballot))
      continue;
    d->sb.scrub = sb->scrub;
    d->sb.paused = sb->paused;
    return;
  }
}

static bool
named_as_base (const struct found *found, size_t nr,
               const struct ballot *winner)
{
  if (PLANTED ("member-base-unread"))
    return false;
  for (size_t i = 0; i < nr; i++)
    for (unsigned c = 0; c < SB_NR_COPIES; c++)
      if (found[i].result[c] == SB_OK &&
          ballot_equal (&found[i].sb[c].record.base.ballot, winner))
        return true;
  return false;
}

/* In both copies: if one alone has it, and rots, the member has not.  One that
 * is bad may have been the second.
 */
static bool
has_accepted (const struct found *f, const struct ballot *winner)
{
  const struct superblock *a = found_accepted (f);

  if (a == NULL || !ballot_equal (&a->record.self.ballot, winner))
    return false;
  for (unsigned c = 0; c < SB_NR_COPIES; c++)
    if (f->result[c] == SB_OK && copy_is_accepted (c) &&
        !ballot_equal (&f->sb[c].record.self.ballot, winner))
      return PLANTED ("member-one-copy");
  return true;
}

static bool
accepted_by_all (const struct found *found, size_t nr,
                 const struct superblock *sb)
{
  struct device_set left = sb->record.self.active;

  for (size_t i = 0; i < nr; i++)
    if (found[i].dev != -1 &&
        has_accepted (&found[i], &sb->record.self.ballot))
      device_set_remove (&left, found[i].dev);
  return device_set_empty (&left) || PLANTED ("member-in-force-assumed");
}

/* True if the member was proposed the winner, or a newer record by an opener
 * that had seen the winner and counted this member.  The epoch alone is not
 * enough: an old image of a member that is a rebuild's target is proposed
 * newer records too.
 */
static bool
was_proposed (const struct found *f, const struct ballot *winner)
{
  for (unsigned c = 0; c < SB_NR_COPIES; c++) {
    const struct superblock *sb = &f->sb[c];
    const struct record *r = &sb->record;
    int dev;

    if (f->result[c] != SB_OK)
      continue;
    if (ballot_equal (&r->self.ballot, winner))
      return true;
    dev = membership_find (sb->device, &sb->member_uuid);
    if (r->self.ballot.epoch > winner->epoch &&
        dev != -1 && device_set_has (&r->self.active, dev) &&
        !rules_unseen (&r->self.ballot, r->seen, r->nr_seen, winner))
      return true;
  }
  return false;
}

static bool
is_current (const struct found *f, const struct record *r,
            const struct ballot *base)
{
  const struct superblock *accepted = found_accepted (f);

  if (f->dev == -1 || accepted == NULL ||
      (!device_set_has (&r->self.active, f->dev) &&
       !PLANTED ("member-unlisted-current")))
    return false;
  if (ballot_equal (&accepted->record.self.ballot, &r->self.ballot))
    return true;
  return !PLANTED ("member-proposed-stale") &&
    accepted->record.self.ballot.epoch >= base->epoch &&
    (was_proposed (f, &r->self.ballot) ||
     PLANTED ("member-unproposed-current"));
}

/* The least cursor in any accepted copy of the winner; 0 if the target itself
 * holds none.
 */
static uint64_t
target_cursor (const struct found *found, size_t nr, const struct found *t,
               const struct ballot *winner)
{
  const struct superblock *own = found_accepted (t);
  uint64_t cursor = UINT64_MAX;

  if (own != NULL && PLANTED ("member-cursor-any"))
    return own->device[t->dev].cursor;
  if (own == NULL || (!ballot_equal (&own->record.self.ballot, winner) &&
                      !PLANTED ("member-cursor-not-own")))
    return 0;
  for (size_t i = 0; i < nr; i++)
    for (unsigned c = 0; c < SB_NR_COPIES; c++) {
      const struct superblock *sb = &found[i].sb[c];

      if (found[i].result[c] == SB_OK && copy_is_accepted (c) &&
          ballot_equal (&sb->record.self.ballot, winner))
        cursor = MIN (cursor, sb->device[t->dev].cursor);
    }
  return cursor;
}

/* Decide how much of a target's rebuild counts. */
static void
judge_target (struct found *f, const struct found *found, size_t nr,
              const struct membership_decision *d)
{
  const struct record *r = &d->sb.record;
  const struct device *dev = &d->sb.device[f->dev];
  const struct superblock *own = found_accepted (f);

  f->state = FOUND_TARGET;
  /* Others may have written since, below its cursor too. */
  if (f->older || (d->past.epoch && !PLANTED ("member-past-cursor")))
    return;
  f->cursor = target_cursor (found, nr, f, &r->self.ballot);
  if (PLANTED ("member-target-covered") ||
      (own != NULL &&
       ballot_equal (&own->record.self.ballot, &r->self.ballot)))
    f->covered = dev->by_bitmap;
}

/* Set the state of one member, given the winner. */
static void
judge (struct found *f, const struct found *found, size_t nr,
       const struct membership_decision *d, uint64_t active_slots)
{
  const struct record *r = &d->sb.record;
  const struct ballot *base =
    d->in_force ? &r->self.ballot : &r->base.ballot;
  const struct device *dev;

  f->state = FOUND_UNLISTED;
  if (f->dev == -1)
    return;
  dev = &d->sb.device[f->dev];
  if (!f->older &&
      (d->past.epoch ? back_was_current (f, r) : is_current (f, r, base))) {
    f->state = FOUND_CURRENT;
    return;
  }
  if (dev->slot < MAX_SLOTS && (!f->older || PLANTED ("copy-covered")))
    f->covered =
      rules_covered (f, dev->slot, &r->self.ballot,
                     rules_whole (r, d->sb.device),
                     r->seen, r->nr_seen);
  if (device_set_has (&r->self.active, f->dev))
    f->state = FOUND_STALE;
  else if (dev->state == DEVICE_REBUILDING)
    judge_target (f, found, nr, d);
  else if (dev->slot == SLOT_NONE)
    f->state = dev->state == DEVICE_FAILED ? FOUND_FAILED : FOUND_SPARE;
  else if ((active_slots & BIT (dev->slot)) &&
           !PLANTED ("member-replaced-back"))
    f->state = FOUND_UNLISTED;  /* replaced */
  else
    f->state = dev->state == DEVICE_FAILED ? FOUND_FAILED : FOUND_STALE;
}

/* True if a stays, of two current members in a slot.  The table decides.  If
 * it does not (an early version made the record), the newer one stays, which
 * the parent did not list.
 */
static bool
stays (const struct membership_decision *d, const struct found *a,
       const struct found *b)
{
  const struct device_set *parent = &d->sb.record.parent.active;

  if (d->sb.device[a->dev].replaced != d->sb.device[b->dev].replaced)
    return d->sb.device[b->dev].replaced;
  return !device_set_has (parent, a->dev);
}

/* Fill the slots.  The next record stores these decisions about the current
 * members.
 */
static void
fill_slots (const struct found *found, size_t nr,
            struct membership_decision *d)
{
  for (unsigned s = 0; s < MAX_SLOTS; s++)
    d->active[s] = d->other[s] = d->target[s] = -1;
  for (size_t i = 0; i < nr; i++) {
    unsigned slot;

    if (found[i].dev == -1 ||
        (slot = d->sb.device[found[i].dev].slot) >= MAX_SLOTS)
      continue;
    if (found[i].state == FOUND_TARGET)
      d->target[slot] = i;
    if (found[i].state != FOUND_CURRENT)
      continue;
    if (d->active[slot] == -1)
      d->active[slot] = i;
    else if (stays (d, &found[i], &found[d->active[slot]])) {
      d->other[slot] = d->active[slot];
      d->active[slot] = i;
    }
    else
      d->other[slot] = i;
  }
  for (size_t i = 0; i < nr; i++)
    if (found[i].state == FOUND_CURRENT) {
      struct device *dev = &d->sb.device[found[i].dev];

      dev->replaced = d->active[dev->slot] != (int) i;
    }
  d->nr_slots = 0;
  for (unsigned s = 0; s < MAX_SLOTS; s++)
    d->nr_slots += d->active[s] != -1;
  d->degraded = d->nr_slots < rules_counted_slots (&d->sb.record.self);
}

/* Count the devices of a set that were found, and those that are current.  An
 * older copy is not there: what the member knows may be newer.
 */
static void
count_set (const struct found *found, size_t nr,
           const struct device_set *set, unsigned *there, unsigned *current)
{
  *there = *current = 0;
  for (size_t i = 0; i < nr; i++)
    if (found[i].dev != -1 && !found[i].older &&
        device_set_has (set, found[i].dev)) {
      (*there)++;
      *current += found[i].state == FOUND_CURRENT;
    }
}

/* Check the quorum, and fill the numbers for the message. */
static void
count_quorum (const struct found *found, size_t nr,
              const struct membership_decision *d, struct quorum *q)
{
  const struct record *r = &d->sb.record;
  const unsigned k = r->self.k -
    (r->self.widening && PLANTED ("widen-winner-old-k"));
  const unsigned m = PLANTED ("parity-counts-at-once") ? r->self.m :
    rules_counted_slots (&r->self) - r->self.k;
  unsigned listed = 0, b;

  q->a = device_set_count (&r->self.active);
  q->need = PLANTED ("member-quorum-k") ? k : membership_quorum (k, q->a);
  count_set (found, nr, &r->self.active, &q->there, &q->current);
  q->data = d->nr_slots >= k || PLANTED ("member-slots-uncounted");
  q->ok = q->data && q->current >= q->need;

  /* With m >= k, the absent members can be as many as k.  Then more than k
   * must be found, unless every active member is current.  A member of added
   * parity that was never active can't know of them.
   */
  for (size_t i = 0; i < nr; i++)
    listed += found[i].dev != -1 && !found[i].older &&
      (!rules_is_first_slot (&r->self, d->sb.device[found[i].dev].slot) ||
       PLANTED ("parity-new-counts"));
  if (m >= k && listed <= k && q->current < q->a) {
    q->need = MAX (q->need, k + 1);
    q->ok = false;
  }
  q->base_ok = true;
  if (!d->in_force) {
    b = device_set_count (&r->base.active);
    q->base_need = PLANTED ("member-base-quorum-k") ? k :
      membership_quorum (PLANTED ("widen-base-new-k") ? k : r->base.k, b);
    q->base_need_current = b - MIN (b, q->base_need) + 1;
    count_set (found, nr, &r->base.active, &q->base_there,
               &q->base_current);
    q->base_ok = PLANTED ("member-base-uncounted") ||
      (q->base_there >= q->base_need &&
       q->base_current >= q->base_need_current);
  }
}

/* Judge the members by this record. */
static void
judge_by (struct found *found, size_t nr, const struct ballot *winner,
          struct membership_decision *d)
{
  uint64_t slots;

  winner_take (d, found, nr, winner);
  /* What was written since the older record was not marked as missed. */
  if (d->past.epoch && !PLANTED ("member-past-covered"))
    d->sb.record.whole = d->max_epoch + 1;
  for (size_t i = 0; i < nr; i++) {
    found[i].covered = found[i].behind = false;
    found[i].cursor = 0;
    found[i].dev = membership_find (d->sb.device,
                                    &found_newest (&found[i])->member_uuid);
  }
  older_copy_find (found, nr, &d->sb, d->past.epoch != 0);
  take_scrub (d, found, nr);
  d->in_force = named_as_base (found, nr, winner) ||
    accepted_by_all (found, nr, &d->sb);
  slots = rules_slots (d->sb.device, &d->sb.record.self.active);
  for (size_t i = 0; i < nr; i++)
    judge (&found[i], found, nr, d, slots);
  if (d->past.epoch)
    back_note_behind (found, nr, d);
  fill_slots (found, nr, d);
}

/* Have rows moved between these two, so that only the newer one tells where
 * they are?
 */
static bool
is_moved (const struct geometry *a, const struct geometry *b)
{
  return (a->k != b->k || a->widening != b->widening) &&
    !PLANTED ("widen-force-past");
}

/* Fewer than k slots are current: judge by the newest older record with which
 * enough are, or, if there is none, by the same again.
 */
static bool
go_past (struct found *found, size_t nr, struct membership_decision *d)
{
  const struct ballot newest = d->sb.record.self.ballot;
  const struct geometry g = d->sb.g;
  struct ballot b = newest, below;

  d->past = newest;
  for (;;) {
    below = b;
    if (!winner_find (found, nr, &below, &b))
      break;
    judge_by (found, nr, &b, d);
    if (d->nr_slots >= d->sb.g.k && !is_moved (&d->sb.g, &g))
      return true;
  }
  d->past = (struct ballot) { 0 };
  judge_by (found, nr, &newest, d);
  return false;
}

/* Decide by the counts, and say so. */
static void
decide (struct found *found, size_t nr, enum degraded_policy policy,
        struct membership_decision *d)
{
  const struct ballot newest = d->sb.record.self.ballot;
  struct quorum q;

  count_quorum (found, nr, d, &q);
  q.back = !q.data && go_past (found, nr, d) ?
    d->sb.record.self.ballot.epoch : 0;
  d->open = (q.data && (policy == DEGRADED_FORCE || (q.ok && q.base_ok)) &&
             !(policy == DEGRADED_REFUSE && d->degraded)) ||
    (q.back != 0 && policy == DEGRADED_FORCE);
  if (d->open) {
    say_notice (found, nr, policy, &q, d);
    return;
  }
  if (q.back) {
    d->past = (struct ballot) { 0 };
    judge_by (found, nr, &newest, d);
  }
  refuse_quorum (found, nr, policy, &q, d);
}

/* True if the members are sound, distinct and of one array, else see d->why. */
static bool
check_members (struct found *found, size_t nr, struct membership_decision *d)
{
  for (size_t i = 0; i < nr; i++) {
    found[i].state = FOUND_REFUSED;
    found[i].dev = -1;
    found[i].covered = found[i].older = found[i].behind = false;
    found[i].cursor = 0;
  }
  if (nr == 0) {
    refuse_none (d);
    return false;
  }
  for (size_t i = 0; i < nr; i++)
    if (refuse_unsound (&found[i], d))
      return false;
  return !refuse_unlike (found, nr, d);
}

void
membership_open (struct found *found, size_t nr, enum degraded_policy policy,
                 struct membership_decision *d)
{
  struct ballot winner;
  const struct ballot *other;

  memset (d, 0, sizeof *d);
  if (!check_members (found, nr, d))
    return;
  for (size_t i = 0; i < nr; i++)
    for (unsigned c = 0; c < SB_NR_COPIES; c++)
      if (found[i].result[c] == SB_OK)
        d->max_epoch = MAX (d->max_epoch,
                            found[i].sb[c].record.self.ballot.epoch);
  if (!winner_find (found, nr, NULL, &winner) ||
      d->max_epoch > UINT64_MAX / 2) {
    refuse_no_record (found, d);
    return;
  }
  judge_by (found, nr, &winner, d);
  for (size_t i = 0; i < nr; i++) {
    other = rules_branch (&found[i], &winner, d->sb.record.seen,
                          d->sb.record.nr_seen,
                          rules_listed (d->sb.device, found[i].dev));
    if (other != NULL) {
      refuse_branch (found, nr, &winner, other, d);
      return;
    }
  }
  decide (found, nr, policy, d);
}
