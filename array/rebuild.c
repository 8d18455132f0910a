/* gpuraid: rebuild of targets, resync of parity, repair of blocks.
 *
 * All three store cells anew with op_fix.  A rebuild goes over the
 * members in windows.  Below its window a target is written like any
 * member, above it not at all; inside it is not read but written, so
 * that a client's write that lands there meanwhile is not lost.  When
 * the window is copied and flushed the cursor moves to its end.  Several
 * targets at one place are made in one pass; one that is behind is
 * brought up to the others first.
 *
 * Regions are resynced before anything is rebuilt: in a row that was
 * being written at a crash, what a lost role decodes to depends on the
 * cells it is made from, and a write to the row would make parity for
 * something else than a target has.  And nothing is begun while a slot
 * has two active members: parity would fit one of them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>

#include "array/cache.h"
#include "array/change.h"
#include "array/dirty.h"
#include "array/flush.h"
#include "array/lost.h"
#include "array/op.h"
#include "array/rebuild.h"
#include "array/seat.h"
#include "common/plant.h"

#define WINDOW_LEN (32 * MIB)           /* bytes of a member */
#define MAX_IN_FLIGHT 256u              /* lines */
#define SAVE_NS UINT64_C (5000000000)   /* the cursor is saved so often */
#define MAX_REPAIRS_IN_FLIGHT 8u

struct repair {
  struct list link;
  uint64_t no, roles;
  unsigned b0, nr;
};

struct rebuild {
  struct waiter waiter;                 /* for the flush, the pages */
  enum { IDLE, MARKING, COPYING, FLUSHING, SAVING, GIVING } phase;
  bool resync;                          /* parity, not targets */
  uint64_t start, end;                  /* the window, bytes of a member */
  uint64_t next;                        /* line */
  unsigned in_flight;
  bool failed;                          /* something in the window */
  uint64_t nr_lost;                     /* rows that were passed */
  uint64_t not_before;                  /* ns: a resync that failed goes on */
  uint64_t region;                      /* resync: the region */
  uint64_t lost_slots;                  /* resync: when the window began */

  /* Progress of this run. */
  bool running;
  uint64_t since, done;                 /* ns, bytes */
  uint64_t saved;                       /* ns */
  uint64_t resync_total;                /* regions */

  struct list repairs;
  unsigned nr_repairs, repairs_in_flight;
};

static void rebuild_retry (struct array *a, struct waiter *w);

int
rebuild_init (struct array *a)
{
  a->rebuild = calloc (1, sizeof *a->rebuild);
  if (a->rebuild == NULL)
    return -1;
  a->rebuild->waiter.run = rebuild_retry;
  list_init (&a->rebuild->waiter.link);
  a->window_len = WINDOW_LEN;
  a->save_ns = SAVE_NS;
  list_init (&a->rebuild->repairs);
  return 0;
}

void
rebuild_free (struct array *a)
{
  struct list *l;

  if (a->rebuild == NULL)
    return;
  while ((l = list_pop (&a->rebuild->repairs)) != NULL)
    free (list_item (l, struct repair, link));
  free (a->rebuild);
}

static bool
is_target (const struct seat *s)
{
  return s->state == SEAT_TARGET && !s->failing && !s->complete && s->m;
}

/* ---- repair ---------------------------------------------------------- */

void
repair_add (struct array *a, uint64_t no, uint64_t roles,
            unsigned b0, unsigned nr)
{
  struct rebuild *rb = a->rebuild;
  struct repair *rp;

  if (roles == 0 || !a->writable || a->failed ||
      rb->nr_repairs >= limits.rebuild_max_repairs)
    return;
  list_for_each (l, &rb->repairs) {
    rp = list_item (l, struct repair, link);
    if (rp->no == no && rp->roles == roles && rp->b0 == b0 && rp->nr == nr)
      return;
  }
  rp = calloc (1, sizeof *rp);
  if (rp == NULL)
    return;             /* the next read will find it again */
  rp->no = no;
  rp->roles = roles;
  rp->b0 = b0;
  rp->nr = nr;
  rb->nr_repairs++;
  list_append (&rb->repairs, &rp->link);
}

static void
repair_done (struct array *a, const struct fixed *f)
{
  struct repair *rp = f->opaque;

  if (f->error == 0 && f->lost == 0)
    a->counters.repaired_blocks += (uint64_t) nr_bits (rp->roles) * rp->nr;
  a->rebuild->repairs_in_flight--;
  a->rebuild->nr_repairs--;
  free (rp);
}

