/* gpuraid: be the process that owns a device (owner.h), from the command line.
 *
 * One thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ATTACH_FOREGROUND_H
#define GPURAID_ATTACH_FOREGROUND_H

struct attach_request;

/* Be it.  It prints the device, and tells systemd, where that waits for it; one
 * that was started in the background (start.h) tells what started it, and
 * leaves the terminal.  Returns an exit status.
 */
extern int foreground_run (const struct attach_request *r);

#endif
