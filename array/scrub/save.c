/* gpuraid: where the scrub is, in the superblocks.
 *
 * A position counts once all lines below it are over and what was stored anew
 * there is flushed.  So every few seconds no line is begun until none is under
 * way; then the position and the counts are taken, the members are flushed,
 * and what was taken is saved, without a new record.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/io/flush.h"
#include "array/io/superblock.h"
#include "array/scrub/internal.h"

static bool
is_flushing (const struct scrub *sc)
{
  return !list_empty (&sc->flush_waiter.link);
}

static void
flushed (struct array *a, struct waiter *w)
{
  struct scrub *sc = list_item (w, struct scrub, flush_waiter);
  const enum sb_scrub_state state = a->sb.scrub.state;

  if (a->failed)
    return;
  a->sb.scrub = sc->mark;
  a->sb.scrub.state = state;    /* it may have changed meanwhile */
  if (sc->next == sc->end)
    return;                     /* it ends in this turn */
  save_want (a);
  if (!a->stopping)
    save_tick (a);
}

void
scrub_load (struct array *a)
{
  const struct sb_scrub *s = &a->sb.scrub;
  struct scrub *sc = a->scrub;

  list_init (&sc->flush_waiter.link);
  sc->flush_waiter.run = flushed;
  if (s->state == SB_SCRUB_NONE)
    return;
  sc->state = s->state == SB_SCRUB_PAUSED ? SCRUB_PAUSED : SCRUB_RUNNING;
  sc->interrupted = true;
  sc->repair = s->repair;
  sc->next = s->pos / a->cell_len;
  sc->end = a->sb.l.data_len / a->cell_len;
  sc->done_len = sc->next * a->cell_len;
  sc->count = (struct array_scrub_count) {
    .found = s->found, .repaired = s->repaired,
    .unlocated_rows = s->unlocated_rows, .lost_rows = s->lost_rows,
    .skipped_rows = s->skipped_rows,
  };
}

static struct sb_scrub
as_saved (const struct array *a)
{
  const struct scrub *sc = a->scrub;
  const struct array_scrub_count *c = &sc->count;

  return (struct sb_scrub) {
    .state = a->sb.scrub.state, .repair = sc->repair,
    .pos = sc->next * a->cell_len,
    .found = MIN (c->found, UINT32_MAX),
    .repaired = MIN (c->repaired, UINT32_MAX),
    .unlocated_rows = MIN (c->unlocated_rows, UINT16_MAX),
    .lost_rows = MIN (c->lost_rows, UINT16_MAX),
    .skipped_rows = MIN (c->skipped_rows, UINT16_MAX),
  };
}

void
scrub_changed (struct array *a)
{
  struct sb_scrub *s = &a->sb.scrub;
  const struct scrub *sc = a->scrub;

  if (sc->state == SCRUB_RUNNING || sc->state == SCRUB_PAUSED) {
    s->state = sc->state == SCRUB_PAUSED ? SB_SCRUB_PAUSED : SB_SCRUB_RUNNING;
    s->repair = sc->repair;
  }
  else {
    list_remove (&a->scrub->flush_waiter.link);
    *s = (struct sb_scrub) { 0 };
  }
  save_want (a);
}

bool
scrub_save_is_due (const struct array *a)
{
  const struct scrub *sc = a->scrub;

  if (!a->writable || a->failed || is_flushing (sc) || sc->interrupted ||
      (sc->state != SCRUB_RUNNING && sc->state != SCRUB_PAUSED) ||
      sc->next * a->cell_len == a->sb.scrub.pos)
    return false;
  return a->stopping || sc->state == SCRUB_PAUSED || sc->next == sc->end ||
    engine_now (a) - sc->marked >= a->save_ns;
}

bool
scrub_save_is_over (const struct array *a)
{
  return !scrub_save_is_due (a) && !is_flushing (a->scrub);
}

void
scrub_save_turn (struct array *a)
{
  struct scrub *sc = a->scrub;

  if (!scrub_save_is_due (a) || sc->nr_lines > 0)
    return;
  sc->marked = engine_now (a);
  sc->mark = as_saved (a);
  flush_members (a, &sc->flush_waiter);
}
