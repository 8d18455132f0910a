/* gpuraid: while a member has no space: what is tried again, and which clients
 * get ENOSPC.
 *
 * Call all of these with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_SPACE_RETRY_H
#define GPURAID_SPACE_RETRY_H

#include "array/engine/shared.h"

/* Called periodically: retry the writes, and tell requests that wait for
 * writes that still fail.
 */
extern void space_tick (struct array *a);

/* The array stops: true when nothing waits for space any more.  If the last
 * retry fails the array fails too, as it would in a crash.
 */
extern bool space_stop (struct array *a);

#endif
