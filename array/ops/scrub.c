/* gpuraid: an operation that looks whether the rows of a line are right.
 *
 * It reads all that can be read, has the coder make all but k of that from
 * the others, and compares.  Where blocks have their checksums but do not fit
 * together, each in turn is left out: if the others fit without exactly one,
 * that one is wrong, if it is older.  This needs two blocks more than k, or
 * what is left out proves nothing.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "array/cache/cache.h"
#include "array/engine/place.h"
#include "array/health/lost.h"
#include "array/ops/internal.h"
#include "array/replay/recovery.h"
#include "array/seats/seat.h"
#include "common/plant.h"

_Static_assert (SCRUB_MAX_ROWS == OP_MAX_RECTS, "array/ops/ops.h");

static uint32_t
generation_of (const struct array *a, const struct op *op, unsigned role,
               unsigned b)
{
  const uint64_t no = op->line->no;

  return sums_get (a, &op->pin, line_slot (a, no, role),
                   line_row (a, no) + b).generation;
}

/* ---- what to read, and what to make from what --------------------------- */

/* The roles of a row that are compared. */
static uint64_t
look_at_row (const struct array *a, struct op *op, unsigned b)
{
  const uint16_t block = block_mask (b, 1);
  const uint64_t there = LOW_BITS (a->n) & ~(op->noread | op->slow);
  const uint64_t bad = there &
    (op_bad_roles (a, op, block) | op->lost_roles[b] |
     lost_roles (a, op->line->no, block));
  struct scrubbed *s = op->scrubbed;

  s->bad[b] = bad;
  s->good[b] = there & ~bad;
  if (nr_bits (s->good[b]) < a->g.k)
    s->lost |= block;
  else
    s->lost &= ~block;
  return s->good[b];
}

/* The roles of which some must be made from the others: with a role left out,
 * as long as that proves something.
 */
static uint64_t
compared (const struct array *a, struct op *op, unsigned b)
{
  const struct scrubbed *s = op->scrubbed;
  const uint64_t left_out = BIT (s->left_out);

  if (!s->trying)
    return look_at_row (a, op, b);
  if ((s->misfit >> b & 1) == 0 || (s->good[b] & left_out) == 0 ||
      nr_bits (s->good[b]) < a->g.k + 2)
    return 0;
  return s->good[b] & ~left_out;
}

static bool
is_all_zero (const struct op *op, unsigned b, uint64_t roles)
{
  return (roles & ~op->zero_roles[b]) == 0;
}

static void
plan_rect (const struct array *a, const struct op *op, struct rect *rect,
           uint64_t roles)
{
  uint64_t in = 0, left = roles;

  for (unsigned i = 0; i < a->g.k && left; i++) {
    in |= left & -left;
    left &= left - 1;
  }
  rect->p = (struct plan) { .read = roles };
  if (left == 0 || is_all_zero (op, rect->b0, roles))
    return;
  rect->p.in = in;
  rect->p.make = left;
}

/* Which of several blocks could not be read? */
static void
read_singly (const struct array *a, struct op *op)
{
  for (unsigned r = 0; r < a->n; r++)
    op->role[r].bad_blocks = 0;
  op->coarse = false;
  op->fine = true;
  op->tries = 1;                /* these errors are counted */
}

static bool
plan_scrub (struct array *a, struct op *op)
{
  uint64_t roles, next;
  unsigned end;

  line_masks (a, op->line->no, &op->noread, &op->nowrite);
  op->noread |= line_doubtful (a, op->line->no, op->noread);
  if (op->coarse && !op->fine)
    read_singly (a, op);
  op->nr_rects = 0;
  roles = compared (a, op, 0);
  for (unsigned b = 0; b < a->cell_blocks; b = end, roles = next) {
    next = 0;
    for (end = b + 1; end < a->cell_blocks; end++) {
      next = compared (a, op, end);
      if (op->fine || next != roles ||
          op->zero_roles[end] != op->zero_roles[b])
        break;
    }
    if (roles == 0 || is_all_zero (op, b, roles))
      continue;
    op->rect[op->nr_rects] = (struct rect) { .b0 = b, .nr = end - b };
    plan_rect (a, op, &op->rect[op->nr_rects++], roles);
  }
  return true;
}

/* ---- comparing ---------------------------------------------------------- */

static bool
fits (const struct op *op, const struct rect *rect, unsigned b)
{
  FOR_EACH_BIT (r, rect->p.make)
    if (memcmp (op_old (op, rect, r)->data + b * BLOCK_LEN,
                op->role[r].made->data + b * BLOCK_LEN, BLOCK_LEN))
      return false;
  return true;
}

static void
compare_call (struct call *c)
{
  struct op *op = list_item (c, struct op, check_call);
  struct scrubbed *s = op->scrubbed;

  s->fits = 0;
  for (unsigned i = 0; i < op->nr_rects; i++) {
    const struct rect *rect = &op->rect[i];

    for (unsigned b = rect->b0; b < rect->b0 + rect->nr; b++)
      if (fits (op, rect, b))
        s->fits |= block_mask (b, 1);
  }
  engine_post (op->a, &op->check_news);
}

static void
look (struct array *a, struct op *op)
{
  op_call (a, op, compare_call);
}

/* ---- judging ------------------------------------------------------------ */

static uint16_t
rows_of (const struct op *op)
{
  uint16_t rows = 0;

  for (unsigned i = 0; i < op->nr_rects; i++)
    rows |= block_mask (op->rect[i].b0, op->rect[i].nr);
  return rows;
}

/* In a good row all parity has one generation, which some data has too; unless
 * that was trimmed or is not there.  Where all data is zeroes, parity may be
 * zeroes too.
 */