static void
start_repairs (struct array *a)
{
  struct rebuild *rb = a->rebuild;

  list_for_each (l, &rb->repairs) {
    struct repair *rp = list_item (l, struct repair, link);
    struct line *line;

    if (rb->repairs_in_flight >= MAX_REPAIRS_IN_FLIGHT)
      return;
    line = line_get (a, rp->no);
    if (line == NULL)
      return;
    if (op_may_write (a, line) &&
        op_fix (a, line, rp->roles, false, rp->b0, rp->nr, repair_done, rp)) {
      list_remove (&rp->link);
      rb->repairs_in_flight++;
    }
    else
      line_settle (a, line);
  }
}

/* ---- windows --------------------------------------------------------- */

/* The place nearest to the start that a target needs, and the next one
 * that another starts from.
 */
static bool
choose_window (struct array *a)
{
  struct rebuild *rb = a->rebuild;
  uint64_t start = UINT64_MAX, end;

  for (unsigned i = 0; i < a->nr_seats; i++)
    if (is_target (a->seat[i]))
      start = MIN (start, a->seat[i]->cursor);
  if (start == UINT64_MAX)
    return false;
  end = MIN (start + a->window_len, a->sb.l.data_len);
  for (unsigned i = 0; i < a->nr_seats; i++) {
    const struct seat *s = a->seat[i];

    if (is_target (s) && s->cursor > start)
      end = MIN (end, s->cursor);
  }
  for (unsigned i = 0; i < a->nr_seats; i++)
    if (is_target (a->seat[i]) && a->seat[i]->cursor == start)
      a->seat[i]->window_end = end;
  rb->resync = false;
  rb->start = start;
  rb->end = end;
  return true;
}

static bool
choose_region (struct array *a)
{
  struct rebuild *rb = a->rebuild;

  if (a->nr_unsynced == 0 || loop_now (a->loop) < rb->not_before)
    return false;
  rb->lost_slots = a->lost_slots;
  for (uint64_t i = 0; i < div_round_up (a->nr_regions, 64); i++)
    if (a->unsynced[i]) {
      rb->region = i * 64 + __builtin_ctzll (a->unsynced[i]);
      rb->resync = true;
      rb->start = rb->region * a->sb.l.region_len;
      rb->end = MIN (rb->start + a->sb.l.region_len, a->sb.l.data_len);
      return true;
    }
  return false;
}

/* The roles of a line that targets at this window need. */
static uint64_t
roles_needed (const struct array *a, uint64_t no)
{
  const uint64_t pos = line_pos (a, no);
  uint64_t roles = 0;

  for (unsigned i = 0; i < a->nr_seats; i++) {
    const struct seat *s = a->seat[i];

    if (is_target (s) && s->cursor == a->rebuild->start &&
        (!s->by_bitmap || dirty_is_missed (a, pos)))
      roles |= BIT (layout_role (&a->g, line_stripe (a, no), s->slot));
  }
  return roles;
}

/* The parity roles of a line that a resync makes anew. */
static uint64_t
roles_to_sync (const struct array *a, uint64_t no)
{
  uint64_t noread, nowrite;

  line_masks (a, no, &noread, &nowrite);
  return line_doubtful (a, no, noread);
}

/* Such a row agrees afterwards with what its members have.  What the cache
 * has of it may be something else: read when the array was not writable
 * from a member that is not used any more, decoded with parity as it was,
 * or of a slot that is lost since.  It is forgotten, or written out with
 * all parity if some of it is anyway.  False: not now, the line is in use.
 */
static bool
forget_cells (struct array *a, uint64_t no)
{
  struct line *line = line_find (a, no);

  if (line == NULL || PLANTED ("resync-keeps-cells"))
    return true;
  if (!op_may_write (a, line))
    return false;
  for (unsigned role = 0; role < a->g.k; role++) {
    struct line_cell *lc = &line->cell[role];

    if (lc->valid == 0)
      continue;
    if (lc->dirty)
      lc->dirty = lc->valid;
    else
      line_drop_cell (a, line, role);
  }
  line_settle (a, line);
  return true;
}

/* Rows that can't be made are passed, and what is stored there counts as
 * lost: on a target because nothing was stored, in a resync because the
 * parity may be wrong.
 */
