/* gpuraid: what jobs took, and what follows for those like them.
 *
 * What the model leaves out (other shapes of job, processors that others
 * use, a device that is lost and replaced by something slow) is a factor:
 * one for the side, times one for those alike.
 *
 * In which order a side did its jobs is not known; so a job among others is
 * off only where it took less than alone, or more than if all that was
 * there before it and all that came while it was there had gone first.
 * Learning from each job's distance to what was expected did not work:
 * under load it learnt the errors of the model of the queue, and drove all
 * jobs to one side.
 *
 * A job with nothing else under way shows just what it takes.  So do the
 * parts of one that was cut, each while the other side is busy too.  That
 * is kept apart, by the class of the whole job: the side that ended last
 * gets less next time, and where cutting does not pay, that shows too.  When
 * instead the sides were taken to have become slow, each one alone looked
 * slow as well, and the cut went on.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <math.h>

#include "common/bits.h"
#include "gf/balance-internal.h"

/* One job is no proof: it may have been interrupted.  Errors count as no
 * more than a factor of 2, and as so much of that; more while little is
 * known.
 */
#define MOST_ERROR 0.7
#define LEARN_ALL 0.06
#define LEARN_ALIKE 0.12
#define LEARN_FIRST 0.6
#define LEARN_FAILED 1.5
#define MAX_COUNTED 1000
/* Where nothing else was under way it is a better proof; but a job that took
 * much longer than those before it was interrupted, and often so are a few
 * after it: of 15 threads one that has to wait is enough.  When that made near
 * look the slower way, the next some hundreds of jobs took half as long again
 * elsewhere.  So of short ones it is learnt fast only where so many in a row
 * are all off: what changes slowly, and by less, takes some hundreds.
 */
#define LEARN_IDLE 0.2
#define LEARN_SHORT 0.03
#define LEARN_STREAK 0.35
#define STREAK_OFF 0.2
#define SLOW_STREAK 8
#define FAST_STREAK 3
/* What the side learns of it, as so much of that. */
#define LEARN_ALL_IDLE 0.17
#define MOST_ERROR_IDLE 1.1
#define MOST_SLOWER_IDLE 0.35
#define FIRST_IDLE 3
/* Never beyond a factor of 60, and of 8 for those alike. */
#define MAX_ALL 4.1
#define MAX_ALIKE 2.1
/* What was learnt is forgotten in so many seconds without a job: else a
 * side that was found slow once would never be tried again.
 */
#define FORGET 20.0

static unsigned
log_2 (double x)
{
  return x >= 2 ? ilogb (x) : 0;
}

/* job: all of it, even where it is cut: the class must not change with the
 * sizes of its parts.
 */
struct balance_error *
balance_alike (struct balance_side *s, const struct balance_job *job, bool cut)
{
  unsigned rows = MIN (log_2 (job->rows), BALANCE_ROWS - 1);
  unsigned size = MIN (log_2 (job->work / 8192), BALANCE_SIZES - 1);

  return cut ? &s->cut[job->crc][rows][size] :
    &s->whole[job->crc][rows][size];
}

static void
set_log (struct balance_error *e, double log, double now)
{
  e->log = log;
  e->times = exp (log);
  e->at = now;
}

static void
forget (struct balance_error *e, double now)
{
  const double idle = now - e->at;

  if (e->log == 0)
    e->at = now;
  else if (idle > FORGET / 64)
    set_log (e, e->log * exp (-idle / FORGET), now);
}

double
balance_factor (struct balance_side *s, struct balance_error *e, double now)
{
  forget (&s->all, now);
  forget (e, now);
  return balance_times (&s->all) * balance_times (e);
}

static void
learn (struct balance_error *e, double error, double most, double now)
{
  if (error != 0)
    set_log (e, MIN (MAX (e->log + error, -most), most), now);
}

