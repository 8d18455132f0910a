/* gpuraid: two coders that only take time, a virtual one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/bits.h"
#include "tests/coder-sim.h"

struct sim_job {
  struct list link;
  struct coder_job *job;
  double bytes;
  double latency;               /* seconds before work begins */
  double left;                  /* bytes, times what rows cost */
  double rate;                  /* now */
};

static int
sim_start (struct coder *coder, void *arena, size_t arena_len)
{
  return 0;
}

/* -1 to 1 */
static double
random_part (struct coder_sim *sim)
{
  sim->random = sim->random * 1664525 + 1013904223;
  return (double) (sim->random >> 8) / (1 << 23) - 1;
}

/* How many times as long as it should does the next job take? */
static double
slowness (struct sim_side *s)
{
  struct coder_sim *sim = s->sim;
  const unsigned i = s - sim->side;
  struct sim_side *other = &sim->side[1 - i];
  double factor = 1;

  if (sim->now - sim->ended[i] > 1e-3)
    s->nr_warm = -4;
  else if (s->nr_others > 2)
    s->nr_warm = 0;
  s->nr_others = 0;
  other->nr_others++;
  if (s->nr_warm++ < 4)
    factor += s->cold;
  if (s->interrupted && s->nr_jobs % s->interrupted == 0)
    factor *= 4;
  return factor;
}

static void
sim_submit (struct coder *coder, struct coder_job *job)
{
  struct sim_side *s = (struct sim_side *) coder;
  struct sim_job *j = calloc (1, sizeof *j);

  assert (j != NULL);
  j->job = job;
  j->bytes = (double) job->nr_rects * job->matrix->cols * job->cell_len;
  j->latency = s->fixed;
  j->left = j->bytes * (1 + s->row_cost * (MAX (job->matrix->rows, 1) - 1));
  j->left *= 1 + s->noise * random_part (s->sim);
  s->nr_jobs++;
  j->left *= slowness (s);
  list_append (&s->jobs, &j->link);
}

static void
sim_free (struct coder *coder)
{
  assert (list_empty (&((struct sim_side *) coder)->jobs));
}

static unsigned
sim_shares (struct coder *coder, struct coder_share *share)
{
  const struct sim_side *s = (struct sim_side *) coder;

  *share = (struct coder_share) { .nr_jobs = s->nr_jobs, .bytes = s->bytes };
  snprintf (share->name, sizeof share->name, "%s", coder->ops->name);
  return 1;
}

static void
sim_leave (struct coder *coder, unsigned nr_threads)
{
  ((struct sim_side *) coder)->left = nr_threads;
}

static const struct coder_ops sim_ops[2] = {
  { .name = "near", .start = sim_start, .submit = sim_submit,
    .free = sim_free, .shares = sim_shares, .leave = sim_leave },
  { .name = "far", .start = sim_start, .submit = sim_submit,
    .free = sim_free, .shares = sim_shares },
};

void
coder_sim_init (struct coder_sim *sim, double ceiling)
{
  *sim = (struct coder_sim) { .ceiling = ceiling, .now = 1000 };
  list_init (&sim->works);
  for (unsigned i = 0; i < 2; i++) {
    sim->side[i].coder.ops = &sim_ops[i];
    sim->side[i].sim = sim;
    sim->side[i].serial = i == 1;
    list_init (&sim->side[i].jobs);
  }
}

void
coder_sim_work (struct coder_sim *sim, struct sim_work *w)
{
  assert (w->seconds > 0);
  list_append (&sim->works, &w->link);
}

/* The rate of each job of a side, were it alone; their sum. */
static double
side_rates (struct sim_side *s)
{
  double sum = 0;
  unsigned nr = 0;

  list_for_each (l, &s->jobs) {
    struct sim_job *j = list_item (l, struct sim_job, link);

    j->rate = 0;
    if (j->latency > 0 || (s->serial && nr > 0))
      continue;
    j->rate = s->single > 0 && j->bytes < s->small_len ? s->single : s->rate;
    sum += j->rate;
    nr++;
  }
  if (sum <= s->rate)
    return sum;
  list_for_each (l, &s->jobs)
    list_item (l, struct sim_job, link)->rate *= s->rate / sum;
  return s->rate;
}

static void
slow_down (struct sim_side *s, double factor)
{
  list_for_each (l, &s->jobs)
    list_item (l, struct sim_job, link)->rate *= factor;
}

/* What each that wants processors gets of them, as a part of what it
 * wants.
 */
