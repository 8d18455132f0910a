/* gpuraid: tests: one session of an array: it carries out changes, writes and
 * rebuilds, and crashes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <string.h>

#include "common/bits.h"
#include "raidmap/superblock.h"
#include "tests/array/membership/membership-world.h"

/* step of 4, in TELL of 8 */
static void
write_copies (struct world *w, unsigned dev, enum membership_phase phase,
              unsigned step)
{
  struct superblock sb, back;
  uint8_t buf[SB_LEN];
  unsigned i = disk_of (w, &w->ms.next_device[dev]);

  check (i < w->nr);
  members_superblock (&sb, w->k, w->m);
  if (phase != MEMBERSHIP_ACCEPT)
    members_write (&w->disk[i], &w->ms, dev, &sb, false, MIN (step, 4));
  if (phase == MEMBERSHIP_ACCEPT)
    members_write (&w->disk[i], &w->ms, dev, &sb, true, step);
  else if (step > 4)
    members_write (&w->disk[i], &w->ms, dev, &sb, true, step - 4);

  /* The codec takes whatever is decided here. */
  membership_fill (&w->ms, dev, &sb);
  sb.copy = SB_A1;
  superblock_encode (&sb, buf);
  check (superblock_decode (buf, SB_A1, &back, NULL) == SB_OK);
}

/* The record came into force: which of two members is read. */
static void
note_two (struct world *w)
{
  unsigned active[MAX_SLOTS] = { 0 };

  for (unsigned slot = 0; slot < MAX_SLOTS; slot++)
    w->stays[slot] = MEMBERS_MAX;
  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++) {
    const struct device *d = &w->ms.device[dev];

    if (d->state != DEVICE_ACTIVE)
      continue;
    active[d->slot]++;
    if (!d->replaced)
      w->stays[d->slot] = disk_of (w, d);
  }
  for (unsigned slot = 0; slot < MAX_SLOTS; slot++)
    if (active[slot] < 2)
      w->stays[slot] = MEMBERS_MAX;
}

/* How many slots the record in force has. */
static void
take_slots (struct world *w)
{
  const struct ballot_set *self = &w->ms.cur.self;

  walked.taken_back += self->m < w->m;
  walked.parity_active += w->first && self->m == w->m && !self->first;
  walked.widened += self->k > w->k;
  walked.narrowed += self->k < w->k;
  walked.wide += w->widening && self->k == w->k && !self->widening;
  w->k = self->k;
  w->widening = self->widening;
  w->m = self->m;
  w->first = self->first;
}

/* Carry out the change under way.  False: crashed, or stopped. */
static bool
drive (struct world *w)
{
  while (w->ms.phase != MEMBERSHIP_IDLE &&
         w->ms.phase != MEMBERSHIP_STOPPED) {
    const enum membership_phase phase = w->ms.phase;
    const unsigned steps = phase == MEMBERSHIP_TELL ? 8 : 4;
    bool crash = below (w->crash) == 0;
    struct device_set takers, failed = {{ 0, 0 }};

    membership_takers (&w->ms, &takers);
    for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++) {
      unsigned i = disk_of (w, &w->ms.next_device[dev]);

      if (!device_set_has (&takers, dev))
        continue;
      if (!(w->online >> i & 1) || below (w->fail) == 0) {
        if (w->online >> i & 1)
          write_copies (w, dev, phase, below (steps + 1));
        w->online &= ~(1u << i);
        device_set_add (&failed, dev);
      }
      else
        write_copies (w, dev, phase, crash ? below (steps + 1) : steps);
    }
    if (crash) {
      walked.crashes++;
      return false;
    }
    if (phase == MEMBERSHIP_PROPOSE)
      membership_proposed (&w->ms, &failed);
    else if (phase == MEMBERSHIP_ACCEPT)
      membership_accepted (&w->ms, &failed);
    else
      membership_told (&w->ms, &failed);
  }
  if (w->ms.phase == MEMBERSHIP_STOPPED)
    return false;
  check (w->ms.in_force);
  w->out |= w->leaving;
  w->leaving = 0;
  check (added_by (&w->ms.shape) >= w->added);
  w->added = added_by (&w->ms.shape);
  take_slots (w);
  note_two (w);
  walked.in_force++;
  return true;
}

static bool
all_active (const struct world *w)
{
  uint64_t slots = 0;

  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++)
    if (w->ms.device[dev].state == DEVICE_ACTIVE)
      slots |= BIT (w->ms.device[dev].slot);
  return nr_bits (slots) == w->k + w->m;
}

/* A record came into force. */
static void
settle (struct world *w)
{
  unsigned missed = world_missed (w);

  if (all_active (w) && below (2))
    missed = 0;
  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++) {
    const struct device *d = &w->ms.device[dev];
    struct content *c = &w->content[disk_of (w, d)];

    if (d->state == DEVICE_ACTIVE)
      c->missed = missed;
    if (d->state == DEVICE_REBUILDING && below (2))
      for (unsigned r = d->cursor; r < REGIONS; r++)
        if (!d->by_bitmap || (missed >> r & 1))
          c->region[r] = GARBAGE;       /* being written */
  }
}

