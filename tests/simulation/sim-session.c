/* gpuraid: tests: from one start of the array to its stop or crash.
 *
 * What must open, what must not, and what must hold afterwards.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "array/engine/consistency.h"
#include "array/main-loop.h"
#include "array/seats/seat.h"
#include "common/bits.h"
#include "tests/simulation/sim-run.h"

/* ---- while it is open ---- */

/* The disks of the members that a record lists, of those that have a seat. */
static uint64_t
listed_disks (const struct run *r, const struct device_set *set)
{
  const struct array *a = r->sa->a;
  uint64_t disks = 0;

  for (unsigned i = 0; i < a->nr_seats; i++)
    if (!seat_is_retired (a->seat[i]) &&
        device_set_has (set, a->seat[i]->dev))
      disks |= BIT (sim_array_disk_no (r->sa,
                                       sim_array_disk_of (a->seat[i])));
  return disks;
}

/* Has a member that it lists no seat any more? */
static bool
lacks_seats (const struct run *r, const struct device_set *set)
{
  return nr_bits (listed_disks (r, set)) < device_set_count (set);
}

uint64_t
session_coming (const struct run *r)
{
  const struct membership *ms = &r->sa->a->membership;
  uint64_t disks = listed_disks (r, &ms->cur.self.active);

  if (ms->phase != MEMBERSHIP_IDLE && ms->phase != MEMBERSHIP_STOPPED)
    disks |= listed_disks (r, &ms->next.self.active);
  return disks;
}

static bool
is_confirmed (const struct membership *ms)
{
  return memcmp (&ms->cur.self.active, &ms->cur.base.active,
                 sizeof ms->cur.base.active) == 0;
}

/* It has crashed or failed: fail all I/O, and free it. */
static void
end_session (struct run *r)
{
  struct array *a = r->sa->a;
  const struct membership *ms = &a->membership;
  const struct device_set *in_force =
    ms->in_force ? &ms->cur.self.active : &ms->base.active;
  /* By force, the base is not all that the members know. */
  const uint64_t before = ms->in_force ? 0 : r->was_active | r->in_force;
  uint64_t coming;

  r->may_crash = r->chaos_on = false;
  shape_look (r);
  run_look_at_slots (r);
  r->was_active = run_active_disks (r);
  coming = session_coming (r);
  r->was_active |= coming;
  r->was_lost = a->lost_slots;
  r->was_first = seats_first_slot (a);
  r->was_new = shape_new_disks (r);
  r->promised = r->g.m - r->first;
  r->in_force = listed_disks (r, in_force);
  r->confirmed = is_confirmed (ms);
  if (lacks_seats (r, in_force))
    r->was_active = LOW_BITS (r->sa->nr_disks);
  r->was_active |= before;
  check_rows (r, "at a crash");
  check_note_end (r, false);
  back_note_end (r, false);
  rest_note_end (r);
  copies_note_end (r, false, coming);
  run_note_torn (r);
  FOR_EACH_BIT (slot, a->lost_slots)
    run_lose_slot (r, slot, true);
  if (a->failed)
    stats.failed_arrays++;
  if (!sim_array_abandon (r->sa))
    run_die (r, "all members are gone, and it never ends");
  r->nr_busy = 0;
}

static void
count_crash (const struct run *r)
{
  const struct array *a = r->sa->a;
  bool target = false;

  for (unsigned i = 0; i < a->nr_seats; i++)
    target |= a->seat[i]->state == SEAT_TARGET && !a->seat[i]->failing;
  stats.crashes++;
  stats.crash_change += a->change != NULL;
  stats.crash_rebuild += target;
  stats.crash_resync += a->nr_unsynced > 0;
  stats.crash_degraded += a->lost_slots != 0;
  stats.widen_crashed += rows_move (a);
  recovery_count_crash (r);
}

static void
crash (struct run *r)
{
  run_say (r, "crash");
  count_crash (r);
  end_session (r);
  stats.crash_two += r->two_active;
  r->killed = run_percent (r, 50);
  stats.kills += r->killed;
  if (r->killed)
    sim_kill (r->sim);
  else
    sim_crash (r->sim);
  check_closed (r);
}

