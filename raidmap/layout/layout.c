/* gpuraid: where a byte of the array lies, and where everything else
 * does on a member.
 *
 * Pure arithmetic on 64 bits.  Nothing here overflows as long as the
 * size of the array and of a member are at most LAYOUT_MAX_SIZE, which
 * layout_fit and layout_check see to.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdbool.h>

#include "common/bits.h"
#include "raidmap/bitmap.h"
#include "raidmap/layout/layout.h"
#include "raidmap/limits.h"
#include "raidmap/table.h"

#define NONE UINT64_MAX

/* The bitmap is kept below this many pages while regions can grow. */
#define BITMAP_MAX_PAGES 64u
#define REGION_MAX_LEN (UINT32_C (1) << 31)
#define DATA_ALIGN (UINT64_C (1) << 20)

static unsigned
nr_fixed (const struct geometry *g)
{
  return g->fixed ? nr_bits (g->fixed) : 0;
}

/* Number i, from 0 on, of a mask that has more than i. */
static unsigned
nth_slot (uint64_t slots, unsigned i)
{
  while (i-- > 0)
    slots &= slots - 1;
  return __builtin_ctzll (slots);
}

unsigned
layout_slot (const struct geometry *g, uint64_t stripe, unsigned role)
{
  const unsigned m = g->m - nr_fixed (g), n = g->k + m;
  unsigned slot;

  if (role >= n)
    return nth_slot (g->fixed, role - n);
  slot = (role + m - 1 + n - (unsigned) (stripe % n)) % n;
  return g->fixed ? nth_slot (~g->fixed, slot) : slot;
}

unsigned
layout_role (const struct geometry *g, uint64_t stripe, unsigned slot)
{
  const unsigned m = g->m - nr_fixed (g), n = g->k + m;
  const unsigned before = nr_bits (g->fixed & LOW_BITS (slot));

  if (g->fixed & BIT (slot))
    return n + before;
  return (slot - before + n - (m - 1) + (unsigned) (stripe % n)) % n;
}

/* While the array is widened it has the stripes of before. */
static uint64_t
stripe_len (const struct geometry *g)
{
  return (uint64_t) (g->k - g->widening) * g->chunk;
}

uint64_t
layout_nr_stripes (const struct geometry *g)
{
  return div_round_up (g->size, stripe_len (g));
}

void
layout_piece (const struct geometry *g, uint64_t off, uint64_t len,
              struct piece *p)
{
  uint64_t chunk_no = off >> __builtin_ctz (g->chunk);

  p->stripe = chunk_no / g->k;
  p->role = chunk_no % g->k;
  p->chunk_off = off & (g->chunk - 1);
  p->len = MIN (len, g->chunk - p->chunk_off);
}

uint64_t
layout_address (const struct geometry *g, uint64_t stripe, unsigned role,
                uint32_t chunk_off)
{
  return (stripe * g->k + role) * g->chunk + chunk_off;
}

uint64_t
layout_sb_off (uint64_t member_size, enum sb_copy copy)
{
  uint64_t end = round_down (member_size, BLOCK_LEN);
  uint64_t off;

  switch (copy) {
  case SB_A1: off = 0; break;
  case SB_A2: off = SB_LEN; break;
  case SB_B1: off = end - 2 * SB_LEN; break;
  default:    off = end - SB_LEN; break;
  }
  return end >= SB_NR_COPIES * SB_LEN ? off : NONE;
}

/* The bitmap's pages at this region_len. */
static uint64_t
nr_bitmap_pages (uint64_t data_len, uint32_t region_len)
{
  return div_round_up (div_round_up (data_len, region_len),
                       limits.page_regions);
}

static uint64_t
nr_table_pages (uint64_t data_len)
{
  return div_round_up (data_len / BLOCK_LEN, limits.table_page_entries);
}

/* Lay out this many stripes with regions of region_len, and return how
 * long the member must be.
 */
static uint64_t
lay_out (const struct geometry *g, uint64_t nr_stripes, uint64_t ring_len,
         bool checksums, uint32_t region_len, struct member_layout *l)
{
  *l = (struct member_layout) {
    .region_len = region_len, .data_len = nr_stripes * g->chunk,
  };
  l->ring_off = 2 * SB_LEN;
  l->ring_len = ring_len;
  l->table_off = l->ring_off + l->ring_len;
  l->table_len = checksums ?
    nr_table_pages (l->data_len) * 2 * TABLE_PAGE_LEN : 0;
  l->bitmap_off = l->table_off + l->table_len;
  l->bitmap_len =
    nr_bitmap_pages (l->data_len, region_len) * 2 * BITMAP_PAGE_LEN;
  l->data_off = round_up (l->bitmap_off + l->bitmap_len, DATA_ALIGN);
  return l->data_off + l->data_len + 2 * SB_LEN;
}

