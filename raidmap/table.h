/* gpuraid: pages of the checksum table, bytes to struct and back.
 *
 * One entry for each data block of a member: block b from data_off is
 * entry b % 510 of page b / 510.  A page has two places, side by side:
 * page p is at table_off + (2p) * 4096 and table_off + (2p + 1) * 4096;
 * the one with the greater counter that decodes is the page.
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
 * as zeroes; {1, 0} lost.
 */
struct table_entry {
  uint32_t sum;                 /* crc32c of the block, ^ table_whiten */
  uint32_t generation;          /* low 32 bits of the seq of the
                                 * transaction that last wrote it; 1
                                 * without a journal */
};

struct table_page {
  uint32_t page_no;
  uint64_t counter;             /* grows with each write of the page */
  struct table_entry entry[TABLE_PAGE_ENTRIES];
};

#endif