bool
session_until (struct run *r, bool (*condition) (struct run *),
               uint64_t limit_ns, const char *what)
{
  const uint64_t end = sim_now (r->sim) + limit_ns;

  for (unsigned i = 0; !condition (r); i++) {
    if (i % 64 == 0 && r->nr_busy > 0)
      clients_check (r);
    if (sim_now (r->sim) > end)
      run_die (r, "it takes too long: %s", what);
    if (!run_step (r)) {
      if (sim_crashed (r->sim))
        return false;
      run_die (r, "nothing happens any more: %s", what);
    }
  }
  return true;
}

static struct sim_request *waited_for;

static bool
has_ended (struct run *r)
{
  return waited_for->state == SIM_IDLE;
}

static void
nothing (struct sim_request *q)
{
}

int
session_request (struct run *r, struct sim_request *q)
{
  q->done = nothing;
  sim_request_start (q);
  waited_for = q;
  return session_until (r, has_ended, 600 * SECONDS, "a request") ?
    q->r.error : -1;
}

/* Read a range and settle what it is.  0, an errno that is allowed, or
 * -1: it crashed.
 */
static int
read_range (struct run *r, uint64_t off, uint64_t len)
{
  static struct sim_request q;
  /* Before a recovery is carried out the newest transaction may count or not,
   * as the members that are there have it.  Without a journal two active
   * members of a slot may differ in what was in flight at a crash: the one that
   * is read may be missing later.
   */
  const bool pending = !r->sa->a->consistency->is_ready (r->sa->a) ||
    (r->sa->a->doubled_slots && r->sa->a->nr_unsynced > 0);
  const uint64_t began = model_begin (r->model);
  char why[2000];
  int err;

  sim_request_init (&q, r->sa, REQUEST_READ);
  q.r.buf = r->buf + off;
  q.r.off = off;
  q.r.len = len;
  err = session_request (r, &q);
  if (err > 0 && !allow_error (r, &q.r, 0))
    run_die (r, "read %" PRIu64 "+%" PRIu64 " after opening: error %d", off,
             len, err);
  if (err == 0 && pending ?
      !model_check (r->model, began, r->buf + off, off, len, why,
                    sizeof why) :
      err == 0 && !model_settle (r->model, r->buf + off, off, len, why,
                                 sizeof why))
    run_die (r, "read %" PRIu64 "+%" PRIu64 " after opening: %s", off, len,
             why);
  return err;
}

bool
session_read_all (struct run *r)
{
  uint64_t len;

  for (uint64_t off = 0; off < r->g.size; off += len) {
    len = MIN (r->g.size - off, 200 * 1024);
    switch (read_range (r, off, len)) {
    case -1: return false;
    case 0: continue;
    }
    for (uint64_t pos = off; pos < off + len && !r->over; pos += BLOCK_LEN)
      switch (read_range (r, pos, BLOCK_LEN)) {
      case -1: return false;
      case EIO: stats.lost_blocks_read++;
      }
  }
  return true;
}

static bool
clients_rest (struct run *r)
{
  return r->nr_busy == 0 && (r->nr_commands == 0 || r->sa->a->failed);
}

static bool
has_stopped (struct run *r)
{
  bool ended = false;

  /* Some steps take no time. */
  for (unsigned i = 0; i < 8 && !ended; i++)
    ended = stop_step (r->sa->a);
  /* It fails here, between two events, if a disk is full.  After the next one
   * that disk may have space again.
   */
  shape_look (r);
  run_look_at_slots (r);
  run_look_at_failure (r);
  return ended;
}

bool
session_make_writable (struct run *r)
{
  static struct sim_request q;
  int err;

  sim_command_init (&q, r->sa, COMMAND_WRITABLE);
  err = session_request (r, &q);
  if (err > 0 && !r->over)
    run_die (r, "it can't be made writable: error %d", err);
  return err == 0;
}

/* Let clients run.  False: it crashed or failed. */
static bool
use_array (struct run *r, unsigned nr_requests)
{
  r->nr_left = nr_requests;
  r->nr_busy = r->nr_clients;
  for (unsigned i = 0; i < r->nr_clients; i++) {
    r->client[i].busy = true;
    client_next (&r->client[i]);
  }
  r->chaos_on = r->trouble > 0;
  scrub_soon (r);
  copies_soon (r);
  shape_soon (r);
  if (r->chaos_on)
    sim_at (r->sim, run_below (r, run_percent (r, 50) ? 3000000 : 100000000),
            trouble_start, r);
  if (!session_until (r, clients_rest, 3000 * SECONDS, "clients"))
    return false;
  r->chaos_on = false;
  return !r->sa->a->failed;
}

