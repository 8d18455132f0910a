/* gpuraid: a scope of systemd for the process that owns a device.
 *
 * In it the end of a login session is not the end of the process, and at a
 * shutdown it ends after the file systems and before the server.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ATTACH_SCOPE_H
#define GPURAID_ATTACH_SCOPE_H

#include <stdbool.h>

struct attach_request;

/* Does systemd run here?  What it leaves is not enough, as in a container. */
extern bool scope_is_possible (void);

/* Become this command, which ends with NULL and attaches r, in a scope.
 * Returns only if that fails, with errno.
 */
extern void scope_run (const struct attach_request *r,
                       char *const *command);

#endif
