/* gpuraid: write superblocks, and save them with the record in force.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/engine/state.h"
#include "array/health/fail.h"
#include "array/io/flush.h"
#include "array/io/lease.h"
#include "array/io/progress.h"
#include "array/io/store.h"
#include "array/io/superblock.h"
#include "array/io/xfer.h"
#include "common/plant.h"

/* ---- the copies of one member -------------------------------------------- */

static void
add_copy (struct store *st, struct superblock *sb, enum sb_copy copy)
{
  struct member *m = st->seat->m;

  sb->copy = copy;
  superblock_encode (sb, store_add (st, layout_sb_off (m->ops->size (m),
                                                       copy)));
}

static void
add_pair (struct store *st, struct superblock *sb, enum sb_copy first,
          enum sb_copy second, bool swap)
{
  add_copy (st, sb, swap ? second : first);
  add_copy (st, sb, swap ? first : second);
}

/* Where it has become longer, B1 and B2 are not at its end any more. */
static void
note_size (struct seat *s)
{
  const uint64_t size = s->m->ops->size (s->m);

  if (s->sb_size && s->sb_size != size)
    s->b_first[0] = s->b_first[1] = true;
  s->sb_size = size;
}

void
sb_write (struct array *a, struct seat *s, enum sb_pairs pairs, bool clean,
          void (*done) (struct array *a, struct store *st))
{
  struct store *st = store_new (a, s, done);
  struct superblock sb = a->sb;

  sb.clean = clean;
  sb.beat = a->ending ||
    (a->stopping && PLANTED ("beat-cleared-early")) ? 0 : a->beat;
  membership_fill (&a->membership, s->dev, &sb);
  progress_fill (a, s, &sb);
  st->tag = pairs;
  note_size (s);
  if (pairs & SB_PROPOSED)
    add_pair (st, &sb, SB_A1, SB_B1, s->b_first[0]);
  if (pairs & SB_ACCEPTED)
    add_pair (st, &sb, SB_A2, SB_B2, s->b_first[1]);
  store_start (a, st);
}

void
sb_written (struct array *a, struct store *st)
{
  if (st->error)
    return;
  if (st->tag & SB_PROPOSED)
    st->seat->b_first[0] = false;
  if ((st->tag & SB_ACCEPTED) == 0)
    return;
  st->seat->b_first[1] = false;
  progress_stored (a, st->seat);
}

/* ---- saves --------------------------------------------------------------- */

static void
save_done (struct array *a, struct store *st)
{
  sb_written (a, st);
  st->seat->saving = false;
  if (st->error)
    seat_fail (a, st->seat, "superblock", st->error);
  if (--a->saving > 0)
    return;
  a->saves_ended = a->saves_begun;
  engine_run_waiters (a, &a->save_waiters);
}

static bool
takes_saves (const struct seat *s)
{
  return s->m && !s->failing && s->state != SEAT_IDLE;
}

/* Each superblock holds the cursors of all targets. */
static void
set_cursors (struct array *a)
{
  for (unsigned i = 0; i < a->nr_seats; i++)
    if (takes_saves (a->seat[i]) && a->seat[i]->state == SEAT_TARGET)
      membership_set_cursor (&a->membership, a->seat[i]->dev,
                             a->seat[i]->by_bitmap, a->seat[i]->cursor);
}

void
save_start (struct array *a, bool clean, struct waiter *w)
{
  if (w)
    list_move (&a->save_waiters, &w->link);
  if (save_is_busy (a))
    return;
  if (a->change || a->failed || !a->writable) {
    engine_run_waiters (a, &a->save_waiters);
    return;
  }
  a->saves_begun++;
  progress_next (a);
  a->saving = 1;
  set_cursors (a);
  for (unsigned i = 0; i < a->nr_seats; i++)
    if (takes_saves (a->seat[i])) {
      a->saving++;
      a->seat[i]->saving = true;
      sb_write (a, a->seat[i], SB_ACCEPTED, clean, save_done);
    }
  if (--a->saving == 0)
    engine_run_waiters (a, &a->save_waiters);
}

