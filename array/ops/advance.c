/* gpuraid: one operation on the rows of a line, from phase to phase.
 *
 * op_advance is called when an operation begins, when its wait ends, and when
 * the last of its transfers or jobs has ended.  It continues until the
 * operation waits again, or is over.  array/ops/rects.c, io.c, code.c and
 * settle.c implement the phases; read.c, write.c, zero.c and scrub.c are the
 * kinds of operations: how they begin and end, and what only they do.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>

#include "array/engine/consistency.h"
#include "array/engine/state.h"
#include "array/ops/internal.h"
#include "array/replay/recovery.h"
#include "common/plant.h"

bool
op_rows_are_free (struct array *a, struct op *op)
{
  if (op->line->op == NULL)
    return true;
  list_move (&op->line->waiters, &op->waiter.link);
  return false;
}

/* It counts only now: while it waited, zeroing may have begun, and what that
 * has written so far can't be decoded.  Zeroing that has not begun waits for
 * the operation instead.
 */
bool
op_begin_reading (struct array *a, struct op *op)
{
  const uint64_t no = op->line->no;

  list_for_each (l, &a->zeroing) {
    const struct op *zero = list_item (l, struct op, zeroing);

    if (zero->phase > OP_WAITING && no >= zero->line0 && no < zero->line1 &&
        !PLANTED ("zero-passed")) {
      list_move (&a->zero_waiters, &op->waiter.link);
      return false;
    }
  }
  op->line->reading++;
  return true;
}

/* True if a write may begin: no change is under way, and its rows are marked
 * in case of a crash.
 */
static bool
is_marked (struct array *a, struct op *op)
{
  if (!op->type->writes)
    return true;
  if (!PLANTED ("member-skipped-early") && !change_is_over (a, &op->waiter))
    return false;
  op->lost_slots = a->lost_slots;
  op->epoch = a->membership.cur.self.ballot.epoch;
  /* A target is never read: a copy to it needs no mark. */
  return op->to_targets || op->replay ||
    a->consistency->is_marked (a, op_pos (op), op_len (op), &op->waiter);
}

/* It failed, and no plan can help. */
static void
give_up (struct array *a, struct op *op)
{
  if (op->error == 0)
    op->error = EIO;
  if (op->type->kind == OP_OUT)
    array_set_failed (a, "a write could not be carried out");
  op->phase = OP_DONE;
}

/* ---- the phases: false if it waits --------------------------------------- */

static bool
waiting (struct array *a, struct op *op)
{
  if (op->type->may_begin && !op->type->may_begin (a, op))
    return false;
  op->phase = OP_PLANNING;
  return true;
}

/* What it has read may be of a transaction that does not count any more. */
static bool
is_decided_again (const struct array *a, const struct op *op)
{
  return op->type->kind == OP_READ && !op->undecided &&
    op->decision != recover_decision (a);
}

/* It was decided again which rows have moved: what it reads is somewhere
 * else.
 */
static bool
has_no_place (const struct array *a, const struct op *op)
{
  return is_decided_again (a, op) && op->frontier != a->g.frontier &&
    !PLANTED ("widen-read-kept");
}

static bool
planning (struct array *a, struct op *op)
{
  if (op->type->kind != OP_READ && a->failed &&
      !PLANTED ("member-failed-writes")) {
    give_up (a, op);
    return true;
  }
  if (has_no_place (a, op)) {
    op->error = ECANCELED;
    op->phase = OP_DONE;
    return true;
  }
  if (!is_marked (a, op) || !op_pin_sums (a, op))
    return false;
  if (op->type->plan == NULL) {
    op->phase = OP_CODED;
    return true;
  }
  if (!op->type->plan (a, op))
    return false;
  if (op->late)
    op_hedge_planned (a, op);
  if (op_lacks_sums (a, op))
    return true;
  if (!op_get_cells (a, op))
    return false;
  op->phase = OP_READING;
  op_issue_reads (a, op);
  if (op->type->kind == OP_READ)
    op_hedge_watch (a, op);
  return true;
}

