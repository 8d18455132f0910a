/* gpuraid: the transfers of an operation.
 *
 * Reads the cells of the plan, avoids members that are overdue, writes the
 * given and made cells.  array/ops/advance.c has the phases between.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <string.h>

#include "array/cache/cache.h"
#include "array/engine/place.h"
#include "array/health/fail.h"
#include "array/io/xfer.h"
#include "array/ops/internal.h"
#include "array/replay/recovery.h"
#include "array/seats/seat.h"
#include "array/seats/slow.h"
#include "array/seats/unlocked.h"
#include "common/plant.h"

/* A slower read is worked around by decoding. */
#define OVERDUE_NS UINT64_C (1000000000)

/* ---- reading --------------------------------------------------------- */

static uint64_t
xfer_off (const struct array *a, const struct op *op, const struct rect *rect)
{
  return layout_data_off (&a->sb.l, line_pos (a, op->line->no)) +
    (uint64_t) rect->b0 * BLOCK_LEN;
}

static void
issue (struct array *a, struct op *op, const struct rect *rect,
       struct seat *seat, uint64_t off, enum io_kind kind, unsigned role,
       struct cell *c, void (*done) (struct array *, struct xfer *))
{
  struct xfer *x = xfer_new (a, seat, kind, done);

  x->off = off;
  x->len = (uint64_t) rect->nr * BLOCK_LEN;
  x->buf = c->data + (size_t) rect->b0 * BLOCK_LEN;
  x->owner = op;
  x->of_op = true;
  x->cell = c;
  x->role = role;
  x->b0 = rect->b0;
  x->nr = rect->nr;
  x->timed = kind == IO_READ && op->type->kind == OP_READ;
  x->extra = x->timed && op->late;
  list_append (&op->xfers, &x->owner_link);
  op->pending++;
  xfer_start (a, x);
  if (x->extra)
    slow_spend (a, x->len);
  if (kind == IO_READ) {
    a->counters.member_read_ops++;
    a->counters.member_read_bytes += x->len;
  }
  else {
    a->counters.member_write_ops++;
    a->counters.member_write_bytes += x->len;
  }
}

bool
op_all_read (const struct op *op)
{
  for (unsigned i = 0; i < op->nr_rects; i++) {
    const struct rect *rect = &op->rect[i];
    const uint16_t mask = block_mask (rect->b0, rect->nr);

    FOR_EACH_BIT (r, rect->p.read)
      if ((op->role[r].old_blocks & mask) != mask)
        return false;
  }
  return true;
}

static void
drop_old (struct array *a, struct op_role *o)
{
  if (o->old && o->made == o->old) {
    cell_put (a, o->made);
    o->made = NULL;
  }
  if (o->old)
    cell_put (a, o->old);
  o->old = NULL;
  o->old_blocks = o->late_blocks = 0;
}

void
op_read_ended (struct array *a, struct xfer *x)
{
  struct op *op = x->owner;
  struct op_role *o = &op->role[x->role];
  const uint16_t blocks = block_mask (x->b0, x->nr);

  list_remove (&x->owner_link);
  if (x->error == 0) {
    x->seat->suspect = false;
    *(x->hedged ? &o->late_blocks : &o->old_blocks) |= blocks;
  }
  else {
    /* If a read is retried after a pause only its first error counts. */
    if (op->tries == 0)
      seat_read_error (a, x->seat, x->error);
    o->bad_blocks |= blocks;
    op->coarse |= x->nr > 1;
    /* The I/O may still write to the cell: leave the cell to it. */
    if (x->abandoned)
      drop_old (a, o);
  }
}

static void
read_done (struct array *a, struct xfer *x)
{
  struct op *op = x->owner;

  op_read_ended (a, x);
  if (--op->pending == 0)
    op_go_on (a, op);
}

/* After a crash the content may be in the journal.  Then the rect has one
 * block (op_plan).
 */
