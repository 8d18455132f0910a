/* gpuraid: the members and metadata found, before anything runs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_OPEN_ASSEMBLY_H
#define GPURAID_OPEN_ASSEMBLY_H

#include <stdbool.h>
#include <stdint.h>

#include "array/array.h"
#include "array/membership/membership.h"
#include "array/open/left-out.h"
#include "member/member.h"
#include "raidmap/bitmap.h"
#include "raidmap/superblock.h"

/* The role of a present member in the array. */
enum member_role {
  MEMBER_CURRENT,               /* holds current data */
  MEMBER_TARGET,                /* a rebuild onto it was running, or it is
                                 * stale and may be brought up to date */
  MEMBER_FAILED,                /* stays out until readd or replace; also a
                                 * stale one under degraded=force */
  MEMBER_UNLISTED,              /* no longer listed by the record: left alone */
  MEMBER_IS_SPARE,
};

struct assembled_member {
  struct member *member;        /* owned by the assembly until array_new */
  enum member_role role;
  unsigned dev;                 /* place in sb.device[]; SB_MAX_DEVICES if
                                 * unlisted */
  bool by_bitmap;               /* MEMBER_TARGET: only dirty regions, and
                                 * data above the cursor, are copied */
  uint64_t cursor;              /* MEMBER_TARGET: bytes from data_off */
  uint8_t *page_place;          /* for each bitmap page, which of its two
                                 * places holds the newest good copy (0, 1; 0
                                 * if none is good); nr_pages bytes; owned */
};

struct assembly {
  struct superblock sb;         /* the winner's record and devices, with the
                                 * geometry; member_uuid and copy unset */
  struct membership membership; /* ready for the first change */
  struct assembled_member *member;
  struct found *found;          /* one per member, in the same order, as
                                 * filled by membership_open; owned */
  unsigned nr_members;
  bool readonly;                /* some current member is open read-only */
  char readonly_why[READONLY_WHY_LEN];  /* then: why, one line */
  struct left_out left_out;     /* the listed members that are not used */
  bool force;                   /* degraded=force was given */

  /* The union over current members.  A page with a place bad on one counts as
   * all set.  bitmap_nr_pages (&sb.l) pages; counter is the
   * greatest found.  Owned.
   */
  struct bitmap_page *page;
  bool unclean;                 /* some open bit is set */
};

#endif
