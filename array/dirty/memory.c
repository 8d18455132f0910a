/* gpuraid: the memory of the dirty bits, which becomes more when the array
 * grows.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array/dirty/dirty.h"

/* Pages before first are those that there are already. */
static int
allocate (struct dirty_memory *d, const struct member_layout *l,
          uint64_t first)
{
  memset (d, 0, sizeof *d);
  d->first = first;
  d->nr_pages = bitmap_nr_pages (l);
  d->nr_regions = bitmap_nr_regions (l);
  d->page = calloc (d->nr_pages, sizeof *d->page);
  d->region_gen = calloc (d->nr_regions, sizeof *d->region_gen);
  d->region_step = calloc (d->nr_regions, sizeof *d->region_step);
  d->region_ops = calloc (d->nr_regions, sizeof *d->region_ops);
  d->unsynced = calloc (div_round_up (d->nr_regions, 64),
                        sizeof *d->unsynced);
  if (d->page == NULL || d->region_gen == NULL || d->region_step == NULL ||
      d->region_ops == NULL || d->unsynced == NULL)
    return ENOMEM;
  for (uint64_t i = first; i < d->nr_pages; i++) {
    struct dirty_page *p = d->page[i] = calloc (1, sizeof *p);

    if (p == NULL)
      return ENOMEM;
    p->want.page_no = p->stored.page_no = i;
    p->want.counter = DIRTY_NEW_COUNTER;
    list_init (&p->waiters);
  }
  return 0;
}

void
dirty_memory_free (struct dirty_memory *d)
{
  for (uint64_t i = d->first; d->page && i < d->nr_pages; i++)
    free (d->page[i]);
  free (d->page);
  free (d->region_gen);
  free (d->region_step);
  free (d->region_ops);
  free (d->unsynced);
  memset (d, 0, sizeof *d);
}

int
dirty_memory_new (const struct array *a, struct dirty_memory *d,
                  const struct member_layout *l)
{
  int err = allocate (d, l, a->nr_pages);

  if (err)
    dirty_memory_free (d);
  return err;
}

/* Take the memory over. */
static void
take (struct array *a, struct dirty_memory *d)
{
  a->page = d->page;
  a->region_gen = d->region_gen;
  a->region_step = d->region_step;
  a->region_ops = d->region_ops;
  a->unsynced = d->unsynced;
  a->nr_pages = d->nr_pages;
  a->nr_regions = d->nr_regions;
  memset (d, 0, sizeof *d);
}

/* What is there is kept: I/O on a page may be in flight, and operations in a
 * region.
 */
void
dirty_grow (struct array *a, struct dirty_memory *d)
{
  memcpy (d->page, a->page, a->nr_pages * sizeof *a->page);
  memcpy (d->region_gen, a->region_gen,
          a->nr_regions * sizeof *a->region_gen);
  memcpy (d->region_step, a->region_step,
          a->nr_regions * sizeof *a->region_step);
  memcpy (d->region_ops, a->region_ops,
          a->nr_regions * sizeof *a->region_ops);
  memcpy (d->unsynced, a->unsynced,
          div_round_up (a->nr_regions, 64) * sizeof *a->unsynced);
  free (a->page);
  free (a->region_gen);
  free (a->region_step);
  free (a->region_ops);
  free (a->unsynced);
  take (a, d);
}

/* With journal and checksums there are no open bits: a page of the bitmap that
 * is bad, and counts as all set, says nothing about parity.
 */
static void
note_unsynced (struct array *a)
{
  const bool none = a->sb.l.table_len > 0 && !a->mark_open;

  for (uint64_t i = 0; none && i < a->nr_pages; i++)
    memset (a->page[i]->want.open, 0, sizeof a->page[i]->want.open);
  for (uint64_t i = 0; i < a->nr_regions; i++) {
    const struct bitmap_page *p = &a->page[i / limits.page_regions]->want;
    const uint64_t bit = i % limits.page_regions;

    if (p->open[bit / 64] >> (bit % 64) & 1) {
      a->unsynced[i / 64] |= BIT (i % 64);
      a->nr_unsynced++;
    }
  }
  a->any_open = a->nr_unsynced > 0;
}

int
dirty_init (struct array *a, const struct bitmap_page *page)
{
  struct dirty_memory d;
  int err = allocate (&d, &a->sb.l, 0);

  if (err) {
    dirty_memory_free (&d);
    return err;
  }
  /* A bit may be on some members only, so no bit of a page counts as stored
   * until we have written the page.
   */
  for (uint64_t i = 0; i < d.nr_pages; i++) {
    d.page[i]->want = page[i];
    d.page[i]->want.page_no = i;
  }
  take (a, &d);
  note_unsynced (a);
  return 0;
}

void
dirty_free (struct array *a)
{
  for (uint64_t i = 0; a->page && i < a->nr_pages; i++)
    free (a->page[i]);
  free (a->page);
  free (a->region_gen);
  free (a->region_step);
  free (a->region_ops);
  free (a->unsynced);
}
