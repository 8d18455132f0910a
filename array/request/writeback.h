/* gpuraid: which lines are written out, and when.
 *
 * Call these with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_WRITEBACK_H
#define GPURAID_WRITEBACK_H

#include "array/engine/completion.h"

/* Begin to write out the lines that are due, and the oldest if memory is
 * short.
 */
extern void writeback_start (struct array *a);

/* Take tickets (array/cache/ticket.h) from all data that is not on the members
 * yet, and write out the lines that have some.
 */
extern void tickets_take (struct array *a, struct completion *c, bool waits);

/* Called periodically: write out old lines. */
extern void writeback_tick (struct array *a, uint64_t now);

#endif
