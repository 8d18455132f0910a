/* gpuraid: write for a client.
 *
 * A batch of a write has three steps: under the array lock, cells are
 * reserved and pinned; in the client's thread the payload is copied, once;
 * under the array lock the blocks become dirty.  Partial blocks at the ends
 * are filled with old content first.
 *
 * Zeroes that are not whole stripes are written like this too.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array/cache/cache.h"
#include "array/cache/ticket.h"
#include "array/engine/consistency.h"
#include "array/engine/place.h"
#include "array/engine/state.h"
#include "array/ops/ops.h"
#include "array/request/internal.h"
#include "common/plant.h"

/* The blocks that a step touches. */
static uint16_t
step_blocks (const struct step *s)
{
  const unsigned b0 = s->cell_off / BLOCK_LEN;

  return block_mask (b0, (s->cell_off + s->len - 1) / BLOCK_LEN - b0 + 1);
}

/* ---- reserve ------------------------------------------------------------ */

static bool
holds_pin (const struct request *r, const struct line *line)
{
  for (unsigned i = 0; i < r->nr_steps; i++)
    if (r->step[i].line == line)
      return true;
  return false;
}

/* Get the old content of a partly written block.  Not by a pread in the
 * client's thread: if that hangs, the line stays pinned, and all flushes
 * wait.  Nor while it holds other lines: it may wait for space for long, and
 * zeroing of those does not end that (op_read_pinned).
 */
static bool
add_fill (struct array *a, struct request *r, struct step *s, unsigned b,
          struct list **wait)
{
  struct read_from f = {
    .no = s->no, .role = s->role, .pinned = true, .all_ops = true,
    .cell_off = b * BLOCK_LEN, .len = BLOCK_LEN,
    .buf = s->cell->data + (size_t) b * BLOCK_LEN,
  };
  uint32_t done;

  if (r->nr_steps > 0)
    return false;
  if (read_steps (a, r, &f, &r->fill[r->nr_fills], 1, &done, wait) == 0)
    return false;
  r->nr_fills++;
  return true;
}

static bool
add_fills (struct array *a, struct request *r, struct step *s,
           uint16_t missing, struct list **wait)
{
  const unsigned first = s->cell_off / BLOCK_LEN;
  const uint32_t end = s->cell_off + s->len;
  const unsigned last = (end - 1) / BLOCK_LEN;
  const bool head = !is_aligned (s->cell_off, BLOCK_LEN);
  const bool tail = !is_aligned (end, BLOCK_LEN);
  const unsigned before = r->nr_fills;

  if (missing >> first & 1 && (head || (tail && first == last)) &&
      !add_fill (a, r, s, first, wait))
    return false;
  if (missing >> last & 1 && tail && last != first &&
      !add_fill (a, r, s, last, wait)) {
    /* The other fill may have begun an operation: continue without this one,
     * and leave the tail to a later batch.
     */
    if (r->nr_fills > before) {
      s->len = last * BLOCK_LEN - s->cell_off;
      return true;
    }
    return false;
  }
  return true;
}

/* Until a recovery is over it may be decided again, and then rows that moved
 * are back at their old places.
 */
static bool
has_place (const struct array *a)
{
  return !a->g.widening || a->consistency->is_ready (a) ||
    PLANTED ("widen-write-early");
}

/* Reserve room for one step.  If false, wait on *wait. */
static bool
reserve (struct array *a, struct request *r, struct step *s,
         struct list **wait)
{
  struct line *line;
  struct line_cell *lc;
  uint16_t missing;

  if (!change_is_over (a, NULL)) {
    *wait = &a->change_waiters;
    return false;
  }
  if (op_zeroes (a, s->no, s->no + 1) || !has_place (a)) {
    *wait = &a->zero_waiters;
    return false;
  }
  line = line_get (a, s->no);
  if (line == NULL) {
    *wait = &a->cell_waiters;
    return false;
  }
  lc = &line->cell[s->role];
  /* A flush that waits for this line must not wait forever. */
  if ((line->want_out && line->op == NULL && !holds_pin (r, line)) ||
      lc->busy & step_blocks (s)) {
    *wait = &line->waiters;
    return false;
  }
  if (!line_reserve_cell (a, line, s->role)) {
    *wait = &a->cell_waiters;
    return false;
  }
  s->line = line;
  s->cell = lc->c;
  missing = step_blocks (s) & ~lc->valid;
  line->pins++;
  line_hold (a, line);
  if (missing && !add_fills (a, r, s, missing, wait)) {
    line->pins--;
    line_settle (a, line);
    return false;
  }
  missing = step_blocks (s) & ~lc->valid;
  lc->busy |= missing;
  /* Blocks about to be overwritten no longer hold old content. */
  lc->dirty |= step_blocks (s) & lc->valid;
  return true;
}

