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
 * is acknowledged or started.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/change.h"
#include "array/consistency.h"
#include "array/dirty.h"
#include "array/fail.h"
#include "array/readd.h"
#include "array/request.h"
#include "array/sb-write.h"
#include "array/seat.h"
#include "array/state.h"
#include "array/store.h"
#include "common/plant.h"

enum change_kind {
  CHANGE_OPEN,                  /* the first record of a writable open */
  CHANGE_FAIL,                  /* without the failing seats */
  CHANGE_REMOVE,                /* without one seat that was replaced */
  CHANGE_TARGET,                /* with a new target */
  CHANGE_ACTIVATE,              /* rebuilt targets become active */
  CHANGE_CONFIRM,               /* repeat, with the last record as its base */
};

struct change {
  struct waiter waiter;
  enum change_kind kind;
  struct request *r;            /* the command's, or NULL */
  struct seat *seat;            /* CHANGE_REMOVE, CHANGE_TARGET */
  struct device_set devs;       /* CHANGE_ACTIVATE */
  bool begun;
  bool in_round;
  unsigned pending;             /* takers that still write */
  struct device_set failed;     /* takers that failed in this round */
};

static void change_step (struct array *a, struct waiter *w);

int
change_init (struct array *a)
{
  a->change_memory = calloc (1, sizeof *a->change_memory);
  return a->change_memory ? 0 : -1;
}

void
change_free (struct array *a)
{
  free (a->change_memory);
}

static void
finish_command (struct array *a, struct request *r, int error,
                const char *why)
{
  if (r == NULL)
    return;
  r->error = error;
  if (r->why && why)
    snprintf (r->why, ARRAY_WHY_LEN, "%s", why);
  r->phase = R_DONE;
  list_move (&a->engine.ready, &r->waiter.link);
}

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

static bool
same_uuid (const uuid_bytes *x, const uuid_bytes *y)
{
  return memcmp (x, y, sizeof *x) == 0;
}

static void
apply_to_seat (struct array *a, struct seat *s)
{
  const struct device *d;

  if (s->dev >= SB_MAX_DEVICES || seat_is_retired (s))
    return;
  d = &a->membership.device[s->dev];
  if (!same_uuid (&d->uuid, &s->uuid)) {
    seat_retire (a, s);         /* its place is free, or reused */
    return;
  }
  switch (d->state) {
  case DEVICE_ACTIVE:
    s->state = SEAT_ACTIVE;
    s->replaced = d->replaced;
    break;
  case DEVICE_REBUILDING:
    if (s->state != SEAT_TARGET) {
      s->state = SEAT_TARGET;
      s->cursor = s->window_end = d->cursor;
      s->by_bitmap = d->by_bitmap;
    }
    break;
  default:
    if (s->state != SEAT_IDLE) {
      s->failed = d->state == DEVICE_FAILED;
      seat_retire (a, s);
    }
  }
}

static void
apply (struct array *a)
{
  struct change *c = a->change;
  const struct device_set failing = failing_devs (a);

  memcpy (a->sb.device, a->membership.device, sizeof a->sb.device);
  a->sb.record = a->membership.cur;
  for (unsigned i = 0; i < a->nr_seats; i++)
    apply_to_seat (a, a->seat[i]);
  seats_changed (a);
  seats_close_retired (a);
  a->change = NULL;
  /* A member may have failed after its part of the last round. */
  a->change_wanted = false;
  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++)
    if (device_set_has (&failing, dev) &&
        (a->membership.device[dev].state == DEVICE_ACTIVE ||
         a->membership.device[dev].state == DEVICE_REBUILDING))
      a->change_wanted = true;

  if (c->kind == CHANGE_OPEN) {
    a->opening = false;
    a->writable = true;
    free (a->found);
    a->found = NULL;
  }
  if (a->lost_slots == 0 && a->writable)
    dirty_clear_missed (a);
  engine_run_waiters (a, &a->change_waiters);
  engine_run_waiters (a, &a->cell_waiters);
  if (c->kind == CHANGE_TARGET && c->seat->state != SEAT_TARGET)
    finish_command (a, c->r, EIO, "the new member can't be written");
  else {
    if (c->r && c->r->kind == REQUEST_READD)
      readd_say (c->seat);
    finish_command (a, c->r, 0, NULL);
  }
}

static void
give_up (struct array *a, int error, const char *why)
{
  struct change *c = a->change;

  list_remove (&c->waiter.link);
  a->change = NULL;
  engine_run_waiters (a, &a->change_waiters);
  finish_command (a, c->r, error, why);
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
    apply (a);
  else
    change_step (a, &c->waiter);
}

