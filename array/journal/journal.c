/* gpuraid: consistency=journal: what becomes of a transaction when it has
 * begun (array/journal/begin.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdlib.h>

#include "array/cache/ticket.h"
#include "array/dirty/dirty.h"
#include "array/engine/state.h"
#include "array/io/flush.h"
#include "array/journal/headers.h"
#include "array/journal/internal.h"
#include "array/journal/journal.h"
#include "array/journal/recover.h"
#include "array/journal/withdraw.h"
#include "array/ops/logged.h"
#include "array/replay/recovery.h"
#include "array/seats/seat.h"
#include "array/sums/sums.h"
#include "common/plant.h"

/* Space is freed when a transaction has waited this long for it. */
#define IDLE_NS UINT64_C (1000000000)

/* Too little can be read of all its rows. */
static bool
writes_nothing (const struct array *a, const struct logged *lg)
{
  for (unsigned i = 0; i < op_nr_rects (lg->op); i++)
    if (op_logged_rect (a, lg->op, i).write)
      return false;
  return !lg->zeroes;
}

/* A transaction without a record would be missed in a recovery. */
static void
journal_write (struct array *a, struct logged *lg)
{
  if (writes_nothing (a, lg))
    op_write_in_place (a, lg->op);
  else
    list_append (&a->journal->gathered, &lg->link);
}

/* ---- R1 --------------------------------------------------------------- */

static void
fail_ops (struct array *a, struct list *ops)
{
  struct list *l;

  while ((l = list_pop (ops)) != NULL) {
    struct logged *lg = list_item (l, struct logged, link);

    lg->txn = NULL;
    op_log_failed (a, lg->op);
  }
}

/* One of its operations is in place, or will be anew. */
static void
has_one_less (struct array *a, struct txn *t)
{
  if (--t->nr_ops > 0)
    return;
  t->phase = a->sums ? TXN_IN_PLACE : TXN_STORED;
  t->flush_gen = a->flush_gen;
  t->since = engine_now (a);
}

static void
op_left (struct array *a, struct txn *t, struct logged *lg)
{
  list_remove (&lg->link);
  lg->txn = NULL;
  has_one_less (a, t);
}

/* It goes to the next transaction; and when that has zeroed its rows, it is
 * written anew.  Till then the one in which it was direct is not freed: some of
 * these rows is in place.
 */
static void
withdrawn_flushed (struct array *a, struct txn *t, struct logged *lg)
{
  const bool early = PLANTED ("withdrawn-freed-early");

  if (lg->withdrawn == t) {
    list_move (&a->journal->gathered, &lg->link);
    lg->txn = NULL;
    lg->direct = false;
    if (early)
      has_one_less (a, t);
    return;
  }
  op_note_sums (a, lg->op, t->seq);
  op_left (a, t, lg);
  if (!early)
    has_one_less (a, lg->withdrawn);
  lg->withdrawn = NULL;
  list_append (&a->journal->gathered, &lg->link);
  journal_plan_anew (a, lg);
}

/* The flush has ended, and where a member failed in it the record without
 * it is in force.
 */
static void
txn_flushed (struct array *a, struct waiter *w)
{
  struct txn *t = list_item (w, struct txn, waiter);

  a->journal->committing = NULL;
  if (a->failed) {
    fail_ops (a, &t->ops);
    return;
  }
  t->phase = TXN_LOGGED;
  txn_logged (t);
  if (PLANTED ("zeroed-until-logged"))
    zeroed_remove (&a->journal->zeroed, t->zeroed, t->nr_zeroed);
  list_for_each (l, &t->ops) {
    struct logged *lg = list_item (l, struct logged, link);

    if (lg->withdrawn) {
      withdrawn_flushed (a, t, lg);
      continue;
    }
    op_stage_end (a, lg->op, &a->stages.flushed);
    op_note_sums (a, lg->op, t->seq);
    op_log_ended (a, lg->op);
  }
}

static void
records_written (struct array *a, struct txn *t)
{
  t->waiter.run = txn_flushed;
  t->phase = TXN_FLUSHING;
  list_for_each (l, &t->ops) {
    struct op *op = list_item (l, struct logged, link)->op;

    op_stage_end (a, op, &a->stages.records);
    if (PLANTED ("sums-before-logged"))
      op_note_sums (a, op, t->seq);
  }
  if (PLANTED ("journal-unflushed"))
    list_move (&a->engine.ready, &t->waiter.link);
  else
    flush_members (a, &t->waiter);
}

