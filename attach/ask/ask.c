/* gpuraid: ask the process that owns a device.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <linux/fs.h>

#include "attach/ask/ask.h"
#include "attach/ask/start.h"
#include "attach/device/users.h"
#include "attach/request.h"
#include "attach/server/server.h"
#include "attach/way/detach.h"
#include "common/log.h"

#define OWNER_TRIES 30          /* three seconds */
#define SIZE_TRIES 200          /* until the device has the new size */

/* A short path to a socket: that of a socket has a limit. */
int
ask_socket (const struct state *s, bool listening)
{
  struct sockaddr_un addr = { .sun_family = AF_UNIX };
  const int dir = open (s->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
  int fd = -1, r = -1, err;

  if (dir >= 0) {
    snprintf (addr.sun_path, sizeof addr.sun_path, "/proc/self/fd/%d/control",
              dir);
    fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  }
  if (fd >= 0 && listening) {
    unlink (addr.sun_path);
    r = bind (fd, (const struct sockaddr *) &addr, sizeof addr);
    if (r == 0)
      r = listen (fd, 8);
  }
  else if (fd >= 0)
    r = connect (fd, (const struct sockaddr *) &addr, sizeof addr);
  err = errno;
  if (dir >= 0)
    close (dir);
  if (r == -1 && fd >= 0)
    close (fd);
  errno = err;
  return r == -1 ? -1 : fd;
}

/* Ask the owner; its answer, a line, without the newline.  0; -1: there is
 * none, or it gave no answer.
 */
static int
ask (const struct state *s, const char *question, char reply[STATE_TEXT_LEN])
{
  const int fd = ask_socket (s, false);
  FILE *fp = fd >= 0 ? fdopen (fd, "re") : NULL;
  int r = -1;

  if (fp && send (fd, question, strlen (question), MSG_NOSIGNAL) > 0 &&
      fgets (reply, STATE_TEXT_LEN, fp)) {
    reply[strcspn (reply, "\n")] = '\0';
    r = 0;
  }
  if (fp)
    fclose (fp);
  else if (fd >= 0)
    close (fd);
  return r;
}

/* The process of the owner, or 0. */
static pid_t
find_owner (const struct state *s)
{
  const int fd = ask_socket (s, false);
  struct ucred owner = { .pid = 0 };
  socklen_t len = sizeof owner;

  if (fd >= 0) {
    if (getsockopt (fd, SOL_SOCKET, SO_PEERCRED, &owner, &len) == -1)
      owner.pid = 0;
    close (fd);
  }
  return owner.pid;
}

char *
ask_users (const struct state *s)
{
  char path[BLOCK_PATH_LEN];

  return s->device.name[0]
    ? users_find (block_path (&s->device, path), find_owner (s)) : NULL;
}

static bool
has_device (const struct state *s)
{
  return s->device.name[0] && block_is_there (&s->device);
}

/* Another process goes on with a device that has lost its owner: it connects to
 * the server again, for what is not written yet.  0, or -1 reported.
 */
static int
start_owner (const struct state *s)
{
  char uri[STATE_TEXT_LEN], mountpoint[STATE_TEXT_LEN];
  char device[BLOCK_PATH_LEN];
  char *args[] = { "--name", (char *) s->name, uri, NULL };
  struct attach_request r = { .uri = uri };

  state_read_text (s, "uri", uri);
  state_read_text (s, "mountpoint", mountpoint);
  if (mountpoint[0])
    r.mountpoint = mountpoint;
  return start_in_background (&r, args, device);
}

/* What is left of one that was killed, without a device.  As ask_detach; 0: it
 * has an owner, or a device.
 */
static int
remove_rest (struct state *s, char lost[STATE_TEXT_LEN])
{
  const int lock = state_take (s);
  char device[STATE_TEXT_LEN];
  int r = 0;

  if (lock == -1)
    return 0;
  /* It may have got one since s was read. */
  state_read_text (s, "device", device);
  if (!has_device (s) && (s->device.name[0] || !device[0])) {
    r = detach_device (s, 0, lost);
    if (r == 1)
      state_remove (s);
  }
  close (lock);
  return r;
}

/* The answer to "detach".  As ask_detach. */
static int
see_answer (struct state *s, const char *reply, char lost[STATE_TEXT_LEN])
{
  if (strncmp (reply, "detached", 8) == 0) {
    strcpy (lost, reply + 8 + (reply[8] == ' '));
    return 1;
  }
  if (strcmp (reply, "in use") == 0) {
    /* Its file system is written out, wherever that is mounted. */
    if (block_open (&s->device) == 0) {
      ioctl (s->device.fd, BLKFLSBUF);
      close (s->device.fd);
      s->device.fd = -1;
    }
    return 0;
  }
  log_error ("%s: %s", s->name, reply);
  return -1;
}

int
ask_detach (struct state *s, unsigned seconds, char lost[STATE_TEXT_LEN])
{
  const struct timespec pause = { .tv_nsec = 100000000 };
  char question[32], reply[STATE_TEXT_LEN];
  int r;

  snprintf (question, sizeof question, "detach %u\n", seconds);
  lost[0] = '\0';
  for (int tries = 0; tries < OWNER_TRIES; tries++) {
    if (ask (s, question, reply) == 0)
      return see_answer (s, reply, lost);
    if (access (s->dir, F_OK) == -1)
      return 1;                 /* its owner has detached it just now */
    if (state_has_owner (s))
      nanosleep (&pause, NULL); /* it begins, or ends */
    else if (has_device (s)) {
      if (start_owner (s) == -1)
        return -1;
    }
    else {
      r = remove_rest (s, lost);
      if (r != 0)
        return r;
    }
  }
  log_error ("%s: another process attaches or detaches it just now", s->name);
  return -1;
}

/* 0, or -1 reported. */
static int
reconnect (const struct state *s)
{
  char reply[STATE_TEXT_LEN];

  if (ask (s, "reconnect\n", reply) == -1) {
    log_error ("%s: the process that attached it has ended (gpuraid attach "
               "goes on with the device)", s->name);
    return -1;
  }
  if (strcmp (reply, "ok") == 0)
    return 0;
  log_error ("%s: %s", s->name, reply);
  return -1;
}

int
ask_resize (struct state *s, unsigned patience, uint64_t *size)
{
  const struct timespec pause = { .tv_nsec = 100000000 };
  char uri[STATE_TEXT_LEN], why[SERVER_WHY_LEN];
  struct server_export e;

  if (!s->kernel) {
    log_error ("%s: with nbdfuse it keeps its size: detach it, and attach it "
               "again", s->name);
    return -1;
  }
  state_read_text (s, "uri", uri);
  if (server_reach (uri, NULL, patience, false, &e, why) == -1) {
    log_error ("%s: %s", uri, why);
    return -1;
  }
  if (reconnect (s) == -1)
    return -1;
  if (block_open (&s->device) == -1) {
    log_error ("/dev/%s: %m", s->device.name);
    return -1;
  }
  for (int tries = 0; block_size (&s->device) != e.size; tries++) {
    if (tries == SIZE_TRIES) {
      log_error ("/dev/%s: still has %" PRIu64 " bytes, not %" PRIu64,
                 s->device.name, block_size (&s->device), e.size);
      return -1;
    }
    nanosleep (&pause, NULL);
  }
  *size = e.size;
  return 0;
}
