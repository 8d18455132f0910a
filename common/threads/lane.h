/* gpuraid: lanes: what many threads add to at once.
 *
 * A count that all threads write is a cache line that all processors take from
 * each other.  So it is kept in lanes, each in cache lines of its own: a thread
 * adds to the lane of the processor that it runs on, and the count is the sum.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_LANE_H
#define GPURAID_LANE_H

#include <sched.h>

#define NR_LANES 16u
/* With the array lock held there is one thread, and it calls nothing. */
#define LANE_OF_LOCK 0u

/* Any thread.  It may run on another processor afterwards: a lane is fast for
 * one thread, but right for any.
 */
static inline unsigned
lane_here (void)
{
  const int cpu = sched_getcpu ();

  return cpu < 0 ? 0 : (unsigned) cpu % NR_LANES;
}

#endif
