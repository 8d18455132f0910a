/* gpuraid: changes of the array's shape: it grows, gets one more slot for
 * parity, or that slot is taken back.  docs/rules.md,
 * A1 to A4, and docs/membership.md.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/membership/membership.h"
#include "array/membership/next.h"
#include "array/membership/rules.h"
#include "common/bits.h"
#include "common/plant.h"

static bool
is_of_slot (const struct device *d, unsigned slot)
{
  return d->state != DEVICE_NONE && d->slot == slot;
}

static bool
rebuilding (const struct device *device)
{
  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++)
    if (device[dev].state == DEVICE_REBUILDING)
      return true;
  return false;
}

/* Ready, and nothing is lost or being rebuilt. */
static int
whole (struct membership *ms, char *why)
{
  struct text t = { .buf = why };

  if (next_ready (ms, why) == -1)
    return -1;
  if ((nr_bits (rules_slots (ms->device, &ms->cur.self.active)) <
       ballot_set_nr_slots (&ms->cur.self) && !PLANTED ("parity-degraded")) ||
      rebuilding (ms->device) || !ms->in_force) {
    text_add (&t, "a member is lost, or is being rebuilt");
    return -1;
  }
  return 0;
}

/* What is added was prepared on all members of the record of any copy that
 * names it, and every one of them has accepted the record before.  So it does
 * no harm if an opener counts a record that was only proposed to some.  A slot
 * without an active member would come back without what was added.
 */
int
membership_begin_grow (struct membership *ms, const struct sb_shape *shape,
                       char *why)
{
  if (whole (ms, why) == -1)
    return -1;
  ms->next_shape = *shape;
  return next_begin (ms, why);
}

int
membership_begin_parity (struct membership *ms, const uuid_bytes *uuid,
                         uint32_t matrix_crc, unsigned *dev, char *why)
{
  struct text t = { .buf = why };
  struct sb_shape *shape = &ms->next_shape;
  const unsigned slot = ms->shape.k + ms->shape.m;

  if (whole (ms, why) == -1)
    return -1;
  if (device_set_count (&ms->cur.self.active) > slot || slot >= MAX_SLOTS) {
    text_add (&t, slot >= MAX_SLOTS ? "the array has as many members as it can"
              : "a member is being replaced");
    return -1;
  }
  shape->m++;
  shape->fixed |= BIT (slot);
  shape->first = true;
  shape->matrix_crc = matrix_crc;
  return next_add_target (ms, uuid, slot, false, dev, why);
}

int
membership_begin_cancel (struct membership *ms, uint32_t matrix_crc, char *why)
{
  struct text t = { .buf = why };
  struct sb_shape *shape = &ms->next_shape;
  const unsigned slot = ms->shape.k + ms->shape.m - 1;

  if (next_ready (ms, why) == -1)
    return -1;
  if (!ms->shape.first && !PLANTED ("parity-cancel-late")) {
    text_add (&t, "no parity is being added");
    return -1;
  }
  shape->m--;
  shape->fixed &= ~BIT (slot);
  shape->first = false;
  shape->matrix_crc = matrix_crc;
  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++)
    if (is_of_slot (&ms->next_device[dev], slot) &&
        !PLANTED ("parity-cancel-lists"))
      ms->next_device[dev] = (struct device) { .slot = SLOT_NONE };
  return next_begin (ms, why);
}

void
shape_drop (struct membership *ms)
{
  const unsigned slot = ms->shape.k + MIN (ms->shape.m, ms->next_shape.m);

  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++)
    if (ms->shape.m != ms->next_shape.m && !PLANTED ("parity-drop-lists") &&
        (is_of_slot (&ms->next_device[dev], slot) ||
         is_of_slot (&ms->device[dev], slot)))
      ms->next_device[dev] = ms->device[dev];
  if (!PLANTED ("parity-drop-keeps"))
    ms->next_shape = ms->shape;
}
