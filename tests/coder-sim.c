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
  list_append (&s->jobs, &j->link);
  s->nr_jobs++;
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

static const struct coder_ops sim_ops[2] = {
  { .name = "near", .start = sim_start, .submit = sim_submit,
    .free = sim_free, .shares = sim_shares },
  { .name = "far", .start = sim_start, .submit = sim_submit,
    .free = sim_free, .shares = sim_shares },
};

void
coder_sim_init (struct coder_sim *sim, double ceiling)
{
  *sim = (struct coder_sim) { .ceiling = ceiling, .now = 1000 };
  for (unsigned i = 0; i < 2; i++) {
    sim->side[i].coder.ops = &sim_ops[i];
    sim->side[i].sim = sim;
    sim->side[i].serial = i == 1;
    list_init (&sim->side[i].jobs);
  }
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
find_rates (struct coder_sim *sim)
{
  double rate[2], sum;

  for (unsigned i = 0; i < 2; i++)
    rate[i] = side_rates (&sim->side[i]);
  for (unsigned i = 0; i < 2; i++) {
    double shared = sim->side[i].shared;

    if (shared == 0 || rate[0] == 0 || rate[1] == 0)
      continue;
    list_for_each (l, &sim->side[i].jobs)
      list_item (l, struct sim_job, link)->rate *= shared;
  }
  for (unsigned i = 0; i < 2; i++) {
    rate[i] = 0;
    list_for_each (l, &sim->side[i].jobs)
      rate[i] += list_item (l, struct sim_job, link)->rate;
  }
  sum = rate[0] + rate[1];
  if (sum <= sim->ceiling)
    return;
  for (unsigned i = 0; i < 2; i++)
    list_for_each (l, &sim->side[i].jobs)
      list_item (l, struct sim_job, link)->rate *= sim->ceiling / sum;
}

/* To the next change; the job that ended, if one did. */
static struct sim_job *
advance (struct coder_sim *sim, struct sim_side **side)
{
  double t = INFINITY;
  struct sim_job *ended = NULL;

  find_rates (sim);
  for (unsigned i = 0; i < 2; i++)
    list_for_each (l, &sim->side[i].jobs) {
      struct sim_job *j = list_item (l, struct sim_job, link);

      if (j->latency > 0)
        t = MIN (t, j->latency);
      else if (j->rate > 0)
        t = MIN (t, j->left / j->rate);
    }
  sim->now += t;
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

bool
coder_sim_step (struct coder_sim *sim)
{
  while (!list_empty (&sim->side[0].jobs) ||
         !list_empty (&sim->side[1].jobs)) {
    struct sim_side *s;
    struct sim_job *j = advance (sim, &s);

    if (j) {
      struct coder_job *job = j->job;

      list_remove (&j->link);
      s->bytes += j->bytes;
      sim->ended[s - sim->side] = sim->now;
      free (j);
      job->done (job, s->fails ? EIO : 0);
      return true;
    }
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
