/* gpuraid: cut an operation into rects and plan each of them.
 *
 * Decides what is read, made and written; leaves doing it to array/op.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/cache.h"
#include "array/op-internal.h"
#include "array/seat.h"

/* The data roles that have new content for a block. */
static uint64_t
given_at (const struct array *a, const struct op *op, unsigned block)
{
  uint64_t given = 0;

  for (unsigned r = 0; r < a->g.k; r++)
    if (op->role[r].given_blocks >> block & 1)
      given |= BIT (r);
  return given;
}

static void
cut (struct array *a, struct op *op)
{
  unsigned b, end;

  op->nr_rects = 0;
  if (op->kind != OP_OUT) {
    op->rect[op->nr_rects++] = (struct rect) { .b0 = op->b0, .nr = op->nr };
    return;
  }
  for (b = 0; b < a->cell_blocks; b = end) {
    const uint64_t given = given_at (a, op, b);

    for (end = b + 1; end < a->cell_blocks; end++)
      if (given_at (a, op, end) != given)
        break;
    if (given)
      op->rect[op->nr_rects++] =
        (struct rect) { .b0 = b, .nr = end - b, .given = given };
  }
}

/* Old content that the cache has, or that was read before planning anew. */
static uint64_t
find_old (struct array *a, struct op *op, const struct rect *rect)
{
  const uint16_t mask = block_mask (rect->b0, rect->nr);
  uint64_t have = 0;

  for (unsigned r = 0; r < a->n; r++) {
    struct op_role *o = &op->role[r];
    struct line_cell *lc;

    if ((o->old_blocks & mask) == mask || (o->have_blocks & mask) == mask) {
      have |= BIT (r);
      continue;
    }
    if (r >= a->g.k || rect->given & BIT (r))
      continue;
    lc = &op->line->cell[r];
    /* A cell with dirty or busy blocks may be written to any time. */
    if (lc->c == NULL || lc->dirty || lc->busy || (lc->valid & mask) != mask ||
        (o->have && o->have != lc->c))
      continue;
    if (o->have == NULL) {
      o->have = lc->c;
      cell_ref (lc->c);
      lc->c->frozen++;
    }
    o->have_blocks |= mask;
    have |= BIT (r);
  }
  return have;
}

/* Some data can't be read while parity is doubtful.  A row that was not
 * being written at the crash has good parity, so use it, but no more of
 * it than it takes: all else is made to agree with that.
 */
static int
plan_doubtful (struct op *op, struct plan_in *in, struct plan *p)
{
  uint64_t left = op->doubtful & ~op->bad & ~op->noread;

  if (op->kind == OP_FIX && left)
    in->rewrite = op->want |= op->bad & LOW_BITS (in->k);
  for (; left; left &= left - 1) {
    in->noread &= ~(left & -left);
    if (plan (in, p) == 0)
      return 0;
  }
  return -1;
}

/* A reader that only wants what it has needs no plan for the rest. */
static int
plan_rect (struct array *a, struct op *op, struct rect *rect)
{
  struct plan_in in = {
    .k = a->g.k, .m = a->g.m,
    .noread = op->noread | op->bad | op->slow | op->doubtful,
    .nowrite = op->nowrite,
    .given = rect->given,
    .want = op->kind == OP_READ ? op->want : 0,
    .rewrite = op->kind == OP_FIX ? op->want : 0,
  };

  in.have = rect->have = find_old (a, op, rect);
  if (plan (&in, &rect->p) == 0)
    return 0;
  if (op->slow) {
    /* Only the slow ones can help: wait for them. */
    op->slow = 0;
    in.noread = op->noread | op->bad | op->doubtful;
    if (plan (&in, &rect->p) == 0)
      return 0;
  }
  return plan_doubtful (op, &in, &rect->p);
}

/* Roles on members that are overdue with something: go round them, while
 * enough others remain.
 */
static uint64_t
suspects (const struct array *a, const struct op *op)
{
  uint64_t roles = 0;

  for (unsigned slot = 0; slot < a->n; slot++)
    if (a->at[slot][0] && a->at[slot][0]->suspect)
      roles |= BIT (layout_role (&a->g, line_stripe (a, op->line->no), slot));
  return nr_bits (roles | op->noread | op->bad) <= a->g.m ? roles : 0;
}

/* The array failed while these rows were being written: they are no code
 * words any more.
 */
static bool
is_torn (const struct array *a, const struct line *line)
{
  return line->torn || (line->no >= a->torn0 && line->no < a->torn1);
}

int
op_cut_and_plan (struct array *a, struct op *op)
{
  line_masks (a, op->line->no, &op->noread, &op->nowrite);
  if (op->kind != OP_FIX)
    op->slow |= suspects (a, op);
  op->doubtful = op->unsure | line_doubtful (a, op->line->no, op->noread);
  if (op->kind == OP_FIX)
    op->nowrite &= ~op->want;
  cut (a, op);
  for (unsigned i = 0; i < op->nr_rects; i++)
    if (plan_rect (a, op, &op->rect[i]) == -1 ||
        (is_torn (a, op->line) && op->rect[i].p.make))
      return -1;
  return 0;
}

struct cell *
op_old (const struct op *op, const struct rect *rect, unsigned role)
{
  const struct op_role *o = &op->role[role];
  const uint16_t mask = block_mask (rect->b0, rect->nr);

  return (o->old_blocks & mask) == mask ? o->old : o->have;
}
