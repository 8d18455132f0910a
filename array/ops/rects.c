/* gpuraid: divide an operation into rects, plan each of them, and get their
 * cells.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/cache/cache.h"
#include "array/engine/place.h"
#include "array/health/lost.h"
#include "array/ops/internal.h"
#include "array/replay/recovery.h"
#include "array/seats/seat.h"
#include "array/seats/slow.h"
#include "common/plant.h"

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

/* True if these two rows differ in given or lost blocks. */
static bool
differ (const struct array *a, const struct op *op, unsigned b, unsigned c)
{
  return given_at (a, op, b) != given_at (a, op, c) ||
    op->zero_roles[b] != op->zero_roles[c] ||
    op->lost_roles[b] != op->lost_roles[c] ||
    lost_roles (a, op->line->no, block_mask (b, 1)) !=
    lost_roles (a, op->line->no, block_mask (c, 1));
}

static void
split_replay (struct op *op)
{
  op->nr_rects = 0;
  FOR_EACH_BIT (b, op->replay)
    op->rect[op->nr_rects++] = (struct rect) { .b0 = b, .nr = 1 };
}

static void
split_op (struct array *a, struct op *op)
{
  const bool out = op->type->kind == OP_OUT;
  const unsigned first = out ? 0 : op->b0;
  const unsigned last = out ? a->cell_blocks : op->b0 + op->nr;
  unsigned b, end;

  op->nr_rects = 0;
  for (b = first; b < last; b = end) {
    end = b + 1;
    while (end < last && !op->fine && !((out || a->sums) &&
                                        differ (a, op, b, end)))
      end++;
    if (!out || given_at (a, op, b))
      op->rect[op->nr_rects++] = (struct rect) {
        .b0 = b, .nr = end - b, .given = given_at (a, op, b) };
  }
}

/* Roles with old content in the cache, or read before planning again. */
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
    /* A resync makes entries of what is in place. */
    if (r >= a->g.k || rect->given & BIT (r) || op->anew)
      continue;
    lc = &op->line->cell[r];
    /* A cell with dirty or busy blocks may be written to at any time. */
    if (lc->c == NULL || lc->dirty || lc->busy || (lc->valid & mask) != mask ||
        (o->have && o->have != lc->c))
      continue;
    if (o->have == NULL) {
      o->have = lc->c;
      cell_ref (a, lc->c);
      lc->c->frozen++;
    }
    o->have_blocks |= mask;
    have |= BIT (r);
  }
  return have;
}

uint64_t
op_bad_roles (const struct array *a, const struct op *op, uint16_t blocks)
{
  uint64_t roles = 0;

  for (unsigned r = 0; r < a->n; r++)
    if (op->role[r].bad_blocks & blocks)
      roles |= BIT (r);
  return roles;
}

uint64_t
op_errors (const struct op *op, unsigned b)
{
  return op_bad_roles (op->a, op, block_mask (b, 1)) | op->lost_roles[b];
}

/* Roles of a rect that are lost, listed or by the crash. */
static uint64_t
lost_at (const struct array *a, const struct op *op, const struct rect *rect)
{
  const uint64_t no = op->line->no;

  return (lost_roles (a, no, block_mask (rect->b0, rect->nr)) &
          ~recover_known (a, no, rect->b0)) |
    recover_erased (a, no, rect->b0) | op->lost_roles[rect->b0];
}

/* The doubtful parity of a rect.  Parity defines the content of a lost role,
 * but not if the old content of that role is in memory: with that content the
 * parity may be wrong.
 */
static uint64_t
doubtful_parity (const struct array *a, const struct op *op,
                 const struct rect *rect)
{
  if (op->type->kind == OP_OUT && PLANTED ("delta-on-doubtful"))
    return 0;
  return (op->unsure |
          line_doubtful (a, op->line->no, op->noread & ~rect->have)) &
    ~recover_known (a, op->line->no, rect->b0);
}

/* The roles to be stored anew. */
static uint64_t
rewritten (const struct array *a, const struct op *op, const struct rect *rect)
{
  if (op->type->kind != OP_FIX)
    return 0;
  return op->replay ? recover_wanted (a, op->line->no, rect->b0) : op->want;
}

