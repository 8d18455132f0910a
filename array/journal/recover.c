/* gpuraid: recovery from the journal: carrying it out.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>

#include "array/cache/cache.h"
#include "array/dirty/dirty.h"
#include "array/engine/place.h"
#include "array/engine/state.h"
#include "array/health/fail.h"
#include "array/health/lost.h"
#include "array/io/flush.h"
#include "array/io/superblock.h"
#include "array/io/xfer.h"
#include "array/journal/internal.h"
#include "array/journal/recover.h"
#include "array/journal/relog.h"
#include "array/ops/ops.h"
#include "array/replay/internal.h"
#include "array/seats/seat.h"
#include "common/plant.h"

#define MAX_IN_FLIGHT 256u

/* ---- deciding ------------------------------------------------------------ */

/* Where members that are behind may have old records; NULL: no memory, which is
 * reported.
 */
static uint64_t *
find_missed (const struct array *a)
{
  uint64_t *missed = calloc (a->nr_regions / 64 + 1, sizeof *missed);

  for (uint64_t r = 0; missed && r < a->nr_regions; r++)
    if (dirty_is_missed (a, r * a->sb.l.region_len))
      missed[r / 64] |= BIT (r % 64);
  if (missed == NULL)
    log_error ("calloc: %m");
  return missed;
}

int
recover_begin (struct array *a)
{
  list_init (&a->journal->carry.waiter.link);
  return recover_init (a, find_missed);
}

static void
free_recovery (struct array *a)
{
  struct recovery *rec = a->recovery;

  if (rec == NULL)
    return;
  for (unsigned i = 0; i < MAX_SEATS; i++)
    if (rec->has_ring[i])
      ring_contents_free (&rec->ring[i]);
  replay_free (&rec->replay);
  relog_free (a->journal->carry.relog);
  a->journal->carry.relog = NULL;
  free (rec->bad);
  free (rec->missed);
  free (rec);
  a->recovery = NULL;
}

void
recover_free (struct array *a)
{
  free_recovery (a);
}

/* For other members than it was decided for.  What was read of these rows may
 * be of a transaction that is dropped now; so it is not cached meanwhile
 * (array/ops/read.c).
 */
static bool
decide_again (struct array *a, struct recovery *rec)
{
  struct carry *c = &a->journal->carry;
  bool may_go_on = false;

  relog_free (c->relog);
  c->relog = NULL;
  rec->phase = DECIDED;
  c->next_run = 0;
  switch (recover_decide_now (a, rec)) {
  case RECOVER_NO_MEMORY:
    return false;               /* the next turn tries again */
  case RECOVER_FORGETS:
    log_error ("the journal lacks transactions: a member that had them was "
               "lost before they were in place");
    break;
  case RECOVER_DECIDED:
    may_go_on = recover_is_sound (a, &rec->replay) || a->force;
  }
  if (!may_go_on && !a->readonly) {
    array_set_failed (a, "its journal can't be recovered");
    return false;
  }
  return true;
}

/* Of a lost run, rows [row, end) of one line: list the slots whose content is
 * not known, and those whose target may have older content.
 */
static void
list_lost (struct array *a, struct carry *c, const struct replay_run *run,
           uint64_t row, uint64_t end)
{
  const uint64_t no = line_of_row (a, row);
  uint64_t roles = 0;

  FOR_EACH_BIT (slot, run->changed | run->erased)
    if (run->source[slot].kind == REPLAY_ERASED ||
        (run->source[slot].kind == REPLAY_IN_PLACE && a->at[slot][0]))
      roles |= BIT (line_role (a, no, slot));
  if (a->sums == NULL &&
      !lost_add (a, no, roles, block_mask (row % a->cell_blocks, end - row)))
    c->nr_unlisted += end - row;
}

static void
miss_rows (struct array *a, const struct recovery *rec)
{
  for (unsigned i = 0; i < rec->replay.nr_runs; i++) {
    const struct replay_run *run = &rec->replay.run[i];
    const uint64_t last = (run->first + run->nr) * BLOCK_LEN - 1;

    for (uint64_t r = run->first * BLOCK_LEN / a->sb.l.region_len;
         r <= last / a->sb.l.region_len; r++)
      dirty_miss (a, r);
  }
}

/* What a slot that is not active misses. */
static bool
mark_missed (struct array *a, struct recovery *rec)
{
  struct carry *c = &a->journal->carry;

  if (a->lost_slots == 0 || PLANTED ("recover-not-missed"))
    return true;
  miss_rows (a, rec);
  return dirty_all_stored (a, &c->waiter);
}

