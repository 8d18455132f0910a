/* gpuraid: pages of the dirty bitmap, bytes to struct and back.
 *
 * What a bit means and when it may be cleared is array/dirty/dirty.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <string.h>

#include "common/bits.h"
#include "common/bytes/le.h"
#include "common/bytes/zeroes.h"
#include "raidmap/bitmap.h"
#include "raidmap/limits.h"
#include "raidmap/seal.h"

/* Bytes of a page; docs/on-disk-format.md has the same. */
enum {
  AT_MAGIC = 0,
  AT_CRC = 8,
  AT_PAGE_NO = 16,
  AT_COUNTER = 24,
  AT_OPEN = 64,
  AT_MISSED = AT_OPEN + BITMAP_PAGE_WORDS * 8,
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
  return div_round_up (bitmap_nr_regions (l), limits.page_regions);
}

uint64_t
bitmap_word_mask (const struct member_layout *l, uint64_t page_no, unsigned w)
{
  const uint64_t before = page_no * limits.page_regions;
  const uint64_t nr = MIN (bitmap_nr_regions (l) - before, limits.page_regions);

  return w * 64 < nr ? LOW_BITS (nr - w * 64) : 0;
}

uint64_t
bitmap_page_off (const struct member_layout *l, uint64_t page_no,
                 unsigned place)
{
  const uint64_t page_len = (uint64_t) limits.page_regions * l->region_len;
  uint64_t off = l->bitmap_off;

  for (unsigned i = 0; i < l->nr_grown; i++) {
    struct layout_part p;

    /* The page that a part has in common with the one before is there. */
    if (page_no * page_len < l->grown[i])
      break;
    layout_part (l, i + 1, &p);
    off = p.bitmap_off - p.bitmap_page * 2 * BITMAP_PAGE_LEN;
  }
  return off + (2 * page_no + place) * BITMAP_PAGE_LEN;
}

void
bitmap_page_encode (const struct bitmap_page *p,
                    const uuid_bytes *array_uuid, unsigned slot,
                    uint8_t buf[BITMAP_PAGE_LEN])
{
  memset (buf, 0, BITMAP_PAGE_LEN);
  memcpy (buf + AT_MAGIC, magic, sizeof magic);
  put_le64 (buf + AT_PAGE_NO, p->page_no);
  put_le64 (buf + AT_COUNTER, p->counter);
  for (unsigned i = 0; i < BITMAP_PAGE_WORDS; ++i) {
    put_le64 (buf + AT_OPEN + 8 * i, p->open[i]);
    put_le64 (buf + AT_MISSED + 8 * i, p->missed[i]);
  }
  seal (buf, BITMAP_PAGE_LEN, AT_CRC, array_uuid, slot);
}

bool
bitmap_page_decode (const uint8_t buf[BITMAP_PAGE_LEN],
                    const uuid_bytes *array_uuid, unsigned slot,
                    uint64_t page_no, struct bitmap_page *p)
{
  if (memcmp (buf + AT_MAGIC, magic, sizeof magic) != 0 ||
      get_le64 (buf + AT_PAGE_NO) != page_no ||
      !seal_ok (buf, BITMAP_PAGE_LEN, AT_CRC, array_uuid, slot) ||
      !all_zeroes (buf + AT_CRC + 4, AT_PAGE_NO - (AT_CRC + 4)) ||
      !all_zeroes (buf + AT_COUNTER + 8, AT_OPEN - (AT_COUNTER + 8)))
    return false;

  memset (p, 0, sizeof *p);
  p->page_no = page_no;
  p->counter = get_le64 (buf + AT_COUNTER);
  for (unsigned i = 0; i < BITMAP_PAGE_WORDS; ++i) {
    p->open[i] = get_le64 (buf + AT_OPEN + 8 * i);
    p->missed[i] = get_le64 (buf + AT_MISSED + 8 * i);
  }
  return true;
}
