/* gpuraid: the status of a running array.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>
#include <string.h>

#include "array/lost.h"
#include "array/pass.h"
#include "array/scrub-line.h"
#include "array/scrub.h"
#include "array/seat.h"

static char *
copy_path (const char *path)
{
  return path ? strdup (path) : NULL;
}

/* The entry of a slot with no active seat. */
static void
empty_slot (const struct array *a, unsigned slot, struct array_entry *e)
{
  const struct seat *t = a->at[slot][1];
  const struct seat *gone = NULL;

  *e = (struct array_entry) { .slot = slot, .state = ENTRY_MISSING };
  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++)
    if (a->membership.device[dev].slot == slot &&
        a->membership.device[dev].state == DEVICE_FAILED)
      e->state = ENTRY_FAILED;
  for (unsigned i = 0; i < a->nr_seats; i++)
    if (a->seat[i]->slot == slot && a->seat[i]->state != SEAT_TARGET)
      gone = a->seat[i];
  if (gone && (gone->failed || gone->failing))
    e->state = ENTRY_FAILED;
  if (gone)
    e->errors = gone->nr_errors;
  e->path = copy_path (gone && gone->m ? gone->m->path : a->slot_path[slot]);
  if (t && t->state == SEAT_TARGET) {
    free (e->path);
    e->path = copy_path (t->m->path);
    e->state = ENTRY_REBUILDING;
    e->errors = t->nr_errors;
    e->no_space = t->no_space;
  }
}

static void
fill_entries (const struct array *a, struct array_status *st)
{
  for (unsigned slot = 0; slot < a->n; slot++) {
    const struct seat *s = a->at[slot][0];
    struct array_entry *e = &st->entry[st->nr_entries++];

    if (s && !s->failing)
      *e = (struct array_entry) {
        .slot = slot, .path = copy_path (s->m->path),
        .state = ENTRY_ACTIVE, .errors = s->nr_errors,
        .no_space = s->no_space, .slow = s->suspect,
        .bad_sums = s->nr_bad_sums,
      };
    else
      empty_slot (a, slot, e);
    e->scrub_found = a->scrub->found[slot];
    e->scrub_repaired = a->scrub->repaired[slot];
  }
  for (unsigned slot = 0; slot < a->n; slot++) {
    const struct seat *s = a->at[slot][0], *t = a->at[slot][1];

    if (s && !s->failing && t)
      st->entry[st->nr_entries++] = (struct array_entry) {
        .slot = slot, .path = copy_path (t->m->path),
        .state = t->state == SEAT_TARGET ? ENTRY_REBUILDING : ENTRY_ACTIVE,
        .errors = t->nr_errors, .no_space = t->no_space,
      };
  }
}

/* Counted here, not at each change: there are at most some thousand dirty
 * lines, and status is rarely asked for.
 */
static uint64_t
dirty_len (const struct array *a)
{
  uint64_t nr_blocks = 0;

  list_for_each (l, &a->dirty) {
    const struct line *line = list_item (l, struct line, link);

    for (unsigned r = 0; r < a->g.k; r++)
      nr_blocks += __builtin_popcount (line->cell[r].dirty);
  }
  return nr_blocks * BLOCK_LEN;
}

void
array_get_status (struct array *a, struct array_status *st)
{
  memset (st, 0, sizeof *st);
  st->nr_engines = coder_shares (a->coder, st->engine);
  engine_lock (a);
  st->state = a->failed || nr_good_slots (a) < a->g.k ? ARRAY_FAILED :
    a->lost_slots ? ARRAY_DEGRADED : ARRAY_HEALTHY;
  st->writable = a->writable;
  st->g = a->g;
  st->code = a->sb.code;
  st->w = a->sb.w;
  st->uuid = a->sb.array_uuid;
  st->epoch = a->membership.cur.self.ballot.epoch;
  st->coder = a->coder->ops->name;
  st->loop = a->loop ? a->loop->ops->name : "";
  fill_entries (a, st);
  if (a->loop) {
    pass_progress (a, &st->rebuild, &st->resync);
    scrub_status (a, st);
  }
  st->rate_limit = a->pace.limit;
  st->lost_rows = lost_rows_count (a);
  st->counters = a->counters;
  st->cache_len = (uint64_t) a->nr_cells * a->cell_len;
  st->cache_used = (uint64_t) (a->nr_cells - a->nr_free) * a->cell_len;
  st->cache_dirty = dirty_len (a);
  engine_unlock (a);
}

void
array_status_free (struct array_status *st)
{
  for (unsigned i = 0; i < st->nr_entries; i++)
    free (st->entry[i].path);
  st->nr_entries = 0;
}
