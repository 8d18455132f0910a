/* gpuraid: the array grows.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/change/grow-internal.h"
#include "array/engine/consistency.h"
#include "array/engine/state.h"
#include "array/health/lost.h"
#include "array/io/flush.h"
#include "array/io/superblock.h"
#include "array/seats/seat.h"

static void flushed (struct array *a, struct waiter *w);

static int
grow_init (struct array *a, const struct config *c, const struct assembly *as)
{
  a->grow = calloc (1, sizeof *a->grow);
  if (a->grow == NULL)
    return -1;
  list_init (&a->grow->flush_waiter.link);
  a->grow->flush_waiter.run = flushed;
  return 0;
}

static void
grow_free (struct array *a)
{
  if (a->grow)
    dirty_memory_free (&a->grow->dirty);
  free (a->grow);
}

/* ---- what may grow ------------------------------------------------------- */

/* That of the shortest member in use or spare; NULL: there is none. */
static const struct seat *
shortest (const struct array *a)
{
  const struct seat *found = NULL;

  for (unsigned i = 0; i < a->nr_seats; i++) {
    const struct seat *s = a->seat[i];

    if (s->m && !s->failing &&
        (s->state == SEAT_ACTIVE || s->state == SEAT_SPARE) &&
        (found == NULL ||
         s->m->ops->size (s->m) < found->m->ops->size (found->m)))
      found = s;
  }
  return found;
}

/* Its bytes; 0: there is none. */
static uint64_t
shortest_size (const struct array *a)
{
  const struct seat *s = shortest (a);

  return s ? s->m->ops->size (s->m) : 0;
}

const char *
grow_obstacle (const struct array *a)
{
  if (a->failed)
    return "the array has failed";
  if (a->stopping)
    return "the array stops";
  if (a->sb.record.self.first)
    return "parity is being added: wait until that has ended (gpuraid wait), "
      "or take the slot back (gpuraid add-parity CONTROL cancel)";
  if (a->g.widening)
    return "a data member is being added: wait until that has ended (gpuraid "
      "wait)";
  if (a->lost_slots)
    return "a slot has no active member: replace it, or take it again, first";
  if (a->irregular_slots)
    return "a member is being rebuilt or replaced: wait until that has ended "
      "(gpuraid wait)";
  if (a->nr_unsynced)
    return "a resync is under way: wait until it has ended (gpuraid wait)";
  if (lost_any (a))
    return "some blocks are lost: write them first";
  return NULL;
}

static const char *
obstacle (const struct array *a)
{
  return a->ops_held ? "a member is being added: wait until that has ended" :
    grow_obstacle (a);
}

static bool
plan_it (const struct array *a, struct geometry *g, struct member_layout *l,
         uint64_t *need)
{
  *g = a->g;
  *l = a->sb.l;
  return layout_grow (g, l, shortest_size (a), need) == 0;
}

static uint64_t
room_to_grow (const struct array *a)
{
  struct geometry g;
  struct member_layout l;
  uint64_t need;

  return obstacle (a) == NULL && plan_it (a, &g, &l, &need) ?
    g.size - a->g.size : 0;
}

static void
say_why_not (const struct array *a, uint64_t need, char why[ARRAY_WHY_LEN])
{
  const struct seat *s = shortest (a);

  if (a->sb.l.nr_grown == LAYOUT_MAX_GROWN)
    snprintf (why, ARRAY_WHY_LEN, "the array has grown %u times, which is the "
              "most", LAYOUT_MAX_GROWN);
  else if (need == UINT64_MAX || s == NULL)
    snprintf (why, ARRAY_WHY_LEN, "the array can't be larger");
  else
    snprintf (why, ARRAY_WHY_LEN, "nothing to gain: %s, the smallest, has %"
              PRIu64 " bytes, and each member must have at least %" PRIu64
              ": %s", s->m->path, shortest_size (a), need,
              s->state == SEAT_SPARE ? "take this spare out first (gpuraid "
              "fail)" : s->m->ops->look_size ?
              "replace the smaller ones first (gpuraid replace)" :
              "replace it (gpuraid replace); or, if its export is larger by "
              "now, start this server again");
}

int
grow_may_gain (const struct array *a, char why[ARRAY_WHY_LEN])
{
  struct geometry g;
  struct member_layout l;
  uint64_t need;

  if (obstacle (a) || plan_it (a, &g, &l, &need))
    return 0;
  say_why_not (a, need, why);
  return EINVAL;
}

int
grow_start (struct array *a, char why[ARRAY_WHY_LEN])
{
  struct grow *gr = a->grow;
  const char *what = gr->phase != GROW_NONE ? "the array is growing already" :
    obstacle (a);
  uint64_t need;

  if (what) {
    snprintf (why, ARRAY_WHY_LEN, "%s", what);
    return EINVAL;
  }
  if (!plan_it (a, &gr->g, &gr->l, &need)) {
    say_why_not (a, need, why);
    return EINVAL;
  }
  if (dirty_memory_new (a, &gr->dirty, &gr->l)) {
    snprintf (why, ARRAY_WHY_LEN, "out of memory");
    return EINVAL;
  }
  layout_part (&gr->l, gr->l.nr_grown, &gr->part);
  memset (gr->seat, 0, sizeof gr->seat);
  gr->done = gr->total = 0;
  for (enum grow_area area = 0; area < GROW_NR_AREAS; area++)
    gr->total += a->n * grow_area_len (a, gr, area);
  for (unsigned slot = 0; slot < a->n; slot++)
    gr->seat[slot].seat = a->at[slot][0];
  rate_reset (&gr->rate);
  gr->growth.old_size = a->g.size;
  gr->growth.new_size = gr->g.size;
  gr->error = 0;
  gr->why[0] = '\0';
  gr->phase = GROW_PREPARING;
  return 0;
}

