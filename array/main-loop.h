/* gpuraid: one turn of the array's main loop.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_MAIN_LOOP_H
#define GPURAID_MAIN_LOOP_H

#include "array/engine/shared.h"

/* A turn starts whatever can be started: a change of the membership,
 * write-outs, passes, flushes, the timer.  The engine calls it after each run
 * of news and waiters, until there are none left.
 */
extern const struct engine_hooks main_loop_hooks;

#endif
