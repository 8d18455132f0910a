/* gpuraid: tests: the disks of an array that lives, and what must be true of
 * them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <string.h>

#include "tests/array/membership/membership-world.h"

struct walked walked;

static uint64_t random_state;

void
below_seed (uint64_t seed)
{
  random_state = seed;
}

unsigned
below (unsigned n)
{
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (random_state >> 33) % n;
}

unsigned
world_used (const struct world *w)
{
  unsigned mask = 0;

  for (unsigned i = 0; i < w->nr; i++)
    for (unsigned c = 0; c < SB_NR_COPIES; c++)
      if (w->disk[i].result[c] == SB_OK)
        mask |= 1u << i;
  return mask;
}

unsigned
disk_of (const struct world *w, const struct device *d)
{
  for (unsigned i = 0; i < w->nr; i++)
    if (memcmp (&w->disk[i].sb[0].member_uuid, &d->uuid, sizeof d->uuid) == 0)
      return i;
  return MEMBERS_MAX;
}

int
world_find (const struct world *w, enum device_state state)
{
  unsigned start = below (SB_MAX_DEVICES);

  for (unsigned i = 0; i < SB_MAX_DEVICES; i++) {
    unsigned dev = (start + i) % SB_MAX_DEVICES;

    if (w->ms.device[dev].state == state)
      return dev;
  }
  return -1;
}

unsigned
world_missed (const struct world *w)
{
  unsigned missed = 0;

  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++)
    if (w->ms.device[dev].state == DEVICE_ACTIVE)
      missed |= w->content[disk_of (w, &w->ms.device[dev])].missed;
  return missed;
}

/* ---- what must be true ---------------------------------------------- */

void
world_check_regions (const struct world *w, const struct content *c,
                     unsigned from, unsigned to, unsigned but)
{
  for (unsigned r = from; r < to; r++)
    if (!(but >> r & 1))
      check (c->region[r] == w->truth[r]);
}

/* What opened must hold all that was acknowledged. */
static void
check_open (struct world *w, size_t nr, bool image)
{
  struct sb_shape e;
  unsigned missed = 0;

  sb_get_shape (&w->decision.sb, &e);
  w->at = "extent";
  check (image || added_by (&e) >= w->added);
  for (size_t i = 0; i < nr; i++)
    if (w->found[i].state == FOUND_CURRENT || w->found[i].covered)
      check (w->content[w->found[i].name[1] - '0'].prepared >= added_by (&e));
  for (size_t i = 0; i < nr; i++)
    if (w->found[i].state == FOUND_CURRENT)
      missed |= w->content[w->found[i].name[1] - '0'].missed;
  for (size_t i = 0; i < nr; i++) {
    const struct content *c = &w->content[w->found[i].name[1] - '0'];

    w->at = "current";
    if (w->found[i].state == FOUND_CURRENT)
      world_check_regions (w, c, 0, REGIONS, 0);
    w->at = "below the cursor";
    if (w->found[i].state == FOUND_TARGET) {
      world_check_regions (w, c, 0, w->found[i].cursor, 0);
      walked.cursors += w->found[i].cursor > 0;
    }
    w->at = image ? "covered, images" : "covered";
    if (w->found[i].covered) {
      world_check_regions (w, c, w->found[i].cursor, REGIONS, missed);
      walked.covered++;
    }
  }
}

/* Of two members of a slot every session reads the same one. */
static void
check_two (struct world *w)
{
  const struct membership_decision *d = &w->decision;

  w->at = "two of a slot";
  for (unsigned slot = 0; slot < MAX_SLOTS; slot++) {
    unsigned stays = w->stays[slot], i;

    if (d->other[slot] == -1)
      continue;
    check (!d->sb.device[w->found[d->active[slot]].dev].replaced);
    check (d->sb.device[w->found[d->other[slot]].dev].replaced);
    i = w->found[d->active[slot]].name[1] - '0';
    if (stays < MEMBERS_MAX)
      check (i == stays);
    walked.two += stays < MEMBERS_MAX;
  }
}

bool
world_opens (struct world *w, unsigned mask, size_t *nr)
{
  *nr = members_find (w->disk, mask, w->found);
  membership_open (w->found, *nr, DEGRADED_ALLOW, &w->decision);
  check (w->decision.open == (w->decision.why[0] == '\0'));
  check (strstr (w->decision.notice, "error") == NULL);
  check (strstr (w->decision.why, "once without the other") == NULL);
  if (w->decision.open) {
    check (w->decision.nr_slots >= w->decision.sb.g.k);
    check_open (w, *nr, false);
    check_two (w);
  }
  return w->decision.open;
}

void
world_check (struct world *w)
{
  unsigned used = world_used (w);
  size_t nr;

  check (world_opens (w, used, &nr));
  for (unsigned mask = 1; w->brief && mask < used; mask++)
    if ((mask & ~used) == 0)
      world_opens (w, mask, &nr);
  for (unsigned i = 0; i < 3; i++)
    world_opens (w, (1 + below ((1u << w->nr) - 1)) & used, &nr);
}

void
world_check_rot (struct world *w, unsigned i)
{
  enum sb_result *result = w->disk[i].result;
  size_t nr;

  for (enum sb_copy c = 0; c < SB_NR_COPIES; c++)
    if (result[c] != SB_OK)
      return;
  for (enum sb_copy c = 0; c < SB_NR_COPIES; c++) {
    result[c] = SB_CORRUPT;
    w->at = "one copy has rotted";
    check (world_opens (w, world_used (w), &nr));
    result[c] = SB_OK;
    walked.rotted++;
  }
}

void
world_check_image (struct world *w, unsigned i)
{
  const struct disk disk = w->disk[i];
  const struct content content = w->content[i];
  size_t nr;

  w->disk[i] = w->old_disk[i];
  w->content[i] = w->old_content[i];
  nr = members_find (w->disk, world_used (w), w->found);
  membership_open (w->found, nr, DEGRADED_ALLOW, &w->decision);
  if (w->decision.open)
    check_open (w, nr, true);
  w->disk[i] = disk;
  w->content[i] = content;
  walked.images++;
}

void
world_check_twice (struct world *w)
{
  size_t nr = members_find (w->disk, world_used (w), w->found);

  w->at = "twice";
  w->found[nr] = w->found[below (nr)];
  w->found[nr].name = "again";
  membership_open (w->found, nr + 1, DEGRADED_FORCE, &w->decision);
  check (!w->decision.open);
}
