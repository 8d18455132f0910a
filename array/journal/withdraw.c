/* gpuraid: a transaction that finds no space for what it writes directly.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/io/xfer.h"
#include "array/journal/withdraw.h"
#include "array/ops/logged.h"
#include "array/ops/ops.h"

/* A direct write of the transaction that waits for space, or NULL. */
static struct logged *
held (const struct txn *t, const struct xfer *x)
{
  struct logged *lg = op_writes_directly (x);

  return lg && lg->txn == t ? lg : NULL;
}

bool
withdraw_is_due (const struct array *a, const struct txn *t)
{
  unsigned nr_ops = 0, nr_xfers = 0;

  if (!t->any_direct || t->moves || t->phase != TXN_WRITING ||
      !op_zero_waits (a))
    return false;
  list_for_each (l, &t->ops) {
    const struct logged *lg = list_item (l, struct logged, link);
    const unsigned nr = lg->direct ? op_nr_pending (lg->op) : 0;

    nr_ops += nr > 0;
    nr_xfers += nr;
  }
  list_for_each (l, &a->no_space)
    nr_xfers -= held (t, list_item (l, struct xfer, seat_link)) != NULL;
  /* The rest of what is pending would be records. */
  return nr_ops > 0 && nr_xfers == 0 && t->pending == nr_ops;
}

void
withdraw (struct array *a, struct txn *t)
{
  list_for_each (l, &a->no_space) {
    struct xfer *x = list_item (l, struct xfer, seat_link);
    struct logged *lg = held (t, x);

    if (lg == NULL)
      continue;
    lg->withdrawn = t;
    xfer_give_up (a, x, 0);
  }
}
