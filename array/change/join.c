/* gpuraid: new members: a replacement, and spares.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/change/command.h"
#include "array/change/join.h"
#include "array/seats/seat.h"
#include "common/plant.h"

/* ---- commands ------------------------------------------------------------ */

static struct seat *
new_seat (struct array *a, char why[MEMBERSHIP_TEXT_LEN])
{
  struct seat *s = seat_new (a, NULL, SB_MAX_DEVICES, SLOT_NONE, SEAT_IDLE);

  if (s == NULL && PLANTED ("replace-no-seat"))
    abort ();
  if (s == NULL)
    snprintf (why, MEMBERSHIP_TEXT_LEN,
              "no room for another member: too many are open; start the "
              "server again");
  return s;
}

static struct seat *
take (struct array *a, struct command *cmd, struct seat *s, unsigned slot,
      enum seat_state state)
{
  s->m = cmd->target;
  s->slot = slot;
  s->state = state;
  s->uuid = cmd->uuid;
  seats_changed (a);
  cmd->target = NULL;
  return s;
}

/* The record is begun last, as that can't be undone.  If it is refused the seat
 * is like one whose member was closed.
 */
static struct seat *
join (struct array *a, struct command *cmd, unsigned slot,
      enum seat_state state, char why[MEMBERSHIP_TEXT_LEN])
{
  struct seat *s = new_seat (a, why);

  if (s == NULL ||
      membership_begin_target (&a->membership, &cmd->uuid, slot, false,
                               &s->dev, why) == -1)
    return NULL;
  return take (a, cmd, s, slot, state);
}

struct seat *
join_replace (struct array *a, struct command *cmd,
              char why[MEMBERSHIP_TEXT_LEN])
{
  /* It may have been taken back while the command waited. */
  if (cmd->slot < a->n && a->at[cmd->slot][1]) {
    snprintf (why, MEMBERSHIP_TEXT_LEN, "the slot is being rebuilt already: "
              "wait for the end (gpuraid wait)");
    return NULL;
  }
  return join (a, cmd, cmd->slot, SEAT_TARGET, why);
}

struct seat *
join_spare (struct array *a, struct command *cmd,
            char why[MEMBERSHIP_TEXT_LEN])
{
  return join (a, cmd, SLOT_NONE, SEAT_SPARE, why);
}

/* Its slot is there when the record is in force. */
struct seat *
join_parity (struct array *a, struct command *cmd, uint32_t crc,
             char why[MEMBERSHIP_TEXT_LEN])
{
  struct seat *s = new_seat (a, why);

  if (s == NULL ||
      membership_begin_parity (&a->membership, &cmd->uuid, crc, &s->dev,
                               why) == -1)
    return NULL;
  return take (a, cmd, s, a->n, SEAT_TARGET);
}

/* ---- use a spare --------------------------------------------------------- */

void
join_no_spare (struct array *a, unsigned slot)
{
  a->no_spare |= BIT (slot);
}

/* Slots that want a spare now or later. */
static uint64_t
empty_slots (const struct array *a)
{
  uint64_t slots = 0;

  if (a->nr_spares == 0 || !a->writable || a->failed || a->stopping)
    return 0;
  FOR_EACH_BIT (slot, a->lost_slots & ~a->no_spare)
    if (a->at[slot][0] == NULL && a->at[slot][1] == NULL)
      slots |= BIT (slot);
  return slots;
}

/* Its member was not there: a disk may be slow to start. */
static bool
may_come (const struct array *a, unsigned slot)
{
  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++)
    if (a->membership.device[dev].state == DEVICE_MISSING &&
        a->membership.device[dev].slot == slot)
      return engine_now (a) - a->writable_since < a->spare_delay_ns;
  return false;
}

/* It was long enough when it was added, but the array may have grown while it
 * was not there.  One that has a slot is prepared to be one more member.
 */
static bool
fits (const struct array *a, const struct seat *s)
{
  return s->state == SEAT_SPARE && s->m && !s->failing &&
    (s->slot == SLOT_NONE || PLANTED ("widen-spare-taken")) &&
    s->m->ops->size (s->m) >= layout_end (&a->sb.l);
}

struct seat *
join_find_spare (const struct array *a, unsigned *slot)
{
  FOR_EACH_BIT (empty, empty_slots (a))
    if (!may_come (a, empty))
      for (unsigned i = 0; i < a->nr_seats; i++)
        if (fits (a, a->seat[i])) {
          *slot = empty;
          return a->seat[i];
        }
  return NULL;
}

bool
join_spare_waits (const struct array *a)
{
  FOR_EACH_BIT (slot, empty_slots (a))
    if (may_come (a, slot))
      return true;
  return false;
}