/* No slot was ever written there, as far as it can be known. */
static bool
is_all_zero (const struct array *a, const struct op *op,
             const struct rect *rect)
{
  const uint64_t known = LOW_BITS (a->n) & ~op->noread;

  return a->sums && (op->zero_roles[rect->b0] & known) == known;
}

/* The roles whose content is needed as it is: for a reader, or for new entries,
 * which can't be made of doubtful parity.
 */
static uint64_t
wanted (const struct array *a, const struct op *op, const struct rect *rect)
{
  if (op->anew)
    return LOW_BITS (a->n) & ~op->noread & ~doubtful_parity (a, op, rect);
  return op->type->kind == OP_READ ? op->want : 0;
}

/* What counts as zeroes is known without a cell. */
static int
plan_known (const struct plan_in *in, uint64_t zeroes, struct plan *p)
{
  struct plan_in known = *in;
  int r;

  known.have |= zeroes;
  r = plan (&known, p);
  p->in &= ~zeroes;
  return r;
}

/* A reader that already has what it wants needs no plan for the rest.
 * Doubtful parity does not replace data that gave an error: it would turn a
 * block that was flushed long ago into garbage.
 */
static int
plan_rect (struct array *a, struct op *op, struct rect *rect)
{
  const uint16_t blocks = block_mask (rect->b0, rect->nr);
  const uint64_t have = rect->have = find_old (a, op, rect);
  const uint64_t zeroes = line_zeroes (a, op->line->no);
  const uint64_t noread = op->noread | op->avoid |
    (PLANTED ("doubtful-rewrites") && op_bad_roles (a, op, blocks) ? 0 :
     doubtful_parity (a, op, rect)) |
    op_bad_roles (a, op, blocks) | lost_at (a, op, rect);
  struct plan_in in;

  if (op->to_targets && is_all_zero (a, op, rect)) {
    /* Nothing to copy; but without a journal it must be zeroes in place. */
    rect->zeroes = a->mark_open && !PLANTED ("none-not-zeroed");
    rect->p = (struct plan) { .write = rect->zeroes ? op->want : 0 };
    return 0;
  }
  in = (struct plan_in) {
    .k = a->g.k, .m = a->g.m, .noread = noread | op->slow,
    .have = have, .given = rect->given,
    .want = wanted (a, op, rect),
    .rewrite = rewritten (a, op, rect),
  };

  in.nowrite = op->nowrite & ~in.rewrite;
  if (plan_known (&in, zeroes, &rect->p) == 0)
    return 0;
  if (op->slow == 0)
    return -1;
  /* Only the slow roles can help: wait for them. */
  op->slow = 0;
  in.noread = noread;
  return plan_known (&in, zeroes, &rect->p);
}

/* Plan the part of a rect that can be served when the whole can't: for a
 * reader, a resync, a rebuild or a recovery, the roles that are present.
 */
static void
plan_rest (struct array *a, struct op *op, struct rect *rect)
{
  const uint16_t blocks = block_mask (rect->b0, rect->nr);
  const uint64_t noread = op->noread | op_bad_roles (a, op, blocks) |
    lost_at (a, op, rect);

  rect->p = (struct plan) { 0 };
  rect->lost = ~UINT64_C (0);
  if (op->type->kind == OP_READ || op->anew)
    rect->p.read = wanted (a, op, rect) & ~noread & ~rect->have;
  if (op->type->kind == OP_READ)
    rect->lost = op->want & ~rect->p.read & ~rect->have;
  if (op->replay || op->to_targets) {
    const uint64_t want = rewritten (a, op, rect);

    rect->p.write = want & (rect->have | ~noread);
    rect->p.read = rect->p.write & ~rect->have;
    rect->lost = want & ~rect->p.write;
  }
}

/* Roles on members with something overdue, and, for a reader, on slow ones:
 * avoid them, while enough others remain.
 */
