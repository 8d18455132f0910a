/* gpuraid: scrub: look at every row that was ever written.
 *
 * All that members have of a row is read, compared with its checksums, and its
 * parity with its data.  With repair, what is proven to be wrong is stored
 * anew, through the journal.  Without checksums nothing is proven but what
 * can't be read.
 *
 * It begins nothing while there is a rebuild or resync to do, and goes slowly
 * while there are clients.  Where it is is kept in the superblocks, and the
 * next start goes on from there.
 *
 * Call all of these with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_SCRUB_H
#define GPURAID_SCRUB_H

#include "array/engine/room.h"

extern const struct room room_scrub;

/* The commands: 0, or EINVAL and why. */
extern int scrub_start (struct array *a, bool repair,
                        char why[ARRAY_WHY_LEN]);
extern int scrub_control (struct array *a, enum array_scrub_command command,
                          char why[ARRAY_WHY_LEN]);

/* True while one runs that is not paused or interrupted. */
extern bool scrub_is_running (const struct array *a);
/* True if one was interrupted by a stop or crash, and goes on or counts as
 * paused when the array is made writable.
 */
extern bool scrub_is_interrupted (const struct array *a);
/* True if lines are being looked at or stored anew. */
extern bool scrub_is_busy (const struct array *a);

#endif
