/* gpuraid: members that have no space left.
 *
 * ENOSPC and EDQUOT are no failure of a member: what it has is good, and
 * space can be made.  So a write that gets one is kept, with all that
 * waits for it, and tried again.  Meanwhile flushes and writes with FUA
 * that would have to wait are answered with ENOSPC; what they were to
 * make durable stays in the cache, and is written when there is space.
 *
 * With the array lock held, all of these.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_SPACE_H
#define GPURAID_SPACE_H

#include "array/internal.h"

/* Is this the error of an I/O that is to wait for space?  Not a flush: what
 * it should have made durable may be gone.  Not of a rebuild's target: that
 * fails, so that nothing has to wait for it.
 */
extern bool space_is_short (const struct array *a, const struct seat *s,
                            enum io_kind kind, int error);

/* It is held: waiting is a->no_space or a->no_space_stores, link the
 * transfer's or store's.
 */
extern void space_wait (struct seat *s, struct list *waiting,
                        struct list *link);

#endif
