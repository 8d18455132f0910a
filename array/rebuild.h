/* gpuraid: rebuild of targets, resync of parity, repair of blocks.
 *
 * With the baton, all of these.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_REBUILD_H
#define GPURAID_REBUILD_H

#include "array/internal.h"

extern int rebuild_init (struct array *a);
extern void rebuild_free (struct array *a);

/* Go on where there is something to do: called when anything changed. */
extern void rebuild_decide (struct array *a);

/* Is there work (rebuild or resync) to be done or under way? */
extern bool rebuild_busy (const struct array *a);

extern void rebuild_lost_target (struct array *a, struct seat *s);

/* Some stored cells gave errors, and redundancy served: store them anew. */
extern void repair_add (struct array *a, uint64_t no, uint64_t roles,
                        unsigned b0, unsigned nr);

extern void rebuild_progress (const struct array *a,
                              struct array_progress *rebuild,
                              struct array_progress *resync);

#endif
