/* gpuraid: which lines are written out, and when.
 *
 * Call these with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_WRITEBACK_H
#define GPURAID_WRITEBACK_H

#include "array/engine/completion.h"
#include "array/engine/room.h"

/* In each turn the lines that are due are written out, and the oldest if memory
 * is short.
 */
extern const struct room room_request;

/* Take tickets (array/cache/ticket.h) from all data that is not on the members
 * yet, and write out the lines that have some.
 */
extern void tickets_take (struct array *a, struct completion *c, bool waits);

#endif
