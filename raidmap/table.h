/* gpuraid: pages of the checksum table, bytes to struct and back.
 *
 * One entry for each data block of a member: block b from data_off is
 * entry b % 510 of page b / 510.  A page has two places, side by side:
 * page p is at table_off + (2p) * 4096 and table_off + (2p + 1) * 4096;
 * the one with the greater counter that decodes is the page.  Of the
 * two, one is not written again before the write to the other is
 * flushed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TABLE_H
#define GPURAID_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "raidmap/superblock.h"

#define TABLE_PAGE_LEN 4096u
#define TABLE_PAGE_ENTRIES 510u
#define TABLE_MAX_PAGES (UINT64_C (1) << 32)    /* page_no is 32 bits */

/* What is known of a block: {0, 0} never written or trimmed, it reads
 * as zeroes; {1, 0} lost.  No written block has generation 0.
 */
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

extern uint64_t table_nr_pages (const struct member_layout *l);
/* Where place 0 or 1 of a page is, in bytes from the member's start. */
extern uint64_t table_page_off (const struct member_layout *l,
                                uint64_t page_no, unsigned place);

/* The sum of a block whose crc32c is block_crc; block_no counts from
 * data_off.  The block's address is in it, so that a block written to
 * the wrong place does not pass.
 */
extern uint32_t table_sum (uint32_t block_crc, const uuid_bytes *array_uuid,
                           unsigned slot, uint64_t block_no);

extern void table_page_encode (const struct table_page *p,
                               const uuid_bytes *array_uuid, unsigned slot,
                               uint8_t buf[TABLE_PAGE_LEN]);
/* False: not this page of this slot of this array, or damaged. */
extern bool table_page_decode (const uint8_t buf[TABLE_PAGE_LEN],
                               const uuid_bytes *array_uuid, unsigned slot,
                               uint32_t page_no, struct table_page *p);

#endif
