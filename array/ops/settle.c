/* gpuraid: what an operation leaves behind: lost rows, repairs, tickets; and
 * when it may end.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdlib.h>

#include "array/cache/cache.h"
#include "array/cache/ticket.h"
#include "array/engine/place.h"
#include "array/engine/state.h"
#include "array/health/lost.h"
#include "array/io/flush.h"
#include "array/io/superblock.h"
#include "array/ops/internal.h"
#include "array/ops/repair.h"
#include "array/seats/seat.h"
#include "common/plant.h"

/* ---- repairs and lost rows ------------------------------------------- */

void
repair_add (struct array *a, uint64_t no, uint64_t roles,
            unsigned b0, unsigned nr, unsigned nr_wrong)
{
  struct repair *rp;

  if (roles == 0 || !a->writable || a->failed ||
      a->nr_repairs >= limits.rebuild_max_repairs)
    return;
  list_for_each (l, &a->repairs) {
    rp = list_item (l, struct repair, link);
    if (rp->no == no && rp->roles == roles && rp->b0 == b0 && rp->nr == nr)
      return;
  }
  rp = calloc (1, sizeof *rp);
  if (rp == NULL)
    return;             /* the next read will find it again */
  rp->no = no;
  rp->roles = roles;
  rp->b0 = b0;
  rp->nr = nr;
  rp->nr_wrong = nr_wrong;
  rp->old = line_zeroes (a, no) != 0;
  a->nr_repairs++;
  list_append (&a->repairs, &rp->link);
}

void
op_repair_bad (struct array *a, const struct op *op)
{
  if ((op->type->kind == OP_FIX && !op->to_targets) ||
      PLANTED ("member-not-repaired"))
    return;
  for (unsigned i = 0; i < op->nr_rects; i++) {
    const struct rect *rect = &op->rect[i];
    const uint16_t blocks = block_mask (rect->b0, rect->nr);
    const uint64_t written = op->type->kind == OP_OUT ? rect->p.write : 0;
    const uint64_t roles =
      (op_bad_roles (a, op, blocks) | lost_roles (a, op->line->no, blocks) |
       op_lost_roles (a, op, rect)) & ~op->noread & ~rect->given & ~written &
      ~line_zeroes (a, op->line->no);
    unsigned nr_wrong = 0;

    FOR_EACH_BIT (r, roles)
      nr_wrong += nr_bits (op->role[r].wrong_blocks & blocks);
    if (rect->lost == 0 && !lost_rows_known (a, op->line->no, blocks))
      repair_add (a, op->line->no, roles, rect->b0, rect->nr, nr_wrong);
  }
}

void
op_note_rows (struct array *a, const struct op *op)
{
  uint16_t lost = op_lost_blocks (op), had = 0;

  /* What is only read or copied says nothing about the other blocks. */
  for (unsigned i = 0; i < op->nr_rects; i++)
    if ((op->type->kind != OP_READ && op->type->kind != OP_FIX) ||
        op->rect[i].p.make)
      had |= block_mask (op->rect[i].b0, op->rect[i].nr);
  /* If too many members are lost, this says nothing about the rows. */
  if (lost && nr_good_slots (a) >= a->g.k)
    lost_rows_add (a, op->line->no, lost);
  lost_rows_remove (a, op->line->no, had & ~lost);
}

/* ---- tickets -------------------------------------------------------- */

void
op_add_tickets (struct array *a, struct completion *c, bool waits)
{
  list_for_each (l, &a->ops) {
    struct op *op = list_item (l, struct op, link);

    if ((op->type->kind == OP_OUT || op->type->kind == OP_ZERO) && !op->logged)
      ticket_add (a, &op->tickets, c, ALL_BLOCKS, waits);
  }
}

void
op_end_tickets (struct array *a, struct op *op)
{
  tickets_end (a, &op->tickets, 0, ALL_BLOCKS);
}

void
op_no_space (struct array *a, struct op *op)
{
  tickets_no_space (a, &op->tickets);
}

struct line *
op_line (const struct op *op)
{
  return op->line;
}

void
ops_no_space (struct array *a)
{
  list_for_each (l, &a->ops)
    op_no_space (a, list_item (l, struct op, link));
}

/* Lost blocks that are written count only when the list without them is
 * durable: op_is_settled.
 */
static bool
writes_lost (const struct array *a, const struct op *op)
{
  for (unsigned i = 0; i < op->nr_rects; i++)
    if (lost_roles (a, op->line->no,
                    block_mask (op->rect[i].b0, op->rect[i].nr)) &
        op->rect[i].p.write)
      return true;
  return false;
}

void
op_logged (struct array *a, struct op *op)
{
  if (writes_lost (a, op))
    return;
  tickets_end (a, &op->tickets, EIO, op_lost_blocks (op));
  /* Lost rows go back to the line; a flush waits for that. */
  op->logged = op_lost_blocks (op) == 0;
}

/* If the slot also has an active member, the lost block is that member's. */
static void
forget_lost_blocks (struct array *a, const struct op *op)
{
  const uint64_t no = op->line->no;
  uint64_t keep = 0;

  for (unsigned r = 0; r < a->n && op->to_targets; r++)
    if (a->at[line_slot (a, no, r)][0])
      keep |= BIT (r);
  for (unsigned i = 0; i < op->nr_rects; i++)
    lost_remove (a, no, op->rect[i].p.write & ~keep,
                 block_mask (op->rect[i].b0, op->rect[i].nr));
}

/* Lost blocks written by this operation count again once the data is durable,
 * and then the list without them.  False if it waits.
 */
static bool
lost_blocks_cleared (struct array *a, struct op *op)
{
  if (a->failed || op->error)
    return true;
  if (op->to_targets) {
    forget_lost_blocks (a, op); /* don't count until it is active */
    return true;
  }
  if (op->phase == OP_FLUSHED)
    return save_wanted (a, &op->waiter);
  if (!writes_lost (a, op))
    return true;
  if (!op->flushing) {
    op->flushing = true;
    flush_members (a, &op->waiter);
    return false;
  }
  forget_lost_blocks (a, op);
  op->phase = OP_FLUSHED;
  return save_wanted (a, &op->waiter);
}

/* R6, M14: it does not end while a change is under way.  With a journal its
 * clients were told before, in op_logged.
 */
bool
op_is_settled (struct array *a, struct op *op)
{
  return (PLANTED ("ack-in-change") || change_is_over (a, &op->waiter)) &&
    lost_blocks_cleared (a, op);
}
