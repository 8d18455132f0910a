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
 * What that leaves out (other shapes of job, processors that others use, a
 * device that is lost and replaced by something slow) is a factor, learnt
 * from the jobs: one for the side, times one for those alike.  In which
 * order a side did its jobs is not known; so a job is off only where it
 * took less than alone, or more than if all that was there before it and
 * all that came while it was there had gone first.  Learning from each
 * job's distance to what was expected did not work: under load it learnt
 * the errors of the model of the queue, and drove all jobs to one side.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <math.h>
#include <string.h>

#include "common/bits.h"
#include "gf/balance-internal.h"

/* To use both must promise this much more than one alone, for all jobs
 * together and for a job that is cut: a second part costs time that
 * nothing here accounts for.
 */
#define PAYS 1.03
#define CUT_PAYS 0.9
#define CUT_SECONDS 3e-6

/* To finish first behind a queue only moves the wait to those who come
 * later; with many threads that each wait for a job it is as bad.  So what
 * a job adds to the time of those that are there counts too, as so much of
 * its own.  With 1 near did too little of what it does well.
 */
#define HARM 0.7

/* One job is no proof: it may have been interrupted.  Errors count as no
 * more than a factor of 2, and as so much of that; more while little is
 * known.
 */
#define MOST_ERROR 0.7
#define LEARN_ALL 0.06
#define LEARN_ALIKE 0.12
#define LEARN_FIRST 0.6
#define LEARN_FAILED 1.5
/* Never beyond a factor of 60, and of 8 for those alike. */
#define MAX_ALL 4.1
#define MAX_ALIKE 2.1
/* What was learnt is forgotten in so many seconds without a job: else a
 * side that was found slow once would never be tried again.
 */
#define FORGET 20.0
/* Where the other side would not take longer than so much more it is tried
 * once in so many seconds: what was measured at the start may be wrong.
 */
#define TRY_SECONDS 1.0
#define TRY_FACTOR 1.5

/* ---- what was learnt -------------------------------------------------- */

static unsigned
log_2 (double x)
{
  return x >= 2 ? ilogb (x) : 0;
}

static struct balance_error *
alike (struct balance_side *s, const struct balance_job *job)
{
  unsigned rows = MIN (log_2 (job->rows), BALANCE_ROWS - 1);
  unsigned size = MIN (log_2 (job->work / 8192), BALANCE_SIZES - 1);

  return &s->alike[job->crc][rows][size];
}

static void
forget (struct balance_error *e, double now)
{
  double idle = now - e->at;

  if (e->log == 0)
    e->at = now;
  else if (idle > FORGET / 64) {
    e->log *= exp (-idle / FORGET);
    e->at = now;
  }
}

static double
factor (struct balance_side *s, const struct balance_job *job, double now)
{
  struct balance_error *e = alike (s, job);

  forget (&s->all, now);
  forget (e, now);
  return exp (s->all.log + e->log);
}

static void
learn (struct balance_error *e, double error, double most, double now)
{
  if (error == 0)
    return;
  e->log = MIN (MAX (e->log + error, -most), most);
  e->at = now;
}

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

/* A job with two sides to it. */
struct question {
  struct balance *b;
  const struct balance_job *job;
  double now;
  double factor[2], busy[2];
};

/* How long would side take for so many units of the job?  both: while the
 * other has the rest.  *harm: what that adds to the time of those that are
 * there.
 */
static double
estimate (const struct question *q, unsigned side, size_t nr_units,
          bool both, double *harm)
{
  const struct balance_side *s = &q->b->side[side];
  struct balance_job job = *q->job;
  struct balance_solo a;
  double drain, fixed, queue, crowd, t, more;

  job.work *= (double) nr_units / MAX (q->job->nr_units, 1);
  a = balance_solo (q->b, side, &job);
  drain = a.drain * q->factor[side];
  fixed = a.fixed * q->factor[side];
  queue = MAX (q->busy[side] - fixed, 0);
  crowd = MIN (queue, s->nr * drain);
  t = MAX (a.seconds * q->factor[side] - fixed,
           drain + (side == NEAR ? crowd : queue));
  more = t * (s->stretch - 1);
  if (!both)
    more = MIN (more, q->busy[1 - side] * (1 - 1 / s->stretch));
  *harm = HARM * crowd;
  return fixed + t + more;
}

/* The seconds of it alone, and with the harm. */
static double
seconds (const struct question *q, unsigned side, size_t nr_units, bool both)
{
  double harm;

  return estimate (q, side, nr_units, both, &harm);
}

static double
cost (const struct question *q, unsigned side)
{
  double harm;
  double t = estimate (q, side, q->job->nr_units, false, &harm);

  return t + harm;
}

static double
rate (const struct balance *b, unsigned side, unsigned rows)
{
  struct balance_job job = { .work = 1, .rows = rows };

  return exp (-b->side[side].all.log) / balance_solo (b, side, &job).drain;
}

bool
balance_pays (const struct balance *b, unsigned rows)
{
  double near = rate (b, NEAR, rows), far = rate (b, FAR, rows);

  return near / b->side[NEAR].stretch + far / b->side[FAR].stretch >
    PAYS * MAX (near, far);
}

/* The units for far, so that both end at the same time; 0 where that is
 * not clearly better than best.  One side takes longer the more it gets,
 * the other less long: so halve.
 */
