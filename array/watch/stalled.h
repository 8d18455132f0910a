/* gpuraid: members that keep clients waiting.
 *
 * A member is stalled while it has answered nothing for some seconds of what it
 * was given.  That is told; it changes nothing: array/watch/overdue.c takes a
 * member out after its timeout, if enough others are there.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_WATCH_STALLED_H
#define GPURAID_WATCH_STALLED_H

#include "array/engine/shared.h"

/* A turn of the reads in clients' threads ends: those in the oldest count began
 * at least two turns ago.
 */
extern void stalled_note_preads (struct seat *s, unsigned oldest,
                                 uint64_t now);

/* Note which members are, with the array lock. */
extern void stalled_tick (struct array *a, uint64_t now);

#endif
