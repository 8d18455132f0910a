/* gpuraid: the simulated clock and loop.
 *
 * Decides what happens next and when everything stops.  disk.c decides what
 * a disk does with an I/O.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/bits.h"
#include "common/log.h"
#include "member/sim/internal.h"

/* ---- Numbers ------------------------------------------------------- */

static uint64_t
rotate (uint64_t x, unsigned n)
{
  return x << n | x >> (64 - n);
}

/* xoshiro256**, seeded by splitmix64. */
uint64_t
sim_random (struct sim *sim)
{
  uint64_t *s = sim->random, r = rotate (s[1] * 5, 7) * 9, t = s[1] << 17;

  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = rotate (s[3], 45);
  return r;
}

static void
seed_random (struct sim *sim, uint64_t seed)
{
  for (int i = 0; i < 4; ++i) {
    uint64_t z = seed += UINT64_C (0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C (0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C (0x94d049bb133111eb);
    sim->random[i] = z ^ z >> 31;
  }
}

uint64_t
sim_below (struct sim *sim, uint64_t n)
{
  assert (n > 0);
  return (unsigned __int128) sim_random (sim) * n >> 64;
}

/* Draws nothing for 0: a test that needs no errors runs fast, and settings that
 * are off don't change the run.
 */
bool
sim_chance (struct sim *sim, unsigned ppm)
{
  return ppm > 0 && sim_below (sim, 1000000) < ppm;
}

void
sim_note (struct sim *sim, uint64_t a, uint64_t b)
{
  sim->trace = (rotate (sim->trace ^ a, 23) + b) *
    UINT64_C (0x9e3779b97f4a7c15);
}

uint64_t
sim_trace (const struct sim *sim)
{
  return sim->trace;
}

/* ---- Events -------------------------------------------------------- */

static bool
is_before (const struct event *a, const struct event *b)
{
  return a->at_ns < b->at_ns || (a->at_ns == b->at_ns && a->no < b->no);
}

void
sim_at (struct sim *sim, uint64_t delay_ns, void (*fn) (void *), void *arg)
{
  struct event e = {
    .at_ns = sim->now_ns + delay_ns, .no = sim->next_no++,
    .fn = fn, .arg = arg,
  };
  size_t i = sim->nr_events++;

  if (sim->nr_events > sim->max_events) {
    sim->max_events = sim->nr_events * 2 + 64;
    sim->events = realloc (sim->events,
                           sim->max_events * sizeof *sim->events);
    assert (sim->events != NULL);
  }
  while (i > 0 && is_before (&e, &sim->events[(i - 1) / 2])) {
    sim->events[i] = sim->events[(i - 1) / 2];
    i = (i - 1) / 2;
  }
  sim->events[i] = e;
}

static struct event
take_event (struct sim *sim)
{
  struct event top = sim->events[0];
  struct event *last = &sim->events[--sim->nr_events];
  size_t i = 0, child;

  while ((child = 2 * i + 1) < sim->nr_events) {
    if (child + 1 < sim->nr_events &&
        is_before (&sim->events[child + 1], &sim->events[child]))
      ++child;
    if (!is_before (&sim->events[child], last))
      break;
    sim->events[i] = sim->events[child];
    i = child;
  }
  sim->events[i] = *last;
  return top;
}

/* After a pause much is due: timers may be the first to go on. */
static bool
is_first (const struct sim *sim, uint64_t timer_ns)
{
  return sim->nr_events == 0 || timer_ns <= sim->events[0].at_ns ||
    (sim->timers_first && timer_ns <= sim->now_ns);
}

bool
sim_step (struct sim *sim)
{
  struct timer *t = sim->timers;
  const uint64_t timer_ns = t ? t->at_ns + sim->running.out : 0;

  if (sim->crashed)
    return false;
  if (t && is_first (sim, timer_ns)) {
    sim->timers = t->next;
    sim->now_ns = MAX (sim->now_ns, timer_ns);
    t->at_ns = 0;
    t->fire (t);
    return true;
  }
  sim->timers_first = false;
  if (sim->nr_events > 0) {
    struct event e = take_event (sim);

    sim->now_ns = MAX (sim->now_ns, e.at_ns);
    e.fn (e.arg);
    return true;
  }
  return false;
}

uint64_t
sim_now (const struct sim *sim)
{
  return running_at (&sim->running, sim->now_ns);
}

void
sim_pause (struct sim *sim, uint64_t ns)
{
  sim_note (sim, sim->now_ns, ns);
  running_beat (&sim->running, sim->now_ns);
  sim->now_ns += ns;
  running_beat (&sim->running, sim->now_ns);
  atomic_store (&sim->running.until, UINT64_MAX);       /* no beats: it runs */
  sim->timers_first = sim_below (sim, 2);
}

/* ---- Crashes ------------------------------------------------------- */

bool
sim_moment (struct sim *sim)
{
  assert (!sim->crashed);
  if (++sim->moments == sim->crash_at)
    sim->crashed = true;
  return sim->crashed;
}

uint64_t
sim_moments (const struct sim *sim)
{
  return sim->moments;
}

void
sim_crash_after (struct sim *sim, uint64_t n)
{
  sim->crash_at = n > 0 ? sim->moments + n : 0;
}

bool
sim_crashed (const struct sim *sim)
{
  return sim->crashed;
}

/* ---- Looking on ---------------------------------------------------- */

void
sim_watch (struct sim *sim, sim_watch_fn *fn, void *opaque)
{
  sim->watch = fn;
  sim->watch_opaque = opaque;
}

void
sim_look (struct sim_disk *d, enum io_kind kind, const uint8_t *data,
          uint64_t len, uint64_t off)
{
  if (d->sim->watch)
    d->sim->watch (d->sim->watch_opaque, d, kind, data, len, off);
}

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

static void
sim_add_buffer (struct loop *l, void *p, size_t len)
{
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
  .add_buffer = sim_add_buffer,
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
  seed_random (sim, seed);
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
