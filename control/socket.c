/* gpuraid: the file that is a socket: ours for commands, and nbdkit's.
 *
 * Decides whether the file at the path may be replaced.  A killed server leaves
 * its socket behind, so one that refuses connections is dead; any other file is
 * not ours.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "control/socket.h"

#define BACKLOG 64

int
socket_clear (const char *what, const char *path)
{
  struct sockaddr_un addr = { .sun_family = AF_UNIX };
  CLEANUP_CLOSE int fd = -1;
  struct stat st;

  strncpy (addr.sun_path, path, sizeof addr.sun_path - 1);
  if (lstat (path, &st) == -1) {
    if (errno == ENOENT)
      return 0;
    log_error ("%s%s: %m", what, path);
    return -1;
  }
  if (!S_ISSOCK (st.st_mode)) {
    log_error ("%s%s: something that is no socket is there", what, path);
    return -1;
  }

  /* Not blocking: a server whose queue is full answers EAGAIN, and is alive. */
  fd = socket (AF_UNIX, SOCK_STREAM|SOCK_NONBLOCK|SOCK_CLOEXEC, 0);
  if (fd == -1) {
    log_error ("socket: %m");
    return -1;
  }
  if (connect (fd, (const struct sockaddr *) &addr, sizeof addr) == 0 ||
      errno == EAGAIN || errno == EPROTOTYPE) {
    log_error ("%s%s: another server uses that socket: stop it, or give "
               "another path", what, path);
    return -1;
  }
  if (errno == ENOENT)
    return 0;
  if (errno != ECONNREFUSED) {
    log_error ("connect: %s: %m", path);
    return -1;
  }
  if (unlink (path) == -1 && errno != ENOENT) {
    log_error ("unlink: %s: %m", path);
    return -1;
  }
  return 0;
}

int
socket_allow (const char *path, bool has_group, gid_t gid, mode_t mode)
{
  /* In this order: no other group gets what the mode gives to this one. */
  if (has_group && lchown (path, -1, gid) == -1) {
    log_error ("socket-group=: chown: %s: %m", path);
    return -1;
  }
  if (chmod (path, mode) == -1) {
    log_error ("socket-mode=: chmod: %s: %m", path);
    return -1;
  }
  return 0;
}

static int
bind_and_listen (struct control_socket *s, const struct sockaddr_un *addr)
{
  struct stat st;

  s->fd = socket (AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0);
  if (s->fd == -1) {
    log_error ("socket: %m");
    return -1;
  }
  /* The file gets the mode of the socket, less the umask, so other users can
   * never open it.
   */
  if (fchmod (s->fd, 0600) == -1) {
    log_error ("fchmod: %m");
    return -1;
  }
  if (bind (s->fd, (const struct sockaddr *) addr, sizeof *addr) == -1) {
    log_error ("bind: %s: %m", s->path);
    return -1;
  }
  if (lstat (s->path, &st) == -1) {
    log_error ("lstat: %s: %m", s->path);
    return -1;
  }
  s->dev = st.st_dev;
  s->ino = st.st_ino;
  if (listen (s->fd, BACKLOG) == -1) {
    log_error ("listen: %s: %m", s->path);
    return -1;
  }
  return 0;
}

int
control_socket_open (struct control_socket *s, const char *path)
{
  struct sockaddr_un addr = { .sun_family = AF_UNIX };

  *s = (struct control_socket) { .fd = -1 };
  if (strlen (path) >= sizeof addr.sun_path) {
    log_error ("control=%s: a socket's path has at most %zu bytes",
               path, sizeof addr.sun_path - 1);
    return -1;
  }
  strcpy (addr.sun_path, path);

  s->path = strdup (path);
  if (s->path == NULL) {
    log_error ("strdup: %m");
    return -1;
  }
  if (socket_clear ("control=", path) == -1 ||
      bind_and_listen (s, &addr) == -1) {
    control_socket_close (s);
    return -1;
  }
  return 0;
}

void
control_socket_close (struct control_socket *s)
{
  struct stat st;

  /* Another server may have replaced the file, if ours was removed: do not
   * remove that.
   */
  if (s->path && s->ino && lstat (s->path, &st) == 0 &&
      st.st_dev == s->dev && st.st_ino == s->ino &&
      unlink (s->path) == -1)
    log_debug ("unlink: %s: %m", s->path);
  if (s->fd >= 0)
    close (s->fd);
  s->fd = -1;
  free (s->path);
  s->path = NULL;
}
