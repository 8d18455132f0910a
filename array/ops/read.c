/* gpuraid: operations that read.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "array/cache/cache.h"
#include "array/engine/place.h"
#include "array/ops/internal.h"
#include "array/replay/recovery.h"
#include "array/seats/slow.h"
#include "common/plant.h"

/* The cell with a role's content over a rect, or NULL if that is lost. */
static struct cell *
content (const struct op *op, const struct rect *rect, unsigned role)
{
  if (op->error || rect->lost & BIT (role))
    return NULL;
  return rect->p.make & BIT (role) ? op->role[role].made :
    op_old (op, rect, role);
}

/* Keep data that was read or made, as clean content.  Exceptions: when the
 * line is dirty and many cells are held, as these could not be taken back
 * before it is written out; and when reading had errors, as the data may be
 * in several cells.
 */
static void
cache_read_cells (struct array *a, struct op *op)
{
  const struct rect *rect = &op->rect[0];

  if (op->nr_rects != 1 || rect->lost || recover_has_line (a, op->line->no))
    return;
  FOR_EACH_BIT (r, (op->want | rect->p.in) & LOW_BITS (a->g.k)) {
    struct line_cell *lc = &op->line->cell[r];
    struct cell *c = content (op, rect, r);

    if (lc->c || c == NULL || c == op->role[r].have)
      continue;
    if (a->nr_held >= a->max_held)
      break;
    cell_ref (a, c);
    lc->c = c;
    lc->valid = block_mask (rect->b0, rect->nr);
    op->line->nr_cells++;
    a->nr_held++;
  }
}

static void
note_avoided (struct array *a, const struct op *op)
{
  uint64_t made = 0;

  for (unsigned i = 0; i < op->nr_rects; i++)
    made |= op->rect[i].p.make;
  FOR_EACH_BIT (role, made & op->want & op->avoided)
    slow_avoided (a, op->line->no, role, op->b0, op->nr);
}

static void
end_read (struct array *a, struct op *op)
{
  if (op->error == 0) {
    note_avoided (a, op);
    for (unsigned i = 0; i < op->nr_rects; i++)
      a->counters.decoded_bytes += (uint64_t) nr_bits (op->rect[i].p.make) *
        op->rect[i].nr * BLOCK_LEN;
    op_note_rows (a, op);
    cache_read_cells (a, op);
    op_repair_bad (a, op);
  }
  op->line->reading--;
  line_changed (a, op->line);
  completion_end (a, op->whole);
}

/* ---- interface ----------------------------------------------------------- */

/* What a recovery writes in place is read from the rings until all of it is
 * there, and it may wait for space for long.
 */
static bool
may_begin (struct array *a, struct op *op)
{
  const struct op *writing = op->line->op;

  return ((writing && writing->replay && !PLANTED ("replay-unread")) ||
          op_rows_are_free (a, op)) && op_begin_reading (a, op);
}

static const struct op_type read_type = {
  .kind = OP_READ, .may_begin = may_begin, .plan = op_plan, .end = end_read,
};

struct op *
op_read (struct array *a, struct completion *c, uint64_t no,
         uint64_t want, uint64_t avoid, unsigned b0, unsigned nr)
{
  struct line *line = line_get (a, no);
  struct op *op;

  if (line == NULL)
    return NULL;
  op = op_new (a, &read_type, line);
  if (op == NULL) {
    line_settle (a, line);
    return NULL;
  }
  line->readers++;
  op->whole = c;
  c->pending++;
  op->want = want;
  FOR_EACH_BIT (role, avoid)
    op->role[role].bad_blocks = block_mask (b0, nr);
  op->coarse = avoid && nr > 1;
  op->b0 = b0;
  op->nr = nr;
  /* Not at once: more may be wanted. */
  list_move (&a->engine.ready, &op->waiter.link);
  return op;
}

void
op_read_undecided (struct op *op)
{
  op->undecided = true;
}

void
op_read_pinned (struct op *op)
{
  op->pinned = true;
}

void
op_end_pinned (struct array *a, struct line *line)
{
  list_for_each (l, &a->ops) {
    struct op *op = list_item (l, struct op, link);

    if (!op->pinned || op->line != line || op->phase != OP_WAITING)
      continue;
    list_remove (&op->waiter.link);
    op->error = ECANCELED;
    op->phase = OP_DONE;
    completion_end (a, op->whole);
  }
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
op_copy (const struct op *op, unsigned role, uint32_t cell_off, uint32_t len,
         uint8_t *buf)
{
  for (unsigned i = 0; i < op->nr_rects && op->error == 0; i++) {
    const struct rect *rect = &op->rect[i];
    const uint32_t start = MAX (rect->b0 * BLOCK_LEN, cell_off);
    const uint32_t end = MIN ((rect->b0 + rect->nr) * BLOCK_LEN,
                              cell_off + len);
    const struct cell *c;

    if (start >= end)
      continue;
    c = content (op, rect, role);
    if (c == NULL)
      return EIO;
    memcpy (buf + (start - cell_off), c->data + start, end - start);
  }
  return op->error;
}

void
op_put (struct array *a, struct op *op)
{
  struct line *line = op->line;

  line->readers--;
  op_free (a, op);
  line_changed (a, line);
}
