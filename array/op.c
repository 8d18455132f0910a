/* gpuraid: one operation on the rows of a line, step by step.
 *
 *   waiting -> planning -> reading -> coding -> [writing -> written] -> done
 *                 ^          |
 *                 +----------+  a read failed or is overdue: plan anew
 *
 * Rects and plans are made in array/op-rects.c, jobs in array/op-code.c,
 * transfers in array/op-io.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array/cache.h"
#include "array/change.h"
#include "array/dirty.h"
#include "array/op-internal.h"
#include "array/rebuild.h"
#include "array/request-internal.h"
#include "array/seat.h"

/* ---- birth and death ------------------------------------------------- */

static void
op_retry (struct array *a, struct waiter *w)
{
  struct op *op = list_item (w, struct op, waiter);

  switch (op->phase) {
  case OP_WAITING:
  case OP_PLANNING: op_plan (a, op); break;
  case OP_WRITTEN: op_end (a, op); break;
  default: break;
  }
}

static struct op *
op_new (struct array *a, enum op_kind kind, struct line *line)
{
  struct op *op;

  /* One credit is kept for write-outs, so that readers always progress
   * behind them, and one for readers, so that a rebuild can't take all.
   */
  if (a->nr_ops + (kind == OP_OUT ? 0 : kind == OP_READ ? 1 : 2) >= a->max_ops)
    return NULL;
  op = a->free_ops;
  if (op)
    a->free_ops = op->next_free;
  else {
    op = malloc (sizeof *op + a->n * sizeof op->role[0]);
    if (op == NULL)
      return NULL;
  }
  memset (op, 0, sizeof *op + a->n * sizeof op->role[0]);
  op->a = a;
  op->kind = kind;
  op->line = line;
  op->waiter.run = op_retry;
  list_init (&op->waiter.link);
  list_init (&op->coding);
  list_init (&op->xfers);
  list_init (&op->tickets);
  list_append (&a->ops, &op->link);
  a->nr_ops++;
  line_hold (a, line);
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
  memset (o, 0, sizeof *o);
}

static void
op_free (struct array *a, struct op *op)
{
  for (unsigned r = 0; r < a->n; r++)
    release_role (a, &op->role[r]);
  list_remove (&op->link);
  list_remove (&op->waiter.link);
  op->next_free = a->free_ops;
  a->free_ops = op;
  a->nr_ops--;
  engine_run_waiters (a, &a->cell_waiters);
}

void
op_free_pool (struct array *a)
{
  for (struct op *op = a->free_ops, *next; op; op = next) {
    next = op->next_free;
    free (op);
  }
  a->free_ops = NULL;
}

/* ---- reading --------------------------------------------------------- */

struct op *
op_read (struct array *a, struct request *r, uint64_t no, uint64_t want,
         uint64_t avoid, unsigned b0, unsigned nr)
{
  struct line *line = line_get (a, no);
  struct op *op;

  if (line == NULL)
    return NULL;
  op = op_new (a, OP_READ, line);
  if (op == NULL) {
    line_settle (a, line);
    return NULL;
  }
  line->readers++;
  op->r = r;
  r->reads++;
  op->want = want;
  op->bad = avoid;
  op->b0 = b0;
  op->nr = nr;
  /* Not at once: more may be wanted. */
  list_move (&a->engine.ready, &op->waiter.link);
  return op;
}

void
op_read_more (struct op *op, uint64_t want, unsigned b0, unsigned nr)
{
  const unsigned end = MAX (op->b0 + op->nr, b0 + nr);

  assert (op->phase == OP_WAITING && op->nr_rects == 0);
  op->want |= want;
  op->b0 = MIN (op->b0, b0);
  op->nr = end - op->b0;
}

int
op_error (const struct op *op)
{
  return op->error;
}

struct cell *
op_content (const struct op *op, unsigned role)
{
  const struct op_role *o = &op->role[role];
  struct cell *old = op_old (op, &op->rect[0], role);

  return op->rect[0].p.make & BIT (role) ? o->made : old;
}

void
op_put (struct array *a, struct op *op)
{
  struct line *line = op->line;

  line->readers--;
  op_free (a, op);
  line_changed (a, line);
}

/* Data that was read or made is worth keeping, as clean content; but not
 * where the line is dirty and many are, for then these cells can't be
 * taken back before it is written out.
 */
