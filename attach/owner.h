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

#include <stdbool.h>

struct state;

enum attach_way { ATTACH_ANY, ATTACH_KERNEL, ATTACH_FUSE };

struct attach_request {
  const char *rundir;
  const char *uri;
  const char *name;             /* NULL: one that fits the URI */
  enum attach_way way;
  unsigned dead_timeout;        /* seconds that users wait for the server */
  unsigned patience;            /* seconds that a server may need to start */
  const char *mountpoint;       /* noted in the state; when the device is
                                 * unmounted it is detached.  NULL: neither */
  bool again;                   /* detach it first, if it is not in use */
  bool link;                    /* make /dev/gpuraid/NAME */
};

/* Attach, call ready with the device, then stay until it is detached.  ready
 * returns -1 if it is not wanted any more: then it is detached at once.
 * Returns an exit status: EXIT_FAILURE also if something is lost, and nothing
 * asked, so that it was only logged.
 */
extern int owner_run (const struct attach_request *r,
                      int (*ready) (const struct state *s));

#endif
