/* gpuraid: a member that is there twice: itself, and a copy of it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CLONES_H
#define GPURAID_CLONES_H

#include "array/membership/membership.h"
#include "member/member.h"

/* Do both say that they are the same member of the same array? */
extern bool clones_are (const struct found *a, const struct found *b);

/* Which of two such to leave out: 0 or 1; -1: it can't be told.  *why is
 * constant, and says what that one is.
 *
 * The older one: by the epoch it has accepted, then by what moves within an
 * epoch.  Where a copy of the superblock or a ring header is bad, it may be
 * newer than it seems.  Nothing tells two that are equal in all of that, except
 * that a disk goes before a file if all that lies before the data is the same,
 * byte for byte.
 */
extern int clones_leave_out (struct member *const m[2],
                             const struct found *const f[2],
                             const char **why);

#endif
