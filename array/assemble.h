/* gpuraid: from members to an array, before anything runs.
 *
 * Reads the superblock copies and dirty bitmaps of the members with
 * synchronous calls, has array/membership decide, checks the geometry
 * keys that were given.  Writes nothing.  Runs before the fork.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ASSEMBLE_H
#define GPURAID_ASSEMBLE_H

#include <stdbool.h>
#include <stdint.h>

#include "array/config.h"
#include "array/membership.h"
#include "member/member.h"
#include "raidmap/bitmap.h"
#include "raidmap/superblock.h"

/* What a present member is to the array. */
enum member_role {
  MEMBER_CURRENT,               /* holds current data */
  MEMBER_TARGET,                /* a rebuild onto it was running, or it is
                                 * stale and may be brought up to date */
  MEMBER_FAILED,                /* stays out until readd or replace; also a
                                 * stale one under degraded=force */
  MEMBER_UNLISTED,              /* the record no longer lists it: left alone */
  MEMBER_IS_SPARE,
};

struct assembled_member {
  struct member *member;        /* owned by the assembly until array_new */
  enum member_role role;
  unsigned dev;                 /* place in sb.device[]; SB_MAX_DEVICES if
                                 * unlisted */
  bool by_bitmap;               /* MEMBER_TARGET: only dirty regions and what
                                 * lies above the cursor are copied */
  uint64_t cursor;              /* MEMBER_TARGET: bytes from data_off */
  uint8_t *page_place;          /* for each bitmap page, which of its two
                                 * places holds the newest good copy (0, 1);
                                 * nr_pages bytes; owned.  0 where none is
                                 * good */
};

struct assembly {
  struct superblock sb;         /* the winner's record and devices, with the
                                 * geometry; member_uuid and copy unset */
  struct membership membership; /* ready for the first change */
  struct assembled_member *member;
  struct found *found;          /* one a member, in the same order, as
                                 * membership_open filled them; owned */
  unsigned nr_members;
  bool readonly;                /* some current member is open read-only */
  bool force;                   /* degraded=force was given */

  /* The union over current members; a page that is bad in both places on
   * one counts as all set.  bitmap_nr_pages (&sb.l) pages; counter is
   * the greatest found.  Owned.
   */
  struct bitmap_page *page;
  bool unclean;                 /* some open bit is set */
};

/* members: opened (array/assemble takes them over, closing them on
 * failure), nr of them; config says policy and geometry.  nr_absent:
 * how many listed paths could not be opened and count as missing; for
 * messages.  0, or -1 reported in one line.  On success, what a person
 * should know (missing, stale members) was said in one notice.  A member
 * that has no readable block, or is too short to be whole, counts as
 * missing too.
 */
extern int assemble (const struct config *c, struct member **members,
                     unsigned nr, unsigned nr_absent, struct assembly *a);
extern void assembly_free (struct assembly *a);

/* Open every member of the configuration: read-write, or all read-only
 * where one of them cannot be written.  ENOENT, ENXIO and EIO count as
 * missing; assemble says so.  Two names of one store are refused.
 * members: room for config->nr_members.  0, or -1 reported, nothing
 * left open.
 */
extern int open_members (const struct config *c, struct member **members,
                         unsigned *nr, unsigned *nr_absent);

#endif
