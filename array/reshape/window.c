/* gpuraid: windows of rows that move: which is next, and what it waits for.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdlib.h>

#include "array/cache/cache.h"
#include "array/change/hold.h"
#include "array/change/shape.h"
#include "array/engine/consistency.h"
#include "array/engine/place.h"
#include "array/engine/state.h"
#include "array/health/lost.h"
#include "array/io/flush.h"
#include "array/ops/ops.h"
#include "array/passes/pace.h"
#include "array/reshape/internal.h"
#include "array/reshape/reshape.h"
#include "common/plant.h"

/* What can't be read is tried again this often. */
#define AGAIN_NS UINT64_C (5000000000)
/* And what finds no space. */
#define SPACE_AGAIN_NS UINT64_C (60000000000)

/* All else is held for no longer, and not again before. */
#define HELD_MAX_NS UINT64_C (10000000000)
#define REST_NS UINT64_C (1000000000)

#define MAX_IN_FLIGHT 64u               /* lines */

static void
nothing (struct array *a, struct waiter *w)
{
}

static int
reshape_init (struct array *a, const struct config *c,
              const struct assembly *as)
{
  a->reshape = calloc (1, sizeof *a->reshape);
  if (a->reshape == NULL)
    return -1;
  list_init (&a->reshape->moves);
  list_init (&a->reshape->waiter.link);
  a->reshape->waiter.run = nothing;
  list_init (&a->moving.waiters);
  return 0;
}

static void
reshape_free (struct array *a)
{
  struct list *l;

  if (a->reshape == NULL)
    return;
  while ((l = list_pop (&a->reshape->moves)) != NULL)
    free (list_item (l, struct move, link));
  free (a->reshape);
}

/* ---- a window begins ----------------------------------------------------- */

/* Every slot is active, there is no target, and no change of the record (W11).
 * A resync is over: it makes parity anew in all rows, also dead ones.  It is
 * not for long that a client, a stop or a command waits for a window.
 */
static bool
may_begin (struct array *a)
{
  return array_may_write (a) && !a->stopping && !a->sb.paused &&
    a->consistency->is_ready (a) && !shape_is_busy (a) &&
    (a->irregular_slots == 0 || PLANTED ("widen-degraded")) &&
    a->nr_unsynced == 0 &&
    !a->ops_held && engine_now (a) >= a->reshape->not_before;
}

/* What clients write there waits: to whole new stripes. */
static void
keep_writers_out (struct array *a, const struct reshape_window *w)
{
  const uint64_t rows = a->g.chunk / BLOCK_LEN;
  const uint64_t len = (uint64_t) a->g.k * a->g.chunk;

  if (PLANTED ("widen-writers-in"))
    return;
  a->moving.from = w->first / rows * len;
  a->moving.to = div_round_up (w->end, rows) * len;
}

/* Clients wait for all of a window, so once it has begun the pace does not hold
 * it back: it has what may move in a second.  It ends before the line that
 * could not be moved, which is tried alone: the rows before it move once.
 */
static uint64_t
most_rows (const struct array *a, const struct reshape *r)
{
  const uint64_t limit = a->pace->limit;
  const uint64_t len = limit ? MIN (limit, a->window_len) : a->window_len;
  const uint64_t good = r->stopped && !PLANTED ("widen-stop-repeated") ?
    line_row (a, r->bad_no) - a->g.frontier : UINT64_MAX;

  return MAX (MIN (len / BLOCK_LEN, good), a->cell_blocks);
}

static void
begin (struct array *a, struct reshape *r)
{
  r->window = reshape_next (&a->g, a->sb.l.data_len / BLOCK_LEN,
                            most_rows (a, r), a->cell_blocks);
  if (r->window.kind == RESHAPE_ENDED) {
    shape_end_widening (a);
    return;
  }
  keep_writers_out (a, &r->window);
  a->moving.alone = r->window.kind == RESHAPE_JOURNALED;
  r->error = 0;
  r->next = line_of_row (a, r->window.first);
  r->row = r->window.first;
  r->stored_gen = 0;
  r->phase = WINDOW_PAGES;
}

/* ---- what it waits for --------------------------------------------------- */

