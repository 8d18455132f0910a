/* gpuraid: one turn of the array's main loop, and periodic work.
 *
 * The timer is armed only while something may become due, so an idle array
 * sleeps, except for array/watch/watch.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/io/xfer.h"
#include "array/main-loop.h"
#include "array/ops/ops.h"
#include "array/rooms.h"

/* ---- the timer ----------------------------------------------------------- */

static void
rooms_tick (struct array *a, struct news *n)
{
  const uint64_t now = engine_now (a);

  a->tick_armed = false;
  for (const struct room *const *r = rooms; *r; r++)
    if ((*r)->tick && (!a->stopping || (*r)->ticks_to_end))
      (*r)->tick (a, now);
}

void
tick_fire (struct timer *t)
{
  struct array *a = list_item (t, struct array, tick);

  a->tick_news.run = rooms_tick;
  engine_post (a, &a->tick_news);
}

static void
arm (struct call *call)
{
  struct array *a = list_item (call, struct array, tick_call);

  loop_timer (a->loop, &a->tick, loop_now (a->loop) + limits.tick_ns);
}

static bool
tick_is_wanted (const struct array *a)
{
  for (const struct room *const *r = rooms; *r; r++)
    if ((*r)->wants_tick && (*r)->wants_tick (a))
      return true;
  return false;
}

/* ---- a turn -------------------------------------------------------------- */

static void
rooms_turn (struct array *a)
{
  for (const struct room *const *r = rooms; *r; r++)
    if ((*r)->turn)
      (*r)->turn (a);
  if (!a->tick_armed && a->loop && tick_is_wanted (a)) {
    a->tick_armed = true;
    a->tick_call.run = arm;
    engine_call (a, &a->tick_call);
  }
}

static void
rooms_grown (struct array *a)
{
  for (const struct room *const *r = rooms; *r; r++)
    if ((*r)->grown)
      (*r)->grown (a);
}

static void
rooms_reshaped (struct array *a)
{
  for (const struct room *const *r = rooms; *r; r++)
    if ((*r)->reshaped)
      (*r)->reshaped (a);
}

const struct engine_hooks main_loop_hooks = {
  .turn = rooms_turn,
  .last = op_start_jobs,
  .grown = rooms_grown,
  .reshaped = rooms_reshaped,
  .carry = xfers_carry,
};
