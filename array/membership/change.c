/* gpuraid: the membership of a running array: make the next record, follow it
 * until it is in force, and make another if a member fails during that.
 *
 * While a record is proposed no member has accepted it: it can be dropped and
 * another made from the same parent.  Once it is being accepted, a later
 * opener must assume that it is in force, so the next record follows it, and
 * the base remains the last record known to be in force.  Targets and spares
 * do not vote: they are only told which record is in force.  docs/rules.md,
 * M11 to M17.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>

#include "array/membership/membership.h"
#include "array/membership/next.h"
#include "array/membership/rules.h"
#include "common/bits.h"
#include "common/plant.h"

void
membership_start (struct membership *ms, const struct membership_decision *d,
                  const struct found *found, size_t nr, uint64_t session)
{
  memset (ms, 0, sizeof *ms);
  ms->session = PLANTED ("member-session-same") ? 1 : session;
  ms->cur = d->sb.record;
  memcpy (ms->device, d->sb.device, sizeof ms->device);
  sb_get_shape (&d->sb, &ms->shape);
  ms->in_force = d->in_force;
  ms->base = d->in_force || PLANTED ("member-base-of-winner") ?
    d->sb.record.self : d->sb.record.base;
  ms->max_epoch = d->max_epoch;
  for (size_t i = 0; i < nr; i++)
    rules_note_copies (ms, &found[i], d);
}

/* ---- changes -------------------------------------------------------- */

static const struct found *
find_found (const struct found *found, size_t nr, unsigned dev)
{
  for (size_t i = 0; i < nr; i++)
    if (found[i].dev == (int) dev && found[i].state != FOUND_REFUSED)
      return &found[i];
  return NULL;
}

/* True if a device is being rebuilt for this slot. */
static bool
has_target (const struct device *device, uint8_t slot)
{
  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++)
    if (device[dev].state == DEVICE_REBUILDING && device[dev].slot == slot)
      return !PLANTED ("member-two-targets");
  return false;
}

/* Set the state of one device, not a stale one, at a writable open.  slots:
 * those with an active member in cur.
 */
static void
open_device (struct device *d, const struct found *f, uint64_t slots)
{
  /* Do not wait for a target that would have replaced an active member. */
  bool replacing = d->state == DEVICE_REBUILDING &&
    (slots & BIT (d->slot)) != 0;

  if (f != NULL && (f->state == FOUND_CURRENT ||
                    (f->state == FOUND_STALE &&
                     PLANTED ("member-stale-active"))))
    d->state = DEVICE_ACTIVE;
  else if (d->state == DEVICE_NONE || d->state == DEVICE_FAILED)
    return;
  else if (f != NULL && f->state == FOUND_SPARE)
    d->state = DEVICE_SPARE;
  else if (f != NULL && f->state == FOUND_TARGET) {
    d->by_bitmap = f->covered;
    d->cursor = f->cursor;
    return;
  }
  else
    d->state = replacing ? DEVICE_FAILED : DEVICE_MISSING;
  d->by_bitmap = false;
  d->cursor = 0;
}

/* Stale members become targets, one per slot: with two, each would miss
 * writes after the other became active.  Covered ones go first.
 */
static void
open_stale (struct membership *ms, const struct found *found, size_t nr,
            bool covered)
{
  for (size_t i = 0; i < nr; i++) {
    struct device *d;

    if (found[i].state != FOUND_STALE || found[i].covered != covered)
      continue;
    d = &ms->next_device[found[i].dev];
    if (d->state == DEVICE_MISSING && !has_target (ms->next_device, d->slot)) {
      d->state = DEVICE_REBUILDING;
      d->by_bitmap = covered;
    }
  }
}

void
membership_begin_open (struct membership *ms, const struct found *found,
                       size_t nr, bool bring_back)
{
  uint64_t slots;

  assert (ms->phase == MEMBERSHIP_IDLE);
  memcpy (ms->next_device, ms->device, sizeof ms->device);
  ms->next_shape = ms->shape;
  slots = rules_slots (ms->device, &ms->cur.self.active);
  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++)
    open_device (&ms->next_device[dev], find_found (found, nr, dev), slots);
  if (bring_back) {
    open_stale (ms, found, nr, true);
    open_stale (ms, found, nr, false);
  }
  next_propose (ms);
}

