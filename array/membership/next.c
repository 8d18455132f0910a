/* gpuraid: the next record of a running array: which may follow, and how it
 * begins.
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

#include "array/membership/membership.h"
#include "array/membership/next.h"
#include "array/membership/rules.h"
#include "common/bits.h"
#include "common/plant.h"

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

static unsigned
old_k (bool widening)
{
  return widening && PLANTED ("widen-keep-old-k");
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
  if (nr_bits (rules_slots (ms->next_device, active)) <
      ms->next_shape.k - old_k (ms->next_shape.widening))
    return "fewer than k slots would remain: readd or replace a member first";
  if (count_kept (active, parent) <
      ms->cur.self.k - old_k (ms->cur.self.widening))
    return "fewer than k members would remain: readd or replace one first";
  if (count_kept (active, &ms->base.active) <
      ms->base.k - old_k (ms->base.widening) &&
      !PLANTED ("member-base-lost"))
    return "fewer than k members of the last record in force would remain: "
      "try again when the change in progress has ended";
  return NULL;
}

void
next_propose (struct membership *ms)
{
  const struct device_set active = active_set (ms->next_device);
  struct record *r = &ms->next;
  struct sb_shape *shape = &ms->next_shape;

  purge (ms, ms->next_device, &active);
  rules_settle_replaced (ms->next_device);
  if ((rules_slots (ms->next_device, &active) &
       BIT (shape->k + shape->m - 1)) != 0 && !PLANTED ("parity-first-kept"))
    shape->first = false;
  memset (r, 0, sizeof *r);
  if (PLANTED ("member-epoch-low"))
    ms->max_epoch = ms->cur.self.ballot.epoch;
  r->self.ballot.epoch = ++ms->max_epoch;
  r->self.ballot.session = ms->session;
  r->self.active = active;
  r->self.k = shape->k;
  r->self.m = shape->m;
  r->self.first = shape->first;
  r->self.widening = shape->widening;
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

int
next_begin (struct membership *ms, char *why)
{
  const struct device_set active = active_set (ms->next_device);
  const char *what = illegal (ms, &active);
  struct text t = { .buf = why };

  if (what != NULL) {
    text_add (&t, "%s", what);
    return -1;
  }
  next_propose (ms);
  return 0;
}

int
next_ready (struct membership *ms, char *why)
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

int
next_add_target (struct membership *ms, const uuid_bytes *uuid, uint8_t slot,
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
  return next_begin (ms, why);
}
