/* gpuraid: while a member has no space: what is tried again, and which clients
 * get ENOSPC.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>

#include "array/cache/cache.h"
#include "array/cache/ticket.h"
#include "array/change/change.h"
#include "array/engine/consistency.h"
#include "array/engine/state.h"
#include "array/io/again.h"
#include "array/io/store.h"
#include "array/io/xfer.h"
#include "array/ops/ops.h"
#include "array/request/internal.h"
#include "array/request/space-retry.h"
#include "common/plant.h"

/* Retries when the array stops. */
#define STOP_TRIES 3u

static void
tell_line (struct array *a, struct line *line)
{
  if (list_empty (&line->tickets))
    return;
  /* Also if a ticket stays: readers and writers of the line don't wait for
   * space.
   */
  line->want_out = false;
  tickets_no_space (a, &line->tickets);
  engine_run_waiters (a, &line->waiters);
}

/* A record that a round of flushes waits for has no space: end the requests
 * that wait for the round with ENOSPC, except those that wait for space.  The
 * client of each is asleep.
 */
static void
tell_flushes (struct array *a)
{
  list_for_each (l, &a->flushes) {
    struct request *r = list_item (l, struct request, flush_link);

    if (r->flags & ARRAY_WAIT && !a->waits_ended && !PLANTED ("enospc-at-once"))
      continue;
    list_remove (&r->flush_link);
    list_remove (&r->waiter.link);
    r->error = ENOSPC;
    r->phase = R_DONE;
    r->asleep = false;
    engine_wake (a, &r->wake_call);
  }
}

/* Since when some member has no space; UINT64_MAX: none. */
static uint64_t
short_since (const struct array *a)
{
  uint64_t since = UINT64_MAX;

  for (unsigned i = 0; i < a->nr_seats; i++)
    if (a->seat[i]->no_space)
      since = MIN (since, a->seat[i]->no_space_since);
  return since;
}

/* The cache is full of what waits for space, or a line is: writes that have not
 * begun for as long as a member may take to answer get ENOSPC, except those
 * that wait for space.
 */
static void
tell_held (struct array *a)
{
  const uint64_t since = short_since (a), now = engine_now (a);

  if (since == UINT64_MAX || PLANTED ("write-waits"))
    return;
  list_for_each (l, &a->held) {
    struct request *r = list_item (l, struct request, held_link);

    if (!r->asleep || (r->flags & ARRAY_WAIT && !a->waits_ended) ||
        now < MAX (r->held_since, since) + a->timeout_ns)
      continue;
    list_remove (&r->held_link);
    request_fail (r, ENOSPC);
    list_move (&a->engine.ready, &r->waiter.link);
  }
}

/* No line is written out, as what moves alone has no space. */
static bool
waits_for_move (const struct array *a)
{
  return a->moving.alone && a->ops_held && !PLANTED ("widen-flush-waits");
}

/* Tell flushes that wait for writes without space, and for lines that can't
 * be written out because of them.
 */
static void
tell (struct array *a)
{
  const bool stuck = a->consistency->is_stuck (a) || waits_for_move (a);

  list_for_each (l, &a->no_space) {
    struct xfer *x = list_item (l, struct xfer, seat_link);

    if (x->of_op) {
      op_no_space (a, x->owner);
      /* Newer blocks of the line wait for it. */
      if (op_line (x->owner))
        tell_line (a, op_line (x->owner));
    }
    else
      ops_no_space (a);
  }
  if (!list_empty (&a->no_space_stores) && !change_is_over (a, NULL))
    tell_flushes (a);
  /* For instance a page of dirty bits, for which any line may wait. */
  if (!list_empty (&a->no_space_stores) || stuck)
    ops_no_space (a);
  else if (op_has_credit (a))
    return;
  list_for_each (l, &a->dirty)
    tell_line (a, list_item (l, struct line, link));
}

/* Find seats that have space again, whose retries have all succeeded. */
static void
note_space (struct array *a)
{
  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct seat *s = a->seat[i];

    if (!s->no_space || xfers_want_space (a, s) ||
        stores_want_space (a, s))
      continue;
    s->no_space = false;
    if (s->m && !s->failing)
      log_notice ("slot %u: %s: there is space again", s->slot, s->m->path);
  }
}

bool
space_stop (struct array *a)
{
  struct list *l;

  if (space_none_waits (a))
    return true;
  if (!a->failed && a->stop_tries++ < STOP_TRIES) {
    space_try_again (a);
    return false;
  }
  array_set_failed (a, "it stops with no space left on a member");
  while ((l = list_pop (&a->no_space)) != NULL)
    xfer_give_up (a, list_item (l, struct xfer, seat_link), ENOSPC);
  while ((l = list_pop (&a->no_space_stores)) != NULL)
    store_give_up (a, list_item (l, struct store, link), ENOSPC);
  return true;
}

void
space_tick (struct array *a)
{
  note_space (a);
  tell_held (a);
  op_zeroes_again (a);
  if (space_none_waits (a))
    return;
  if (a->forced_end) {
    (void) space_stop (a);
    return;
  }
  tell (a);
  a->consistency->no_space (a);
  change_no_space (a);
  space_try_again (a);
}
