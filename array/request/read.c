/* gpuraid: read for a client.
 *
 * A run of blocks comes from the newest content: a cell of the line, the cell
 * that a write-out has frozen, or the members.  A small clean read is a pread
 * in the client's thread, after one look under the array lock (without any:
 * array/request/unlocked.c).  An operation
 * does the rest: what needs decoding, or is large and goes to a medium that
 * gains from many requests at once.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array/cache/cache.h"
#include "array/engine/place.h"
#include "array/health/fail.h"
#include "array/health/lost.h"
#include "array/ops/ops.h"
#include "array/replay/recovery.h"
#include "array/request/internal.h"
#include "array/seats/seat.h"
#include "array/seats/slow.h"
#include "array/seats/unlocked.h"
#include "array/sums/sums.h"

/* ---- where a run of blocks is ----------------------------------------- */

enum source { FROM_CELL, FROM_FROZEN, FROM_ZEROES, FROM_MEMBER };

/* What the checksum table says of the blocks of one role of a line. */
struct line_sums {
  bool known;
  struct table_entry entry[CELL_MAX_LEN / BLOCK_LEN];
};

static enum source
source_of (const struct line *line, unsigned role, uint16_t frozen,
           const struct line_sums *sums, unsigned b)
{
  if (line && line->cell[role].valid >> b & 1)
    return FROM_CELL;
  if (frozen >> b & 1)
    return FROM_FROZEN;
  return sums->known && table_kind (sums->entry[b]) == TABLE_ZERO ?
    FROM_ZEROES : FROM_MEMBER;
}

static void
get_sums (const struct array *a, uint64_t no, unsigned role,
          struct line_sums *sums)
{
  const unsigned slot = line_slot (a, no, role);
  const struct seat *s = a->at[slot][0];

  /* A rebuild's target has not all of its entries yet, and in a region that is
   * not synced they may be wrong.
   */
  sums->known = a->sums && s && !s->failing && !recover_has_line (a, no) &&
    !line_is_unsynced (a, no) &&
    sums_peek (a, slot, line_row (a, no), a->cell_blocks, sums->entry);
}

/* Keep the sums of the blocks of a step.  False if there is no room, or some
 * block needs an operation.
 */
static bool
take_sums (const struct array *a, struct request *r,
           const struct line_sums *sums, struct step *s)
{
  const unsigned b0 = s->cell_off / BLOCK_LEN;
  const unsigned end = div_round_up (s->cell_off + s->len, BLOCK_LEN);

  if (a->sums == NULL)
    return true;
  if (!sums->known || r->nr_sums + (end - b0) > REQUEST_SUMS)
    return false;
  s->sum = r->nr_sums;
  for (unsigned b = b0; b < end; b++) {
    if (table_kind (sums->entry[b]) != TABLE_WRITTEN)
      return false;
    r->sums[s->sum + b - b0] = sums->entry[b].sum;
  }
  r->nr_sums += end - b0;
  return true;
}

/* The seat from which a client's thread may read a role. */
static struct seat *
readable_seat (const struct array *a, uint64_t no, unsigned role)
{
  const unsigned slot = line_slot (a, no, role);
  struct seat *s = a->at[slot][0];

  return s && s->state == SEAT_ACTIVE && !s->failing && !s->suspect &&
    (slow_slots (a) & BIT (slot)) == 0 && s->m->local &&
    lost_blocks_of (a, no, role) == 0 && !recover_has_line (a, no) ? s : NULL;
}

/* Of a member: what was read before is newer, and a client is writing to it. */
static bool
is_outdated (const struct line *line, const struct step *s)
{
  const unsigned b0 = s->cell_off / BLOCK_LEN;
  const unsigned end = div_round_up (s->cell_off + s->len, BLOCK_LEN);

  return line && line->cell[s->role].outdated & block_mask (b0, end - b0);
}

/* The operation that earlier steps began on the same line. */
static struct op *
shared_op (const struct request *r, const struct step *step, uint64_t no)
{
  if (r->kind == REQUEST_READ && step > r->step &&
      step[-1].from == STEP_OP && step[-1].no == no)
    return step[-1].op;
  return NULL;
}

static bool
op_step (struct array *a, struct request *r, const struct read_from *f,
         struct step *step, struct list **wait)
{
  const unsigned b0 = step->cell_off / BLOCK_LEN;
  const unsigned nr = (step->cell_off + step->len - 1) / BLOCK_LEN - b0 + 1;
  struct line *line = line_find (a, f->no);

