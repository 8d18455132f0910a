/* gpuraid: when to try what does not look the best way for a job.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "common/bits.h"
#include "gf/balance-internal.h"

/* Where the other side would not take longer than so much more it is tried
 * once in so many seconds: what was measured at the start may be wrong.
 */
#define TRY_SECONDS 1.0
#define TRY_FACTOR 1.5
/* ... and with nothing else under way, all that can be done with a job.  A
 * try is so many of them in a row: those that come first are cold.  All tries
 * together are given TRY_JOBS / TRY_RARELY of the time, but for long ones and
 * the first few of a kind of job.
 */
#define TRY_SECONDS_IDLE 0.05
#define TRY_FACTOR_IDLE 1.8
#define TRY_RARELY 600
#define TRY_JOBS 10
/* Of jobs that come at long intervals no more than one in so many. */
#define TRY_AFTER 50
/* It goes on to its end only if it is no slower than that; and for so many
 * short jobs where one of them has shown that it may be the better way, since
 * many threads get warm one by one, and others' work interrupts some of them.
 */
#define TRY_HOPE 1.3
#define TRY_LONG 50
/* Not much is known of a kind of job that just begins to come: what start
 * measured had its cells from memory, and processors that were asleep, which
 * counts with short jobs.  So each way of doing those that may take no longer
 * than so many times what the best one takes is tried after so many of them;
 * where it was found to take no longer than that, a second time after eight
 * times as many more, and a third.
 */
#define EXPLORE_FACTOR 5
#define EXPLORE_AGAIN 2.5
#define EXPLORE_AFTER 50u
#define EXPLORE_RUNS 3
/* What was the best way for so many jobs, and is so no more, may have been
 * interrupted, and is explored anew.
 */
#define BEST_LONG 200
/* So many times as rarely where a way was seen to be slow, though it had been
 * measured to be as good as that; and where none is ever warm.
 */
#define DOUBT 2
#define NEVER_WARM 20
/* After so many seconds without a job they are cold again.  After so many
 * runs of them that were all cold, that is what they are.
 */
#define COLD_AFTER 1e-3
#define COLD_RUNS 3
/* What was measured at the start had its cells from memory; those of one job
 * are often in a cache, which helps near.  So jobs that should take less than
 * so many seconds are tried there first, with nothing else under way, if by
 * what was measured that takes no longer than so much more.
 */
#define FIRST_SECONDS 1e-3
#define FIRST_FACTOR 2.5

struct balance_error *
balance_error_of_way (const struct balance_question *q, unsigned way)
{
  return way == CUT ? q->cut_alike[FAR] : q->alike[way];
}

/* It goes another way, the best one or another to try it. */
static void
leave_way (struct balance_error *e, bool for_best)
{
  e->in_a_row = 0;
  e->nr_since++;
  if (!for_best)
    return;
  /* Soon tried again. */
  if (e->nr_best >= BEST_LONG)
    e->nr_runs = 0;
  e->nr_best = 0;
}

unsigned
balance_count_way (const struct balance_question *q, unsigned way,
                   bool is_best)
{
  struct balance_error *e = balance_error_of_way (q, way);

  if (!q->idle)
    return 0;
  for (unsigned other = NEAR; other < NR_WAYS; other++)
    if (other != way)
      leave_way (balance_error_of_way (q, other), is_best);
  if (e->in_a_row++ == 0) {
    e->fastest = 0;
    e->nr_tried = 0;
    e->nr_runs++;
  }
  e->nr_given++;
  e->nr_since = 0;
  e->nr_best += is_best;
  e->nr_tried += !is_best;
  return e->nr_cold_runs < COLD_RUNS ? e->in_a_row : 0;
}

void
balance_rest (struct balance_error *e, double now)
{
  if (e->in_a_row == 0 || now - e->ended <= COLD_AFTER)
    return;
  if (e->in_a_row > BALANCE_COLD_JOBS)
    e->nr_cold_runs = 0;
  else {
    e->nr_cold_runs++;
    e->nr_runs -= e->nr_runs > 0;
  }
  e->in_a_row = 0;
}

bool
balance_is_warm (const struct balance_error *e, double now)
{
  return e->in_a_row > BALANCE_COLD_JOBS && now - e->ended <= COLD_AFTER;
}

