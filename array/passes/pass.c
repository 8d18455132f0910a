/* gpuraid: passes over the members, which store cells anew.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "array/cache/cache.h"
#include "array/engine/consistency.h"
#include "array/engine/state.h"
#include "array/io/flush.h"
#include "array/passes/pace.h"
#include "array/passes/pass.h"
#include "array/seats/seat.h"
#include "common/plant.h"

/* Lines in flight: as many as end within this time, so that what a client asks
 * for then does not wait longer; and at most.
 */
#define IN_FLIGHT_NS 10000000u
#define MAX_IN_FLIGHT 256u

/* How often a rebuild's cursor is saved, and the least length of its window.
 */
#define SAVE_NS UINT64_C (5000000000)
#define WINDOW_LEN (32 * MIB)           /* bytes of a member */

/* A window costs a flush: it has what a rebuild does in a second, if that is
 * more, and at most as many times the least.
 */
#define MAX_WINDOWS 8u

/* In order of urgency. */
static const struct pass_kind *const kinds[] = {
  &resync_pass, &rebuild_pass
};

static void end_window (struct array *a, struct pass *p);

/* turn handles PREPARING and COPYING. */
static void
pass_wake (struct array *a, struct waiter *w)
{
  struct pass *p = list_item (w, struct pass, waiter);

  if (p->phase == PASS_FLUSHING || p->phase == PASS_ENDING)
    end_window (a, p);
}

static int
pass_init (struct array *a, const struct config *c, const struct assembly *as)
{
  a->window_len = WINDOW_LEN;
  a->save_ns = SAVE_NS;
  a->pass = calloc (1, sizeof *a->pass);
  if (a->pass == NULL)
    return -1;
  a->pass->waiter.run = pass_wake;
  list_init (&a->pass->waiter.link);
  a->pace = &a->pass->pace;
  a->pace->limit = c->rebuild_rate;
  return 0;
}

/* ---- a window --------------------------------------------------------- */

static bool
choose (struct array *a, struct pass *p)
{
  for (unsigned i = 0; i < ARRAY_LEN (kinds); i++)
    switch (kinds[i]->choose (a, p)) {
    case PASS_NOTHING: break;
    case PASS_WINDOW: p->kind = kinds[i]; return true;
    case PASS_LATER: return false;
    }
  return false;
}

/* For the rate: a rebuild also skips much of the members. */
static uint64_t
position (const struct array *a, const struct pass *p)
{
  return p->kind->to_targets ? p->next * a->cell_len : p->done;
}

uint64_t
pass_window_len (struct array *a, const struct pass *p)
{
  const uint64_t rate = p->running && p->kind->to_targets ?
    rate_get (&p->rate, engine_now (a), position (a, p)) : 0;

  return round_down (MIN (MAX (rate, a->window_len),
                          MAX_WINDOWS * a->window_len), a->window_len);
}

static unsigned
least_in_flight (const struct array *a)
{
  return MIN (limits.rebuild_in_flight_len / a->cell_len, MAX_IN_FLIGHT);
}

static void
begin_window (struct array *a, struct pass *p)
{
  const struct pass_kind *before = p->running ? p->kind : NULL;

  p->lost_slots = a->lost_slots;
  if (!choose (a, p)) {
    p->running = false;
    return;
  }
  if (p->kind != before)
    rate_reset (&p->rate);
  if (!p->running) {
    p->running = true;
    p->done = p->nr_lost = p->nr_stored = 0;
    p->nr_regions = a->nr_unsynced;
  }
  p->next = p->start / a->cell_len;
  p->most = MAX (p->most, least_in_flight (a));
  rate_note (&p->rate, engine_now (a), position (a, p));
  p->failed = false;
  p->phase = PASS_PREPARING;
}

void
pass_fixed (struct array *a, struct pass *p, const struct fixed *f)
{
  if (f->error)
    p->failed = true;
  p->nr_lost += nr_bits (f->lost);
}