static uint32_t
first_region_len (const struct geometry *g)
{
  return MAX (limits.region_min_len, g->chunk);
}

/* The most stripes for which regions of region_len are long enough. */
static uint64_t
region_max_stripes (const struct geometry *g, uint32_t region_len)
{
  if (region_len == REGION_MAX_LEN)
    return LAYOUT_MAX_SIZE / g->chunk;
  return (uint64_t) BITMAP_MAX_PAGES * limits.page_regions * region_len
    / g->chunk;
}

/* The most stripes that a member can have, however long it is. */
static uint64_t
max_stripes (const struct geometry *g, bool checksums)
{
  uint64_t max = LAYOUT_MAX_SIZE;

  if (checksums)
    max = TABLE_MAX_PAGES * limits.table_page_entries * BLOCK_LEN;
  return max / g->chunk;
}

/* Lay out this many stripes, with the regions that go with them. */
static uint64_t
lay_out_stripes (const struct geometry *g, uint64_t nr_stripes,
                 uint64_t ring_len, bool checksums, struct member_layout *l)
{
  uint32_t region_len = first_region_len (g);

  while (region_len < REGION_MAX_LEN &&
         nr_stripes > region_max_stripes (g, region_len))
    region_len *= 2;
  return lay_out (g, nr_stripes, ring_len, checksums, region_len, l);
}

/* The greatest number of stripes from lo to hi that fits, or 0.  With
 * one region_len the need grows with the stripes, so halving finds it.
 */
static uint64_t
most_stripes (const struct geometry *g, uint64_t lo, uint64_t hi,
              uint64_t member_size, uint64_t ring_len, bool checksums)
{
  struct member_layout l;

  if (lo > hi ||
      lay_out_stripes (g, lo, ring_len, checksums, &l) > member_size)
    return 0;
  while (lo < hi) {
    uint64_t mid = lo + (hi - lo + 1) / 2;

    if (lay_out_stripes (g, mid, ring_len, checksums, &l) <= member_size)
      lo = mid;
    else
      hi = mid - 1;
  }
  return lo;
}

/* As many stripes as fit; 0 if none does.  Where regions double the bitmap
 * halves, and a little more data can need a smaller member.  So try each
 * region_len by itself, the longest first.
 */
static uint64_t
fill_member (const struct geometry *g, uint64_t member_size,
             uint64_t ring_len, bool checksums)
{
  uint64_t max = MIN (max_stripes (g, checksums),
                      LAYOUT_MAX_SIZE / stripe_len (g));
  uint32_t region_len;

  for (region_len = REGION_MAX_LEN;
       region_len >= first_region_len (g);
       region_len /= 2) {
    uint64_t lo = region_len == first_region_len (g) ? 1 :
      region_max_stripes (g, region_len / 2) + 1;
    uint64_t hi = MIN (max, region_max_stripes (g, region_len));
    uint64_t nr = most_stripes (g, lo, hi, member_size, ring_len, checksums);

    if (nr)
      return nr;
  }
  return 0;
}

/* ---- parts --------------------------------------------------------------- */

static void
first_part (const struct member_layout *l, struct layout_part *p)
{
  *p = (struct layout_part) {
    .len = layout_first_len (l),
    .data_off = l->data_off,
    .table_off = l->table_off,
    .nr_table_pages = l->table_len / (2 * TABLE_PAGE_LEN),
    .bitmap_off = l->bitmap_off,
    .nr_bitmap_pages = l->bitmap_len / (2 * BITMAP_PAGE_LEN),
  };
}

