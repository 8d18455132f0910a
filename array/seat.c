/* gpuraid: who sits in which slot, and how members fail.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array/change.h"
#include "array/lost.h"
#include "array/rebuild.h"
#include "array/seat.h"
#include "array/space.h"
#include "array/store.h"
#include "array/writeback.h"
#include "array/xfer.h"
#include "common/plant.h"

/* So many read errors in about a minute, or a lost path, and a member is
 * out; md has 20 an hour.
 */
#define MAX_READ_ERRORS 20

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
  const uint64_t stripe = line_stripe (a, no), pos = line_pos (a, no);

  *noread = *nowrite = 0;
  FOR_EACH_BIT (slot, a->odd_slots) {
    const unsigned role = layout_role (&a->g, stripe, slot);
    const struct seat *s = a->at[slot][0], *t = a->at[slot][1];

    if (s && !s->failing)
      continue;
    *noread |= BIT (role);
    if (t == NULL || !seat_writable_at (a, t, pos))
      *nowrite |= BIT (role);
  }
}

bool
line_is_unsynced (const struct array *a, uint64_t no)
{
  const uint64_t region = line_pos (a, no) / a->sb.l.region_len;

  return a->nr_unsynced > 0 && a->unsynced[region / 64] >> (region % 64) & 1;
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

/* Of two active seats at a slot, is s the one to read?  They may differ in
 * blocks that were in flight at a crash: it is the one that stays.
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

void
seats_changed (struct array *a)
{
  memset (a->at, 0, sizeof a->at);
  a->odd_slots = a->lost_slots = a->twice_slots = 0;
  a->any_failing = false;

  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct seat *s = a->seat[i], **at;

    a->any_failing |= s->failing && s->m;
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
      a->odd_slots |= BIT (slot);
    if (s == NULL || s->failing)
      a->lost_slots |= BIT (slot);
    else if (t && t->state == SEAT_ACTIVE && !t->failing)
      a->twice_slots |= BIT (slot);
  }
}

static struct seat *
add_seat (struct array *a)
{
  struct seat *s = calloc (1, sizeof *s);

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

/* Where all seats are taken: that of a member that was closed. */
static struct seat *
reuse_seat (struct array *a)
{
  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct seat *s = a->seat[i];
    uint8_t *page_place = s->page_place;

    if (s->m || seat_users (s) > 0)
      continue;
    memset (page_place, 0, a->nr_pages);
    memset (s, 0, sizeof *s);
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

void
seat_retire (struct array *a, struct seat *s)
{
  s->state = SEAT_IDLE;
  s->failing = true;
  seats_changed (a);
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

void
array_has_failed (struct array *a, const char *why)
{
  if (a->failed)
    return;
  a->failed = true;
  log_error ("the array has failed: %s; nothing is written any more", why);
  engine_run_waiters (a, &a->change_waiters);
  engine_run_waiters (a, &a->cell_waiters);
  writeback_give_up (a);
}

/* Has its slot another active member? */
static bool
is_doubled (const struct array *a, const struct seat *s)
{
  const struct seat *other = a->at[s->slot][0] == s ?
    a->at[s->slot][1] : a->at[s->slot][0];

  return other && other != s && other->state == SEAT_ACTIVE &&
    !other->failing;
}

bool
seat_can_go (const struct array *a, const struct seat *s)
{
  struct device_set gone = {{ 0, 0 }};

  if (s->state != SEAT_ACTIVE)
    return true;
  if (!is_doubled (a, s) && nr_good_slots (a) <= a->g.k)
    return false;
  for (unsigned i = 0; i < a->nr_seats; i++)
    if (a->seat[i] == s ||
        (a->seat[i]->failing && a->seat[i]->state != SEAT_IDLE))
      device_set_add (&gone, a->seat[i]->dev);
  return membership_can_lose (&a->membership, &gone);
}

static void
fail_active (struct array *a, struct seat *s)
{
  if (!is_doubled (a, s) && nr_good_slots (a) <= a->g.k) {
    array_has_failed (a, "too many members are lost");
    return;
  }
  s->failing = true;
  s->failed = true;
  seats_changed (a);
  if (a->writable || a->opening)
    change_request (a);
}

void
seat_fail (struct array *a, struct seat *s, const char *what, int error)
{
  s->nr_errors++;
  if (s->failing || a->failed || s->state == SEAT_IDLE)
    return;
  if (error)
    log_notice ("slot %u: %s: %s: %s; the member is taken out", s->slot,
                s->m->path, what, strerror (error));
  else
    log_notice ("slot %u: %s: %s", s->slot, s->m->path, what);
  if (s->state == SEAT_ACTIVE)
    fail_active (a, s);
  else {
    s->failing = true;
    s->failed = true;
    seats_changed (a);
    rebuild_lost_target (a, s);
    change_request (a);
  }
}

void
seat_read_error (struct array *a, struct seat *s, int error)
{
  s->nr_errors++;
  if (s->failing)
    return;
  log_debug ("slot %u: %s: read: %s", s->slot, s->m->path, strerror (error));
  s->read_errors++;
  if (s->state == SEAT_ACTIVE && nr_good_slots (a) <= a->g.k)
    return;
  if (error == ENODEV || error == ENXIO || error == ENOTCONN ||
      error == ESHUTDOWN)
    seat_fail (a, s, "read", error);
  /* Of one that has most of its data not while that is needed: parity
   * that may be wrong is none, and where rows are lost it has the rest.
   */
  else if (s->read_errors >= MAX_READ_ERRORS &&
           !(s->state == SEAT_ACTIVE && (a->nr_unsynced > 0 || lost_any (a))))
    seat_fail (a, s, "read", error);
}

/* ---- members that do not answer ----------------------------------------- */

/* Reads that began a second ago, and have not ended. */
#define PREAD_NS UINT64_C (500000000)
#define MINUTE_NS UINT64_C (60000000000)

/* What was counted since two turns ago began at least one turn ago. */
static void
check_preads (struct array *a, uint64_t now)
{
  if (now - a->pread_since < PREAD_NS)
    return;
  a->pread_since = now;
  a->pread_now = (a->pread_now + 1) % SEAT_PREADS;
  a->any_pread = false;
  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct seat *s = a->seat[i];
    const unsigned oldest = (a->pread_now + 1) % SEAT_PREADS;

    for (unsigned j = 0; j < SEAT_PREADS; j++)
      a->any_pread |= atomic_load (&s->preads[j]) > 0;
    if (!s->suspect && atomic_load (&s->preads[oldest]) > 0) {
      log_debug ("slot %u: a read is overdue, reads go round it", s->slot);
      s->suspect = true;
    }
  }
}

/* Zeroes take as long as there are many of them. */
static uint64_t
patience (const struct array *a, const struct xfer *x)
{
  const uint64_t second = UINT64_C (1000000000);

  return a->timeout_ns + (x->kind == IO_ZERO || x->kind == IO_TRIM ?
                          x->len / (16 * MIB) * second : 0);
}

/* Is a write or flush overdue? */
static bool
is_overdue (const struct array *a, const struct seat *s, uint64_t now)
{
  list_for_each (l, &s->xfers) {
    const struct xfer *x = list_item (l, struct xfer, seat_link);

    if (x->kind != IO_READ && !x->abandoned &&
        now > MAX (x->since, s->answered) + patience (a, x))
      return true;
  }
  list_for_each (l, &s->stores) {
    const struct store *st = list_item (l, struct store, link);

    if (!st->abandoned &&
        now > MAX (st->since, s->answered) + a->timeout_ns)
      return true;
  }
  return false;
}

static bool
may_be_overdue (const struct seat *s)
{
  return s->m && !s->failing && s->state != SEAT_IDLE;
}

/* Where more are overdue than can go, it is what they share that does not
 * answer: all are waited for.
 */
static bool
too_many_overdue (const struct array *a, uint64_t now)
{
  unsigned nr = 0;

  for (unsigned i = 0; i < a->nr_seats; i++) {
    const struct seat *s = a->seat[i];

    nr += may_be_overdue (s) && s->state == SEAT_ACTIVE &&
      is_overdue (a, s, now);
  }
  return nr > 0 && nr_good_slots (a) < a->g.k + nr;
}

/* A read of it was left behind, or takes its time in a client's thread. */
static bool
owes_a_read (const struct seat *s)
{
  list_for_each (l, &s->xfers)
    if (list_item (l, struct xfer, seat_link)->abandoned)
      return true;
  for (unsigned i = 0; i < SEAT_PREADS; i++)
    if (atomic_load (&s->preads[i]) > 0)
      return true;
  return false;
}

void
seats_tick (struct array *a, uint64_t now)
{
  const bool minute = now - a->last_minute >= MINUTE_NS;
  const bool wait = too_many_overdue (a, now);

  check_preads (a, now);
  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct seat *s = a->seat[i];

    if (!wait && may_be_overdue (s) && is_overdue (a, s, now) &&
        seat_can_go (a, s))
      seat_fail (a, s, "no answer to a write or flush", ETIMEDOUT);
    if (s->suspect && !owes_a_read (s))
      s->suspect = false;       /* what was overdue has come */
    if (minute)
      s->read_errors /= 2;
  }
  if (minute)
    a->last_minute = now;
  seats_close_retired (a);
}

void
seats_abandon_failing (struct array *a)
{
  for (unsigned i = 0; a->any_failing && i < a->nr_seats; i++) {
    struct seat *s = a->seat[i];

    if (s->failing && !PLANTED ("hang-waits") &&
        (atomic_load (&s->users) > 0 || space_is_wanted (a, s))) {
      xfers_abandon (a, s, ENODEV);
      stores_abandon (a, s, ENODEV);
    }
  }
}