int
membership_begin_target (struct membership *ms, const uuid_bytes *uuid,
                         uint8_t slot, bool by_bitmap, unsigned *dev,
                         char *why)
{
  struct text t = { .buf = why };

  if (next_ready (ms, why) == -1)
    return -1;
  if (slot != SLOT_NONE && slot >= ballot_set_nr_slots (&ms->cur.self)) {
    text_add (&t, "there is no slot %u any more", slot);
    return -1;
  }
  if (slot != SLOT_NONE && has_target (ms->device, slot)) {
    text_add (&t, "another member is being rebuilt for this slot");
    return -1;
  }
  return next_add_target (ms, uuid, slot, by_bitmap, dev, why);
}

int
membership_begin_use_spare (struct membership *ms, unsigned dev, uint8_t slot,
                            char *why)
{
  struct text t = { .buf = why };

  if (next_ready (ms, why) == -1)
    return -1;
  assert (ms->device[dev].state == DEVICE_SPARE);
  if (has_target (ms->device, slot)) {
    text_add (&t, "another member is being rebuilt for this slot");
    return -1;
  }
  ms->next_device[dev].state = DEVICE_REBUILDING;
  ms->next_device[dev].slot = slot;
  return next_begin (ms, why);
}

int
membership_begin_activate (struct membership *ms,
                           const struct device_set *devs, char *why)
{
  const uint64_t slots = rules_slots (ms->device, devs);

  if (next_ready (ms, why) == -1)
    return -1;
  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++) {
    struct device *d = &ms->next_device[dev];

    if (d->state == DEVICE_ACTIVE && (slots & BIT (d->slot)) != 0)
      d->replaced = true;
  }
  FOR_EACH_DEVICE (dev, devs) {
    assert (ms->device[dev].state == DEVICE_REBUILDING);
    ms->next_device[dev].state = DEVICE_ACTIVE;
    ms->next_device[dev].by_bitmap = false;
    ms->next_device[dev].cursor = 0;
  }
  return next_begin (ms, why);
}

static bool
is_out (const struct device *d)
{
  return d->state != DEVICE_ACTIVE && d->state != DEVICE_REBUILDING &&
    d->state != DEVICE_SPARE;
}

static void
take_out (struct device *device, const struct device_set *devs,
          enum device_state state)
{
  FOR_EACH_DEVICE (dev, devs)
    if (!is_out (&device[dev])) {
      device[dev].state =
        PLANTED ("member-failed-is-missing") ? DEVICE_MISSING : state;
      device[dev].by_bitmap = false;
      device[dev].cursor = 0;
    }
}

int
membership_begin_remove (struct membership *ms, const struct device_set *devs,
                         enum device_state state, char *why)
{
  if (next_ready (ms, why) == -1)
    return -1;
  take_out (ms->next_device, devs, state);
  return next_begin (ms, why);
}

int
membership_begin_forget (struct membership *ms, unsigned dev, char *why)
{
  struct device *d = &ms->next_device[dev];

  if (next_ready (ms, why) == -1)
    return -1;
  assert (d->state == DEVICE_MISSING && d->slot == SLOT_NONE);
  d->state = DEVICE_FAILED;     /* purge removes it */
  return next_begin (ms, why);
}

/* ---- failures and progress ------------------------------------------ */

/* Propose next_device without the failed devices.  If one of them was active
 * in cur, additions wait: a change only adds or only removes.
 */
static void
propose_without (struct membership *ms, struct device_set *failed,
                 bool check)
{
  struct device_set lost;
  char why[MEMBERSHIP_TEXT_LEN];

  /* A new shape was accepted by no member, or is that of cur. */
  shape_drop (ms);
  lost = device_set_and (failed, &ms->cur.self.active);
  if (!device_set_empty (&lost) && !PLANTED ("member-add-and-remove"))
    for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++)
      if (ms->next_device[dev].state == DEVICE_ACTIVE &&
          !device_set_has (&ms->cur.self.active, dev))
        ms->next_device[dev] = ms->device[dev];
  take_out (ms->next_device, failed, DEVICE_FAILED);
  if (!check)
    next_propose (ms);
  else if (next_begin (ms, why) == -1)
    ms->phase = MEMBERSHIP_STOPPED;
}

static bool
enough_without (const struct ballot_set *set, const struct device_set *devs)
{
  const struct device_set left = device_set_minus (&set->active, devs);

  return device_set_count (&left) >= set->k;
}