/* The new member's pages of the checksum table are as those of the others
 * (W2): not zeroes where theirs were written.  False: it waits.
 */
static bool
pages_are_ready (struct array *a, struct reshape *r)
{
  const unsigned slot = a->n - 1;

  while (a->sums && r->row < r->window.end) {
    const uint64_t end = MIN (r->window.end, sums_pin_end (a, r->row));

    if (!sums_pin (a, &r->pin, r->row, end - r->row, LOW_BITS (a->n),
                   &r->waiter) ||
        !sums_has_own_page (a, &r->pin, slot, &r->waiter))
      return false;
    sums_unpin (a, &r->pin);
    r->row = end;
  }
  if (a->sums == NULL)
    return true;
  if (r->stored_gen == 0)
    r->stored_gen = a->flush_gen;
  if (a->flushed_gen > r->stored_gen)
    return true;
  if (list_empty (&r->waiter.link))
    flush_members (a, &r->waiter);
  return false;
}

/* Zeroes that began before writers had to wait are still on their way to old
 * rows of this window's chunks.
 */
static bool
zeroes_have_ended (const struct array *a)
{
  const uint64_t stripe = (uint64_t) (a->g.k - 1) * a->g.chunk;

  return !op_zeroes (a, a->moving.from / stripe * a->nr_bands,
                     div_round_up (a->moving.to, stripe) * a->nr_bands);
}

/* Nothing uses the lines of its rows, of when they were not dead. */
static bool
lines_are_idle (struct array *a, struct reshape *r)
{
  const uint64_t end = line_of_row (a, r->window.end);

  for (uint64_t no = line_of_row (a, r->window.first); no < end; no++) {
    struct line *line = line_find (a, no);

    if (line && (line->op || line->readers || line->pins)) {
      list_move (&line->waiters, &r->waiter.link);
      return false;
    }
  }
  return true;
}

/* One after the other, as clients take each that they can get.  Not before
 * another line has all of its own.  False: it waits.
 */
static bool
has_cells (struct array *a, struct reshape *r)
{
  if (line_cells_get (a, r->cell, &r->nr_cells))
    return true;
  list_move (&a->cell_waiters, &r->waiter.link);
  return false;
}

/* False: it waits. */
static bool
is_clear (struct array *a, struct reshape *r)
{
  if (!zeroes_have_ended (a)) {
    list_move (&a->zero_waiters, &r->waiter.link);
    return false;
  }
  if (a->moving.alone)
    return move_sources_are_clean (a, r->next, &r->waiter) &&
      has_cells (a, r);
  return lines_are_idle (a, r);
}

/* ---- it moves ------------------------------------------------------------ */

static unsigned
most_in_flight (const struct array *a)
{
  return MAX (1, MIN (a->max_held / (4 * a->g.k), MAX_IN_FLIGHT));
}

/* It is set to zeroes as far as this.  Nowhere if a block of the next line is
 * lost: only what is written out is good again.
 */
static uint64_t
zeroes_end (const struct array *a, const struct reshape *r)
{
  const uint64_t end = line_of_row (a, r->window.end);

  if (r->window.kind != RESHAPE_CLEARED)
    return r->next;
  if (a->sums == NULL)
    return lost_next_line (a, r->next, end);
  return lost_next_line
    (a, r->next,
     MIN (end, MAX (line_of_row (a, sums_pin_end (a, line_row (a, r->next))),
                    r->next + 1)));
}

static void
move_ended (struct array *a, const struct move *mv)
{
  struct reshape *r = a->reshape;

  r->in_flight--;
  pace_ended (a, r->in_flight);
  rate_note (&r->rate, engine_now (a), line_pos (a, mv->no));
  if (mv->error == ECANCELED)
    r->error = r->error ? r->error : ECANCELED;
  else if (mv->error && (r->error == 0 || r->error == ECANCELED ||
                         mv->no < r->bad_no)) {
    r->error = mv->error;
    r->bad_no = mv->no;
  }
}