/* A line has ended.  Each time that as many have as may be in flight: was that
 * within the time?
 */
static void
adapt_most (struct array *a, struct pass *p)
{
  const uint64_t now = engine_now (a);
  const uint64_t took = now - p->adapted;

  if (++p->nr_ended < p->most)
    return;
  if (took < IN_FLIGHT_NS)
    p->most = MIN (2 * p->most, MAX_IN_FLIGHT);
  else if (took > 2 * IN_FLIGHT_NS)
    p->most /= 2;
  p->most = MAX (p->most, least_in_flight (a));
  p->nr_ended = 0;
  p->adapted = now;
}

static void
line_fixed (struct array *a, const struct fixed *f)
{
  struct pass *p = f->opaque;

  p->in_flight--;
  adapt_most (a, p);
  p->done += a->cell_len;
  rate_note (&p->rate, engine_now (a), position (a, p));
  if (p->kind->to_targets)
    pace_ended (a, p->in_flight);
  /* From there on again: lines between are stored twice. */
  if (f->error == ECANCELED)
    p->next = MIN (p->next, f->no);
  else
    p->kind->fixed (a, p, f);
}

static bool
begin_fix (struct array *a, struct pass *p, struct line *line, uint64_t roles)
{
  return p->kind->to_targets ?
    op_fix (a, line, roles, true, 0, a->cell_blocks, line_fixed, p) :
    op_resync (a, line, line_fixed, p);
}

/* False if not possible now. */
static bool
fix_line (struct array *a, struct pass *p, uint64_t roles)
{
  struct line *line = line_get (a, p->next);

  if (line == NULL)
    return false;
  if (!op_may_write (a, line) || !begin_fix (a, p, line, roles)) {
    line_settle (a, line);
    return false;
  }
  if (p->kind->to_targets) {
    a->counters.rebuilt_bytes += nr_bits (roles) * a->cell_len;
    pace_begun (a);
  }
  p->in_flight++;
  p->next++;
  return true;
}

static void
copy_some (struct array *a, struct pass *p)
{
  const uint64_t end = p->end / a->cell_len;
  unsigned skipped = 0;

  while (p->next < end && p->in_flight < p->most && !p->failed) {
    uint64_t roles, next = p->next + 1;

    if (skipped == limits.rebuild_max_skipped) {
      list_move (&a->engine.ready, &p->waiter.link);
      return;
    }
    if (!p->kind->look (a, p, p->next, &roles, &next))
      return;
    if (roles == 0) {
      p->next = next;
      skipped++;
    }
    else if ((p->kind->to_targets && !pace_may_begin (a)) ||
             !fix_line (a, p, roles))
      return;
  }
}

static void
end_window (struct array *a, struct pass *p)
{
  p->phase = PASS_ENDING;
  if (p->kind->end (a, p))
    p->phase = PASS_IDLE;
}

/* Lines that have begun end, and so does a window that is complete. */
static void
rest (struct pass *p, struct array *a)
{
  if (p->phase == PASS_PREPARING || p->phase == PASS_COPYING)
    list_remove (&p->waiter.link);
  if (p->pin.nr > 0)
    sums_unpin (a, &p->pin);
}

static void
pass_turn (struct array *a)
{
  struct pass *p = a->pass;

  if (p->paused && !pass_is_wanted (a))
    p->paused = false;
  if (!array_may_write (a) || a->stopping || a->doubled_slots ||
      !a->consistency->is_ready (a) ||
      (a->irregular_slots == 0 && a->nr_unsynced == 0 &&
       p->phase == PASS_IDLE && !p->running))
    return;
  if (p->paused)
    rest (p, a);
  else if (p->phase == PASS_IDLE && !rows_move (a))
    begin_window (a, p);
  if (p->phase == PASS_PREPARING && !p->paused && p->kind->prepare (a, p))
    p->phase = PASS_COPYING;
  if (p->phase != PASS_COPYING)
    return;
  if (!p->paused)
    copy_some (a, p);
  if ((p->in_flight == 0 || PLANTED ("target-cursor-early")) &&
      (p->failed || p->next >= p->end / a->cell_len)) {
    p->phase = PASS_FLUSHING;
    flush_members (a, &p->waiter);
  }
}