static void
adopt (struct array *a, struct op *op)
{
  const struct rect *rect = &op->rect[0];

  FOR_EACH_BIT (r, (op->want | rect->p.in) & LOW_BITS (a->g.k)) {
    struct line_cell *lc = &op->line->cell[r];
    struct cell *c = op_content (op, r);

    if (lc->c || c == NULL || c == op->role[r].have)
      continue;
    if (a->nr_held >= a->max_held)
      break;
    cell_ref (c);
    lc->c = c;
    lc->valid = block_mask (rect->b0, rect->nr);
    op->line->nr_cells++;
    a->nr_held++;
  }
}

/* ---- writing: who and when ------------------------------------------- */

bool
op_may_write (const struct array *a, const struct line *line)
{
  if (line->op || line->pins > 0 || line->readers > 0 || change_busy (a) ||
      a->failed || !a->writable)
    return false;
  list_for_each (l, &a->zeroing) {
    const struct request *r = list_item (l, struct request, link);

    if (line->no >= r->line0 && line->no < r->line1)
      return false;
  }
  return true;
}

/* Take what is dirty from the line: from here on it is frozen. */
static void
freeze (struct array *a, struct op *op)
{
  for (unsigned r = 0; r < a->g.k; r++) {
    struct line_cell *lc = &op->line->cell[r];

    if (lc->dirty == 0)
      continue;
    op->role[r].given = lc->c;
    op->role[r].given_blocks = lc->dirty;
    cell_ref (lc->c);
    lc->c->frozen++;
    lc->dirty = 0;
  }
}

static void
begin_writing (struct array *a, struct op *op)
{
  op->line->op = op;
  op->marked = true;
  dirty_begin (a, line_pos (a, op->line->no), 1);
}

bool
op_out (struct array *a, struct line *line)
{
  struct op *op = op_new (a, OP_OUT, line);

  if (op == NULL)
    return false;
  begin_writing (a, op);
  freeze (a, op);
  list_splice (&op->tickets, &line->tickets);
  line_changed (a, line);
  op_plan (a, op);
  return true;
}

bool
op_fix (struct array *a, struct line *line, uint64_t roles, bool to_targets,
        unsigned b0, unsigned nr,
        void (*done) (struct array *a, void *opaque, int error), void *opaque)
{
  struct op *op = op_new (a, OP_FIX, line);

  if (op == NULL)
    return false;
  op->want = roles;
  op->to_targets = to_targets;
  op->b0 = b0;
  op->nr = nr;
  op->done = done;
  op->opaque = opaque;
  /* What is stored is not to be believed. */
  if (!to_targets && line_is_unsynced (a, line->no))
    op->unsure = roles & ~LOW_BITS (a->g.k);
  if (!to_targets)
    op->bad = roles & ~op->unsure;
  begin_writing (a, op);
  list_move (&a->engine.ready, &op->waiter.link);
  return true;
}

uint16_t
op_given (const struct op *op, unsigned role, struct cell **c)
{
  *c = op->role[role].given;
  return op->role[role].given_blocks;
}

/* ---- planning -------------------------------------------------------- */

static void
op_abort (struct array *a, struct op *op)
{
  if (op->error == 0)
    op->error = EIO;
  if (op->kind == OP_OUT)
    array_has_failed (a, "a write could not be carried out");
  op_end (a, op);
}

/* Where cells are short the line itself has some: clean ones that are no
 * use to this operation.  Lines with readers give nothing to others.
 */
static bool
get_from_line (struct array *a, struct op *op, unsigned nr,
               struct cell **cell)
{
  for (unsigned r = 0; r < a->g.k; r++) {
    const struct line_cell *lc = &op->line->cell[r];

    if (lc->c && lc->dirty == 0 && lc->busy == 0 && lc->c->frozen == 0)
      line_drop_cell (a, op->line, r);
  }
  return cells_get (a, nr, cell);
}

/* Cells for what is to be read and made; all or none. */
static bool
get_cells (struct array *a, struct op *op)
{
  struct cell *cell[2 * MAX_SLOTS];
  uint64_t read = 0, make = 0;
  unsigned nr, i = 0;

  for (unsigned j = 0; j < op->nr_rects; j++) {
    const struct rect *rect = &op->rect[j];

    read |= rect->p.read;
    make |= rect->p.make;
  }
  FOR_EACH_BIT (r, read)
    if (op->role[r].old)
      read &= ~BIT (r);
  FOR_EACH_BIT (r, make)
    if (op->role[r].made)
      make &= ~BIT (r);
  nr = nr_bits (read) + nr_bits (make);
  if (!cells_get (a, nr, cell) && !get_from_line (a, op, nr, cell)) {
    list_move (&a->cell_waiters, &op->waiter.link);
    return false;
  }
  FOR_EACH_BIT (r, read)
    op->role[r].old = cell[i++];
  FOR_EACH_BIT (r, make)
    op->role[r].made = cell[i++];
  return true;
}

