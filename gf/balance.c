/* gpuraid: of two coders, which one will finish a job first?
 *
 * The model.  A side works at some rate however many jobs it has.  One job
 * alone may be slower than that (it is small, and one processor does it),
 * and to all there is a fixed cost that does not keep the next job waiting
 * (the way to a device and back).  So with queue, in seconds, of jobs under
 * way that it has to wait for, a job takes
 *
 *     fixed + max (alone - fixed, queue + work / rate)
 *
 * Far does one job after the other; near shares its processors, so that a
 * small job waits for no more of each other one than its own length.  All
 * but the fixed part is stretched for as long as the other side is busy,
 * since both share the memory's bandwidth.
 *
 * What that leaves out is a factor, learnt from the jobs: see
 * gf/balance-learn.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <math.h>
#include <string.h>

#include "common/bits.h"
#include "gf/balance-internal.h"

/* To use both must promise this much more than one alone, for all jobs
 * together and for a job that is cut: a second part costs time that
 * nothing here accounts for.  Less for one job: what those that are cut take
 * is learnt.
 */
#define PAYS 1.03
#define CUT_PAYS 0.95
#define CUT_SECONDS 3e-6

/* To finish first behind a queue only moves the wait to those who come
 * later; with many threads that each wait for a job it is as bad.  So what
 * a job adds to the time of those that are there counts too, as so much of
 * its own.  With 1 near did too little of what it does well.
 */
#define HARM 0.7

/* ---- when a job would be done ----------------------------------------- */

/* Seconds that a side is busy: never more than what was not done yet, but
 * for one that is late, which won't end just now.
 */
static double
busy (const struct balance_side *s, double now)
{
  if (s->nr == 0)
    return 0;
  if (now > s->due)
    return s->backlog + MAX (now - s->due - s->backlog, 0);
  return MIN (s->due - now, s->backlog);
}

/* How long would side take for so many units of the job?  both: while the
 * other has the rest.  *harm: what that adds to the time of those that are
 * there.
 */
static double
estimate (const struct balance_question *q, unsigned side, size_t nr_units,
          bool both, double *harm)
{
  const struct balance_side *s = &q->b->side[side];
  struct balance_job job = *q->job;
  struct balance_solo a;
  double drain, fixed, queue, crowd, t, more;
  double factor = both ? q->cut_factor[side] : q->factor[side];

  job.work *= (double) nr_units / MAX (q->job->nr_units, 1);
  a = balance_solo (q->b, side, &job);
  drain = a.drain * factor;
  fixed = a.fixed * factor;
  queue = MAX (q->busy[side] - fixed, 0);
  crowd = MIN (queue, s->nr * drain);
  t = MAX (a.seconds * factor - fixed,
           drain + (side == NEAR ? crowd : queue));
  more = t * (s->stretch - 1);
  if (!both)
    more = MIN (more, q->busy[1 - side] * (1 - 1 / s->stretch));
  *harm = HARM * crowd;
  return fixed + t + more;
}

/* The seconds of it alone, and with the harm. */
static double
seconds (const struct balance_question *q, unsigned side, size_t nr_units,
         bool both)
{
  double harm;

  return estimate (q, side, nr_units, both, &harm);
}

static double
cost (const struct balance_question *q, unsigned side)
{
  double harm;
  double t = estimate (q, side, q->job->nr_units, false, &harm);

  return t + harm;
}

double
balance_rate (const struct balance *b, unsigned side, unsigned rows)
{
  return balance_measured_rate (b, side, rows) /
    balance_times (&b->side[side].all);
}

/* Is it worth while to keep both sides busy? */
static bool
pays (const struct balance *b, unsigned rows)
{
  double near = balance_rate (b, NEAR, rows), far = balance_rate (b, FAR, rows);

  return near / b->side[NEAR].stretch + far / b->side[FAR].stretch >
    PAYS * MAX (near, far);
}

