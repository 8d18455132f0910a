/* gpuraid: be the process that owns a device.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include "attach/ask/start.h"
#include "attach/foreground.h"
#include "attach/owner.h"
#include "attach/state/state.h"
#include "common/log.h"

static int ready_fd = -1;       /* -1: it stays in the foreground */

/* As sd_notify does. */
static void
tell_systemd (const char *device)
{
  const char *path = getenv ("NOTIFY_SOCKET");
  struct sockaddr_un addr = { .sun_family = AF_UNIX };
  char text[64];
  int fd;

  if (path == NULL || strlen (path) >= sizeof addr.sun_path)
    return;
  strcpy (addr.sun_path, path);
  if (path[0] == '@')
    addr.sun_path[0] = '\0';
  fd = socket (AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd == -1)
    return;
  snprintf (text, sizeof text, "READY=1\nSTATUS=%s", device);
  sendto (fd, text, strlen (text), MSG_NOSIGNAL,
          (const struct sockaddr *) &addr,
          offsetof (struct sockaddr_un, sun_path) + strlen (path));
  close (fd);
}

static void
log_to_syslog (enum log_level level, const char *fmt, va_list args)
{
  if (level != LOG_LEVEL_DEBUG)
    vsyslog (level == LOG_LEVEL_ERROR ? LOG_ERR : LOG_NOTICE, fmt, args);
}

/* Messages go on in the system's log, and in the state's. */
static int
leave_terminal (const struct state *s)
{
  char path[PATH_MAX];
  const int null = open ("/dev/null", O_RDWR | O_CLOEXEC);
  const int log = open (state_path (s, "log", path),
                        O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

  if (null == -1 || log == -1 || chdir ("/") == -1) {
    log_error ("%s: %m", path);
    return -1;
  }
  dup2 (null, STDIN_FILENO);
  dup2 (null, STDOUT_FILENO);
  dup2 (log, STDERR_FILENO);
  close (null);
  close (log);
  openlog ("gpuraid", LOG_PID | LOG_PERROR, LOG_DAEMON);
  log_set_sink (log_to_syslog);
  return 0;
}

static int
ready (const struct state *s)
{
  char path[BLOCK_PATH_LEN];

  block_path (&s->device, path);
  if (ready_fd == -1) {
    tell_systemd (path);
    printf ("%s\n", path);
    fflush (stdout);
    return 0;
  }
  if (leave_terminal (s) == -1 || dprintf (ready_fd, "%s\n", path) < 0)
    return -1;
  close (ready_fd);
  return 0;
}

int
foreground_run (const struct attach_request *r)
{
  if (getenv (START_READY_ENV)) {
    ready_fd = START_READY_FD;
    fcntl (ready_fd, F_SETFD, FD_CLOEXEC);
    unsetenv (START_READY_ENV);
  }
  return owner_run (r, ready);
}