/* How much longer than the best way it may look as it takes for so many. */
static double
hope (const struct balance_error *e, bool is_better)
{
  if (e->nr_runs <= 1 && e->in_a_row < BALANCE_COLD_HOPE)
    return EXPLORE_FACTOR;
  return is_better || e->in_a_row < BALANCE_COLD_JOBS + 2 ? FIRST_FACTOR
    : TRY_HOPE;
}

bool
balance_is_trying (const struct balance_question *q, unsigned way,
                   double takes, double best)
{
  const struct balance_error *e;
  bool is_better;
  unsigned nr;

  if (!q->idle)
    return false;
  e = balance_error_of_way (q, way);
  nr = e->in_a_row;
  is_better = best < BALANCE_SHORT && e->fastest > 0 && e->fastest < best;
  if (nr == 0 || nr >= (is_better ? TRY_LONG : TRY_JOBS))
    return false;
  if (nr >= BALANCE_COLD_HOPE && e->fastest > BALANCE_COLD_SLOWER * best)
    return false;
  return takes < hope (e, is_better) * best;
}

/* With nothing else under way, and few jobs of that kind so far. */
static bool
explore (const struct balance_question *q, unsigned way, unsigned best,
         const double *takes)
{
  const struct balance_error *e = balance_error_of_way (q, way);
  const double most = e->nr_runs == 0 ? EXPLORE_FACTOR : EXPLORE_AGAIN;

  return takes[best] < BALANCE_SHORT && e->nr_runs < EXPLORE_RUNS &&
    e->nr_since >= EXPLORE_AFTER << (3 * e->nr_runs) &&
    balance_is_warm (balance_error_of_way (q, best), q->now) &&
    takes[way] < most * takes[best];
}

/* When, by the clock, or where they are warm by what was worked since: then
 * tries cost the same part of that, however much else goes on in between.
 */
static double
time_of (const struct balance_question *q, bool warm)
{
  return warm ? q->b->worked : q->now;
}

/* With nothing else under way.  After a pause a try would show how all
 * becomes warm, unless it never does.  Where a way was seen to be slow though
 * more had been measured, what was seen may be wrong, too.
 */
static bool
try_again_idle (const struct balance_question *q, unsigned way, unsigned best,
                const double *takes)
{
  const struct balance_error *e = balance_error_of_way (q, way);
  const bool first = way == NEAR && takes[best] < FIRST_SECONDS;
  const double measured = takes[way] / balance_times (e);
  const double most = (first ? FIRST_FACTOR : TRY_FACTOR_IDLE) * takes[best];
  const struct balance_error *of_best = balance_error_of_way (q, best);
  const bool warm = balance_is_warm (of_best, q->now);
  const double at = time_of (q, warm);
  double pause = MAX (TRY_SECONDS_IDLE, TRY_RARELY * takes[way]);

  if (first && e->nr_idle == 0 && e->nr_given < TRY_JOBS)
    return measured < most;
  if (at < q->b->next_try[warm] || (e->given > 0 && e->nr_since < TRY_AFTER))
    return false;
  if (takes[way] >= most)
    pause *= DOUBT;
  if (e->nr_tried > TRY_JOBS)
    pause *= (double) e->nr_tried / TRY_JOBS;
  if (!warm && e->given > 0) {
    if (of_best->nr_cold_runs < COLD_RUNS)
      return false;
    pause *= NEVER_WARM;
  }
  return MIN (takes[way], measured) < most &&
    at - (warm ? e->worked : e->given) >= pause;
}

static bool
try_again (const struct balance_question *q, unsigned way, unsigned best,
           const double *takes)
{
  if (q->idle)
    return try_again_idle (q, way, best, takes);
  return takes[way] < TRY_FACTOR * takes[best] &&
    q->now - balance_error_of_way (q, way)->given >=
    MAX (TRY_SECONDS, TRY_RARELY * takes[way]);
}

bool
balance_try_again (const struct balance_question *q, unsigned way,
                   unsigned best, const double *takes)
{
  const bool warm = balance_is_warm (balance_error_of_way (q, best), q->now);

  if (q->idle && explore (q, way, best, takes))
    return true;
  if (!try_again (q, way, best, takes))
    return false;
  q->b->next_try[warm] = time_of (q, warm) + TRY_RARELY * takes[way];
  return true;
}
