/* gpuraid: members for the tests of membership: their superblock copies in
 * memory, and the steps of a writer.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEST_MEMBERSHIP_MEMBERS_H
#define GPURAID_TEST_MEMBERSHIP_MEMBERS_H

#include "array/membership/membership.h"

#define MEMBERS_MAX 16

/* One disk: four copies. */
struct disk {
  char name[16];
  enum sb_result result[SB_NR_COPIES];
  struct superblock sb[SB_NR_COPIES];
};

/* A superblock of a k + m array before it has members. */
extern void members_superblock (struct superblock *sb, unsigned k, unsigned m);
extern uuid_bytes members_uuid (unsigned i);

/* A new array on disks 0 .. k+m-1; the others up to nr are blank. */
extern void members_create (struct disk *disks, unsigned nr, unsigned k,
                            unsigned m, uint64_t session);

/* Those of a mask, as found. */
extern size_t members_find (const struct disk *disks, unsigned mask,
                            struct found *found);

/* Write the coming record of ms as dev to disk, up to step of
 *   0 nothing, 1 first copy torn, 2 first copy done,
 *   3 second copy torn, 4 both done.
 */
extern void members_write (struct disk *disk, const struct membership *ms,
                           unsigned dev, const struct superblock *identity,
                           bool accept, unsigned step);

#endif
