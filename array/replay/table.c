/* gpuraid: what the journal says about pages of the checksum table, after a
 * crash.
 *
 * Each entry of a record has the seq of the transaction that changed that
 * page before.  So the changes to a page are a chain, of which the journal
 * has the end.  A page is complete with what is replayed if its newest
 * transaction is in the journal, or comes right before one that is.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/engine/place.h"
#include "array/replay/internal.h"
#include "array/replay/table.h"

/* Call fn for the entries of live records of a ring that are in the page,
 * until it returns true.
 */
static bool
any_entry (const struct recovery *rec, unsigned seat, uint64_t page_no,
           bool (*fn) (const struct journal_record *r,
                       const struct journal_entry *e, uint32_t seq),
           uint32_t seq)
{
  for (unsigned i = 0; i < rec->ring[seat].nr_records; i++) {
    const struct journal_record *r = &rec->ring[seat].record[i].r;

    for (uint32_t j = 0; r->seq >= rec->replay.tail && j < r->nr_entries; j++)
      if (r->entry[j].first_block / limits.table_page_entries == page_no &&
          fn (r, &r->entry[j], seq))
        return true;
  }
  return false;
}

static bool
comes_after (const struct journal_record *r, const struct journal_entry *e,
             uint32_t seq)
{
  return e->before == seq;
}

static bool
is_first (const struct journal_record *r, const struct journal_entry *e,
          uint32_t seq)
{
  return e->before == 0;
}

bool
recover_begins_page (const struct array *a, uint64_t page_no)
{
  const struct recovery *rec = a->recovery;

  for (unsigned i = 0; rec && i < a->nr_seats; i++)
    if (rec->has_ring[i] && any_entry (rec, i, page_no, is_first, 0))
      return true;
  return false;
}

bool
recover_explains_page (const struct array *a, const struct seat *s,
                       uint64_t page_no, uint64_t seq)
{
  const struct recovery *rec = a->recovery;

  if (rec && (seq >= rec->replay.tail || recover_begins_page (a, page_no)))
    return true;
  for (unsigned i = 0; rec && i < a->nr_seats; i++)
    if (a->seat[i] == s && rec->has_ring[i])
      return any_entry (rec, i, page_no, comes_after, (uint32_t) seq);
  return false;
}

uint64_t
recover_said (const struct array *a, uint64_t no, unsigned b)
{
  const uint64_t row = line_row (a, no) + b;
  const struct replay_run *run = recover_is_pending (a) ?
    replay_find (&a->recovery->replay, row) : NULL;
  uint64_t roles = 0;

  for (unsigned slot = 0; run && slot < a->n; slot++)
    if (run->source[slot].kind != REPLAY_IN_PLACE)
      roles |= BIT (line_role (a, no, slot));
  return roles;
}

uint64_t
recover_seq (const struct array *a, uint64_t no, unsigned role, unsigned b,
             bool *zero)
{
  const uint64_t row = line_row (a, no) + b;
  const struct replay_run *run = replay_find (&a->recovery->replay, row);
  const struct replay_source *src =
    &run->source[line_slot (a, no, role)];

  *zero = src->kind == REPLAY_ZERO;
  return src->seq;
}
