/* gpuraid: what the records of the rings mention.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>

#include "array/replay/decide.h"
#include "common/bits.h"
#include "common/plant.h"

/* Rows that are mentioned at once end before this one. */
static uint64_t
region_end (const struct replay_member *m, uint64_t row)
{
  return m->missed ? (row / m->region_rows + 1) * m->region_rows : UINT64_MAX;
}

static bool
is_old (const struct replay_member *m, uint64_t row)
{
  const uint64_t region = m->missed ? row / m->region_rows : 0;

  return m->missed && m->missed[region / 64] >> (region % 64) & 1;
}

static size_t
nr_zero_mentions (const struct replay_member *m,
                  const struct journal_entry *e)
{
  const uint64_t last = e->first_block + e->nr_blocks - 1;

  return m->missed ?
    last / m->region_rows - e->first_block / m->region_rows + 1 : 1;
}

static size_t
nr_mentions_of (const struct replay_member *m, const struct journal_record *r)
{
  size_t nr = 0;

  for (uint32_t i = 0; i < r->nr_entries; i++)
    nr += r->entry[i].flags & JOURNAL_ENTRY_ZERO ?
      nr_zero_mentions (m, &r->entry[i]) : r->entry[i].nr_blocks;
  return nr;
}

static void
add_zeroes (struct replay_work *w, const struct replay_member *m,
            struct mention mt)
{
  const uint64_t end = mt.first + mt.nr;

  for (; mt.first < end; mt.first += mt.nr) {
    mt.nr = MIN (end, region_end (m, mt.first)) - mt.first;
    mt.good = !is_old (m, mt.first);
    w->mention[w->nr_mentions++] = mt;
  }
}

static void
add_mentions (struct replay_work *w, const struct replay_member *m,
              const struct ring_record *rec)
{
  const bool *good = rec->good, *stored = rec->stored;
  const uint32_t *crc = rec->r.crc;
  uint32_t place = rec->r.place +
    journal_header_blocks (rec->r.nr_entries, rec->r.nr_crcs);

  for (uint32_t i = 0; i < rec->r.nr_entries; i++) {
    const struct journal_entry *e = &rec->r.entry[i];
    struct mention mt = {
      .first = e->first_block, .nr = e->nr_blocks, .seq = rec->r.seq,
      .roles = e->roles, .slot = m->slot, .dev = m->dev,
      .direct = e->flags & JOURNAL_ENTRY_DIRECT,
    };

    if (e->flags & JOURNAL_ENTRY_ZERO) {
      mt.zero = true;
      add_zeroes (w, m, mt);
      continue;
    }
    mt.nr = 1;
    for (uint32_t b = 0; b < e->nr_blocks; b++, mt.first++) {
      mt.crc = *crc++;
      mt.good = *good++ && !is_old (m, mt.first);
      mt.stored = stored && *stored++;
      if (!mt.direct)
        mt.place = place++;
      w->mention[w->nr_mentions++] = mt;
    }
  }
}

/* One record says it of all slots.  All of an older transaction were durable,
 * and a ring without its own may lack a newer one, too; so may that of a member
 * that is behind.
 */
bool
replay_says_of_all (const struct replay_work *w, const struct mention *mt)
{
  return mt->zero && mt->roles == LOW_BITS (w->g->k + w->g->m) &&
    ((mt->seq == w->r->newest && !w->any_behind) ||
     PLANTED ("replay-zero-any"));
}

/* Of members that are lost. */
static void
drop_others (struct replay_work *w, size_t first)
{
  size_t nr = first;

  for (size_t i = first; i < w->nr_mentions; i++)
    if (replay_says_of_all (w, &w->mention[i]) &&
        !PLANTED ("replay-lost-zeroes"))
      w->mention[nr++] = w->mention[i];
  w->nr_mentions = nr;
}

/* In each row the newest first. */
static int
compare_mentions (const void *p, const void *q)
{
  const struct mention *x = p, *y = q;

  if (x->first != y->first)
    return x->first < y->first ? -1 : 1;
  return x->seq > y->seq ? -1 : x->seq < y->seq;
}

