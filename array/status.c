/* gpuraid: the status of a running array.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>
#include <string.h>

#include "array/change/grow.h"
#include "array/engine/consistency.h"
#include "array/health/entry.h"
#include "array/health/health.h"
#include "array/rooms.h"
#include "array/seats/seat.h"
#include "array/seats/slow.h"
#include "array/seats/unlocked.h"
#include "array/work.h"

/* Of the member that a slot has lost; zeroes if it is not listed. */
static uuid_bytes
uuid_of_slot (const struct array *a, unsigned slot)
{
  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++) {
    const struct device *d = &a->membership.device[dev];

    if (d->slot == slot &&
        (d->state == DEVICE_FAILED || d->state == DEVICE_MISSING ||
         d->state == DEVICE_ACTIVE))
      return d->uuid;
  }
  return (uuid_bytes) { 0 };
}

/* The member that this slot is rebuilt onto, or will be once the array is open
 * for writing; NULL: none.
 */
static const struct seat *
target_of (const struct array *a, unsigned slot)
{
  const struct seat *t = a->at[slot][1];

  if (t)
    return t;
  for (unsigned i = 0; a->found && i < a->nr_found; i++)
    if (a->found[i].state == FOUND_TARGET && a->seat[i]->slot == slot &&
        a->seat[i]->m && !a->seat[i]->failing)
      return a->seat[i];
  return NULL;
}

static struct array_entry
target_entry (const struct array *a, const struct seat *t)
{
  struct array_entry e = entry_of_seat (a, t);

  if (t->state == SEAT_IDLE)
    e.state = ENTRY_REBUILDING;
  return e;
}

/* The entry of a slot with no active seat. */
static void
empty_slot (const struct array *a, unsigned slot, struct array_entry *e)
{
  const struct seat *t = target_of (a, slot);
  const struct seat *gone = NULL;

  *e = (struct array_entry) { .slot = slot, .state = ENTRY_MISSING };
  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++)
    if (a->membership.device[dev].slot == slot &&
        a->membership.device[dev].state == DEVICE_FAILED)
      e->state = ENTRY_FAILED;
  e->uuid = uuid_of_slot (a, slot);
  for (unsigned i = 0; i < a->nr_seats; i++)
    if (a->seat[i]->slot == slot && a->seat[i]->state != SEAT_TARGET &&
        a->seat[i] != t)
      gone = a->seat[i];
  if (gone && (gone->failed || gone->failing))
    e->state = ENTRY_FAILED;
  if (gone) {
    e->errors = gone->nr_errors;
    e->last_error = entry_error (a, gone);
    entry_set_io (e, gone);
  }
  if (t && t->state != SEAT_ACTIVE)
    *e = target_entry (a, t);
  else
    e->path = entry_path (gone && gone->m ? gone->m->path :
                          a->slot_path[slot]);
}

/* Also one that will be a spare once the array is opened for writing. */
static bool
is_spare (const struct array *a, const struct seat *s)
{
  const struct device *d =
    s->dev < SB_MAX_DEVICES ? &a->membership.device[s->dev] : NULL;

  if (s->m == NULL || s->failing)
    return false;
  return s->state == SEAT_SPARE ||
    (!a->writable && d && d->slot == SLOT_NONE &&
     (d->state == DEVICE_SPARE || d->state == DEVICE_MISSING));
}

/* Spares that are listed and are not there. */
static void
add_missing_spares (const struct array *a, struct array_status *st)
{
  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++)
    if (seat_spare_is_missing (a, dev) && st->nr_entries < SB_MAX_DEVICES)
      st->entry[st->nr_entries++] = (struct array_entry) {
        .slot = SLOT_NONE, .state = ENTRY_MISSING,
        .uuid = a->membership.device[dev].uuid,
      };
}

static void
fill_entries (const struct array *a, struct array_status *st)
{
  for (unsigned slot = 0; slot < a->n; slot++) {
    const struct seat *s = a->at[slot][0];
    struct array_entry *e = &st->entry[st->nr_entries++];

    if (s && !s->failing)
      *e = entry_of_seat (a, s);
    else
      empty_slot (a, slot, e);
  }
  for (unsigned i = 0; i < a->nr_seats; i++)
    if (is_spare (a, a->seat[i]))
      st->entry[st->nr_entries++] = entry_of_seat (a, a->seat[i]);
  add_missing_spares (a, st);
  for (unsigned slot = 0; slot < a->n; slot++) {
    const struct seat *s = a->at[slot][0], *t = target_of (a, slot);

    if (s && !s->failing && t)
      st->entry[st->nr_entries++] = target_entry (a, t);
  }
}

/* Each of them was one read of a member. */
static void
add_reads (struct array_counters *c, struct array_io reads)
{
  c->read_ops += reads.ops;
  c->read_bytes += reads.bytes;
  c->member_read_ops += reads.ops;
  c->member_read_bytes += reads.bytes;
}

void
array_get_status (struct array *a, struct array_status *st)
{
  memset (st, 0, sizeof *st);
  st->nr_engines = coder_shares (a->coder, st->engine);
  grow_ask_sizes (a, false);
  engine_lock (a);
  st->state = health (a, &st->reasons);
  st->writable = a->writable;
  st->waits_for_writer = work_waits (a) && !a->resumes;
  st->recovering = (a->writable || a->opening) &&
    !a->consistency->is_ready (a);
  st->readonly_why = array_readonly_why (a);
  st->g = a->g;
  st->code = a->sb.code;
  st->w = a->sb.w;
  st->uuid = a->sb.array_uuid;
  strcpy (st->label, a->sb.label);
  st->multihost = a->sb.incompat & SB_INCOMPAT_MULTIHOST;
  st->epoch = a->membership.cur.self.ballot.epoch;
  st->coder = a->coder->ops->name;
  st->loop = a->loop ? a->loop->ops->name : "";
  if (a->loop)
    slow_compare (a);           /* the latencies are those of now */
  fill_entries (a, st);
  left_out_status (&a->left_out, st);
  st->counters = a->counters;
  add_reads (&st->counters, unlocked_reads (a));
  st->stages = a->stages;
  engine_lock_use (a, &st->lock);
  for (const struct room *const *r = rooms; *r; r++)
    if ((*r)->status)
      (*r)->status (a, st);
  engine_unlock (a);
}

void
array_status_free (struct array_status *st)
{
  for (unsigned i = 0; i < st->nr_entries; i++)
    free (st->entry[i].path);
  st->nr_entries = 0;
}
