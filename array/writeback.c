/* gpuraid: which lines are written out, and when.
 *
 * A line goes out at once when it is full, when a flush waits for it or
 * a client for memory, and after a second in any case.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>

#include "array/cache.h"
#include "array/change.h"
#include "array/dirty.h"
#include "array/flush.h"
#include "array/lost.h"
#include "array/op.h"
#include "array/rebuild.h"
#include "array/request-internal.h"
#include "array/seat.h"
#include "array/space.h"
#include "array/writeback.h"

#define MAX_AGE_NS      UINT64_C (1000000000)
#define MINUTE_NS       UINT64_C (60000000000)

/* Lines taken at once when memory is short: their I/O is carried out
 * together.
 */
#define PRESSURE_LINES 64u

void
writeback_now (struct array *a, struct line *line)
{
  list_move (&a->out, &line->out_link);
}

void
writeback_give_up (struct array *a)
{
  list_for_each (l, &a->dirty) {
    struct line *line = list_item (l, struct line, link);

    line->want_out = false;
    tickets_end (a, &line->tickets, EIO, ALL_BLOCKS);
    engine_run_waiters (a, &line->waiters);
  }
}

/* Above three quarters of what lines may hold, the oldest go. */
static void
relieve (struct array *a)
{
  unsigned n = 0;

  if (a->nr_held <= a->max_held - a->max_held / 4 || !list_empty (&a->out))
    return;
  list_for_each (l, &a->dirty) {
    struct line *line = list_item (l, struct line, link);

    if (n++ == PRESSURE_LINES)
      break;
    if (list_empty (&line->out_link) && !line->stuck)
      writeback_now (a, line);
  }
}

static void
start_lines (struct array *a)
{
  if (change_busy (a) || a->failed || !a->writable)
    return;
  list_for_each (l, &a->out) {
    struct line *line = list_item (l, struct line, out_link);

    if (!op_may_write (a, line))
      continue;
    list_remove (&line->out_link);
    if (!op_out (a, line)) {
      list_append (&a->out, &line->out_link);
      break;
    }
  }
}

/* ---- from time to time ------------------------------------------------ */

static void
old_lines (struct array *a, uint64_t now)
{
  list_for_each (l, &a->dirty) {
    struct line *line = list_item (l, struct line, link);

    if (now < line->dirty_since + MAX_AGE_NS)
      break;
    if (list_empty (&line->out_link))
      writeback_now (a, line);
  }
}

/* What was overdue has come. */
static void
trust_again (struct array *a)
{
  for (unsigned i = 0; i < a->nr_seats; i++)
    if (a->seat[i]->suspect && seat_users (a->seat[i]) == 0)
      a->seat[i]->suspect = false;
}

static void
clear_retry (struct array *a, struct waiter *w)
{
  dirty_flushed (a, false);
}

static void
tick_news (struct array *a, struct news *n)
{
  const uint64_t now = loop_now (a->loop);

  a->tick_armed = false;
  engine_run_waiters (a, &a->pause_waiters);
  op_check_overdue (a, now);
  seats_check_overdue (a, now);
  if (a->stopping)
    return;
  old_lines (a, now);
  space_tick (a);
  lost_tick (a);
  trust_again (a);
  seats_close_retired (a);
  if (now - a->last_clear >= a->clear_ns && a->writable && a->any_open) {
    a->last_clear = now;
    a->clear_waiter.run = clear_retry;
    flush_members (a, &a->clear_waiter);
  }
  if (now - a->last_minute >= MINUTE_NS) {
    a->last_minute = now;
    for (unsigned i = 0; i < a->nr_seats; i++)
      a->seat[i]->read_errors /= 2;
  }
}

void
writeback_tick (struct timer *t)
{
  struct array *a = list_item (t, struct array, tick);

  a->tick_news.run = tick_news;
  engine_post (a, &a->tick_news);
}

static bool
needs_tick (const struct array *a)
{
  if (a->nr_dirty > 0 || !list_empty (&a->ops) || a->any_pread ||
      a->change || a->saving > 0 || a->flushing ||
      (a->writable && a->nr_unsynced > 0))
    return true;
  for (unsigned i = 0; i < a->nr_seats; i++)
    if (a->seat[i]->state == SEAT_IDLE && a->seat[i]->failing && a->seat[i]->m)
      return true;
  return a->writable && !a->failed && a->nr_unsynced == 0 && a->any_open;
}


static void
arm_tick (struct call *call)
{
  struct array *a = list_item (call, struct array, tick_call);

  loop_timer (a->loop, &a->tick, loop_now (a->loop) + limits.tick_ns);
}

void
writeback_decide (struct array *a)
{
  seats_abandon_failing (a);
  change_decide (a);
  relieve (a);
  start_lines (a);
  rebuild_decide (a);
  /* Last: a window with nothing to copy asks for a flush at once. */
  flush_decide (a);
  if (!a->tick_armed && a->loop && needs_tick (a)) {
    a->tick_armed = true;
    a->tick_call.run = arm_tick;
    engine_call (a, &a->tick_call);
  }
}
