/* gpuraid: the record that counts when an array is opened, and what is known of
 * it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/membership/rules.h"
#include "array/plan/code.h"
#include "common/bits.h"
#include "common/plant.h"

static void
take_newer (struct ballot *best, const struct ballot *b,
            const struct ballot *below)
{
  if (ballot_newer (b, best) && (below == NULL || ballot_newer (below, b)))
    *best = *b;
}

bool
winner_find (const struct found *found, size_t nr, const struct ballot *below,
             struct ballot *winner)
{
  *winner = (struct ballot) { 0 };
  for (size_t i = 0; i < nr; i++)
    for (unsigned c = 0; c < SB_NR_COPIES; c++) {
      const struct record *r = &found[i].sb[c].record;

      if (found[i].result[c] != SB_OK)
        continue;
      if (copy_is_accepted (c) || PLANTED ("member-proposed-wins"))
        take_newer (winner, &r->self.ballot, below);
      if (winner->epoch != 0 && PLANTED ("member-first-wins"))
        return true;
      if (PLANTED ("member-named-ignored"))
        continue;
      take_newer (winner, &r->parent.ballot, below);
      take_newer (winner, &r->base.ballot, below);
    }
  return winner->epoch != 0;
}

/* The copy that says most about the winner: preferably an accepted copy of
 * it, then any copy of it, else one that names it.  A record that names it
 * has the same devices in its table, at the same places, and its base is
 * either the winner or the winner's base.
 */
static const struct superblock *
find_source (const struct found *found, size_t nr,
             const struct ballot *winner)
{
  const struct superblock *best = NULL;
  unsigned best_rank = 0;

  for (size_t i = 0; i < nr; i++)
    for (unsigned c = 0; c < SB_NR_COPIES; c++) {
      const struct superblock *sb = &found[i].sb[c];
      unsigned rank = 0;

      if (found[i].result[c] != SB_OK)
        continue;
      if (ballot_equal (&sb->record.self.ballot, winner))
        rank = copy_is_accepted (c) ? 4 : 3;
      else if (ballot_equal (&sb->record.parent.ballot, winner))
        rank = 2;
      else if (ballot_equal (&sb->record.base.ballot, winner))
        rank = 1;
      if (rank > best_rank) {
        best = sb;
        best_rank = rank;
      }
    }
  return best;
}

/* The winner is known by its name alone; this is the shape of the record that
 * names it.  Slots are only added and taken back at the end: for parity, which
 * does not rotate, or for data.  A record that ends a widening was proposed
 * when all rows had moved, so its shape does for the one before.
 */
static void
take_shape (struct sb_shape *shape, const struct superblock *sb)
{
  const struct ballot_set *self = &sb->record.self;
  const unsigned was = shape->k + shape->m, nr = ballot_set_nr_slots (self);

  shape->widening = self->k == shape->k && !PLANTED ("widen-end-unnamed") ?
    sb->g.widening : self->widening;
  if (was == nr || PLANTED ("parity-m-of-source"))
    return;
  if (self->m > shape->m)
    shape->fixed |= LOW_BITS (nr) & ~LOW_BITS (was);
  shape->fixed &= LOW_BITS (nr);
  shape->k = self->k;
  shape->m = self->m;
  shape->matrix_crc = code_parity_crc (sb->code, sb->w, shape->k, shape->m);
}

/* A device in a table of that record.  What a slot that is not there had is no
 * member, or a spare as it was before it got a slot for data.  If that slot was
 * taken back it has none, but the winner lists it.
 */
static void
take_slot (struct device *d, const struct ballot_set *self, bool listed,
           bool was_spare)
{
  const unsigned nr = ballot_set_nr_slots (self);

  if (d->slot == SLOT_NONE) {
    if (listed && !PLANTED ("widen-slot-unnamed"))
      d->slot = nr - 1;
  }
  else if (d->slot >= nr && !PLANTED ("parity-any-slot")) {
    if (was_spare && d->state == DEVICE_ACTIVE &&
        !PLANTED ("widen-spare-dropped"))
      *d = (struct device) {
        .uuid = d->uuid, .state = DEVICE_SPARE, .slot = SLOT_NONE,
        .step = d->step,
      };
    else
      *d = (struct device) { .slot = SLOT_NONE };
  }
}

static void
take_slots (struct superblock *sb)
{
  const struct ballot_set *self = &sb->record.self;
  const bool was_spare = sb->g.k > self->k;
  struct sb_shape shape;

  sb_get_shape (sb, &shape);
  take_shape (&shape, sb);
  sb_set_shape (sb, &shape);
  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++)
    take_slot (&sb->device[dev], self, device_set_has (&self->active, dev),
               was_spare);
}

void
winner_take (struct membership_decision *d, const struct found *found,
             size_t nr, const struct ballot *winner)
{
  struct record *r = &d->sb.record;

  d->sb = *find_source (found, nr, winner);
  if (ballot_equal (&r->self.ballot, winner))
    return;
  r->self = ballot_equal (&r->parent.ballot, winner) ? r->parent : r->base;
  r->parent = r->base;
  take_slots (&d->sb);

  /* Devices that the later record added are still targets.  Devices that it
   * dropped were `replaced', if there is another in the slot.
   */
  for (unsigned i = 0; i < SB_MAX_DEVICES; i++) {
    struct device *dev = &d->sb.device[i];

    if (device_set_has (&r->self.active, i)) {
      dev->replaced |= dev->state != DEVICE_ACTIVE;
      dev->state = DEVICE_ACTIVE;
    }
    else if (dev->state == DEVICE_ACTIVE)
      dev->state = DEVICE_REBUILDING;
    else
      continue;
    dev->by_bitmap = false;
    dev->cursor = 0;
  }
  rules_settle_replaced (d->sb.device);
}
