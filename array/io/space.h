/* gpuraid: members without space.
 *
 * ENOSPC and EDQUOT are not a failure of the member: its data is good, and
 * space can be made.  So a write that gets one is kept, with all its waiters,
 * and retried.  Meanwhile flushes and writes with FUA that would have to wait
 * get ENOSPC; their data stays in the cache, and is written when there is
 * space.  A write that has not begun gets it after timeout=.  With ARRAY_WAIT
 * they wait.
 *
 * Call all of these with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_IO_SPACE_H
#define GPURAID_IO_SPACE_H

#include "array/engine/shared.h"

/* Is this a lack of space? */
extern bool space_is_error (int error);

/* True if an I/O with this error is to wait for space.  Not a flush: the data
 * it covers may be gone.  Not I/O of a rebuild's target, which fails instead,
 * so that nothing waits for it.
 */
extern bool space_is_short (const struct array *a, const struct seat *s,
                            enum io_kind kind, int error);

/* Hold an I/O: waiting is a->no_space or a->no_space_stores, link the
 * transfer's or store's.
 */
extern void space_wait (struct seat *s, struct list *waiting,
                        struct list *link);

#endif
