/* gpuraid: the simulated clock: numbers, events and moments.
 *
 * Decides what happens next and when everything stops.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <stdlib.h>

#include "common/bits.h"
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

void
sim_seed (struct sim *sim, uint64_t seed)
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
