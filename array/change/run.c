/* gpuraid: carry out changes of the membership record.
 *
 * A change goes through
 *
 *   mark      open regions count as missed, if a member leaves
 *   begin     array/membership makes the record
 *   propose   A1 B1 on every member
 *   accept    A2 B2 on every member
 *   tell      A1 B1 A2 B2 on every target and spare
 *   apply     seats are set from the record; waiters continue
 *
 * A failed member restarts the change at mark.  While a change runs, no write
 * is acknowledged or started (R6 and M14 of docs/rules.md).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/change/grow.h"
#include "array/change/internal.h"
#include "array/change/join.h"
#include "array/change/readd.h"
#include "array/change/shape.h"
#include "array/dirty/dirty.h"
#include "array/engine/consistency.h"
#include "array/engine/state.h"
#include "array/health/event.h"
#include "array/health/fail.h"
#include "array/health/outcome.h"
#include "array/io/lease.h"
#include "array/io/store.h"
#include "array/io/superblock.h"
#include "array/replay/recovery.h"
#include "array/seats/seat.h"
#include "array/sums/sums.h"
#include "common/plant.h"
#include "raidmap/uuid.h"

/* Nanoseconds between two changes by command at most: writes go on meanwhile,
 * and however long a change took, the next command need not wait longer.
 */
#define REST_MAX_NS UINT64_C (1000000000)

static struct device_set
failing_devs (const struct array *a)
{
  struct device_set set = {{ 0, 0 }};

  for (unsigned i = 0; i < a->nr_seats; i++)
    if (a->seat[i]->failing && a->seat[i]->state != SEAT_IDLE)
      device_set_add (&set, a->seat[i]->dev);
  return set;
}

/* ---- the end --------------------------------------------------------- */

static void
tell_joined (struct array *a)
{
  const struct change *c = a->change;
  char name[SEAT_NAME_LEN];

  if (c->kind == CHANGE_SPARE && c->seat->state == SEAT_TARGET) {
    log_notice ("%s: the spare takes the place of the member that is lost, and "
                "is rebuilt onto", seat_name (c->seat, name));
    event_tell (a, ARRAY_EVENT_SPARE_USED, c->seat);
  }
  for (unsigned i = 0; c->kind == CHANGE_ACTIVATE && i < a->nr_seats; i++) {
    const struct seat *s = a->seat[i];

    if (s->m && s->state == SEAT_ACTIVE && device_set_has (&c->devs, s->dev)) {
      outcome_good (a, s);
      event_tell (a, ARRAY_EVENT_REBUILT, s);
    }
  }
}

/* A target that would have replaced an active member is not waited for
 * (membership_begin_open).
 */
static void
tell_dropped (struct array *a)
{
  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++) {
    const struct device *was = &a->sb.device[dev];
    const enum device_state now = a->membership.device[dev].state;
    const char *text;

    if (was->state != DEVICE_REBUILDING ||
        (now != DEVICE_NONE && now != DEVICE_FAILED))
      continue;
    text = outcome_dropped (a, was->slot);
    log_notice ("%s", text);
    event_change_failed (a, NULL, text);
  }
}

static void
apply (struct array *a)
{
  struct change *c = a->change;
  const struct device_set failing = failing_devs (a);
  const char *why;
  int error;

  if (c->kind == CHANGE_OPEN)
    tell_dropped (a);
  memcpy (a->sb.device, a->membership.device, sizeof a->sb.device);
  a->sb.record = a->membership.cur;
  shape_follow (a);
  for (unsigned i = 0; i < a->nr_seats; i++)
    seat_follow (a, a->seat[i]);
  seats_changed (a);
  if (c->kind == CHANGE_GROW)
    grow_decided (a);
  sb_set_shape (&a->sb, &a->membership.shape);
  tell_joined (a);
  seats_close_retired (a);
  a->change = NULL;
  a->rest_until = engine_now (a) +
    MIN (engine_now (a) - c->began, REST_MAX_NS);
  /* A member may have failed after its part of the last round. */
  a->change_wanted = false;
  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++)
    if (device_set_has (&failing, dev) &&
        (a->membership.device[dev].state == DEVICE_ACTIVE ||
         a->membership.device[dev].state == DEVICE_REBUILDING ||
         a->membership.device[dev].state == DEVICE_SPARE))
      a->change_wanted = true;

  if (c->kind == CHANGE_OPEN) {
    a->opening = false;
    a->writable = true;
    a->writable_since = engine_now (a);
    if (save_has_beat (a))
      lease_renew (a, loop_boot_time (a->loop));
    engine_free (a, a->found);
    a->found = NULL;
  }
  /* Until a recovery is over, missed says which of its records count. */
  if (a->lost_slots == 0 && a->writable && !recover_ring_behind (a))
    dirty_clear_missed (a);
  engine_run_waiters (a, &a->change_waiters);
  engine_run_waiters (a, &a->cell_waiters);
  if (c->kind == CHANGE_SHAPE) {
    error = shape_decided (a, &why);
    command_end (a, c->command, error, why);
  }
  else if (c->kind == CHANGE_TARGET && c->seat->state != SEAT_TARGET &&
      c->seat->state != SEAT_SPARE)
    command_end (a, c->command, EIO, "the new member can't be written");
  else {
    if (c->command && c->command->kind == COMMAND_READD)
      readd_say (c->seat);
    command_end (a, c->command, 0, NULL);
  }
}

