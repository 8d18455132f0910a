/* gpuraid: scrub: look at every row that was ever written.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "array/cache/cache.h"
#include "array/change/shape.h"
#include "array/engine/consistency.h"
#include "array/engine/state.h"
#include "array/health/health.h"
#include "array/passes/pace.h"
#include "array/passes/pass.h"
#include "array/replay/recovery.h"
#include "array/scrub/internal.h"
#include "array/scrub/scrub.h"
#include "array/seats/seat.h"
#include "array/sums/sums.h"

#define MAX_LINES 16u                   /* at a time */

static void
nothing (struct array *a, struct waiter *w)
{
}

static int
scrub_init (struct array *a, const struct config *c, const struct assembly *as)
{
  struct scrub *sc = calloc (1, sizeof *sc);

  if (sc == NULL)
    return -1;
  list_init (&sc->lines);
  pool_init (&sc->line_pool, sizeof (struct scrub_line),
             sizeof (struct scrub_line));
  list_init (&sc->waiter.link);
  sc->waiter.run = nothing;
  a->scrub = sc;
  scrub_load (a);
  return 0;
}

static void
scrub_free (struct array *a)
{
  struct list *l;

  if (a->scrub == NULL)
    return;
  while ((l = list_pop (&a->scrub->lines)) != NULL)
    free (list_item (l, struct scrub_line, link));
  pool_end (&a->scrub->line_pool);
  free (a->scrub);
}

static void
line_over (struct array *a, const struct scrub_line *sl)
{
  struct scrub *sc = a->scrub;

  sc->nr_lines--;
  sc->done_len += a->cell_len;
  pace_ended (a, sc->nr_lines);
}

/* ---- pages where nothing was written ------------------------------------ */

static void
let_go_of_pages (struct array *a, struct scrub *sc)
{
  list_remove (&sc->waiter.link);
  if (sc->pin.nr > 0)
    sums_unpin (a, &sc->pin);
}

/* The pages of the table from this line on, as many as one pin may have.
 * False if it waits.
 */
static bool
look_at_pages (struct array *a, struct scrub *sc, uint64_t row)
{
  const uint64_t page = row / limits.table_page_entries;
  const uint64_t first = page * limits.table_page_entries;
  const uint64_t end = MIN (sums_pin_end (a, row),
                            a->sb.l.data_len / BLOCK_LEN);

  if (sc->nr_pages > 0 && page >= sc->first_page &&
      page < sc->first_page + sc->nr_pages)
    return true;
  sc->nr_pages = 0;
  if (sc->pin.nr > 0 && sc->pin.first != page)
    sums_unpin (a, &sc->pin);
  if (!sums_pin (a, &sc->pin, first, end - first, LOW_BITS (a->n),
                 &sc->waiter) ||
      !sums_verify (a, &sc->pin, &sc->waiter))
    return false;
  sc->first_page = page;
  sc->nr_pages = sc->pin.nr;
  sc->unborn = 0;
  for (unsigned i = 0; i < sc->nr_pages; i++)
    if (sums_is_unborn (a, &sc->pin, first + i * limits.table_page_entries))
      sc->unborn |= BIT (i);
  sums_unpin (a, &sc->pin);
  return true;
}

/* Skip the lines of a page of which nothing was written; the last may be on
 * the next page, too.
 */
static bool
skip_unborn (struct array *a, struct scrub *sc)
{
  const unsigned n = limits.table_page_entries;
  const uint64_t row = sc->next * a->cell_blocks;
  uint64_t end, next;

  for (end = row / n; end < sc->first_page + sc->nr_pages &&
         sc->unborn & BIT (end - sc->first_page); end++)
    ;
  next = MIN (end * n / a->cell_blocks, sc->end);
  if (next <= sc->next)
    return false;
  sc->done_len += (next - sc->next) * a->cell_len;
  sc->next = next;
  return true;
}

/* From the next line to end there is a hole on all members, of the table or of
 * the data.  False if it waits.
 */
static bool
find_hole (struct array *a, struct scrub *sc, uint64_t *end)
{
  uint64_t row;

  if (a->sums == NULL)
    return scrub_find_hole (a, sc->next, end);
  if (!sums_find_hole (a, sc->next * a->cell_blocks, &row, &sc->waiter))
    return false;
  *end = row / a->cell_blocks;
  return true;
}

/* False if it waits. */
static bool
skip_hole (struct array *a, struct scrub *sc)
{
  uint64_t end, next;

  if (!find_hole (a, sc, &end))
    return false;
  next = MIN (end, sc->end);
  if (next > sc->next) {
    sc->done_len += (next - sc->next) * a->cell_len;
    sc->next = next;
  }
  return true;
}

