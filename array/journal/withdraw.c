/* gpuraid: a transaction that finds no space for what it writes directly.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/io/xfer.h"
#include "array/journal/withdraw.h"
#include "array/ops/internal.h"

/* A direct write of the transaction that waits for space, or NULL. */
static struct op *
held_op (const struct txn *t, const struct xfer *x)
{
  struct op *op = x->of_op ? x->owner : NULL;

  return op && op->txn == t && op->direct && op->phase == OP_LOGGING ?
    op : NULL;
}

bool
withdraw_is_due (const struct array *a, const struct txn *t)
{
  unsigned nr_ops = 0, nr_xfers = 0;

  if (!t->any_direct || t->phase != TXN_WRITING || !op_zero_waits (a))
    return false;
  list_for_each (l, &t->ops) {
    const struct op *op = list_item (l, struct op, txn_link);

    nr_ops += op->direct && op->pending > 0;
    nr_xfers += op->direct ? op->pending : 0;
  }
  list_for_each (l, &a->no_space)
    nr_xfers -= held_op (t, list_item (l, struct xfer, seat_link)) != NULL;
  /* The rest of what is pending would be records. */
  return nr_ops > 0 && nr_xfers == 0 && t->pending == nr_ops;
}

void
withdraw (struct array *a, struct txn *t)
{
  list_for_each (l, &a->no_space) {
    struct xfer *x = list_item (l, struct xfer, seat_link);
    struct op *op = held_op (t, x);

    if (op == NULL)
      continue;
    op->withdrawn = t;
    xfer_give_up (a, x, 0);
  }
}
