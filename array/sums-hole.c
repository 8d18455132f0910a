/* gpuraid: the checksum table: pages that were never written, by the holes of
 * the members' files.
 *
 * Where every active member has a hole, all pages are zeroes on all of them:
 * never written, as if they had been read.  Space that is allocated but was not
 * written is a hole, too: for SEEK_DATA of ext4, xfs, btrfs and tmpfs alike.
 * Pages may have been born meanwhile, in memory alone: such a page is dirty
 * first, and ends the run.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/recover.h"
#include "array/sums-internal.h"
#include "common/plant.h"

static struct sums *
sums_of (struct sums_hole *h)
{
  return list_item (h, struct sums, hole);
}

/* A hung server would block the thread. */
static bool
may_ask (const struct seat *s)
{
  return !s->failing && s->state == SEAT_ACTIVE && s->m->local && !s->suspect;
}

/* Without the lock. */
static void
ask_call (struct call *c)
{
  struct sums_hole *h = list_item (c, struct sums_hole, call);
  const struct member_layout *l = &h->a->sb.l;
  const uint64_t off = table_page_off (l, h->first, 0);
  uint64_t end = l->table_off + l->table_len, data = off;

  for (unsigned i = 0; i < h->nr_seats; i++) {
    struct member *m = h->seat[i]->m;
    uint64_t upto;
    bool hole;

    if (end == off)
      ;
    else if (m->ops->extent (m, off, end - off, &hole, &upto) != 0) {
      data = end;
      end = off;
    }
    else if (hole)
      end = upto;
    else {
      data = upto;
      end = off;
    }
    atomic_fetch_sub (&h->seat[i]->users, 1);
  }
  h->hole_end = (end - l->table_off) / (2 * TABLE_PAGE_LEN);
  h->found_end = (data - l->table_off) / (2 * TABLE_PAGE_LEN);
  engine_post (h->a, &h->news);
}

/* Pages in memory may not have been stored yet. */
static void
answered (struct array *a, struct news *n)
{
  struct sums_hole *h = list_item (n, struct sums_hole, news);
  const struct sums *s = sums_of (h);

  h->end = MIN (h->end, h->hole_end);
  for (unsigned b = 0; b < s->nr_buckets; b++)
    for (const struct sums_page *p = s->bucket[b]; p; p = p->hash_next)
      if (p->born && p->no >= h->first && !PLANTED ("sums-hole-unborn"))
        h->end = MIN (h->end, p->no);
  h->end = MAX (h->end, h->first);
  h->data_end = h->end > h->first ? h->end :
    MAX (h->found_end, h->first + 1);
  h->asking = false;
  engine_run_waiters (a, &h->waiters);
}

/* False: they can't tell. */
static bool
ask (struct array *a, struct sums_hole *h, uint64_t page_no)
{
  h->nr_seats = 0;
  for (unsigned slot = 0; slot < a->n; slot++) {
    struct seat *s = a->at[slot][0];

    if (s && !may_ask (s))
      return false;
    if (s)
      h->seat[h->nr_seats++] = s;
  }
  if (h->nr_seats < a->g.k || recover_is_pending (a))
    return false;
  for (unsigned i = 0; i < h->nr_seats; i++)
    atomic_fetch_add (&h->seat[i]->users, 1);
  h->a = a;
  h->asking = true;
  h->first = page_no;
  h->end = UINT64_MAX;
  h->call.run = ask_call;
  h->news.run = answered;
  engine_call (a, &h->call);
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

void
sums_hole_born (struct sums *s, uint64_t page_no)
{
  struct sums_hole *h = &s->hole;

  if (page_no < h->first || page_no >= h->end ||
      PLANTED ("sums-hole-unborn"))
    return;
  h->end = page_no;
  h->data_end = page_no + 1;
}
