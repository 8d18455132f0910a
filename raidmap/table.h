/* gpuraid: pages of the checksum table, bytes to struct and back.
 *
 * One entry for each data block of a member: block b from data_off is
 * entry b % 510 of page b / 510.  A page has two places, side by side:
 * page p is at table_off + (2p) * 4096 and table_off + (2p + 1) * 4096;
 * the one with the greater counter that decodes is the page.  Of the
 * two, one is not written again before the write to the other is
 * flushed.
 *
 * A counter has the seq of the newest transaction in the page in its high
 * 48 bits, and its lowest bit is the place.
 *
 * A page that was never written is all zero bytes in both places: its
 * blocks have the entry {0, 0}.  The first write to a page is one on all
 * members, to both places.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TABLE_H
#define GPURAID_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "raidmap/superblock.h"

#define TABLE_PAGE_LEN 4096u
#define TABLE_PAGE_ENTRIES 510u /* see limits.table_page_entries */
#define TABLE_MAX_PAGES (UINT64_C (1) << 32)    /* page_no is 32 bits */

/* What is known of a block: {0, 0} never written or trimmed, it reads
 * as zeroes; {1, 0} lost.  No written block has generation 0.
 */
enum table_kind { TABLE_ZERO, TABLE_LOST, TABLE_WRITTEN };

struct table_entry {
  uint32_t sum;                 /* table_sum of the block */
  uint32_t generation;          /* low 32 bits of the seq of the
                                 * transaction that last wrote it; 1
                                 * without a journal */
};

struct table_page {
  uint32_t page_no;
  uint64_t counter;             /* grows with each write of the page */
  struct table_entry entry[TABLE_PAGE_ENTRIES];
};

#define TABLE_ENTRY_LOST ((struct table_entry) { .sum = 1 })

static inline enum table_kind
table_kind (struct table_entry e)
{
  if (e.generation)
    return TABLE_WRITTEN;
  return e.sum ? TABLE_LOST : TABLE_ZERO;
}

/* The seq of the newest transaction in a page. */
static inline uint64_t
table_counter_seq (uint64_t counter)
{
  return counter >> 16;
}

static inline unsigned
table_counter_place (uint64_t counter)
{
  return counter & 1;
}

/* The counter for the next write of a page: in its other place, with this
 * seq or a greater one.
 */
extern uint64_t table_next_counter (uint64_t counter, uint64_t seq);

extern uint64_t table_nr_pages (const struct member_layout *l);
/* Both places of all of them, in bytes. */
static inline uint64_t
table_len (const struct member_layout *l)
{
  return table_nr_pages (l) * 2 * TABLE_PAGE_LEN;
}

/* Where byte at of these is, a multiple of both places of a page; and how many
 * follow it there.
 */
extern uint64_t table_off (const struct member_layout *l, uint64_t at);
extern uint64_t table_run (const struct member_layout *l, uint64_t at);

/* Where place 0 or 1 of a page is, in bytes from the member's start. */
extern uint64_t table_page_off (const struct member_layout *l,
                                uint64_t page_no, unsigned place);

/* The sum of a block whose crc32c is block_crc, with the seed of its slot;
 * block_no counts from data_off.  The block's address is in it, so that a block
 * written to the wrong place does not pass.
 */
extern uint32_t table_seed (const uuid_bytes *array_uuid, unsigned slot);
extern uint32_t table_sum (uint32_t block_crc, uint32_t seed,
                           uint64_t block_no);

extern void table_page_encode (const struct table_page *p,
                               const uuid_bytes *array_uuid, unsigned slot,
                               uint8_t buf[TABLE_PAGE_LEN]);
/* False: not this page of this slot of this array, or damaged. */
extern bool table_page_decode (const uint8_t buf[TABLE_PAGE_LEN],
                               const uuid_bytes *array_uuid, unsigned slot,
                               uint32_t page_no, struct table_page *p);

#endif