static void
write_region (struct world *w)
{
  unsigned r = below (REGIONS);
  bool missed = !all_active (w);

  w->truth[r] = ++w->nr_writes;
  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++) {
    const struct device *d = &w->ms.device[dev];
    struct content *c;

    if (d->state != DEVICE_ACTIVE &&
        !(d->state == DEVICE_REBUILDING && r < d->cursor))
      continue;
    c = &w->content[disk_of (w, d)];
    c->region[r] = w->truth[r];
    if (missed && d->state == DEVICE_ACTIVE)
      c->missed |= 1u << r;
  }
}

/* Copy the next region, move the cursor.  False: crashed. */
static bool
rebuild (struct world *w, unsigned dev)
{
  const struct device *d = &w->ms.device[dev];
  struct content *c = &w->content[disk_of (w, d)];
  unsigned r = d->cursor;

  c->region[r] = w->truth[r];
  membership_set_cursor (&w->ms, dev, true, r + 1);
  for (unsigned i = 0; i < SB_MAX_DEVICES; i++) {
    const struct device *t = &w->ms.device[i];
    struct superblock sb;

    if (t->state != DEVICE_ACTIVE && t->state != DEVICE_REBUILDING &&
        t->state != DEVICE_SPARE)
      continue;
    if (below (w->crash * 4) == 0)
      return false;
    members_superblock (&sb, w->k, w->m);
    members_write (&w->disk[disk_of (w, t)], &w->ms, i, &sb, true, 4);
  }
  return true;
}

/* A target that is not complete, or -1. */
static int
find_target (const struct world *w)
{
  for (unsigned i = 0; i < 4; i++) {
    int dev = world_find (w, DEVICE_REBUILDING);

    if (dev != -1 && w->ms.device[dev].cursor < REGIONS)
      return dev;
  }
  return -1;
}

static bool
slot_is_active (const struct device *device, unsigned slot)
{
  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++)
    if (device[dev].state == DEVICE_ACTIVE && device[dev].slot == slot)
      return true;
  return false;
}

/* What was taken out or replaced does not return by itself. */
static void
check_out (struct world *w)
{
  const struct device *next = w->ms.next_device;

  w->at = "at the open";
  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++) {
    if (next[dev].state != DEVICE_ACTIVE &&
        next[dev].state != DEVICE_REBUILDING)
      continue;
    check (!(w->out >> disk_of (w, &next[dev]) & 1));
    if (next[dev].state == DEVICE_REBUILDING &&
        w->ms.device[dev].state != DEVICE_REBUILDING)
      check (!slot_is_active (next, next[dev].slot));
  }
}

void
world_session (struct world *w, unsigned mask)
{
  size_t nr;
  struct disk before[MEMBERS_MAX];
  struct content contents[MEMBERS_MAX];

  if (!world_opens (w, mask, &nr)) {
    walked.refused++;
    return;
  }
  walked.opens++;
  memcpy (before, w->disk, sizeof before);
  memcpy (contents, w->content, sizeof contents);
  w->online = mask;
  w->leaving = 0;
  w->crash = w->brief ? 2 + below (3) : 4 + below (12);
  w->fail = below (2) ? 1000 : 10;
  membership_start (&w->ms, &w->decision, w->found, nr, ++w->session);
  w->k = w->ms.cur.self.k;
  w->widening = w->ms.cur.self.widening;
  w->m = w->ms.cur.self.m;
  w->first = w->ms.cur.self.first;
  membership_begin_open (&w->ms, w->found, nr, below (4) > 0);
  check_out (w);
  if (!drive (w))
    return;
  memcpy (w->old_disk, before, sizeof before);
  memcpy (w->old_content, contents, sizeof contents);
  for (unsigned step = below (w->brief ? 3 : 30); step > 0; step--) {
    int dev = find_target (w);

    settle (w);
    write_region (w);
    if (dev != -1 && !rebuild (w, dev))
      return;
    if (below (3) == 0)
      world_begin_something (w);
    else
      world_begin_next (w);
    if (!drive (w))
      return;
  }
}

/* These go on by force; false if they can't. */
static bool
go_on (struct world *w, unsigned mask, struct ballot *last)
{
  size_t nr = members_find (w->disk, mask, w->found);

  membership_open (w->found, nr, DEGRADED_FORCE, &w->decision);
  if (!w->decision.open)
    return false;
  w->online = mask;
  w->leaving = 0;
  w->crash = w->fail = 1u << 31;
  membership_start (&w->ms, &w->decision, w->found, nr, ++w->session);
  w->added = added_by (&w->ms.shape);  /* perhaps of before it has grown */
  membership_begin_open (&w->ms, w->found, nr, false);
  if (!drive (w))
    return false;
  *last = w->ms.cur.self.ballot;
  return true;
}

/* A record names only the last ones of those that it has seen: the older side
 * must not be older than that.
 */
#define FORK_EPOCHS 8u

void
world_fork (struct world *w)
{
  const unsigned used = world_used (w), side = below (1u << w->nr) & used;
  struct ballot a, b;
  size_t nr;

  if (!go_on (w, side, &a) || !go_on (w, used & ~side, &b) ||
      MAX (a.epoch, b.epoch) - MIN (a.epoch, b.epoch) > FORK_EPOCHS)
    return;
  w->at = "two ways";
  nr = members_find (w->disk, used, w->found);
  membership_open (w->found, nr, DEGRADED_FORCE, &w->decision);
  check (!w->decision.open);
  walked.forked++;
}
