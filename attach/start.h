/* gpuraid: start the process that owns a device (owner.h).
 *
 * One thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ATTACH_START_H
#define GPURAID_ATTACH_START_H

#include "attach/block.h"

struct attach_request;

/* Be it.  It prints the device, and tells systemd, where that waits for it.
 * Returns an exit status.
 */
extern int start_in_foreground (const struct attach_request *r);

/* "gpuraid attach --foreground ARGS..." in the background, and where systemd
 * runs in a scope of its own (scope.h).  args end with NULL, and mean r, of
 * which the URI and the mountpoint are looked at.  0, and device has the path;
 * -1 reported, also after SIGINT and SIGTERM, which end it.
 */
extern int start_in_background (const struct attach_request *r,
                                char *const *args,
                                char device[BLOCK_PATH_LEN]);

#endif