static void
copy_failed (struct array *a, struct seat *s, int error)
{
  device_set_add (&a->change->failed, s->dev);
  if (s->failing)
    return;
  s->nr_errors++;
  log_notice ("slot %u: %s: superblock: %s; the member is taken out" READD_HINT,
              s->slot, s->m->path, strerror (error));
  seat_take_out (a, s);
}

static void
copy_done (struct array *a, struct store *st)
{
  struct change *c = a->change;

  sb_written (st);
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
        same_uuid (&a->seat[i]->uuid, &a->membership.next_device[dev].uuid))
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

static int
begin (struct array *a, char *why)
{
  struct membership *ms = &a->membership;
  struct change *c = a->change;
  struct device_set devs;

  switch (c->kind) {
  case CHANGE_OPEN:
    /* A row that was being written at the crash may differ between a target
     * below its cursor and the rest.
     */
    for (unsigned i = 0;
         i < a->nr_found && !PLANTED ("member-cursor-past-torn"); i++)
      a->found[i].cursor = MIN (a->found[i].cursor, dirty_first_unsynced (a));
    membership_begin_open (ms, a->found, a->nr_found, !a->force);
    return 0;
  case CHANGE_FAIL:
    devs = failing_devs (a);
    membership_fail (ms, &devs);
    return 0;
  case CHANGE_REMOVE:
    devs = (struct device_set) {{ 0, 0 }};
    device_set_add (&devs, c->seat->dev);
    return membership_begin_remove (ms, &devs, DEVICE_FAILED, why);
  case CHANGE_ACTIVATE:
    return membership_begin_activate (ms, &c->devs, why);
  case CHANGE_CONFIRM:
    devs = (struct device_set) {{ 0, 0 }};
    return membership_begin_remove (ms, &devs, DEVICE_FAILED, why);
  case CHANGE_TARGET:
    return 0;           /* begun by the command, which knows the seat */
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
  give_up (a, EINVAL, why);
}

static void
change_step (struct array *a, struct waiter *w)
{
  struct change *c = list_item (w, struct change, waiter);
  char why[MEMBERSHIP_TEXT_LEN] = "";

  list_remove (&c->waiter.link);
  if (c->in_round)
    return;
  if (a->failed) {
    give_up (a, EIO, "the array has failed");
    return;
  }
  if (a->saving > 0) {
    list_move (&a->save_waiters, &c->waiter.link);
    return;
  }
  /* Before this process writes, nothing is missed. */
  if (a->lost_slots && a->writable && !PLANTED ("missed-not-durable") &&
      !a->consistency->may_leave (a, &c->waiter))
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
    apply (a);          /* failed members were out already */
  else
    start_round (a);
}

static struct change *
change_new (struct array *a, enum change_kind kind, struct request *r)
{
  struct change *c = a->change_memory;

  memset (c, 0, sizeof *c);
  c->waiter.run = change_step;
  list_init (&c->waiter.link);
  c->kind = kind;
  c->r = r;
  a->change = c;
  return c;
}

/* ---- commands -------------------------------------------------------- */

/* A member is taken out at once, even while a change is under way, which may
 * be waiting for this member.  The command ends when a record without it is
 * in force.
 */
static bool
take_out (struct array *a, struct request *r)
{
  struct seat *s = r->seat;

  if (a->failed) {
    finish_command (a, r, EIO, "the array has failed");
    return false;
  }
  if (s->m == NULL || s->state == SEAT_IDLE || s->failing) {
    finish_command (a, r, EINVAL, "the member is not in use");
    return false;
  }
  if (!seat_can_fail (a, s)) {
    finish_command (a, r, EINVAL, "fewer than k members would remain");
    return false;
  }
  log_notice ("slot %u: %s: taken out by command" READD_HINT, s->slot,
              s->m->path);
  seat_take_out (a, s);
  change_request (a);
  return true;
}

void
change_command (struct array *a, struct request *r)
{
  r->phase = R_CHANGE;
  /* Don't queue it behind a change that may wait for a member. */
  if (r->kind == REQUEST_WRITABLE && a->writable && !a->failed)
    finish_command (a, r, 0, NULL);
  else if (r->kind != REQUEST_FAIL || take_out (a, r))
    list_move (&a->commands, &r->link);
}

/* Its record is begun. */
static void
await_target (struct array *a, struct request *r, struct seat *s)
{
  struct change *c = change_new (a, CHANGE_TARGET, r);

  c->begun = true;
  c->seat = s;
}

static void
start_readd (struct array *a, struct request *r)
{
  char why[MEMBERSHIP_TEXT_LEN] = "";
  struct seat *s = readd_begin (a, r, why);

  if (s)
    await_target (a, r, s);
  else
    finish_command (a, r, EINVAL, why);
}

static void
start_replace (struct array *a, struct request *r)
{
  char why[MEMBERSHIP_TEXT_LEN] = "";
  struct seat *s;

  if (a->at[r->slot][1]) {
    finish_command (a, r, EINVAL, "the slot is being rebuilt already");
    return;
  }
  /* Do this before the record is begun, which can't be undone.  If that is
   * refused the seat is like one whose member was closed.
   */
  s = seat_new (a, NULL, SB_MAX_DEVICES, SLOT_NONE, SEAT_IDLE);
  if (s == NULL && PLANTED ("replace-no-seat"))
    abort ();
  if (s == NULL) {
    finish_command (a, r, EINVAL, "no room for another member: too many are "
                    "open");
    return;
  }
  if (membership_begin_target (&a->membership, &r->uuid, r->slot, false,
                               &s->dev, why) == -1) {
    finish_command (a, r, EINVAL, why);
    return;
  }
  s->m = r->target;
  s->slot = r->slot;
  s->state = SEAT_TARGET;
  s->uuid = r->uuid;
  seats_changed (a);
  r->target = NULL;
  await_target (a, r, s);
}

static void
start_command (struct array *a, struct request *r)
{
  if (a->failed && r->kind != REQUEST_WRITABLE) {
    finish_command (a, r, EIO, "the array has failed");
    return;
  }
  switch (r->kind) {
  case REQUEST_WRITABLE:
    if (a->writable) {
      finish_command (a, r, 0, NULL);
      return;
    }
    if (a->readonly || a->failed) {
      finish_command (a, r, a->readonly ? EROFS : EIO, NULL);
      return;
    }
    a->opening = true;
    change_new (a, CHANGE_OPEN, r);
    break;
  case REQUEST_FAIL: finish_command (a, r, 0, NULL); break;
  case REQUEST_REPLACE: start_replace (a, r); break;
  case REQUEST_READD: start_readd (a, r); break;
  default: finish_command (a, r, EINVAL, NULL);
  }
}

/* Activate the targets that a rebuild has finished. */
static bool
start_activate (struct array *a)
{
  struct device_set devs = {{ 0, 0 }};
  bool any = false;

  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct seat *s = a->seat[i];

    if (s->state == SEAT_TARGET && s->complete && !s->failing) {
      device_set_add (&devs, s->dev);
      any = true;
    }
  }
  if (!any || !a->consistency->may_activate (a))
    return false;
  change_new (a, CHANGE_ACTIVATE, NULL)->devs = devs;
  return true;
}

