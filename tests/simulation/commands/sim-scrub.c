/* gpuraid: tests: scrubs of a simulated array.
 *
 * What they do is drawn beside the run's own numbers: a run without them is
 * the same as before.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <string.h>

#include "array/scrub/internal.h"
#include "array/scrub/scrub.h"
#include "common/bits.h"
#include "tests/simulation/sim-run.h"

static uint64_t
draw (struct run *r, uint64_t n)
{
  r->scrub_state = r->scrub_state * 6364136223846793005 + 1442695040888963407;
  return (r->scrub_state >> 33) % n;
}

static void
start (struct run *r, bool repair)
{
  char why[ARRAY_WHY_LEN];

  engine_lock (r->sa->a);
  (void) scrub_start (r->sa->a, repair, why);
  engine_unlock (r->sa->a);
}

static void
control (struct array *a, enum array_scrub_command command)
{
  char why[ARRAY_WHY_LEN];

  engine_lock (a);
  (void) scrub_control (a, command, why);
  engine_unlock (a);
}

static void
act (void *arg)
{
  struct run *r = arg;
  struct array *a = r->sa->a;

  if (a == NULL || a->stopping || r->sa->dead || r->no_scrubs)
    return;
  if (!scrub_is_running (a) && draw (r, 4) > 0) {
    start (r, a->writable && draw (r, 2));
    stats.scrubs++;
    control (a, ARRAY_SCRUB_RESUME);
  }
  else
    control (a, draw (r, 2) ? ARRAY_SCRUB_PAUSE : ARRAY_SCRUB_STOP);
  scrub_soon (r);
}

void
scrub_soon (struct run *r)
{
  if (r->scrub_state == 0)
    r->scrub_state = r->seed * 0x9e3779b97f4a7c15 | 1;
  if (r->seed % 4 == 1)
    sim_at (r->sim, 1 + draw (r, 1000000000), act, r);
}

/* ---- where it is, on the disks ---- */

static bool
same (const struct sb_scrub *x, const struct sb_scrub *y)
{
  return x->state == y->state && x->repair == y->repair && x->pos == y->pos &&
    x->found == y->found && x->repaired == y->repaired &&
    x->unlocated_rows == y->unlocated_rows && x->lost_rows == y->lost_rows &&
    x->skipped_rows == y->skipped_rows;
}

static void
forget_older (struct run *r, unsigned nr)
{
  nr = MIN (nr, r->nr_scrub);
  r->nr_scrub -= nr;
  memmove (r->scrub, r->scrub + nr, r->nr_scrub * sizeof r->scrub[0]);
  r->scrub_saved -= MIN (nr, r->scrub_saved);
  r->scrub_saving -= MIN (nr, r->scrub_saving);
}

static void
note (struct run *r)
{
  const struct sb_scrub *s = &r->sa->a->sb.scrub;

  if (r->nr_scrub > 0 && same (s, &r->scrub[r->nr_scrub - 1]))
    return;
  if (r->nr_scrub == SIM_SCRUBS)
    forget_older (r, SIM_SCRUBS / 2);
  r->scrub[r->nr_scrub++] = *s;
}

/* Nothing below the position is being looked at. */
static void
check_position (struct run *r)
{
  const struct array *a = r->sa->a;

  if (a->sb.scrub.state == SB_SCRUB_NONE)
    return;
  if (a->sb.scrub.pos > a->scrub->next * a->cell_len)
    run_die (r, "the scrub is not where it says");
  list_for_each (l, &a->scrub->lines)
    if (list_item (l, struct scrub_line, link)->no * a->cell_len <
        a->sb.scrub.pos)
      run_die (r, "the scrub has passed a line that is under way");
}

/* A save has what there was when it began, at least: what was seen before the
 * event.
 */
void
scrub_look (struct run *r)
{
  const struct array *a = r->sa->a;
  const unsigned before = r->nr_scrub > 0 ? r->nr_scrub - 1 : 0;
  const bool calm = !a->failed && !a->change && !a->change_wanted;

  check_position (r);
  if (a->writable && !r->scrub_writable)
    r->scrub_saved = before;    /* the first record has it */
  r->scrub_writable = a->writable;
  if (a->saves_begun == r->scrub_saves && a->saves_ended == r->scrub_saves &&
      calm && r->scrub_saving > r->scrub_saved)
    r->scrub_saved = r->scrub_saving;
  if (a->saves_begun != r->scrub_saves) {
    r->scrub_saves = a->saves_begun;
    r->scrub_saving = before;
  }
  note (r);
}