/* ---- line by line ------------------------------------------------------- */

/* What in the journal is not in place yet is not looked at, nor what a resync
 * has to do.
 */
static bool
is_left_out (const struct array *a, uint64_t no)
{
  return recover_has_line (a, no) || line_is_unsynced (a, no);
}

/* False if not possible now. */
static bool
begin_line (struct array *a, struct scrub *sc)
{
  if (is_left_out (a, sc->next)) {
    sc->count.skipped_rows += a->cell_blocks;
    sc->done_len += a->cell_len;
  }
  else if (!scrub_line_begin (a, sc->next, line_over))
    return false;
  else {
    sc->nr_lines++;
    pace_begun (a);
  }
  sc->next++;
  return true;
}

static void
begin_some (struct array *a, struct scrub *sc)
{
  unsigned skipped = 0;

  while (sc->next < sc->end && !scrub_save_is_due (a)) {
    const uint64_t was = sc->next;

    if (sc->nr_lines == MAX_LINES || !pace_may_begin (a))
      return;
    if (skipped++ == limits.rebuild_max_skipped) {
      list_move (&a->engine.ready, &sc->waiter.link);
      return;
    }
    if (!skip_hole (a, sc))
      return;
    if (sc->next > was)
      continue;
    if (a->sums) {
      if (!look_at_pages (a, sc, sc->next * a->cell_blocks))
        return;
      if (skip_unborn (a, sc))
        continue;
    }
    if (!begin_line (a, sc))
      return;
  }
}

/* ---- the end ------------------------------------------------------------ */

static void
report (const struct scrub *sc)
{
  const struct array_scrub_count *c = &sc->count;
  char more[240] = "";
  int len = 0;

  if (c->unlocated_rows)
    len = snprintf (more, sizeof more, "; in %" PRIu64 " rows nothing says "
                    "which block is wrong", c->unlocated_rows);
  if (c->lost_rows)
    len += snprintf (more + len, sizeof more - len, "; of %" PRIu64 " rows "
                     "too little can be read", c->lost_rows);
  if (sc->given_up_rows)
    snprintf (more + len, sizeof more - len, "; %" PRIu64 " rows could not be "
              "repaired", sc->given_up_rows);
  log_notice ("scrub: %s: %" PRIu64 " blocks were wrong, %" PRIu64 " of them "
              "were repaired%s", sc->next == sc->end ? "ended" : "stopped",
              c->found, c->repaired, more);
}

static void
end_scrub (struct array *a, struct scrub *sc)
{
  let_go_of_pages (a, sc);
  sc->state = SCRUB_NONE;
  sc->last = sc->count;
  sc->last_repair = sc->repair;
  sc->last_complete = sc->next == sc->end;
  sc->has_last = true;
  health_note_wrong (a, sc->last.found - sc->last.repaired +
                     sc->last.unlocated_rows, sc->last_complete);
  sc->ended = engine_now (a);
  scrub_changed (a);
  report (sc);
}

/* A rebuild or resync goes first. */
static bool
may_go_on (struct array *a, const struct scrub *sc)
{
  if (a->stopping || a->failed || sc->state != SCRUB_RUNNING ||
      sc->interrupted ||
      (a->writable && (pass_is_wanted (a) || a->doubled_slots)) ||
      !change_is_over (a, NULL))
    return false;
  return !sc->repair || (array_may_write (a) && a->consistency->is_ready (a));
}

/* It was interrupted by a stop or crash. */
static void
go_on (struct array *a, struct scrub *sc)
{
  sums_verify_begin (a);
  sc->interrupted = false;
  sc->marked = engine_now (a);
  rate_reset (&sc->rate);
  if (sc->state == SCRUB_NONE || sc->state == SCRUB_STOPPING)
    return;
  log_notice ("scrub: %s at %.1f %%",
              sc->state == SCRUB_PAUSED ? "it is paused" : "it goes on",
              sc->next * 100.0 / sc->end);
}

static void
scrub_turn (struct array *a)
{
  struct scrub *sc = a->scrub;

  scrub_lines_decide (a);
  if (sc->state == SCRUB_NONE)
    return;
  if (scrub_is_running (a))
    rate_note (&sc->rate, engine_now (a), sc->done_len);
  if (sc->interrupted && a->writable)
    go_on (a, sc);
  if (may_go_on (a, sc))
    begin_some (a, sc);
  else
    let_go_of_pages (a, sc);
  scrub_save_turn (a);
  if (sc->nr_lines == 0 && (sc->stop || a->failed ||
                            (sc->next == sc->end && scrub_save_is_over (a))))
    end_scrub (a, sc);
}