/* Was nothing else under way, from its beginning to its end? */
static bool
was_idle (const struct balance *b, const struct balance_part *part)
{
  return part->idle && b->nr_jobs == part->nr_jobs;
}

/* How far off is a job that took so long?  Among others, 0 where its queue
 * explains it.
 */
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

/* What cold jobs show that take longer than expected: nothing, but that the
 * fastest of a few tells what a warm one takes at least.
 */
static double
cold_error (const struct balance_error *e, const struct balance_part *part)
{
  if (part->in_a_row != BALANCE_COLD_HOPE || part->cut)
    return 0;
  return MIN (MAX (log (e->fastest / part->expected / BALANCE_COLD_SLOWER), 0),
              MOST_ERROR_IDLE);
}

static void
count_streak (struct balance_error *e, double error)
{
  if (error > STREAK_OFF)
    e->streak = MAX (e->streak, 0) + 1;
  else if (error < -STREAK_OFF)
    e->streak = MIN (e->streak, 0) - 1;
  else
    e->streak = 0;
}

/* How much of an error is learnt. */
static double
weight_idle (const struct balance_error *e, double error,
             const struct balance_part *part)
{
  const double least =
    part->expected < BALANCE_SHORT ? LEARN_SHORT : LEARN_IDLE;

  if (error < 0 && !part->cut && e->nr_idle <= FIRST_IDLE)
    return 1;
  return MAX (e->streak >= SLOW_STREAK || e->streak <= -FAST_STREAK ?
              LEARN_STREAK : least, 1.0 / MAX (e->nr_idle, 1));
}

/* By itself, a job shows just what it takes.  But what makes some slow will
 * not last, and nothing makes one fast but that it can be.
 */
static void
learn_idle (struct balance_side *s, const struct balance_part *part,
            double took, double now)
{
  struct balance_error *e = part->alike;
  double error = log (took / part->expected);
  /* The first of those that are cut still show where to cut. */
  const bool cold = part->in_a_row > 0 && part->in_a_row <= BALANCE_COLD_JOBS;
  const bool counts = !cold || (part->cut && e->nr_idle < FIRST_IDLE);

  e->nr_idle += counts;
  if (!part->cut)
    e->fastest = e->fastest > 0 ? MIN (e->fastest, took) : took;
  if (error > 0 && !counts)
    error = cold_error (e, part);
  else {
    count_streak (e, error);
    error = weight_idle (e, error, part) *
      MIN (MAX (error, -MOST_ERROR_IDLE), MOST_SLOWER_IDLE);
  }
  learn (e, error, MAX_ALIKE, now);
  /* What it is to be cut says nothing of jobs that are not.  Both learn the
   * same, or one would drift one way and the other the other.
   */
  if (!part->cut)
    learn (&s->all, error * LEARN_ALL_IDLE, MAX_ALL, now);
}

void
balance_done (struct balance *b, unsigned side,
              const struct balance_part *part, double now, bool failed)
{
  struct balance_side *s = &b->side[side];
  struct balance_error *e = part->alike;
  double error;

  balance_cancel (b, side, part);
  if (balance_is_idle (b))
    b->worked += MAX (now - b->began, 0);
  e->ended = now;
  if (failed) {
    balance_count_again (b);
    e->settled = false;
    learn (&s->all, LEARN_FAILED, MAX_ALL, now);
    return;
  }
  if (was_idle (b, part)) {
    const double took = MAX (now - part->at, 1e-9);

    balance_check_again (b, part, took);
    /* Else the same error would be learnt several times. */
    if (!part->again)
      learn_idle (s, part, took, now);
    return;
  }
  error = error_of (s, part, now - part->at);
  e->nr += e->nr < MAX_COUNTED;
  learn (&s->all, error * LEARN_ALL, MAX_ALL, now);
  learn (e, error * MAX (LEARN_ALIKE, LEARN_FIRST / e->nr), MAX_ALIKE, now);
}
