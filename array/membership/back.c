/* gpuraid: degraded=force that goes back behind a record: which members may be
 * used, and which of them lack what others have written since (M8 of
 * docs/rules.md).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/membership/rules.h"
#include "common/plant.h"

bool
back_was_current (const struct found *f, const struct record *r)
{
  const struct superblock *accepted = found_accepted (f);
  const struct record *own;
  int dev;

  if (f->dev == -1 || accepted == NULL ||
      !device_set_has (&r->self.active, f->dev))
    return false;
  own = &accepted->record;
  if (ballot_equal (&own->self.ballot, &r->self.ballot))
    return true;
  dev = membership_find (accepted->device, &accepted->member_uuid);
  return own->self.ballot.epoch > r->self.ballot.epoch && dev != -1 &&
    device_set_has (&own->self.active, dev) &&
    !rules_unseen (&own->self.ballot, own->seen, own->nr_seen,
                   &r->self.ballot);
}

/* The newest record that a current member has accepted. */
static const struct superblock *
newest_used (const struct found *found, size_t nr)
{
  const struct superblock *newest = NULL;

  for (size_t i = 0; i < nr; i++) {
    const struct superblock *sb = found_accepted (&found[i]);

    if (found[i].state == FOUND_CURRENT &&
        (newest == NULL || ballot_newer (&sb->record.self.ballot,
                                         &newest->record.self.ballot)))
      newest = sb;
  }
  return newest;
}

/* Does the bitmap of a member with this superblock say what f lacks?  A record
 * that lists f, which has not accepted it, was not in force.
 */
static bool
is_marked (const struct found *f, unsigned slot, const struct superblock *sb)
{
  const struct record *r = &sb->record;
  const int dev =
    membership_find (sb->device, &found_newest (f)->member_uuid);
  const uint64_t whole =
    dev != -1 && device_set_has (&r->self.active, dev) ? r->whole :
    rules_whole (r, sb->device);

  return rules_covered (f, slot, &r->self.ballot, whole, r->seen, r->nr_seen);
}

/* Has another member of this slot, too, all that this one has, and is not
 * behind itself?
 */
static bool
is_doubled (const struct found *f, const struct found *found, size_t nr,
            const struct membership_decision *d)
{
  for (size_t i = 0; i < nr; i++)
    if (&found[i] != f && found[i].state == FOUND_CURRENT &&
        !found[i].behind &&
        d->sb.device[found[i].dev].slot == d->sb.device[f->dev].slot)
      return true;
  return false;
}

void
back_note_behind (struct found *found, size_t nr,
                  const struct membership_decision *d)
{
  const struct superblock *newest = newest_used (found, nr);

  if (newest == NULL)
    return;
  for (size_t i = 0; i < nr; i++) {
    struct found *f = &found[i];

    if (f->state != FOUND_CURRENT ||
        ballot_equal (&found_accepted (f)->record.self.ballot,
                      &newest->record.self.ballot))
      continue;
    if (is_marked (f, d->sb.device[f->dev].slot, newest) ||
        PLANTED ("member-behind-uncovered"))
      f->behind = !PLANTED ("member-behind-whole");
    else
      f->state = FOUND_STALE;
  }
  /* While a slot has two active members, one that is not behind has all. */
  for (size_t i = 0; i < nr; i++)
    if (found[i].state == FOUND_CURRENT && found[i].behind &&
        is_doubled (&found[i], found, nr, d) &&
        !PLANTED ("member-behind-doubled")) {
      found[i].state = FOUND_STALE;
      found[i].behind = false;
    }
}
