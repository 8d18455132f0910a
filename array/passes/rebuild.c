/* gpuraid: rebuild targets from the other members.
 *
 * Below its window a target is written like any member, above it not at all.
 * Inside the window it is not read but written, so that client writes during
 * the copy are not lost.  When the window is copied and flushed the cursor
 * moves to its end.  Targets at the same place are made in one pass; one that
 * is behind is brought up to the others first.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/cache/cache.h"
#include "array/change/join.h"
#include "array/dirty/dirty.h"
#include "array/engine/consistency.h"
#include "array/engine/place.h"
#include "array/health/fail.h"
#include "array/health/lost.h"
#include "array/io/flush.h"
#include "array/io/superblock.h"
#include "array/io/xfer.h"
#include "array/passes/pass.h"
#include "array/passes/rebuild-hole.h"
#include "array/sums/sums.h"
#include "common/plant.h"

/* Up to the next position from which another target starts. */
static void
set_end (struct array *a, struct pass *p, uint64_t end)
{
  end = MIN (end, a->sb.l.data_len);
  for (unsigned i = 0; i < a->nr_seats; i++) {
    const struct seat *s = a->seat[i];

    if (is_target (s) && s->cursor > p->start)
      end = MIN (end, s->cursor);
  }
  for (unsigned i = 0; i < a->nr_seats; i++)
    if (is_target (a->seat[i]) && a->seat[i]->cursor == p->start)
      a->seat[i]->window_end = end;
  p->end = end;
}

/* The lowest position that a target needs. */
static enum pass_choice
choose_window (struct array *a, struct pass *p)
{
  uint64_t start = UINT64_MAX;

  for (unsigned i = 0; i < a->nr_seats; i++)
    if (is_target (a->seat[i]))
      start = MIN (start, a->seat[i]->cursor);
  if (start == UINT64_MAX)
    return PASS_NOTHING;
  p->start = p->end = start;
  if (a->sums)
    set_end (a, p, start + pass_window_len (a, p));
  else
    rebuild_hole_begin (a, p);  /* prepare sets it */
  return PASS_WINDOW;
}

/* A member that is new has no checksum table: one of zeroes says that nothing
 * was written.  Where a rebuild goes on after a crash, the target may have
 * pages above the cursor that no other member has.  The other members would
 * seem to have lost theirs.
 */
#define ZERO_LEN (UINT64_C (1) << 30)

static void
table_zeroed (struct array *a, struct xfer *x)
{
  if (x->error)
    seat_fail (a, x->seat, "checksum table", x->error);
  else
    x->seat->write_gen++;
  x->seat->table_zeroed += x->len;
  list_move (&a->engine.ready, &a->pass->waiter.link);
}

/* The bytes of the table for what is below the cursor. */
static uint64_t
table_below (const struct array *a, const struct seat *s)
{
  const uint64_t page_no =
    div_round_up (s->cursor,
                  (uint64_t) limits.table_page_entries * BLOCK_LEN);

  if (s->cursor > 0 && PLANTED ("none-table-kept"))
    return table_len (&a->sb.l);
  return MIN (page_no * 2 * TABLE_PAGE_LEN, table_len (&a->sb.l));
}

static bool
zero_table (struct array *a, struct seat *s)
{
  struct xfer *x;

  if (s->by_bitmap)
    return true;
  s->table_zeroed = MAX (s->table_zeroed, table_below (a, s));
  if (s->table_zeroed == table_len (&a->sb.l))
    return true;
  if (s->table_zeroing > s->table_zeroed)
    return false;
  if (!save_wanted (a, &a->pass->waiter))
    return false;
  x = xfer_new (a, s, IO_ZERO, table_zeroed);
  x->off = table_off (&a->sb.l, s->table_zeroed);
  x->len = MIN (ZERO_LEN, table_run (&a->sb.l, s->table_zeroed));
  s->table_zeroing = s->table_zeroed + x->len;
  xfer_start (a, x);
  return false;
}

/* Where nothing was ever written one window has it all: a window costs a flush.
 * False: it waits.
 */
static bool
widen (struct array *a, struct pass *p)
{
  uint64_t end;

  if (!sums_find_hole (a, p->row, &end, &p->waiter))
    return false;
  end = round_down (end * BLOCK_LEN, a->cell_len);
  if (end > p->end)
    set_end (a, p, end);
  return true;
}

static bool
prepare (struct array *a, struct pass *p)
{
  bool ready = true;
  uint64_t end;

  p->row = p->start / BLOCK_LEN;
  if (a->sums == NULL) {
    if (!rebuild_hole_prepare (a, p, &end))
      return false;
    set_end (a, p, end);
    return true;
  }
  for (unsigned i = 0; i < a->nr_seats; i++)
    if (is_target (a->seat[i]))
      ready &= zero_table (a, a->seat[i]);
  return ready && (a->mark_open || widen (a, p));
}

/* Until which row nothing was ever written; this one if that is not known.
 * False: it waits.
 */
static bool
find_unborn (struct array *a, struct pass *p, uint64_t row, uint64_t *end)
{
  bool unborn;

  /* A pin that is let go wakes others, so not without need. */
  if (!sums_in_memory (a, row, &unborn)) {
    if (p->pin.nr == 0 && !sums_find_hole (a, row, end, &p->waiter))
      return false;
    if (p->pin.nr == 0 && *end > row)
      return true;
    if (!sums_pin (a, &p->pin, row, 1, LOW_BITS (a->n), &p->waiter))
      return false;
    unborn = sums_is_unborn (a, &p->pin, row);
  }
  if (PLANTED ("rebuild-skips-born"))
    unborn = true;
  *end = unborn ? sums_page_end (row) : row;
  return true;
}