bool
membership_can_lose (const struct membership *ms,
                     const struct device_set *devs)
{
  const bool changing = ms->phase == MEMBERSHIP_PROPOSE ||
    ms->phase == MEMBERSHIP_ACCEPT;

  return ms->phase != MEMBERSHIP_STOPPED &&
    enough_without (&ms->cur.self, devs) && enough_without (&ms->base, devs) &&
    (!changing || enough_without (&ms->next.self, devs));
}

void
membership_fail (struct membership *ms, const struct device_set *devs)
{
  struct device_set new = {{ 0, 0 }};
  const struct device *device =
    ms->phase == MEMBERSHIP_IDLE ? ms->device : ms->next_device;

  FOR_EACH_DEVICE (dev, devs)
    if (!is_out (&device[dev]))
      device_set_add (&new, dev);
  if (device_set_empty (&new) || ms->phase == MEMBERSHIP_STOPPED)
    return;
  if (ms->phase != MEMBERSHIP_IDLE) {
    ms->failed = device_set_or (&ms->failed, &new);
    return;
  }
  memcpy (ms->next_device, ms->device, sizeof ms->device);
  propose_without (ms, &new, true);
}

void
membership_takers (const struct membership *ms, struct device_set *devs)
{
  *devs = (struct device_set) {{ 0, 0 }};
  if (ms->phase == MEMBERSHIP_PROPOSE || ms->phase == MEMBERSHIP_ACCEPT)
    *devs = ms->next.self.active;
  else if (ms->phase == MEMBERSHIP_TELL)
    for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++)
      if (!is_out (&ms->device[dev]) &&
          ms->device[dev].state != DEVICE_ACTIVE)
        device_set_add (devs, dev);
}

/* The devices of the next record's table that failed in this phase, takers or
 * not.
 */
static struct device_set
failed_listed (const struct membership *ms, const struct device_set *failed)
{
  struct device_set out = {{ 0, 0 }};
  struct device_set all = device_set_or (&ms->failed, failed);

  FOR_EACH_DEVICE (dev, &all)
    if (!is_out (&ms->next_device[dev]))
      device_set_add (&out, dev);
  return out;
}

enum membership_phase
membership_proposed (struct membership *ms, const struct device_set *failed)
{
  struct device_set out, lost;

  assert (ms->phase == MEMBERSHIP_PROPOSE);
  out = failed_listed (ms, failed);
  if (device_set_empty (&out) || PLANTED ("member-proposed-by-some")) {
    ms->phase = MEMBERSHIP_ACCEPT;
    return ms->phase;
  }
  if (PLANTED ("member-epoch-again"))
    ms->max_epoch--;
  if (PLANTED ("member-proposal-followed"))
    ms->cur = ms->next;
  lost = device_set_and (&out, &ms->next.self.active);
  propose_without (ms, &out, !device_set_empty (&lost));
  return ms->phase;
}

enum membership_phase
membership_accepted (struct membership *ms, const struct device_set *failed)
{
  struct device_set out, lost, told;

  assert (ms->phase == MEMBERSHIP_ACCEPT);
  out = failed_listed (ms, failed);
  lost = device_set_and (&out, &ms->next.self.active);
  if (device_set_empty (&lost) || !PLANTED ("member-accepted-dropped")) {
    ms->cur = ms->next;
    memcpy (ms->device, ms->next_device, sizeof ms->device);
    ms->shape = ms->next_shape;
  }
  ms->in_force = device_set_empty (&lost) || PLANTED ("member-base-early");
  if (ms->in_force)
    ms->base = ms->cur.self;
  if (!device_set_empty (&out)) {
    propose_without (ms, &out, !device_set_empty (&lost));
    return ms->phase;
  }
  ms->phase = MEMBERSHIP_TELL;
  membership_takers (ms, &told);
  if (device_set_empty (&told) || PLANTED ("member-target-untold"))
    ms->phase = MEMBERSHIP_IDLE;
  return ms->phase;
}

enum membership_phase
membership_told (struct membership *ms, const struct device_set *failed)
{
  struct device_set out, lost;

  assert (ms->phase == MEMBERSHIP_TELL);
  out = failed_listed (ms, failed);
  ms->phase = MEMBERSHIP_IDLE;
  if (!device_set_empty (&out)) {
    lost = device_set_and (&out, &ms->cur.self.active);
    propose_without (ms, &out, !device_set_empty (&lost));
  }
  return ms->phase;
}
