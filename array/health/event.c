/* gpuraid: tell the outside what happens.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>
#include <stdlib.h>

#include "array/health/entry.h"
#include "array/health/event.h"
#include "array/health/health.h"
#include "array/health/lost.h"
#include "array/health/outcome.h"
#include "common/cleanup.h"

#define MINUTE_NS UINT64_C (60000000000)

struct untold {
  struct list link;
  struct array_event event;
};

/* The next one; NULL: there is none, and a later one needs another call. */
static struct untold *
take (struct events *ev)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&ev->lock);
  struct list *l = list_pop (&ev->untold);

  ev->telling = l != NULL;
  return l ? list_item (l, struct untold, link) : NULL;
}

/* Without the array lock.  One thread at a time: two would tell of what
 * happened last first.
 */
static void
tell (struct call *call)
{
  struct events *ev = list_item (call, struct events, call);
  struct untold *u;

  while ((u = take (ev)) != NULL) {
    ev->fn (ev->opaque, &u->event);
    free (u->event.member.path);
    free (u);
  }
}

/* True if no thread is telling. */
static bool
add (struct events *ev, struct untold *u)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&ev->lock);
  const bool first = !ev->telling;

  list_append (&ev->untold, &u->link);
  ev->telling = true;
  return first;
}

void
array_set_events (struct array *a, array_event_fn fn, void *opaque)
{
  a->events->fn = fn;
  a->events->opaque = opaque;
}

static void
tell_more (struct array *a, enum array_event_kind kind, const struct seat *s,
           uint64_t number, const char *message)
{
  struct untold *u;

  if (a->events->fn == NULL || (u = calloc (1, sizeof *u)) == NULL)
    return;
  u->event.kind = kind;
  u->event.state = health (a, &u->event.reasons);
  u->event.number = number;
  snprintf (u->event.message, sizeof u->event.message, "%s", message);
  u->event.member.slot = SLOT_NONE;
  if (s && s->m)
    u->event.member = entry_of_seat (a, s);
  if (add (a->events, u))
    engine_call (a, &a->events->call);
}

void
event_tell (struct array *a, enum array_event_kind kind, const struct seat *s)
{
  tell_more (a, kind, s, 0, "");
}

void
event_change_failed (struct array *a, const struct seat *s,
                     const char *message)
{
  tell_more (a, ARRAY_EVENT_CHANGE_FAILED, s, 0, message);
}

/* True if nothing was told since then for a minute. */
static bool
is_time (const struct array *a, uint64_t told)
{
  return told == 0 || engine_now (a) - told >= MINUTE_NS;
}

static void
tell_at_times (struct array *a, enum array_event_kind kind,
               const struct seat *s, uint64_t *told)
{
  if (!is_time (a, *told))
    return;
  *told = engine_now (a);
  event_tell (a, kind, s);
}

void
event_no_space (struct array *a, const struct seat *s)
{
  tell_at_times (a, ARRAY_EVENT_NO_SPACE, s, &a->events->no_space_told);
}

void
event_stalled (struct array *a, const struct seat *s)
{
  tell_at_times (a, ARRAY_EVENT_STALLED, s, &a->events->stalled_told);
}

/* ---- corruption ---------------------------------------------------------- */

static uint64_t
nr_corrupt (const struct array *a)
{
  return a->counters.corrupt_found + a->counters.corrupt_table_pages;
}

/* The member with most of what is new. */
static const struct seat *
find_guilty (struct array *a)
{
  const struct seat *guilty = NULL;
  uint64_t most = 0;

  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct seat *s = a->seat[i];
    const uint64_t nr = s->nr_bad_sums - MIN (s->told_bad_sums, s->nr_bad_sums);

    s->told_bad_sums = s->nr_bad_sums;
    if (s->m && nr > most) {
      guilty = s;
      most = nr;
    }
  }
  return guilty;
}

static void
tell_corruption (struct array *a)
{
  struct events *ev = a->events;
  const uint64_t nr = nr_corrupt (a);

  if (nr == ev->corrupt || !is_time (a, ev->corrupt_told))
    return;
  ev->corrupt_told = engine_now (a);
  tell_more (a, ARRAY_EVENT_CORRUPTION, find_guilty (a), nr - ev->corrupt, "");
  ev->corrupt = nr;
}

static bool
event_wants_tick (const struct array *a)
{
  return a->events->fn && nr_corrupt (a) != a->events->corrupt && !a->stopping;
}

/* ---- the state ----------------------------------------------------------- */

/* Tell that the state has become worse, and that corruption was found, that
 * once a minute at most.
 */
static void
event_turn (struct array *a)
{
  struct events *ev = a->events;
  enum array_state state;
  unsigned reasons;

  if (ev->fn == NULL)
    return;
  tell_corruption (a);
  state = health (a, &reasons);
  if ((reasons & ~(ARRAY_WHY_NO_SPACE | ARRAY_WHY_STALLED)) == 0)
    state = ARRAY_HEALTHY;      /* they have events of their own */
  if (state == ev->state)
    return;
  if (state > ev->state)
    event_tell (a, state == ARRAY_FAILED ? ARRAY_EVENT_FAILED :
                ARRAY_EVENT_DEGRADED, NULL);
  ev->state = state;
}

/* ---- the room ------------------------------------------------------------ */

static int
event_init (struct array *a, const struct config *c, const struct assembly *as)
{
  a->events = calloc (1, sizeof *a->events);
  if (a->events == NULL)
    return -1;
  pthread_mutex_init (&a->events->lock, NULL);
  list_init (&a->events->untold);
  a->events->call.run = tell;
  return lost_init (a, as);
}

static void
event_free (struct array *a)
{
  if (a->events)
    pthread_mutex_destroy (&a->events->lock);
  free (a->events);
  lost_free (a);
}

static void
event_status (const struct array *a, struct array_status *st)
{
  const struct failed_change *f = outcome_last (a);

  st->lost_rows = lost_rows_count (a);
  if (f == NULL)
    return;
  memcpy (st->failed_change, f->text, sizeof st->failed_change);
  if (a->loop)
    st->failed_change_ago_ns = engine_now (a) - f->when;
}

const struct room room_health = {
  .init = event_init, .free = event_free, .turn = event_turn,
  .wants_tick = event_wants_tick, .status = event_status,
  .reshaped = lost_reshaped,
};
