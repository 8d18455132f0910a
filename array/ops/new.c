/* gpuraid: how an operation begins: its credit, and what it holds.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "array/cache/cache.h"
#include "array/engine/place.h"
#include "array/ops/internal.h"
#include "common/plant.h"

/* ---- credits and memory ------------------------------------------------- */

/* The credit of one operation is reserved for write-outs, so that readers
 * always progress.  Write-outs take at most three quarters, so that readers and
 * a rebuild continue when they wait for a member.  A rebuild leaves that of one
 * to readers.
 */
static bool
has_credit (const struct array *a, enum op_kind kind, unsigned credit)
{
  const unsigned one = a->op_cells, all = a->max_credit;
  const unsigned kept = a->out_credit == 0 ? one : 0;

  switch (kind) {
  case OP_ZERO: return true;    /* it needs no cells */
  case OP_OUT: return a->credit + credit <= all &&
      a->out_credit + credit <= all - MAX (one, all / 4);
  case OP_READ: return a->credit + kept + credit <= all;
  default: return a->credit + kept + one + credit <= all;
  }
}

bool
op_has_credit (const struct array *a)
{
  return has_credit (a, OP_OUT, a->op_cells);
}

/* What moves rows goes on: it holds the others. */
static bool
is_held (const struct array *a, enum op_kind kind, const struct line *line)
{
  if (kind == OP_READ)
    return a->reads_held && !PLANTED ("parity-not-held");
  return a->ops_held && !(line && row_moves (a, line_row (a, line->no))) &&
    !PLANTED ("parity-not-held");
}

/* A write-out of few blocks of its line takes less; but a quarter at least, as
 * many more than are of use wait for each other.
 */
static unsigned
credit_of (const struct array *a, enum op_kind kind, const struct line *line,
           struct cell_parts *parts)
{
  unsigned first = 0, end = a->cell_blocks;
  uint16_t dirty = 0;

  for (unsigned r = 0; kind == OP_OUT && r < a->g.k; r++)
    dirty |= line->cell[r].dirty;
  if (dirty) {
    first = __builtin_ctz (dirty);
    end = 32 - __builtin_clz (dirty);
  }
  return kind == OP_ZERO ? 0 :
    MAX (a->op_cells / 4, cell_parts_init (a, parts, first, end - first));
}

static void
init_pool (struct array *a)
{
  pool_init (&a->op_pool,
             sizeof (struct op) + a->n * sizeof (struct op_role),
             offsetof (struct op, rect));
}

void
op_reshaped (struct array *a)
{
  assert (list_empty (&a->ops));
  pool_end (&a->op_pool);
  init_pool (a);
}

void
op_init (struct array *a)
{
  init_pool (a);
  list_init (&a->ops);
  list_init (&a->coding);
  list_init (&a->pause_waiters);
  list_init (&a->zeroing);
  list_init (&a->zero_waiters);
  op_hedge_init (a);
}

struct op *
op_new (struct array *a, const struct op_type *type, struct line *line)
{
  const enum op_kind kind = type->kind;
  struct cell_parts parts = { 0 };
  const unsigned credit = credit_of (a, kind, line, &parts);
  struct op *op;

  if (is_held (a, kind, line) || !has_credit (a, kind, credit))
    return NULL;
  op = pool_get (&a->op_pool);
  if (op == NULL)
    return NULL;
  op->a = a;
  op->type = type;
  op->line = line;
  op->waiter.run = op_wake;
  list_init (&op->waiter.link);
  list_init (&op->coding);
  list_init (&op->xfers);
  list_init (&op->tickets);
  list_append (&a->ops, &op->link);
  list_init (&op->zeroing);
  op->log.op = op;
  op->frontier = a->g.frontier;
  for (unsigned r = 0; r < a->n; r++)
    memset (&op->role[r], 0, offsetof (struct op_role, wrong_crc));
  list_init (&op->log.link);
  a->nr_ops += kind != OP_ZERO;
  a->nr_other_ops += kind != OP_READ;
  op->credit = credit;
  op->parts = parts;
  a->credit += credit;
  if (kind == OP_OUT)
    a->out_credit += credit;
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
}

void
op_free (struct array *a, struct op *op)
{
  for (unsigned r = 0; r < a->n; r++)
    release_role (a, &op->role[r]);
  cell_parts_end (a, &op->parts);
  if (a->sums)
    sums_unpin (a, &op->pin);
  list_remove (&op->link);
  list_remove (&op->waiter.link);
  a->nr_ops -= op->type->kind != OP_ZERO;
  a->nr_other_ops -= op->type->kind != OP_READ;
  a->credit -= op->credit;
  if (PLANTED ("credit-twice"))
    a->credit -= op->credit;
  if (op->type->kind == OP_OUT)
    a->out_credit -= op->credit;
  pool_put (&a->op_pool, op);
  engine_run_waiters (a, &a->cell_waiters);
}

bool
op_zeroes_any (const struct array *a, uint64_t line0, uint64_t line1)
{
  list_for_each (l, &a->zeroing) {
    const struct op *op = list_item (l, struct op, zeroing);

    if (line0 < op->line1 && op->line0 < line1)
      return true;
  }
  return false;
}
