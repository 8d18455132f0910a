/* gpuraid: what a rebuild without checksums does not read: only for
 * array/passes/rebuild*.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_PASSES_REBUILD_HOLE_H
#define GPURAID_PASSES_REBUILD_HOLE_H

#include "array/passes/pass.h"
#include "array/seats/seat.h"

/* A target that can be rebuilt. */
static inline bool
is_target (const struct seat *s)
{
  return s->state == SEAT_TARGET && !s->failing && !s->complete && s->m &&
    !seat_is_paused (s);
}

/* A window is chosen, from p->start; where it ends is not decided. */
extern void rebuild_hole_begin (struct array *a, struct pass *p);

/* Where does it end?  If the others have a hole there, the targets are trimmed
 * first: until the window is there no client writes to them.  False if it
 * waits: p->waiter is run, then call it again.
 */
extern bool rebuild_hole_prepare (struct array *a, struct pass *p,
                                  uint64_t *end);

/* With the window there: the next line that must be looked at; no if that is
 * this one.  False as above.
 */
extern bool rebuild_hole_skip (struct array *a, struct pass *p, uint64_t no,
                               uint64_t *next);

/* The first line in [no, end) that an operation is writing, or end.  One that
 * was planned before the window was there does not write to the target.
 */
extern uint64_t rebuild_first_busy (struct array *a, uint64_t no,
                                    uint64_t end);

#endif
