/* gpuraid: how an operation begins: its credit, and what it holds.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "array/cache/cache.h"
#include "array/ops/internal.h"

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
             sizeof (struct op) + a->n * sizeof (struct op_role),
             offsetof (struct op, rect));
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
  struct op *op;

  if (!has_credit (a, kind))
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
  for (unsigned r = 0; r < a->n; r++)
    memset (&op->role[r], 0, offsetof (struct op_role, wrong_crc));
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
  a->nr_ops -= op->type->kind != OP_ZERO;
  a->nr_outs -= op->type->kind == OP_OUT;
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