static uint64_t
suspects (const struct array *a, struct op *op)
{
  const uint64_t bad = op->noread | op_bad_roles (a, op, 0xffff);
  uint64_t roles = 0, slow = 0;

  for (unsigned slot = 0; slot < a->n; slot++)
    if (a->at[slot][0] && a->at[slot][0]->suspect)
      roles |= BIT (line_role (a, op->line->no, slot));
  if (nr_bits (roles | bad) > a->g.m)
    roles = 0;
  if (op->type->kind == OP_READ)
    slow = slow_roles (a, op->line->no);
  if (nr_bits (slow | roles | bad) > a->g.m)
    slow = 0;
  op->avoided = slow;
  return slow | roles;
}

/* The array failed while these rows were being written: they are no longer
 * code words.
 */
static bool
is_torn (const struct array *a, const struct line *line)
{
  return !PLANTED ("torn-decoded") &&
    (line->torn || (line->no >= a->torn0 && line->no < a->torn1));
}

/* The new decision itself waits for what the recovery reads. */
static bool
waits_for_decision (const struct array *a, const struct op *op)
{
  return recover_is_outdated (a) && !op->replay && !op->undecided;
}

/* Of a member that is there. */
static bool
has_unreadable_page (const struct op *op, const struct rect *rect)
{
  return op->pin.nr > 0 && !op->no_sums &&
    sums_unreadable (&op->pin, op_row (op, rect->b0));
}

static bool
may_get_better (const struct array *a, const struct op *op,
                const struct rect *rect)
{
  const uint16_t blocks = block_mask (rect->b0, rect->nr);

  return waits_for_decision (a, op) ||
    (op->tries < OP_MAX_TRIES &&
     (op_bad_roles (a, op, blocks) || has_unreadable_page (op, rect)) &&
     !lost_rows_known (a, op->line->no, blocks));
}

/* With less than the decision about the journal counted on, it may be another
 * one: without the newest transaction.
 */
static bool
decides_again (struct array *a, const struct op *op, const struct rect *rect)
{
  return op->type->kind == OP_READ && !op->undecided &&
    recover_bad_row (a, op->line->no, rect->b0, op_errors (op, rect->b0));
}

static void
forget_errors (struct array *a, struct op *op)
{
  for (unsigned r = 0; r < a->n; r++)
    op->role[r].bad_blocks = 0;
  op->coarse = false;
}

/* What an earlier plan made may have come of a bad block. */
static void
forget_crcs (struct array *a, struct op *op)
{
  for (unsigned r = 0; r < a->n; r++)
    op->role[r].crc_blocks = 0;
}

/* What was read may be of a transaction that does not count any more. */
static void
forget_old (struct array *a, struct op *op)
{
  for (unsigned r = 0; r < a->n; r++)
    op->role[r].old_blocks = 0;
  op->decision = recover_decision (a);
}

enum outcome { PLANNED, TOO_COARSE, TRY_AGAIN };

static enum outcome
plan_all (struct array *a, struct op *op)
{
  bool again = false;

  if (op->replay)
    split_replay (op);
  else
    split_op (a, op);
  for (unsigned i = 0; i < op->nr_rects; i++) {
    struct rect *rect = &op->rect[i];

    if (plan_rect (a, op, rect) == 0 &&
        !(is_torn (a, op->line) && rect->p.make))
      continue;
    if (!op->fine && (op->coarse || rect->nr > 1))
      return TOO_COARSE;
    again |= may_get_better (a, op, rect) || decides_again (a, op, rect);
    plan_rest (a, op, rect);
  }
  return again ? TRY_AGAIN : PLANNED;
}

bool
op_plan (struct array *a, struct op *op)
{
  enum outcome r;

  if (op->decision != recover_decision (a))
    forget_old (a, op);
  if (!PLANTED ("sums-old-crc"))
    forget_crcs (a, op);
  line_masks (a, op->line->no, &op->noread, &op->nowrite);
  if (op->type->kind != OP_FIX)
    op->slow |= suspects (a, op);
  op->doubtful = op->unsure | line_doubtful (a, op->line->no, op->noread);
  /* Each of its blocks may be somewhere else. */
  op->fine |= recover_has_line (a, op->line->no);
  r = plan_all (a, op);
  if (r == TOO_COARSE) {
    /* Read each block alone, to find the bad one. */
    if (op->coarse)
      forget_errors (a, op);
    op->fine = true;
    r = plan_all (a, op);
  }
  if (r != TRY_AGAIN)
    return true;
  forget_errors (a, op);
  if (a->sums)                  /* its pages may be readable then */
    sums_unpin (a, &op->pin);
  op->tries += !waits_for_decision (a, op);
  list_move (&a->pause_waiters, &op->waiter.link);
  return false;
}

