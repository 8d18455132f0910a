/* gpuraid: log again what the newest transaction lacks.
 *
 * At a crash some members may have its record, and others not, or not all
 * of it.  Before anything of it is written in place all members that are
 * there get theirs: else another crash, and the loss of a member, could
 * leave rows half old and half new.  The content is decoded.
 *
 * With the array lock held, all of these.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_JOURNAL_RELOG_FACE_H
#define GPURAID_JOURNAL_RELOG_FACE_H

#include "array/engine/shared.h"
#include "array/replay/replay.h"

struct relog;

/* ring, by seat: what each ring held; has_ring: whose is known.  Both and r
 * are borrowed until relog_free; in r what is written becomes a source.
 * NULL: no memory.
 */
extern struct relog *relog_new (struct array *a, struct replay *r,
                                const struct ring_contents *ring,
                                const bool *has_ring);

/* Go on.  True when all that was missing has been written, but not flushed. */
extern bool relog_step (struct array *a, struct relog *rl);

/* It is not finished: let go of what is held. */
extern void relog_give_up (struct array *a, struct relog *rl);

/* No I/O is under way, so that it may be freed. */
extern bool relog_is_idle (const struct relog *rl);
extern void relog_free (struct relog *rl);

#endif
