/* gpuraid: how an operation begins: its credit, and what it holds.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>
#include <string.h>

#include "array/cache/cache.h"
#include "array/engine/consistency.h"
#include "array/engine/state.h"
#include "array/ops/internal.h"
#include "array/seats/seat.h"
#include "common/plant.h"

/* ---- credits and memory ------------------------------------------------- */

/* One credit is reserved for write-outs, so that readers always progress.
 * Write-outs take at most three quarters, so that readers and a rebuild
 * continue when they wait for a member.  A rebuild leaves one to readers.
 */
static bool
has_credit (const struct array *a, enum op_kind kind)
{
  const unsigned max_outs = a->max_ops - MAX (1, a->max_ops / 4);
  const unsigned kept = a->nr_outs == 0;

  switch (kind) {
  case OP_ZERO: return true;    /* it needs no cells */
  case OP_OUT: return a->nr_ops < a->max_ops && a->nr_outs < max_outs;
  case OP_READ: return a->nr_ops + kept < a->max_ops;
  default: return a->nr_ops + kept + 1 < a->max_ops;
  }
}

bool
op_has_credit (const struct array *a)
{
  return has_credit (a, OP_OUT);
}

void
op_init (struct array *a)
{
  pool_init (&a->op_pool,
             sizeof (struct op) + a->n * sizeof (struct op_role));
  list_init (&a->ops);
  list_init (&a->coding);
  list_init (&a->pause_waiters);
  list_init (&a->zeroing);
  list_init (&a->zero_waiters);
  op_hedge_init (a);
}

struct op *
op_new (struct array *a, enum op_kind kind, struct line *line)
{
  struct op *op;

  if (!has_credit (a, kind))
    return NULL;
  op = pool_get (&a->op_pool);
  if (op == NULL)
    return NULL;
  op->a = a;
  op->kind = kind;
  op->line = line;
  op->waiter.run = op_wake;
  list_init (&op->waiter.link);
  list_init (&op->coding);
  list_init (&op->xfers);
  list_init (&op->tickets);
  list_append (&a->ops, &op->link);
  list_init (&op->zeroing);
  op->log.op = op;
  list_init (&op->log.link);
  a->nr_ops += kind != OP_ZERO;
  a->nr_outs += kind == OP_OUT;
  if (line) {
    op->log.row = line_row (a, line->no);
    op->log.nr_rows = a->cell_blocks;
    line_hold (a, line);
  }
  return op;
}

static void
release_role (struct array *a, struct op_role *o)
{
  if (o->given) {
    o->given->frozen--;
    cell_put (a, o->given);
  }
  if (o->have) {
    o->have->frozen--;
    cell_put (a, o->have);
  }
  if (o->old)
    cell_put (a, o->old);
  if (o->made)
    cell_put (a, o->made);
  memset (o, 0, sizeof *o);
}

void
op_free (struct array *a, struct op *op)
{
  for (unsigned r = 0; r < a->n; r++)
    release_role (a, &op->role[r]);
  if (a->sums)
    sums_unpin (a, &op->pin);
  list_remove (&op->link);
  list_remove (&op->waiter.link);
  a->nr_ops -= op->kind != OP_ZERO;
  a->nr_outs -= op->kind == OP_OUT;
  pool_put (&a->op_pool, op);
  engine_run_waiters (a, &a->cell_waiters);
}

/* ---- write-outs and fixes ---------------------------------------------- */

bool
op_may_write (const struct array *a, const struct line *line)
{
  return line->op == NULL && line->pins == 0 && line->readers == 0 &&
    array_may_write (a) &&
    (!op_zeroes (a, line->no, line->no + 1) || PLANTED ("zero-overlapped"));
}

/* Take the dirty blocks from the line, and freeze them. */
static void
freeze (struct array *a, struct op *op)
{
  for (unsigned r = 0; r < a->g.k; r++) {
    struct line_cell *lc = &op->line->cell[r];

    if (lc->dirty == 0)
      continue;
    op->role[r].given = lc->c;
    op->role[r].given_blocks = lc->dirty;
    lc->out = lc->c;
    lc->out_blocks = lc->dirty;
    cell_ref (lc->c);
    lc->c->frozen++;
    lc->dirty = 0;
  }
}

static void
begin_writing (struct array *a, struct op *op)
{
  op->line->op = op;
  op->marked = true;
  a->consistency->begin (a, op_pos (a, op), op_len (a, op));
}

bool
op_out (struct array *a, struct line *line)
{
  struct op *op = op_new (a, OP_OUT, line);

  if (op == NULL)
    return false;
  begin_writing (a, op);
  freeze (a, op);
  list_splice (&op->tickets, &line->tickets);
  line_changed (a, line);
  op_advance (a, op);
  return true;
}

bool
op_replay (struct array *a, struct line *line, uint16_t blocks,
           void (*done) (struct array *a, const struct fixed *f), void *opaque)
{
  struct op *op = op_new (a, OP_FIX, line);

  if (op == NULL)
    return false;
  op->replay = blocks;
  op->done = done;
  op->opaque = opaque;
  begin_writing (a, op);
  list_move (&a->engine.ready, &op->waiter.link);
  return true;
}

/* A resync makes the entries of the checksum table too. */
bool
op_resync (struct array *a, struct line *line,
           void (*done) (struct array *a, const struct fixed *f),
           void *opaque)
{
  struct op *op = op_new (a, OP_FIX, line);
  uint64_t noread, nowrite;

  if (op == NULL)
    return false;
  line_masks (a, line->no, &noread, &nowrite);
  op->want = op->unsure = line_doubtful (a, line->no, noread);
  op->anew = a->sums != NULL;
  op->nr = a->cell_blocks;
  op->done = done;
  op->opaque = opaque;
  begin_writing (a, op);
  list_move (&a->engine.ready, &op->waiter.link);
  return true;
}

/* With journal and checksums a repair is logged like a write, with the same
 * content: some data and all parity, so that no m members take all its records
 * with them.  Where all data is on targets that have the row, one of these gets
 * the new generation: else parity would have one that no data has.
 */
static uint64_t
logged_with (const struct array *a, const struct line *line, uint64_t roles)
{
  const uint64_t data = LOW_BITS (a->g.k);
  uint64_t noread, nowrite, more = LOW_BITS (a->n) & ~data, with;

  if (a->sums == NULL || a->mark_open)
    return 0;
  line_masks (a, line->no, &noread, &nowrite);
  with = data & ~noread;
  if (with == 0 && !PLANTED ("repair-parity-alone"))
    with = data & ~nowrite;
  if ((roles & data) == 0)
    more |= with & -with;
  return more;
}

bool
op_fix (struct array *a, struct line *line, uint64_t roles, bool to_targets,
        unsigned b0, unsigned nr,
        void (*done) (struct array *a, const struct fixed *f), void *opaque)
{
  struct op *op = op_new (a, OP_FIX, line);

  if (op == NULL)
    return false;
  op->want = roles | (to_targets ? 0 : logged_with (a, line, roles));
  op->to_targets = to_targets;
  op->b0 = b0;
  op->nr = nr;
  op->done = done;
  op->opaque = opaque;
  /* The stored parity can't be trusted. */
  if (!to_targets && line_is_unsynced (a, line->no))
    op->unsure = roles & ~LOW_BITS (a->g.k);
  if (!to_targets)
    op->avoid = roles & ~op->unsure;
  begin_writing (a, op);
  list_move (&a->engine.ready, &op->waiter.link);
  return true;
}
