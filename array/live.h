/* gpuraid: is an array with remote members in use by another server?
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_LIVE_H
#define GPURAID_LIVE_H

#include "array/assembly.h"

/* Files are locked; NBD has no locks.  So a server that writes changes the beat
 * in the superblocks of its remote members.  If one of these has a beat, wait
 * for several of them, and see whether it changes.  found: as read from the
 * members of a before.  0 at once if there is no beat, or after the wait; -1
 * reported: in use.
 */
extern int live_check (const struct assembly *a, const struct found *found);

#endif
