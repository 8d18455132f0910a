/* gpuraid: one line of a window: its chunks are read from where they are, and
 * written to their new row.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array/cache/cache.h"
#include "array/cache/ticket.h"
#include "array/change/hold.h"
#include "array/engine/place.h"
#include "array/engine/state.h"
#include "array/health/lost.h"
#include "array/io/xfer.h"
#include "array/ops/logged.h"
#include "array/ops/ops.h"
#include "array/reshape/internal.h"
#include "common/bytes/zeroes.h"
#include "common/plant.h"

static void step (struct array *a, struct move *mv);

static void
wake (struct array *a, struct waiter *w)
{
  step (a, list_item (w, struct move, waiter));
}

static void
wait_on (struct move *mv, struct list *l)
{
  list_move (l, &mv->waiter.link);
}

/* ---- where it comes from ------------------------------------------------- */

/* The byte of the array at the start of a role's cell, in a new row. */
static uint64_t
new_address (const struct array *a, uint64_t no, unsigned role)
{
  return (line_stripe (a, no) * a->g.k + role) * a->g.chunk +
    no % a->nr_bands * a->cell_len;
}

/* Is there such a chunk?  Behind the last one of the old rows there is none. */
static bool
has_source (const struct array *a, uint64_t address)
{
  return address / a->g.chunk <
    a->sb.l.data_len / a->g.chunk * (a->g.k - 1);
}

/* Is its content on the members, and will stay as it is?  Or it can't be
 * written there, as too little of its row can be read, and stays in memory;
 * then no client copies to it, which only pins the line.  Clients that would
 * write to it wait.  False: wait on *wait.
 */
static bool
is_clean (struct array *a, const struct line_piece *p, struct list **wait)
{
  struct line *line = line_find (a, p->no);
  const struct line_cell *lc;

  if (line == NULL)
    return true;
  lc = &line->cell[p->role];
  if (lc->busy == 0 && lc->out_blocks == 0 &&
      (lc->dirty == 0 || (line->stuck && line->op == NULL &&
                          (line->pins == 0 || PLANTED ("widen-pinned-read")))))
    return true;
  *wait = &line->waiters;
  if (lc->dirty && list_empty (&line->out_link) && !line->stuck)
    line_out_now (a, line);
  return false;
}

bool
move_sources_are_clean (struct array *a, uint64_t no, struct waiter *w)
{
  for (unsigned role = 0; role < a->g.k; role++) {
    const uint64_t address = new_address (a, no, role);
    struct line_piece p;
    struct list *wait;

    if (!has_source (a, address))
      continue;
    p = line_piece (a, address, a->cell_len);
    if (!is_clean (a, &p, &wait)) {
      list_move (wait, &w->link);
      return false;
    }
  }
  return true;
}

/* What is in memory alone, of the i-th role that is being read. */
static void
note_stuck (struct array *a, struct move *mv, unsigned i,
            const struct line_piece *p)
{
  struct line *line = line_find (a, p->no);

  if (line == NULL || line->cell[p->role].dirty == 0)
    return;
  mv->stuck[i] = line->cell[p->role].c;
  mv->stuck_blocks[i] = line->cell[p->role].dirty;
  cell_ref (a, mv->stuck[i]);
}

static void
let_go_of_stuck (struct array *a, struct move *mv)
{
  for (unsigned i = 0; i < mv->nr_reading; i++)
    if (mv->stuck[i]) {
      cell_put (a, mv->stuck[i]);
      mv->stuck[i] = NULL;
    }
}

/* The cell of a data role of an old line, where it will be, has moved. */
static bool
has_moved (const struct array *a, uint64_t no, unsigned role)
{
  return line_zeroes (a, no) &&
    reshape_new_row (&a->g, line_address (a, no, role)) < a->g.frontier;
}

/* Its cells that have moved.  True if it has others that can't be written. */
static bool
forget_moved (struct array *a, struct line *line)
{
  bool left = false;

  for (unsigned role = 0; role < a->g.k - 1; role++) {
    const struct line_cell *lc = &line->cell[role];

    if (lc->dirty && lc->busy == 0 && has_moved (a, line->no, role))
      line_drop_cell (a, line, role);
    left |= lc->dirty != 0;
  }
  return left && !PLANTED ("widen-flush-early");
}

/* A flush that waits for one of its cells waits for all that clients wrote to
 * the line.
 */
void
moves_forget_stuck (struct array *a)
{
  list_for_each (l, &a->dirty) {
    struct line *line = list_item (l, struct line, link);

    if (!line->stuck || line->op)
      continue;
    if (!forget_moved (a, line)) {
      lost_rows_remove (a, line->no, ALL_BLOCKS);
      tickets_end (a, &line->tickets, 0, ALL_BLOCKS);
    }
    line_changed (a, line);
  }
}

/* The next of its data roles, as many as come from one line: one operation
 * reads them, and it is over before the next one begins, as it keeps others
 * from reading.  False: it waits, or has an error.
 */