static void
fix_done (struct array *a, const struct fixed *f)
{
  struct rebuild *rb = a->rebuild;

  rb->in_flight--;
  rb->done += a->cell_len;
  /* It was to make all parity anew, of which some is needed now: the
   * region's turn comes again.
   */
  if (rb->resync && a->lost_slots != rb->lost_slots)
    return;
  if (f->error ||
      (f->lost && !a->failed && !lost_add (a, f->no, f->roles, f->lost)))
    rb->failed = true;
  rb->nr_lost += nr_bits (f->lost);
}

/* After a line that nobody needs: the next one, or the next region. */
static uint64_t
next_line (const struct array *a, uint64_t no)
{
  const uint64_t pos = line_pos (a, no);

  if (a->rebuild->resync || dirty_is_missed (a, pos))
    return no + 1;
  return MIN (round_down (pos, a->sb.l.region_len) + a->sb.l.region_len,
              a->rebuild->end) / a->cell_len;
}

static void
copy_some (struct array *a)
{
  struct rebuild *rb = a->rebuild;
  const uint64_t end = rb->end / a->cell_len;
  const unsigned most =
    MIN (limits.rebuild_in_flight_len / a->cell_len, MAX_IN_FLIGHT);
  unsigned skipped = 0;

  while (rb->next < end && rb->in_flight < most && !rb->failed &&
         skipped < limits.rebuild_max_skipped) {
    const uint64_t roles =
      rb->resync ? roles_to_sync (a, rb->next) : roles_needed (a, rb->next);
    struct line *line;

    if (rb->resync && !forget_cells (a, rb->next))
      return;
    if (roles == 0) {
      rb->next = next_line (a, rb->next);
      skipped++;
      continue;
    }
    line = line_get (a, rb->next);
    if (line == NULL)
      return;
    if (!op_may_write (a, line) ||
        !op_fix (a, line, roles, !rb->resync, 0, a->cell_blocks, fix_done,
                 NULL)) {
      line_settle (a, line);
      return;
    }
    if (!rb->resync)
      a->counters.rebuilt_bytes += nr_bits (roles) * a->cell_len;
    rb->in_flight++;
    rb->next++;
  }
  if (skipped == limits.rebuild_max_skipped)
    list_move (&a->engine.ready, &rb->waiter.link);
}

static void
begin_window (struct array *a)
{
  struct rebuild *rb = a->rebuild;
  const bool was_running = rb->running;

  if (!choose_region (a) && (a->nr_unsynced > 0 || !choose_window (a))) {
    rb->running = false;
    return;
  }
  if (!was_running) {
    rb->running = true;
    rb->since = loop_now (a->loop);
    rb->done = 0;
    rb->resync_total = a->nr_unsynced;
    rb->nr_lost = 0;
  }
  rb->next = rb->start / a->cell_len;
  rb->failed = false;
  rb->phase = rb->resync && a->lost_slots ? MARKING : COPYING;
}

/* A resync says anew what a lost slot has in these rows: a member that
 * comes back must not bring what it had.
 */
static void
mark_missed (struct array *a)
{
  struct rebuild *rb = a->rebuild;

  if (dirty_mark (a, rb->start, rb->end - rb->start, &rb->waiter))
    rb->phase = COPYING;
}

#define RESYNC_PAUSE_NS UINT64_C (60000000000)

/* Parity that could not be made counts as lost, durably, before the region
 * counts as synced.
 */
static void
end_region (struct array *a)
{
  struct rebuild *rb = a->rebuild;

  if (!lost_are_stored (a, &rb->waiter))
    return;
  rb->phase = IDLE;
  if (rb->failed) {
    rb->not_before = loop_now (a->loop) + RESYNC_PAUSE_NS;
    log_notice ("parity can't be made anew everywhere: too many rows can't "
                "be read; it goes on in a minute");
    return;
  }
  if (a->lost_slots == rb->lost_slots)
    dirty_synced (a, rb->region);
  if (a->nr_unsynced == 0)
    log_notice ("parity was made anew where it may have been wrong");
}

