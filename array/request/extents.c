/* gpuraid: find the holes of the array.
 *
 * A chunk is a hole if it is one on its member and no block of it is cached.
 * If a whole row of chunks or more is a hole on every member, the run common
 * to all of them is one answer.
 *
 * With checksums a member is not believed alone: a write may have been lost.
 * Rows are holes only where the pages of the table that are in memory say
 * zeroes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/cache/cache.h"
#include "array/engine/shared.h"
#include "array/health/lost.h"
#include "array/replay/recovery.h"
#include "array/seats/unlocked.h"
#include "array/sums/sums.h"

/* The most chunks to look at for one answer. */
#define MAX_LOOKS 1024u

/* The most rows of a run to look at. */
#define MAX_ROWS 4096u

/* A hung server would block the client's thread. */
static bool
may_ask (const struct seat *s)
{
  return s->m->local && !s->suspect;
}

static bool
is_zero (struct array *a, unsigned slot, uint64_t row)
{
  struct table_entry e;

  return sums_peek (a, slot, row, 1, &e) && table_kind (e) == TABLE_ZERO;
}

static bool
all_zero (struct array *a, unsigned slot, uint64_t pos, uint64_t len)
{
  const uint64_t end = div_round_up (pos + len, BLOCK_LEN);

  for (uint64_t row = pos / BLOCK_LEN; a->sums && row < end; row++)
    if (!is_zero (a, slot, row))
      return false;
  return true;
}

/* The length of the run of zero rows on all slots, in bytes of a member. */
static uint64_t
zero_len (struct array *a, uint64_t pos, uint64_t len)
{
  const uint64_t first = pos / BLOCK_LEN;
  uint64_t row = first;

  if (a->sums == NULL)
    return len;
  for (; row < first + MIN (len / BLOCK_LEN, MAX_ROWS); row++)
    for (unsigned slot = 0; slot < a->n; slot++)
      if (!is_zero (a, slot, row))
        return (row - first) * BLOCK_LEN;
  return (row - first) * BLOCK_LEN;
}

/* Take a reference to the seat that holds a piece, at off; NULL if more than
 * one member is needed to tell, or it is somewhere else now.
 */
static struct seat *
look (struct array *a, const struct geometry *g, const struct piece *p,
      uint64_t *off)
{
  const uint64_t no = p->stripe * a->nr_bands;
  struct seat *s;

  engine_lock (a);
  *off = layout_data_off (&a->sb.l, p->stripe * g->chunk) + p->chunk_off;
  s = a->at[layout_slot (g, p->stripe, p->role)][0];
  if (recover_is_pending (a))
    s = NULL;                   /* the journal may have content of it */
  if (unlocked_place (a) != g)
    s = NULL;
  if (s && (s->failing || s->state != SEAT_ACTIVE || !may_ask (s)))
    s = NULL;
  for (unsigned b = 0; s && b < a->nr_bands; b++)
    if (line_find (a, no + b) || lost_blocks_of (a, no + b, p->role))
      s = NULL;
  if (s && !all_zero (a, s->slot, p->stripe * g->chunk + p->chunk_off,
                      p->len))
    s = NULL;
  if (s)
    atomic_fetch_add (&s->users, 1);
  engine_unlock (a);
  return s;
}

/* The same for a run of stripes with nothing in the cache, from pos of the
 * data, which is at off on each member.
 * Returns how many seats there are, or 0.
 */
static unsigned
look_all (struct array *a, const struct geometry *g, uint64_t pos,
          uint64_t *len, uint64_t *off, struct seat *seats[MAX_SLOTS])
{
  unsigned nr;
  bool all;

  engine_lock (a);
  *len = layout_data_run (&a->sb.l, pos, a->sb.l.data_len - pos);
  *off = layout_data_off (&a->sb.l, pos);
  all = !recover_is_pending (a) && a->irregular_slots == 0 &&
    a->nr_lines == 0 && unlocked_place (a) == g &&
    lost_next_line (a, 0, UINT64_MAX) == UINT64_MAX;
  for (unsigned slot = 0; all && slot < a->n; slot++)
    all &= may_ask (a->at[slot][0]);
  *len = all ? zero_len (a, pos, *len) : 0;
  all &= *len > 0;
  for (unsigned slot = 0; all && slot < a->n; slot++) {
    seats[slot] = a->at[slot][0];
    atomic_fetch_add (&seats[slot]->users, 1);
  }
  nr = all ? a->n : 0;
  engine_unlock (a);
  return nr;
}

/* The number of bytes of the array, from the start of a stripe, that are a
 * hole on every member.
 */
static uint64_t
common_hole (struct array *a, const struct geometry *g, uint64_t stripe)
{
  struct seat *seats[MAX_SLOTS];
  const uint64_t pos = stripe * g->chunk;
  uint64_t len, off;
  const unsigned nr = look_all (a, g, pos, &len, &off, seats);

  if (nr == 0)
    return 0;
  for (unsigned slot = 0; slot < nr; slot++) {
    struct member *m = seats[slot]->m;
    bool hole = false;
    uint64_t end;

    if (len > 0 &&
        (m->ops->extent (m, off, len, &hole, &end) != 0 || !hole))
      len = 0;
    else if (len > 0)
      len = end - off;
    atomic_fetch_sub (&seats[slot]->users, 1);
  }
  return len / g->chunk * g->chunk * g->k;
}

/* The run at the start of a piece. */
static uint64_t
piece_run (struct array *a, const struct geometry *g, const struct piece *p,
           bool *hole)
{
  uint64_t off, end;
  struct seat *s = look (a, g, p, &off);

  *hole = false;
  if (s == NULL)
    return p->len;
  if (s->m->ops->extent (s->m, off, p->len, hole, &end) != 0) {
    *hole = false;
    end = off + p->len;
  }
  atomic_fetch_sub (&s->users, 1);
  return end - off;
}

int
array_extents (struct array *a, uint32_t len, uint64_t off,
               int (*cb) (void *opaque, uint64_t off, uint64_t len,
                          bool hole),
               void *opaque)
{
  const struct geometry *g = unlocked_place (a);
  const uint64_t end = off + len;
  uint64_t row;

  /* Where holes are changes meanwhile. */
  if (g == NULL) {
    cb (opaque, off, len, false);
    return 0;
  }
  row = (uint64_t) g->k * g->chunk;
  for (unsigned i = 0; off < end && i < MAX_LOOKS; i++) {
    uint64_t run = 0;
    bool hole = true;
    struct piece p;

    if (off % row == 0 && end - off >= row)
      run = common_hole (a, g, off / row);
    if (run == 0) {
      layout_piece (g, off, end - off, &p);
      run = piece_run (a, g, &p, &hole);
    }
    run = MIN (run, end - off);
    if (cb (opaque, off, run, hole))
      break;
    off += run;
  }
  return 0;
}
