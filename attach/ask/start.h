/* gpuraid: start the process that owns a device (foreground.h).
 *
 * One thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ATTACH_START_H
#define GPURAID_ATTACH_START_H

#include "attach/device/block.h"

struct attach_request;

/* What is started finds this in its environment: then it writes the path of the
 * device to this descriptor as soon as it is there.
 */
#define START_READY_ENV "GPURAID_READY"
#define START_READY_FD 3

/* "gpuraid attach --foreground ARGS..." in the background, and where systemd
 * runs in a scope of its own (scope.h).  args end with NULL, and mean r, of
 * which the URI and the mountpoint are looked at.  0, and device has the path;
 * -1 reported, also after SIGINT and SIGTERM, which end it.
 */
extern int start_in_background (const struct attach_request *r,
                                char *const *args,
                                char device[BLOCK_PATH_LEN]);

#endif