static void
move_some (struct array *a, struct reshape *r)
{
  while (line_row (a, r->next) < r->window.end && r->error == 0 &&
         !a->stopping && r->in_flight < most_in_flight (a) &&
         array_may_write (a)) {
    const uint64_t zeroes = zeroes_end (a, r);
    const uint64_t end = MAX (zeroes, r->next + 1);

    if ((zeroes < end && !has_cells (a, r)) ||
        !move_begin (a, r->next, end, zeroes == end, move_ended))
      return;
    pace_begun (a);
    r->next = end;
  }
}

/* ---- it ends ------------------------------------------------------------- */

/* If the array has failed, what moves alone may have been written in part, over
 * rows that count: reads find it where it will be, in memory if not there.
 */
static void
end (struct array *a, struct reshape *r)
{
  if (a->moving.alone && a->ops_held)
    hold_end (a);
  if (r->pin.nr > 0)
    sums_unpin (a, &r->pin);
  line_cells_put (a, r->cell, r->nr_cells);
  r->nr_cells = 0;
  list_remove (&r->waiter.link);
  a->moving.placed = false;
  a->moving.from = a->moving.to = 0;
  if (!a->failed || !a->moving.alone || PLANTED ("widen-failed-back")) {
    a->moving.alone = false;
    a->moving.end = a->g.frontier;
  }
  r->phase = WINDOW_NONE;
  engine_run_waiters (a, &a->moving.waiters);
}

/* It is tried again. */
static void
stop (struct array *a, struct reshape *r)
{
  const bool no_space = r->error == ENOSPC;

  if (r->stopped != r->error && no_space)
    log_notice ("widening stops: a member has no space for stripe %" PRIu64
                ": it goes on when there is", line_stripe (a, r->bad_no));
  else if (r->stopped != r->error)
    log_notice ("widening stops: too little can be read of what belongs to "
                "stripe %" PRIu64 ": it goes on when that is written",
                line_stripe (a, r->bad_no));
  r->stopped = r->error;
  r->not_before = engine_now (a) + (no_space ? SPACE_AGAIN_NS : AGAIN_NS);
}

/* What was written of it lies in rows that are dead.  Where what a line has in
 * memory is of the new row, that is forgotten.
 */
static void
take_back (struct array *a, struct reshape *r)
{
  const uint64_t end_no = line_of_row (a, r->window.end);

  for (uint64_t no = line_of_row (a, r->window.first); no < end_no; no++) {
    struct line *line = line_find (a, no);

    if (line && line->is_clean)
      line_drop_clean (a, line);
  }
  if (r->error != ECANCELED)
    stop (a, r);
  end (a, r);
}

static void
move_window (struct array *a, struct reshape *r)
{
  move_some (a, r);
  if (r->in_flight > 0)
    return;
  if (r->error == 0 && line_row (a, r->next) < r->window.end && a->stopping)
    r->error = ECANCELED;
  if (r->error) {
    take_back (a, r);
    return;
  }
  if (line_row (a, r->next) < r->window.end)
    return;
  a->moving.placed = true;
  r->phase = WINDOW_PLACED;
}

/* ---- in each turn -------------------------------------------------------- */

/* True if the next phase has begun. */
static bool
go_on (struct array *a, struct reshape *r)
{
  const int phase = r->phase;

  switch (r->phase) {
  case WINDOW_NONE:
    if (may_begin (a) && pace_may_begin (a))
      begin (a, r);
    break;
  case WINDOW_PAGES:
    if (pages_are_ready (a, r))
      r->phase = WINDOW_CLEAR;
    break;
  case WINDOW_CLEAR:
    if (!is_clear (a, r))
      break;
    r->phase = a->moving.alone ? WINDOW_READ : WINDOW_MOVE;
    if (!a->moving.alone)
      a->moving.end = r->window.end;
    break;
  case WINDOW_READ:
    move_some (a, r);
    if (!move_is_read (a))
      break;
    r->phase = WINDOW_HOLD;
    r->held_since = engine_now (a);
    break;
  case WINDOW_HOLD:
    if (!hold_begin (a) || !hold_is_quiet (a) || !hold_reads (a))
      break;
    r->phase = WINDOW_MOVE;
    moves_go_on (a);
    break;
  case WINDOW_MOVE:
    move_window (a, r);
    break;
  case WINDOW_PLACED:
    if (a->g.frontier == a->moving.end) {
      if (line_row (a, r->bad_no) < a->g.frontier)
        r->stopped = 0;
      moves_forget_stuck (a);
      end (a, r);
    }
    break;
  }
  return phase != (int) r->phase;
}

