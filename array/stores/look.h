/* gpuraid: look at what may be a member.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_STORES_LOOK_H
#define GPURAID_STORES_LOOK_H

#include <stdbool.h>

#include "array/membership/membership.h"

/* Read the superblocks of the file or disk at path: no lock, no message, and
 * nothing that waits for another program.  Of a URI, as member_open_nbd with
 * MEMBER_LISTED.  f->name is borrowed from path.  0, or a positive errno;
 * EINVAL: what is there is too small, or no file or disk.
 */
extern int look_at (const char *path, struct found *f);

/* Are these two names of one file, or two nodes of one disk? */
extern bool look_same_store (const char *a, const char *b);

#endif
