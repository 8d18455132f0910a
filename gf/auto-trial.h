/* gpuraid: should both coders be used, or one alone?
 *
 * What finishes a job first need not be what gets most done: in a server
 * whose processors are busy with I/O, a coder that takes them slows all
 * else.  That follows from no measure of the coders; so where coding is a
 * good part of what goes on, one alone is tried for a moment now and then,
 * and whatever got more done is kept.
 *
 * Pure: no clock, no locks, no allocation.  Times are seconds from any
 * beginning, and ascend, but for those of what is done.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_AUTO_TRIAL_H
#define GPURAID_AUTO_TRIAL_H

#include <stdbool.h>

#include "gf/balance.h"

enum auto_use { USE_NEAR = NEAR, USE_FAR = FAR, USE_BOTH, NR_USES };

struct auto_trial {
  enum auto_use use;            /* in force */
  enum auto_use best;           /* of those tried; use, but for a trial */
  bool warm;                    /* the first window of this use is over */

  /* The window: what is done since it began, of parts that were given after
   * use changed.
   */
  double began;
  double work;
  double alone[2];              /* seconds of that, by each side alone */
  unsigned nr_done, nr_beside;  /* parts; and given beside others */
  double busy;                  /* seconds with something under way */

  unsigned nr;                  /* parts under way, but for those stuck */
  unsigned age;                 /* changes of use */
  double changed;               /* the last one */
  unsigned nr_older;            /* parts under way since before that; until
                                 * they are done there is no window */
  unsigned nr_stuck;            /* parts that are not waited for any more: */
  unsigned stuck_age;           /* all those under way that are older */
  double since;                 /* the last call */
  double light;                 /* seconds of the last windows, all of them
                                 * with little to do */

  double rate;                  /* work a second of the last window of best,
                                 * or 0 */
  double tried;                 /* of the trial before this window, or 0 */
  enum auto_use candidate;      /* what that was */
  unsigned nr_pauses;           /* since the last trial began */

  struct {
    double next;                /* when to try it */
    double pause;               /* seconds to the one after */
    unsigned nr_won;            /* trials in a row */
  } other[NR_USES];
};

extern void auto_trial_init (struct auto_trial *);
/* A job has come: what should it use? */
extern enum auto_use auto_trial_use (struct auto_trial *, double now);
/* A part is given to a coder, beside others or not: its age, for when it is
 * done.
 */
extern unsigned auto_trial_begin (struct auto_trial *, bool beside,
                                  double now);
/* A part is done: its work, and the seconds that it takes on each side with
 * nothing else under way but others like it, or 0 if that is not known.
 */
extern void auto_trial_done (struct auto_trial *, unsigned age, double work,
                             const double alone[2], double now);

#endif