void
scrub_note_stop (struct run *r)
{
  const struct array *a = r->sa->a;

  note (r);
  if (a->writable && !a->any_failing && !a->change_wanted)
    r->scrub_saved = r->nr_scrub - 1;
}

void
scrub_check_open (struct run *r)
{
  const struct sb_scrub *s = &r->sa->a->sb.scrub;
  unsigned i = r->scrub_saved;

  r->scrub_saves = 0;
  r->scrub_saving = 0;
  r->scrub_writable = false;
  stats.scrubs_gone_on += s->state == SB_SCRUB_RUNNING;
  while (i < r->nr_scrub && !same (s, &r->scrub[i]))
    i++;
  /* At its end it is only for a moment. */
  if (i == r->nr_scrub && r->nr_scrub > 0 && !r->forced && !r->over &&
      s->pos < r->sa->a->sb.l.data_len)
    stats.scrubs_unknown++;     /* while it stopped it is not looked at */
  if (r->forced || r->over)
    r->nr_scrub = r->scrub_saved = 0;
  note (r);
}

/* ---- at the end ---- */

static bool
has_ended (struct run *r)
{
  const struct array *a = r->sa->a;

  return !scrub_is_running (a) && !scrub_is_busy (a);
}

/* False: something has happened meanwhile. */
static bool
scrub_all (struct run *r, bool repair, struct array_status *st)
{
  const uint64_t end = sim_now (r->sim) + 600 * SECONDS;
  struct array *a = r->sa->a;

  control (a, ARRAY_SCRUB_STOP);
  while (!has_ended (r) && run_step (r))
    ;
  start (r, repair);
  while (!has_ended (r))
    if (!run_step (r) || sim_now (r->sim) > end)
      run_die (r, "a scrub does not end");
  array_get_status (a, st);
  array_status_free (st);
  return st->last_scrub_complete && !a->failed && a->lost_slots == 0;
}

/* The first look: nothing that was not spoilt.  Before it: pages of the
 * checksum tables that were found damaged, and slots whose members of then,
 * which may have been replaced since, were spoilt.
 */
static void
check_first (struct run *r, const struct array_status *st, uint64_t before,
             uint64_t spoilt_before)
{
  const struct array *a = r->sa->a;
  const uint64_t spoilt = end_spoilt_slots (r) | spoilt_before;

  if (a->counters.corrupt_table_pages > before && spoilt == 0)
    run_die (r, "a scrub finds damaged pages of the checksum tables, which "
             "nothing has spoilt");
  if (st->last_scrub.unlocated_rows > 0)
    run_die (r, "%" PRIu64 " rows do not fit", st->last_scrub.unlocated_rows);
  for (unsigned slot = 0; slot < r->n; slot++)
    if (a->scrub->found[slot] > 0 && !(spoilt >> slot & 1))
      run_die (r, "slot %u: a scrub finds %" PRIu64 " wrong blocks that "
               "nothing has spoilt", slot, a->scrub->found[slot]);
}

void
scrub_finds_nothing (struct run *r, const char *what)
{
  const uint64_t *pages = &r->sa->a->counters.corrupt_table_pages;
  const uint64_t before = *pages;
  struct array_status st;

  if (scrub_all (r, false, &st) &&
      (st.last_scrub.found > 0 || st.last_scrub.lost_rows > 0 ||
       st.last_scrub.unlocated_rows > 0 || st.last_scrub.skipped_rows > 0 ||
       *pages > before))
    run_die (r, "%s: %" PRIu64 " blocks are wrong, %" PRIu64 " rows do not "
             "fit, %" PRIu64 " are lost, %" PRIu64 " skipped, %" PRIu64
             " pages of the checksum tables are damaged", what,
             st.last_scrub.found, st.last_scrub.unlocated_rows,
             st.last_scrub.lost_rows, st.last_scrub.skipped_rows,
             *pages - before);
}

bool
scrub_last (struct run *r)
{
  const uint64_t epoch = r->sa->a->membership.cur.self.ballot.epoch;
  const uint64_t pages = r->sa->a->counters.corrupt_table_pages;
  const uint64_t spoilt = end_spoilt_slots (r);
  struct array_status st;

  if (scrub_all (r, false, &st))
    check_first (r, &st, pages, spoilt);
  if (!scrub_all (r, true, &st))
    return false;
  stats.scrub_found += st.last_scrub.found > 0;
  if (st.last_scrub.repaired < st.last_scrub.found)
    run_die (r, "of %" PRIu64 " wrong blocks %" PRIu64 " were repaired",
             st.last_scrub.found, st.last_scrub.repaired);
  scrub_finds_nothing (r, "after a repair");
  return r->sa->a->membership.cur.self.ballot.epoch == epoch;
}
