/* gpuraid: a transaction that moves rows while the array is widened, after a
 * crash.
 *
 * One with the new content is the newest, and alone in the rings.  Its rows are
 * written over old ones, so all of them are kept, and are new, or none.  (W10)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/replay/decide.h"
#include "common/plant.h"

/* The newest transaction has content of rows that it moves: where? */
static const struct journal_record *
find_move (const struct replay_work *w)
{
  for (unsigned i = 0; i < w->in->nr_members; i++) {
    const struct ring_record *rec =
      ring_find_record (w->in->member[i].ring, w->r->newest);

    if (rec && rec->r.move_rows > 0 && rec->r.nr_blocks > 0)
      return &rec->r;
  }
  return NULL;
}

void
replay_begin_move (struct replay_work *w)
{
  const struct journal_record *r = w->g->widening ? find_move (w) : NULL;

  if (r == NULL || r->move_first != w->g->frontier)
    return;
  w->moved = *w->g;
  w->moved.frontier = r->move_first + r->move_rows;
  w->g = &w->moved;
  w->moving = true;
}

bool
replay_counts (const struct replay_work *w, const struct journal_record *r)
{
  return r->move_rows == 0 || (w->moving && r->seq == w->r->newest) ||
    PLANTED ("widen-direct-counts");
}

/* Rows that some record says something of. */
static uint64_t
nr_found (const struct replay_work *w, uint64_t first, uint64_t end)
{
  uint64_t nr = 0;

  for (unsigned i = 0; i < w->r->nr_runs; i++) {
    const struct replay_run *run = &w->r->run[i];

    if (run->first >= first && run->first < end)
      nr += run->nr;
  }
  return nr;
}

/* Enough of each row is there; or the table has some of it, so that it met
 * R1.
 */
bool
replay_keeps_move (struct replay_work *w)
{
  const uint64_t first = w->in->g->frontier, end = w->g->frontier;

  if (!w->moving ||
      (!w->any_short && nr_found (w, first, end) == end - first) ||
      (w->any_proven && !PLANTED ("widen-proven-dropped")))
    return true;
  w->r->nr_dropped = end - first;
  w->g = w->in->g;
  w->moving = false;
  return false;
}