/* Which regions stay open, and which of their rows are torn, survives a stop.
 */
static void
note_stop (struct run *r)
{
  check_rows (r, "at a stop");
  check_note_end (r, true);
  back_note_end (r, true);
  rest_note_end (r);
  copies_note_end (r, true, 0);
  scrub_note_stop (r);
  r->was_lost = r->lost;
  r->was_first = seats_first_slot (r->sa->a);
  r->was_new = shape_new_disks (r);
  r->promised = r->g.m - r->first;
  r->was_active = r->in_force = run_active_disks (r);
  r->confirmed = is_confirmed (&r->sa->a->membership);
  r->any_torn = false;
  for (uint64_t row = 0; row < r->nr_rows; row++) {
    r->torn[row] = r->torn[row] &&
      run_is_unsynced (r->sa->a, row / r->rows_per_stripe * r->g.chunk +
                   row % r->rows_per_stripe * BLOCK_LEN);
    r->any_torn |= r->torn[row];
  }
}

bool
session_stop (struct run *r)
{
  const uint64_t began = model_begin (r->model);
  uint64_t ends;

  run_say (r, "stop");
  ends = run_percent (r, 70) ? r->full : r->full_long;
  FOR_EACH_BIT (i, ends)
    trouble_has_space (r, i);
  if (!session_until (r, has_stopped, 600 * SECONDS, "the stop") ||
      r->sa->a->failed)
    return false;
  /* It has stopped.  Only a member that was taken out may not have answered
   * yet, and a server does not wait for that.
   */
  r->may_crash = false;
  sim_crash_after (r->sim, 0);
  note_stop (r);
  if (!sim_array_stop (r->sa))
    run_die (r, "it does not stop");
  if (!r->full && !r->rows_lost)
    model_flushed (r->model, began);
  else
    model_crash (r->model);
  return true;
}

/* Open it without a change. */
void
session_read (struct run *r)
{
  const uint64_t before = run_changes_made (r);

  stats.readonly++;
  if (!session_read_all (r) || !use_array (r, 20))
    run_die (r, "it crashed or failed without a write");
  if (!sim_array_stop (r->sa))
    run_die (r, "it does not stop");
  if (run_changes_made (r) != before)
    run_die (r, "something was written");
}

static void
draw_crash (struct run *r)
{
  r->may_crash = run_percent (r, 70);
  if (r->may_crash && run_percent (r, 70))
    sim_crash_after (r->sim,
                     1 + run_below (r, UINT64_C (1) << run_below (r, 13)));
}

/* Before there is a record of this session a slot may still have two
 * active members, and rows may be torn.
 */
static bool
read_before (struct run *r)
{
  const bool all = run_percent (r, r->two_active ? 40 : 5);

  stats.read_two += r->two_active && all;
  if (all && !session_read_all (r))
    return false;
  return !run_percent (r, r->two_active ? 60 : 5) || use_array (r, 20);
}

static bool passed;

static void
has_come (void *arg)
{
  passed = true;
}

static bool
has_passed (struct run *r)
{
  return passed;
}

/* Without requests; what happens is looked at all the same.  False: it
 * crashed.
 */
static bool
let_time_pass (struct run *r, uint64_t ns)
{
  passed = false;
  sim_at (r->sim, ns, has_come, NULL);
  return session_until (r, has_passed, UINT64_MAX / 2, "time to pass");
}

/* From an array that is open to one that is not. */
void
session_write (struct run *r)
{
  stats.sessions++;
  back_note_session (r);
  draw_crash (r);
  if (!read_before (r) || !session_make_writable (r)) {
    crash (r);
    return;
  }
  trouble_in_resync (r);
  if ((run_percent (r, 60) && !session_read_all (r)) ||
      !use_array (r, 10 + run_below (r, 150)) ||
      (run_percent (r, 50) &&
       !let_time_pass (r, run_below (r, 12 * SECONDS)))) {
    crash (r);
    return;
  }
  run_look_at_slots (r);
  if (run_percent (r, 40) || !session_stop (r)) {
    crash (r);
    return;
  }
  sim_crash_after (r->sim, 0);
}
