/* gpuraid: what a job takes by itself, and what was learnt of it.
 *
 * Only for gf/balance*.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_BALANCE_INTERNAL_H
#define GPURAID_BALANCE_INTERNAL_H

#include "gf/balance.h"

/* Processors and a device that had nothing to do wake up, and what the other
 * side has touched, or another program, is in no cache: of jobs in a row, and
 * after a pause, the first so many are slower than those that follow, by half
 * and more.  But of a few one is no more than so much slower, even where
 * others were interrupted.
 */
#define BALANCE_COLD_JOBS 6
#define BALANCE_COLD_HOPE 3
#define BALANCE_COLD_SLOWER 2.2

/* Seconds.  To a longer job some microseconds more or less are nothing. */
#define BALANCE_SHORT 300e-6

struct balance_solo {
  double seconds;               /* all of it, with nothing else under way */
  double fixed;                 /* of that, what keeps nobody waiting */
  double drain;                 /* by which it delays others */
};

/* As it was measured, nothing of what was learnt. */
extern struct balance_solo balance_solo (const struct balance *, unsigned side,
                                         const struct balance_job *);

/* Of jobs like this one, or of a side's parts of those that are cut.  job is
 * all of it, even then: the class must not change with the parts' sizes.
 */
extern struct balance_error *balance_alike (struct balance_side *,
                                            const struct balance_job *,
                                            bool cut);
/* How many times longer they took than expected. */
static inline double
balance_times (const struct balance_error *e)
{
  return e->log == 0 ? 1 : e->times;
}

/* How many times longer than was measured they take. */
extern double balance_factor (struct balance_side *, struct balance_error *,
                              double now);

/* ---- a job with two sides to it: balance.c and balance-tries.c */

/* What can be done with a job, besides NEAR and FAR. */
enum { CUT = 2, NR_WAYS };

static inline bool
balance_is_idle (const struct balance *b)
{
  return b->side[NEAR].nr == 0 && b->side[FAR].nr == 0;
}

struct balance_question {
  struct balance *b;
  const struct balance_job *job;
  double now;
  double busy[2];
  bool idle;                    /* nothing else is under way */
  /* By side; a part, while the other has the rest: cut, where that may be
   * done, as it always may if idle.
   */
  struct balance_error *alike[2], *cut_alike[2];
  double factor[2], cut_factor[2];
};

extern struct balance_error *
balance_error_of_way (const struct balance_question *, unsigned way);

/* Count it as gone that way, the best one or to try it: as the how many-th
 * in a row?  With others under way, and where all are cold, since they come
 * now and then, 0.
 */
extern unsigned balance_count_way (const struct balance_question *,
                                   unsigned way, bool is_best);
/* After a pause they are cold again. */
extern void balance_rest (struct balance_error *, double now);
/* Has it gone that way for a while, the last one just now? */
extern bool balance_is_warm (const struct balance_error *, double now);
/* Has a try begun, and is it not over?  There must be hope: even what is cold
 * is not all that slow, and once two are done that were not it must be near.
 * One may have been interrupted.
 */
extern bool balance_is_trying (const struct balance_question *, unsigned way,
                               double takes, double best);
/* Is it time to see again what such a job takes that way?  Then it is not for
 * others for a while.  takes: seconds, by way.
 */
extern bool balance_try_again (const struct balance_question *, unsigned way,
                               unsigned best, const double *takes);

/* ---- a job like the last one: balance-again.c */

/* It goes the same way?  Then the choice is filled in, but for a side that
 * gets nothing, and for what is known when it is given.
 */
extern bool balance_again (struct balance *, const struct balance_job *,
                           double now, struct balance_choice *);
/* It may not: count those that did, and forget it. */
extern void balance_count_again (struct balance *);
/* It went that way, which is_best or a try. */
extern void balance_remember (const struct balance_question *, unsigned way,
                              bool is_best, const struct balance_choice *);
/* It took so many seconds, with nothing else under way.  If that was off, the
 * next ones do not go the same way unasked.
 */
extern void balance_check_again (struct balance *, const struct balance_part *,
                                 double took);

#endif