static int
compare_u64 (const void *p, const void *q)
{
  const uint64_t x = *(const uint64_t *) p, y = *(const uint64_t *) q;

  return x < y ? -1 : x > y;
}

static int
collect (struct replay_work *w)
{
  size_t nr = 0;

  for (unsigned i = 0; i < w->in->nr_members + w->in->nr_lost; i++)
    for (unsigned j = 0; j < w->in->member[i].ring->nr_records; j++)
      nr += nr_mentions_of (&w->in->member[i],
                            &w->in->member[i].ring->record[j].r);
  w->mention = calloc (nr + 1, sizeof *w->mention);
  w->live = calloc (nr + 1, sizeof *w->live);
  w->spare = calloc (nr + 1, sizeof *w->spare);
  if (w->mention == NULL || w->live == NULL || w->spare == NULL)
    return -1;
  for (unsigned i = 0; i < w->in->nr_members + w->in->nr_lost; i++) {
    const size_t first = w->nr_mentions;

    for (unsigned j = 0; j < w->in->member[i].ring->nr_records; j++) {
      const struct ring_record *rec = &w->in->member[i].ring->record[j];

      if (rec->r.seq >= w->r->tail && replay_counts (w, &rec->r))
        add_mentions (w, &w->in->member[i], rec);
    }
    if (i >= w->in->nr_members)
      drop_others (w, first);
  }
  qsort (w->mention, w->nr_mentions, sizeof *w->mention, compare_mentions);
  return 0;
}

/* Mentions are sorted, and most are of the same row as the one before. */
static void
add_bound (struct replay_work *w, uint64_t row)
{
  for (size_t i = MAX (w->nr_bounds, 2) - 2; i < w->nr_bounds; i++)
    if (w->bound[i] == row)
      return;
  w->bound[w->nr_bounds++] = row;
}

/* Where a mention begins in its second stripe, and so on: the slots of its
 * roles are others there.  Of all roles they are the same everywhere.
 */
static size_t
add_stripes (struct replay_work *w, const struct mention *mt)
{
  const uint64_t rows = w->g->chunk / BLOCK_LEN;
  size_t nr = 0;

  if (mt->roles == LOW_BITS (w->g->k + w->g->m))
    return 0;
  for (uint64_t row = (mt->first / rows + 1) * rows;
       row < mt->first + mt->nr; row += rows, nr++)
    if (w->bound)
      add_bound (w, row);
  return nr;
}

/* All rows between two bounds are alike. */
static int
find_bounds (struct replay_work *w)
{
  size_t nr = 2 * (w->nr_mentions + w->in->nr_bad) + 1, unique = 0;

  for (size_t i = 0; i < w->nr_mentions; i++)
    nr += add_stripes (w, &w->mention[i]);
  w->bound = calloc (nr + 1, sizeof *w->bound);
  if (w->bound == NULL)
    return -1;
  for (size_t i = 0; i < w->nr_mentions; i++) {
    add_bound (w, w->mention[i].first);
    add_bound (w, w->mention[i].first + w->mention[i].nr);
    add_stripes (w, &w->mention[i]);
  }
  for (unsigned i = 0; i < w->in->nr_bad; i++) {
    add_bound (w, w->in->bad[i].row);
    add_bound (w, w->in->bad[i].row + 1);
  }
  if (w->g->widening)
    add_bound (w, w->g->frontier);
  qsort (w->bound, w->nr_bounds, sizeof *w->bound, compare_u64);
  for (size_t i = 0; i < w->nr_bounds; i++)
    if (unique == 0 || w->bound[unique - 1] != w->bound[i])
      w->bound[unique++] = w->bound[i];
  w->nr_bounds = unique;
  return 0;
}

int
replay_collect (struct replay_work *w)
{
  return collect (w) == 0 ? find_bounds (w) : -1;
}
