/* gpuraid: tests: opening the array of a run again, with what is there.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <inttypes.h>
#include <string.h>

#include "array/dirty/dirty.h"
#include "array/engine/consistency.h"
#include "array/main-loop.h"
#include "array/seats/seat.h"
#include "common/bits.h"
#include "tests/simulation/sim-run.h"

static bool
any_open (const struct array *a)
{
  for (uint64_t p = 0; p < a->nr_pages; p++)
    for (unsigned w = 0; w < BITMAP_PAGE_WORDS; w++)
      if (a->page[p]->want.open[w])
        return true;
  return false;
}

/* The disks that a user would name: with a superblock. */
static uint64_t
disks_known (const struct run *r)
{
  static struct superblock sb;
  uint64_t disks = 0;

  for (unsigned i = 0; i < r->sa->nr_disks; i++)
    for (enum sb_copy c = 0; c < SB_NR_COPIES; c++) {
      const struct sim_disk *d = r->sa->disk[i];

      if (superblock_decode (d->image + layout_sb_off (d->size, c), c, &sb,
                             NULL) == SB_OK)
        disks |= BIT (i);
    }
  return disks;
}

static uint64_t
disks_there (const struct run *r)
{
  uint64_t disks = 0;

  for (unsigned i = 0; i < r->sa->nr_disks; i++)
    if (!r->sa->disk[i]->absent && !r->sa->disk[i]->dead)
      disks |= BIT (i);
  return disks;
}

/* What a journal lacks is lost: it may only be read.  That counts as refused,
 * as a user would use force.
 */
static bool
is_refused (struct run *r, uint64_t which, bool force, bool readonly)
{
  r->sa->g.size = r->sure_size;
  if (sim_array_open (r->sa, which, force ? DEGRADED_FORCE : DEGRADED_ALLOW,
                      readonly) == -1)
    return true;
  if (readonly || !array_is_readonly (r->sa->a))
    return false;
  if (!sim_array_stop (r->sa))
    run_die (r, "it does not stop");
  return true;
}

/* It may have grown in the session before.  While the record of that may not be
 * in force, copies of it that rot take it back; so openings do not name
 * that size yet.
 */
static void
note_size (struct run *r)
{
  if (r->sa->g.size < r->sure_size)
    run_die (r, "it has become smaller");
  if (r->sa->a->membership.in_force)
    r->sure_size = r->sa->g.size;
  if (r->sa->g.size == r->g.size)
    return;
  stats.grown += r->sa->g.size > r->g.size;
  r->g.size = r->sa->g.size;
  r->nr_rows = r->sa->nr_stripes * r->rows_per_stripe;
  assert (r->g.size <= r->max_size && r->nr_rows <= r->max_rows);
}

/* All slots were active, and no record on its way would have changed by which
 * members: then as few of these open it as M4 says, and a slot that is being
 * added does not count.
 */
static bool
are_enough (const struct run *r, uint64_t there)
{
  const unsigned need = MAX (r->g.k, r->promised + 1);

  return r->journal && !r->any_rot && !r->rest_rotted && !r->ringless &&
    !r->spoilt && !r->two_active && !r->forced &&
    r->was_active == r->in_force && r->confirmed &&
    nr_bits (r->in_force) == r->g.k + r->promised &&
    (r->was_lost & ~r->was_first) == 0 &&
    nr_bits (there & r->in_force & ~r->older) >=
    MAX (need, r->promised >= r->g.k ? r->g.k + 1 : 0);
}

/* It opened, although k members may have gone on alone (M4), and no more than
 * that were found: the new member of a slot that is being added is none.  Where
 * all that the record lists are there, none can have.
 */
static bool
were_too_few (const struct run *r, uint64_t there)
{
  const struct array *a = r->sa->a;

  return device_set_count (&a->membership.cur.self.active) >
    nr_good_slots (a) && r->first && r->promised >= r->g.k &&
    nr_bits (there & ~r->was_new) <= r->g.k &&
    nr_bits (r->in_force) > r->g.k;
}

