/* gpuraid: what a member lacks of the newest transaction.
 *
 * Of a record with a good header these are its bad blocks, and the rows that it
 * does not have; a member without a record lacks a whole one, with the rows in
 * which the transaction is kept.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>
#include <string.h>

#include "array/engine/place.h"
#include "array/io/xfer.h"
#include "array/journal/relog.h"
#include "common/plant.h"

/* Is the newest transaction kept in this row? */
static bool
is_kept (const struct relog *rl, uint64_t row)
{
  const struct replay_run *run = replay_find (rl->replay, row);

  return run && run->newest && !run->lost;
}

static void
add_missing (struct relog *rl, uint64_t row, uint32_t place, uint32_t crc_no)
{
  rl->missing[rl->nr_missing++] = (struct missing) { row, place, crc_no };
}

static bool
has_entry (const struct journal_record *r, uint64_t row)
{
  for (uint32_t i = 0; i < r->nr_entries; i++)
    if (row >= r->entry[i].first_block &&
        row < r->entry[i].first_block + r->entry[i].nr_blocks)
      return true;
  return false;
}

/* Rows that its record does not have, although the transaction is kept there:
 * an earlier recovery made the record, and had dropped it.
 */
static bool
find_unlogged (struct relog *rl, const struct ring_record *rec)
{
  const unsigned slot = rl->seat->slot;
  size_t nr = rl->nr_missing;
  struct missing *p;

  for (unsigned i = 0; i < rl->replay->nr_runs; i++)
    nr += rl->replay->run[i].erased >> slot & 1 ? rl->replay->run[i].nr : 0;
  p = realloc (rl->missing, (nr + 1) * sizeof *p);
  if (p == NULL)
    return false;
  rl->missing = p;
  for (unsigned i = 0; i < rl->replay->nr_runs; i++) {
    const struct replay_run *run = &rl->replay->run[i];

    for (uint64_t row = run->first;
         run->newest && !run->lost && run->erased >> slot & 1 &&
           row < run->first + run->nr; row++)
      if (!has_entry (&rec->r, row))
        add_missing (rl, row, NO_PLACE, 0);
  }
  return true;
}

/* The blocks of its record that are bad. */
static bool
find_bad_blocks (struct relog *rl, const struct ring_record *rec)
{
  uint32_t place = rec->r.place +
    journal_header_blocks (rec->r.nr_entries, rec->r.nr_crcs);
  const bool *good = rec->good;

  rl->missing = calloc (rec->r.nr_blocks + 1, sizeof *rl->missing);
  if (rl->missing == NULL)
    return false;
  for (uint32_t i = 0; i < rec->r.nr_entries; i++) {
    const struct journal_entry *e = &rec->r.entry[i];

    if (e->flags & JOURNAL_ENTRY_DIRECT)
      good += e->nr_blocks;
    for (uint32_t b = 0; e->flags == 0 && b < e->nr_blocks; b++, place++)
      if (!*good++ && is_kept (rl, e->first_block + b))
        add_missing (rl, e->first_block + b, place, 0);
  }
  return PLANTED ("recover-unread") || find_unlogged (rl, rec);
}

static bool
slot_changes (const struct array *a, const struct journal_entry *e,
              uint64_t row, unsigned slot)
{
  return e->roles & BIT (line_role (a, line_of_row (a, row), slot));
}

/* Any record of the newest transaction: they name the same rows for this
 * slot where a role of it changes.  NULL: there is none.
 */
static const struct ring_record *
any_record (const struct relog *rl)
{
  for (unsigned i = 0; i < rl->a->nr_seats; i++)
    if (rl->has_ring[i]) {
      const struct ring_record *rec =
        ring_find_record (&rl->ring[i], rl->replay->newest);

      if (rec)
        return rec;
    }
  return NULL;
}

/* The entry of the newest transaction for this run, in some record, if it
 * changes this slot.
 */