/* Drop a member that is replaced. */
static bool
start_drop (struct array *a)
{
  FOR_EACH_BIT (slot, a->doubled_slots) {
    struct seat *s = a->at[slot][0], *t = a->at[slot][1];
    const bool first = s->replaced != PLANTED ("two-actives-drop-wrong");
    struct seat *goes = first ? s : t;

    goes->failing = true;
    seats_changed (a);
    change_new (a, CHANGE_REMOVE, NULL)->seat = goes;
    return true;
  }
  return false;
}

/* An opener that misses some members of a record can't know that it is in
 * force, and needs a quorum of its base too.  If the base has other members,
 * fewer may be lost than normal: m members that were just rebuilt could not
 * go.  One more record, with this one as its base, says that it was in force.
 */
static bool
start_confirm (struct array *a)
{
  const struct record *r = &a->membership.cur;

  for (unsigned i = 0; i < 2; i++)
    if (r->self.active.w[i] != r->base.active.w[i]) {
      change_new (a, CHANGE_CONFIRM, NULL);
      return true;
    }
  return false;
}

/* A drop comes before another activation, and before all work of the main
 * loop and pass_decide: after a crash the two members of a slot may differ,
 * and parity made by a resync fits only one of them.
 */
void
change_decide (struct array *a)
{
  struct list *l;

  while (a->change == NULL && a->saving == 0) {
    if (a->change_wanted && !a->failed && (a->writable || a->opening))
      change_new (a, CHANGE_FAIL, NULL);
    else if ((l = list_pop (&a->commands)) != NULL)
      start_command (a, list_item (l, struct request, link));
    else if (!a->writable || a->failed ||
             (!start_drop (a) && !start_activate (a) && !start_confirm (a)))
      return;
    if (a->change)
      change_step (a, &a->change->waiter);
  }
}