/* ---- in place, and freed ------------------------------------------------- */

static void
journal_written (struct array *a, struct logged *lg)
{
  if (lg->txn)                  /* else it is a fix */
    op_left (a, lg->txn, lg);
}

static void
nothing (struct array *a, struct waiter *w)
{
}

static bool
is_flushed (const struct array *a, const struct txn *t)
{
  return t->phase == TXN_STORED &&
    (a->flushed_gen > t->flush_gen || PLANTED ("journal-freed-unflushed"));
}

/* Half of some ring is in use, or would be if nothing were written directly: a
 * recovery has to look at that, too.
 */
static bool
is_half_full (const struct array *a, const struct journal *j)
{
  if (j->nr_direct > a->sb.l.ring_len / BLOCK_LEN / 2)
    return true;
  for (unsigned i = 0; i < a->nr_seats; i++) {
    const struct seat *s = a->seat[i];

    if (s->state == SEAT_ACTIVE && s->m && !s->failing &&
        ring_used (&s->ring) > s->ring.nr_blocks / 2)
      return true;
  }
  return false;
}

/* A header is to move the frontier. */
static bool
window_is_placed (const struct array *a)
{
  return a->moving.placed && a->moving.end > a->g.frontier;
}

/* What is freed now, and was before, has all of the window: W6. */
static bool
frees_window (const struct array *a, const struct journal *j)
{
  if (!window_is_placed (a))
    return false;
  list_for_each (l, &j->live)
    if (txn_at (l)->moves && !txn_at (l)->freeing)
      return PLANTED ("widen-frontier-early");
  return true;
}

static bool
wants_space (struct array *a, const struct journal *j)
{
  return !PLANTED ("journal-never-freed") &&
    (j->full || a->stopping || journal_is_held (a) || is_half_full (a, j) ||
     window_is_placed (a) || engine_now (a) - j->last_commit > IDLE_NS);
}

/* The headers are durable on all active members (R4). */
static void
freed (struct array *a, struct waiter *w)
{
  struct journal *j = list_item (w, struct journal, free_waiter);

  if (!change_is_over (a, &j->free_waiter))
    return;
  j->freeing = j->full = false;
  if (a->failed)
    return;
  a->g.frontier = j->frontier;
  ring_headers_take (a);
  list_for_each (l, &j->live) {
    struct txn *t = txn_at (l);

    if (!t->freeing)
      break;
    list_remove (&t->link);
    if (!PLANTED ("zeroed-until-logged"))
      zeroed_remove (&j->zeroed, t->zeroed, t->nr_zeroed);
    j->nr_direct -= txn_direct_blocks (t);
    stage_end (a, &a->stages.freed, &t->since);
    txn_free (t);
  }
}

/* The pages of the checksum table follow what is in place. */
static void
store_sums (struct array *a, struct journal *j)
{
  const uint64_t oldest = sums_oldest (a);
  uint64_t seq = 0;

  list_for_each (l, &j->live) {
    struct txn *t = txn_at (l);

    if (t->phase < TXN_IN_PLACE)
      break;
    if (t->phase == TXN_STORED)
      continue;
    if (oldest > t->seq || PLANTED ("sums-not-stored")) {
      t->phase = TXN_STORED;
      t->flush_gen = a->flush_gen;
    }
    else
      seq = t->seq;
  }
  if (seq)
    sums_store (a, seq);
}

/* Free what is in place and flushed, from the oldest on, if space is wanted;
 * or flush it first.
 */
static void
free_some (struct array *a, struct journal *j)
{
  const struct txn *stays = NULL;
  bool any = false, moves;

  if (j->freeing || (list_empty (&j->live) && !window_is_placed (a)) ||
      !wants_space (a, j) || !change_is_over (a, NULL))
    return;
  if (a->sums)
    store_sums (a, j);
  list_for_each (l, &j->live) {
    struct txn *t = txn_at (l);

    t->freeing = is_flushed (a, t);
    if (!t->freeing) {
      stays = t;
      break;
    }
    any = true;
  }
  moves = frees_window (a, j);
  if (any || moves) {
    j->freeing = true;
    j->frontier = moves ? a->moving.end : a->g.frontier;
    ring_headers_write (a, j->session, &j->live, stays, j->next_seq,
                        j->frontier, &j->free_waiter);
    if (PLANTED ("journal-reused-early"))
      ring_headers_take (a);
  }
  else if (stays->phase == TXN_STORED && list_empty (&j->flush_waiter.link))
    flush_members (a, &j->flush_waiter);
}

