/* gpuraid: the main loop of the array: one turn of it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_MAIN_LOOP_H
#define GPURAID_MAIN_LOOP_H

#include "array/internal.h"

/* Start all that can be started now: a change of the membership, write-outs,
 * rebuilds, flushes, the timer.  Called with the baton, after each run of
 * news and waiters, until there are none left.
 */
extern void main_loop_turn (struct array *a);

#endif