/* Number i comes after p. */
static void
next_part (const struct member_layout *l, unsigned i, struct layout_part *p)
{
  const uint64_t end = i < l->nr_grown ? l->grown[i] : l->data_len;

  p->start += p->len;
  p->table_off = p->data_off + p->len;
  p->len = end - p->start;
  p->table_page += p->nr_table_pages;
  p->nr_table_pages =
    l->table_len ? nr_table_pages (end) - p->table_page : 0;
  p->bitmap_off = p->table_off + p->nr_table_pages * 2 * TABLE_PAGE_LEN;
  p->bitmap_page += p->nr_bitmap_pages;
  p->nr_bitmap_pages = nr_bitmap_pages (end, l->region_len) - p->bitmap_page;
  p->data_off = round_up (p->bitmap_off +
                          p->nr_bitmap_pages * 2 * BITMAP_PAGE_LEN,
                          DATA_ALIGN);
}

void
layout_part (const struct member_layout *l, unsigned i, struct layout_part *p)
{
  first_part (l, p);
  for (unsigned j = 1; j <= i; j++)
    next_part (l, j, p);
}

void
layout_part_of (const struct member_layout *l, uint64_t pos,
                struct layout_part *p)
{
  unsigned i = 0;

  while (i < l->nr_grown && pos >= l->grown[i])
    i++;
  layout_part (l, i, p);
}

uint64_t
layout_data_off (const struct member_layout *l, uint64_t pos)
{
  struct layout_part p;

  if (l->nr_grown == 0 || pos < l->grown[0])
    return l->data_off + pos;
  layout_part_of (l, pos, &p);
  return p.data_off + (pos - p.start);
}

uint64_t
layout_data_run (const struct member_layout *l, uint64_t pos, uint64_t len)
{
  for (unsigned i = 0; i < l->nr_grown; i++)
    if (pos < l->grown[i])
      return MIN (len, l->grown[i] - pos);
  return len;
}

uint64_t
layout_end (const struct member_layout *l)
{
  struct layout_part p;

  layout_part (l, l->nr_grown, &p);
  return p.data_off + p.len + 2 * SB_LEN;
}

/* With this many stripes, in one part more. */
static uint64_t
grown_end (struct member_layout *l, const struct geometry *g,
           uint64_t nr_stripes)
{
  l->data_len = nr_stripes * g->chunk;
  return layout_end (l);
}

int
layout_grow (struct geometry *g, struct member_layout *l,
             uint64_t member_size, uint64_t *need)
{
  const uint64_t now = layout_nr_stripes (g);
  const uint64_t least = now + div_round_up (limits.grow_min_len, g->chunk);
  uint64_t lo = now, hi = MIN (max_stripes (g, l->table_len > 0),
                               LAYOUT_MAX_SIZE / stripe_len (g));
  struct member_layout more = *l;

  *need = NONE;
  member_size = MIN (round_down (member_size, BLOCK_LEN), LAYOUT_MAX_SIZE);
  if (least <= hi && l->nr_grown < LAYOUT_MAX_GROWN) {
    more.grown[more.nr_grown++] = l->data_len;
    *need = grown_end (&more, g, least);
    *need = *need > LAYOUT_MAX_SIZE ? NONE : *need;
    /* One that does not fit would be too long to overflow. */
    hi = MIN (hi, now + member_size / g->chunk);
    while (lo < hi) {
      const uint64_t mid = lo + (hi - lo + 1) / 2;

      if (grown_end (&more, g, mid) <= member_size)
        lo = mid;
      else
        hi = mid - 1;
    }
  }
  if (lo < least || more.nr_grown == l->nr_grown)
    return -1;
  grown_end (&more, g, lo);
  *l = more;
  g->size = lo * stripe_len (g);
  return 0;
}

/* ---- a new array --------------------------------------------------------- */

int
layout_fit (struct geometry *g, uint64_t member_size, uint64_t size,
            uint64_t ring_len, int checksums,
            struct member_layout *l, uint64_t *need)
{
  uint64_t nr_stripes;

  *need = NONE;
  if (size > LAYOUT_MAX_SIZE || ring_len > LAYOUT_MAX_RING_LEN ||
      (size > 0 && size < BLOCK_LEN))
    return -1;
  ring_len = round_up (ring_len, BLOCK_LEN);
  member_size = MIN (round_down (member_size, BLOCK_LEN), LAYOUT_MAX_SIZE);

  if (size > 0) {
    g->size = round_down (size, BLOCK_LEN);
    nr_stripes = layout_nr_stripes (g);
    if (nr_stripes > max_stripes (g, checksums))
      return -1;
  }
  else {
    nr_stripes = MAX (fill_member (g, member_size, ring_len, checksums), 1);
    g->size = nr_stripes * stripe_len (g);
  }

