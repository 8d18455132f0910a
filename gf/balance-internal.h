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
/* How many times longer than was measured they take. */
extern double balance_factor (struct balance_side *, struct balance_error *,
                              double now);

#endif
