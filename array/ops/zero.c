/* gpuraid: the operation that stores zeroes to whole stripes.
 *
 * The parity of zeroes is zeroes, so a run of stripes is one range of zeroes
 * on every member, without cache or coder.  Operations under way in the range
 * end first, and none enters it meanwhile.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>

#include "array/cache/cache.h"
#include "array/cache/ticket.h"
#include "array/engine/consistency.h"
#include "array/engine/place.h"
#include "array/health/fail.h"
#include "array/io/again.h"
#include "array/io/xfer.h"
#include "array/ops/internal.h"
#include "array/seats/seat.h"
#include "array/seats/unlocked.h"
#include "common/plant.h"

/* ---- the lines of the range --------------------------------------------- */

/* Call fn for the lines of the range until it returns false.  Returns that
 * line, or NULL.  fn may forget its line.
 */
static struct line *
each_line (struct array *a, struct op *op,
           bool (*fn) (struct array *, struct op *, struct line *))
{
  if (op->line1 - op->line0 < a->nr_lines) {
    for (uint64_t no = op->line0; no < op->line1; no++) {
      struct line *line = line_find (a, no);

      if (line && !fn (a, op, line))
        return line;
    }
    return NULL;
  }
  for (unsigned b = 0; b < a->nr_buckets; b++)
    for (struct line *line = a->bucket[b], *next; line; line = next) {
      next = line->hash_next;
      if (line->no >= op->line0 && line->no < op->line1 && !fn (a, op, line))
        return line;
    }
  return NULL;
}

static bool
has_no_space (const struct op *op)
{
  if (op == NULL || op->phase != OP_WRITING)
    return false;
  list_for_each (l, &op->xfers)
    if (list_item (l, struct xfer, owner_link)->had_no_space)
      return !PLANTED ("zero-waits");
  return false;
}

/* Some of it is durable in the journal, and waits for space in place. */
static bool
is_short (const struct op *op)
{
  return has_no_space (op) && op->log.txn;
}

static void
drop_short (struct array *a, struct op *op)
{
  list_for_each (l, &op->xfers)
    list_item (l, struct xfer, owner_link)->moot = true;
  list_for_each (l, &a->no_space) {
    struct xfer *x = list_item (l, struct xfer, seat_link);

    if (x->of_op && x->owner == op)
      xfer_give_up (a, x, 0);
  }
}

/* It waits for the journal, which may do without it; or it is a fix that waits
 * for space in place, and what it stores anew will be zeroes.
 */
static void
make_way (struct array *a, struct op *op)
{
  if (op == NULL || op->replay)
    return;
  if (op->phase == OP_LOGGING && a->consistency->gives_way (a, &op->log))
    op_take_back (a, op);
  else if (op->type->kind == OP_FIX && has_no_space (op) &&
           op->log.txn == NULL && !PLANTED ("zero-waits-fix")) {
    op->error = ECANCELED;
    drop_short (a, op);
  }
}

/* What gives space back does not wait for what needs some, nor for what waits
 * behind that: a reader that has not begun, and a pin of a write that needs
 * one.
 */
static bool
is_idle (struct array *a, struct op *op, struct line *line)
{
  const uint64_t no = line->no;

  make_way (a, line->op);
  line = line_find (a, no);
  if (line == NULL)
    return true;
  if (line->pins > 0 && is_short (line->op) && !PLANTED ("zero-waits-fills"))
    op_end_pinned (a, line);
  return (line->op == NULL || is_short (line->op)) && line->pins == 0 &&
    (PLANTED ("zero-waits-reads") ? line->readers : line->reading) == 0;
}

/* Count the writer before it asks whether its regions are marked.  Otherwise
 * the bits of one page are cleared while the next page is written, forever.
 */
static bool
may_begin (struct array *a, struct op *op)
{
  struct line *line = each_line (a, op, is_idle);

  if (line) {
    list_move (&line->waiters, &op->waiter.link);
    return false;
  }
  op->marked = true;
  a->consistency->begin (a, op_pos (op), op_len (op));
  return true;
}

/* Recovery takes the zeroes from now on: the newest counts. */
static bool
drop_held (struct array *a, struct op *op, struct line *line)
{
  const uint64_t no = line->no;

  if (line->op)
    drop_short (a, line->op);
  line = line_find (a, no);
  return line == NULL || line->op == NULL;
}