/* The record is in force, or there was nothing to change. */
static void
end (struct array *a)
{
  a->change->ended = !shape_may_follow (a);
  if (!a->change->ended)
    apply (a);
}

void
change_follow (struct array *a)
{
  if (a->change && a->change->ended)
    end (a);
}

static void
give_up (struct array *a, int error, const char *why)
{
  struct change *c = a->change;
  const char *ignored;

  list_remove (&c->waiter.link);
  a->change = NULL;
  if (c->kind == CHANGE_GROW)
    grow_decided (a);
  if (c->kind == CHANGE_SHAPE)
    (void) shape_decided (a, &ignored);
  engine_run_waiters (a, &a->change_waiters);
  command_end (a, c->command, error, why);
}

/* ---- rounds ---------------------------------------------------------- */

static void
round_done (struct array *a)
{
  struct change *c = a->change;
  enum membership_phase phase;

  c->in_round = false;
  if (a->membership.phase == MEMBERSHIP_PROPOSE)
    phase = membership_proposed (&a->membership, &c->failed);
  else if (a->membership.phase == MEMBERSHIP_ACCEPT)
    phase = membership_accepted (&a->membership, &c->failed);
  else
    phase = membership_told (&a->membership, &c->failed);
  if (phase == MEMBERSHIP_STOPPED) {
    array_set_failed (a, "too few members for a membership record");
    give_up (a, EIO, "too few members are left");
  }
  else if (phase == MEMBERSHIP_IDLE)
    end (a);
  else
    change_step (a, &c->waiter);
}

static void
copy_failed (struct array *a, struct seat *s, int error)
{
  char name[SEAT_NAME_LEN];

  device_set_add (&a->change->failed, s->dev);
  if (s->failing)
    return;
  s->nr_errors++;
  log_notice ("%s: superblock: %s; %s", seat_name (s, name), strerror (error),
              seat_out_text (s));
  seat_take_out (a, s, strerror (error));
}

static void
copy_done (struct array *a, struct store *st)
{
  struct change *c = a->change;

  sb_written (a, st);
  if (st->error)
    copy_failed (a, st->seat, st->error);
  if (--c->pending == 0) {
    const struct device_set failing = failing_devs (a);

    for (unsigned i = 0; i < 2; i++)
      c->failed.w[i] |= failing.w[i];
    round_done (a);
  }
}

static struct seat *
seat_of (const struct array *a, unsigned dev)
{
  for (unsigned i = 0; i < a->nr_seats; i++)
    if (a->seat[i]->dev == dev && !seat_is_retired (a->seat[i]) &&
        uuid_equal (&a->seat[i]->uuid, &a->membership.next_device[dev].uuid))
      return a->seat[i];
  return NULL;
}

static void
start_round (struct array *a)
{
  struct change *c = a->change;
  const enum membership_phase phase = a->membership.phase;
  const enum sb_pairs pairs =
    phase == MEMBERSHIP_PROPOSE && !PLANTED ("member-accepts-at-once") ?
    SB_PROPOSED :
    phase == MEMBERSHIP_ACCEPT ? SB_ACCEPTED : SB_BOTH;
  struct device_set takers;

  membership_takers (&a->membership, &takers);
  memset (&c->failed, 0, sizeof c->failed);
  c->in_round = true;
  c->pending = 1;
  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++) {
    struct seat *s;

    if (!device_set_has (&takers, dev))
      continue;
    s = seat_of (a, dev);
    if (s == NULL || s->failing) {
      device_set_add (&c->failed, dev);
      continue;
    }
    c->pending++;
    sb_write (a, s, pairs, false, copy_done);
  }
  if (--c->pending == 0)
    round_done (a);
}

/* ---- the beginning --------------------------------------------------- */