static bool
try_open (struct run *r, uint64_t which, bool force, bool readonly)
{
  const uint64_t there = which & disks_there (r);
  /* If it is not known to be in force, its base's members count too. */
  const bool all =
    ((r->was_active | r->in_force) & ~(there & ~r->older)) == 0;

  limits.max_seats = MIN (default_limits.max_seats,
                          nr_bits (there) + r->spare_seats);
  if (is_refused (r, which, force, readonly)) {
    stats.refused++;
    run_say (r, "disks %#" PRIx64 "%s: refused: %s", which, force ? " (force)" :
         "", r->sa->said);
    /* A member left behind by force may have known a record that no other
     * member knew.
     */
    if (all && (force || (r->was_lost & ~r->was_first) == 0) && !r->over &&
        !rot_lost_pair (r) &&
        !(r->forced && strstr (r->sa->said, "in two ways")))
      run_die (r, "it was refused with all members: %s", r->sa->said);
    if (are_enough (r, there))
      run_die (r, "it was refused with enough members: %s", r->sa->said);
    return false;
  }
  if (r->sa->went_back_to) {
    back_check (r, which);
    return false;
  }
  run_say (r, "disks %#" PRIx64 "%s: open, %u+%u, slots not active %#" PRIx64,
       which, force ? " (force)" : "", r->sa->a->g.k, r->sa->a->g.m,
       r->sa->a->lost_slots);
  note_size (r);
  shape_check_open (r);
  if (!force && were_too_few (r, there))
    run_die (r, "it opened with too few members");
  copies_check_open (r);
  check_open (r);
  scrub_check_open (r);
  recovery_count_open (r);
  if (!force && !r->journal && any_open (r->sa->a) &&
      r->sa->a->lost_slots & ~seats_first_slot (r->sa->a))
    run_die (r, "it was unclean and a slot is missing, yet it opened");
  stats.forced += force;
  r->forced |= force;
  r->lost = r->sa->a->lost_slots;
  r->nr_unsynced = 0;
  check_synced (r);
  FOR_EACH_BIT (slot, r->lost)
    run_lose_slot (r, slot, true);
  rot_look_at_open (r);
  rest_look_at_open (r);
  if (nr_bits (r->lost) > r->g.m)
    r->over = true;
  allow_look (r);
  model_shaky (r->model, r->over);
  return true;
}

/* By force the array went on without some members.  These may have a record
 * that lets them go on alone, which no other member knows.  A user does not
 * open them without any of the others.
 */
static bool
may_open (const struct run *r)
{
  return !r->forced || r->in_force & disks_there (r);
}

static void
count_absent (const struct run *r)
{
  for (unsigned i = 0; i < r->sa->nr_disks; i++)
    stats.absent += r->sa->disk[i]->absent;
}

/* Open it somehow.  False: too much is permanently lost. */
bool
session_start (struct run *r, bool readonly)
{
  const uint64_t which = disks_known (r);

  trouble_end (r);
  r->over = false;
  if (r->killed && run_percent (r, 30)) {
    run_say (r, "the power fails, too");
    stats.kills_power++;
    sim_crash (r->sim);
    r->killed = false;
  }
  if (!copies_give_back (r) && run_percent (r, 30))
    for (unsigned n = 1 + run_below (r, r->g.m); n > 0; n--)
      r->sa->disk[run_below (r, r->sa->nr_disks)]->absent = true;
  allow_absent (r);
  count_absent (r);
  copies_at_rest (r);
  rot_at_rest (r);
  rest_rot (r);
  rest_open (r, which);
  if (may_open (r) &&
      (try_open (r, which, false, readonly) ||
       (r->in_force & disks_there (r) && run_percent (r, 70) &&
        try_open (r, which, true, readonly))))
    return true;
  for (unsigned i = 0; i < r->sa->nr_disks; i++)
    r->sa->disk[i]->absent = false;
  if (may_open (r) && try_open (r, which, false, readonly))
    return true;
  if (r->in_force & disks_there (r) && try_open (r, which, true, readonly))
    return true;
  stats.given_up++;
  return false;
}

bool
session_open (struct run *r, bool force, bool readonly)
{
  return try_open (r, disks_known (r), force, readonly);
}