bool
scrub_is_running (const struct array *a)
{
  return a->scrub->state == SCRUB_RUNNING && !a->scrub->interrupted;
}

bool
scrub_is_interrupted (const struct array *a)
{
  return a->scrub->interrupted;
}

bool
scrub_is_busy (const struct array *a)
{
  return a->scrub->nr_lines > 0 || a->scrub->pin.nr > 0 ||
    (a->stopping && scrub_save_is_due (a));
}

static bool
scrub_wants_tick (const struct array *a)
{
  return a->scrub->nr_lines > 0 ||
    (scrub_is_running (a) && !a->stopping);
}

/* ---- commands ----------------------------------------------------------- */

int
scrub_start (struct array *a, bool repair, char why[ARRAY_WHY_LEN])
{
  struct scrub *sc = a->scrub;

  if (sc->state != SCRUB_NONE) {
    snprintf (why, ARRAY_WHY_LEN, "a scrub is %s", sc->state == SCRUB_PAUSED ?
              "paused: resume or stop it" : sc->interrupted ?
              "interrupted: it goes on when the array is written to; or stop "
              "it" : "running already: gpuraid status shows how far");
    return EINVAL;
  }
  if (a->g.widening || shape_is_busy (a)) {
    snprintf (why, ARRAY_WHY_LEN, "a member is being added%s",
              a->g.widening ? ", and rows move: wait until that has ended "
              "(gpuraid wait)" : ": try again");
    return EINVAL;
  }
  sums_verify_begin (a);
  sc->state = SCRUB_RUNNING;
  sc->repair = repair;
  sc->stop = false;
  sc->next = sc->done_len = sc->nr_pages = 0;
  scrub_hole_begin (&sc->hole);
  rate_reset (&sc->rate);
  sc->end = a->sb.l.data_len / a->cell_len;
  sc->marked = engine_now (a);
  sc->count = (struct array_scrub_count) { 0 };
  sc->given_up_rows = 0;
  for (unsigned slot = 0; slot < a->n; slot++)
    sc->found[slot] = sc->repaired[slot] = 0;
  scrub_changed (a);
  return 0;
}

static void
scrub_grown (struct array *a)
{
  if (a->scrub->state != SCRUB_NONE)
    a->scrub->end = a->sb.l.data_len / a->cell_len;
}

int
scrub_control (struct array *a, enum array_scrub_command command,
               char why[ARRAY_WHY_LEN])
{
  struct scrub *sc = a->scrub;

  if (sc->state == SCRUB_NONE) {
    snprintf (why, ARRAY_WHY_LEN, "no scrub is running: start one first");
    return EINVAL;
  }
  switch (command) {
  case ARRAY_SCRUB_STOP:
    sc->stop = true;
    sc->state = SCRUB_STOPPING;
    break;

  case ARRAY_SCRUB_PAUSE:
    if (sc->state == SCRUB_RUNNING)
      sc->state = SCRUB_PAUSED;
    break;

  case ARRAY_SCRUB_RESUME:
    if (sc->state == SCRUB_PAUSED) {
      rate_reset (&sc->rate);
      sc->state = SCRUB_RUNNING;
    }
    break;
  }
  scrub_changed (a);
  return 0;
}

static void
scrub_status (const struct array *a, struct array_status *st)
{
  const struct scrub *sc = a->scrub;
  const uint64_t total = a->sb.l.data_len, done = MIN (sc->done_len, total);
  uint64_t now;

  for (unsigned slot = 0; slot < a->n; slot++) {
    st->entry[slot].scrub_found = sc->found[slot];
    st->entry[slot].scrub_repaired = sc->repaired[slot];
  }
  if (a->loop == NULL)
    return;
  now = engine_now (a);
  st->has_last_scrub = sc->has_last;
  st->last_scrub_complete = sc->last_complete;
  st->last_scrub_repair = sc->last_repair;
  st->last_scrub_ago_ns = sc->has_last ? now - sc->ended : 0;
  st->last_scrub = sc->last;
  if (sc->state == SCRUB_NONE)
    return;
  st->scrub = (struct array_progress) {
    .running = true, .done = done, .total = total,
  };
  if (scrub_is_running (a))
    rate_fill (&sc->rate, now, sc->done_len, total - done, &st->scrub);
  st->scrub_paused = sc->state == SCRUB_PAUSED;
  st->scrub_interrupted = sc->interrupted;
  st->scrub_repair = sc->repair;
  st->scrub_count = sc->count;
}

const struct room room_scrub = {
  .init = scrub_init, .free = scrub_free, .turn = scrub_turn,
  .wants_tick = scrub_wants_tick, .is_busy = scrub_is_busy,
  .grown = scrub_grown, .status = scrub_status,
};
