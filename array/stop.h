/* gpuraid: the end of a running array.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_STOP_H
#define GPURAID_STOP_H

#include "array/engine/shared.h"

/* Without the array lock.  Servers of members that are away are not waited for
 * as long as else from now on.
 */
extern void stop_hurry (struct array *a);

/* Without the array lock.  Write out, flush, clear the dirty bits, mark the
 * superblock as clean.  Call it repeatedly, with time for I/O in between,
 * until it returns true.  Then nothing is in flight.
 */
extern bool stop_step (struct array *a);

#endif
