/* gpuraid: which dirty bits are set, and how they get to the members.
 *
 * A region's *open* bit is durable before the first in-place write in
 * it; while a slot is not active, its *missed* bit too.  Open bits are
 * cleared lazily, after a flush; missed bits when all slots are active.
 *
 * With the array lock held, all of these.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_DIRTY_H
#define GPURAID_DIRTY_H

#include "array/internal.h"

/* From the assembly's pages.  0 or a positive errno. */
extern int dirty_init (struct array *a, const struct bitmap_page *page);
extern void dirty_free (struct array *a);

/* Are the bits for a write to bytes [pos, pos + len) of every member's
 * data durable?  If not they soon will be: w is run then, and asks again.
 */
extern bool dirty_mark (struct array *a, uint64_t pos, uint64_t len,
                        struct waiter *w);

/* A writing operation on these bytes begins, ends. */
extern void dirty_begin (struct array *a, uint64_t pos, uint64_t len);
extern void dirty_end (struct array *a, uint64_t pos, uint64_t len);

/* A member leaves: what is open counts as missed.  True when that is
 * durable; else w is run.
 */
extern bool dirty_all_missed (struct array *a, struct waiter *w);

/* Was the region of pos missed by a slot that is not active? */
extern bool dirty_is_missed (const struct array *a, uint64_t pos);
/* All slots are active: forget what was missed. */
extern void dirty_clear_missed (struct array *a);

/* Clear the open bits of regions that nobody writes and whose data was
 * flushed: of all, or of those not written since the last call.
 */
extern void dirty_flushed (struct array *a, bool all);
extern bool dirty_any_open (const struct array *a);
/* Nothing is to be written and nothing is being written; else w is run. */
extern bool dirty_quiet (struct array *a, struct waiter *w);

/* A new seat needs all pages before it counts.  True when it has them;
 * else w is run.
 */
extern bool dirty_give (struct array *a, struct seat *s, struct waiter *w);

/* Where the first region begins whose parity may be wrong, in bytes from
 * data_off; UINT64_MAX if there is none.
 */
extern uint64_t dirty_first_unsynced (const struct array *a);

/* Parity of this region is right again. */
extern void dirty_synced (struct array *a, uint64_t region);

#endif