/* A row that was being written at the crash may differ between a target below
 * its cursor and the rest.  So may the page of the checksum table that has it:
 * then the target's is made anew as a whole.
 */
static uint64_t
first_doubtful (const struct array *a)
{
  const uint64_t pos = dirty_first_unsynced (a);

  if (a->sums == NULL || pos == UINT64_MAX ||
      PLANTED ("member-cursor-in-page"))
    return pos;
  return round_down (sums_page_begin (pos / BLOCK_LEN) * BLOCK_LEN,
                     a->cell_len);
}

static int
begin (struct array *a, char *why)
{
  struct membership *ms = &a->membership;
  struct change *c = a->change;
  struct device_set devs = {{ 0, 0 }};

  switch (c->kind) {
  case CHANGE_OPEN:
    for (unsigned i = 0;
         i < a->nr_found && !PLANTED ("member-cursor-past-torn"); i++)
      a->found[i].cursor = MIN (a->found[i].cursor, first_doubtful (a));
    membership_begin_open (ms, a->found, a->nr_found, !a->force);
    return 0;
  case CHANGE_FAIL:
    devs = failing_devs (a);
    membership_fail (ms, &devs);
    return 0;
  case CHANGE_REMOVE:
    device_set_add (&devs, c->seat->dev);
    return membership_begin_remove (ms, &devs, DEVICE_FAILED, why);
  case CHANGE_FORGET:
    return membership_begin_forget (ms, c->dev, why);
  case CHANGE_ACTIVATE:
    return membership_begin_activate (ms, &c->devs, why);
  case CHANGE_CONFIRM:
    return membership_begin_remove (ms, &devs, DEVICE_FAILED, why);
  case CHANGE_SPARE:
    return membership_begin_use_spare (ms, c->seat->dev, c->slot, why);
  case CHANGE_TARGET: case CHANGE_GROW: case CHANGE_SHAPE:
    return 0;           /* begun where the seat, or the shape, is known */
  }
  return -1;
}

/* The change was refused.  A member to be removed has missed writes by now. */
static void
refused (struct array *a, const char *why)
{
  struct change *c = a->change;

  if (c->kind == CHANGE_REMOVE)
    change_request (a);
  else if (c->kind == CHANGE_SPARE)
    join_no_spare (a, c->slot);
  give_up (a, EINVAL, why);
}

/* Members that fail leave the array.  A copy of one that has its last step
 * (array/io/progress.h) is not told from it, so what was written since then
 * counts as missed.
 */
static void
mark_missed (struct array *a)
{
  for (unsigned i = 0; i < a->nr_seats; i++) {
    const struct seat *s = a->seat[i];

    if (s->failing && s->state == SEAT_ACTIVE &&
        !PLANTED ("copy-leave-unmarked"))
      dirty_miss_since (a, a->membership.device[s->dev].step);
  }
}

void
change_step (struct array *a, struct waiter *w)
{
  struct change *c = list_item (w, struct change, waiter);
  char why[MEMBERSHIP_TEXT_LEN] = "";

  list_remove (&c->waiter.link);
  if (c->in_round || c->ended)
    return;
  if (a->failed) {
    give_up (a, EIO, "the array has failed");
    return;
  }
  if (save_is_busy (a)) {
    list_move (&a->save_waiters, &c->waiter.link);
    return;
  }
  /* Before this process writes, nothing is missed. */
  if (a->writable)
    mark_missed (a);
  if (a->lost_slots && a->writable && !PLANTED ("missed-not-durable") &&
      !a->consistency->may_leave (a, &c->waiter))
    return;
  if (c->kind == CHANGE_OPEN && (!a->consistency->may_open (a, &c->waiter) ||
                                 !sums_settle_behind (a, &c->waiter)))
    return;
  if (!c->begun) {
    if (begin (a, why) == -1) {
      refused (a, why);
      return;
    }
    c->begun = true;
  }
  if (a->membership.phase == MEMBERSHIP_STOPPED) {
    array_set_failed (a, "too few members for a membership record");
    give_up (a, EIO, "too few members are left");
  }
  else if (a->membership.phase == MEMBERSHIP_IDLE)
    end (a);            /* failed members were out already */
  else
    start_round (a);
}

struct change *
change_new (struct array *a, enum change_kind kind, struct command *cmd)
{
  struct change *c = a->change_memory;

  memset (c, 0, sizeof *c);
  c->waiter.run = change_step;
  list_init (&c->waiter.link);
  c->kind = kind;
  c->command = cmd;
  c->began = engine_now (a);
  a->change = c;
  return c;
}
