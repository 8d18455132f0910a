/* gpuraid: what a crash left in the journal, and what is made of it: each run
 * of rows is decided alone, from the mentions in it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>
#include <string.h>

#include "array/replay/decide.h"
#include "common/bits.h"
#include "common/log.h"
#include "common/plant.h"
#include "raidmap/layout/reshape.h"

/* The mentions of one transaction in the run: live[from] to live[to - 1]. */
struct group {
  size_t from, to;
};

/* The next one, from an empty one before the first.  False: there is none. */
static bool
next_group (const struct replay_work *w, struct group *gr)
{
  gr->from = gr->to;
  if (gr->from == w->nr_live)
    return false;
  while (gr->to < w->nr_live && w->live[gr->to]->seq == w->live[gr->from]->seq)
    gr->to++;
  return true;
}

/* The slots that it changes, by any record of it. */
static uint64_t
slots_of (const struct replay_work *w, uint64_t row, const struct group *gr)
{
  uint64_t roles = 0, slots = 0;

  for (size_t i = gr->from; i < gr->to; i++)
    roles |= w->live[i]->roles;
  FOR_EACH_BIT (role, roles & LOW_BITS (w->g->k + w->g->m))
    slots |= BIT (reshape_slot (w->g, row, role));
  return slots;
}

/* The slot that counts as zeroes, present or lost, whatever it has: no record
 * says that it changes.
 */
static uint64_t
zero_slots (const struct replay_work *w, uint64_t row)
{
  return reshape_is_old (w->g, row) ? BIT (w->g->k + w->g->m - 1) : 0;
}

/* Is enough of a run's rows known? */
static bool
is_enough (const struct replay_work *w, const struct replay_run *run)
{
  const uint64_t known =
    (w->slots & ~run->erased) | zero_slots (w, run->first);

  return nr_bits (known) >= w->g->k;
}

/* In place. */
static uint64_t
bad_slots (const struct replay_work *w, uint64_t row)
{
  uint64_t slots = 0;

  for (unsigned i = 0; i < w->in->nr_bad; i++)
    if (w->in->bad[i].row == row)
      slots |= w->in->bad[i].slots;
  return slots;
}

/* The newest transaction zeroes a row of all slots.  So it is never dropped
 * there, whatever lies below it: what was withdrawn (journal/withdraw.h) is
 * known no more.
 */
static bool
zeroes_row (const struct replay_work *w, const struct group *gr)
{
  for (size_t i = gr->from; i < gr->to; i++)
    if (w->live[i]->good && replay_says_of_all (w, w->live[i]))
      return !PLANTED ("replay-zero-erased");
  return false;
}

/* A transaction writes all of a row directly, or none. */
static struct replay_source
source_of (const struct replay_work *w, unsigned slot, const struct group *gr)
{
  struct replay_source src = {
    .kind = PLANTED ("replay-torn-in-place") ? REPLAY_IN_PLACE : REPLAY_ERASED,
    .direct = w->live[gr->from]->direct,
  };
  bool found = false, lacks = false;

  for (size_t i = gr->from; i < gr->to; i++) {
    const struct mention *mt = w->live[i];

    if (mt->slot != slot)
      continue;
    /* Which of two members is read? */
    lacks |= mt->direct && !mt->good;
    if (!mt->good || (found && mt->direct))
      continue;
    found |= !mt->direct;
    src.kind = mt->zero ? REPLAY_ZERO : mt->direct ? REPLAY_DIRECT :
      REPLAY_RING;
    src.dev = mt->dev;
    src.place = mt->place;
    src.crc = mt->crc;
  }
  if (lacks)
    src.kind = REPLAY_ERASED;
  return src;
}

/* Without transactions from before on. */
static void
decide_without (struct replay_work *w, struct replay_run *run, uint64_t before)
{
  const unsigned n = w->g->k + w->g->m;
  const uint64_t there = w->slots & ~zero_slots (w, run->first);
  struct group gr = { 0, 0 };

  run->changed = run->erased = 0;
  run->newest = false;
  memset (run->source, 0, n * sizeof *run->source);
  while (next_group (w, &gr)) {
    const uint64_t seq = w->live[gr.from]->seq;
    uint64_t slots;

    if (seq >= before)
      continue;
    run->newest |= seq == w->r->newest;
    slots = slots_of (w, run->first, &gr);
    if (!PLANTED ("replay-oldest-wins"))
      slots &= ~run->changed;
    run->changed |= slots;
    FOR_EACH_BIT (slot, slots)
      run->source[slot].seq = seq;
    FOR_EACH_BIT (slot, slots & there) {
      run->source[slot] = zeroes_row (w, &gr) ?
        (struct replay_source) { .kind = REPLAY_ZERO } :
        source_of (w, slot, &gr);
      run->source[slot].seq = seq;
      if (run->source[slot].kind == REPLAY_ERASED)
        run->erased |= BIT (slot);
    }
  }
  FOR_EACH_BIT (slot, bad_slots (w, run->first) & there) {
    if (run->source[slot].kind != REPLAY_IN_PLACE &&
        run->source[slot].kind != REPLAY_DIRECT)
      continue;
    run->source[slot].kind = REPLAY_ERASED;
    run->erased |= BIT (slot);
  }
}

