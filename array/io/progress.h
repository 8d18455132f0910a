/* gpuraid: the step, by which an older copy of a member is told from the member
 * (array/membership/older-copy.h).
 *
 * It moves with a save of the superblocks: at a clean stop, and every 15 s
 * while the array is written.  When that is durable on a member, the table of
 * the membership has it as the step of this member, and one more save tells the
 * others of it (M27 of docs/rules.md).
 *
 * Call all of these with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_IO_PROGRESS_H
#define GPURAID_IO_PROGRESS_H

#include "array/engine/shared.h"

/* The membership has been started. */
extern void progress_init (struct array *a);

/* A save begins: with the next step, if something was written since the last
 * one.
 */
extern void progress_next (struct array *a);

/* True if something was written since the last step, or that step is known only
 * to the members themselves: one more save, or two, tell the others.
 */
extern bool progress_is_untold (const struct array *a);

/* For a copy that is made for s: what it has itself. */
extern void progress_fill (const struct array *a, const struct seat *s,
                           struct superblock *sb);
/* That copy, an accepted one, is durable. */
extern void progress_stored (struct array *a, const struct seat *s);

/* Called periodically while the array is written: true if it is time to save
 * the next step, which then counts as begun.
 */
extern bool progress_tick (struct array *a);
/* True if it will be. */
extern bool progress_wants_tick (const struct array *a);

#endif
