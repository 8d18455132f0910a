/* gpuraid: the main loop of the array: one turn of it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_MAIN_LOOP_H
#define GPURAID_MAIN_LOOP_H

#include "array/internal.h"

/* A turn starts all that can be started: a change of the membership,
 * write-outs, passes, flushes, the timer.  The engine has it run after each
 * run of news and waiters, until there are none left.
 */
extern const struct engine_hooks main_loop_hooks;

#endif
