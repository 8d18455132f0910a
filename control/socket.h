/* gpuraid: the file that is the control socket.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CONTROL_SOCKET_H
#define GPURAID_CONTROL_SOCKET_H

#include <stdbool.h>
#include <sys/types.h>

struct control_socket {
  char *path;                   /* owned */
  int fd;                       /* listening; -1: not open */
  dev_t dev;                    /* which file we made */
  ino_t ino;
};

/* Remove a socket at path on which no process listens.  what is printed before
 * the path.  0: the path is free now; -1 reported: another process listens, or
 * it is no socket.
 */
extern int socket_clear (const char *what, const char *path);

/* Let others connect: the group, if has_group, and the mode of a socket that
 * this user has made.  0, or -1 reported.
 */
extern int socket_allow (const char *path, bool has_group, gid_t gid,
                         mode_t mode);

/* See control_bind.  0, or -1 reported, nothing left open. */
extern int control_socket_open (struct control_socket *s, const char *path);
/* Stop listening; remove the file if it is the one that was made. */
extern void control_socket_close (struct control_socket *s);

#endif
