/* gpuraid: which lines are written out, and when.
 *
 * With the baton.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_WRITEBACK_H
#define GPURAID_WRITEBACK_H

#include "array/internal.h"

/* Start whatever should be started now: full lines, lines that a flush
 * waits for, old ones, and the oldest where memory is short; flushes,
 * changes and rebuilds too.  Called before the baton is let go.
 */
extern void writeback_decide (struct array *a);

/* A line has dirty data and should go out without further delay. */
extern void writeback_now (struct array *a, struct line *line);

/* The array has failed: nobody waits for a write-out any more. */
extern void writeback_give_up (struct array *a);

extern void writeback_tick (struct timer *t);

#endif
