/* gpuraid: the process that owns the block device of a server, from attach to
 * detach.
 *
 * It keeps the device open, so that nothing can detach it, and connects again
 * when the server was restarted.  It is found by its lock, and asked on a
 * socket (ask.h).  SIGTERM means detach it; while it is in use the process says
 * so, and stays until it is not.  SIGHUP means connect again.
 *
 * Called once in a process, in its first thread.  The request, and what it
 * points to, is the caller's, and stays until owner_run returns.
 *
 * If it is killed, the device stays; owner_run with the same arguments goes on
 * with it, and detach works without it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ATTACH_OWNER_H
#define GPURAID_ATTACH_OWNER_H

struct attach_request;
struct state;

/* Attach, call ready with the device, then stay until it is detached.  ready
 * returns -1 if it is not wanted any more: then it is detached at once.
 * Returns an exit status: EXIT_FAILURE also if something is lost, and nothing
 * asked, so that it was only logged.
 */
extern int owner_run (const struct attach_request *r,
                      int (*ready) (const struct state *s));

#endif
