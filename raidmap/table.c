/* gpuraid: pages of the checksum table, bytes to struct and back.
 *
 * array/ decides what an entry says of its block, and when a page is written.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <string.h>

#include "common/bits.h"
#include "common/bytes/crc32c.h"
#include "common/bytes/le.h"
#include "raidmap/limits.h"
#include "raidmap/seal.h"
#include "raidmap/table.h"

/* Bytes of a page; docs/on-disk-format.md has the same.  There is no room for a
 * magic: the page number and the crc identify a page.
 */
enum {
  AT_CRC = 0,
  AT_PAGE_NO = 4,
  AT_COUNTER = 8,
  AT_ENTRIES = 16,
  ENTRY_LEN = 8,
};

uint64_t
table_nr_pages (const struct member_layout *l)
{
  return l->table_len == 0 ? 0 :
    div_round_up (l->data_len / BLOCK_LEN, limits.table_page_entries);
}

uint64_t
table_off (const struct member_layout *l, uint64_t at)
{
  return table_page_off (l, at / (2 * TABLE_PAGE_LEN), 0);
}

uint64_t
table_run (const struct member_layout *l, uint64_t at)
{
  const uint64_t page_len = (uint64_t) limits.table_page_entries * BLOCK_LEN;
  struct layout_part p;

  layout_part_of (l, at / (2 * TABLE_PAGE_LEN) * page_len, &p);
  return (p.table_page + p.nr_table_pages) * 2 * TABLE_PAGE_LEN - at;
}

uint64_t
table_page_off (const struct member_layout *l, uint64_t page_no,
                unsigned place)
{
  const uint64_t page_len = (uint64_t) limits.table_page_entries * BLOCK_LEN;
  uint64_t off = l->table_off;

  for (unsigned i = 0; i < l->nr_grown; i++) {
    struct layout_part p;

    /* The page that a part has in common with the one before is there. */
    if (page_no * page_len < l->grown[i])
      break;
    layout_part (l, i + 1, &p);
    off = p.table_off - p.table_page * 2 * TABLE_PAGE_LEN;
  }
  return off + (2 * page_no + place) * TABLE_PAGE_LEN;
}

uint64_t
table_next_counter (uint64_t counter, uint64_t seq)
{
  const uint64_t next = MAX (counter + 1, seq << 16);

  return next + ((next ^ counter ^ 1) & 1);
}

uint32_t
table_seed (const uuid_bytes *array_uuid, unsigned slot)
{
  uint8_t le[4];

  put_le32 (le, slot);
  return crc32c_more (crc32c (array_uuid->b, sizeof array_uuid->b), le,
                      sizeof le);
}

uint32_t
table_sum (uint32_t block_crc, uint32_t seed, uint64_t block_no)
{
  uint8_t le[8];

  put_le64 (le, block_no);
  return block_crc ^ crc32c_more (seed, le, sizeof le);
}

void
table_page_encode (const struct table_page *p,
                   const uuid_bytes *array_uuid, unsigned slot,
                   uint8_t buf[TABLE_PAGE_LEN])
{
  uint8_t *e = buf + AT_ENTRIES;

  put_le32 (buf + AT_PAGE_NO, p->page_no);
  put_le64 (buf + AT_COUNTER, p->counter);
  for (unsigned i = 0; i < TABLE_PAGE_ENTRIES; ++i, e += ENTRY_LEN) {
    put_le32 (e, p->entry[i].sum);
    put_le32 (e + 4, p->entry[i].generation);
  }
  seal (buf, TABLE_PAGE_LEN, AT_CRC, array_uuid, slot);
}

bool
table_page_decode (const uint8_t buf[TABLE_PAGE_LEN],
                   const uuid_bytes *array_uuid, unsigned slot,
                   uint32_t page_no, struct table_page *p)
{
  const uint8_t *e = buf + AT_ENTRIES;

  if (get_le32 (buf + AT_PAGE_NO) != page_no ||
      !seal_ok (buf, TABLE_PAGE_LEN, AT_CRC, array_uuid, slot))
    return false;

  memset (p, 0, sizeof *p);
  p->page_no = page_no;
  p->counter = get_le64 (buf + AT_COUNTER);
  for (unsigned i = 0; i < TABLE_PAGE_ENTRIES; ++i, e += ENTRY_LEN) {
    p->entry[i].sum = get_le32 (e);
    p->entry[i].generation = get_le32 (e + 4);
  }
  return true;
}
