/* gpuraid: changes of the array's shape: it grows, gets one more slot for
 * parity or for data, or that slot is taken back.  docs/rules.md, A1 to A4 and
 * W1 to W3, and docs/membership.md.
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

/* The same, and no other change of the shape is under way. */
static int
regular (struct membership *ms, char *why)
{
  struct text t = { .buf = why };

  if (whole (ms, why) == -1)
    return -1;
  if (ms->shape.widening && !PLANTED ("widen-two-at-once")) {
    text_add (&t, "a data member is being added");
    return -1;
  }
  return 0;
}

/* The same, and there is room for one more slot, the last. */
static int
may_add_slot (struct membership *ms, char *why)
{
  struct text t = { .buf = why };
  const unsigned nr_slots = ms->shape.k + ms->shape.m;

  if (regular (ms, why) == -1)
    return -1;
  if (device_set_count (&ms->cur.self.active) > nr_slots)
    text_add (&t, "a member is being replaced");
  else if (nr_slots >= MAX_SLOTS)
    text_add (&t, "the array has as many members as it can");
  else
    return 0;
  return -1;
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
  if (regular (ms, why) == -1)
    return -1;
  ms->next_shape = *shape;
  return next_begin (ms, why);
}

int
membership_begin_parity (struct membership *ms, const uuid_bytes *uuid,
                         uint32_t matrix_crc, unsigned *dev, char *why)
{
  struct sb_shape *shape = &ms->next_shape;
  const unsigned slot = ms->shape.k + ms->shape.m;

  if (may_add_slot (ms, why) == -1)
    return -1;
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

/* It is active at once, as its blocks of all rows count as zeroes by rule.  One
 * that does not hold the record in force could not count as current: it would
 * not have accepted the base.
 */
int
membership_begin_widen (struct membership *ms, unsigned dev,
                        uint32_t matrix_crc, char *why)
{
  struct text t = { .buf = why };
  struct sb_shape *shape = &ms->next_shape;
  struct device *d = &ms->next_device[dev];

  if (may_add_slot (ms, why) == -1)
    return -1;
  if (ms->device[dev].state != DEVICE_SPARE && !PLANTED ("widen-not-told")) {
    text_add (&t, "the new member is no spare that is there");
    return -1;
  }
  d->state = DEVICE_ACTIVE;
  d->slot = ms->shape.k + ms->shape.m;
  shape->k++;
  shape->widening = true;
  shape->matrix_crc = matrix_crc;
  return next_begin (ms, why);
}

/* The records before it list the members of that slot, so these keep their
 * place until those are past, as spares that failed.
 */
int
membership_begin_widen_cancel (struct membership *ms, uint32_t matrix_crc,
                               char *why)
{
  struct text t = { .buf = why };
  struct sb_shape *shape = &ms->next_shape;
  const unsigned slot = ms->shape.k + ms->shape.m - 1;

  if (next_ready (ms, why) == -1)
    return -1;
  if ((!ms->shape.widening && !PLANTED ("widen-cancel-late")) ||
      !ms->in_force) {
    text_add (&t, "no data member is being added");
    return -1;
  }
  shape->k--;
  shape->widening = false;
  shape->matrix_crc = matrix_crc;
  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++) {
    struct device *d = &ms->next_device[dev];

    if (is_of_slot (d, slot) && !PLANTED ("widen-cancel-lists"))
      *d = (struct device) {
        .uuid = d->uuid, .state = DEVICE_FAILED, .slot = SLOT_NONE,
        .step = d->step,
      };
  }
  return next_begin (ms, why);
}

int
membership_end_widening (struct membership *ms, uint64_t size, char *why)
{
  struct text t = { .buf = why };

  if (whole (ms, why) == -1)
    return -1;
  if (!ms->shape.widening) {
    text_add (&t, "no data member is being added");
    return -1;
  }
  ms->next_shape.widening = false;
  ms->next_shape.size = size;
  return next_begin (ms, why);
}

void
shape_drop (struct membership *ms)
{
  const unsigned was = ms->shape.k + ms->shape.m;
  const unsigned nr = ms->next_shape.k + ms->next_shape.m;
  const unsigned slot = MIN (was, nr);

  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++)
    if (was != nr && !PLANTED ("parity-drop-lists") &&
        (is_of_slot (&ms->next_device[dev], slot) ||
         is_of_slot (&ms->device[dev], slot)))
      ms->next_device[dev] = ms->device[dev];
  if (!PLANTED ("parity-drop-keeps"))
    ms->next_shape = ms->shape;
}