/* The window is flushed: it counts, where nothing went wrong. */
static void
end_window (struct array *a)
{
  struct rebuild *rb = a->rebuild;
  const uint64_t now = loop_now (a->loop);

  rb->phase = IDLE;
  if (rb->resync) {
    rb->phase = SAVING;
    end_region (a);
    return;
  }
  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct seat *s = a->seat[i];

    if (!is_target (s) || s->cursor != rb->start || s->window_end != rb->end)
      continue;
    if (rb->failed) {
      seat_fail (a, s, "rebuild: too many rows can't be read; the rebuild "
                 "stops", 0);
      continue;
    }
    s->cursor = rb->end;
    if (s->cursor == a->sb.l.data_len)
      rb->phase = GIVING;
  }
  if (rb->phase == IDLE && now - rb->saved > a->save_ns) {
    rb->saved = now;
    change_save (a, false, NULL);
  }
}

/* Targets at the end get the dirty bitmap, then they are complete. */
static void
give_pages (struct array *a)
{
  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct seat *s = a->seat[i];

    if (!is_target (s) || s->cursor != a->sb.l.data_len)
      continue;
    if (!dirty_give (a, s, &a->rebuild->waiter))
      return;
    s->complete = true;
    if (a->rebuild->nr_lost)
      log_notice ("slot %u: %s: rebuilt, but for %" PRIu64 " rows of which "
                  "too little can be read", s->slot, s->m->path,
                  a->rebuild->nr_lost);
    else
      log_notice ("slot %u: %s: rebuilt", s->slot, s->m->path);
  }
  a->rebuild->phase = IDLE;
}

static void
rebuild_retry (struct array *a, struct waiter *w)
{
  struct rebuild *rb = a->rebuild;

  if (rb->phase == FLUSHING)
    end_window (a);
  else if (rb->phase == SAVING)
    end_region (a);
  if (rb->phase == GIVING)
    give_pages (a);
}

void
rebuild_decide (struct array *a)
{
  struct rebuild *rb = a->rebuild;

  if (!a->writable || a->failed || a->stopping || change_busy (a) ||
      a->twice_slots ||
      (a->odd_slots == 0 && a->nr_unsynced == 0 && rb->phase == IDLE &&
       rb->nr_repairs == 0 && !rb->running))
    return;
  if (!list_empty (&rb->repairs))
    start_repairs (a);
  if (rb->phase == IDLE)
    begin_window (a);
  if (rb->phase == MARKING)
    mark_missed (a);
  if (rb->phase == COPYING) {
    copy_some (a);
    if (rb->in_flight == 0 &&
        (rb->failed || rb->next >= rb->end / a->cell_len)) {
      rb->phase = FLUSHING;
      flush_members (a, &rb->waiter);
    }
  }
}

bool
rebuild_busy (const struct array *a)
{
  for (unsigned i = 0; i < a->nr_seats; i++)
    if (a->seat[i]->state == SEAT_TARGET && !a->seat[i]->failing)
      return true;
  for (unsigned slot = 0; slot < a->n; slot++)
    if (a->at[slot][0] && a->at[slot][1])
      return true;
  return a->nr_unsynced > 0;
}

void
rebuild_lost_target (struct array *a, struct seat *s)
{
  log_notice ("slot %u: %s: no longer rebuilt onto", s->slot, s->m->path);
}

void
rebuild_progress (const struct array *a, struct array_progress *rebuild,
                  struct array_progress *resync)
{
  const struct rebuild *rb = a->rebuild;
  const uint64_t elapsed = MAX (loop_now (a->loop) - rb->since, 1);
  uint64_t cursor = UINT64_MAX, left, rate;

  *rebuild = *resync = (struct array_progress) { 0 };
  for (unsigned i = 0; i < a->nr_seats; i++)
    if (a->seat[i]->state == SEAT_TARGET && !a->seat[i]->failing)
      cursor = MIN (cursor, a->seat[i]->cursor);
  rate = rb->running ? (uint64_t) ((double) rb->done * 1e9 / elapsed) : 0;
  if (cursor != UINT64_MAX) {
    left = a->sb.l.data_len - cursor;
    *rebuild = (struct array_progress) {
      .running = true, .done = cursor, .total = a->sb.l.data_len,
      .bytes_per_second = rate, .eta_seconds = rate ? left / rate : 0,
    };
  }
  if (a->nr_unsynced > 0) {
    left = a->nr_unsynced * a->sb.l.region_len;
    *resync = (struct array_progress) {
      .running = true, .total = MAX (rb->resync_total, a->nr_unsynced) *
        a->sb.l.region_len,
      .bytes_per_second = rate, .eta_seconds = rate ? left / rate : 0,
    };
    resync->done = resync->total - left;
  }
}
