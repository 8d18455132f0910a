/* gpuraid: of the servers on one host, one has an array open for writing.
 *
 * The locks of the members know a file or a disk, not its other names: two loop
 * devices of one file, or a file and the NBD export of it.  So the array's uuid
 * is locked too: with abstract sockets, which all that share the network name
 * space see, and with a file, which all that share /run see.
 *
 * Any thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_STORES_HOST_LOCK_H
#define GPURAID_STORES_HOST_LOCK_H

#include "member/member.h"
#include "raidmap/superblock.h"

struct host_lock;

/* Lock an array.  As with the members' locks, several may read (up to eight)
 * where none writes.  One that is held is waited for, for half a second.  Where
 * the file can't be made, the sockets alone count.  NULL: reported.  The
 * processes that it is forked to hold the lock too.
 */
extern struct host_lock *host_lock_take (const uuid_bytes *uuid,
                                         bool readonly);

/* The same for the array that most of these members are of.  They are open, and
 * are only read; all are for reading only, or none.  0; *l is NULL if none says
 * of which array it is.  -1: reported.
 */
extern int host_lock_members (struct member *const *m, unsigned nr,
                              struct host_lock **l);

/* Is this the lock of that array?  If not, reported: the members were changed
 * after they were looked at.  l may be NULL.
 */
extern bool host_lock_covers (const struct host_lock *l,
                              const uuid_bytes *uuid);

/* May be NULL. */
extern void host_lock_free (struct host_lock *l);

/* Has a process on this host the array open, be it only for reading?  Takes
 * no lock.
 */
extern bool host_lock_held (const uuid_bytes *uuid);

#endif
