/* gpuraid: which change of the membership record is next.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdlib.h>

#include "array/change/grow.h"
#include "array/change/internal.h"
#include "array/change/join.h"
#include "array/change/readd.h"
#include "array/change/shape.h"
#include "array/engine/consistency.h"
#include "array/engine/state.h"
#include "array/health/fail.h"
#include "array/io/superblock.h"
#include "array/io/xfer.h"
#include "array/membership/rules.h"
#include "array/seats/seat.h"
#include "common/plant.h"

/* ---- commands -------------------------------------------------------- */

/* A member is taken out at once, even while a change is under way, which may
 * be waiting for this member.  The command ends when a record without it is
 * in force; also if the array has taken it out by itself just before.
 */
static bool
take_out (struct array *a, struct command *cmd)
{
  struct seat *s = cmd->seat;
  char name[SEAT_NAME_LEN];

  if (a->failed) {
    command_end (a, cmd, EIO, "the array has failed");
    return false;
  }
  cmd->already = s->m == NULL || s->state == SEAT_IDLE || s->failing;
  if (cmd->already)
    return true;
  if (!seat_can_fail (a, s)) {
    command_end (a, cmd, EINVAL, "fewer than k members would remain: readd "
                   "or replace one first");
    return false;
  }
  log_notice ("%s: taken out by command%s", seat_name (s, name),
              s->state == SEAT_SPARE ? "" : READD_HINT);
  seat_take_out (a, s, "taken out by command");
  change_request (a);
  return true;
}

/* The record waits for space: clients can read, and what they write waits. */
static bool
is_enough (const struct array *a, const struct command *cmd)
{
  return cmd->kind == COMMAND_WRITABLE && cmd->of_client && a->opening &&
    !list_empty (&a->no_space_stores) && !PLANTED ("opening-waits");
}

void
change_no_space (struct array *a)
{
  if (a->change && a->change->command && is_enough (a, a->change->command)) {
    command_end (a, a->change->command, 0, NULL);
    a->change->command = NULL;
  }
  list_for_each (l, &a->commands) {
    struct command *cmd = list_item (l, struct command, link);

    if (!is_enough (a, cmd))
      continue;
    list_remove (&cmd->link);
    command_end (a, cmd, 0, NULL);
  }
}

void
change_command (struct array *a, struct command *cmd)
{
  cmd->whole.pending = 1;
  a->open_wanted |= cmd->kind == COMMAND_WRITABLE;
  /* Don't queue it behind a change that may wait for a member. */
  if ((cmd->kind == COMMAND_WRITABLE && a->writable && !a->failed) ||
      is_enough (a, cmd))
    command_end (a, cmd, 0, NULL);
  else if (cmd->kind != COMMAND_FAIL || cmd->seat == NULL || take_out (a, cmd))
    list_move (&a->commands, &cmd->link);
}

/* Its record is begun, and it waits for that; or it was refused. */
static void
await_seat (struct array *a, struct command *cmd, struct seat *s,
            const char *why)
{
  struct change *c;

  if (s == NULL) {
    command_end (a, cmd, EINVAL, why);
    return;
  }
  c = change_new (a, CHANGE_TARGET, cmd);
  c->begun = true;
  c->seat = s;
}

/* A seat was taken out by change_command, and a record is in force. */
static void
end_fail (struct array *a, struct command *cmd)
{
  const int dev = cmd->seat ? -1 :
    membership_find (a->membership.device, &cmd->uuid);

  if (cmd->seat)
    command_end (a, cmd, 0, NULL);
  else if (dev == -1 || a->membership.device[dev].state != DEVICE_MISSING ||
           a->membership.device[dev].slot != SLOT_NONE)
    command_end (a, cmd, EINVAL, "it is not missing any more");
  else {
    log_notice ("a spare that is missing is no spare any more, by command");
    change_new (a, CHANGE_FORGET, cmd)->dev = dev;
  }
}

