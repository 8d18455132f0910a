/* gpuraid: one turn of the array's main loop, the timer, and the end.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_MAIN_LOOP_H
#define GPURAID_MAIN_LOOP_H

#include "array/engine/shared.h"

/* A turn starts whatever can be started in the rooms, and the timer.  The
 * engine calls it after each run of news and waiters, until there are none
 * left.
 */
extern const struct engine_hooks main_loop_hooks;

/* Called by the timer, without the array lock. */
extern void tick_fire (struct timer *t);

/* array/stop.c.  Without the array lock.  Servers of members that are away are
 * not waited for as long as else from now on.
 */
extern void stop_hurry (struct array *a);

/* Without the array lock.  Write out, flush, clear the dirty bits, mark the
 * superblock as clean.  Call it repeatedly, with time for I/O in between,
 * until it returns true.  Then nothing is in flight.
 */
extern bool stop_step (struct array *a);

#endif
