/* gpuraid: random lives of arrays, by array/membership alone: sessions
 * open some of the members, write, lose and rebuild members, and crash
 * anywhere, in the middle of a superblock copy too.  Whatever opens
 * later must have every acknowledged write on every member that counts
 * as current, below every cursor that counts, and everywhere on a member
 * that the bitmap covers but for what it says was missed.
 *
 *   test-membership-walk [SEED|random [WALKS]]
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "common/bits.h"
#include "raidmap/superblock.h"
#include "tests/membership-members.h"
#include "tests/seed.h"

#define REGIONS 8u              /* a cursor counts them, for bytes */
#define GARBAGE 0u

#ifdef __SANITIZE_THREAD__      /* there is one thread, and it is slow */
#define NR_WALKS 20
#else
#define NR_WALKS 400
#endif

static unsigned first_seed, nr_walks = NR_WALKS, seed;

/* What is on a disk apart from the superblock. */
struct content {
  unsigned region[REGIONS];     /* the write that it holds */
  unsigned missed;              /* its dirty bitmap */
};

struct world {
  unsigned k, m, nr;            /* nr disks */
  struct disk disk[MEMBERS_MAX];
  struct content content[MEMBERS_MAX];
  unsigned truth[REGIONS];      /* acknowledged */
  unsigned nr_writes, nr_uuids;
  uint64_t session;

  /* One session. */
  struct membership ms;
  unsigned online;              /* disks */
  unsigned crash, fail;         /* one in so many steps */

  /* An image of each disk of before the last writable open. */
  struct disk old_disk[MEMBERS_MAX];
  struct content old_content[MEMBERS_MAX];
};

static struct found found[MEMBERS_MAX];
static struct membership_decision decision;
static unsigned nr_opens, nr_refused, nr_in_force, nr_crashes, nr_covered,
  nr_cursors, nr_replaced, nr_images;

static uint64_t random_state;
static const char *at = "start";        /* for messages */

static unsigned
below (unsigned n)
{
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (random_state >> 33) % n;
}

#define check(what)                                                     \
  do {                                                                  \
    if (!(what))                                                        \
      fail_msg ("seed %u: %s: %s (%s)", seed, at, #what, decision.why); \
  } while (0)

static unsigned
used_disks (const struct world *w)
{
  unsigned mask = 0;

  for (unsigned i = 0; i < w->nr; i++)
    for (unsigned c = 0; c < SB_NR_COPIES; c++)
      if (w->disk[i].result[c] == SB_OK)
        mask |= 1u << i;
  return mask;
}

static unsigned
disk_of (const struct world *w, const struct device *d)
{
  for (unsigned i = 0; i < w->nr; i++)
    if (memcmp (&w->disk[i].sb[0].member_uuid, &d->uuid, sizeof d->uuid) == 0)
      return i;
  return MEMBERS_MAX;
}

/* ---- what must be true ---------------------------------------------- */

static void
check_regions (const struct world *w, const struct content *c,
               unsigned from, unsigned to, unsigned but)
{
  for (unsigned r = from; r < to; r++)
    if (!(but >> r & 1))
      check (c->region[r] == w->truth[r]);
}

/* What opened must hold all that was acknowledged. */
static void
check_open (const struct world *w, size_t nr, bool image)
{
  unsigned missed = 0;

  for (size_t i = 0; i < nr; i++)
    if (found[i].state == FOUND_CURRENT)
      missed |= w->content[found[i].name[1] - '0'].missed;
  for (size_t i = 0; i < nr; i++) {
    const struct content *c = &w->content[found[i].name[1] - '0'];

    at = "current";
    if (found[i].state == FOUND_CURRENT)
      check_regions (w, c, 0, REGIONS, 0);
    at = "below the cursor";
    if (found[i].state == FOUND_TARGET) {
      check_regions (w, c, 0, found[i].cursor, 0);
      nr_cursors += found[i].cursor > 0;
    }
    at = image ? "covered, images" : "covered";
    if (found[i].covered) {
      check_regions (w, c, found[i].cursor, REGIONS, missed);
      nr_covered++;
    }
  }
}

static bool
decide (const struct world *w, unsigned mask, size_t *nr)
{
  *nr = members_find (w->disk, mask, found);
  membership_open (found, *nr, DEGRADED_ALLOW, &decision);
  check (decision.open == (decision.why[0] == '\0'));
  check (strstr (decision.notice, "error") == NULL);
  check (strstr (decision.why, "once without the other") == NULL);
  if (decision.open)
    check_open (w, *nr, false);
  return decision.open;
}

/* After a crash: all together open, and so do many others. */
static void
check_world (const struct world *w)
{
  unsigned used = used_disks (w);
  size_t nr;

  check (decide (w, used, &nr));
  for (unsigned i = 0; i < 3; i++)
    decide (w, (1 + below ((1u << w->nr) - 1)) & used, &nr);
}

/* With an old image of one member, all together know it. */
static void
check_image (struct world *w, unsigned i)
{
  const struct disk disk = w->disk[i];
  const struct content content = w->content[i];
  size_t nr;

  w->disk[i] = w->old_disk[i];
  w->content[i] = w->old_content[i];
  nr = members_find (w->disk, used_disks (w), found);
  membership_open (found, nr, DEGRADED_ALLOW, &decision);
  if (decision.open)
    check_open (w, nr, true);
  w->disk[i] = disk;
  w->content[i] = content;
  nr_images++;
}

/* ---- a session -------------------------------------------------------- */

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
      nr_crashes++;
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
  nr_in_force++;
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

static unsigned
missed_now (const struct world *w)
{
  unsigned missed = 0;

  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++)
    if (w->ms.device[dev].state == DEVICE_ACTIVE)
      missed |= w->content[disk_of (w, &w->ms.device[dev])].missed;
  return missed;
}

