/* gpuraid: periodic work.
 *
 * The timer is armed only while something may become due, so an idle array
 * sleeps, except for array/watch/watch.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/change/join.h"
#include "array/dirty/dirty.h"
#include "array/engine/consistency.h"
#include "array/health/event.h"
#include "array/io/flush.h"
#include "array/io/progress.h"
#include "array/io/superblock.h"
#include "array/main-loop.h"
#include "array/ops/ops.h"
#include "array/passes/pass.h"
#include "array/request/space-retry.h"
#include "array/request/writeback.h"
#include "array/scrub/scrub.h"
#include "array/watch/overdue.h"
#include "array/watch/probe.h"

/* Messages of one kind are counted for this long. */
#define LOG_NS UINT64_C (60000000000)

static void
clear_retry (struct array *a, struct waiter *w)
{
  dirty_flushed (a, false);
}

/* Clear the dirty bits of regions that are no longer written. */
static void
clear_bits (struct array *a, uint64_t now)
{
  if (now - a->last_clear < a->clear_ns || !a->writable || !a->any_open ||
      !list_empty (&a->clear_waiter.link))
    return;
  a->last_clear = now;
  a->clear_waiter.run = clear_retry;
  flush_members (a, &a->clear_waiter);
}

static void
tick_news (struct array *a, struct news *n)
{
  const uint64_t now = loop_now (a->loop);

  a->tick_armed = false;
  engine_run_waiters (a, &a->pause_waiters);
  op_check_overdue (a, now);
  overdue_tick (a, now);
  if (a->stopping)
    return;
  probe_tick (a, now);
  writeback_tick (a, now);
  space_tick (a);
  if (now - a->last_log >= LOG_NS) {
    a->last_log = now;
    a->bad_sums_logged = 0;
  }
  save_tick (a);
  clear_bits (a, now);
}

void
tick_fire (struct timer *t)
{
  struct array *a = list_item (t, struct array, tick);

  a->tick_news.run = tick_news;
  engine_post (a, &a->tick_news);
}

static bool
is_needed (const struct array *a)
{
  if (a->nr_dirty > 0 || !a->consistency->is_idle (a) ||
      (a->writable && !a->consistency->is_ready (a)) ||
      !list_empty (&a->ops) || scrub_wants_tick (a) || pass_wants_tick (a) ||
      a->any_pread ||
      a->change || !list_empty (&a->commands) || save_is_busy (a) ||
      save_is_due (a) || a->flushing ||
      a->any_failing || (a->writable && a->nr_unsynced > 0) ||
      join_spare_waits (a) || event_wants_tick (a) ||
      progress_wants_tick (a))
    return true;
  return a->writable && !a->failed && a->any_open;
}

static void
arm (struct call *call)
{
  struct array *a = list_item (call, struct array, tick_call);

  loop_timer (a->loop, &a->tick, loop_now (a->loop) + limits.tick_ns);
}

void
tick_decide (struct array *a)
{
  if (a->tick_armed || a->loop == NULL || !is_needed (a))
    return;
  a->tick_armed = true;
  a->tick_call.run = arm;
  engine_call (a, &a->tick_call);
}
