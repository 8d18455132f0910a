/* gpuraid: tests: changes that a session begins: members leave, new ones and
 * old ones come.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <string.h>

#include "array/plan/code.h"
#include "common/bits.h"
#include "tests/array/membership/membership-world.h"

/* An unused disk becomes a new member. */
static bool
new_disk (struct world *w, unsigned *disk)
{
  for (unsigned i = 0; i < w->nr; i++) {
    struct disk *d = &w->disk[i];

    if (membership_find (w->ms.device, &d->sb[0].member_uuid) != -1)
      continue;
    for (unsigned c = 0; c < SB_NR_COPIES; c++) {
      d->result[c] = SB_BLANK;
      d->sb[c].member_uuid = members_uuid (++w->nr_uuids);
      d->sb[c].member_uuid.b[3] = w->nr_uuids >> 8;
      d->sb[c].member_uuid = d->sb[0].member_uuid;
    }
    memset (&w->content[i], 0, sizeof w->content[i]);
    w->out &= ~(1u << i);
    *disk = i;
    return true;
  }
  return false;
}

static bool
target_of (const struct world *w, uint8_t slot)
{
  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++)
    if (w->ms.device[dev].state == DEVICE_REBUILDING &&
        w->ms.device[dev].slot == slot)
      return true;
  return false;
}

static void
begin_new (struct world *w, uint8_t slot)
{
  char why[MEMBERSHIP_TEXT_LEN] = "";
  unsigned i, dev;

  if (target_of (w, slot))
    return;             /* one at a time */
  if (!new_disk (w, &i))
    return;
  check (membership_begin_target (&w->ms, &w->disk[i].sb[0].member_uuid,
                                  slot, false, &dev, why) == 0);
  w->online |= 1u << i;
}

/* A member that is out comes back. */
static void
begin_readd (struct world *w)
{
  char why[MEMBERSHIP_TEXT_LEN] = "";
  int dev = world_find (w, below (2) ? DEVICE_MISSING : DEVICE_FAILED);
  struct superblock own;
  const struct device *d;
  unsigned i, place;

  if (dev == -1)
    return;
  d = &w->ms.device[dev];
  i = disk_of (w, d);
  for (unsigned j = 0; j < SB_MAX_DEVICES; j++)
    if (d->slot != SLOT_NONE && j != (unsigned) dev &&
        w->ms.device[j].slot == d->slot &&
        (w->ms.device[j].state == DEVICE_ACTIVE ||
         w->ms.device[j].state == DEVICE_REBUILDING))
      return;           /* it was replaced */
  if (i >= w->nr || members_find (w->disk, 1u << i, w->found) == 0 ||
      found_newest (w->found) == NULL)
    return;
  members_superblock (&own, w->k, w->m);
  if (membership_meet (&w->ms, w->found, &own, why) == -1)
    fail_msg ("seed %u: %s", w->seed, why);
  check (w->found->dev == dev);
  if (w->found->covered) {
    world_check_regions (w, &w->content[i], 0, REGIONS,
                         world_missed (w));
    walked.covered++;
  }
  check (membership_begin_target (&w->ms, &w->disk[i].sb[0].member_uuid,
                                  d->slot, w->found->covered, &place,
                                  why) == 0);
  check ((int) place == dev);
  w->online |= 1u << i;
  w->out &= ~(1u << i);
}

/* Every slot is active, and nothing is rebuilt. */
static bool
is_whole (const struct world *w)
{
  uint64_t slots = 0;

  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++) {
    if (w->ms.device[dev].state == DEVICE_REBUILDING)
      return false;
    if (w->ms.device[dev].state == DEVICE_ACTIVE)
      slots |= BIT (w->ms.device[dev].slot);
  }
  return slots == LOW_BITS (w->k + w->m);
}

static bool
is_regular (const struct world *w)
{
  return is_whole (w) && !w->ms.shape.widening;
}

/* What is new is prepared first, also if it is refused then. */
static void
begin_grow (struct world *w)
{
  char why[MEMBERSHIP_TEXT_LEN] = "";
  struct sb_shape e = w->ms.shape;
  const uint64_t chunk = 65536;
  bool grows;

  if (e.nr_grown == LAYOUT_MAX_GROWN)
    return;
  e.grown[e.nr_grown++] = e.data_len;
  e.data_len += (1 + below (5)) * chunk;
  e.size = e.data_len * w->k;
  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++)
    if (w->ms.device[dev].state == DEVICE_ACTIVE && is_regular (w))
      w->content[disk_of (w, &w->ms.device[dev])].prepared = added_by (&e);
  grows = membership_begin_grow (&w->ms, &e, why) == 0;
  check (grows == is_regular (w));
  walked.grown += grows;
  walked.not_grown += !grows;
}

/* Parity is added, or what was begun of that is taken back. */
static void
begin_parity (struct world *w)
{
  char why[MEMBERSHIP_TEXT_LEN] = "";
  const unsigned more = w->ms.shape.first ? w->m - 1 : w->m + 1;
  const uint32_t crc = code_parity_crc (CODE_RS, 8, w->k, more);
  unsigned i, dev;
  bool may;

  if (w->ms.shape.first) {
    check (membership_begin_cancel (&w->ms, crc, why) == 0);
    return;
  }
  if (w->m == PARITY_MAX || !new_disk (w, &i))
    return;
  may = is_regular (w) &&
    device_set_count (&w->ms.cur.self.active) == w->k + w->m;
  check (may == (membership_begin_parity (&w->ms,
                                          &w->disk[i].sb[0].member_uuid, crc,
                                          &dev, why) == 0));
  if (may)
    w->online |= 1u << i;
  walked.parity += may;
}