/* ---- the rings ----------------------------------------------------------- */

static void
rings_begun (struct array *a, struct journal *j)
{
  j->ready = true;
  sums_may_store (a);
  engine_run_waiters (a, &j->ready_waiters);
  engine_run_waiters (a, &a->zero_waiters);
}

static bool
is_active (const struct seat *s)
{
  return s->state == SEAT_ACTIVE;
}

static bool
is_complete (const struct seat *s)
{
  return s->state == SEAT_TARGET && s->complete;
}

/* One at a time (R5). */
static bool
may_commit (const struct journal *j)
{
  return j->committing == NULL ||
    (PLANTED ("journal-two-commits") && j->committing->phase == TXN_FLUSHING);
}

static void
journal_turn (struct array *a)
{
  struct journal *j = a->journal;

  if (a->failed) {
    fail_ops (a, &j->gathered);
    recover_give_up (a);
    engine_run_waiters (a, &j->ready_waiters);
    if (!j->ready)
      engine_run_waiters (a, &a->zero_waiters);
    return;
  }
  if (!j->ready) {
    recover_decide (a);
    j->next_seq = MAX (j->next_seq, recover_next_seq (a));
    a->newest_seq = j->next_seq - 1;
    if (!array_may_write (a) &&
        !(a->opening && PLANTED ("member-writes-first")))
      return;
    j->session = a->membership.cur.self.ballot.session;
    if (recover_step (a) &&
        ring_headers_begin (a, is_active, j->session, j->next_seq))
      rings_begun (a, j);
    if (!j->ready)
      return;
  }
  /* A change of the shape was refused meanwhile: a recovery would look for
   * records where the older headers say.
   */
  if (ring_headers_begin_active (a))
    return;
  if (may_commit (j) && array_may_write (a) && journal_may_begin (a, j))
    journal_begin (a, j, records_written);
  free_some (a, j);
  if (a->stopping && a->sums && list_empty (&j->live))
    (void) sums_store_all (a);
}

/* ---- what others ask ----------------------------------------------------- */

static bool
journal_is_marked (struct array *a, uint64_t pos, uint64_t len,
                   struct waiter *w)
{
  if (!a->journal->ready) {
    list_move (&a->journal->ready_waiters, &w->link);
    return false;
  }
  return a->lost_slots == 0 || PLANTED ("journal-missed-write") ||
    dirty_mark (a, pos, len, w);
}

/* What has ended for its client is durable since R1. */
static void
journal_flush (struct array *a, struct waiter *w)
{
  list_move (&a->engine.ready, &w->link);
}

/* Asked several times in each change of the record.  A bit is only cleared at
 * the end of one.
 */
static bool
any_behind (const struct array *a)
{
  for (unsigned i = 0; i < a->nr_seats && a->sums; i++)
    if (a->seat[i]->behind)
      return !PLANTED ("behind-ring-unmarked");
  return false;
}

static bool
journal_may_open (struct array *a, struct waiter *w)
{
  struct journal *j = a->journal;

  if (!any_behind (a))
    return true;
  if (!j->behind_marked) {
    j->behind_marked = true;
    ring_headers_mark_behind (a, w);
    return false;
  }
  return a->ring_headers == 0;
}

static bool
journal_may_leave (struct array *a, struct waiter *w)
{
  const uint64_t epoch = a->membership.cur.self.ballot.epoch;

  list_for_each (l, &a->journal->live) {
    struct txn *t = txn_at (l);

    if (PLANTED ("journal-missed-leave"))
      break;
    if (t->missed_epoch == epoch)
      continue;
    t->missed_epoch = epoch;
    for (unsigned i = 0; i < t->nr_regions; i++)
      for (uint64_t r = t->regions[i].first; r <= t->regions[i].last; r++)
        dirty_miss (a, r);
  }
  recover_miss (a);
  return dirty_all_stored (a, w);
}

static bool
journal_may_join (struct array *a, struct seat *s, struct waiter *w)
{
  return ring_allocate (a, s, w) && dirty_store_all (a, s, w);
}

