/* gpuraid: pages of the dirty bitmap, bytes to struct and back.
 *
 * Two bits per region of region_len bytes of a member.  A page has two
 * places, side by side: page p is at bitmap_off + (2p) * 4096 and
 * bitmap_off + (2p + 1) * 4096; the one with the greater counter that
 * decodes is the page.  Of the two, one is not written again before the
 * write to the other is flushed.  array/dirty/dirty.h says when.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_BITMAP_H
#define GPURAID_BITMAP_H

#include <stdbool.h>
#include <stdint.h>

#include "raidmap/superblock.h"

#define BITMAP_PAGE_LEN 4096u
#define BITMAP_PAGE_REGIONS 16128u      /* in a page there is room for: 252
                                         * words of 64 regions, for each kind
                                         * of bit; see limits.page_regions */
#define BITMAP_PAGE_WORDS (BITMAP_PAGE_REGIONS / 64)

struct bitmap_page {
  uint64_t page_no;
  uint64_t counter;                     /* grows with each write of the page */
  uint64_t open[BITMAP_PAGE_WORDS];     /* parity may be wrong */
  uint64_t missed[BITMAP_PAGE_WORDS];   /* changed while a slot was not
                                         * active */
};

extern uint64_t bitmap_nr_regions (const struct member_layout *l);
extern uint64_t bitmap_nr_pages (const struct member_layout *l);
/* The bits of a page's word w that stand for regions of the array. */
extern uint64_t bitmap_word_mask (const struct member_layout *l,
                                  uint64_t page_no, unsigned w);
/* Where place 0 or 1 of a page is, in bytes from the member's start. */
extern uint64_t bitmap_page_off (const struct member_layout *l,
                                 uint64_t page_no, unsigned place);

extern void bitmap_page_encode (const struct bitmap_page *p,
                                const uuid_bytes *array_uuid, unsigned slot,
                                uint8_t buf[BITMAP_PAGE_LEN]);
/* False: not this page of this slot of this array, or damaged. */
extern bool bitmap_page_decode (const uint8_t buf[BITMAP_PAGE_LEN],
                                const uuid_bytes *array_uuid, unsigned slot,
                                uint64_t page_no, struct bitmap_page *p);

#endif