  step->op = shared_op (r, step, f->no);
  if (step->op)
    op_read_more (step->op, BIT (f->role), b0, nr);
  else {
    /* A flush must not wait for a stream of readers. */
    if (line && line->want_out && line->op == NULL && !f->pinned) {
      *wait = &line->waiters;
      return false;
    }
    step->op = op_read (a, &r->reads, f->no, BIT (f->role), 0, b0, nr);
    if (step->op == NULL) {
      *wait = &a->cell_waiters;
      return false;
    }
    if (f->pinned)
      op_read_pinned (step->op);
  }
  step->from = STEP_OP;
  return true;
}

/* Reads of neighbouring bytes on one member become one pread. */
static bool
extends (const struct array *a, const struct request *r,
         const struct step *step, const struct seat *s)
{
  const struct step *last = &step[-1];

  return r->kind == REQUEST_READ && step > r->step &&
    last->from == STEP_SEAT && last->seat == s && last->role == step->role &&
    line_pos (a, last->no) + last->cell_off + last->len ==
    line_pos (a, step->no) + step->cell_off &&
    last->buf + last->len == step->buf &&
    (a->sums == NULL || is_aligned (step->cell_off, BLOCK_LEN));
}

static void
seat_step (struct array *a, struct request *r, struct seat *seat,
           struct step *s)
{
  s->from = STEP_SEAT;
  s->seat = seat;
  s->member_off = layout_data_off (&a->sb.l, line_pos (a, s->no)) +
    s->cell_off;
  pread_begin (a, s);
  r->has_preads = true;
  if (unlocked_may_open (a, seat->slot))
    unlocked_open (a, seat->slot);
}

unsigned
read_steps (struct array *a, struct request *r, const struct read_from *f,
            struct step *step, unsigned max, uint32_t *done,
            struct list **wait)
{
  struct line *line = line_find (a, f->no);
  struct cell *frozen_cell = NULL;
  const uint16_t frozen = line ? line_frozen (line, f->role, &frozen_cell) : 0;
  const uint32_t end = f->cell_off + f->len;
  struct seat *seat = f->all_ops ? NULL : readable_seat (a, f->no, f->role);
  struct line_sums sums;
  unsigned nr = 0;

  *done = 0;
  get_sums (a, f->no, f->role, &sums);
  for (uint32_t off = f->cell_off, next; off < end && nr < max; off = next) {
    unsigned b = off / BLOCK_LEN;
    const enum source src = source_of (line, f->role, frozen, &sums, b);
    bool direct;
    struct step *s = &step[nr];

    while (++b * BLOCK_LEN < end &&
           source_of (line, f->role, frozen, &sums, b) == src)
      ;
    next = MIN (b * BLOCK_LEN, end);
    *s = (struct step) { .no = f->no, .role = f->role, .cell_off = off,
                         .len = next - off, .buf = f->buf + *done };
    direct = src == FROM_MEMBER && seat && !r->has_ops &&
      (sums.known || a->sums == NULL) && !slow_owes (a, seat, s->len) &&
      take_sums (a, r, &sums, s);
    if (src == FROM_CELL || src == FROM_FROZEN) {
      s->from = STEP_CELL;
      s->cell = src == FROM_CELL ? line->cell[f->role].c : frozen_cell;
      cell_ref (a, s->cell);
    }
    else if (is_outdated (line, s)) {
      *wait = &line->waiters;
      break;
    }
    else if (src == FROM_ZEROES)
      s->from = STEP_ZERO;
    else if (direct && extends (a, r, s, seat)) {
      s[-1].len += s->len;
      s[-1].quick_ns = slow_quick_ns (a, seat, s[-1].len);
      a->counters.member_read_bytes += s->len;
      *done += s->len;
      continue;
    }
    else if (direct)
      seat_step (a, r, seat, s);
    else if (r->has_preads || !op_step (a, r, f, s, wait))
      break;            /* with preads: in the next batch */
    else
      r->has_ops = true;
    *done += s->len;
    nr++;
  }
  return nr;
}

/* ---- in the client's thread ------------------------------------------- */

bool
run_steps (struct request *r, struct step *step, unsigned nr, bool ops)
{
  bool all = true;

  if (!ops)
    run_preads (r, step, nr);
  for (unsigned i = 0; i < nr; i++) {
    struct step *s = &step[i];

    switch (s->from) {
    case STEP_CELL:
      if (!ops)
        memcpy (s->buf, s->cell->data + s->cell_off, s->len);
      break;
    case STEP_SEAT:
      all &= s->error == 0;
      break;
    case STEP_OP:
      if (ops)
        s->error = op_copy (s->op, s->role, s->cell_off, s->len, s->buf);
      all &= ops;
      break;
    case STEP_ZERO:
      if (!ops)
        memset (s->buf, 0, s->len);
      break;
    case STEP_DONE:
      break;
    }
  }
  return all;
}

