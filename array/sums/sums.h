/* gpuraid: the checksum table in memory.
 *
 * The entries of the same rows are on the same page of every slot, so pages
 * are kept by number, with the entries of all slots, which are loaded when an
 * operation first needs them.  An operation pins the pages of its rows.
 *
 * An entry changes when the transaction that wrote its block is durable (R1).
 * The changed pages are stored later, before the transaction is freed.
 * Without a journal it changes with the write, and the pages are stored, in
 * both places, before the region's open bit is cleared.
 *
 * Rows have the number of their blocks on a member, from data_off.  All of
 * these with the array lock held.  Without checksums a->sums is NULL.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_SUMS_H
#define GPURAID_SUMS_H

#include "array/engine/room.h"
#include "raidmap/table.h"

/* The bytes of memory for the table out of cache_len, and the least for this
 * geometry.
 */
extern uint64_t sums_memory (const struct geometry *g, uint64_t cache_len);
/* What the table gets of it, with what the cache needs at least left; 0: there
 * is no table.
 */
extern uint64_t sums_share (const struct superblock *sb, uint64_t cache_len);

/* At most these slots more than the fewest since the start: for another one the
 * array has to be started again.
 */
#define SUMS_MAX_ADDED 8u

extern const struct room room_sums;

/* ---- pins ---------------------------------------------------------------- */

struct sums_page;

#define SUMS_MAX_PINS 64u

/* The pages of some rows.  Zero: none. */
struct sums_pin {
  uint64_t first;               /* page */
  unsigned nr;
  struct sums_page *page[SUMS_MAX_PINS];
};

/* Pin the pages of rows [row, row + nr), with the entries of these slots.
 * Rows that are pinned already may not be others.  False if it waits: w is
 * run, then call again.
 */
extern bool sums_pin (struct array *a, struct sums_pin *pin, uint64_t row,
                      uint64_t nr, uint64_t slots, struct waiter *w);
extern void sums_unpin (struct array *a, struct sums_pin *pin);

/* Rows [row, *end) were never written, as the holes of all active members say;
 * *end is row if that is not known.  Lines that are being written may be among
 * them.  False if it waits: w is run, then call again.
 */
extern bool sums_find_hole (struct array *a, uint64_t row, uint64_t *end,
                            struct waiter *w);

/* The first row on the page of this one, and the end of its rows. */
static inline uint64_t
sums_page_begin (uint64_t row)
{
  return row / limits.table_page_entries * limits.table_page_entries;
}

static inline uint64_t
sums_page_end (uint64_t row)
{
  return (row / limits.table_page_entries + 1) * limits.table_page_entries;
}

/* The end of the last row, after row, of the most pages that one pin may
 * have.
 */
extern uint64_t sums_pin_end (const struct array *a, uint64_t row);

/* ---- entries ------------------------------------------------------------- */

/* Of a pinned row; the entry of a slot that was not loaded is lost. */
extern struct table_entry sums_get (const struct array *a,
                                    const struct sums_pin *pin,
                                    unsigned slot, uint64_t row);
/* Slots of which the page of a pinned row gave an error: its entries are lost
 * for now.
 */
extern uint64_t sums_unreadable (const struct sums_pin *pin, uint64_t row);
/* True if these slots are loaded on all pages of the pin. */
extern bool sums_has_slots (const struct array *a,
                            const struct sums_pin *pin, uint64_t slots);

/* The same for nr rows that need not be pinned, if they are in memory.
 * False if not.  It opens their pages to sums_glance, as long as they are.
 */
extern bool sums_peek (const struct array *a, unsigned slot, uint64_t row,
                       unsigned nr, struct table_entry *entry);

/* Any thread, without the array lock: the sums of nr blocks from this row on,
 * if their page is open and they were written.  They may be of any moment
 * during the call, or garbage: they are only good to compare with what was
 * read, by sums_sum, for which the row counts.
 */
extern bool sums_glance (const struct array *a, unsigned slot, uint64_t row,
                         unsigned nr, uint32_t *sum);