/* Before it moves it is taken back at once.  Clients do not wait for long for
 * operations that do not end, as some member does not answer.
 */
static bool
is_over (struct array *a, const struct reshape *r)
{
  if (r->phase == WINDOW_HOLD &&
      engine_now (a) - r->held_since > HELD_MAX_NS)
    return true;
  return r->phase != WINDOW_NONE && r->phase < WINDOW_MOVE &&
    (a->stopping || r->error ||
     (a->irregular_slots && !PLANTED ("widen-degraded")));
}

/* Once each. */
static void
tell_end (struct array *a, struct reshape *r)
{
  const unsigned nr = a->failed + a->stopping;

  if (nr > r->nr_told)
    moves_go_on (a);
  r->nr_told = nr;
}

static void
reshape_turn (struct array *a)
{
  struct reshape *r = a->reshape;

  if (!a->g.widening && r->phase == WINDOW_NONE)
    return;
  tell_end (a, r);
  if (a->failed) {
    if (r->phase != WINDOW_NONE && r->in_flight == 0)
      end (a, r);
    return;
  }
  moves_no_space (a);
  if (is_over (a, r)) {
    r->not_before = engine_now (a) + REST_NS;
    if (r->error == 0) {
      r->error = ECANCELED;
      moves_go_on (a);
    }
    if (r->in_flight == 0)
      take_back (a, r);
  }
  while (go_on (a, r))
    ;
}

static bool
reshape_wants_tick (const struct array *a)
{
  return a->g.widening && a->writable && !a->failed;
}

static bool
reshape_is_busy (const struct array *a)
{
  return a->reshape->phase != WINDOW_NONE;
}

bool
reshape_goes_on (const struct array *a)
{
  return a->g.widening && !a->sb.paused && !a->reshape->stopped &&
    a->lost_slots == 0;
}

/* ---- status -------------------------------------------------------------- */

static const char *
why_it_waits (const struct array *a)
{
  if (!a->writable)
    return "for the first connection that may write";
  if (a->lost_slots)
    return "a slot has no active member: replace it, or take it again";
  return a->irregular_slots ? "a member is being rebuilt or replaced" :
    "for the resync";
}

static void
reshape_status (const struct array *a, struct array_status *st)
{
  const struct reshape *r = a->reshape;
  struct array_reshape *rs = &st->reshape;
  struct array_progress p = { 0 };

  if (!a->g.widening)
    return;
  *rs = (struct array_reshape) {
    .widens = true, .state = RESHAPE_MOVING, .k = a->g.k, .m = a->g.m,
    .done = a->g.frontier * BLOCK_LEN, .total = a->sb.l.data_len,
  };
  if (a->sb.paused)
    rs->state = RESHAPE_PAUSED;
  else if (!a->writable ||
           ((a->irregular_slots || a->nr_unsynced > 0) &&
            r->phase == WINDOW_NONE)) {
    rs->state = RESHAPE_WAITING;
    rs->why = why_it_waits (a);
  }
  else if (rs->done == rs->total)
    rs->state = RESHAPE_FINISHING;
  else if (r->stopped) {
    rs->state = RESHAPE_STOPPED;
    rs->why = r->stopped == ENOSPC ? "a member has no space for a row: it goes "
      "on when there is" : "too little of a row can be read: it goes on when "
      "that is written";
  }
  else if (a->loop) {
    rate_fill (&r->rate, engine_now (a), rs->done, rs->total - rs->done, &p);
    rs->bytes_per_second = p.bytes_per_second;
    rs->eta_seconds = p.eta_seconds;
  }
}

const struct room room_reshape = {
  .init = reshape_init, .free = reshape_free, .turn = reshape_turn,
  .wants_tick = reshape_wants_tick, .is_busy = reshape_is_busy,
  .status = reshape_status,
};