static void
beat_done (struct array *a, struct store *st)
{
  sb_written (a, st);
  st->seat->saving = false;
  if (st->error)
    seat_fail (a, st->seat, "superblock", st->error);
  else
    lease_renew (a, st->seat->beat_began);
  if (--a->beating == 0 && a->saving == 0)
    engine_run_waiters (a, &a->save_waiters);
}

bool
save_has_beat (const struct array *a)
{
  if (a->sb.incompat & SB_INCOMPAT_MULTIHOST)
    return true;
  for (unsigned i = 0; i < a->nr_seats; i++)
    if (takes_saves (a->seat[i]) && a->seat[i]->m->async)
      return true;
  return false;
}

/* Between the rounds of a change no copy is in question.  What waits for all
 * beats to end must not wait for ever, so then there are fewer.
 */
static bool
may_beat (const struct array *a)
{
  if (a->stopping && PLANTED ("beat-not-in-stop"))
    return false;
  return a->membership.phase == MEMBERSHIP_IDLE && !a->failed && a->writable &&
    !a->ending && (list_empty (&a->save_waiters) || a->beat % 2 == 0);
}

/* One that does not answer must not keep the others from showing it, nor may a
 * save or a change that waits for that one.
 */
void
save_beat (struct array *a)
{
  const bool may = may_beat (a);
  const uint64_t now = loop_boot_time (a->loop);

  /* It goes on when the last remote member is lost: disks still show it. */
  if (!save_has_beat (a) && (a->beat == 0 || PLANTED ("beat-not-kept")))
    return;
  a->beat = a->beat == UINT32_MAX ? 1 : a->beat + 1;
  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct seat *s = a->seat[i];

    if (!takes_saves (s) || !may || s->saving ||
        (PLANTED ("beat-remote-only") && !s->m->async))
      continue;
    if (!save_is_busy (a) && a->change == NULL)
      set_cursors (a);
    s->saving = true;
    s->beat_began = now;
    a->beating++;
    sb_write (a, s, SB_ACCEPTED, false, beat_done);
  }
}

bool
save_wanted (struct array *a, struct waiter *w)
{
  if (a->saves_ended >= a->wanted_save || a->failed)
    return true;
  if (change_is_over (a, w))
    save_start (a, false, w);
  return false;
}

void
save_tick (struct array *a)
{
  if (array_may_write (a) && (save_is_due (a) || progress_tick (a)))
    save_start (a, false, NULL);
}

/* ---- the room ------------------------------------------------------------ */

static int
superblock_init (struct array *a, const struct config *c,
                 const struct assembly *as)
{
  xfer_init (a);
  stores_init (a);
  flush_init (a);
  progress_init (a);
  list_init (&a->no_space);
  list_init (&a->no_space_stores);
  list_init (&a->save_waiters);
  lease_init (a);
  return 0;
}

static void
superblock_free (struct array *a)
{
  pool_end (&a->xfer_pool);
  pool_end (&a->store_pool);
  pools_end (&a->memory_pools);
  pools_end (&a->pools);
}

static void
superblock_tick (struct array *a, uint64_t now)
{
  save_tick (a);
}

static bool
superblock_wants_tick (const struct array *a)
{
  return save_is_busy (a) || save_is_due (a) || a->flushing ||
    progress_wants_tick (a);
}

static bool
superblock_is_busy (const struct array *a)
{
  return save_is_busy (a) || a->flushing || !list_empty (&a->flush_waiters);
}

const struct room room_io = {
  .init = superblock_init, .free = superblock_free, .turn = flush_decide,
  .tick = superblock_tick, .wants_tick = superblock_wants_tick,
  .is_busy = superblock_is_busy,
};
