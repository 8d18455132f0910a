/* gpuraid: one operation on the rows of a line, from phase to phase.
 *
 * op_advance is called when an operation begins, when its wait ends, and when
 * the last of its transfers or jobs has ended.  It continues until the
 * operation waits again, or is over.  array/ops/rects.c, io.c, code.c and
 * settle.c implement the phases, array/ops/new.c the beginning, read.c and
 * hedge.c what only readers need.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>

#include "array/engine/consistency.h"
#include "array/engine/state.h"
#include "array/ops/internal.h"
#include "common/plant.h"

/* What a recovery writes in place is read from the rings until all of it is
 * there, and it may wait for space for long.
 */
static bool
may_read (const struct op *op)
{
  const struct op *writing = op->line->op;

  return writing == NULL ||
    (op->kind == OP_READ && writing->replay && !PLANTED ("replay-unread"));
}

/* Readers share the rows with readers; a write-out or fix only begins with
 * the rows to itself.
 */
static bool
is_free (struct array *a, struct op *op)
{
  if (op->kind == OP_ZERO)
    return op_zero_begin (a, op);
  if ((op->kind != OP_READ && op->kind != OP_SCRUB) || may_read (op))
    return true;
  list_move (&op->line->waiters, &op->waiter.link);
  return false;
}

/* True if a write may begin: no change is under way, and its rows are marked
 * in case of a crash.
 */
static bool
is_marked (struct array *a, struct op *op)
{
  if (op->kind == OP_READ || op->kind == OP_SCRUB)
    return true;
  if (!PLANTED ("member-skipped-early") && !change_is_over (a, &op->waiter))
    return false;
  op->lost_slots = a->lost_slots;
  op->epoch = a->membership.cur.self.ballot.epoch;
  /* A target is never read: a copy to it needs no mark. */
  return op->to_targets || op->replay ||
    a->consistency->is_marked (a, op_pos (a, op), op_len (a, op), &op->waiter);
}

/* It failed, and no plan can help. */
static void
give_up (struct array *a, struct op *op)
{
  if (op->error == 0)
    op->error = EIO;
  if (op->kind == OP_OUT)
    array_set_failed (a, "a write could not be carried out");
  op->phase = OP_DONE;
}

/* False if it waits. */
static bool
step (struct array *a, struct op *op)
{
  switch (op->phase) {
  case OP_WAITING:
    if (!is_free (a, op))
      return false;
    op->phase = OP_PLANNING;
    return true;

  case OP_PLANNING:
    if (op->kind != OP_READ && a->failed &&
        !PLANTED ("member-failed-writes")) {
      give_up (a, op);
      return true;
    }
    if (!is_marked (a, op) || !op_pin_sums (a, op))
      return false;
    if (op->kind == OP_ZERO) {
      op->phase = OP_CODED;
      return true;
    }
    if (op->kind == OP_SCRUB)
      op_plan_scrub (a, op);
    else if (!op_plan (a, op))
      return false;
    if (op->late)
      op_hedge_planned (a, op);
    if (op_lacks_sums (a, op))
      return true;
    if (!op_get_cells (a, op))
      return false;
    op->phase = OP_READING;
    op_issue_reads (a, op);
    if (op->kind == OP_READ)
      op_hedge_watch (a, op);
    return true;

  case OP_READING:
    if (op->pending > 0)
      return false;
    if (op_all_read (op)) {
      if (op->kind == OP_READ)
        op_hedge_won (a, op);
      op->phase = OP_CHECKING;
      op_start_check (a, op);
    }
    else
      op->phase = OP_PLANNING;  /* without the cells that gave errors */
    return true;

  case OP_CHECKING:
    if (op->pending > 0)
      return false;
    if (op_check (a, op)) {
      op->phase = OP_CODING;
      op_code (a, op);
    }
    else
      op->phase = OP_PLANNING;
    return true;

  case OP_CODING:
    if (op->pending > 0)
      return false;
    if (op->error)
      give_up (a, op);
    else if (op->bad_sums)
      op->phase = OP_PLANNING;
    else if (op->kind == OP_SCRUB) {
      op->phase = OP_COMPARING;
      op_start_compare (a, op);
    }
    else if (op->kind == OP_FIX) {
      op->phase = OP_LOOKING;
      op_find_zeroes (a, op);
    }
    else
      op->phase = op->kind == OP_READ ? OP_DONE : OP_CODED;
    return true;

  case OP_COMPARING:
    if (op->pending > 0)
      return false;
    op->phase = op_judge (a, op) ? OP_DONE : OP_PLANNING;
    return true;

  case OP_LOOKING:
    if (op->pending > 0)
      return false;
    op->phase = OP_CODED;
    return true;

  case OP_CODED:
    /* The plan may change until here. */
    if (!array_may_write (a)) {
      op->phase = OP_PLANNING;
      return true;
    }
    /* A target's blocks are not logged. */
    if (op->kind == OP_FIX && (a->sums == NULL || op->to_targets ||
                               op->replay))
      op_write_in_place (a, op);
    else {
      op->phase = OP_LOGGING;
      a->consistency->write (a, &op->log);
    }
    return true;

  case OP_LOGGING:
    return false;

  case OP_LOGGED:
    op_logged (a, op);
    if (op->kind == OP_ZERO && !op_zero_is_alone (a, op))
      return false;
    if (op->log.direct && !PLANTED ("direct-late"))
      op->phase = OP_WRITING;   /* that was done before */
    else
      op_write_in_place (a, op);
    return true;

  case OP_WRITING:
    if (op->pending > 0)
      return false;
    op->phase = OP_WRITTEN;
    if (op->to_targets || op->replay)
      op_note_copied (a, op);
    a->consistency->written (a, &op->log);
    return true;

  case OP_WRITTEN:
  case OP_FLUSHED:
    if (!op_is_settled (a, op))
      return false;
    op->phase = OP_DONE;
    return true;

  case OP_DONE:
    break;
  }
  op_end (a, op);
  return false;
}

void
op_wake (struct array *a, struct waiter *w)
{
  op_advance (a, list_item (w, struct op, waiter));
}

void
op_advance (struct array *a, struct op *op)
{
  while (step (a, op))
    ;
}
