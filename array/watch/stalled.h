/* gpuraid: members that keep clients waiting.
 *
 * A member is stalled while a read waits for it for some seconds, or it has
 * answered no write or flush for as long while one waits.  That is told; it
 * changes nothing: array/watch/overdue.c takes a member out after its timeout,
 * if enough others are there.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_WATCH_STALLED_H
#define GPURAID_WATCH_STALLED_H

#include "array/engine/shared.h"

/* A turn of the reads in clients' threads begins.  They are in the newest
 * count; those in the oldest one began at least two turns ago.
 */
extern void stalled_note_preads (struct seat *s, unsigned newest,
                                 unsigned oldest, uint64_t now);

/* Note which members are, with the array lock. */
extern void stalled_tick (struct array *a, uint64_t now);

#endif
