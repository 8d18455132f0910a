/* gpuraid: the seats: which member is in which slot.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/engine/place.h"
#include "array/seats/seat.h"
#include "array/seats/unlocked.h"
#include "common/plant.h"
#include "common/threads/memory.h"
#include "raidmap/uuid.h"

const char *
seat_name (const struct seat *s, char buf[SEAT_NAME_LEN])
{
  if (s->slot != SLOT_NONE)
    snprintf (buf, SEAT_NAME_LEN, "slot %u: %s", s->slot, s->m->path);
  else
    snprintf (buf, SEAT_NAME_LEN, "spare: %s", s->m->path);
  return buf;
}

bool
seat_writable_at (const struct array *a, const struct seat *s, uint64_t pos)
{
  if (s->failing)
    return false;
  switch (s->state) {
  case SEAT_ACTIVE: return true;
  case SEAT_TARGET: return pos < s->window_end;
  default: return false;
  }
}

void
line_masks (const struct array *a, uint64_t no,
            uint64_t *noread, uint64_t *nowrite)
{
  const uint64_t pos = line_pos (a, no), zeroes = line_zeroes (a, no);

  *noread = *nowrite = 0;
  FOR_EACH_BIT (slot, a->irregular_slots) {
    const unsigned role = line_role (a, no, slot);
    const struct seat *s = a->at[slot][0], *t = a->at[slot][1];

    if ((s && !s->failing) || zeroes & BIT (role))
      continue;
    *noread |= BIT (role);
    if (t == NULL || !seat_writable_at (a, t, pos))
      *nowrite |= BIT (role);
  }
}

uint64_t
line_doubtful (const struct array *a, uint64_t no, uint64_t noread)
{
  const uint64_t data = LOW_BITS (a->g.k);
  uint64_t parity = LOW_BITS (a->n) & ~data & ~noread;

  if (!line_is_unsynced (a, no))
    return 0;
  for (unsigned n = nr_bits (noread & data); n > 0 && parity; n--)
    parity &= parity - 1;
  return parity;
}

/* True if s is the one to read, of two active seats at a slot.  They may
 * differ in blocks that were in flight at a crash: read the one that stays.
 */
static bool
is_better (const struct seat *s, const struct seat *than)
{
  if (s->failing != than->failing)
    return than->failing;
  if (PLANTED ("two-actives-first-listed"))
    return false;
  return than->replaced && !s->replaced;
}

/* The checksum table of a target says what that one has, not what the last
 * member of the slot had.
 */
static void
note_targets (struct array *a, struct seat *const old[MAX_SLOTS][2])
{
  for (unsigned slot = 0; slot < a->n; slot++)
    if (a->at[slot][0] == NULL && a->at[slot][1] != old[slot][1])
      a->new_targets |= BIT (slot);
}

void
seats_changed (struct array *a)
{
  struct seat *old[MAX_SLOTS][2];

  if (!PLANTED ("unlocked-left-open"))
    unlocked_close_all (a);
  memcpy (old, a->at, sizeof old);
  memset (a->at, 0, sizeof a->at);
  a->irregular_slots = a->lost_slots = a->doubled_slots = 0;
  a->any_failing = false;
  a->nr_spares = 0;

  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct seat *s = a->seat[i], **at;

    a->any_failing |= s->failing && s->m;
    a->nr_spares += s->state == SEAT_SPARE && s->m && !s->failing;
    if (s->slot >= a->n || s->m == NULL)
      continue;
    at = a->at[s->slot];
    if (s->state == SEAT_ACTIVE) {
      if (at[0] == NULL || is_better (s, at[0])) {
        if (at[0])
          at[1] = at[0];
        at[0] = s;
      }
      else
        at[1] = s;
    }
    else if (s->state == SEAT_TARGET && !s->failing)
      at[1] = s;
  }
  for (unsigned slot = 0; slot < a->n; slot++) {
    const struct seat *s = a->at[slot][0], *t = a->at[slot][1];

    if (s == NULL || s->failing || t)
      a->irregular_slots |= BIT (slot);
    if (s == NULL || s->failing)
      a->lost_slots |= BIT (slot);
    else if (t && t->state == SEAT_ACTIVE && !t->failing)
      a->doubled_slots |= BIT (slot);
  }
  a->no_spare &= a->lost_slots;
  note_targets (a, old);
}

static struct seat *
add_seat (struct array *a)
{
  struct seat *s = alloc_lines (sizeof *s);

  if (s == NULL)
    return NULL;
  s->page_place = calloc (a->nr_pages, 1);
  if (s->page_place == NULL) {
    free (s);
    return NULL;
  }
  a->seat[a->nr_seats++] = s;
  return s;
}

/* A late thread may still count a read, and take that back. */
static void
forget_reads (struct seat *s)
{
  for (unsigned i = 0; i < NR_LANES; i++) {
    memset (&s->lane[i].reads, 0, sizeof s->lane[i].reads);
    memset (&s->lane[i].fast, 0, sizeof s->lane[i].fast);
  }
}

