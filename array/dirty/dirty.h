/* gpuraid: which dirty bits are set, and how they are written to members.
 *
 * A region's *open* bit is durable before the first in-place write in it;
 * while a slot is not active, its *missed* bit too.  Open bits are cleared
 * lazily, after a flush; missed bits when all slots are active (D1 and D2 of
 * docs/rules.md).
 *
 * Call all of these with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_DIRTY_H
#define GPURAID_DIRTY_H

#include "array/engine/room.h"
#include "raidmap/bitmap.h"

struct dirty_page {
  struct bitmap_page want;      /* the wanted bits; counter of the last write */
  struct bitmap_page stored;    /* bits that are set durably on every active
                                 * seat, whatever a write in flight does */
  struct bitmap_page sending;   /* the content of the write in flight */
  unsigned pending;             /* seats that still write */
  bool writing, queued;
  struct list waiters;          /* run when a write has ended */
};

extern const struct room room_dirty;

/* From the assembly's pages; what is open there is not synced.  0 or a positive
 * errno.
 */
extern int dirty_init (struct array *a, const struct bitmap_page *page);
extern void dirty_free (struct array *a);

/* The array grows: the pages that are new have been written, in both places,
 * with these counters.
 */
#define DIRTY_NEW_COUNTER 2u            /* in place 1; in place 0 one less */
struct dirty_memory {
  uint64_t first;               /* the first new page */
  uint64_t nr_pages, nr_regions;
  struct dirty_page **page;
  uint64_t *region_gen, *unsynced;
  uint32_t *region_step;
  uint16_t *region_ops;
};

/* For this layout.  0 or a positive errno. */
extern int dirty_memory_new (const struct array *a, struct dirty_memory *d,
                             const struct member_layout *l);
/* Safe on one of zeroes. */
extern void dirty_memory_free (struct dirty_memory *d);
/* Use it from now on; *d is zeroed. */
extern void dirty_grow (struct array *a, struct dirty_memory *d);

/* True if the bits for a write to bytes [pos, pos + len) of every member's
 * data are durable.  If not, w is run when they are: then call again.
 */
extern bool dirty_mark (struct array *a, uint64_t pos, uint64_t len,
                        struct waiter *w);

/* A writing operation on these bytes begins or ends. */
extern void dirty_begin (struct array *a, uint64_t pos, uint64_t len);
extern void dirty_end (struct array *a, uint64_t pos, uint64_t len);

/* A member leaves: open regions count as missed.  True when that is durable;
 * else w is run.
 */
extern bool dirty_all_missed (struct array *a, struct waiter *w);

/* The same for one region; durable when dirty_all_stored says so. */
extern void dirty_miss (struct array *a, uint64_t region);

/* The same for all that was written in this session since this step began
 * (array/io/progress.h).
 */
extern void dirty_miss_since (struct array *a, uint32_t step);

/* True if the region of pos was missed by a slot that is not active. */
extern bool dirty_is_missed (const struct array *a, uint64_t pos);
/* Clear the missed bits: all slots are active. */
extern void dirty_clear_missed (struct array *a);

/* Clear the open bits of regions with no writers whose data, and checksums,
 * were flushed: of all, or only of those not written since the last call.
 * Checksums that were not are stored soon.
 */
extern void dirty_flushed (struct array *a, bool all);
/* True if no page has to be or is being written; else w is run. */
extern bool dirty_all_stored (struct array *a, struct waiter *w);

/* Before a new seat counts it needs all pages, in both places: a page with a
 * bad place says nothing.  True when it has them; else w is run.
 */
extern bool dirty_store_all (struct array *a, struct seat *s, struct waiter *w);

/* The start of the first region whose parity may be wrong, in bytes from
 * data_off; UINT64_MAX if there is none.
 */
extern uint64_t dirty_first_unsynced (const struct array *a);

/* The parity of this region is correct again. */
extern void dirty_synced (struct array *a, uint64_t region);

#endif