static size_t
cut (const struct question *q, double best)
{
  size_t nr = q->job->nr_units, low = 0, high = nr;
  double harm[2], t;

  while (high - low > 1) {
    size_t mid = low + (high - low) / 2;

    if (seconds (q, FAR, mid, true) > seconds (q, NEAR, nr - mid, true))
      high = mid;
    else
      low = mid;
  }
  if (low == 0)
    return 0;
  t = estimate (q, FAR, low, true, &harm[FAR]);
  t = MAX (t, estimate (q, NEAR, nr - low, true, &harm[NEAR]));
  return t + harm[NEAR] + harm[FAR] + CUT_SECONDS < CUT_PAYS * best ? low : 0;
}

/* Where two gain nothing over one, the slower one (by what it does in all)
 * gets only what it ends sooner than the other could if it were idle.
 */
static unsigned
one_of_two (const struct question *q)
{
  unsigned rows = q->job->rows;
  unsigned strong = rate (q->b, FAR, rows) > rate (q->b, NEAR, rows);
  struct question idle = *q;

  idle.busy[NEAR] = idle.busy[FAR] = 0;
  if (cost (q, 1 - strong) <
      seconds (&idle, strong, q->job->nr_units, false))
    return 1 - strong;
  return strong;
}

/* Is it time to see again what a side takes for such a job? */
static bool
try_again (const struct question *q, unsigned side, double takes, double best)
{
  const struct balance_error *e = alike (&q->b->side[side], q->job);

  return takes < TRY_FACTOR * best && q->now - e->given >= TRY_SECONDS;
}

static void
give (struct balance *b, unsigned side, const struct balance_job *job,
      double now, bool both, struct balance_part *part)
{
  struct balance_side *s = &b->side[side];
  struct question q = { .b = b, .job = job, .now = now };
  struct balance_solo a = balance_solo (b, side, job);

  q.factor[side] = factor (s, job, now);
  for (unsigned i = 0; i < 2; i++)
    q.busy[i] = busy (&b->side[i], now);
  part->alike = alike (s, job);
  part->alike->given = now;
  part->at = now;
  part->expected = seconds (&q, side, job->nr_units, both);
  part->least = a.seconds * q.factor[side];
  part->fixed = a.fixed * q.factor[side];
  part->backlog = a.drain * q.factor[side];
  s->due = MAX (MAX (s->nr ? s->due : 0, now + part->fixed) + part->backlog,
                now + part->expected);
  s->nr++;
  s->backlog += part->backlog;
  s->given += part->backlog;
  part->queue = s->backlog;
  part->given = s->given;
}

void
balance_give (struct balance *b, unsigned side, const struct balance_job *job,
              double now, struct balance_part *part)
{
  give (b, side, job, now, false, part);
}

static void
give_units (struct balance *b, unsigned side, const struct balance_job *job,
            size_t nr_units, double now, struct balance_part *part)
{
  struct balance_job some = *job;

  some.work *= (double) nr_units / job->nr_units;
  some.nr_units = nr_units;
  give (b, side, &some, now, true, part);
}

void
balance_choose (struct balance *b, const struct balance_job *job, double now,
                struct balance_choice *c)
{
  struct question q = { .b = b, .job = job, .now = now };
  double takes[2];
  unsigned side;

  for (unsigned i = 0; i < 2; i++) {
    q.factor[i] = factor (&b->side[i], job, now);
    q.busy[i] = busy (&b->side[i], now);
  }
  for (unsigned i = 0; i < 2; i++)
    takes[i] = cost (&q, i);
  side = takes[FAR] < takes[NEAR];
  c->far_units = 0;
  if (balance_pays (b, job->rows))
    c->far_units = cut (&q, takes[side]);
  else
    side = one_of_two (&q);
  if (c->far_units > 0) {
    give_units (b, FAR, job, c->far_units, now, &c->part[FAR]);
    give_units (b, NEAR, job, job->nr_units - c->far_units, now,
                &c->part[NEAR]);
    return;
  }
  if (try_again (&q, 1 - side, takes[1 - side], takes[side]))
    side = 1 - side;
  if (side == FAR)
    c->far_units = job->nr_units;
  balance_give (b, side, job, now, &c->part[side]);
}

void
balance_cancel (struct balance *b, unsigned side,
                const struct balance_part *part)
{
  struct balance_side *s = &b->side[side];

  s->nr--;
  s->backlog = s->nr ? MAX (s->backlog - part->backlog, 0) : 0;
}

/* How far off is a job that took so long?  0 where its queue explains it. */
static double
error_of (const struct balance_side *s, const struct balance_part *part,
          double took)
{
  double most = part->fixed + s->stretch *
    MAX (part->least - part->fixed, part->queue + s->given - part->given);
  double error = 0;

  if (took < part->least)
    error = log (MAX (took, 1e-9) / part->least);
  else if (took > most)
    error = log (took / most);
  return MIN (MAX (error, -MOST_ERROR), MOST_ERROR);
}

void
balance_done (struct balance *b, unsigned side,
              const struct balance_part *part, double now, bool failed)
{
  struct balance_side *s = &b->side[side];
  struct balance_error *e = part->alike;
  double error = error_of (s, part, now - part->at);

  balance_cancel (b, side, part);
  e->nr++;
  learn (&s->all, failed ? LEARN_FAILED : error * LEARN_ALL, MAX_ALL, now);
  learn (e, error * MAX (LEARN_ALIKE, LEARN_FIRST / e->nr), MAX_ALIKE, now);
}