static bool
begin_read (struct array *a, struct move *mv)
{
  const unsigned first = mv->nr_read;
  uint64_t roles = 0, no = 0;

  mv->nr_reading = 0;
  for (unsigned role = first; role < a->g.k; role++) {
    const uint64_t address = new_address (a, mv->no, role);
    struct list *wait;
    struct line_piece p;

    if (!has_source (a, address))
      break;
    p = line_piece (a, address, a->cell_len);
    if (roles && p.no != no)
      break;
    if (!is_clean (a, &p, &wait) && !PLANTED ("widen-dirty-read")) {
      let_go_of_stuck (a, mv);
      wait_on (mv, wait);
      return false;
    }
    no = p.no;
    note_stuck (a, mv, mv->nr_reading, &p);
    roles |= BIT (p.role);
    mv->from[mv->nr_reading++] = p.role;
  }
  if (roles == 0) {             /* there is nothing any more */
    mv->nr_reading = a->g.k - first;
    return true;
  }
  mv->op = op_read (a, &mv->reads, no, roles, 0, 0, a->cell_blocks);
  if (mv->op == NULL) {
    let_go_of_stuck (a, mv);
    wait_on (mv, &a->cell_waiters);
  }
  return mv->op;
}

/* ---- without the array lock ---------------------------------------------- */

static int
copy_role (const struct move *mv, unsigned i, uint8_t *p)
{
  const unsigned nr = mv->a->cell_blocks;
  int err = 0;

  if (mv->stuck[i] == NULL)
    return op_copy (mv->op, mv->from[i], 0, mv->a->cell_len, p);
  for (unsigned b = 0; b < nr && err == 0; b++)
    if (mv->stuck_blocks[i] >> b & 1)
      memcpy (p + b * BLOCK_LEN, mv->stuck[i]->data + b * BLOCK_LEN,
              BLOCK_LEN);
    else
      err = op_copy (mv->op, mv->from[i], b * BLOCK_LEN, BLOCK_LEN,
                     p + b * BLOCK_LEN);
  return err;
}

static void
copied (struct array *a, struct news *n)
{
  struct move *mv = list_item (n, struct move, news);

  let_go_of_stuck (a, mv);
  if (mv->op)
    op_put (a, mv->op);
  mv->op = NULL;
  if (mv->error == 0)
    mv->error = mv->copy_error;
  mv->nr_read += mv->nr_reading;
  mv->step = mv->nr_read < a->g.k ? MOVE_READ : MOVE_FILL;
  step (a, mv);
}

static void
copy (struct call *c)
{
  struct move *mv = list_item (c, struct move, call);
  const size_t len = mv->a->cell_len;

  for (unsigned i = 0; i < mv->nr_reading; i++) {
    uint8_t *p = mv->cell[mv->nr_read + i]->data;

    if (mv->op) {
      const int err = copy_role (mv, i, p);

      if (err)
        mv->copy_error = err;
    }
    else
      memset (p, 0, len);
    mv->has_data = mv->has_data || !all_zeroes (p, len);
  }
  engine_post (mv->a, &mv->news);
}

/* ---- the steps: false if it waits ---------------------------------------- */

static bool
read_some (struct array *a, struct move *mv)
{
  if (mv->op == NULL && !begin_read (a, mv))
    return mv->error != 0;
  if (mv->reads.pending > 0)
    return false;
  mv->step = MOVE_COPY;
  engine_call (a, &mv->call);
  return false;
}

/* Its row has no entry in the table but {0, 0}. */
static bool
is_unborn (struct array *a, uint64_t no)
{
  struct table_entry e[CELL_MAX_LEN / BLOCK_LEN];

  for (unsigned slot = 0; a->sums && slot < a->n; slot++) {
    if (!sums_peek (a, slot, line_row (a, no), a->cell_blocks, e))
      return false;
    for (unsigned b = 0; b < a->cell_blocks; b++)
      if (table_kind (e[b]) != TABLE_ZERO)
        return false;
  }
  return a->sums;
}

static void
let_go (struct array *a, struct move *mv)
{
  line_cells_put (a, mv->cell, mv->nr_cells);
  mv->nr_cells = 0;
}

/* All else is held only when it is known that it can be read. */
static bool
may_fill (const struct array *a)
{
  return !a->moving.alone || a->reshape->phase == WINDOW_MOVE;
}

bool
move_is_read (const struct array *a)
{
  list_for_each (l, &a->reshape->moves)
    if (list_item (l, struct move, link)->step == MOVE_FILL)
      return true;
  return false;
}

/* What the line has in memory is of an old row, or nothing: nothing uses it.
 * In a window alone reads find its chunks in its cells from now on, and all
 * others where they were: they need not wait for members.  Lost blocks stay
 * listed until the line is written out: in a window alone, the old row counts
 * until then, and only what is written out is good again.
 */