/* A record came into force. */
static void
settle (struct world *w)
{
  unsigned missed = missed_now (w);

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

static int
find_state (const struct world *w, enum device_state state)
{
  unsigned start = below (SB_MAX_DEVICES);

  for (unsigned i = 0; i < SB_MAX_DEVICES; i++) {
    unsigned dev = (start + i) % SB_MAX_DEVICES;

    if (w->ms.device[dev].state == state)
      return dev;
  }
  return -1;
}

/* Copy the next region, move the cursor.  False: crashed. */
static bool
rebuild (struct world *w, unsigned dev)
{
  const struct device *d = &w->ms.device[dev];
  struct content *c = &w->content[disk_of (w, d)];
  unsigned r = d->cursor;

  c->region[r] = w->truth[r];
  membership_set_cursor (&w->ms, dev, r + 1);
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

/* A disk that nobody needs becomes a new one. */
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
begin_new (struct world *w)
{
  char why[MEMBERSHIP_TEXT_LEN] = "";
  unsigned i, dev;
  uint8_t slot = below (4) ? below (w->k + w->m) : SLOT_NONE;

  if (target_of (w, slot))
    return;             /* one at a time */
  if (!new_disk (w, &i))
    return;
  check (membership_begin_target (&w->ms, &w->disk[i].sb[0].member_uuid,
                                  slot, false, &dev, why) == 0);
  w->online |= 1u << i;
}

/* One that is out comes back. */
static void
begin_readd (struct world *w)
{
  char why[MEMBERSHIP_TEXT_LEN] = "";
  int dev = find_state (w, below (2) ? DEVICE_MISSING : DEVICE_FAILED);
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
  if (i >= w->nr || members_find (w->disk, 1u << i, found) == 0 ||
      found_newest (found) == NULL)
    return;
  members_superblock (&own, w->k, w->m);
  if (membership_meet (&w->ms, found, &own, why) == -1)
    fail_msg ("seed %u: %s", seed, why);
  check (found->dev == dev);
  if (found->covered) {
    check_regions (w, &w->content[i], 0, REGIONS,
                   missed_now (w));
    nr_covered++;
  }
  check (membership_begin_target (&w->ms, &w->disk[i].sb[0].member_uuid,
                                  d->slot, found->covered, &place, why) == 0);
  check ((int) place == dev);
  w->online |= 1u << i;
}

/* Begin some change, or none. */
static void
begin_something (struct world *w)
{
  char why[MEMBERSHIP_TEXT_LEN] = "";
  struct device_set devs = {{ 0, 0 }};
  uint8_t slot;
  bool free;
  int dev;

  switch (below (8)) {
  case 0:
    dev = find_state (w, DEVICE_ACTIVE);
    device_set_add (&devs, dev);
    if (below (4) == 0) {
      w->online &= ~(1u << disk_of (w, &w->ms.device[dev]));
      membership_fail (&w->ms, &devs);
    }
    else
      membership_begin_remove (&w->ms, &devs, DEVICE_FAILED, why);
    break;
  case 1:
    dev = find_state (w, DEVICE_REBUILDING);
    if (dev == -1)
      break;
    device_set_add (&devs, dev);
    membership_fail (&w->ms, &devs);
    break;
  case 2: case 3:
    begin_new (w);
    break;
  case 4:
    begin_readd (w);
    break;
  case 5:
    dev = find_state (w, DEVICE_SPARE);
    slot = below (w->k + w->m);
    free = !target_of (w, slot);
    if (dev != -1)
      check (free == (membership_begin_use_spare (&w->ms, dev, slot,
                                                  why) == 0));
    break;
  default:
    break;
  }
}

/* Rebuilt targets become active; of two in a slot one goes. */
static void
begin_next (struct world *w)
{
  char why[MEMBERSHIP_TEXT_LEN] = "";
  struct device_set devs = {{ 0, 0 }};

  for (unsigned a = 0; a < SB_MAX_DEVICES; a++)
    for (unsigned b = 0; b < a; b++)
      if (w->ms.device[a].state == DEVICE_ACTIVE &&
          w->ms.device[b].state == DEVICE_ACTIVE &&
          w->ms.device[a].slot == w->ms.device[b].slot) {
        device_set_add (&devs, below (2) ? a : b);
        if (membership_begin_remove (&w->ms, &devs, DEVICE_FAILED, why) == 0)
          nr_replaced++;
        return;
      }
  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++)
    if (w->ms.device[dev].state == DEVICE_REBUILDING &&
        w->ms.device[dev].cursor == REGIONS) {
      check_regions (w, &w->content[disk_of (w, &w->ms.device[dev])], 0,
                     REGIONS, 0);
      /* Its bitmap must know what that of the others does, first. */
      w->content[disk_of (w, &w->ms.device[dev])].missed = missed_now (w);
      device_set_add (&devs, dev);
    }
  if (device_set_count (&devs) > 0)
    check (membership_begin_activate (&w->ms, &devs, why) == 0);
}

/* A target that is not complete, or -1. */
static int
find_target (const struct world *w)
{
  for (unsigned i = 0; i < 4; i++) {
    int dev = find_state (w, DEVICE_REBUILDING);

    if (dev != -1 && w->ms.device[dev].cursor < REGIONS)
      return dev;
  }
  return -1;
}

static void
session (struct world *w, unsigned mask)
{
  size_t nr;
  struct disk before[MEMBERS_MAX];
  struct content contents[MEMBERS_MAX];

  if (!decide (w, mask, &nr)) {
    nr_refused++;
    return;
  }
  nr_opens++;
  memcpy (before, w->disk, sizeof before);
  memcpy (contents, w->content, sizeof contents);
  w->online = mask;
  w->crash = 4 + below (12);
  w->fail = below (2) ? 1000 : 10;
  membership_start (&w->ms, &decision, found, nr, ++w->session);
  membership_begin_open (&w->ms, found, nr, below (4) > 0);
  if (!drive (w))
    return;
  memcpy (w->old_disk, before, sizeof before);
  memcpy (w->old_content, contents, sizeof contents);
  for (unsigned step = below (30); step > 0; step--) {
    int dev = find_target (w);

    settle (w);
    write_region (w);
    if (dev != -1 && !rebuild (w, dev))
      return;
    if (below (3) == 0)
      begin_something (w);
    else
      begin_next (w);
    if (!drive (w))
      return;
  }
}

static void
walk (unsigned s)
{
  static const struct { unsigned k, m; } sizes[] = {
    { 1, 1 }, { 1, 2 }, { 2, 1 }, { 2, 2 }, { 3, 1 }, { 3, 2 }, { 4, 2 },
    { 2, 3 }, { 1, 3 },
  };
  static struct world w;
  unsigned size;

  seed = random_state = s;
  for (unsigned i = 0; i < 4; i++)
    size = below (ARRAY_LEN (sizes));
  memset (&w, 0, sizeof w);
  w.k = sizes[size].k;
  w.m = sizes[size].m;
  w.nr = w.k + w.m + below (4);
  w.nr_uuids = w.nr;
  members_create (w.disk, w.nr, w.k, w.m, ++w.session);
  for (unsigned round = 0; round < 40; round++) {
    unsigned used = used_disks (&w), mask = used;

    for (unsigned i = 0; i < w.nr; i++)
      if (below (5) == 0)
        mask &= ~(1u << i);
    memset (&w.ms, 0, sizeof w.ms);
    session (&w, mask);
    check_world (&w);
    for (unsigned i = 0; i < w.nr; i++) {
      int dev = membership_find (w.ms.device, &w.disk[i].sb[0].member_uuid);

      if (w.ms.in_force && w.ms.session == w.session && dev != -1 &&
          device_set_has (&w.ms.cur.self.active, dev) &&
          device_set_count (&w.ms.cur.self.active) > 1)
        check_image (&w, i);
    }
  }
}

static void
test_walks (void **state)
{
  for (unsigned i = 0; i < nr_walks; i++)
    walk (first_seed + i);
  print_message ("%u opens, %u refused, %u records in force, %u crashes, "
                 "%u covered, %u cursors, %u replaced, %u images\n", nr_opens,
                 nr_refused, nr_in_force, nr_crashes, nr_covered, nr_cursors,
                 nr_replaced, nr_images);
  if (nr_walks >= 20)
    assert_true (nr_covered && nr_cursors && nr_replaced && nr_images);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_walks),
  };

  first_seed = test_seed (argc > 1 ? argv[1] : NULL);
  if (argc > 2)
    nr_walks = strtoul (argv[2], NULL, 10);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