/* With so many units far: seconds until all is done, and the harm. */
static double
cut_cost (const struct balance_question *q, size_t far_units)
{
  double harm[2], end[2];

  end[FAR] = estimate (q, FAR, far_units, true, &harm[FAR]);
  end[NEAR] = estimate (q, NEAR, q->job->nr_units - far_units, true,
                        &harm[NEAR]);
  return MAX (end[FAR], end[NEAR]) + harm[NEAR] + harm[FAR] + CUT_SECONDS;
}

/* The units for far, so that both end at the same time, as nearly as units
 * allow; 0 where there are none.  *t: what that costs.  One side takes
 * longer the more it gets, the other less long: so halve.
 *
 * least: what the job takes by one side alone.  Where far could not even
 * begin in that time there is nothing to look for, which is so for most of
 * the small jobs, and those are where the search would take a part of it.
 */
static size_t
cut (const struct balance_question *q, double least, double *t)
{
  size_t nr = q->job->nr_units, low = 0, high = nr;

  *t = INFINITY;
  if (q->cut_factor[FAR] * balance_fixed (&q->b->side[FAR].many) > least)
    return 0;
  while (high - low > 1) {
    size_t mid = low + (high - low) / 2;

    if (seconds (q, FAR, mid, true) > seconds (q, NEAR, nr - mid, true))
      high = mid;
    else
      low = mid;
  }
  if (low > 0)
    *t = cut_cost (q, low);
  if (low > 0 && high < nr) {
    double other = cut_cost (q, high);

    if (other < *t) {
      *t = other;
      return high;
    }
  }
  return low;
}

/* Where two gain nothing over one, the slower one (by what it does in all)
 * gets only what it ends sooner than the other could if it were idle.
 */
static unsigned
one_of_two (const struct balance_question *q)
{
  unsigned rows = q->job->rows;
  unsigned strong = balance_rate (q->b, FAR, rows) >
    balance_rate (q->b, NEAR, rows);
  struct balance_question idle = *q;

  idle.busy[NEAR] = idle.busy[FAR] = 0;
  if (cost (q, 1 - strong) <
      seconds (&idle, strong, q->job->nr_units, false))
    return 1 - strong;
  return strong;
}

/* What side would be given of the job. */
static void
plan (const struct balance_question *q, unsigned side, size_t nr_units,
      bool both, struct balance_part *part)
{
  struct balance_job job = *q->job;
  const double factor = both ? q->cut_factor[side] : q->factor[side];
  struct balance_solo a;

  job.work *= (double) nr_units / MAX (job.nr_units, 1);
  a = balance_solo (q->b, side, &job);
  *part = (struct balance_part) {
    .alike = both ? q->cut_alike[side] : q->alike[side], .cut = both,
    .expected = seconds (q, side, nr_units, both),
    .least = a.seconds * factor, .fixed = a.fixed * factor,
    .backlog = a.drain * factor,
  };
}

/* It gets what was planned. */
static void
give (struct balance *b, unsigned side, double now, struct balance_part *part)
{
  struct balance_side *s = &b->side[side];

  part->alike->given = now;
  part->alike->worked = b->worked;
  part->nr_jobs = b->nr_jobs;
  part->at = now;
  s->due = MAX (MAX (s->nr ? s->due : 0, now + part->fixed) + part->backlog,
                now + part->expected);
  if (balance_is_idle (b))
    b->began = now;
  s->nr++;
  s->backlog += part->backlog;
  s->given += part->backlog;
  part->queue = s->backlog;
  part->given = s->given;
}

static void
ask (struct balance_question *q, struct balance *b,
     const struct balance_job *job, double now)
{
  *q = (struct balance_question) { .b = b, .job = job, .now = now };
  q->idle = balance_is_idle (b);
  for (unsigned i = 0; i < 2; i++) {
    struct balance_side *s = &b->side[i];

    q->alike[i] = balance_alike (s, job, false);
    q->factor[i] = balance_factor (s, q->alike[i], now);
    q->busy[i] = busy (s, now);
    balance_rest (q->alike[i], now);
  }
}