static const struct journal_entry *
newest_entry (const struct relog *rl, const struct replay_run *run,
              unsigned slot)
{
  const struct array *a = rl->a;

  for (unsigned i = 0; i < a->nr_seats; i++) {
    const struct ring_record *rec = rl->has_ring[i] ?
      ring_find_record (&rl->ring[i], rl->replay->newest) : NULL;

    for (uint32_t j = 0; rec && j < rec->r.nr_entries; j++) {
      const struct journal_entry *e = &rec->r.entry[j];

      if (run->first >= e->first_block &&
          run->first < e->first_block + e->nr_blocks &&
          slot_changes (a, e, run->first, slot))
        return e;
    }
  }
  return NULL;
}

/* The blocks of an entry are on one page of the checksum table. */
static bool
is_one_page (const struct array *a, uint64_t row, uint64_t row2)
{
  return a->sums == NULL || row / limits.table_page_entries ==
    row2 / limits.table_page_entries;
}

/* A whole record, of the rows in which the transaction is kept. */
static bool
make_record (struct relog *rl, const struct ring_record *like)
{
  const unsigned nr = rl->replay->nr_runs;
  struct journal_record *r = &rl->r;
  uint32_t place;

  rl->missing = calloc (nr + 1, sizeof *rl->missing);
  r->entry = calloc (nr + 1, sizeof *r->entry);
  r->crc = calloc (nr + 1, sizeof *r->crc);
  if (rl->missing == NULL || r->entry == NULL || r->crc == NULL)
    return false;
  for (unsigned i = 0; i < nr; i++) {
    const struct replay_run *run = &rl->replay->run[i];
    const struct journal_entry *e = run->newest && !run->lost ?
      newest_entry (rl, run, rl->seat->slot) : NULL;
    const uint32_t flags = e ? e->flags : 0;
    const uint32_t most = flags & JOURNAL_ENTRY_ZERO ?
      JOURNAL_ZERO_MAX_BLOCKS : JOURNAL_ENTRY_MAX_BLOCKS;
    struct journal_entry *last = r->nr_entries ?
      &r->entry[r->nr_entries - 1] : NULL;

    if (e == NULL)
      continue;
    if (last && last->flags == flags && last->roles == e->roles &&
        is_one_page (rl->a, last->first_block, run->first) &&
        last->first_block + last->nr_blocks == run->first &&
        last->nr_blocks + run->nr <= most)
      last->nr_blocks += run->nr;
    else
      r->entry[r->nr_entries++] = (struct journal_entry) {
        .first_block = run->first, .nr_blocks = run->nr,
        .generation = (uint32_t) rl->replay->newest, .roles = e->roles,
        .flags = flags,
      };
    if (flags & JOURNAL_ENTRY_ZERO)
      continue;
    if (flags == 0)
      add_missing (rl, run->first, 0, r->nr_crcs);
    r->crc[r->nr_crcs++] = run->source[rl->seat->slot].crc;
  }
  if (r->nr_entries == 0)
    return true;
  r->session = like->r.session;
  r->seq = like->r.seq;
  r->dev = rl->seat->dev;
  r->participants = like->r.participants;
  if (!PLANTED ("widen-relog-unmoved")) {
    r->move_first = like->r.move_first;
    r->move_rows = like->r.move_rows;
  }
  memcpy (r->place_of, like->r.place_of, sizeof r->place_of);
  r->place = r->place_of[r->dev];
  r->nr_blocks = rl->nr_missing;
  rl->nr_header = journal_header_blocks (r->nr_entries, r->nr_crcs);
  place = r->place + rl->nr_header;
  for (size_t i = 0; i < rl->nr_missing; i++)
    rl->missing[i].place = place++;
  return true;
}

bool
relog_begin_member (struct relog *rl, unsigned i)
{
  const struct ring_record *like = any_record (rl);
  const struct ring_record *rec =
    ring_find_record (&rl->ring[i], rl->replay->newest);

  rl->seat = rl->a->seat[i];
  if (rec ? !find_bad_blocks (rl, rec) :
      device_set_has (&like->r.participants, rl->seat->dev) &&
      !make_record (rl, like))
    return false;
  rl->memory =
    xfer_memory_new (rl->a, (rl->nr_header + rl->nr_missing + 1) * BLOCK_LEN);
  if (rl->memory)
    rl->buf = rl->memory->p;
  return rl->memory != NULL;
}