/* Where no slot was ever written, the next line where one may have been, or
 * is being written.  False: the table is not known yet.
 */
static bool
skip_unborn (struct array *a, struct pass *p, uint64_t no, uint64_t *next)
{
  const uint64_t row = line_row (a, no);
  uint64_t end;

  if (p->pin.nr > 0 && p->pin_row != row)
    sums_unpin (a, &p->pin);
  p->pin_row = row;
  if (!find_unborn (a, p, row, &end))
    return false;
  if (p->pin.nr > 0)
    sums_unpin (a, &p->pin);
  if (end > row) {
    end = MIN (end * BLOCK_LEN, p->end) / a->cell_len;
    *next = MAX (no + 1, PLANTED ("rebuild-skips-busy") ? end :
                 rebuild_first_busy (a, no, end));
  }
  return true;
}

/* The roles of a line that targets at this window need; none in a region that
 * no missed bit marks, or that was never written.
 */
static bool
look (struct array *a, struct pass *p, uint64_t no, uint64_t *roles,
      uint64_t *next)
{
  const uint64_t pos = line_pos (a, no);
  const bool missed = dirty_is_missed (a, pos);

  *roles = 0;
  if (line_is_dead (a, no))
    return true;
  for (unsigned i = 0; i < a->nr_seats; i++) {
    const struct seat *s = a->seat[i];

    if (is_target (s) && s->cursor == p->start && (!s->by_bitmap || missed))
      *roles |= BIT (line_role (a, no, s->slot)) & ~line_zeroes (a, no);
  }
  /* Without a journal such rows must be zeroes in place. */
  if (*roles && p->hole.trimmed) {
    uint64_t line;

    if (!rebuild_hole_skip (a, p, no, &line))
      return false;
    if (line > no) {
      *next = line;
      *roles = 0;
    }
  }
  else if (*roles && a->sums && !a->mark_open) {
    if (!skip_unborn (a, p, no, next))
      return false;
    if (*next > no + 1)
      *roles = 0;
  }
  else if (!missed)
    *next = MIN (round_down (pos, a->sb.l.region_len) + a->sb.l.region_len,
                 p->end) / a->cell_len;
  return true;
}

/* Advance the cursors, unless the window failed.  If a slot has lost its active
 * member meanwhile, what was copied before has its checksums in memory at
 * best: it is copied again.
 */
static void
move_cursors (struct array *a, struct pass *p)
{
  const uint64_t now = engine_now (a);

  if (a->sums && (a->lost_slots & ~p->lost_slots))
    return;
  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct seat *s = a->seat[i];

    if (!is_target (s) || s->cursor != p->start || s->window_end != p->end)
      continue;
    if (p->failed) {
      join_no_spare (a, s->slot);       /* it would end likewise */
      seat_fail (a, s, "rebuild: too many rows can't be read; the rebuild "
                 "stops", 0);
    }
    else
      s->cursor = p->end;
  }
  if (now - p->saved > a->save_ns && p->end < a->sb.l.data_len) {
    p->saved = now;
    save_start (a, false, NULL);
  }
}

static void
complete (struct seat *s, const struct pass *p)
{
  s->complete = true;
  if (p->nr_lost)
    log_notice ("slot %u: %s: rebuilt, except %" PRIu64 " rows of which "
                "too little can be read", s->slot, s->m->path, p->nr_lost);
  else
    log_notice ("slot %u: %s: rebuilt", s->slot, s->m->path);
}

/* That rows are lost must be durable on the slot's other member too, from
 * which the entries are read.
 */
static bool
lost_rows_stored (struct array *a, struct pass *p)
{
  if (!table_lists_lost (a) || a->failed || p->nr_lost == p->nr_stored)
    return true;
  if (p->stored_gen == 0 && !sums_store_all (a)) {
    list_move (&a->pause_waiters, &p->waiter.link);
    return false;
  }
  if (p->stored_gen == 0)
    p->stored_gen = a->flush_gen;
  if (a->flushed_gen <= p->stored_gen) {
    flush_members (a, &p->waiter);
    return false;
  }
  p->stored_gen = 0;
  p->nr_stored = p->nr_lost;
  return true;
}

/* Targets at the end are complete when all they need to join is durable. */
static bool
end_window (struct array *a, struct pass *p)
{
  if (!p->failed && !sums_store_targets (a, &p->row, p->end / BLOCK_LEN,
                                         &p->waiter))
    return false;
  if (!lost_rows_stored (a, p))
    return false;
  if (p->start < p->end)
    move_cursors (a, p);
  p->start = p->end;            /* not again, if it waits below */
  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct seat *s = a->seat[i];

    if (!is_target (s) || s->cursor != a->sb.l.data_len)
      continue;
    if (!a->consistency->may_join (a, s, &p->waiter))
      return false;
    complete (s, p);
  }
  return true;
}

const struct pass_kind rebuild_pass = {
  .to_targets = true,
  .choose = choose_window,
  .prepare = prepare,
  .look = look,
  .fixed = pass_fixed,
  .end = end_window,
};
