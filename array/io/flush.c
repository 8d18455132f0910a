/* gpuraid: flush of all members.
 *
 * One round runs at a time.  Later callers wait for the next round, which
 * they share.  A failed flush is never just retried: data written since the
 * last good one may be gone, so the member is taken out.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/engine/state.h"
#include "array/health/fail.h"
#include "array/io/flush.h"
#include "array/io/xfer.h"
#include "array/seats/seat.h"
#include "common/plant.h"

void
flush_members (struct array *a, struct waiter *w)
{
  list_move (&a->flush_waiters, &w->link);
}

static void
round_ended (struct array *a)
{
  /* A member failed in this round: first wait for the record without it. */
  if (!PLANTED ("flush-in-change") && !change_is_over (a, &a->flush_waiter))
    return;
  a->flushing = false;
  if (!a->failed)
    a->flushed_gen = a->flush_gen;
  engine_run_waiters (a, &a->flush_current);
}

static void
flush_retry (struct array *a, struct waiter *w)
{
  if (a->flushing && a->flush_pending == 0)
    round_ended (a);
}

static void
flush_done (struct array *a, struct xfer *x)
{
  struct seat *s = x->seat;

  if (x->error && !PLANTED ("flush-error-ignored"))
    seat_fail (a, s, "flush", x->error);
  else
    s->flushed_gen = x->write_gen;
  if (--a->flush_pending == 0)
    round_ended (a);
}

void
flush_decide (struct array *a)
{
  if (a->flushing || list_empty (&a->flush_waiters))
    return;
  a->flushing = true;
  a->flush_gen++;
  list_splice (&a->flush_current, &a->flush_waiters);

  a->flush_pending = 1;
  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct seat *s = a->seat[i];
    struct xfer *x;

    if (!seat_holds_data (s) || s->write_gen == s->flushed_gen ||
        (s->state == SEAT_TARGET && PLANTED ("target-unflushed")))
      continue;
    x = xfer_new (a, s, IO_FLUSH, flush_done);
    x->write_gen = s->write_gen;
    a->flush_pending++;
    a->counters.member_flush_ops++;
    xfer_start (a, x);
  }
  if (--a->flush_pending == 0)
    round_ended (a);
}

void
flush_init (struct array *a)
{
  list_init (&a->flush_waiters);
  list_init (&a->flush_current);
  list_init (&a->flush_waiter.link);
  a->flush_waiter.run = flush_retry;
  a->flush_gen = 1;
}
