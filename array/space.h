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

struct store;
struct xfer;

/* Is this the error of an I/O that is to wait for space?  Not a flush: what
 * it should have made durable may be gone.  Not of a rebuild's target: that
 * fails, so that nothing has to wait for it.
 */
extern bool space_is_short (const struct array *a, const struct seat *s,
                            enum io_kind kind, int error);
extern void space_wait (struct array *a, struct xfer *x);
extern void space_wait_store (struct array *a, struct store *st);

/* From time to time: try again; tell those that wait for what can't be
 * written yet.
 */
extern void space_tick (struct array *a);

/* The array stops: true when nothing waits for space any more.  After a
 * last try the array has failed instead, as it would in a crash.
 */
extern bool space_stop (struct array *a);

/* Does something wait for space on this seat? */
extern bool space_is_wanted (const struct array *a, const struct seat *s);

#endif