static bool
generations_fit (const struct array *a, const struct op *op, unsigned b)
{
  const uint64_t data = LOW_BITS (a->g.k), good = op->scrubbed->good[b];
  const uint64_t zero = op->zero_roles[b] & good;
  uint32_t generation = 0;
  bool found = (data & ~good) != 0 || (data & zero) != 0;

  FOR_EACH_BIT (r, good & ~data & ~zero) {
    const uint32_t g = generation_of (a, op, r, b);

    if (generation && g != generation)
      return false;
    generation = g;
  }
  if ((data & ~zero & good) && (zero & ~data))
    return false;
  if (generation == 0)
    return true;
  FOR_EACH_BIT (r, good & data)
    found |= generation_of (a, op, r, b) == generation;
  return found;
}

/* What fits together stays as it is: its parity is to be stored with the
 * generation of some data.
 */
static void
judge_generations (const struct array *a, struct op *op)
{
  struct scrubbed *s = op->scrubbed;

  for (unsigned b = 0; a->sums && !op->no_sums && b < a->cell_blocks; b++)
    if (!((s->lost | s->misfit) >> b & 1) && !generations_fit (a, op, b) &&
        !PLANTED ("generation-ignored"))
      s->stale[b] = s->good[b] & ~LOW_BITS (a->g.k);
}

/* What missed a write is older than the parity, or than the other parity.
 * Otherwise the parity may be wrong: take a block that missed a write, and then
 * was written with parity made from its old content.
 */
static bool
may_be_old (const struct array *a, const struct op *op, unsigned role,
            unsigned b)
{
  const uint64_t parity =
    op->scrubbed->good[b] & ~LOW_BITS (a->g.k) & ~BIT (role);

  FOR_EACH_BIT (r, parity)
    if (generation_of (a, op, r, b) == generation_of (a, op, role, b))
      return false;
  return true;
}

static void
judge_trial (const struct array *a, struct op *op)
{
  struct scrubbed *s = op->scrubbed;

  FOR_EACH_BIT (b, s->fits & rows_of (op))
    if (may_be_old (a, op, s->left_out, b) || PLANTED ("scrub-guesses"))
      s->suspects[b] |= BIT (s->left_out);
}

/* A row fits without exactly one role. */
static void
end_trials (struct op *op)
{
  struct scrubbed *s = op->scrubbed;

  FOR_EACH_BIT (b, s->misfit) {
    if (nr_bits (s->suspects[b]) != 1)
      continue;
    s->guilty[b] = s->suspects[b];
    s->misfit &= ~block_mask (b, 1);
  }
}

static bool
judge (struct array *a, struct op *op)
{
  struct scrubbed *s = op->scrubbed;

  if (!s->trying) {
    s->misfit = rows_of (op) & ~s->fits & ~s->lost;
    judge_generations (a, op);
    if (s->misfit == 0 || a->sums == NULL)
      return true;
    s->trying = true;
    s->left_out = 0;
    return false;
  }
  judge_trial (a, op);
  if (++s->left_out < a->n)
    return false;
  end_trials (op);
  return true;
}

/* ---- beginning and end -------------------------------------------------- */

/* The line keeps its reader: nothing may write to the rows before they are
 * stored anew.
 */
static void
end_scrub (struct array *a, struct op *op)
{
  struct scrubbed *s = op->scrubbed;

  s->error = op->error;
  op_free (a, op);
  s->done (a, s);
}

static bool
may_begin (struct array *a, struct op *op)
{
  return op_rows_are_free (a, op) && op_begin_reading (a, op);
}

static const struct op_type scrub_type = {
  .kind = OP_SCRUB, .may_begin = may_begin, .plan = plan_scrub,
  .look = look, .judge = judge, .end = end_scrub,
};

bool
op_scrub (struct array *a, struct line *line, struct scrubbed *s)
{
  struct op *op = op_new (a, &scrub_type, line);
  const struct scrubbed clear = {
    .done = s->done, .opaque = s->opaque, .line = line, .no = line->no,
  };

  if (op == NULL)
    return false;
  *s = clear;
  line->readers++;
  op->scrubbed = s;
  op->nr = a->cell_blocks;
  list_move (&a->engine.ready, &op->waiter.link);
  return true;
}

void
op_scrub_put (struct array *a, struct scrubbed *s)
{
  struct line *line = s->line;

  s->line = NULL;
  line->readers--;
  line->reading--;
  line_changed (a, line);
}

/* What was read of wrong blocks may be in the cache. */
static void
forget_blocks (struct array *a, struct line *line, uint64_t roles,
               uint16_t blocks)
{
  FOR_EACH_BIT (r, roles & LOW_BITS (a->g.k)) {
    struct line_cell *lc = &line->cell[r];

    if (lc->c == NULL || PLANTED ("scrub-keeps-cells"))
      continue;
    if (lc->dirty || lc->busy)
      lc->valid &= ~blocks | lc->dirty;
    else
      line_drop_cell (a, line, r);
  }
}

bool
op_scrub_fix (struct array *a, struct scrubbed *s, uint64_t roles,
              bool proven, unsigned b0, unsigned nr,
              void (*done) (struct array *a, const struct fixed *f))
{
  struct line *line = s->line;

  line->readers--;
  if (proven && op_may_write (a, line))
    forget_blocks (a, line, roles, block_mask (b0, nr));
  if (!op_may_write (a, line) ||
      !op_fix (a, line, roles, false, b0, nr, done, s->opaque)) {
    line->readers++;
    return false;
  }
  line->reading--;
  line->op->proven = proven;
  s->line = NULL;
  return true;
}