static void
start_command (struct array *a, struct command *cmd)
{
  char why[MEMBERSHIP_TEXT_LEN] = "";

  if (a->failed && cmd->kind != COMMAND_WRITABLE) {
    command_end (a, cmd, EIO, "the array has failed");
    return;
  }
  switch (cmd->kind) {
  case COMMAND_WRITABLE:
    if (a->writable) {
      command_end (a, cmd, 0, NULL);
      return;
    }
    if (a->readonly || a->failed) {
      command_end (a, cmd, a->readonly ? EROFS : EIO, NULL);
      return;
    }
    a->opening = true;
    change_new (a, CHANGE_OPEN, cmd);
    break;
  case COMMAND_FAIL: end_fail (a, cmd); break;
  case COMMAND_REPLACE:
    await_seat (a, cmd, join_replace (a, cmd, why), why);
    break;
  case COMMAND_READD:
    await_seat (a, cmd, readd_begin (a, cmd, why), why);
    break;
  case COMMAND_SPARE:
    await_seat (a, cmd, join_spare (a, cmd, why), why);
    break;
  case COMMAND_PARITY: case COMMAND_PARITY_CANCEL:
  case COMMAND_WIDEN: case COMMAND_WIDEN_CANCEL:
    shape_start (a, cmd);
    break;
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

/* A spare takes the place of a member that is lost.  What it got when it was
 * prepared to be one more member may still be on its way.
 */
static bool
start_spare (struct array *a)
{
  unsigned slot = SLOT_NONE;
  struct seat *s = join_find_spare (a, &slot);
  struct change *c;

  if (s == NULL ||
      (!xfers_have_ended (a, s) && !PLANTED ("widen-spare-taken")))
    return false;
  c = change_new (a, CHANGE_SPARE, NULL);
  c->seat = s;
  c->slot = slot;
  return true;
}

/* What was added is prepared on all members. */
static bool
start_grow (struct array *a)
{
  if (!grow_begin (a))
    return false;
  change_new (a, CHANGE_GROW, NULL)->begun = true;
  return true;
}

static bool
start_shape (struct array *a)
{
  struct command *cmd;
  struct seat *s;
  struct change *c;

  if (!shape_begin (a, &cmd, &s))
    return false;
  c = change_new (a, CHANGE_SHAPE, cmd);
  c->begun = true;
  c->seat = s;
  return true;
}

/* An opener that misses some members of a record can't know that it is in
 * force, and needs a quorum of its base too.  If the base has other members,
 * fewer may be lost than normal: m members that were just rebuilt could not
 * go.  One more record, with this one as its base, says that it was in force.
 * So it is where an array is not widened any more: it may be opened by versions
 * that do not know of that when no record says it (W12).
 */
static bool
start_confirm (struct array *a)
{
  const struct record *r = &a->membership.cur;

  if (r->base.widening && !r->self.widening && !shape_is_busy (a)) {
    change_new (a, CHANGE_CONFIRM, NULL);
    return true;
  }

  for (unsigned i = 0; i < 2; i++)
    if (r->self.active.w[i] != r->base.active.w[i] &&
        !PLANTED ("member-unconfirmed")) {
      change_new (a, CHANGE_CONFIRM, NULL);
      return true;
    }
  return false;
}

/* A write is planned, read for and begun while no change is under way, or
 * planned anew.  Commands that come faster than they are carried out would hold
 * all writes for ever, so after each change there is as much time without one,
 * if there is something to do.
 */
static bool
rests (struct array *a)
{
  if (a->rest_until > 0 && engine_now (a) >= a->rest_until)
    a->rest_until = 0;
  return a->rest_until > 0 && a->writable && !a->failed &&
    (a->nr_dirty > 0 || !list_empty (&a->ops)) && !PLANTED ("change-no-rest");
}

/* A drop comes before another activation, and before all work of the main
 * loop, as passes: after a crash the two members of a slot may differ,
 * and parity made by a resync fits only one of them.
 */
static void
change_turn (struct array *a)
{
  struct list *l;

  change_follow (a);
  while (a->change == NULL && !save_is_busy (a)) {
    /* After a beat of 0 another host may write records. */
    if (a->ending && !PLANTED ("change-after-beat"))
      return;
    if (a->change_wanted && !a->failed && (a->writable || a->opening))
      change_new (a, CHANGE_FAIL, NULL);
    else if (!rests (a) && (l = list_pop (&a->commands)) != NULL)
      start_command (a, list_item (l, struct command, link));
    else if (!a->writable || a->failed ||
             (!start_drop (a) && !start_activate (a) && !start_confirm (a) &&
              !start_spare (a) && !start_shape (a) && !start_grow (a)))
      return;
    if (a->change)
      change_step (a, &a->change->waiter);
  }
}

/* ---- the room ------------------------------------------------------------ */

static int
change_init (struct array *a, const struct config *c, const struct assembly *as)
{
  list_init (&a->change_waiters);
  list_init (&a->commands);
  a->spare_delay_ns = c->spare_delay_ns;
  a->change_memory = calloc (1, sizeof *a->change_memory);
  return a->change_memory ? 0 : -1;
}

static void
change_free (struct array *a)
{
  free (a->change_memory);
}

static bool
change_wants_tick (const struct array *a)
{
  return a->change || !list_empty (&a->commands) || join_spare_waits (a);
}

static bool
change_is_busy (const struct array *a)
{
  return a->change;
}

const struct room room_change = {
  .init = change_init, .free = change_free, .turn = change_turn,
  .wants_tick = change_wants_tick, .is_busy = change_is_busy,
};
