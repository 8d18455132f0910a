/* gpuraid: the checksum table: pages that were never written, by the holes of
 * the members' files.
 *
 * Where every active member has a hole, all pages are zeroes on all of them:
 * never written, as if they had been read.  Pages may have been born meanwhile,
 * in memory alone: such a page is dirty first, and ends the run.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/sums/internal.h"
#include "common/plant.h"

/* The page of a place on the member that the query is about. */
static uint64_t
page_at (const struct sums_hole *h, uint64_t off)
{
  return h->first + (off - h->query.off) / (2 * TABLE_PAGE_LEN);
}

/* The part of the layout that has a page ends with this one. */
static uint64_t
last_page_of_part (const struct array *a, uint64_t page_no)
{
  struct layout_part p;

  layout_part_of (&a->sb.l, page_no * limits.table_page_entries * BLOCK_LEN,
                  &p);
  return p.table_page + p.nr_table_pages - 1;
}

/* Pages in memory may not have been stored yet. */
static void
answered (struct array *a, struct hole_query *q)
{
  struct sums_hole *h = list_item (q, struct sums_hole, query);
  const struct sums *s = a->sums;

  h->end = MIN (h->end, page_at (h, q->hole_end));
  for (unsigned b = 0; b < s->nr_buckets; b++)
    for (const struct sums_page *p = s->bucket[b]; p; p = p->hash_next)
      if (p->born && p->no >= h->first && !PLANTED ("sums-hole-unborn"))
        h->end = MIN (h->end, p->no);
  h->end = MAX (h->end, h->first);
  h->data_end = h->end > h->first ? h->end :
    MAX (page_at (h, q->data_end), h->first + 1);
  h->asking = false;
  engine_run_waiters (a, &h->waiters);
}

/* False: they can't tell. */
static bool
ask (struct array *a, struct sums_hole *h, uint64_t page_no)
{
  const struct member_layout *l = &a->sb.l;

  h->query.off = table_page_off (l, page_no, 0);
  h->query.end = table_page_off (l, last_page_of_part (a, page_no), 1) +
    TABLE_PAGE_LEN;
  h->query.answered = answered;
  if (!hole_ask (a, &h->query))
    return false;
  h->asking = true;
  h->first = page_no;
  h->end = UINT64_MAX;
  return true;
}

bool
sums_find_hole (struct array *a, uint64_t row, uint64_t *end,
                struct waiter *w)
{
  struct sums_hole *h = &a->sums->hole;
  const uint64_t page_no = row / limits.table_page_entries;

  *end = row;
  if (!h->asking && (page_no < h->first || page_no >= h->data_end) &&
      !ask (a, h, page_no))
    return true;
  if (h->asking) {
    list_move (&h->waiters, &w->link);
    return false;
  }
  if (page_no < h->end)
    *end = h->end * limits.table_page_entries;
  return true;
}

uint64_t
sums_hole_after (const struct sums *s, uint64_t row)
{
  const struct sums_hole *h = &s->hole;
  const uint64_t page_no = row / limits.table_page_entries;

  return page_no >= h->end && page_no < h->data_end ?
    h->data_end * limits.table_page_entries : UINT64_MAX;
}

void
sums_hole_born (struct sums *s, uint64_t page_no)
{
  struct sums_hole *h = &s->hole;

  if (PLANTED ("sums-hole-unborn"))
    return;
  h->end = page_no;
  h->data_end = page_no + 1;
}
