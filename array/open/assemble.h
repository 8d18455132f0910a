/* gpuraid: make an array from members, before anything runs.
 *
 * Reads the superblock copies and dirty bitmaps of the members with
 * synchronous calls, calls array/membership to decide, and checks the given
 * geometry keys.  Writes nothing.  Runs before the fork.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_OPEN_ASSEMBLE_H
#define GPURAID_OPEN_ASSEMBLE_H

#include "array/config/config.h"
#include "array/open/assembly.h"

/* Of the members of a configuration that were not opened. */
struct absent {
  const char *unwritable[CONFIG_MAX_MEMBERS];   /* why config->member[i] can't
                                                 * be written; NULL: it can */
  bool left_out;                /* these are not opened, as the others are
                                 * enough; else all are open read-only */
};

/* members: nr open members (taken over, and closed on failure); config has
 * policy and geometry.  absent: as filled by open_members, for messages; NULL:
 * all are open.  0, or -1 reported in one line.  On
 * success, missing and stale members were reported in one notice.  A member
 * that has no readable block, is too short to be whole, has no sound
 * superblock, or is of another array than most of the others, counts as
 * missing too.
 */
extern int assemble (const struct config *c, struct member **members,
                     unsigned nr, const struct absent *absent,
                     struct assembly *a);
extern void assembly_free (struct assembly *a);

/* Open every member of the configuration.  If some can't be written: all but
 * these where that is enough (array/open/enough.h), else all read-only.
 * ENOENT, ENXIO, EIO, and a store that is too small, count as missing; assemble
 * reports them.  Two names of one store are refused.  members has room for
 * config->nr_members.  0, or -1 reported, nothing left open.
 */
extern int open_members (const struct config *c, struct member **members,
                         unsigned *nr, struct absent *absent);

#endif