  *need = lay_out_stripes (g, nr_stripes, ring_len, checksums, l);
  if (*need > LAYOUT_MAX_SIZE)
    *need = NONE;
  return *need <= member_size ? 0 : -1;
}

static uint64_t
first_len (const struct member_layout *l)
{
  return l->nr_grown ? l->grown[0] : l->data_len;
}

/* Are the areas of the first part in order, in bounds, and whole blocks? */
static bool
in_order (const struct member_layout *l)
{
  const uint64_t area[][2] = {
    { l->ring_off, l->ring_len },
    { l->table_off, l->table_len },
    { l->bitmap_off, l->bitmap_len },
    { l->data_off, first_len (l) },
  };
  uint64_t end = 2 * SB_LEN;

  if (l->data_len > LAYOUT_MAX_SIZE)
    return false;
  for (size_t i = 0; i < ARRAY_LEN (area); ++i) {
    uint64_t off = area[i][0], len = area[i][1];

    if (!is_aligned (off, BLOCK_LEN) || !is_aligned (len, BLOCK_LEN) ||
        off < end || off > LAYOUT_MAX_SIZE || len > LAYOUT_MAX_SIZE - off)
      return false;
    end = off + len;
  }
  return end <= LAYOUT_MAX_SIZE - 2 * SB_LEN;
}

/* Are the parts after the first in order and in bounds?  The first part and the
 * length of a region are right.
 */
static bool
parts_in_order (const struct geometry *g, const struct member_layout *l)
{
  uint64_t before = 0;

  if (l->nr_grown > LAYOUT_MAX_GROWN)
    return false;
  for (unsigned i = 0; i < LAYOUT_MAX_GROWN; i++) {
    if (i >= l->nr_grown) {
      if (l->grown[i] != 0)
        return false;
      continue;
    }
    if (l->grown[i] <= before || l->grown[i] >= l->data_len ||
        !is_aligned (l->grown[i], g->chunk))
      return false;
    before = l->grown[i];
  }
  /* Each sum is at most twice LAYOUT_MAX_SIZE. */
  for (unsigned i = 0; i <= l->nr_grown; i++) {
    struct layout_part p;

    layout_part (l, i, &p);
    if (p.data_off > LAYOUT_MAX_SIZE ||
        p.data_off + p.len > LAYOUT_MAX_SIZE - 2 * SB_LEN)
      return false;
  }
  return true;
}

const char *
layout_check_geometry (const struct geometry *g)
{
  if (g->k < 1 || g->m < 1 || g->k > MAX_SLOTS || g->m > MAX_SLOTS ||
      g->k + g->m > MAX_SLOTS)
    return "k or m is out of range";
  if (g->widening && g->k < 2)
    return "an array without a data member is widened";
  if ((g->fixed & ~LOW_BITS (g->k + g->m)) != 0 || nr_fixed (g) >= g->m)
    return "the slots that do not rotate are out of range";
  if (!is_power_of_2 (g->chunk) ||
      g->chunk < CHUNK_MIN_LEN || g->chunk > CHUNK_MAX_LEN)
    return "the chunk size is out of range";
  if (g->size == 0 || g->size > LAYOUT_MAX_SIZE ||
      !is_aligned (g->size, BLOCK_LEN))
    return "the size is out of range";
  return NULL;
}

const char *
layout_check (const struct geometry *g, const struct member_layout *l)
{
  const char *why = layout_check_geometry (g);

  if (why)
    return why;
  if (!in_order (l) || !is_aligned (l->data_off, DATA_ALIGN) ||
      l->ring_len > LAYOUT_MAX_RING_LEN)
    return "an area of the member is out of place";
  if (!is_power_of_2 (l->region_len) || l->region_len < first_region_len (g))
    return "the region length is out of range";
  if (l->data_len != layout_nr_stripes (g) * g->chunk)
    return "the data does not have the array's length";
  if (l->bitmap_len !=
      nr_bitmap_pages (first_len (l), l->region_len) * 2 * BITMAP_PAGE_LEN)
    return "the bitmap does not have the data's length";
  if (l->table_len != 0 &&
      (l->table_len != nr_table_pages (first_len (l)) * 2 * TABLE_PAGE_LEN ||
       nr_table_pages (l->data_len) > TABLE_MAX_PAGES))
    return "the table does not have the data's length";
  if (!parts_in_order (g, l))
    return "a part that was added is out of place";
  return NULL;
}
