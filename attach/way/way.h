/* gpuraid: the process that owns a device, and the two ways to one.
 *
 * Where nothing else is said: in the thread of the loop, and o is its owner's.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ATTACH_WAY_H
#define GPURAID_ATTACH_WAY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/request.h"
#include "attach/server/server.h"
#include "attach/state/state.h"

struct owner {
  const struct attach_request *request;
  struct state state;
  int lock;                     /* of the state */
  struct server_export export;
  int64_t now;                  /* ms */
  int kernel_log;               /* to poll; -1: it can't be read, as in some
                                 * containers */
  uint64_t log_from;            /* what it has from before is not read */

  /* The kernel's driver. */
  int socket;                   /* the connection that it has; -1: lost */
  struct server_try *try;       /* for another one */
  int64_t next;                 /* ms: when to try again */
  bool adopted;                 /* it may have one that we do not know */
  bool took;                    /* the driver took a socket */
  bool gone;                    /* the driver says that it is not attached */
  char said[SERVER_WHY_LEN];    /* why not, as it was logged */

  /* nbdfuse. */
  pid_t helper;                 /* 0: not a child of this process */
};

/* ---- ways: the kernel's driver, and nbdfuse ---- */

/* Is this way there?  fuse_is_there reports why not. */
extern bool kernel_is_there (void);
extern bool fuse_is_there (void);

/* Make the device; 0, or -1 reported.  The socket is the kernel's from then on,
 * also after an error.
 */
extern int kernel_attach (struct owner *o, int socket);
extern int fuse_attach (struct owner *o);

/* Go on with a device that has lost its owner.  0, or -1 reported. */
extern int kernel_adopt (struct owner *o);

/* Watch the connection: what to poll for, until when (ms; 0: for ever), and
 * what has come of it.  -1: the device was detached by something else.
 */
struct pollfd;
extern int64_t kernel_watch (const struct owner *o, struct pollfd *p);
extern int kernel_go (struct owner *o, short revents);
extern void kernel_reconnect (struct owner *o);

/* nbdfuse, a child, has ended. */
extern void fuse_ended (struct owner *o);

/* Note what is lost if it has. */
extern void fuse_look (struct state *s);

/* The device is detached: end what served it.  In the thread that detaches. */
extern void fuse_end (struct state *s, pid_t helper);

#endif
