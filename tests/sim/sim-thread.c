/* gpuraid: tests: the engine thread of a simulated array.
 *
 * Its steps are events, so time passes and others run between them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/engine/thread.h"
#include "tests/sim/sim-array.h"

static void step (void *arg);

static void
step_soon (struct sim_array *sa)
{
  sa->thread_steps = true;
  sim_at (sa->sim, sim_array_pause_ns (sa), step, sa);
}

bool
sim_thread_decides (const struct sim_array *sa)
{
  return sa->a && atomic_load (&sa->a->engine.thread.state) == THREAD_DECIDES;
}

static void
step (void *arg)
{
  struct sim_array *sa = arg;

  sa->thread_steps = false;
  if (sa->dead || !sim_thread_decides (sa))
    return;
  if (sa->thread_rests) {       /* it found nothing; there may be news now */
    sa->thread_rests = false;
    if (engine_thread_rest (sa->a))
      return;
  }
  else
    sa->thread_rests = !engine_thread_step (sa->a) && sim_below (sa->sim, 2);
  step_soon (sa);
}

void
sim_thread_start (struct sim_array *sa)
{
  /* A crash after a clean stop drops an event that was under way. */
  sa->thread_steps = sa->thread_rests = false;
  if (sa->thread)
    atomic_store (&sa->a->engine.thread.state, THREAD_ASLEEP);
}

void
sim_thread_woken (struct sim_array *sa)
{
  if (!sa->dead && !sa->thread_steps && sim_thread_decides (sa))
    step_soon (sa);
}

void
sim_thread_stop (struct sim_array *sa)
{
  engine_thread_stop (sa->a);
  sa->thread_steps = false;
}