static bool
fill (struct array *a, struct move *mv)
{
  struct line *line;

  if (!mv->has_data && !a->moving.alone &&
      lost_next_line (a, mv->no, mv->no + 1) > mv->no) {
    let_go (a, mv);
    mv->step = MOVE_ZERO;
    return true;
  }
  if (a->moving.alone)
    a->moving.end = line_row (a, mv->no) + a->cell_blocks;
  line = line_get (a, mv->no);
  if (line == NULL) {
    mv->error = ENOMEM;
    return true;
  }
  lost_rows_remove (a, mv->no, ALL_BLOCKS);
  line_fill (a, line, mv->cell);
  mv->nr_cells = 0;
  if (a->moving.alone && !PLANTED ("widen-reads-held"))
    hold_reads_end (a);
  line_changed (a, line);
  line_out_now (a, line);
  mv->step = MOVE_WRITE;
  return true;
}

/* With no new error from here on but ENOSPC: a write that fails takes a member
 * out, or the array fails.
 */
static bool
write_all (struct array *a, struct move *mv)
{
  struct line *line = line_find (a, mv->no);

  if (line == NULL || (line->op == NULL && !line->is_dirty)) {
    mv->error = mv->no_space ? ENOSPC : 0;
    return true;
  }
  wait_on (mv, &line->waiters);
  return false;
}

static bool
zero_all (struct array *a, struct move *mv)
{
  const uint64_t no = mv->no;

  if (mv->zeroes.pending > 0)
    return false;
  if (no == mv->end || (mv->end == no + 1 && is_unborn (a, no)))
    return true;
  if (!op_zero (a, &mv->zeroes, no, mv->end, true)) {
    wait_on (mv, &a->cell_waiters);
    return false;
  }
  mv->no = mv->end;
  return false;
}

/* ---- from step to step --------------------------------------------------- */

static void
end (struct array *a, struct move *mv)
{
  list_remove (&mv->link);
  list_remove (&mv->waiter.link);
  let_go (a, mv);
  mv->ended (a, mv);
  engine_free (a, mv);
}

/* The array has failed, or stops, or the window is taken back: what has not
 * begun to be written is not.
 */
static bool
gives_up (const struct array *a, const struct move *mv)
{
  return a->failed ||
    ((a->stopping || a->reshape->error == ECANCELED) &&
     mv->step < MOVE_WRITE && mv->step != MOVE_COPY);
}

static void
step (struct array *a, struct move *mv)
{
  bool over = false;

  list_remove (&mv->waiter.link);
  while (!over && mv->error == 0) {
    if (gives_up (a, mv)) {
      mv->error = ECANCELED;
      break;
    }
    switch (mv->step) {
    case MOVE_READ:
      if (!read_some (a, mv))
        return;
      break;
    case MOVE_COPY:
      return;
    case MOVE_FILL:
      if (!may_fill (a))
        return;
      (void) fill (a, mv);
      break;
    case MOVE_WRITE:
      if (!write_all (a, mv))
        return;
      over = true;
      break;
    case MOVE_ZERO:
      if (!zero_all (a, mv))
        return;
      over = true;
      break;
    }
  }
  /* Not before all that it has begun is over. */
  if (mv->step == MOVE_COPY || mv->reads.pending > 0 ||
      mv->zeroes.pending > 0)
    return;
  let_go_of_stuck (a, mv);
  if (mv->op)
    op_put (a, mv->op);
  end (a, mv);
}

bool
move_begin (struct array *a, uint64_t no, uint64_t end, bool zeroes,
            void (*ended) (struct array *a, const struct move *mv))
{
  struct move *mv = calloc (1, sizeof *mv);

  if (mv == NULL)
    return false;
  mv->a = a;
  mv->no = no;
  mv->end = end;
  mv->ended = ended;
  mv->step = zeroes ? MOVE_ZERO : MOVE_READ;
  if (!zeroes) {
    memcpy (mv->cell, a->reshape->cell, sizeof mv->cell);
    mv->nr_cells = a->reshape->nr_cells;
    a->reshape->nr_cells = 0;
  }
  mv->waiter.run = wake;
  list_init (&mv->waiter.link);
  mv->reads.waiter = mv->zeroes.waiter = &mv->waiter;
  mv->call.run = copy;
  mv->news.run = copied;
  a->reshape->in_flight++;
  list_append (&a->reshape->moves, &mv->link);
  list_move (&a->engine.ready, &mv->waiter.link);
  return true;
}

/* NULL: it is none of a move. */
static struct move *
move_that_writes (const struct array *a, const struct xfer *x)
{
  const struct logged *lg = op_writes_directly (x);

  list_for_each (l, &a->reshape->moves) {
    struct move *mv = list_item (l, struct move, link);

    if (lg && mv->step == MOVE_WRITE && line_row (a, mv->no) == lg->row)
      return mv;
  }
  return NULL;
}

void
moves_no_space (struct array *a)
{
  list_for_each (l, &a->no_space) {
    struct xfer *x = list_item (l, struct xfer, seat_link);
    struct move *mv = move_that_writes (a, x);

    if (mv == NULL || PLANTED ("widen-waits-for-space"))
      continue;
    mv->no_space = true;
    xfer_give_up (a, x, 0);
  }
}

void
moves_go_on (struct array *a)
{
  list_for_each (l, &a->reshape->moves) {
    struct move *mv = list_item (l, struct move, link);

    list_move (&a->engine.ready, &mv->waiter.link);
  }
}
