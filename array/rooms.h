/* gpuraid: the table of rooms.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ROOMS_H
#define GPURAID_ROOMS_H

#include "array/engine/room.h"

/* In the order of turns, then NULL. */
extern const struct room *const rooms[];

/* Before anything runs.  0, or -1: no memory, and rooms_free is not called. */
extern int rooms_init (struct array *a, const struct config *c,
                       const struct assembly *as);
extern void rooms_free (struct array *a);

#endif