static uint32_t
data_crc (const struct world *w, unsigned k)
{
  return code_parity_crc (CODE_RS, 8, k, w->m);
}

/* It ends, or is taken back, as if no row had moved. */
static void
begin_no_wider (struct world *w)
{
  const struct sb_shape *shape = &w->ms.shape;
  char why[MEMBERSHIP_TEXT_LEN] = "";
  bool ends;

  if (below (2)) {
    if (membership_begin_widen_cancel (&w->ms, data_crc (w, w->k - 1),
                                       why) == -1)
      check (strstr (why, "fewer than") != NULL);
    return;
  }
  ends = is_whole (w);
  check (ends == (membership_end_widening (&w->ms, shape->data_len * w->k,
                                           why) == 0));
}

/* A spare becomes active in a data slot: what it lacks counts as zeroes.  If
 * there is none, it is added first.
 */
static void
begin_wider (struct world *w)
{
  char why[MEMBERSHIP_TEXT_LEN] = "";
  const int dev = world_find (w, DEVICE_SPARE);
  struct content *c;
  bool may;

  if (w->k == DATA_MAX)
    return;
  if (dev == -1) {
    begin_new (w, SLOT_NONE);
    return;
  }
  may = is_regular (w) &&
    device_set_count (&w->ms.cur.self.active) == w->k + w->m;
  if (may) {
    c = &w->content[disk_of (w, &w->ms.device[dev])];
    memcpy (c->region, w->truth, sizeof c->region);
    c->missed = world_missed (w);
    c->prepared = added_by (&w->ms.shape);
  }
  check (may == (membership_begin_widen (&w->ms, dev, data_crc (w, w->k + 1),
                                         why) == 0));
}

void
world_begin_something (struct world *w)
{
  char why[MEMBERSHIP_TEXT_LEN] = "";
  struct device_set devs = {{ 0, 0 }};
  uint8_t slot;
  bool free;
  int dev;

  switch (below (w->adds_data ? 14 : 9)) {
  case 0:
    dev = world_find (w, DEVICE_ACTIVE);
    device_set_add (&devs, dev);
    w->leaving = 1u << disk_of (w, &w->ms.device[dev]);
    if (below (4) == 0) {
      w->online &= ~w->leaving;
      membership_fail (&w->ms, &devs);
    }
    else if (membership_begin_remove (&w->ms, &devs, DEVICE_FAILED, why) == -1)
      w->leaving = 0;
    break;
  case 1:
    dev = world_find (w, DEVICE_REBUILDING);
    if (dev == -1)
      break;
    device_set_add (&devs, dev);
    membership_fail (&w->ms, &devs);
    break;
  case 2: case 3:
    begin_new (w, below (4) ? below (w->k + w->m) : SLOT_NONE);
    break;
  case 4:
    begin_readd (w);
    break;
  case 5:
    dev = world_find (w, DEVICE_SPARE);
    slot = below (w->k + w->m);
    free = !target_of (w, slot);
    if (dev != -1)
      check (free == (membership_begin_use_spare (&w->ms, dev, slot,
                                                  why) == 0));
    break;
  case 6:
    begin_grow (w);
    break;
  case 7:
    if (w->adds_parity)
      begin_parity (w);
    break;
  case 9: case 10: case 11: case 12:
    if (w->ms.shape.widening)
      begin_no_wider (w);
    else
      begin_wider (w);
    break;
  default:
    break;
  }
}

void
world_begin_next (struct world *w)
{
  char why[MEMBERSHIP_TEXT_LEN] = "";
  struct device_set devs = {{ 0, 0 }};

  for (unsigned a = 0; a < SB_MAX_DEVICES; a++)
    for (unsigned b = 0; b < a; b++)
      if (w->ms.device[a].state == DEVICE_ACTIVE &&
          w->ms.device[b].state == DEVICE_ACTIVE &&
          w->ms.device[a].slot == w->ms.device[b].slot) {
        const unsigned goes = w->ms.device[a].replaced ? a : b;

        check (w->ms.device[a].replaced != w->ms.device[b].replaced);
        device_set_add (&devs, goes);
        if (membership_begin_remove (&w->ms, &devs, DEVICE_FAILED, why) == 0)
          walked.replaced++;
        return;
      }
  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++)
    if (w->ms.device[dev].state == DEVICE_REBUILDING &&
        w->ms.device[dev].cursor == REGIONS) {
      world_check_regions (w, &w->content[disk_of (w, &w->ms.device[dev])], 0,
                           REGIONS, 0);
      /* Its bitmap must know what that of the others does, first. */
      w->content[disk_of (w, &w->ms.device[dev])].missed = world_missed (w);
      if (!w->ms.device[dev].by_bitmap)
        w->content[disk_of (w, &w->ms.device[dev])].prepared =
          added_by (&w->ms.shape);
      device_set_add (&devs, dev);
    }
  if (device_set_count (&devs) > 0)
    check (membership_begin_activate (&w->ms, &devs, why) == 0);
}