void
recover_miss (struct array *a)
{
  struct carry *c = &a->journal->carry;
  const uint64_t epoch = a->membership.cur.self.ballot.epoch;
  struct recovery *rec = a->recovery;

  if (rec == NULL || rec->phase < PLACE || c->missed_epoch == epoch ||
      PLANTED ("recover-missed-leave"))
    return;
  c->missed_epoch = epoch;
  miss_rows (a, rec);
}

static void
wake (struct array *a, struct waiter *w)
{
}

static void
flushed (struct array *a, struct waiter *w)
{
  struct carry *c = list_item (w, struct carry, waiter);

  c->waiting = false;
  a->recovery->phase++;
}

/* Goes on to the next phase. */
static void
flush (struct array *a)
{
  struct carry *c = &a->journal->carry;

  if (c->waiting)
    return;
  c->waiting = true;
  c->waiter.run = flushed;
  flush_members (a, &c->waiter);
}

static void
line_done (struct array *a, const struct fixed *f)
{
  struct carry *c = f->opaque;

  c->in_flight--;
  if (f->error)
    array_set_failed (a, "its journal can't be recovered");
}

static void
zero_done (struct array *a, struct xfer *x)
{
  struct carry *c = x->owner;

  if (x->error)
    seat_fail (a, x->seat, "zero", x->error);
  else
    x->seat->write_gen++;
  c->in_flight--;
}

/* Zeroes of all roles: a range on each member. */
static void
place_zeroes (struct array *a, struct carry *c, const struct replay_run *run)
{
  const uint64_t end = (run->first + run->nr) * BLOCK_LEN;

  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct seat *s = a->seat[i];

    if (s->m == NULL || !seat_writable_at (a, s, run->first * BLOCK_LEN))
      continue;
    for (uint64_t pos = run->first * BLOCK_LEN, len; pos < end; pos += len) {
      struct xfer *x = xfer_new (a, s, IO_ZERO, zero_done);

      len = layout_data_run (&a->sb.l, pos, end - pos);
      x->off = layout_data_off (&a->sb.l, pos);
      x->len = len;
      x->owner = c;
      x->may_be_hole = true;
      c->in_flight++;
      xfer_start (a, x);
    }
  }
}

/* With a checksum table its entries say it.  False: it waits. */
static bool
note_zeroes (struct array *a, struct carry *c, const struct replay_run *run)
{
  const uint64_t end = run->first + run->nr;
  uint64_t seq = 0;

  for (unsigned slot = 0; slot < a->n; slot++)
    seq = MAX (seq, run->source[slot].seq);
  c->waiter.run = wake;
  while (c->next_row < end) {
    const uint64_t upto = MIN (end, sums_pin_end (a, c->next_row));

    if (!sums_pin (a, &c->pin, c->next_row, upto - c->next_row,
                   LOW_BITS (a->n), &c->waiter))
      return false;
    sums_change_zero (a, &c->pin, c->next_row, upto - c->next_row, seq);
    sums_unpin (a, &c->pin);
    c->next_row = upto;
  }
  return true;
}

/* Is all of it zeroes? */
static bool
is_zero (const struct array *a, const struct replay_run *run)
{
  if (run->lost)
    return false;
  for (unsigned slot = 0; slot < a->n; slot++)
    if (run->source[slot].kind == REPLAY_RING ||
        run->source[slot].kind == REPLAY_DIRECT ||
        (run->source[slot].kind == REPLAY_IN_PLACE &&
         (run->changed & BIT (slot)) == 0))
      return false;
  return true;
}

/* Go on to the end of a line, or to zeroes, and list what is lost if that is
 * asked for.  The blocks of the line that are to be written.
 */
static uint16_t
walk_line (struct array *a, struct recovery *rec, unsigned *next_run,
           uint64_t *next_row, bool list)
{
  const uint64_t row0 = round_down (*next_row, a->cell_blocks);
  const uint64_t end = row0 + a->cell_blocks;
  uint16_t blocks = 0;

  while (*next_run < rec->replay.nr_runs) {
    const struct replay_run *run = &rec->replay.run[*next_run];
    const uint64_t row = MAX (*next_row, run->first);
    const uint64_t upto = MIN (end, run->first + run->nr);

    if (row >= end || is_zero (a, run))
      break;
    if (list && run->lost)
      list_lost (a, &a->journal->carry, run, row, upto);
    blocks |= block_mask (row - row0, upto - row);
    *next_row = upto;
    if (upto == run->first + run->nr)
      ++*next_run;
  }
  return blocks;
}