/* The sum in an entry whose block has this crc32c.  Any thread. */
extern uint32_t sums_sum (const struct array *a, unsigned slot, uint64_t row,
                          uint32_t crc);

/* The seq of all changes without a journal. */
#define SUMS_ONE_SEQ 1u

/* Change the entry of a pinned row, by the transaction seq; 0: by a copy to a
 * rebuild's target, a recovery or a resync: the page is stored even if it has
 * that entry.
 */
extern void sums_change (struct array *a, struct sums_pin *pin,
                         unsigned slot, uint64_t row, struct table_entry e,
                         uint64_t seq);

/* Store the page in both places on this slot, even if it does not change: a
 * second member of the slot may have another one.
 */
extern void sums_store_both (struct array *a, struct sums_pin *pin,
                             unsigned slot, uint64_t row, uint64_t seq);

/* A slot that was added: where the other slots' pages were written, is its own
 * too, in both places, with the seq of the newest transaction?  Of all pages of
 * the pin.  False: it waits, until they are stored; w is run.
 */
extern bool sums_has_own_page (struct array *a, struct sums_pin *pin,
                               unsigned slot, struct waiter *w);

/* All slots of nr rows have become zeroes. */
extern void sums_change_zero (struct array *a, struct sums_pin *pin,
                              uint64_t row, uint64_t nr, uint64_t seq);

/* The seq of the transaction that last changed the page of a pinned row on
 * this slot: its low half.
 */
extern uint32_t sums_before (const struct array *a,
                             const struct sums_pin *pin, unsigned slot,
                             uint64_t row);

/* True if no row of the pinned page was ever written. */
extern bool sums_is_unborn (const struct array *a, const struct sums_pin *pin,
                            uint64_t row);

/* Pages that were in memory before sums_verify_begin: compare what is stored
 * with them.  What is damaged is counted, and stored again when the array may
 * write.  False if it waits: w is run, then call again.
 */
extern void sums_verify_begin (struct array *a);
extern bool sums_verify (struct array *a, struct sums_pin *pin,
                         struct waiter *w);

/* Is the page of this row in memory, with all slots?  It need not be pinned. */
extern bool sums_in_memory (const struct array *a, uint64_t row,
                            bool *unborn);

/* ---- storing ------------------------------------------------------------- */

/* The oldest transaction of which some page is not stored yet; UINT64_MAX if
 * there is none.  A stored page is durable after a later flush.
 */
extern uint64_t sums_oldest (const struct array *a);
/* Store all pages that transactions up to seq have changed. */
extern void sums_store (struct array *a, uint64_t seq);

/* Is one in memory of which a place is bad?  In the next turn it counts among
 * those that have changed.
 */
extern bool sums_any_doubtful (const struct array *a);

/* Store all that have changed.  True when nothing is left; call it in each
 * turn.
 */
extern bool sums_store_all (struct array *a);

/* Flush what was stored.  True when all is durable, so that each page that is
 * not used can be taken for another one at once; call it in each turn.
 */
extern bool sums_flush_all (struct array *a);

/* Without a journal the checksums of a region that is not open must be there
 * after a crash: true if what is known of its rows is durable, in both places
 * of their pages.  If not, it is stored soon.  True without checksums.
 */
extern bool sums_may_close (struct array *a, uint64_t region);

/* What members that are behind (array/membership/membership.h) do not have is
 * lost: make that durable.  False if it waits: w is run, then call again.
 */
extern bool sums_settle_behind (struct array *a, struct waiter *w);

/* From now on pages may be stored: entries of transactions that may still be
 * dropped are in none.
 */
extern void sums_may_store (struct array *a);

/* Store the pages of rows [*row, end) on the rebuild's targets, in both
 * places.  False if it waits: then call again.  *row is its own meanwhile.
 */
extern bool sums_store_targets (struct array *a, uint64_t *row, uint64_t end,
                                struct waiter *w);

#endif
