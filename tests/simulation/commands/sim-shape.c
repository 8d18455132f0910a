/* gpuraid: tests: one more parity or data member for the array of a run, and
 * back.
 *
 * Each in a third of the runs.  While the array runs its k, m and fixed slots
 * change by what a command may do, and in no other way; the run follows them.
 * When it is opened they are what they were at a stop, or what some record on
 * its way would have made them at a crash.
 *
 * A slot of added parity that no member was active in is lost, and m has
 * counted it: so no more of the others may be in trouble than before.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <inttypes.h>

#include "array/cache/cache.h"
#include "array/seats/seat.h"
#include "array/sums/sums.h"
#include "common/bits.h"
#include "tests/simulation/sim-run.h"

/* At most so often, of one array: each takes a disk. */
#define MAX_ADDED 3u
#define MAX_WIDENED 2u

static uint64_t
draw (struct run *r, uint64_t n)
{
  r->shape_state = r->shape_state * 6364136223846793005 + 1442695040888963407;
  return (r->shape_state >> 33) % n;
}

/* One of the shapes that it may have; 0: none of them. */
static uint64_t
bit_of (const struct run *r, unsigned k, unsigned m, bool first, bool widening)
{
  if (k - r->start_k > MAX_WIDENED || m - r->start_m > MAX_ADDED)
    return 0;
  return BIT ((((k - r->start_k) * 2 + widening) * (MAX_ADDED + 1) +
               m - r->start_m) * 2 + first);
}

static uint64_t
cache_for (const struct run *r, unsigned k, unsigned m)
{
  struct geometry g = r->g;

  g.k = k;
  g.m = m;
  return cache_min_len (&g) + (r->sums ? sums_memory (&g, 0) : 0);
}

/* Some arrays have no room in memory for one more, or not for each. */
void
shape_draw (struct run *r)
{
  const unsigned room = MIN (MAX_SLOTS, 1u << r->sa->w) - r->n;
  unsigned most = MIN (MAX_ADDED, room);

  r->shape_state = r->seed * 0x9e3779b97f4a7c15 | 1;
  r->start_m = r->max_m = r->g.m;
  r->start_k = r->max_k = r->g.k;
  r->shapes = bit_of (r, r->g.k, r->g.m, false, false);
  if (draw (r, 3) == 0 && most > 0)
    r->max_m += 1 + draw (r, most);
  most = MIN (MAX_WIDENED, room - (r->max_m - r->g.m));
  if (r->journal && draw (r, 3) == 0 && most > 0)
    r->max_k += 1 + draw (r, most);
  if (r->max_m == r->start_m && r->max_k == r->start_k)
    return;
  r->sa->cache_len = draw (r, 8) == 0 ?
    cache_for (r, r->g.k, r->g.m) * 9 / 8 :
    cache_for (r, r->max_k, r->max_m) * 8 / 7;
}

/* ---- what it is ---------------------------------------------------------- */

static uint64_t
bit_of_shape (const struct run *r, const struct sb_shape *s)
{
  return bit_of (r, s->k, s->m, s->first, s->widening);
}

/* What the record in force says, and others that some member may have; also one
 * that was not there when it was opened.
 */
static void
note_records (struct run *r)
{
  const struct membership *ms = &r->sa->a->membership;

  if (ms->phase == MEMBERSHIP_IDLE)
    r->resizes = false;
  else if (ms->phase != MEMBERSHIP_STOPPED)
    r->resizes |= ms->next_shape.k != ms->shape.k;
  if (ms->in_force && r->sa->a->writable &&
      (ms->phase == MEMBERSHIP_IDLE || ms->phase == MEMBERSHIP_STOPPED))
    r->shapes = bit_of_shape (r, &ms->shape);
  else
    r->shapes |= bit_of_shape (r, &ms->shape) |
      bit_of_shape (r, &ms->next_shape);
}

static void
take (struct run *r)
{
  const struct array *a = r->sa->a;
  const uint64_t size = r->g.size;

  if (r->sa->g.m != a->g.m || r->sa->g.k != a->g.k)
    sim_array_end_check (r->sa);
  r->g = r->sa->g = a->g;
  /* Clients see that it is larger when it is opened again. */
  r->g.size = size;
  r->n = a->n;
  r->first = a->sb.record.self.first;
}

static bool
is_alike (const struct run *r, const struct array *a)
{
  return a->g.k == r->g.k && a->g.m == r->g.m && a->g.fixed == r->g.fixed &&
    a->sb.record.self.first == r->first && a->g.widening == r->g.widening;
}

static bool
was_added (const struct run *r, const struct array *a)
{
  return a->g.m == r->g.m + 1 && a->sb.record.self.first && !r->first &&
    a->g.fixed == (r->g.fixed | BIT (r->n)) && a->g.k == r->g.k;
}

static bool
was_taken_back (const struct run *r, const struct array *a)
{
  return a->g.m + 1 == r->g.m && !a->sb.record.self.first && r->first &&
    a->g.fixed == (r->g.fixed & ~BIT (r->n - 1)) && a->g.k == r->g.k;
}

static bool
has_become_active (const struct run *r, const struct array *a)
{
  return a->g.m == r->g.m && !a->sb.record.self.first && r->first &&
    a->g.fixed == r->g.fixed && a->g.k == r->g.k;
}

/* From one k and widening to another, and nothing else. */
static bool
was_widened (const struct run *r, const struct array *a, int more, bool was,
             bool is)
{
  return a->g.m == r->g.m && a->g.fixed == r->g.fixed && !r->first &&
    a->g.k == r->g.k + more && r->g.widening == was && a->g.widening == is;
}

