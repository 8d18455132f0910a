/* gpuraid: the end of an operation.
 *
 * Releases what it holds, remembers which rows are lost, and wakes the
 * waiters.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <string.h>

#include "array/cache/cache.h"
#include "array/cache/ticket.h"
#include "array/engine/consistency.h"
#include "array/engine/state.h"
#include "array/health/lost.h"
#include "array/io/flush.h"
#include "array/io/superblock.h"
#include "array/ops/internal.h"
#include "array/ops/repair.h"
#include "array/seats/seat.h"
#include "common/plant.h"

/* ---- lost rows -------------------------------------------------------- */

void
op_repair_bad (struct array *a, const struct op *op)
{
  if ((op->kind == OP_FIX && !op->to_targets) ||
      PLANTED ("member-not-repaired"))
    return;
  for (unsigned i = 0; i < op->nr_rects; i++) {
    const struct rect *rect = &op->rect[i];
    const uint16_t blocks = block_mask (rect->b0, rect->nr);
    const uint64_t roles =
      (op_bad_roles (a, op, blocks) | lost_roles (a, op->line->no, blocks) |
       op_lost_roles (a, op, rect)) & ~op->noread & ~rect->given;
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
    if ((op->kind != OP_READ && op->kind != OP_FIX) || op->rect[i].p.make)
      had |= block_mask (op->rect[i].b0, op->rect[i].nr);
  /* If too many members are lost, this says nothing about the rows. */
  if (lost && nr_good_slots (a) >= a->g.k)
    lost_rows_add (a, op->line->no, lost);
  lost_rows_remove (a, op->line->no, had & ~lost);
}

/* ---- releasing ------------------------------------------------------- */

/* Keep blocks that could not be written in the cache, so that no reader gets
 * older data than was read before.
 */
static void
keep_unwritten (struct line_cell *lc, const struct op_role *o,
                uint16_t unwritten)
{
  const uint16_t blocks = o->given_blocks & unwritten;

  if (blocks == 0)
    return;
  if (lc->c == NULL) {
    lc->c = o->given;
    cell_ref (lc->c);
    lc->valid = blocks;
  }
  if (lc->c == o->given) {
    lc->dirty |= blocks;
    return;
  }
  lc->outdated |= blocks & lc->busy;
  FOR_EACH_BIT (b, blocks & ~lc->valid & ~lc->busy)
    memcpy (lc->c->data + b * BLOCK_LEN, o->given->data + b * BLOCK_LEN,
            BLOCK_LEN);
  lc->dirty |= blocks & ~lc->busy;
  lc->valid |= blocks & ~lc->busy;
}

/* The line no longer counts the cells it gave away. */
static void
thaw (struct array *a, struct op *op)
{
  struct line *line = op->line;
  const uint16_t unwritten = op->error ? 0xffff : op_lost_blocks (op);

  for (unsigned r = 0; r < a->g.k; r++) {
    struct op_role *o = &op->role[r];

    if (o->given == NULL)
      continue;
    line->cell[r].out = NULL;
    line->cell[r].out_blocks = 0;
    keep_unwritten (&line->cell[r], o, unwritten);
    if (line->cell[r].c != o->given) {
      line->nr_cells--;
      if (!line->is_clean)
        a->nr_held--;
    }
  }
}

void
op_add_tickets (struct array *a, struct completion *c, bool waits)
{
  list_for_each (l, &a->ops) {
    struct op *op = list_item (l, struct op, link);

    if ((op->kind == OP_OUT || op->kind == OP_ZERO) && !op->logged)
      ticket_add (&op->tickets, c, ALL_BLOCKS, waits);
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
  const uint64_t stripe = line_stripe (a, op->line->no);
  uint64_t keep = 0;

  for (unsigned r = 0; r < a->n && op->to_targets; r++)
    if (a->at[layout_slot (&a->g, stripe, r)][0])
      keep |= BIT (r);
  for (unsigned i = 0; i < op->nr_rects; i++)
    lost_remove (a, op->line->no, op->rect[i].p.write & ~keep,
                 block_mask (op->rect[i].b0, op->rect[i].nr));
}

/* Lost blocks written by this operation count again once the data is durable,
 * and then the list without them.  False if it waits.
 */
static bool
lost_blocks_cleared (struct array *a, struct op *op)
{
  if (a->failed)
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

/* Nothing is acknowledged while a change is under way. */
bool
op_is_settled (struct array *a, struct op *op)
{
  return (PLANTED ("ack-in-change") || change_is_over (a, &op->waiter)) &&
    lost_blocks_cleared (a, op);
}

/* A write-out could not write these rows.  Some such lines are kept, as long
 * as they leave room for one more.
 */
static void
note_stuck (struct array *a, struct line *line, bool stuck)
{
  a->nr_stuck += stuck - line->stuck;
  line->stuck = stuck;
  if (stuck && (a->nr_stuck * a->g.k > a->max_held - a->g.k ||
                PLANTED ("row-fails-array")))
    array_set_failed (a, "too many rows can't be written");
}

/* What a recovery could not write in place, or a rebuild could not make.
 * False: the list is full.
 */
static bool
list_lost (struct array *a, const struct op *op)
{
  bool listed = true;

  if (!(op->replay || op->to_targets) || table_lists_lost (a))
    return true;
  for (unsigned i = 0; i < op->nr_rects; i++) {
    const struct rect *rect = &op->rect[i];

    if (rect->lost && !lost_add (a, op->line->no, rect->lost,
                                 block_mask (rect->b0, rect->nr)))
      listed = false;
  }
  if (!listed && op->replay)
    log_notice ("a block of the members is lost, and can't be listed: there "
                "are too many");
  return listed;
}

void
op_take_back (struct array *a, struct op *op)
{
  struct line *line = op->line;

  list_remove (&op->log.link);
  op->error = ECANCELED;        /* none of it was written */
  thaw (a, op);
  line->want_out |= !list_empty (&op->tickets);
  list_splice (&line->tickets, &op->tickets);
  a->consistency->end (a, op_pos (a, op), op_len (a, op));
  line->op = NULL;
  op_free (a, op);
  line_changed (a, line);
}

/* The end of a write-out or fix. */
static void
end_write (struct array *a, struct op *op)
{
  struct line *line = op->line;
  void (*done) (struct array *, const struct fixed *) = op->done;
  struct fixed fixed = { .opaque = op->opaque, .no = line->no,
                         .roles = op->want };

  if (a->failed && op->error == 0)
    op->error = EIO;
  if (op->error == 0) {
    op_repair_bad (a, op);
    op_note_rows (a, op);
    if (!list_lost (a, op) && op->to_targets)
      fixed.error = ENOSPC;
  }
  else
    fixed.error = op->error;
  fixed.lost = op_lost_blocks (op);
  if (op->error && op->kind == OP_OUT && op->wrote)
    line->torn = true;
  thaw (a, op);
  if (op->kind == OP_OUT && op->error == 0)
    note_stuck (a, line, fixed.lost != 0);
  tickets_end (a, &op->tickets, op->error ? op->error : EIO,
               op->error ? ALL_BLOCKS : fixed.lost);
  if (op->marked)
    a->consistency->end (a, op_pos (a, op), op_len (a, op));
  line->op = NULL;
  op_free (a, op);
  line_changed (a, line);
  if (done)
    done (a, &fixed);
}

void
op_end (struct array *a, struct op *op)
{
  switch (op->kind) {
  case OP_READ: op_end_read (a, op); break;
  case OP_ZERO: op_end_zero (a, op); break;
  case OP_SCRUB: op_end_scrub (a, op); break;
  case OP_OUT:
  case OP_FIX: end_write (a, op); break;
  }
}