static bool
journal_may_activate (struct array *a)
{
  struct journal *j = a->journal;

  return ((list_empty (&j->live) && !j->freeing) ||
          PLANTED ("journal-not-held")) &&
    (PLANTED ("ring-not-begun") ||
     ring_headers_begin (a, is_complete, j->session, j->next_seq));
}

static bool
is_anew (const struct seat *s)
{
  return s->state == SEAT_ACTIVE || s == s->a->journal->also;
}

static void
journal_begin_anew (struct array *a, struct seat *also)
{
  a->journal->also = also;
  for (unsigned i = 0; i < a->nr_seats; i++)
    if (is_anew (a->seat[i]))
      a->seat[i]->ring_state = RING_UNKNOWN;
}

static bool
journal_has_begun (struct array *a)
{
  const struct journal *j = a->journal;

  return ring_headers_begin (a, is_anew, j->session, j->next_seq);
}

static bool
journal_is_ready (const struct array *a)
{
  return a->journal->ready;
}

/* No transaction begins before what the last one writes directly is there.  A
 * change of the shape holds them for a while only (array/change/shape.c).
 */
static bool
journal_is_stuck (const struct array *a)
{
  const struct txn *t = a->journal->committing;

  return !a->journal->ready || a->journal->full ||
    ring_headers_begin_active (a) || journal_waits_to_join (a) ||
    (t && t->any_direct && t->phase == TXN_WRITING);
}

static bool
journal_is_idle (const struct array *a)
{
  const struct journal *j = a->journal;

  return a->failed ||
    (list_empty (&j->live) && list_empty (&j->gathered) && !j->freeing &&
     (sums_oldest (a) == UINT64_MAX || !a->writable));
}

static bool
journal_gives_way (const struct array *a, const struct logged *lg)
{
  return lg->txn == NULL && !lg->withdrawn && !PLANTED ("zero-waits");
}

static void
journal_no_space (struct array *a)
{
  struct txn *t = a->journal->committing;

  if (t && withdraw_is_due (a, t) && !PLANTED ("direct-not-withdrawn"))
    withdraw (a, t);
}

static int
journal_init (struct array *a, const struct config *c,
              const struct assembly *as)
{
  struct journal *j = calloc (1, sizeof *j);

  if (j == NULL)
    return -1;
  a->journal = j;
  list_init (&a->ring_waiters);
  list_init (&j->gathered);
  list_init (&j->live);
  list_init (&j->ready_waiters);
  list_init (&j->flush_waiter.link);
  list_init (&j->free_waiter.link);
  j->flush_waiter.run = nothing;
  j->free_waiter.run = freed;
  zeroed_init (&j->zeroed, limits.table_page_entries);
  j->next_seq = 1;
  return 0;
}

static void
journal_free (struct array *a)
{
  struct list *l;

  recover_free (a);
  if (a->journal == NULL)
    return;
  while ((l = list_pop (&a->journal->live)) != NULL)
    txn_free (txn_at (l));
  free (a->journal);
}

const struct consistency_ops consistency_journal = {
  .name = "journal",
  .wants_crc = true,
  .begin = dirty_begin,
  .is_marked = journal_is_marked,
  .end = dirty_end,
  .write = journal_write,
  .written = journal_written,
  .flush = journal_flush,
  .may_open = journal_may_open,
  .may_leave = journal_may_leave,
  .may_join = journal_may_join,
  .may_activate = journal_may_activate,
  .begin_anew = journal_begin_anew,
  .has_begun = journal_has_begun,
  .may_close = sums_may_close,
  .turn = journal_turn,
  .is_ready = journal_is_ready,
  .is_stuck = journal_is_stuck,
  .gives_way = journal_gives_way,
  .no_space = journal_no_space,
  .is_idle = journal_is_idle,
};

/* ---- the room, with and without a journal -------------------------------- */

static void
consistency_turn (struct array *a)
{
  a->consistency->turn (a);
}

static bool
consistency_is_busy (const struct array *a)
{
  return !a->consistency->is_idle (a);
}

static bool
consistency_wants_tick (const struct array *a)
{
  return consistency_is_busy (a) ||
    (a->writable && !a->consistency->is_ready (a));
}

const struct room room_journal = {
  .init = journal_init, .free = journal_free, .turn = consistency_turn,
  .wants_tick = consistency_wants_tick, .is_busy = consistency_is_busy,
};
