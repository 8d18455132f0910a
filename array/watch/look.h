/* gpuraid: has another server taken over, while this one did not run?
 *
 * Call all of these with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_WATCH_LOOK_H
#define GPURAID_WATCH_LOOK_H

#include "array/engine/shared.h"

/* In each turn of the main loop: if changes of disks are held (io/lease.h),
 * read the superblocks of these, and let them go on; or the array has failed,
 * if one is another server's.
 */
extern void look_turn (struct array *a);

/* Called periodically: k slots are enough, if others don't answer. */
extern void look_tick (struct array *a);

#endif