void
write_start (struct array *a, struct request *r, uint64_t limit)
{
  struct list *wait = NULL;
  uint64_t pos = r->pos;

  if (a->failed) {
    request_fail (r, EIO);
    return;
  }
  r->nr_steps = r->nr_fills = r->nr_sums = 0;
  r->has_preads = r->has_ops = false;
  while (pos < limit && r->nr_steps < limits.request_steps &&
         r->nr_fills == 0) {
    struct step *s = &r->step[r->nr_steps];
    const struct line_piece p = line_piece (a, r->off + pos, limit - pos);

    *s = (struct step) {
      .from = STEP_DONE, .no = p.no, .role = p.role,
      .cell_off = p.cell_off, .len = p.len,
      .buf = r->buf ? r->buf + pos : NULL,
    };
    if (bytes_move (a, r->off + pos, p.len)) {
      wait = &a->moving.waiters;
      break;
    }
    if (!reserve (a, r, s, &wait))
      break;
    r->nr_steps++;
    pos += s->len;
    if (s->len < p.len)
      break;
  }
  if (r->nr_steps == 0) {
    request_wait (r, wait);
    return;
  }
  r->batch_end = pos;
  r->phase = R_COPY;
}

/* ---- copy ---------------------------------------------------------------- */

bool
write_look (struct array *a, struct request *r)
{
  for (unsigned i = 0; i < r->nr_fills; i++) {
    struct step *f = &r->fill[i];

    if (f->from != STEP_SEAT || f->error == 0)
      continue;
    f->op = op_read (a, &r->reads, f->no, BIT (f->role), BIT (f->role),
                     f->cell_off / BLOCK_LEN, 1);
    if (f->op == NULL) {
      request_wait (r, &a->cell_waiters);
      return false;
    }
    seat_step_failed (a, f);
    f->from = STEP_OP;
  }
  return r->reads.pending == 0;
}

void
write_payload (struct request *r)
{
  for (unsigned i = 0; i < r->nr_steps; i++) {
    const struct step *s = &r->step[i];
    uint8_t *p = s->cell->data + s->cell_off;

    if (s->buf)
      memcpy (p, s->buf, s->len);
    else
      memset (p, 0, s->len);
  }
}

/* ---- commit -------------------------------------------------------------- */

static bool
is_full (const struct array *a, const struct line *line)
{
  const uint16_t all = block_mask (0, a->cell_blocks);

  for (unsigned r = 0; r < line_nr_data (a, line->no); r++)
    if (line->cell[r].dirty != all)
      return false;
  return true;
}

/* unfilled: partly written blocks whose old content could not be read. */
static void
commit_step (struct array *a, struct request *r, const struct step *s,
             uint16_t unfilled, int error)
{
  struct line *line = s->line;
  struct line_cell *lc = &line->cell[s->role];
  const uint16_t blocks = step_blocks (s) & ~unfilled;

  lc->busy &= ~step_blocks (s);
  lc->outdated &= ~step_blocks (s);
  lc->valid |= blocks;
  lc->dirty |= blocks;
  if (error == 0 && (r->flags & ARRAY_FUA || a->writethrough)) {
    ticket_add (a, &line->tickets, &r->stable, blocks, r->flags & ARRAY_WAIT);
    line->want_out = true;
  }
  if (lc->valid == 0 && lc->busy == 0)
    line_drop_cell (a, line, s->role);
  line->pins--;
  if (line->want_out || is_full (a, line))
    line_out_now (a, line);
  line_changed (a, line);
}

/* Blocks of a step whose fill failed. */
static uint16_t
unfilled_blocks (const struct request *r, const struct step *s)
{
  uint16_t blocks = 0;

  for (unsigned i = 0; i < r->nr_fills; i++) {
    const struct step *f = &r->fill[i];

    if (f->error && f->no == s->no && f->role == s->role)
      blocks |= block_mask (f->cell_off / BLOCK_LEN, 1);
  }
  return blocks;
}

/* Commit what is possible, also if the write fails: the cells may hold the
 * only copy of earlier writes to these blocks.  Where zeroing goes first, the
 * batch begins anew.
 */
void
write_commit (struct array *a, struct request *r)
{
  int error = r->nr_fills ? steps_put (a, r->fill, r->nr_fills) : 0;

  /* It will never be written out. */
  if (a->failed)
    error = EIO;
  for (unsigned i = 0; i < r->nr_steps; i++)
    commit_step (a, r, &r->step[i], unfilled_blocks (r, &r->step[i]), error);
  if (error == ECANCELED)
    r->batch_end = r->pos;
  else if (error)
    r->error = error;
}
