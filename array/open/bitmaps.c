/* gpuraid: read the dirty bitmaps of the members found, synchronously.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>

#include "array/open/bitmaps.h"
#include "common/bits.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/plant.h"
#include "raidmap/bitmap.h"

/* Read the newest good copy of a page, if there is one; the number of places
 * that are good.
 */
static unsigned
read_page (struct member *m, const struct superblock *sb, unsigned slot,
           uint64_t page_no, struct bitmap_page *page, uint8_t *newest)
{
  uint8_t buf[BITMAP_PAGE_LEN] __attribute__ ((aligned (BITMAP_PAGE_LEN)));
  struct bitmap_page p;
  unsigned nr_good = 0;

  *newest = 0;
  for (unsigned place = 0; place < 2; place++) {
    uint64_t off = bitmap_page_off (&sb->l, page_no, place);

    if (m->ops->pread (m, buf, sizeof buf, off) != 0 ||
        !bitmap_page_decode (buf, &sb->array_uuid, slot, page_no, &p))
      continue;
    if (nr_good == 0 || p.counter > page->counter) {
      *page = p;
      *newest = place;
    }
    nr_good++;
  }
  return nr_good;
}

/* The place that is bad may be the newer one, with bits that the other lacks:
 * so the page counts only if both are good.
 */
static bool
counts (unsigned nr_good)
{
  return nr_good == 2 || (nr_good == 1 && PLANTED ("bitmap-one-place"));
}

static void
add_page (const struct superblock *sb, struct bitmap_page *sum,
          const struct bitmap_page *p, bool all)
{
  for (unsigned w = 0; w < BITMAP_PAGE_WORDS; w++) {
    uint64_t mask = bitmap_word_mask (&sb->l, sum->page_no, w);

    sum->open[w] |= mask & (all ? ~UINT64_C (0) : p->open[w]);
    sum->missed[w] |= mask & (all ? ~UINT64_C (0) : p->missed[w]);
  }
}

static void
read_member (struct assembly *a, struct assembled_member *am,
             struct bitmap_page *page)
{
  uint64_t nr_pages = bitmap_nr_pages (&a->sb.l);
  unsigned slot = am->dev < SB_MAX_DEVICES ? a->sb.device[am->dev].slot
    : SLOT_NONE;

  if (slot == SLOT_NONE)
    return;
  for (uint64_t p = 0; p < nr_pages; p++) {
    const unsigned nr_good = read_page (am->member, &a->sb, slot, p, page,
                                        &am->page_place[p]);

    if (am->role == MEMBER_CURRENT)
      add_page (&a->sb, &a->page[p], page, !counts (nr_good));
    if (nr_good > 0)
      a->page[p].counter = MAX (a->page[p].counter, page->counter);
    if (nr_good < 2)
      log_debug ("%s: page %llu of the dirty bitmap is bad: all of its "
                 "regions count as changed", am->member->path,
                 (unsigned long long) p);
  }
}

int
dirty_read_places (struct member *m, const struct superblock *sb,
                   unsigned slot, uint8_t *place, uint64_t *counter)
{
  CLEANUP_FREE struct bitmap_page *page = malloc (sizeof *page);

  if (page == NULL)
    return -1;
  for (uint64_t p = 0; p < bitmap_nr_pages (&sb->l); p++)
    counter[p] = read_page (m, sb, slot, p, page, &place[p]) > 0 ?
      page->counter : 0;
  return 0;
}

int
dirty_read (struct assembly *a)
{
  uint64_t nr_pages = bitmap_nr_pages (&a->sb.l);
  CLEANUP_FREE struct bitmap_page *page = malloc (sizeof *page);

  a->page = calloc (nr_pages, sizeof *a->page);
  if (a->page == NULL || page == NULL) {
    log_error ("calloc: %m");
    return -1;
  }
  for (uint64_t p = 0; p < nr_pages; p++)
    a->page[p].page_no = p;
  for (unsigned i = 0; i < a->nr_members; i++) {
    a->member[i].page_place = calloc (nr_pages, 1);
    if (a->member[i].page_place == NULL) {
      log_error ("calloc: %m");
      return -1;
    }
    read_member (a, &a->member[i], page);
  }

  a->unclean = false;
  for (uint64_t p = 0; p < nr_pages; p++)
    for (unsigned w = 0; w < BITMAP_PAGE_WORDS; w++)
      a->unclean |= a->page[p].open[w] != 0;
  return 0;
}
