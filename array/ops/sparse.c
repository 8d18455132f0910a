/* gpuraid: the blocks of zeroes that a rebuild does not write.
 *
 * Without checksums nothing says which blocks were never written.  So what is
 * to be stored on a rebuild's target is looked at, and zeroes are trimmed there
 * instead: the target may have old content, but its file stays sparse.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <string.h>

#include "array/engine/place.h"
#include "array/ops/internal.h"
#include "common/bytes/zeroes.h"

/* Fewer blocks in a row are written with those beside them: that takes less
 * I/O.
 */
#define MIN_RUN 4u

static uint16_t
zero_blocks (const uint8_t *data, const struct rect *rect)
{
  const unsigned last = rect->b0 + rect->nr, min = MIN (MIN_RUN, rect->nr);
  uint16_t blocks = 0;

  for (unsigned b = rect->b0, end; b < last; b = end + 1) {
    for (end = b;
         end < last && all_zeroes (data + end * BLOCK_LEN, BLOCK_LEN); end++)
      ;
    if (end - b >= min)
      blocks |= block_mask (b, end - b);
  }
  return blocks;
}

/* Without the lock. */
static void
look_call (struct call *c)
{
  struct op *op = list_item (c, struct op, check_call);

  for (unsigned i = 0; i < op->nr_rects; i++) {
    const struct rect *rect = &op->rect[i];

    FOR_EACH_BIT (r, rect->p.write)
      op->role[r].zero_blocks |= zero_blocks (op_new_cell (op, rect, r)->data,
                                              rect);
  }
  engine_post (op->a, &op->check_news);
}

void
op_find_zeroes (struct array *a, struct op *op)
{
  op->pending = 0;
  if (a->sums || !op->to_targets)
    return;
  for (unsigned r = 0; r < a->n; r++)
    op->role[r].zero_blocks = 0;
  op_call (a, op, look_call);
}
