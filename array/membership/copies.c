/* gpuraid: membership and the copies on a member: which one is written first,
 * their content, what the copies of a returning member say, and the first
 * record.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>

#include "array/membership/older-copy.h"
#include "array/membership/rules.h"
#include "common/bits.h"
#include "common/plant.h"
#include "raidmap/uuid.h"

static bool
is_newer_copy (const struct superblock *a, const struct superblock *b)
{
  if (!ballot_equal (&a->record.self.ballot, &b->record.self.ballot))
    return ballot_newer (&a->record.self.ballot, &b->record.self.ballot);
  return older_copy_own_step (a) > older_copy_own_step (b) &&
    !PLANTED ("copy-step-unpaired");
}

enum sb_copy
found_first_copy (const struct found *f, bool accept)
{
  enum sb_copy a = accept ? SB_A2 : SB_A1, b = accept ? SB_B2 : SB_B1;

  if (f->result[a] == SB_OK && !PLANTED ("member-a-first") &&
      (f->result[b] != SB_OK || is_newer_copy (&f->sb[a], &f->sb[b])))
    return b;
  return a;
}

void
membership_create (struct superblock *sb, const uuid_bytes *uuid,
                   uint64_t session)
{
  struct record *r = &sb->record;

  memset (sb->device, 0, sizeof sb->device);
  memset (r, 0, sizeof *r);
  r->self.ballot.epoch = 1;
  r->self.ballot.session = session;
  r->whole = 1;
  r->self.k = sb->g.k;
  r->self.m = sb->g.m;
  for (unsigned slot = 0; slot < sb->g.k + sb->g.m; slot++) {
    sb->device[slot].uuid = uuid[slot];
    sb->device[slot].state = DEVICE_ACTIVE;
    sb->device[slot].slot = slot;
    device_set_add (&r->self.active, slot);
  }
  /* There is no earlier record. */
  r->base = r->parent = r->self;
}

void
membership_fill (const struct membership *ms, unsigned dev,
                 struct superblock *sb)
{
  bool coming =
    ms->phase == MEMBERSHIP_PROPOSE || ms->phase == MEMBERSHIP_ACCEPT;

  memcpy (sb->device, coming ? ms->next_device : ms->device,
          sizeof sb->device);
  sb->record = coming ? ms->next : ms->cur;
  sb_set_shape (sb, coming ? &ms->next_shape : &ms->shape);
  sb->member_uuid = sb->device[dev].uuid;
}

void
membership_set_cursor (struct membership *ms, unsigned dev, bool by_bitmap,
                       uint64_t cursor)
{
  assert (ms->phase == MEMBERSHIP_IDLE);
  assert (ms->device[dev].state == DEVICE_REBUILDING);
  ms->device[dev].by_bitmap &= by_bitmap;
  ms->device[dev].cursor = cursor;
}

void
membership_set_step (struct membership *ms, unsigned dev,
                     const uuid_bytes *uuid, uint32_t step)
{
  struct device *d[2] = { &ms->device[dev], &ms->next_device[dev] };

  for (unsigned i = 0; i < 2; i++)
    if (d[i]->state != DEVICE_NONE && uuid_equal (&d[i]->uuid, uuid))
      d[i]->step = step;
}

/* Of a member that the record lists, its maker has noted what is older; what it
 * has not seen it went past.
 */
static void
note (struct membership *ms, const struct found *f,
      const struct membership_decision *d, const struct ballot *r)
{
  const struct record *w = d ? &d->sb.record : NULL;

  if (d != NULL && !PLANTED ("member-past-seen") &&
      ((d->past.epoch && r->epoch > w->self.ballot.epoch) ||
       (r->epoch < w->self.ballot.epoch &&
        rules_listed (d->sb.device, f->dev) &&
        rules_unseen (&w->self.ballot, w->seen, w->nr_seen, r))))
    return;
  rules_seen_add (ms->seen, &ms->nr_seen, r);
}

void
rules_note_copies (struct membership *ms, const struct found *f,
                   const struct membership_decision *d)
{
  for (unsigned c = 0; c < SB_NR_COPIES; c++) {
    const struct record *r = &f->sb[c].record;

    if (f->result[c] != SB_OK)
      continue;
    ms->max_epoch = MAX (ms->max_epoch, r->self.ballot.epoch);
    note (ms, f, d, &r->self.ballot);
    note (ms, f, d, &r->parent.ballot);
    note (ms, f, d, &r->base.ballot);
    for (unsigned i = 0; i < r->nr_seen && !PLANTED ("member-seen-lost"); i++)
      note (ms, f, d, &r->seen[i]);
  }
}

int
membership_resembles (struct found *f, const struct superblock *own, char *why)
{
  struct membership_decision d;
  struct text t = { .buf = why };
  const struct superblock *sb;
  const char *what = NULL;

  d.why[0] = '\0';
  if (refuse_unsound (f, &d)) {
    text_add (&t, "%s: only gpuraid replace can take it, as a new member",
              d.why);
    return -1;
  }
  sb = found_newest (f);
  if (!uuid_equal (&sb->array_uuid, &own->array_uuid))
    what = "a member of another array: name one of this array";
  else if (rules_differs (sb, own) != NULL)
    what = "not like the other members of this array";
  if (what != NULL)
    text_add (&t, "%s: %s", f->name, what);
  return what != NULL ? -1 : 0;
}

/* Return why this member can't return to the running array, or NULL. */
static const char *
unwelcome (struct membership *ms, struct found *f)
{
  const struct superblock *sb = found_newest (f);

  if (rules_branch (f, &ms->cur.self.ballot, ms->seen, ms->nr_seen,
                    false) != NULL)
    return "the array was written in two ways: on it without the members in "
      "use, and on these: only gpuraid replace --force can take it, and what "
      "is on it is lost";
  f->dev = membership_find (ms->device, &sb->member_uuid);
  if (f->dev == -1)
    return "replaced since, no longer listed: only gpuraid replace --force "
      "can take it, as a new member";
  return NULL;
}

int
membership_meet (struct membership *ms, struct found *f,
                 const struct superblock *own, char *why)
{
  struct text t = { .buf = why };
  const char *what;
  const struct device *dev;

  f->state = FOUND_REFUSED;
  f->dev = -1;
  f->covered = f->older = f->behind = false;
  f->cursor = 0;
  if (membership_resembles (f, own, why) == -1)
    return -1;
  what = unwelcome (ms, f);
  if (what == NULL) {
    dev = &ms->device[f->dev];
    if (dev->state != DEVICE_FAILED && dev->state != DEVICE_MISSING)
      what = "in use already: there is nothing to do";
  }
  if (what != NULL) {
    f->dev = -1;
    text_add (&t, "%s: %s", f->name, what);
    return -1;
  }
  f->state = dev->state == DEVICE_FAILED ? FOUND_FAILED :
    dev->slot == SLOT_NONE ? FOUND_SPARE : FOUND_STALE;
  if (dev->slot < MAX_SLOTS)
    f->covered = rules_covered (f, dev->slot, &ms->cur.self.ballot,
                                rules_whole (&ms->cur, ms->device),
                                ms->seen, ms->nr_seen);
  f->older = older_copy_step (f) < dev->step && !PLANTED ("copy-readd-ignored");
  f->covered &= !f->older;
  rules_note_copies (ms, f, NULL);
  return 0;
}