/* The rows from the next one on that lie in its line.  False: not now. */
static bool
place_line (struct array *a, struct recovery *rec)
{
  struct carry *c = &a->journal->carry;
  struct line *line = line_get (a, line_of_row (a, c->next_row));
  unsigned next_run = c->next_run;
  uint64_t next_row = c->next_row;

  if (line == NULL)
    return false;
  if (!op_may_write (a, line) ||
      !op_replay (a, line, walk_line (a, rec, &next_run, &next_row, false),
                  line_done, c)) {
    line_settle (a, line);
    return false;
  }
  c->in_flight++;
  (void) walk_line (a, rec, &c->next_run, &c->next_row, true);
  return true;
}

static bool
place_some (struct array *a, struct recovery *rec)
{
  struct carry *c = &a->journal->carry;

  while (c->next_run < rec->replay.nr_runs && c->in_flight < MAX_IN_FLIGHT) {
    const struct replay_run *run = &rec->replay.run[c->next_run];

    c->next_row = MAX (c->next_row, run->first);
    if (is_zero (a, run)) {
      if (a->sums && !note_zeroes (a, c, run))
        break;
      if (a->sums == NULL)
        place_zeroes (a, c, run);
      c->next_run++;
    }
    else if (!place_line (a, rec))
      break;
  }
  return c->next_run == rec->replay.nr_runs && c->in_flight == 0;
}

/* The rows of the line of the next run in which something is to be written
 * directly.
 */
static uint16_t
direct_rows (const struct array *a, const struct recovery *rec,
             uint64_t no, unsigned *end)
{
  const struct carry *c = &a->journal->carry;
  uint16_t blocks = 0;

  for (*end = c->next_run; *end < rec->replay.nr_runs; ++*end) {
    const struct replay_run *run = &rec->replay.run[*end];

    if (line_of_row (a, run->first) != no)
      break;
    if (recover_lacks_direct (a, run))
      blocks |= block_mask (run->first % a->cell_blocks, run->nr);
  }
  return blocks;
}

/* What the newest transaction was to write in place before it counts.  False:
 * it waits.
 */
static bool
write_direct (struct array *a, struct recovery *rec)
{
  struct carry *c = &a->journal->carry;

  while (c->next_run < rec->replay.nr_runs && c->in_flight < MAX_IN_FLIGHT) {
    const uint64_t no = line_of_row (a, rec->replay.run[c->next_run].first);
    unsigned end;
    const uint16_t blocks = direct_rows (a, rec, no, &end);
    struct line *line = blocks ? line_get (a, no) : NULL;

    if (blocks && line == NULL)
      break;
    if (blocks && (!op_may_write (a, line) ||
                   !op_replay (a, line, blocks, line_done, c))) {
      line_settle (a, line);
      break;
    }
    c->in_flight += blocks != 0;
    c->next_run = end;
  }
  return c->next_run == rec->replay.nr_runs && c->in_flight == 0;
}

/* The i-th entry of a row that a live transaction has moved; NULL: there are no
 * more.
 */
static const struct journal_entry *
moved_entry (const struct array *a, const struct recovery *rec, unsigned i)
{
  for (unsigned j = 0; j < a->nr_seats; j++)
    for (unsigned n = 0; rec->has_ring[j] && n < rec->ring[j].nr_records;
         n++) {
      const struct journal_record *r = &rec->ring[j].record[n].r;

      if (r->move_rows == 0 || r->seq < rec->replay.tail)
        continue;
      if (i < r->nr_entries)
        return &r->entry[i];
      i -= r->nr_entries;
    }
  return NULL;
}

/* A place of a page may be bad, as the power failed while it was stored; and
 * all that says what it lacks may be records of rows that were moved directly,
 * which nothing else reads.  The fresh headers end that, so such pages are
 * loaded now, and what is bad will be stored anew (W10).  False: it waits.
 */
static bool
load_moved (struct array *a, struct recovery *rec)
{
  struct carry *c = &a->journal->carry;
  const struct journal_entry *e;

  while (a->sums && a->g.widening &&
         (e = moved_entry (a, rec, c->next_run)) != NULL) {
    if (!sums_pin (a, &c->pin, e->first_block, e->nr_blocks, LOW_BITS (a->n),
                   &c->waiter))
      return false;
    sums_unpin (a, &c->pin);
    c->next_run++;
    if (sums_any_doubtful (a)) {
      list_move (&a->pause_waiters, &c->waiter.link);
      return false;
    }
  }
  return true;
}