static void
issue_read (struct array *a, struct op *op, const struct rect *rect,
            unsigned role)
{
  struct op_role *o = &op->role[role];
  struct seat *s =
    a->at[line_slot (a, op->line->no, role)][0];
  const struct replay_source *src =
    recover_source (a, op->line->no, role, rect->b0);

  /* Some of the rect may have been read before, in another rect: a read that
   * fails may have overwritten that.
   */
  o->old_blocks &= ~block_mask (rect->b0, rect->nr);
  o->checked_blocks &= ~block_mask (rect->b0, rect->nr);
  if ((src && src->kind == REPLAY_ZERO) ||
      op->zero_roles[rect->b0] & BIT (role)) {
    memset (o->old->data + (size_t) rect->b0 * BLOCK_LEN, 0,
            (size_t) rect->nr * BLOCK_LEN);
    o->old_blocks |= block_mask (rect->b0, rect->nr);
    o->checked_blocks |= block_mask (rect->b0, rect->nr);
  }
  else if (src && src->kind == REPLAY_RING) {
    op->reads_journal = true;
    issue (a, op, rect, recover_seat (a, src),
           a->sb.l.ring_off + (uint64_t) src->place * BLOCK_LEN, IO_READ,
           role, o->old, read_done);
  }
  else
    issue (a, op, rect, s, xfer_off (a, op, rect), IO_READ, role, o->old,
           read_done);
}

void
op_issue_reads (struct array *a, struct op *op)
{
  for (unsigned i = 0; i < op->nr_rects; i++) {
    const struct rect *rect = &op->rect[i];
    const uint16_t mask = block_mask (rect->b0, rect->nr);

    FOR_EACH_BIT (r, rect->p.read) {
      const struct op_role *o = &op->role[r];

      if ((o->old_blocks & mask) != mask)
        issue_read (a, op, rect, r);
    }
  }
}

bool
op_any_reads_journal (const struct array *a)
{
  list_for_each (l, &a->ops) {
    const struct op *op = list_item (l, struct op, link);

    if (op->reads_journal && op->phase == OP_READING)
      return true;
  }
  return false;
}

void
op_drop_reads (struct array *a, struct op *op, uint64_t roles)
{
  list_for_each (l, &op->xfers) {
    struct xfer *x = list_item (l, struct xfer, owner_link);

    if ((roles & BIT (x->role)) == 0)
      continue;
    list_remove (&x->owner_link);
    xfer_forget (x);
    op->pending -= !x->hedged;
    if (PLANTED ("hedge-cell-reused")) {
      cell_put (a, x->cell);
      x->cell = NULL;
    }
  }
  FOR_EACH_BIT (r, roles)
    drop_old (a, &op->role[r]);
}

/* Reads of these roles are overdue: plan without them. */
static void
abandon_reads (struct array *a, struct op *op, uint64_t roles)
{
  list_for_each (l, &op->xfers) {
    struct xfer *x = list_item (l, struct xfer, owner_link);

    if ((roles & BIT (x->role)) == 0)
      continue;
    log_debug ("line %" PRIu64 ": role %u: a read is overdue, decoding",
               op->line->no, x->role);
    unlocked_close (a, x->seat);
    x->seat->suspect = true;
    if (PLANTED ("member-slow-ejected"))
      seat_fail (a, x->seat, "read", ETIMEDOUT);
  }
  op_drop_reads (a, op, roles);
  op->slow |= roles;
}

/* The roles with an overdue read, at most as many as can be done without. */
static uint64_t
overdue_roles (const struct array *a, const struct op *op, uint64_t now)
{
  const uint64_t without = op->slow | op_bad_roles (a, op, 0xffff) |
    op->noread | op->doubtful;
  uint64_t roles = 0;

  list_for_each (l, &op->xfers) {
    const struct xfer *x = list_item (l, struct xfer, owner_link);

    if (now > x->since + OVERDUE_NS && !x->hedged &&
        nr_bits (without | roles) < a->g.m)
      roles |= BIT (x->role);
  }
  return roles;
}

void
op_check_overdue (struct array *a, uint64_t now)
{
  engine_run_waiters (a, &a->pause_waiters);
  list_for_each (l, &a->ops) {
    struct op *op = list_item (l, struct op, link);
    uint64_t roles;

    if (op->phase != OP_READING || nr_good_slots (a) <= a->g.k)
      continue;
    roles = overdue_roles (a, op, now);
    abandon_reads (a, op, roles);
    if (roles && op->pending == 0)
      op_go_on (a, op);
  }
}

/* ---- writing --------------------------------------------------------- */