static bool
reading (struct array *a, struct op *op)
{
  if (!op_all_read (op)) {
    op->phase = OP_PLANNING;    /* without the cells that gave errors */
    return true;
  }
  if (op->type->kind == OP_READ)
    op_hedge_won (a, op);
  op->phase = OP_CHECKING;
  op_start_check (a, op);
  return true;
}

static bool
checking (struct array *a, struct op *op)
{
  if (op_check (a, op)) {
    op->phase = OP_CODING;
    op_code (a, op);
  }
  else
    op->phase = OP_PLANNING;
  return true;
}

static bool
coding (struct array *a, struct op *op)
{
  if (op->error)
    give_up (a, op);
  else if (op->bad_sums)
    op->phase = OP_PLANNING;
  else {
    op->phase = OP_LOOKING;
    if (op->type->look)
      op->type->look (a, op);
  }
  return true;
}

static bool
looking (struct array *a, struct op *op)
{
  if ((op->type->judge && !op->type->judge (a, op)) ||
      (is_decided_again (a, op) && !PLANTED ("recover-read-kept")))
    op->phase = OP_PLANNING;
  else
    op->phase = op->type->writes ? OP_CODED : OP_DONE;
  return true;
}

static bool
coded (struct array *a, struct op *op)
{
  /* The plan may change until here. */
  if (!array_may_write (a))
    op->phase = OP_PLANNING;
  /* A target's blocks are not logged. */
  else if (op->type->kind == OP_FIX &&
           (a->sums == NULL || op->to_targets || op->replay))
    op_write_in_place (a, op);
  else {
    op->phase = OP_LOGGING;
    a->consistency->write (a, &op->log);
  }
  return true;
}

static bool
logging (struct array *a, struct op *op)
{
  return false;
}

static bool
logged (struct array *a, struct op *op)
{
  op_logged (a, op);
  if (op->type->may_place && !op->type->may_place (a, op))
    return false;
  if (op->log.direct && !PLANTED ("direct-late"))
    op->phase = OP_WRITING;     /* that was done before */
  else
    op_write_in_place (a, op);
  return true;
}

static bool
writing (struct array *a, struct op *op)
{
  op->phase = OP_WRITTEN;
  if (op->error == 0 && (op->to_targets || op->replay))
    op_note_copied (a, op);
  a->consistency->written (a, &op->log);
  return true;
}

static bool
written (struct array *a, struct op *op)
{
  if (!op_is_settled (a, op))
    return false;
  op->phase = OP_DONE;
  return true;
}

static bool
done (struct array *a, struct op *op)
{
  op->type->end (a, op);
  return false;
}

static bool (*const phases[]) (struct array *a, struct op *op) = {
  [OP_WAITING] = waiting, [OP_PLANNING] = planning, [OP_READING] = reading,
  [OP_CHECKING] = checking, [OP_CODING] = coding, [OP_LOOKING] = looking,
  [OP_CODED] = coded, [OP_LOGGING] = logging, [OP_LOGGED] = logged,
  [OP_WRITING] = writing, [OP_WRITTEN] = written, [OP_FLUSHED] = written,
  [OP_DONE] = done,
};

/* What a write-out has waited for counts for its phase.  In OP_LOGGING it is
 * the journal that counts.
 */
static void
count_stage (struct array *a, struct op *op)
{
  struct array_stages *s = &a->stages;

  switch (op->phase) {
  case OP_WAITING:
  case OP_PLANNING:
    stage_end (a, &s->begun, &op->since);
    break;
  case OP_READING:
    stage_end (a, &s->read, &op->since);
    break;
  case OP_CHECKING:
  case OP_CODING:
  case OP_LOOKING:
    stage_end (a, &s->coded, &op->since);
    break;
  case OP_WRITING:
  case OP_WRITTEN:
  case OP_FLUSHED:
    stage_end (a, &s->placed, &op->since);
    break;
  case OP_CODED:
  case OP_LOGGING:
  case OP_LOGGED:
  case OP_DONE:
    break;
  }
}

void
op_wake (struct array *a, struct waiter *w)
{
  op_advance (a, list_item (w, struct op, waiter));
}

void
op_advance (struct array *a, struct op *op)
{
  if (op->pending == 0 && op->type->kind == OP_OUT)
    count_stage (a, op);
  while (op->pending == 0 && phases[op->phase] (a, op))
    ;
}