void
op_plan (struct array *a, struct op *op)
{
  const bool writes = op->kind != OP_READ;
  const uint64_t pos = line_pos (a, op->line->no);

  op->phase = OP_PLANNING;
  if (!writes && op->line->op) {
    op->phase = OP_WAITING;
    list_move (&op->line->waiters, &op->waiter.link);
    return;
  }
  if (writes && a->failed) {
    op_abort (a, op);
    return;
  }
  if (writes && change_busy (a)) {
    list_move (&a->change_waiters, &op->waiter.link);
    return;
  }
  /* A target is nobody's source: what is copied to it needs no mark. */
  if (writes && !op->to_targets && !dirty_mark (a, pos, 1, &op->waiter))
    return;
  if (op_cut_and_plan (a, op) == -1) {
    op_abort (a, op);
    return;
  }
  if (get_cells (a, op))
    op_issue_reads (a, op);
}

/* ---- after the coder -------------------------------------------------- */

/* Cells that gave errors are stored anew once their content is known. */
static void
repair_bad (struct array *a, const struct op *op)
{
  const uint64_t roles = op->bad & ~op->noread;

  if (roles == 0 || (op->kind == OP_FIX && !op->to_targets))
    return;
  for (unsigned i = 0; i < op->nr_rects; i++)
    repair_add (a, op->line->no, roles & ~op->rect[i].given, op->rect[i].b0,
                op->rect[i].nr);
}

void
op_coded (struct array *a, struct op *op)
{
  if (op->error) {
    op_abort (a, op);
    return;
  }
  if (op->kind == OP_READ)
    op_end (a, op);
  else
    op_issue_writes (a, op);
}

/* ---- the end --------------------------------------------------------- */

static void
end_read (struct array *a, struct op *op)
{
  struct request *r = op->r;

  op->phase = OP_DONE;
  if (op->error == 0) {
    a->counters.decoded_bytes += (uint64_t) nr_bits (op->rect[0].p.make) *
      op->rect[0].nr * BLOCK_LEN;
    adopt (a, op);
    repair_bad (a, op);
  }
  if (--r->reads == 0)
    list_move (&a->engine.ready, &r->waiter.link);
}

/* The array has failed with this data on no member: it stays here, so
 * that nobody reads older data than was read before.
 */
static void
keep_unwritten (struct line_cell *lc, const struct op_role *o)
{
  const uint16_t blocks = o->given_blocks & ~lc->valid & ~lc->busy;

  if (lc->c == o->given)
    lc->dirty |= o->given_blocks;
  else if (lc->c) {
    FOR_EACH_BIT (b, blocks)
      memcpy (lc->c->data + b * BLOCK_LEN, o->given->data + b * BLOCK_LEN,
              BLOCK_LEN);
    lc->valid |= blocks;
    lc->dirty |= blocks;
  }
}

/* The line no longer pays for what it gave away. */
static void
thaw (struct array *a, struct op *op)
{
  struct line *line = op->line;

  for (unsigned r = 0; r < a->g.k; r++) {
    struct op_role *o = &op->role[r];

    if (o->given == NULL)
      continue;
    if (op->error)
      keep_unwritten (&line->cell[r], o);
    if (line->cell[r].c != o->given) {
      line->nr_cells--;
      if (!line->is_clean)
        a->nr_held--;
    }
  }
}

void
op_add_tickets (struct array *a, struct request *r)
{
  list_for_each (l, &a->ops) {
    struct op *op = list_item (l, struct op, link);

    if (op->kind == OP_OUT)
      ticket_add (&op->tickets, r);
  }
}

void
op_end (struct array *a, struct op *op)
{
  struct line *line = op->line;
  void (*done) (struct array *, void *, int) = op->done;
  void *opaque = op->opaque;
  int error;

  if (op->kind == OP_READ) {
    end_read (a, op);
    return;
  }
  /* Nothing is acknowledged while a change is under way. */
  if (op->phase == OP_WRITTEN && change_busy (a) && !a->failed) {
    list_move (&a->change_waiters, &op->waiter.link);
    return;
  }
  if (a->failed && op->error == 0)
    op->error = EIO;
  if (op->error == 0)
    repair_bad (a, op);
  error = op->error;
  if (error && op->kind == OP_OUT && op->phase == OP_WRITTEN)
    line->torn = true;
  op->phase = OP_DONE;
  thaw (a, op);
  tickets_end (a, &op->tickets, op->error);
  if (op->marked)
    dirty_end (a, line_pos (a, line->no), 1);
  line->op = NULL;
  op_free (a, op);
  line_changed (a, line);
  if (done)
    done (a, opaque, error);
}