static void
write_done (struct array *a, struct xfer *x)
{
  struct op *op = x->owner;

  list_remove (&x->owner_link);
  if (x->error)
    seat_fail (a, x->seat, "write", x->error);
  else
    x->seat->write_gen++;
  if (--op->pending > 0)
    return;
  if (op->phase == OP_LOGGING)
    op->written (a, &op->log);
  else
    op_go_on (a, op);
}

static bool
takes_part (const struct array *a, const struct op *op, const struct seat *s,
            const struct rect *rect, unsigned role)
{
  if (s == NULL || !seat_writable_at (a, s, line_pos (a, op->line->no)))
    return false;
  if (op->replay && s->state == SEAT_ACTIVE && !PLANTED ("direct-rewritten") &&
      recover_direct (a, op->line->no, rect->b0) & BIT (role))
    return false;
  if (op->log.direct && s->state == SEAT_TARGET &&
      PLANTED ("direct-target-unwritten"))
    return false;
  /* A repair also goes to a target: below its window the block may have been
   * lost there.
   */
  return !op->to_targets || s->state == SEAT_TARGET;
}

struct cell *
op_new_cell (const struct op *op, const struct rect *rect, unsigned role)
{
  const struct op_role *o = &op->role[role];

  if (rect->given & BIT (role))
    return o->given;
  return rect->p.make & BIT (role) ? o->made : op_old (op, rect, role);
}

static void
issue_zeroes (struct array *a, struct op *op, const struct rect *rect,
              struct seat *seat)
{
  struct xfer *x = xfer_new (a, seat, IO_TRIM, write_done);

  x->off = xfer_off (a, op, rect);
  x->len = (uint64_t) rect->nr * BLOCK_LEN;
  x->owner = op;
  x->of_op = true;
  list_append (&op->xfers, &x->owner_link);
  op->pending++;
  xfer_start (a, x);
}

/* The zeroes of a rebuild are trimmed on its target. */
static void
write_seat (struct array *a, struct op *op, const struct rect *rect,
            unsigned role, struct seat *seat)
{
  const uint16_t mask = block_mask (rect->b0, rect->nr);
  const uint16_t zero = rect->zeroes ? mask : op->role[role].zero_blocks;
  const unsigned last = rect->b0 + rect->nr;
  struct cell *c = rect->zeroes ? NULL : op_new_cell (op, rect, role);

  for (unsigned b = rect->b0, end; b < last; b = end) {
    struct rect run = { .b0 = b };

    for (end = b + 1; end < last && (zero >> end & 1) == (zero >> b & 1); )
      end++;
    run.nr = end - b;
    if (zero >> b & 1 && !rect->zeroes && PLANTED ("zeroes-not-trimmed"))
      ;
    else if (zero >> b & 1)
      issue_zeroes (a, op, &run, seat);
    else
      issue (a, op, &run, seat, xfer_off (a, op, &run), IO_WRITE, role, c,
             write_done);
  }
}

static void
write_role (struct array *a, struct op *op, const struct rect *rect,
            unsigned role)
{
  const unsigned slot = line_slot (a, op->line->no, role);

  for (unsigned i = 0; i < 2; i++)
    if (takes_part (a, op, a->at[slot][i], rect, role))
      write_seat (a, op, rect, role, a->at[slot][i]);
}

void
op_write_rects (struct array *a, struct op *op)
{
  bool reads = false;

  op->wrote = true;
  for (unsigned i = 0; i < op->nr_rects; i++) {
    FOR_EACH_BIT (r, op->rect[i].p.write)
      write_role (a, op, &op->rect[i], r);
    reads |= op->rect[i].p.read != 0;
  }
  if (op->type->kind == OP_OUT) {
    a->counters.full_stripe_writes += !reads;
    a->counters.partial_writes += reads;
  }
}

void
op_write_in_place (struct array *a, struct op *op)
{
  op->phase = OP_WRITING;
  op->type->write (a, op);
}

void
op_write_direct (struct array *a, struct op *op,
                 void (*done) (struct array *a, struct logged *lg))
{
  op->written = done;
  op->pending++;                /* the members may all be failing */
  op_write_rects (a, op);
  if (--op->pending == 0)
    done (a, &op->log);
}
