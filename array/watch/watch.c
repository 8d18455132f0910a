/* gpuraid: notice members that are gone while they are in use: files that were
 * deleted, and servers with another export.  In the same rounds members that
 * other hosts reach are shown that this server is alive.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdlib.h>

#include "array/health/fail.h"
#include "array/io/superblock.h"
#include "array/ops/ops.h"
#include "array/seats/seat.h"
#include "array/watch/look.h"
#include "array/watch/overdue.h"
#include "array/watch/probe.h"
#include "array/watch/watch.h"

#define INTERVAL_NS UINT64_C (3000000000)

struct watch {
  struct array *a;
  struct timer timer;
  struct news news;
  struct call call;
  /* The members that are asked; their seats count them as users. */
  unsigned nr;
  struct {
    struct seat *s;
    struct member *m;           /* its */
    int error;                  /* the answer */
  } asked[MAX_SEATS];
};

static int
watch_init (struct array *a, const struct config *c, const struct assembly *as)
{
  a->timeout_ns = c->timeout_ns;
  a->watch = calloc (1, sizeof *a->watch);
  if (a->watch == NULL)
    return -1;
  a->watch->a = a;
  a->watch_ns = INTERVAL_NS;
  return 0;
}

void
array_set_watch (struct array *a, uint64_t ns)
{
  a->watch_ns = ns;
}


/* ---- the end of a round -------------------------------------------------- */

static void
arm (struct call *call)
{
  struct watch *w = list_item (call, struct watch, call);

  loop_timer (w->a->loop, &w->timer, loop_now (w->a->loop) + w->a->watch_ns);
}

/* A server's reasons were reported where they were found. */
static void
deleted (struct array *a, struct seat *s, int error)
{
  const bool file = error == ENOENT;
  char name[SEAT_NAME_LEN];

  if (s->failing || s->state == SEAT_IDLE || a->failed)
    return;
  s->last_error = (struct seat_error) {
    .error = error, .operation = "check", .when = engine_now (a),
  };
  if (seat_can_fail (a, s))
    seat_fail (a, s, file ?
               "its file was deleted; the member is taken out" :
               "it can't be used; the member is taken out", 0);
  else if (!s->deleted && file)
    log_notice ("%s: its file was deleted; it stays in use, as too few members "
                "would remain: replace it before the server stops",
                seat_name (s, name));
  s->deleted |= file;
}

static void
answers (struct array *a, struct news *n)
{
  struct watch *w = a->watch;

  for (unsigned i = 0; i < w->nr; i++) {
    atomic_fetch_sub (&w->asked[i].s->users, 1);
    if (w->asked[i].error && !a->stopping)
      deleted (a, w->asked[i].s, w->asked[i].error);
  }
  w->call.run = arm;
  if (!a->ending)
    engine_call (a, &w->call);
}

/* ---- a round ------------------------------------------------------------- */

static void
ask (struct call *call)
{
  struct watch *w = list_item (call, struct watch, call);

  for (unsigned i = 0; i < w->nr; i++) {
    struct member *m = w->asked[i].m;

    w->asked[i].error = m->ops->check (m);
  }
  w->news.run = answers;
  engine_post (w->a, &w->news);
}

static void
begin (struct array *a, struct news *n)
{
  struct watch *w = a->watch;

  if (a->ending)
    return;
  save_beat (a);
  w->nr = 0;
  for (unsigned i = 0; i < a->nr_seats && !a->stopping; i++) {
    struct seat *s = a->seat[i];

    if (s->m == NULL || s->failing || s->state == SEAT_IDLE ||
        s->m->ops->check == NULL)
      continue;
    atomic_fetch_add (&s->users, 1);
    w->asked[w->nr].s = s;
    w->asked[w->nr++].m = s->m;
  }
  w->call.run = a->stopping ? arm : ask;
  engine_call (a, &w->call);
}

static void
fire (struct timer *t)
{
  struct watch *w = list_item (t, struct watch, timer);

  w->news.run = begin;
  engine_post (w->a, &w->news);
}

void
watch_start (struct array *a)
{
  a->watch->timer.fire = fire;
  if (save_has_beat (a))
    a->beat = 1;                /* from the first record on */
  if (a->watch_ns > 0)
    arm (&a->watch->call);
}

void
watch_stop (struct array *a)
{
  if (a->watch_ns > 0)
    loop_timer (a->loop, &a->watch->timer, 0);
}

/* ---- the room ------------------------------------------------------------ */

static void
watch_free (struct array *a)
{
  free (a->watch);
}

static void
watch_turn (struct array *a)
{
  overdue_abandon_failing (a);
  look_turn (a);
}

static void
watch_tick (struct array *a, uint64_t now)
{
  op_check_overdue (a, now);
  overdue_tick (a, now);
  look_tick (a);
  if (!a->stopping)
    probe_tick (a, now);
}

static bool
watch_wants_tick (const struct array *a)
{
  return a->any_pread || a->any_failing || a->any_stalled || a->lease.wanted ||
    !list_empty (&a->pause_waiters);
}

const struct room room_watch = {
  .init = watch_init, .free = watch_free, .turn = watch_turn,
  .tick = watch_tick, .ticks_to_end = true, .wants_tick = watch_wants_tick,
};