/* ---- interface -------------------------------------------------------- */

static bool
pass_wants_tick (const struct array *a)
{
  const struct pass *p = a->pass;

  return (a->writable && a->nr_unsynced > 0) ||
    (p->phase == PASS_COPYING && !a->failed && !a->stopping &&
     (!p->paused || p->in_flight > 0));
}

bool
pass_is_wanted (const struct array *a)
{
  for (unsigned i = 0; i < a->nr_seats; i++)
    if (a->seat[i]->state == SEAT_TARGET && !a->seat[i]->failing &&
        !seat_is_paused (a->seat[i]))
      return true;
  for (unsigned slot = 0; slot < a->n; slot++)
    if (a->at[slot][0] && a->at[slot][1])
      return true;
  return a->nr_unsynced > 0;
}

int
pass_pause (struct array *a, bool pause, char why[ARRAY_WHY_LEN])
{
  struct pass *p = a->pass;

  if (!pass_is_wanted (a)) {
    snprintf (why, ARRAY_WHY_LEN, "no rebuild or resync is running");
    return EINVAL;
  }
  if (p->paused != pause) {
    rate_reset (&p->rate);
    log_notice ("rebuild and resync %s", pause ? "are paused" : "go on");
  }
  p->paused = pause;
  return 0;
}

bool
pass_is_paused (const struct array *a)
{
  return a->pass->paused && pass_is_wanted (a);
}

/* Of several targets the mean: the lowest would go back to the beginning when
 * one joins, and stay at the others' place until it is there too.
 */
static void
rebuild_progress (const struct array *a, struct array_progress *rebuild)
{
  const struct pass *p = a->pass;
  uint64_t sum = 0, pos;
  unsigned nr = 0;

  for (unsigned i = 0; i < a->nr_seats; i++)
    if (a->seat[i]->state == SEAT_TARGET && !a->seat[i]->failing &&
        !seat_is_paused (a->seat[i])) {
      sum += a->seat[i]->cursor;
      nr++;
    }
  if (nr == 0)
    return;
  *rebuild = (struct array_progress) {
    .running = true, .paused = p->paused, .done = sum / nr,
    .total = a->sb.l.data_len,
  };
  if (!p->running || !p->kind->to_targets || p->paused)
    return;
  pos = MIN (position (a, p), a->sb.l.data_len);
  rate_fill (&p->rate, engine_now (a), pos, a->sb.l.data_len - pos,
             rebuild);
}

void
pass_progress (const struct array *a, struct array_progress *rebuild,
               struct array_progress *resync)
{
  const struct pass *p = a->pass;
  const uint64_t left = a->nr_unsynced * a->sb.l.region_len;

  *rebuild = *resync = (struct array_progress) { 0 };
  rebuild_progress (a, rebuild);
  if (a->nr_unsynced == 0)
    return;
  *resync = (struct array_progress) {
    .running = true, .paused = p->paused,
    .total = MAX (p->nr_regions, a->nr_unsynced) * a->sb.l.region_len,
  };
  resync->done = resync->total - left;
  if (p->running && !p->kind->to_targets && !p->paused)
    rate_fill (&p->rate, engine_now (a), p->done, left, resync);
}

static void
pass_free (struct array *a)
{
  free (a->pass);
}

static void
pass_status (const struct array *a, struct array_status *st)
{
  st->rate_limit = a->pace->limit;
  if (a->loop)
    pass_progress (a, &st->rebuild, &st->resync);
}

const struct room room_passes = {
  .init = pass_init, .free = pass_free, .turn = pass_turn,
  .wants_tick = pass_wants_tick, .status = pass_status,
};