/* What is known of such jobs cut: only where that may be done. */
static void
ask_cut (struct balance_question *q)
{
  for (unsigned i = 0; i < 2; i++) {
    struct balance_side *s = &q->b->side[i];

    q->cut_alike[i] = balance_alike (s, q->job, true);
    q->cut_factor[i] = balance_factor (s, q->cut_alike[i], q->now);
    balance_rest (q->cut_alike[i], q->now);
  }
}

void
balance_give (struct balance *b, unsigned side, const struct balance_job *job,
              double now, struct balance_part *part)
{
  struct balance_question q;

  balance_count_again (b);
  ask (&q, b, job, now);
  b->nr_jobs++;
  plan (&q, side, job->nr_units, false, part);
  part->idle = q.idle;
  give (b, side, now, part);
}

/* The best way for the job, NEAR, FAR or CUT, takes[] seconds each; and how
 * many units are far's if it is cut.
 */
static unsigned
best_way (struct balance_question *q, double *takes, size_t *cut_units)
{
  unsigned best;

  for (unsigned i = 0; i < 2; i++)
    takes[i] = cost (q, i);
  if (!q->idle && !pays (q->b, q->job->rows)) {
    *cut_units = 0;
    takes[CUT] = INFINITY;
    return one_of_two (q);
  }
  ask_cut (q);
  best = takes[FAR] < takes[NEAR];
  *cut_units = cut (q, takes[best], &takes[CUT]);
  return takes[CUT] < CUT_PAYS * takes[best] ? CUT : best;
}

/* ... or another one, to try it. */
static unsigned
choose (const struct balance_question *q, unsigned best, const double *takes)
{
  /* With others under way a job shows little of what it takes; and cut are
   * they all, or none.
   */
  if (best == CUT && !q->idle)
    return best;
  for (unsigned way = NEAR; way < NR_WAYS; way++)
    if (way != best && balance_is_trying (q, way, takes[way], takes[best]))
      return way;
  for (unsigned way = NEAR; way < (q->idle ? NR_WAYS : CUT); way++)
    if (way != best && balance_try_again (q, way, best, takes))
      return way;
  return best;
}

/* How much of the job each side gets. */
static void
plan_way (const struct balance_question *q, unsigned way, size_t cut_units,
          struct balance_choice *c)
{
  const size_t nr = q->job->nr_units;

  c->far_units = way == CUT ? cut_units : way == FAR ? nr : 0;
  if (c->far_units > 0)
    plan (q, FAR, c->far_units, way == CUT, &c->part[FAR]);
  if (c->far_units < nr)
    plan (q, NEAR, nr - c->far_units, way == CUT, &c->part[NEAR]);
}

static void
ask_and_choose (struct balance *b, const struct balance_job *job, double now,
                struct balance_choice *c)
{
  struct balance_question q;
  double takes[NR_WAYS];
  size_t cut_units;
  unsigned best, way, in_a_row;

  memset (c, 0, sizeof *c);
  balance_count_again (b);
  ask (&q, b, job, now);
  best = best_way (&q, takes, &cut_units);
  way = choose (&q, best, takes);
  in_a_row = balance_count_way (&q, way, way == best);
  plan_way (&q, way, cut_units, c);
  for (unsigned i = 0; i < 2; i++) {
    c->part[i].idle = q.idle;
    c->part[i].in_a_row = in_a_row;
  }
  balance_remember (&q, way, way == best, c);
}

void
balance_choose (struct balance *b, const struct balance_job *job, double now,
                struct balance_choice *c)
{
  b->nr_jobs++;
  if (!balance_again (b, job, now, c))
    ask_and_choose (b, job, now, c);
  if (c->far_units > 0)
    give (b, FAR, now, &c->part[FAR]);
  if (c->far_units < job->nr_units)
    give (b, NEAR, now, &c->part[NEAR]);
}

void
balance_cancel (struct balance *b, unsigned side,
                const struct balance_part *part)
{
  struct balance_side *s = &b->side[side];

  s->nr--;
  s->backlog = s->nr ? MAX (s->backlog - part->backlog, 0) : 0;
}