/* ---- after the copy ---------------------------------------------------- */

void
seat_step_failed (struct array *a, struct step *s)
{
  if (s->error != EBADMSG) {    /* an operation looks again */
    seat_note_error (a, s->seat, IO_READ, s->member_off, s->error);
    seat_read_error (a, s->seat, s->error);
  }
  pread_end (s, LANE_OF_LOCK);
  s->from = STEP_DONE;
}

int
steps_put (struct array *a, struct step *step, unsigned nr)
{
  const struct op *last = NULL;
  int error = 0;

  for (unsigned i = 0; i < nr; i++) {
    struct step *s = &step[i];

    switch (s->from) {
    case STEP_CELL:
      cell_put (a, s->cell);
      break;
    case STEP_SEAT:
      if (s->error == 0)
        slow_read_done (a, s->seat, &(struct slow_read) {
            .len = s->len, .ns = s->ns, .pread = true });
      pread_end (s, LANE_OF_LOCK);
      break;
    case STEP_OP:
      if (s->error)
        error = s->error;
      if (s->op == last)
        break;
      last = s->op;
      op_put (a, s->op);
      break;
    case STEP_ZERO:
    case STEP_DONE:
      break;
    }
  }
  return error;
}

/* ---- a read ------------------------------------------------------------- */

/* True if the part of the request in this line needs decoding.  Then all of
 * it comes from one operation.
 */
static bool
needs_decoding (const struct array *a, const struct request *r, uint64_t no)
{
  uint64_t noread, nowrite;

  if ((a->lost_slots == 0 && !a->any_slow) || a->nr_bands > 1)
    return false;
  line_masks (a, no, &noread, &nowrite);
  noread = (noread | slow_roles (a, no)) & LOW_BITS (a->g.k);
  return (noread & line_roles (a, no, r->off, r->len)) != 0;
}

void
read_start (struct array *a, struct request *r)
{
  const bool large = r->len > limits.inline_max_len && a->any_direct;
  struct list *wait = NULL;
  uint64_t pos = r->pos;

  r->nr_steps = r->nr_sums = 0;
  r->has_preads = r->has_ops = false;
  while (pos < r->len && r->nr_steps < limits.request_steps) {
    const struct line_piece p = line_piece (a, r->off + pos, r->len - pos);
    struct read_from f = {
      .no = p.no, .role = p.role, .cell_off = p.cell_off, .len = p.len,
    };
    uint32_t done;
    unsigned nr;

    f.buf = r->buf + pos;
    f.all_ops = large || r->all_ops || a->g.widening ||
      needs_decoding (a, r, f.no);
    f.pinned = false;
    if (op_zeroes (a, f.no, f.no + 1)) {
      wait = &a->zero_waiters;
      break;
    }
    nr = read_steps (a, r, &f, &r->step[r->nr_steps],
                     limits.request_steps - r->nr_steps, &done, &wait);
    r->nr_steps += nr;
    pos += done;
    if (done < f.len)
      break;
  }
  if (pos == r->pos) {
    request_wait (r, wait);
    return;
  }
  r->batch_end = pos;
  r->phase = R_COPY;
}

/* Release copied cells before operations run: they may need these cells. */
static void
put_copied (struct array *a, struct request *r)
{
  for (unsigned i = 0; i < r->nr_steps; i++)
    if (r->step[i].from == STEP_CELL) {
      r->step[i].from = STEP_DONE;
      cell_put (a, r->step[i].cell);
    }
}

/* Retry a failed pread with an operation, which decodes if it fails again,
 * and repairs.
 */
bool
read_look (struct array *a, struct request *r)
{
  bool failed = false;

  put_copied (a, r);
  if (r->reads.pending > 0)
    return false;
  for (unsigned i = 0; i < r->nr_steps; i++)
    if (r->step[i].from == STEP_SEAT && r->step[i].error) {
      seat_step_failed (a, &r->step[i]);
      failed = true;
    }
  if (!failed)
    return true;
  steps_put (a, r->step, r->nr_steps);
  r->all_ops = true;
  r->phase = R_START;
  return false;
}

void
read_commit (struct array *a, struct request *r)
{
  const int error = steps_put (a, r->step, r->nr_steps);

  if (error == ECANCELED)
    r->batch_end = r->pos;
  else
    r->error = error;
  r->all_ops = false;
}
