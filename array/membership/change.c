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
 * Two active members of a slot may differ in blocks that were in flight at a
 * crash, so every session must read from the same one.  The table says which:
 * the old one is `replaced' as long as the new one is active.  Neither the
 * order of the table nor the parent record can say it: places are reused, and
 * the next session's first record lists both as well.
 *
 * The sets of a record, its parent and its base name devices by their place
 * in the table.  So a place is not reused before those records are past.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>

#include "array/membership/membership.h"
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

/* ---- making a record ------------------------------------------------ */

static struct device_set
active_set (const struct device *device)
{
  struct device_set set = {{ 0, 0 }};

  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++)
    if (device[dev].state == DEVICE_ACTIVE)
      device_set_add (&set, dev);
  return set;
}

/* Devices that a new record names in its parent or base. */
static struct device_set
named_set (const struct membership *ms)
{
  return device_set_or (&ms->cur.self.active, &ms->base.active);
}

/* Remove replaced devices and failed spares. */
static void
purge (const struct membership *ms, struct device *device,
       const struct device_set *active)
{
  struct device_set named = named_set (ms);
  uint64_t slots = rules_slots (device, active);

  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++) {
    struct device *d = &device[dev];

    if (device_set_has (&named, dev) ||
        (d->state != DEVICE_FAILED && d->state != DEVICE_MISSING))
      continue;
    if (d->slot == SLOT_NONE ? d->state == DEVICE_FAILED :
        (slots & BIT (d->slot)) != 0)
      *d = (struct device) { .state = DEVICE_NONE };
  }
}

static unsigned
count_kept (const struct device_set *a, const struct device_set *b)
{
  struct device_set both = device_set_and (a, b);

  return device_set_count (&both);
}

/* NULL if a record of next_device, with these active devices, may follow cur,
 * else why not.
 */
static const char *
illegal (const struct membership *ms, const struct device_set *active)
{
  const struct device_set *parent = &ms->cur.self.active;
  struct device_set added = device_set_minus (active, parent);
  struct device_set gone = device_set_minus (parent, active);

  if (!device_set_empty (&added) && !device_set_empty (&gone) &&
      !PLANTED ("member-add-and-remove"))
    return "members are added and removed at once";
  if (nr_bits (rules_slots (ms->next_device, active)) < ms->next_shape.k)
    return "fewer than k slots would remain: readd or replace a member first";
  if (count_kept (active, parent) < ms->cur.self.k)
    return "fewer than k members would remain: readd or replace one first";
  if (count_kept (active, &ms->base.active) < ms->base.k &&
      !PLANTED ("member-base-lost"))
    return "fewer than k members of the last record in force would remain: "
      "try again when the change in progress has ended";
  return NULL;
}

/* Propose next_device; the caller has set its active devices. */
static void
propose (struct membership *ms, const struct device_set *active)
{
  struct record *r = &ms->next;
  struct sb_shape *shape = &ms->next_shape;

  purge (ms, ms->next_device, active);
  rules_settle_replaced (ms->next_device);
  if ((rules_slots (ms->next_device, active) &
       BIT (shape->k + shape->m - 1)) != 0 && !PLANTED ("parity-first-kept"))
    shape->first = false;
  memset (r, 0, sizeof *r);
  if (PLANTED ("member-epoch-low"))
    ms->max_epoch = ms->cur.self.ballot.epoch;
  r->self.ballot.epoch = ++ms->max_epoch;
  r->self.ballot.session = ms->session;
  r->self.active = *active;
  r->self.k = shape->k;
  r->self.m = shape->m;
  r->self.first = shape->first;
  r->parent = PLANTED ("member-parent-skipped") ? ms->base : ms->cur.self;
  r->base = PLANTED ("member-base-unproven") ? ms->cur.self : ms->base;
  r->whole = rules_whole (&ms->cur, ms->device);
  r->nr_seen = ms->nr_seen;
  memcpy (r->seen, ms->seen, sizeof r->seen);
  rules_seen_add (ms->seen, &ms->nr_seen, &r->self.ballot);
  ms->failed = (struct device_set) {{ 0, 0 }};
  ms->phase = PLANTED ("member-not-proposed") ? MEMBERSHIP_ACCEPT :
    MEMBERSHIP_PROPOSE;
}

/* Begin with ms->next_device, filled by the caller. */
static int
begin (struct membership *ms, char *why)
{
  struct device_set active = active_set (ms->next_device);
  const char *what = illegal (ms, &active);
  struct text t = { .buf = why };

  if (what != NULL) {
    text_add (&t, "%s", what);
    return -1;
  }
  propose (ms, &active);
  return 0;
}

static int
ready (struct membership *ms, char *why)
{
  struct text t = { .buf = why };

  if (ms->phase == MEMBERSHIP_IDLE) {
    memcpy (ms->next_device, ms->device, sizeof ms->device);
    ms->next_shape = ms->shape;
    return 0;
  }
  text_add (&t, ms->phase == MEMBERSHIP_STOPPED ?
            "too few members are left" :
            "another change is under way: try again");
  return -1;
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
  struct device_set active;
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
  active = active_set (ms->next_device);
  propose (ms, &active);
}

/* ready has been called. */
static int
add_target (struct membership *ms, const uuid_bytes *uuid, uint8_t slot,
            bool by_bitmap, unsigned *dev, char *why)
{
  struct text t = { .buf = why };
  int place = membership_find (ms->device, uuid);
  struct device_set named = named_set (ms);

  for (unsigned i = 0; place == -1 && i < SB_MAX_DEVICES; i++)
    if (ms->device[i].state == DEVICE_NONE && !device_set_has (&named, i))
      place = i;
  if (place == -1) {
    text_add (&t, "no room for another member");
    return -1;
  }
  switch (ms->device[place].state) {
  case DEVICE_ACTIVE: case DEVICE_REBUILDING: case DEVICE_SPARE:
    text_add (&t, "is in use already");
    return -1;
  default:
    break;
  }
  ms->next_device[place] = (struct device) {
    .uuid = *uuid,
    .state = slot == SLOT_NONE ? DEVICE_SPARE : DEVICE_REBUILDING,
    .slot = slot,
    .by_bitmap = by_bitmap,
    .step = ms->device[place].step,
  };
  *dev = place;
  return begin (ms, why);
}

int
membership_begin_target (struct membership *ms, const uuid_bytes *uuid,
                         uint8_t slot, bool by_bitmap, unsigned *dev,
                         char *why)
{
  struct text t = { .buf = why };

  if (ready (ms, why) == -1)
    return -1;
  if (slot != SLOT_NONE && slot >= ballot_set_nr_slots (&ms->cur.self)) {
    text_add (&t, "there is no slot %u any more", slot);
    return -1;
  }
  if (slot != SLOT_NONE && has_target (ms->device, slot)) {
    text_add (&t, "another member is being rebuilt for this slot");
    return -1;
  }
  return add_target (ms, uuid, slot, by_bitmap, dev, why);
}

int
membership_begin_use_spare (struct membership *ms, unsigned dev, uint8_t slot,
                            char *why)
{
  struct text t = { .buf = why };

  if (ready (ms, why) == -1)
    return -1;
  assert (ms->device[dev].state == DEVICE_SPARE);
  if (has_target (ms->device, slot)) {
    text_add (&t, "another member is being rebuilt for this slot");
    return -1;
  }
  ms->next_device[dev].state = DEVICE_REBUILDING;
  ms->next_device[dev].slot = slot;
  return begin (ms, why);
}

int
membership_begin_activate (struct membership *ms,
                           const struct device_set *devs, char *why)
{
  const uint64_t slots = rules_slots (ms->device, devs);

  if (ready (ms, why) == -1)
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
  return begin (ms, why);
}

/* ready, and nothing is lost or being rebuilt. */
static int
whole (struct membership *ms, char *why)
{
  struct text t = { .buf = why };

  if (ready (ms, why) == -1)
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
  return begin (ms, why);
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
  return add_target (ms, uuid, slot, false, dev, why);
}

int
membership_begin_cancel (struct membership *ms, uint32_t matrix_crc, char *why)
{
  struct text t = { .buf = why };
  struct sb_shape *shape = &ms->next_shape;
  const unsigned slot = ms->shape.k + ms->shape.m - 1;

  if (ready (ms, why) == -1)
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
  return begin (ms, why);
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
  if (ready (ms, why) == -1)
    return -1;
  take_out (ms->next_device, devs, state);
  return begin (ms, why);
}

int
membership_begin_forget (struct membership *ms, unsigned dev, char *why)
{
  struct device *d = &ms->next_device[dev];

  if (ready (ms, why) == -1)
    return -1;
  assert (d->state == DEVICE_MISSING && d->slot == SLOT_NONE);
  d->state = DEVICE_FAILED;     /* purge removes it */
  return begin (ms, why);
}

/* ---- failures and progress ------------------------------------------ */

/* The record that adds a slot, or takes it back, is dropped: the members of the
 * slot go with it, or stay.
 */
static void
drop_shape (struct membership *ms)
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

/* Propose next_device without the failed devices.  If one of them was active
 * in cur, additions wait: a change only adds or only removes.
 */
static void
propose_without (struct membership *ms, struct device_set *failed,
                 bool check)
{
  struct device_set active, lost;
  char why[MEMBERSHIP_TEXT_LEN];

  /* A new shape was accepted by no member, or is that of cur. */
  drop_shape (ms);
  lost = device_set_and (failed, &ms->cur.self.active);
  if (!device_set_empty (&lost) && !PLANTED ("member-add-and-remove"))
    for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++)
      if (ms->next_device[dev].state == DEVICE_ACTIVE &&
          !device_set_has (&ms->cur.self.active, dev))
        ms->next_device[dev] = ms->device[dev];
  take_out (ms->next_device, failed, DEVICE_FAILED);
  active = active_set (ms->next_device);
  if (!check)
    propose (ms, &active);
  else if (begin (ms, why) == -1)
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
