/* gpuraid: pages of the dirty bitmap, bytes to struct and back.
 *
 * What a bit means and when it may be cleared is array/dirty.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <string.h>

#include "common/bits.h"
#include "common/le.h"
#include "raidmap/bitmap.h"
#include "raidmap/seal.h"

/* Bytes of a page; docs/on-disk-format.md has the same. */
enum {
  PAGE_MAGIC = 0,
  PAGE_CRC = 8,
  PAGE_NO = 16,
  PAGE_COUNTER = 24,
  PAGE_OPEN = 64,
  PAGE_MISSED = PAGE_OPEN + BITMAP_PAGE_WORDS * 8,
};

static const char magic[8] = "GPURAIDB";

uint64_t
bitmap_nr_regions (const struct member_layout *l)
{
  return div_round_up (l->data_len, l->region_len);
}

uint64_t
bitmap_nr_pages (const struct member_layout *l)
{
  return div_round_up (bitmap_nr_regions (l), BITMAP_PAGE_REGIONS);
}

void
bitmap_page_encode (const struct bitmap_page *p,
                    const uuid_bytes *array_uuid, unsigned slot,
                    uint8_t buf[BITMAP_PAGE_LEN])
{
  memset (buf, 0, BITMAP_PAGE_LEN);
  memcpy (buf + PAGE_MAGIC, magic, sizeof magic);
  put_le64 (buf + PAGE_NO, p->page_no);
  put_le64 (buf + PAGE_COUNTER, p->counter);
  for (unsigned i = 0; i < BITMAP_PAGE_WORDS; ++i) {
    put_le64 (buf + PAGE_OPEN + 8 * i, p->open[i]);
    put_le64 (buf + PAGE_MISSED + 8 * i, p->missed[i]);
  }
  seal (buf, BITMAP_PAGE_LEN, PAGE_CRC, array_uuid, slot);
}

bool
bitmap_page_decode (const uint8_t buf[BITMAP_PAGE_LEN],
                    const uuid_bytes *array_uuid, unsigned slot,
                    uint64_t page_no, struct bitmap_page *p)
{
  uint8_t again[BITMAP_PAGE_LEN];

  p->page_no = get_le64 (buf + PAGE_NO);
  p->counter = get_le64 (buf + PAGE_COUNTER);
  for (unsigned i = 0; i < BITMAP_PAGE_WORDS; ++i) {
    p->open[i] = get_le64 (buf + PAGE_OPEN + 8 * i);
    p->missed[i] = get_le64 (buf + PAGE_MISSED + 8 * i);
  }

  /* Magic, crc and reserved bytes: what decodes is what we would have
   * written.
   */
  bitmap_page_encode (p, array_uuid, slot, again);
  return p->page_no == page_no && memcmp (buf, again, sizeof again) == 0;
}
