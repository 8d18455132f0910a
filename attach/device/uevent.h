/* gpuraid: udev looks at a block device again.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ATTACH_UEVENT_H
#define GPURAID_ATTACH_UEVENT_H

#include <stdbool.h>

/* Where udevd runs, let it apply its rules to the device of that name, "nbd0",
 * as it is now; with wait, until it has, for some seconds at most.  Any thread.
 * There are no errors: a device works without udev.
 */
extern void uevent_change (const char *device, bool wait);

#endif