static double
processors_part (const struct coder_sim *sim, const double rate[2])
{
  double wanted = 0;

  if (sim->processors == 0)
    return 1;
  for (unsigned i = 0; i < 2; i++)
    wanted += sim->side[i].threads * rate[i] / sim->side[i].rate;
  list_for_each (l, &sim->works)
    wanted += !list_item (l, struct sim_work, link)->waits;
  return wanted > sim->processors ? sim->processors / wanted : 1;
}

/* Of all jobs; returns that of works, in seconds a second. */
static double
find_rates (struct coder_sim *sim)
{
  double rate[2], part, sum = 0;

  for (unsigned i = 0; i < 2; i++)
    rate[i] = side_rates (&sim->side[i]);
  part = processors_part (sim, rate);
  for (unsigned i = 0; i < 2; i++) {
    struct sim_side *s = &sim->side[i];

    if (s->shared > 0 && rate[0] > 0 && rate[1] > 0)
      slow_down (s, s->shared);
    if (s->threads > 0)
      slow_down (s, part);
    list_for_each (l, &s->jobs)
      sum += list_item (l, struct sim_job, link)->rate;
  }
  for (unsigned i = 0; i < 2 && sum > sim->ceiling; i++)
    slow_down (&sim->side[i], sim->ceiling / sum);
  return part;
}

/* Seconds to the next change. */
static double
until_change (const struct coder_sim *sim, double work_rate)
{
  double t = INFINITY;

  for (unsigned i = 0; i < 2; i++)
    list_for_each (l, &sim->side[i].jobs) {
      const struct sim_job *j = list_item (l, struct sim_job, link);

      if (j->latency > 0)
        t = MIN (t, j->latency);
      else if (j->rate > 0)
        t = MIN (t, j->left / j->rate);
    }
  list_for_each (l, &sim->works) {
    const struct sim_work *w = list_item (l, struct sim_work, link);

    t = MIN (t, w->seconds / (w->waits ? 1 : work_rate));
  }
  return t;
}

static struct sim_work *
advance_works (struct coder_sim *sim, double t, double rate)
{
  struct sim_work *ended = NULL;

  list_for_each (l, &sim->works) {
    struct sim_work *w = list_item (l, struct sim_work, link);

    w->seconds -= t * (w->waits ? 1 : rate);
    if (ended == NULL && w->seconds < 1e-12)
      ended = w;
  }
  return ended;
}

/* The job that ended, if one did. */
static struct sim_job *
advance_jobs (struct coder_sim *sim, double t, struct sim_side **side)
{
  struct sim_job *ended = NULL;

  for (unsigned i = 0; i < 2; i++)
    list_for_each (l, &sim->side[i].jobs) {
      struct sim_job *j = list_item (l, struct sim_job, link);

      if (j->latency > 0)
        j->latency = j->latency - t > 1e-12 ? j->latency - t : 0;
      else
        j->left -= j->rate * t;
      if (ended == NULL && j->latency == 0 && j->rate > 0 && j->left < 1e-3) {
        ended = j;
        *side = &sim->side[i];
      }
    }
  return ended;
}

static void
end_job (struct coder_sim *sim, struct sim_side *s, struct sim_job *j)
{
  struct coder_job *job = j->job;

  list_remove (&j->link);
  s->bytes += j->bytes;
  sim->ended[s - sim->side] = sim->now;
  free (j);
  job->done (job, s->fails ? EIO : 0);
}

static void
watch_left (struct coder_sim *sim)
{
  struct sim_side *near = &sim->side[0];

  if (list_empty (&sim->side[1].jobs))
    near->most_left = MAX (near->most_left, near->left);
  else
    near->least_left = MIN (near->least_left, near->left);
}

bool
coder_sim_step (struct coder_sim *sim)
{
  watch_left (sim);
  while (!list_empty (&sim->side[0].jobs) ||
         !list_empty (&sim->side[1].jobs) || !list_empty (&sim->works)) {
    const double rate = find_rates (sim);
    const double t = MAX (until_change (sim, rate), 0);
    struct sim_side *s;
    struct sim_job *j = advance_jobs (sim, t, &s);
    struct sim_work *w = advance_works (sim, t, rate);

    sim->now += t;
    if (w) {
      list_remove (&w->link);
      w->done (w);
    }
    if (j)
      end_job (sim, s, j);
    if (w || j)
      return true;
  }
  return false;
}

static double
sim_now (void *opaque)
{
  return ((struct coder_sim *) opaque)->now;
}

static void
sim_pause (void *opaque)
{
  bool more = coder_sim_step (opaque);

  assert (more);
  (void) more;
}

void
coder_sim_clock (struct coder_sim *sim, struct coder_auto_clock *clock)
{
  *clock = (struct coder_auto_clock) { sim_now, sim_pause, sim };
}