/* ---- preparing ----------------------------------------------------------- */

void
grow_cancel (struct array *a)
{
  if (a->grow->phase != GROW_NONE)
    grow_fail (a, ESHUTDOWN, "cancelled");
}

static bool
same_members (const struct array *a)
{
  const struct grow *gr = a->grow;
  for (unsigned slot = 0; slot < a->n; slot++)
    if (a->at[slot][0] != gr->seat[slot].seat)
      return false;
  return shortest_size (a) >= layout_end (&gr->l);
}

/* Before the change of the record begins. */
static void
check (struct array *a)
{
  const char *what = obstacle (a);

  if (what)
    grow_fail (a, EIO, "%s", what);
  else if (!same_members (a))
    grow_fail (a, EIO, "the members have changed meanwhile: try again");
}

static void
grow_end (struct array *a)
{
  struct grow *gr = a->grow;

  list_remove (&gr->flush_waiter.link);
  dirty_memory_free (&gr->dirty);
  gr->phase = GROW_NONE;
}

static void
flushed (struct array *a, struct waiter *w)
{
  struct grow *gr = a->grow;

  if (gr->phase == GROW_FLUSHING)
    gr->phase = GROW_READY;
}

static void
grow_turn (struct array *a)
{
  struct grow *gr = a->grow;

  if (gr->phase == GROW_NONE || gr->phase == GROW_CHANGING)
    return;
  check (a);
  if (gr->error) {
    if (!grow_is_busy (a))
      grow_end (a);
    return;
  }
  if (gr->phase != GROW_PREPARING)
    return;
  rate_note (&gr->rate, engine_now (a), gr->done);
  if (!grow_prepare (a))
    return;
  gr->phase = GROW_FLUSHING;
  flush_members (a, &gr->flush_waiter);
}

/* ---- the record ---------------------------------------------------------- */

bool
grow_begin (struct array *a)
{
  struct grow *gr = a->grow;
  struct sb_shape shape = a->membership.shape;
  char why[MEMBERSHIP_TEXT_LEN];

  if (gr->phase != GROW_READY || gr->error)
    return false;
  check (a);
  /* No copy may list more lost blocks than there will be room for. */
  if (gr->error || !a->consistency->is_ready (a) || save_is_due (a))
    return false;
  shape.size = gr->g.size;
  shape.data_len = gr->l.data_len;
  shape.nr_grown = gr->l.nr_grown;
  memcpy (shape.grown, gr->l.grown, sizeof shape.grown);
  if (membership_begin_grow (&a->membership, &shape, why) == -1) {
    grow_fail (a, EIO, "%.*s", ARRAY_WHY_LEN - 1, why);
    return false;
  }
  gr->phase = GROW_CHANGING;
  return true;
}

static void
grow_seats (struct array *a, uint64_t before)
{
  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct seat *s = a->seat[i];

    s->page_place = realloc (s->page_place, a->nr_pages);
    if (s->page_place == NULL)
      abort ();         /* as in array/io/xfer.c */
    memset (s->page_place + before, 1, a->nr_pages - before);
  }
}

/* Reading clients and operations in flight use what was there before, which
 * has not moved.
 */
static void
apply (struct array *a)
{
  struct grow *gr = a->grow;
  const uint64_t before = a->nr_pages;
  const uint64_t size = shortest_size (a);

  dirty_grow (a, &gr->dirty);
  grow_seats (a, before);
  sb_set_shape (&a->sb, &a->membership.shape);
  a->g.size = a->sb.g.size;
  if (size)
    a->member_size = size;
  a->engine.hooks->grown (a);
  log_notice ("the array has grown from %" PRIu64 " to %" PRIu64 " bytes",
              gr->growth.old_size, gr->growth.new_size);
}

void
grow_decided (struct array *a)
{
  struct grow *gr = a->grow;

  if (a->membership.shape.data_len == gr->l.data_len)
    apply (a);
  else
    grow_fail (a, EIO, "a member has failed: the array is as large as it was");
  grow_end (a);
}

/* ---- status -------------------------------------------------------------- */

bool
grow_is_running (const struct array *a)
{
  return a->grow->phase != GROW_NONE;
}

int
grow_result (const struct array *a, struct array_growth *growth,
             char why[ARRAY_WHY_LEN])
{
  const struct grow *gr = a->grow;

  *growth = gr->growth;
  if (gr->error)
    memcpy (why, gr->why, ARRAY_WHY_LEN);
  return gr->error;
}

static void
grow_status (const struct array *a, struct array_status *st)
{
  const struct grow *gr = a->grow;
  struct array_progress *progress = &st->grow;

  st->growable = room_to_grow (a);
  if (a->loop == NULL || gr->phase == GROW_NONE)
    return;
  progress->running = true;
  progress->done = gr->done;
  progress->total = gr->total;
  rate_fill (&gr->rate, engine_now (a), gr->done, gr->total - gr->done,
             progress);
}

const struct room room_grow = {
  .init = grow_init, .free = grow_free, .turn = grow_turn,
  .is_busy = grow_is_running, .status = grow_status,
};