/* If all seats are taken: reuse that of a closed member. */
static struct seat *
reuse_seat (struct array *a)
{
  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct seat *s = a->seat[i];
    uint8_t *page_place = s->page_place;

    if (s->m || seat_users (s) > 0)
      continue;
    memset (page_place, 0, a->nr_pages);
    memset (s, 0, offsetof (struct seat, lane));
    forget_reads (s);
    s->page_place = page_place;
    return s;
  }
  return NULL;
}

struct seat *
seat_new (struct array *a, struct member *m, unsigned dev, unsigned slot,
          enum seat_state state)
{
  struct seat *s =
    a->nr_seats < limits.max_seats ? add_seat (a) : reuse_seat (a);

  if (s == NULL)
    return NULL;
  s->a = a;
  s->m = m;
  s->dev = dev;
  s->slot = slot;
  s->state = state;
  list_init (&s->xfers);
  list_init (&s->stores);
  return s;
}

/* It is no longer used: its member is closed when its last I/O ends. */
static void
retire (struct array *a, struct seat *s)
{
  s->state = SEAT_IDLE;
  s->failing = true;
  seats_changed (a);
}

void
seat_follow (struct array *a, struct seat *s)
{
  const struct device *d;

  if (s->dev >= SB_MAX_DEVICES || seat_is_retired (s))
    return;
  d = &a->membership.device[s->dev];
  if (!uuid_equal (&d->uuid, &s->uuid)) {
    retire (a, s);         /* its place is free, or reused */
    return;
  }
  switch (d->state) {
  case DEVICE_ACTIVE:
    s->state = SEAT_ACTIVE;
    s->replaced = d->replaced;
    break;
  case DEVICE_SPARE:
    s->state = SEAT_SPARE;
    break;
  case DEVICE_REBUILDING:
    s->slot = d->slot;
    if (s->state != SEAT_TARGET) {
      s->state = SEAT_TARGET;
      s->cursor = s->window_end = d->cursor;
      s->by_bitmap = d->by_bitmap;
    }
    break;
  default:
    if (s->state != SEAT_IDLE) {
      s->failed = d->state == DEVICE_FAILED;
      retire (a, s);
    }
  }
}

struct close_call {
  struct call call;
  struct member *m;
};

static void
close_it (struct call *call)
{
  struct close_call *c = list_item (call, struct close_call, call);

  member_close (c->m);
  free (c);
}

void
seats_close_retired (struct array *a)
{
  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct seat *s = a->seat[i];
    struct close_call *c;

    if (!seat_is_retired (s) || s->m == NULL || seat_users (s) > 0)
      continue;
    c = calloc (1, sizeof *c);
    if (c == NULL)
      continue;
    if (s->slot < a->n && s->failed) {
      free (a->slot_path[s->slot]);
      a->slot_path[s->slot] = strdup (s->m->path);
    }
    c->call.run = close_it;
    c->m = s->m;
    s->m = NULL;
    seats_changed (a);
    engine_call (a, &c->call);
  }
}

unsigned
nr_good_slots (const struct array *a)
{
  return a->n - nr_bits (a->lost_slots);
}

bool
seat_spare_is_missing (const struct array *a, unsigned dev)
{
  const struct device *d = &a->membership.device[dev];

  if (d->slot != SLOT_NONE ||
      (d->state != DEVICE_MISSING && d->state != DEVICE_SPARE))
    return false;
  for (unsigned i = 0; i < a->nr_seats; i++) {
    const struct seat *s = a->seat[i];

    if (s->dev == dev && s->m && !s->failing &&
        memcmp (&s->uuid, &d->uuid, sizeof s->uuid) == 0)
      return false;
  }
  return true;
}

/* ---- the room ------------------------------------------------------------ */

static int
seats_init (struct array *a, const struct config *c, const struct assembly *as)
{
  hedge_init (&a->hedge, &c->hedge);
  if (!a->g.widening)
    unlocked_set_place (a);
  return 0;
}

static void
seats_free (struct array *a)
{
  for (unsigned i = 0; i < a->nr_seats; i++) {
    free (a->seat[i]->page_place);
    free (a->seat[i]);
  }
  for (unsigned i = 0; i < MAX_SLOTS; i++)
    free (a->slot_path[i]);
  unlocked_free (a);
}

/* Don't wait for I/O on a member that is no longer used. */
static bool
seats_is_busy (const struct array *a)
{
  for (unsigned i = 0; i < a->nr_seats; i++)
    if (seat_users (a->seat[i]) > 0 && !a->seat[i]->failing)
      return true;
  return false;
}

const struct room room_seats = {
  .init = seats_init, .free = seats_free, .is_busy = seats_is_busy,
};