static void
count (struct run *r, const struct array *a)
{
  stats.parity_added += was_added (r, a);
  stats.parity_taken_back += was_taken_back (r, a);
  stats.parity_active += has_become_active (r, a);
  stats.widened += was_widened (r, a, 1, false, true);
  stats.widen_taken_back += was_widened (r, a, -1, true, false);
  stats.widen_ended += was_widened (r, a, 0, true, false);
}

/* By what a command may do, or its end. */
static bool
may_follow (const struct run *r, const struct array *a)
{
  return was_added (r, a) || was_taken_back (r, a) ||
    has_become_active (r, a) || was_widened (r, a, 1, false, true) ||
    (was_widened (r, a, -1, true, false) && r->g.frontier == 0) ||
    (was_widened (r, a, 0, true, false) &&
     r->g.frontier == a->sb.l.data_len / BLOCK_LEN);
}

/* Rows move; what was looked at is right up to there. */
static void
look_at_frontier (struct run *r)
{
  const struct array *a = r->sa->a;

  if (!a->g.widening)
    return;
  if (a->g.frontier < r->sure_frontier)
    run_die (r, "rows have moved back, from %" PRIu64 " to %" PRIu64,
             r->sure_frontier, a->g.frontier);
  if (a->recovery == NULL)
    r->sure_frontier = a->g.frontier;
  if (a->g.frontier == r->g.frontier)
    return;
  r->g.frontier = r->sa->g.frontier = a->g.frontier;
  stats.widen_moved++;
  run_crash_soon (r, 20, 20 * r->n);
}

static void
cancel_it (void *arg)
{
  struct run *r = arg;

  if (!r->chaos_on || !r->sa->a->writable)
    return;
  if (r->first)
    command_parity_cancel (r);
  else if (r->g.widening)
    command_widen_cancel (r);
}

void
shape_look (struct run *r)
{
  const struct array *a = r->sa->a;

  note_records (r);
  if (is_alike (r, a)) {
    look_at_frontier (r);
    return;
  }
  r->sure_frontier = 0;
  if (!may_follow (r, a))
    run_die (r, "k was %u, and is %u; m was %u, and is %u; fixed slots %#"
             PRIx64 ", now %#" PRIx64 "; first %d, now %d; widening %d, now %d",
             r->g.k, a->g.k, r->g.m, a->g.m, r->g.fixed, a->g.fixed, r->first,
             a->sb.record.self.first, r->g.widening, a->g.widening);
  if (a->n > r->n && draw (r, 2))
    sim_at (r->sim, draw (r, draw (r, 2) ? 2000000 : 30000000), cancel_it, r);
  count (r, a);
  take (r);
  run_say (r, "it is %u+%u now, of that %u are promised%s", r->g.k, r->g.m,
           r->g.m - r->first, r->g.widening ? ", and rows move" : "");
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

  if ((bit_of_shape (r, &a->membership.shape) & r->shapes) == 0 && !r->forced)
    run_die (r, "it opened with k %u, m %u, first %d, widening %d: those of "
             "other records are %#" PRIx64, a->g.k, a->g.m,
             a->sb.record.self.first, a->g.widening, r->shapes);
  if (a->g.widening && a->g.k == r->g.k && a->g.frontier < r->sure_frontier &&
      !r->forced)
    run_die (r, "it opened, and rows have moved back, from %" PRIu64 " to %"
             PRIu64, r->sure_frontier, a->g.frontier);
  if (a->sb.record.self.first && !(a->lost_slots >> (a->n - 1) & 1))
    run_die (r, "the last slot was never active, and is");
  count (r, a);
  stats.parity_opened += a->sb.record.self.first;
  stats.widen_opened += a->g.widening;
  take (r);
}

/* ---- commands ------------------------------------------------------------ */

static bool
has_room (const struct run *r)
{
  return r->sa->nr_disks + 1 < MAX_REPLACED;
}

/* Most often where it is not refused. */
static bool
is_regular (struct run *r)
{
  return (r->sa->a->irregular_slots == 0 && r->sa->a->nr_unsynced == 0) ||
    draw (r, 40) == 0;
}

static void
widen (struct run *r)
{
  if (r->g.widening ? draw (r, 10) == 0 : draw (r, 50) == 0)
    command_widen_cancel (r);
  else if ((r->g.k < r->max_k || draw (r, 20) == 0) && has_room (r) &&
           is_regular (r) && r->sa->a->membership.shape.k < r->max_k)
    command_widen (r);
}

void
shape_command (struct run *r)
{
  if (r->max_k > r->start_k && (r->max_m == r->start_m || draw (r, 2))) {
    widen (r);
    return;
  }
  if (r->max_m == r->start_m)
    return;
  if (r->first ? draw (r, 3) == 0 : draw (r, 50) == 0)
    command_parity_cancel (r);
  else if (r->g.m < r->max_m && has_room (r) && is_regular (r))
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

  for (unsigned n = 1 + (r->max_k > r->start_k); n > 0; n--)
    if (draw (r, 3) == 0)
      sim_at (r->sim, draw (r, ms[draw (r, 4)] * 1000000), command_if_used, r);
}

bool
shape_changes_last (struct run *r)
{
  if (r->max_m == r->start_m || r->g.widening || draw (r, 3))
    return false;
  if (r->first)
    command_parity_cancel (r);
  else if (r->g.m < r->max_m && r->sa->a->irregular_slots == 0)
    command_parity (r);
  else
    return false;
  return true;
}
