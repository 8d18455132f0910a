/* gpuraid: the process that owns the block device of a server, from attach to
 * detach.
 *
 * It keeps the device open, so that nothing can detach it, and connects again
 * when the server was restarted.  It is found by its lock, and told what to do
 * on the socket "control" in its state: a line
 *
 *   detach SECONDS     detach it once nothing uses it, within that time
 *   reconnect          connect again: a server tells its size only then
 *
 * is answered by a line: "detached", with what was lost after it, "in use",
 * "ok", or "error" with a text.  SIGTERM means detach it; while it is in use
 * the process says so, and stays until it is not.  SIGHUP means reconnect.
 *
 * If it is killed, the device stays; owner_run with the same arguments goes on
 * with it, and detach works without it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ATTACH_OWNER_H
#define GPURAID_ATTACH_OWNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/server.h"
#include "attach/state.h"

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
 * Returns an exit status.
 */
extern int owner_run (const struct attach_request *r,
                      int (*ready) (const struct state *s));

/* ---- between the files of this folder ---- */

/* The owner's socket: a new one, listening, or a connection to it.  A
 * descriptor, or -1 with errno.
 */
extern int owner_socket (const struct state *s, bool listening);

struct owner {
  const struct attach_request *request;
  struct state state;
  int lock;                     /* of the state */
  struct server_export export;
  int64_t now;                  /* ms */
  int kernel_log;               /* see kernel-log.h; -1: it can't be read */

  /* The kernel's driver. */
  int socket;                   /* the connection that it has; -1: lost */
  struct server_try *try;       /* for another one */
  int64_t next;                 /* ms: when to try again */
  bool adopted;                 /* it may have one that we do not know */
  bool took;                    /* the driver took a socket */
  bool gone;                    /* another program has detached the device */
  char said[SERVER_WHY_LEN];    /* why not, as it was logged */

  /* nbdfuse. */
  pid_t helper;                 /* 0: not a child of this process */
};

/* Make the device; 0, or -1 reported. */
extern int kernel_attach (struct owner *o, int socket);
extern int fuse_attach (struct owner *o);

/* Go on with a device that has lost its owner. */
extern void kernel_adopt (struct owner *o);

/* Watch the connection: what to poll for, until when (ms; 0: for ever), and
 * what has come of it.  -1: the device was detached by something else.
 */
struct pollfd;
extern int64_t kernel_watch (const struct owner *o, struct pollfd *p);
extern int kernel_go (struct owner *o, short revents);
extern void kernel_reconnect (struct owner *o);

/* nbdfuse has ended. */
extern void fuse_ended (struct owner *o);

/* The device is detached: end what served it. */
extern void fuse_end (struct state *s, pid_t helper);

/* Note the device as soon as it is there.  0, or -1 reported. */
extern int owner_note_device (const struct state *s);

/* Note what is lost, once, with the time. */
extern void owner_note_lost (struct state *s, const char *what);

/* Detach the device of a state, which is open, if nothing else uses it, and
 * remove the state.  1, and lost has what was lost, or is empty; 0: in use; -1:
 * reported.  helper: nbdfuse, if it is a child.
 */
extern int owner_detach (struct state *s, pid_t helper,
                         char lost[STATE_TEXT_LEN]);

#endif
