/* gpuraid: is an array in use by a server on another host?  docs/rules.md,
 * M29 to M34, M37.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_OPEN_LIVE_H
#define GPURAID_OPEN_LIVE_H

#include "array/open/assembly.h"

/* An interval of array/watch/watch.c, the time for which a server may write
 * that can't read its superblocks (nbd_look_is_old in member/nbd/), and a
 * second.
 */
#define LIVE_WAIT_S 10u

/* Is this a member of an array that was not stopped, or is in use? */
extern bool live_has_beat (const struct found *f);

/* Files are locked on one host; NBD has no locks.  So a server that writes
 * changes the beat in the superblocks of its members, if one is remote or with
 * multihost=yes (save_has_beat).  If one of these has a beat, wait for several
 * of them, and see whether it changes.  found: as read from the members of a
 * before.  0 at once if there is no beat, or after the wait; -1 reported: in
 * use.
 */
extern int live_check (const struct assembly *a, const struct found *found);

/* Read the superblocks of m again.  EBUSY if another server has written one
 * since before was read, and then its host, or ""; ENOMEM, which was reported;
 * else 0, also if they can't be read now.
 */
extern int live_look (struct member *m, const struct found *before,
                      char host[SB_HOST_LEN + 1]);

/* Look at these members once a second, LIVE_WAIT_S times: path has a beat, and
 * is told in a message.  before: as read from each.  EBUSY as soon as another
 * server has written to one, m[*which], and then its host; ENOMEM, which was
 * reported; else 0.
 */
extern int live_wait (struct member *const *m, const struct found *before,
                      unsigned nr, const char *path, unsigned *which,
                      char host[SB_HOST_LEN + 1]);

#endif