uint16_t
op_lost_blocks (const struct op *op)
{
  uint16_t blocks = 0;

  for (unsigned i = 0; i < op->nr_rects; i++)
    if (op->rect[i].lost)
      blocks |= block_mask (op->rect[i].b0, op->rect[i].nr);
  return blocks;
}

struct cell *
op_old (const struct op *op, const struct rect *rect, unsigned role)
{
  const struct op_role *o = &op->role[role];
  const uint16_t mask = block_mask (rect->b0, rect->nr);

  return (o->old_blocks & mask) == mask ? o->old : o->have;
}

/* ---- cells ------------------------------------------------------------- */

/* When cells are short, take clean ones of the line that this operation does
 * not use.  Lines with readers give none.
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
  return cells_get (a, &op->parts, nr, cell);
}

/* The roles whose old content is needed beside what is made, or may still be
 * written by a late read.  Any other role that is read in one rect and made in
 * another needs one cell: so an operation that finds another bad block in each
 * role has no more cells than credits.
 */
static uint64_t
two_cells (const struct op *op)
{
  uint64_t two = op->late;

  if (PLANTED ("cells-not-shared"))
    return ~UINT64_C (0);
  for (unsigned i = 0; i < op->nr_rects; i++) {
    const struct rect *rect = &op->rect[i];

    two |= rect->p.make & (rect->p.read | rect->have);
  }
  return two;
}

/* What is made is stored over what was read there. */
static void
share_cell (struct array *a, struct op *op, unsigned role)
{
  struct op_role *o = &op->role[role];

  if (o->old == NULL || o->made == NULL) {
    o->old = o->made = o->old ? o->old : o->made;
    cell_ref (a, o->made);
  }
  for (unsigned i = 0; i < op->nr_rects; i++)
    if (op->rect[i].p.make & BIT (role))
      o->old_blocks &= ~block_mask (op->rect[i].b0, op->rect[i].nr);
}

static void
unshare_cell (struct array *a, struct op_role *o)
{
  if (o->made == NULL || o->made != o->old)
    return;
  cell_put (a, o->made);
  o->made = NULL;
}

bool
op_get_cells (struct array *a, struct op *op)
{
  const uint64_t two = two_cells (op);
  struct cell *cell[2 * MAX_SLOTS], **into[2 * MAX_SLOTS];
  uint64_t read = 0, make = 0;
  unsigned nr = 0;

  for (unsigned i = 0; i < op->nr_rects; i++) {
    read |= op->rect[i].p.read;
    make |= op->rect[i].p.make;
  }
  FOR_EACH_BIT (r, read | make) {
    struct op_role *o = &op->role[r];
    const bool one = !(two & BIT (r));

    if (!one)
      unshare_cell (a, o);
    if (read & BIT (r) && o->old == NULL && !(one && o->made))
      into[nr++] = &o->old;
    if (make & BIT (r) && o->made == NULL &&
        !(one && (o->old || read & BIT (r))))
      into[nr++] = &o->made;
  }
  if (!cells_get (a, &op->parts, nr, cell) &&
      !get_from_line (a, op, nr, cell)) {
    list_move (&a->cell_waiters, &op->waiter.link);
    return false;
  }
  for (unsigned i = 0; i < nr; i++)
    *into[i] = cell[i];
  FOR_EACH_BIT (r, (read | make) & ~two) {
    struct op_role *o = &op->role[r];

    if ((o->old || read & BIT (r)) && (o->made || make & BIT (r)))
      share_cell (a, op, r);
  }
  return true;
}
