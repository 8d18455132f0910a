/* gpuraid: tests: one more parity member for the array of a run, and back.
 *
 * In a third of the runs.  While the array runs its m and its fixed slots
 * change by what a command may do, and in no other way; the run follows them.
 * When it is opened they are what they were at a stop, or what some record on
 * its way would have made them at a crash.
 *
 * A slot of added parity that no member was active in is lost, and m has
 * counted it: so no more of the others may be in trouble than before.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <inttypes.h>

#include "array/cache/cache.h"
#include "array/seats/seat.h"
#include "array/sums/sums.h"
#include "common/bits.h"
#include "tests/simulation/sim-run.h"

/* At most so often, of one array: each takes a disk. */
#define MAX_ADDED 3u

static uint64_t
draw (struct run *r, uint64_t n)
{
  r->shape_state = r->shape_state * 6364136223846793005 + 1442695040888963407;
  return (r->shape_state >> 33) % n;
}

static uint64_t
cache_for (const struct run *r, unsigned m)
{
  struct geometry g = r->g;

  g.m = m;
  return cache_min_len (&g) + (r->sums ? sums_memory (&g, 0) : 0);
}

/* Some arrays have no room in memory for one more, or not for each. */
void
shape_draw (struct run *r)
{
  const unsigned room = MIN (MAX_SLOTS, 1u << r->sa->w) - r->n;
  const unsigned most = MIN (MAX_ADDED, room);

  r->shape_state = r->seed * 0x9e3779b97f4a7c15 | 1;
  r->start_m = r->max_m = r->g.m;
  r->shapes = BIT (2 * r->g.m);
  if (draw (r, 3) || most == 0)
    return;
  r->max_m += 1 + draw (r, most);
  r->sa->cache_len = draw (r, 8) == 0 ? cache_for (r, r->g.m + 1) :
    cache_for (r, r->max_m) * 8 / 7;
}

/* ---- what it is ---------------------------------------------------------- */

static uint64_t
bit_of (const struct sb_shape *s)
{
  return BIT (2 * s->m + s->first);
}

/* What the record in force says, and others that some member may have; also one
 * that was not there when it was opened.
 */
static void
note_records (struct run *r)
{
  const struct membership *ms = &r->sa->a->membership;

  if (ms->in_force && r->sa->a->writable &&
      (ms->phase == MEMBERSHIP_IDLE || ms->phase == MEMBERSHIP_STOPPED))
    r->shapes = bit_of (&ms->shape);
  else
    r->shapes |= bit_of (&ms->shape) | bit_of (&ms->next_shape);
}

static void
take (struct run *r)
{
  const struct array *a = r->sa->a;

  r->g.m = a->g.m;
  r->g.fixed = a->g.fixed;
  r->n = a->n;
  r->first = a->sb.record.self.first;
  /* Whether it has grown is looked at when it is opened again. */
  if (r->sa->g.m != a->g.m)
    sim_array_end_check (r->sa);
  r->sa->g.m = a->g.m;
  r->sa->g.fixed = a->g.fixed;
}

static bool
was_added (const struct run *r, const struct array *a)
{
  return a->g.m == r->g.m + 1 && a->sb.record.self.first && !r->first &&
    a->g.fixed == (r->g.fixed | BIT (r->n));
}

static bool
was_taken_back (const struct run *r, const struct array *a)
{
  return a->g.m + 1 == r->g.m && !a->sb.record.self.first && r->first &&
    a->g.fixed == (r->g.fixed & ~BIT (r->n - 1));
}

static bool
has_become_active (const struct run *r, const struct array *a)
{
  return a->g.m == r->g.m && !a->sb.record.self.first && r->first &&
    a->g.fixed == r->g.fixed;
}

static void
count (struct run *r, const struct array *a)
{
  stats.parity_added += was_added (r, a);
  stats.parity_taken_back += was_taken_back (r, a);
  stats.parity_active += has_become_active (r, a);
}

static void
cancel_it (void *arg)
{
  struct run *r = arg;

  if (r->chaos_on && r->first && r->sa->a->writable)
    command_parity_cancel (r);
}

void
shape_look (struct run *r)
{
  const struct array *a = r->sa->a;

  note_records (r);
  if (a->g.m == r->g.m && a->sb.record.self.first == r->first &&
      a->g.fixed == r->g.fixed)
    return;
  if (!was_added (r, a) && !was_taken_back (r, a) &&
      !has_become_active (r, a))
    run_die (r, "m was %u, and is %u; fixed slots %#" PRIx64 ", now %#" PRIx64
             "; first %d, now %d", r->g.m, a->g.m, r->g.fixed, a->g.fixed,
             r->first, a->sb.record.self.first);
  if (was_added (r, a) && draw (r, 2))
    sim_at (r->sim, draw (r, draw (r, 2) ? 2000000 : 30000000), cancel_it, r);
  count (r, a);
  take (r);
  run_say (r, "m is %u now, of that %u is promised", r->g.m,
           r->g.m - r->first);
  run_crash_soon (r, 30, 40 * r->n);
}

uint64_t
shape_new_disks (const struct run *r)
{
  const struct array *a = r->sa->a;
  uint64_t disks = 0;

  for (unsigned i = 0; r->first && i < a->nr_seats; i++)
    if (a->seat[i]->m && a->seat[i]->slot == a->n - 1)
      disks |= BIT (sim_array_disk_no (r->sa, sim_array_disk_of (a->seat[i])));
  return disks;
}

/* By force the members that are left may go on with an older record. */
void
shape_check_open (struct run *r)
{
  const struct array *a = r->sa->a;

  if ((bit_of (&a->membership.shape) & r->shapes) == 0 && !r->forced)
    run_die (r, "it opened with m %u, first %d: those of other records are "
             "%#" PRIx64, a->g.m, a->sb.record.self.first, r->shapes);
  if (a->sb.record.self.first && !(a->lost_slots >> (a->n - 1) & 1))
    run_die (r, "the last slot was never active, and is");
  count (r, a);
  stats.parity_opened += a->sb.record.self.first;
  take (r);
}

/* ---- commands ------------------------------------------------------------ */

/* Most often where it is not refused. */
void
shape_command (struct run *r)
{
  const struct array *a = r->sa->a;

  if (r->max_m == r->start_m)
    return;
  if (r->first ? draw (r, 3) == 0 : draw (r, 50) == 0)
    command_parity_cancel (r);
  else if (r->g.m < r->max_m && r->sa->nr_disks + 1 < MAX_REPLACED &&
           ((a->irregular_slots == 0 && a->nr_unsynced == 0) ||
            draw (r, 40) == 0))
    command_parity (r);
}

static void
command_if_used (void *arg)
{
  struct run *r = arg;

  if (r->nr_busy > 0 && r->sa->a->writable && !r->sa->a->failed)
    shape_command (r);
}

void
shape_soon (struct run *r)
{
  static const uint64_t ms[] = { 1, 10, 100, 1000 };

  if (draw (r, 3) == 0)
    sim_at (r->sim, draw (r, ms[draw (r, 4)] * 1000000), command_if_used, r);
}

bool
shape_changes_last (struct run *r)
{
  if (r->max_m == r->start_m || draw (r, 3))
    return false;
  if (r->first)
    command_parity_cancel (r);
  else if (r->g.m < r->max_m && r->sa->a->irregular_slots == 0)
    command_parity (r);
  else
    return false;
  return true;
}
