/* gpuraid: the simulated loop, and what a crash ends.
 *
 * disk.c decides what a disk does with an I/O.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/log.h"
#include "member/sim/internal.h"

/* ---- The end of a process ------------------------------------------ */

static void
drop_others (struct sim *sim)
{
  struct list *l;

  while ((l = list_pop (&sim->others)) != NULL)
    flight_free (list_item (l, struct flight, link));
}

static void
end_process (struct sim *sim, bool power)
{
  struct crash c;
  bool alike;

  if (sim->verbose)
    log_debug ("sim: %s at %" PRIu64 " ns, moment %" PRIu64, power ?
               "power fails" : "killed", sim->now_ns, sim->moments);
  sim_note (sim, sim->now_ns, sim->moments);
  sim->crashed = false;
  sim->crash_at = 0;
  sim->nr_events = 0;
  sim->timers = NULL;
  drop_others (sim);
  /* Often all disks draw the same result: data that all of them lose would be
   * too rare otherwise.
   */
  alike = sim_below (sim, 2);
  sim_draw_crash (sim, &c);
  list_for_each (l, &sim->disks) {
    struct sim_disk *d = list_item (l, struct sim_disk, link);

    if (!alike)
      sim_draw_crash (sim, &c);
    if (power)
      sim_disk_crash (d, &c);
    else
      sim_disk_kill (d, &c);
  }
}

void
sim_crash (struct sim *sim)
{
  end_process (sim, true);
}

void
sim_kill (struct sim *sim)
{
  end_process (sim, false);
}

/* ---- The loop ------------------------------------------------------ */

static void
other_completes (void *arg)
{
  struct flight *f = arg;
  struct io *io = f->io;

  list_remove (&f->link);
  flight_free (f);
  io->member->ops->submit (io->member, io);
}

/* A member of another kind: its own submit, after a delay. */
static void
submit_other (struct sim *sim, struct io *io)
{
  struct flight *f = calloc (1, sizeof *f);

  assert (f != NULL);
  f->io = io;
  list_append (&sim->others, &f->link);
  sim_at (sim, 1000 + sim_below (sim, 100000), other_completes, f);
}

static void
sim_submit (struct loop *l, struct io **ios, size_t nr)
{
  struct sim *sim = (struct sim *) l;

  for (size_t i = 0; i < nr && !sim->crashed; ++i) {
    if (sim_is_disk (ios[i]->member))
      sim_disk_submit (sim_disk_of (ios[i]->member), ios[i]);
    else
      submit_other (sim, ios[i]);
  }
}

static void
sim_timer (struct loop *l, struct timer *timer, uint64_t at_ns)
{
  struct sim *sim = (struct sim *) l;
  struct timer **p;

  for (p = &sim->timers; *p; p = &(*p)->next) {
    if (*p == timer) {
      *p = timer->next;
      break;
    }
  }
  timer->at_ns = at_ns;
  if (at_ns == 0 || sim->crashed)
    return;
  for (p = &sim->timers; *p && (*p)->at_ns <= at_ns; p = &(*p)->next)
    ;
  timer->next = *p;
  *p = timer;
}

static uint64_t
sim_loop_now (struct loop *l)
{
  return sim_now ((struct sim *) l);
}

static uint64_t
sim_loop_paused (struct loop *l)
{
  return ((struct sim *) l)->running.paused;
}

static uint64_t
sim_loop_boot_time (struct loop *l)
{
  return ((struct sim *) l)->now_ns;
}

static void
sim_add_buffer (struct loop *l, void *p, size_t len)
{
}

static int
sim_release_buffer (struct loop *l, void *p, size_t len)
{
  return 0;
}

static void
sim_loop_free (struct loop *l)
{
}

static const struct loop_ops sim_ops = {
  .name = "sim",
  .submit = sim_submit,
  .timer = sim_timer,
  .now = sim_loop_now,
  .paused = sim_loop_paused,
  .boot_time = sim_loop_boot_time,
  .add_buffer = sim_add_buffer,
  .release_buffer = sim_release_buffer,
  .free = sim_loop_free,
};

struct loop *
sim_loop (struct sim *sim)
{
  return &sim->loop;
}

void
sim_verbose (struct sim *sim, bool verbose)
{
  sim->verbose = verbose;
}

struct sim *
sim_new (uint64_t seed)
{
  struct sim *sim = calloc (1, sizeof *sim);

  if (sim == NULL) {
    log_error ("calloc: %m");
    return NULL;
  }
  sim->loop.ops = &sim_ops;
  sim->now_ns = 1000000000;
  running_init (&sim->running);
  list_init (&sim->disks);
  list_init (&sim->others);
  sim_seed (sim, seed);
  return sim;
}

void
sim_free (struct sim *sim)
{
  if (sim == NULL)
    return;
  list_for_each (l, &sim->disks)
    sim_disk_free (list_item (l, struct sim_disk, link));
  drop_others (sim);
  free (sim->events);
  free (sim);
}