void
recover_give_up (struct array *a)
{
  if (a->recovery)
    relog_give_up (a, a->journal->carry.relog);
}

/* Until all of the newest transaction is logged again, the loss of a member
 * leads back to the decision.  Also while the array is not writable.
 */
void
recover_decide (struct array *a)
{
  struct carry *c = &a->journal->carry;

  if (a->failed || !recover_is_outdated (a))
    return;
  relog_give_up (a, c->relog);
  if (relog_is_idle (c->relog) && !c->waiting && c->in_flight == 0)
    (void) decide_again (a, a->recovery);
}

/* What the newest transaction lacks is logged again.  False: it waits. */
static bool
log_again (struct array *a, struct recovery *rec)
{
  struct carry *c = &a->journal->carry;

  if (c->relog == NULL)
    c->relog = relog_new (a, &rec->replay, rec->ring, rec->has_ring);
  return c->relog && relog_step (a, c->relog);
}

/* Is some block of the newest transaction missing on a member that is there? */
static bool
lacks_some (const struct replay *r)
{
  if (r->incomplete)
    return true;
  for (unsigned i = 0; i < r->nr_runs; i++)
    if (r->run[i].newest && r->run[i].erased)
      return true;
  return false;
}

/* What is done in a phase.  False: it waits. */
static bool
work (struct array *a, struct recovery *rec)
{
  struct carry *c = &a->journal->carry;

  switch (rec->phase) {
  case DECIDED:
    return true;
  case DIRECT:
    return PLANTED ("recover-no-direct") || write_direct (a, rec);
  case RELOG:
    return log_again (a, rec);
  case MARK:
    c->waiter.run = wake;
    return mark_missed (a, rec);
  case PLACE:
    return place_some (a, rec);
  case PAGES:
    c->waiter.run = wake;
    return PLANTED ("widen-torn-left") || load_moved (a, rec);
  case LIST:
    c->waiter.run = wake;
    return save_wanted (a, &c->waiter);
  case STORE:
    return sums_store_all (a);
  case RELOG_FLUSH:
  case PLACE_FLUSH:
    flush (a);                  /* it begins the next phase */
    return false;
  case PLACED:
    break;
  }
  return false;
}

static void
begin_next (struct array *a, struct recovery *rec)
{
  struct carry *c = &a->journal->carry;

  switch (rec->phase) {
  case DECIDED:
    rec->phase = lacks_some (&rec->replay) && !PLANTED ("recover-no-relog") ?
      DIRECT : MARK;
    break;
  case DIRECT:
    c->next_run = 0;
    rec->phase = RELOG;
    break;
  case RELOG:
    rec->phase = PLANTED ("recover-relog-unflushed") ? MARK : RELOG_FLUSH;
    break;
  case MARK:
    rec->phase = PLACE;
    sums_may_store (a);
    break;
  case PLACE:
    if (c->nr_unlisted > 0)
      log_notice ("%" PRIu64 " rows are lost, and can't be listed: there are "
                  "too many", c->nr_unlisted);
    rec->phase = PAGES;
    c->next_run = 0;
    break;
  case PAGES:
    rec->phase = LIST;
    break;
  case LIST:
    rec->phase = STORE;
    break;
  case STORE:
    rec->phase = PLANTED ("recover-unflushed") ? PLACED : PLACE_FLUSH;
    break;
  case RELOG_FLUSH: case PLACE_FLUSH: case PLACED:
    break;
  }
}

static void
report (const struct array *a, const struct recovery *rec)
{
  const struct replay *r = &rec->replay;
  const uint64_t ms =
    (engine_now (a) - a->journal->carry.since) / 1000000;
  uint64_t nr = 0;

  for (unsigned i = 0; i < r->nr_runs; i++)
    nr += r->run[i].nr;
  if (nr > 0)
    log_notice ("what the journal had of %" PRIu64 " rows is in place, after "
                "%" PRIu64 ".%03u s", nr, ms / 1000, (unsigned) (ms % 1000));
}

bool
recover_step (struct array *a)
{
  struct carry *c = &a->journal->carry;
  struct recovery *rec = a->recovery;

  if (rec == NULL)
    return true;
  if (recover_is_outdated (a))
    return false;
  if (c->since == 0)
    c->since = engine_now (a);
  while (work (a, rec))
    begin_next (a, rec);
  /* A ring is not overwritten while something reads from it. */
  if (rec->phase != PLACED || op_any_reads_journal (a))
    return false;
  report (a, rec);
  free_recovery (a);
  return true;
}
