/* gpuraid: read the four superblock copies of a member synchronously.
 *
 * Used before anything runs, and by commands that only look.  The running
 * array writes its copies itself, in the order of
 * array/membership/membership.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_STORES_COPIES_H
#define GPURAID_STORES_COPIES_H

#include "array/membership/membership.h"
#include "member/member.h"

/* Fill the first part of *f; an unreadable copy counts as damaged.  f->name is
 * borrowed from m.  If why is not NULL, it gets a constant string for each
 * copy that is not SB_OK.  0, or a positive errno if no copy could be read.
 */
extern int copies_read (struct member *m, struct found *f,
                        const char *why[SB_NR_COPIES]);

/* Fill sb->boot_id and sb->host for this host, zeroes if unknown. */
extern void copies_fill_host (struct superblock *sb);

/* A random uuid (version 4).  0, or -1 reported. */
extern int copies_new_uuid (uuid_bytes *uuid);

#endif
