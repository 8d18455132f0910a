/* gpuraid: members for the tests of membership: their superblock copies
 * in memory, and what a writer does to them step by step.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/plan/code.h"
#include "raidmap/journal.h"
#include "tests/array/membership/membership-members.h"

void
members_superblock (struct superblock *sb, unsigned k, unsigned m)
{
  uint64_t need;

  memset (sb, 0, sizeof *sb);
  sb->version = SB_VERSION;
  sb->array_uuid.b[0] = 0xaa;
  sb->g.k = k;
  sb->g.m = m;
  sb->g.chunk = 65536;
  sb->w = 8;
  sb->consistency = CONSISTENCY_JOURNAL;
  sb->matrix_crc = code_parity_crc (CODE_RS, 8, k, m);
  if (layout_fit (&sb->g, 4u << 20, 0, journal_min_ring_len (&sb->g), 0,
                  &sb->l, &need) == -1)
    abort ();
}

uuid_bytes
members_uuid (unsigned i)
{
  uuid_bytes uuid = { .b = { 0x11, i + 1 } };

  return uuid;
}

void
members_create (struct disk *disks, unsigned nr, unsigned k, unsigned m,
                uint64_t session)
{
  struct superblock sb;
  uuid_bytes uuid[MAX_SLOTS];

  for (unsigned i = 0; i < k + m; i++)
    uuid[i] = members_uuid (i);
  members_superblock (&sb, k, m);
  membership_create (&sb, uuid, session);
  for (unsigned i = 0; i < nr; i++) {
    snprintf (disks[i].name, sizeof disks[i].name, "d%u", i);
    for (unsigned c = 0; c < SB_NR_COPIES; c++) {
      disks[i].result[c] = i < k + m ? SB_OK : SB_BLANK;
      disks[i].sb[c] = sb;
      disks[i].sb[c].member_uuid = members_uuid (i);
      disks[i].sb[c].copy = c;
    }
  }
}

size_t
members_find (const struct disk *disks, unsigned mask, struct found *found)
{
  size_t nr = 0;

  for (unsigned i = 0; i < MEMBERS_MAX; i++)
    if (mask >> i & 1) {
      memset (&found[nr], 0, sizeof found[nr]);
      found[nr].name = disks[i].name;
      memcpy (found[nr].result, disks[i].result, sizeof disks[i].result);
      memcpy (found[nr].sb, disks[i].sb, sizeof disks[i].sb);
      nr++;
    }
  return nr;
}

void
members_write (struct disk *disk, const struct membership *ms, unsigned dev,
               const struct superblock *identity, bool accept, unsigned step)
{
  struct found f = { .name = disk->name };
  enum sb_copy first, second;
  struct superblock sb = *identity;

  memcpy (f.result, disk->result, sizeof f.result);
  memcpy (f.sb, disk->sb, sizeof f.sb);
  first = found_first_copy (&f, accept);
  second = accept ? SB_A2 + SB_B2 - first : SB_A1 + SB_B1 - first;
  membership_fill (ms, dev, &sb);
  if (superblock_check (&sb) != NULL) {
    fprintf (stderr, "%s: %s\n", disk->name, superblock_check (&sb));
    abort ();
  }
  if (step >= 1)
    disk->result[first] = step == 1 ? SB_CORRUPT : SB_OK;
  if (step >= 2)
    disk->sb[first] = sb;
  if (step >= 3)
    disk->result[second] = step == 3 ? SB_CORRUPT : SB_OK;
  if (step >= 4)
    disk->sb[second] = sb;
}
