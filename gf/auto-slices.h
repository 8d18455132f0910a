/* gpuraid: large jobs, given to two coders slice by slice.
 *
 * Nobody has to know beforehand how they will share: each side takes the
 * next slice when it has room, far from the front of the oldest job, near
 * from its end.
 *
 * Pure, but for the list of tasks; whoever owns it has a lock.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_AUTO_SLICES_H
#define GPURAID_AUTO_SLICES_H

#include <stdbool.h>

#include "common/list.h"
#include "gf/auto-task.h"
#include "gf/auto-trial.h"

struct auto_slices {
  struct list tasks;            /* with units left to give, oldest first */
  double work;                  /* of those units */
  unsigned nr_given[2];         /* slices under way, by side ... */
  unsigned nr_here;             /* ... and done where they were asked for */
};

extern void auto_slices_init (struct auto_slices *);

/* Is it large enough for that, and not the only one?  One side alone gets
 * jobs whole that are not very large: then too few would end for auto_trial
 * to compare.
 */
extern bool auto_slices_wants (const struct balance *, enum auto_use,
                               const struct balance_job *);
/* From now on its units are given in slices. */
extern void auto_slices_add (struct auto_slices *, struct auto_task *,
                             const struct balance_job *);

struct auto_slice {
  struct auto_task *task;
  size_t first, nr;             /* units */
  bool last;                    /* no units of the task are left */
  bool here;                    /* the thread that asked is to do its part */
};

/* The next for side.  false: it has no room, or the other side will have
 * done all that is left sooner.  helps: the thread that asks brings a job, and
 * would do some of it if it were near's whole.  So one that does does a slice,
 * where far takes no part: near would else be a thread short.
 */
extern bool auto_slices_take (struct auto_slices *, const struct balance *,
                              enum auto_use, unsigned side, bool helps,
                              struct auto_slice *);
/* One is done. */
extern void auto_slices_done (struct auto_slices *, unsigned side, bool here);
/* The units of a task that are left are given up. */
extern void auto_slices_drop (struct auto_slices *, struct auto_task *);

#endif