/* The table has an entry of it in this row: it met R1 (rule R14).  Of others
 * that says nothing: they may have been dropped by a recovery.
 */
static bool
is_proven (const struct replay_work *w)
{
  for (size_t i = 0; i < w->nr_live; i++)
    if (w->live[i]->stored && w->live[i]->seq == w->r->newest)
      return true;
  return false;
}

static void
decide_run (struct replay_work *w, uint64_t first, uint64_t end)
{
  const unsigned n = w->g->k + w->g->m;
  struct replay_run *run = &w->r->run[w->r->nr_runs];

  *run = (struct replay_run) {
    .first = first, .nr = end - first,
    .source = w->r->sources + (size_t) w->r->nr_runs * n,
  };
  decide_without (w, run, UINT64_MAX);
  w->any_short |= !is_enough (w, run);
  w->any_proven |= w->moving && is_proven (w);
  if ((!w->moving || PLANTED ("widen-rowwise")) &&
      !is_enough (w, run) && run->newest &&
      !is_proven (w) && !PLANTED ("replay-not-dropped")) {
    decide_without (w, run, w->r->newest);
    if (is_enough (w, run))
      w->r->nr_dropped += run->nr;
    else
      decide_without (w, run, UINT64_MAX);
  }
  run->lost = !is_enough (w, run);
  run->lacks = run->lost &&
    ((run->changed & (run->erased | ~w->slots)) != 0 ||
     PLANTED ("replay-lost-lacks"));
  if (run->changed)
    w->r->nr_runs++;
}

/* From one run to the next, which begins at first: those that go on, and those
 * from *next on that begin there, merged.
 */
static void
find_live (struct replay_work *w, uint64_t first, size_t *next)
{
  const struct mention **old = w->live, **live = w->spare;
  const size_t nr_old = w->nr_live;
  size_t nr = 0, i = 0;

  for (;;) {
    const struct mention *mt = *next < w->nr_mentions &&
      w->mention[*next].first == first ? &w->mention[*next] : NULL;

    while (i < nr_old && old[i]->first + old[i]->nr <= first)
      i++;
    if (i < nr_old && (mt == NULL || old[i]->seq > mt->seq))
      live[nr++] = old[i++];
    else if (mt == NULL)
      break;
    else {
      live[nr++] = mt;
      ++*next;
    }
  }
  w->spare = old;
  w->live = live;
  w->nr_live = nr;
}

static int
decide_all (struct replay_work *w)
{
  const unsigned n = w->g->k + w->g->m;
  size_t next = 0;

  w->r->run = calloc (w->nr_bounds + 1, sizeof *w->r->run);
  w->r->sources = calloc ((w->nr_bounds + 1) * n, sizeof *w->r->sources);
  if (w->r->run == NULL || w->r->sources == NULL)
    return -1;
  for (size_t i = 0; i + 1 < w->nr_bounds; i++) {
    find_live (w, w->bound[i], &next);
    if (w->nr_live > 0)
      decide_run (w, w->bound[i], w->bound[i + 1]);
  }
  return 0;
}

static void
forget (struct replay_work *w)
{
  free (w->mention);
  free (w->live);
  free (w->spare);
  free (w->bound);
  w->mention = NULL;
  w->live = w->spare = NULL;
  w->bound = NULL;
  w->nr_mentions = w->nr_bounds = w->nr_live = 0;
}

static int
decide_rows (struct replay_work *w)
{
  const int r = replay_collect (w) == 0 ? decide_all (w) : -1;

  forget (w);
  return r;
}

static void
free_runs (struct replay *r)
{
  free (r->run);
  free (r->sources);
  r->run = NULL;
  r->sources = NULL;
  r->nr_runs = 0;
}

int
replay_decide (const struct replay_input *in, struct replay *r)
{
  struct replay_work w = { .in = in, .g = in->g, .r = r };
  int ret;

  memset (r, 0, sizeof *r);
  for (unsigned i = 0; i < in->nr_members; i++) {
    w.slots |= BIT (in->member[i].slot);
    w.any_behind |= in->member[i].missed != NULL;
  }
  replay_find_limits (&w);
  replay_begin_move (&w);
  ret = decide_rows (&w);
  if (ret == 0 && !replay_keeps_move (&w)) {
    free_runs (r);
    ret = decide_rows (&w);
  }
  r->frontier = w.g->frontier;
  if (ret == -1) {
    log_error ("calloc: no memory");
    replay_free (r);
  }
  return ret;
}
