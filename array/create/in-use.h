/* gpuraid: is a store in use by a running array, by what is on it?
 *
 * A member may have other names: a loop device of its file, a node that was
 * copied, an NBD export of it, or the file behind an export.  Locks by name or
 * by inode do not see that; its superblock does.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CREATE_IN_USE_H
#define GPURAID_CREATE_IN_USE_H

#include "member/member.h"
#include "raidmap/superblock.h"

/* Read the newest superblock copy of m, if there is one: the uuids of its array
 * and its own.  Synchronous, any thread.  False: there is none.
 */
extern bool in_use_identify (struct member *m, uuid_bytes *array,
                             uuid_bytes *member);

/* Is one of these a member of an array that runs on this host, or shows that
 * it runs on another?  Then why gets one line, at most len bytes.  It may have
 * failed there: only that array knows.  This waits LIVE_WAIT_S if one has a
 * beat (array/open/live.h).
 */
extern bool in_use_elsewhere (struct member *const *m, unsigned nr, char *why,
                              size_t len);

#endif
