/* gpuraid: make a function of another program return.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_OLD_NBDKIT_FRAMES_H
#define GPURAID_OLD_NBDKIT_FRAMES_H

/* Is it known here how, on this processor? */
extern _Bool frames_known (void);

/* The function that called its caller at the address "call", which is where
 * that call returns to, returns -1 to its own caller at once.  Comes back only
 * if that is not possible.  Any thread.
 */
extern void frames_return_error (const void *call);

#endif
