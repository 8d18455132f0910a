/* gpuraid: where a byte lies while the array gets one more data member.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "common/bits.h"
#include "raidmap/layout/reshape.h"

static uint64_t
chunk_rows (const struct geometry *g)
{
  return g->chunk / BLOCK_LEN;
}

void
reshape_old (const struct geometry *g, struct geometry *old)
{
  *old = *g;
  old->k = g->k - 1;
  old->widening = false;
  old->frontier = 0;
}

/* ---- roles and slots ----------------------------------------------------- */

unsigned
reshape_slot (const struct geometry *g, uint64_t row, unsigned role)
{
  const uint64_t stripe = row / chunk_rows (g);
  const unsigned new_role = g->k - 1;
  struct geometry old;

  if (!reshape_is_old (g, row))
    return layout_slot (g, stripe, role);
  if (role == new_role)
    return g->k + g->m - 1;
  reshape_old (g, &old);
  return layout_slot (&old, stripe, role - (role > new_role));
}

unsigned
reshape_role (const struct geometry *g, uint64_t row, unsigned slot)
{
  const uint64_t stripe = row / chunk_rows (g);
  const unsigned new_role = g->k - 1;
  struct geometry old;
  unsigned role;

  if (!reshape_is_old (g, row))
    return layout_role (g, stripe, slot);
  if (slot == g->k + g->m - 1)
    return new_role;
  reshape_old (g, &old);
  role = layout_role (&old, stripe, slot);
  return role + (role >= new_role);
}

/* ---- bytes of the array -------------------------------------------------- */

uint64_t
reshape_new_row (const struct geometry *g, uint64_t off)
{
  const uint64_t chunk_no = off / g->chunk;

  return chunk_no / g->k * chunk_rows (g) + off % g->chunk / BLOCK_LEN;
}

void
reshape_piece (const struct geometry *g, uint64_t off, uint64_t len,
               struct piece *p)
{
  const uint64_t row = g->widening ? reshape_new_row (g, off) : 0;
  struct geometry old;

  if (reshape_is_old (g, row)) {
    reshape_old (g, &old);
    layout_piece (&old, off, len, p);
    return;
  }
  layout_piece (g, off, len, p);
  if (g->widening)
    p->len = MIN (p->len, (g->frontier - row) * BLOCK_LEN - off % BLOCK_LEN);
}

/* ---- which rows have data ------------------------------------------------ */

static uint64_t
nr_old_stripes (const struct geometry *g)
{
  struct geometry old;

  reshape_old (g, &old);
  return layout_nr_stripes (&old);
}

/* New stripes that have data.  The last old one counts as full. */
static uint64_t
nr_new_stripes (const struct geometry *g)
{
  return div_round_up (nr_old_stripes (g) * (g->k - 1), g->k);
}

/* Old stripes from stripe on and below this are dead, once as many new ones
 * are there: stripe * k chunks have moved, which are as many old stripes and
 * stripe / (k - 1) more.
 */
static uint64_t
dead_end (const struct geometry *g, uint64_t stripe)
{
  const uint64_t nr = nr_old_stripes (g);

  return stripe >= nr_new_stripes (g) ? nr :
    MIN (nr, stripe + stripe / (g->k - 1));
}

/* Each block number of a chunk is an array by itself. */
bool
reshape_is_dead (const struct geometry *g, uint64_t row)
{
  const uint64_t rows = chunk_rows (g), stripe = row / rows;
  const uint64_t frontier = g->frontier / rows +
    (row % rows < g->frontier % rows);

  return reshape_is_old (g, row) && stripe < dead_end (g, frontier);
}

struct reshape_window
reshape_next (const struct geometry *g, uint64_t nr_rows, uint64_t max_rows,
              uint64_t nr_line)
{
  const uint64_t rows = chunk_rows (g), from = g->frontier;
  const uint64_t data_end = nr_new_stripes (g) * rows;
  const uint64_t dead = dead_end (g, from / rows) * rows;
  struct reshape_window w = { .kind = RESHAPE_ENDED, .first = from };

  if (from >= nr_rows)
    w.end = from;
  else if (from >= data_end) {
    w.kind = RESHAPE_CLEARED;
    w.end = MIN (nr_rows, from + round_down (max_rows, nr_line));
  }
  else if (dead > from) {
    w.kind = RESHAPE_DIRECT;
    w.end = MIN (MIN (dead, data_end),
                 from + round_down (max_rows, nr_line));
  }
  else {
    w.kind = RESHAPE_JOURNALED;
    w.end = from + nr_line;
  }
  return w;
}