/* It is durable: what waits for space in its lines need not be written any
 * more.  False if it waits for some of it that is being tried again.
 */
static bool
is_alone (struct array *a, struct op *op)
{
  struct line *line = each_line (a, op, drop_held);

  if (line)
    list_move (&line->waiters, &op->waiter.link);
  return line == NULL;
}

void
op_zeroes_again (struct array *a)
{
  list_for_each (l, &a->zeroing) {
    struct op *op = list_item (l, struct op, zeroing);

    if (op->phase == OP_WAITING)
      list_move (&a->engine.ready, &op->waiter.link);
  }
}

bool
op_zero_waits (const struct array *a)
{
  list_for_each (l, &a->zeroing)
    if (list_item (l, struct op, zeroing)->phase < OP_LOGGED)
      return true;
  return false;
}

/* ---- writing ------------------------------------------------------------- */

static void
zero_done (struct array *a, struct xfer *x)
{
  struct op *op = x->owner;

  if (x->error)
    seat_fail (a, x->seat, "zero", x->error);
  else
    x->seat->write_gen++;
  if (--op->pending == 0)
    op_go_on (a, op);
}

/* One range on each member; more where the array has grown in between. */
static void
zero_seat (struct array *a, struct op *op, struct seat *s)
{
  const uint64_t end = op_pos (op) + op_len (op);

  for (uint64_t pos = op_pos (op), len; pos < end; pos += len) {
    struct xfer *x = xfer_new (a, s, op->trim ? IO_TRIM : IO_ZERO, zero_done);

    len = layout_data_run (&a->sb.l, pos, end - pos);
    x->off = layout_data_off (&a->sb.l, pos);
    x->len = len;
    x->owner = op;
    x->of_op = true;
    x->may_be_hole = true;
    op->pending++;
    xfer_start (a, x);
  }
}

static void
issue_zeroes (struct array *a, struct op *op)
{
  op->wrote = true;
  op->pending = 1;
  for (unsigned i = 0; i < a->nr_seats; i++)
    if (seat_holds_data (a->seat[i]))
      zero_seat (a, op, a->seat[i]);
  op->pending--;
}

/* ---- the end ------------------------------------------------------------- */

/* The content of the line is now zeroes. */
static bool
drop_line (struct array *a, struct op *op, struct line *line)
{
  list_splice (&op->tickets, &line->tickets);
  for (unsigned role = 0; role < a->g.k; role++)
    if (line->cell[role].c)
      line_drop_cell (a, line, role);
  line_changed (a, line);
  return true;
}

/* Drop the lines only at the end: until then data written there had to stay. */
static void
end_zero (struct array *a, struct op *op)
{
  struct completion *c = op->whole;

  if (op->marked)
    a->consistency->end (a, op_pos (op), op_len (op));
  if (!a->failed)
    each_line (a, op, drop_line);
  else if (op->wrote) {
    a->torn0 = a->torn1 ? MIN (a->torn0, op->line0) : op->line0;
    a->torn1 = MAX (a->torn1, op->line1);
  }
  tickets_end (a, &op->tickets, a->failed ? EIO : 0, ALL_BLOCKS);
  /* A flush from now on is not told of a lack that was before. */
  if (op->trim && !PLANTED ("trim-not-tried"))
    space_try_again (a);
  list_remove (&op->zeroing);
  engine_run_waiters (a, &a->zero_waiters);
  op_free (a, op);
  completion_end (a, c);
}

/* ---- the beginning ------------------------------------------------------- */

static const struct op_type zero_type = {
  .kind = OP_ZERO, .writes = true, .may_begin = may_begin,
  .may_place = is_alone, .write = issue_zeroes, .end = end_zero,
};

bool
op_zero (struct array *a, struct completion *c, uint64_t line0,
         uint64_t line1, bool trim)
{
  struct op *op = op_new (a, &zero_type, NULL);

  if (op == NULL)
    return false;
  op->whole = c;
  op->line0 = line0;
  op->line1 = line1;
  op->trim = trim;
  op->log.zeroes = true;
  op->log.row = line_row (a, line0);
  op->log.nr_rows = (line1 - line0) * a->cell_blocks;
  c->pending++;
  unlocked_close_all (a);
  list_append (&a->zeroing, &op->zeroing);
  op_advance (a, op);
  return true;
}
