/* gpuraid: operations that write: write-outs and fixes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <string.h>

#include "array/cache/cache.h"
#include "array/cache/ticket.h"
#include "array/engine/consistency.h"
#include "array/engine/place.h"
#include "array/engine/state.h"
#include "array/health/lost.h"
#include "array/ops/internal.h"
#include "array/seats/seat.h"
#include "common/plant.h"

/* ---- the end ------------------------------------------------------------- */

/* Keep blocks that could not be written in the cache, so that no reader gets
 * older data than was read before.
 */
static void
keep_unwritten (struct array *a, struct line_cell *lc,
                const struct op_role *o, uint16_t unwritten)
{
  const uint16_t blocks = o->given_blocks & unwritten;

  if (blocks == 0)
    return;
  if (lc->c == NULL) {
    lc->c = o->given;
    cell_ref (a, lc->c);
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
    keep_unwritten (a, &line->cell[r], o, unwritten);
    if (line->cell[r].c != o->given) {
      line->nr_cells--;
      if (!line->is_clean)
        a->nr_held--;
    }
  }
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
  if (op->error && op->error != ECANCELED && op->type->kind == OP_OUT &&
      op->wrote)
    line->torn = true;
  thaw (a, op);
  if (op->type->kind == OP_OUT && op->error == 0)
    note_stuck (a, line, fixed.lost != 0);
  tickets_end (a, &op->tickets, op->error ? op->error : EIO,
               op->error ? ALL_BLOCKS : fixed.lost);
  if (op->marked)
    a->consistency->end (a, op_pos (op), op_len (op));
  line->op = NULL;
  op_free (a, op);
  line_changed (a, line);
  if (done)
    done (a, &fixed);
}

void
op_take_back (struct array *a, struct op *op)
{
  struct line *line = op->line;

  list_remove (&op->log.link);
  op->error = ECANCELED;        /* none of it was written */
  line->want_out |= !list_empty (&op->tickets);
  list_splice (&line->tickets, &op->tickets);
  end_write (a, op);
}

/* ---- write-outs ---------------------------------------------------------- */

static const struct op_type out_type = {
  .kind = OP_OUT, .writes = true, .plan = op_plan, .write = op_write_rects,
  .end = end_write,
};

bool
op_may_write (const struct array *a, const struct line *line)
{
  return line->op == NULL && line->pins == 0 && line->readers == 0 &&
    array_may_write (a) &&
    (!op_zeroes (a, line->no, line->no + 1) || PLANTED ("zero-overlapped"));
}

/* Take the dirty blocks from the line, and freeze them. */
static void
freeze (struct array *a, struct op *op)
{
  for (unsigned r = 0; r < a->g.k; r++) {
    struct line_cell *lc = &op->line->cell[r];

    if (lc->dirty == 0)
      continue;
    op->role[r].given = lc->c;
    op->role[r].given_blocks = lc->dirty;
    lc->out = lc->c;
    lc->out_blocks = lc->dirty;
    cell_ref (a, lc->c);
    lc->c->frozen++;
    lc->dirty = 0;
  }
}

static void
begin_writing (struct array *a, struct op *op)
{
  op->line->op = op;
  op->marked = true;
  a->consistency->begin (a, op_pos (op), op_len (op));
}

bool
op_out (struct array *a, struct line *line)
{
  struct op *op = op_new (a, &out_type, line);

  if (op == NULL)
    return false;
  op->since = line->out_since;
  stage_end (a, &a->stages.asked, &op->since);
  begin_writing (a, op);
  freeze (a, op);
  list_splice (&op->tickets, &line->tickets);
  line_changed (a, line);
  op_advance (a, op);
  return true;
}

/* ---- fixes --------------------------------------------------------------- */

static const struct op_type fix_type = {
  .kind = OP_FIX, .writes = true, .plan = op_plan, .look = op_find_zeroes,
  .write = op_write_rects, .end = end_write,
};

bool
op_replay (struct array *a, struct line *line, uint16_t blocks,
           void (*done) (struct array *a, const struct fixed *f), void *opaque)
{
  struct op *op = op_new (a, &fix_type, line);

  if (op == NULL)
    return false;
  op->replay = blocks;
  op->done = done;
  op->opaque = opaque;
  begin_writing (a, op);
  list_move (&a->engine.ready, &op->waiter.link);
  return true;
}

/* A resync makes the entries of the checksum table too. */
bool
op_resync (struct array *a, struct line *line,
           void (*done) (struct array *a, const struct fixed *f),
           void *opaque)
{
  struct op *op = op_new (a, &fix_type, line);
  uint64_t noread, nowrite;

  if (op == NULL)
    return false;
  line_masks (a, line->no, &noread, &nowrite);
  op->want = op->unsure = line_doubtful (a, line->no, noread);
  op->anew = a->sums != NULL;
  op->nr = a->cell_blocks;
  op->done = done;
  op->opaque = opaque;
  begin_writing (a, op);
  list_move (&a->engine.ready, &op->waiter.link);
  return true;
}

/* With journal and checksums a repair is logged like a write, with the same
 * content: some data and all parity, so that no m members take all its records
 * with them.  Where all data is on targets that have the row, one of these gets
 * the new generation: else parity would have one that no data has.
 */
static uint64_t
logged_with (const struct array *a, const struct line *line, uint64_t roles)
{
  const uint64_t parity = LOW_BITS (a->n) & ~LOW_BITS (a->g.k);
  const uint64_t data = LOW_BITS (line_nr_data (a, line->no));
  uint64_t noread, nowrite, more = parity, with;

  if (a->sums == NULL || a->mark_open)
    return 0;
  line_masks (a, line->no, &noread, &nowrite);
  with = data & ~noread;
  if (with == 0 && !PLANTED ("repair-parity-alone"))
    with = data & ~nowrite;
  if ((roles & data) == 0)
    more |= with & -with;
  return more;
}

bool
op_fix (struct array *a, struct line *line, uint64_t roles, bool to_targets,
        unsigned b0, unsigned nr,
        void (*done) (struct array *a, const struct fixed *f), void *opaque)
{
  struct op *op = op_new (a, &fix_type, line);

  if (op == NULL)
    return false;
  op->want = roles | (to_targets ? 0 : logged_with (a, line, roles));
  op->to_targets = to_targets;
  op->b0 = b0;
  op->nr = nr;
  op->done = done;
  op->opaque = opaque;
  /* The stored parity can't be trusted. */
  if (!to_targets && line_is_unsynced (a, line->no))
    op->unsure = roles & ~LOW_BITS (a->g.k);
  if (!to_targets)
    op->avoid = roles & ~op->unsure;
  begin_writing (a, op);
  list_move (&a->engine.ready, &op->waiter.link);
  return true;
}
