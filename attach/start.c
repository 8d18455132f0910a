/* gpuraid: start the process that owns a device.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include "attach/block.h"
#include "attach/owner.h"
#include "attach/request.h"
#include "attach/scope.h"
#include "attach/start.h"
#include "attach/state.h"
#include "common/log.h"

#define READY_FD 3              /* where to say that it is attached */
#define READY_ENV "GPURAID_READY"       /* if this is set */
#define MAX_ARGS 32

/* ---- the process that stays ---- */

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
start_in_foreground (const struct attach_request *r)
{
  if (getenv (READY_ENV)) {
    ready_fd = READY_FD;
    fcntl (ready_fd, F_SETFD, FD_CLOEXEC);
    unsetenv (READY_ENV);
  }
  return owner_run (r, ready);
}

/* ---- in the background ---- */

static void
ignore (int signum)
{
}

/* They are to interrupt the wait, and nothing else: see await.  *before gets
 * what was blocked.
 */
static void
catch_signals (sigset_t *before)
{
  const struct sigaction action = { .sa_handler = ignore };
  sigset_t set;

  sigemptyset (&set);
  sigaddset (&set, SIGINT);
  sigaddset (&set, SIGTERM);
  sigprocmask (SIG_BLOCK, &set, before);
  sigaction (SIGINT, &action, NULL);
  sigaction (SIGTERM, &action, NULL);
}

static void
leave_signals (const sigset_t *before)
{
  signal (SIGINT, SIG_DFL);
  signal (SIGTERM, SIG_DFL);
  sigprocmask (SIG_SETMASK, before, NULL);
}

/* In the child: become "gpuraid attach --foreground REST...". */
static void
run (const struct attach_request *r, char *const *rest, int fd)
{
  char self[PATH_MAX];
  const ssize_t len = readlink ("/proc/self/exe", self, sizeof self - 1);
  char *args[MAX_ARGS + 4] = { self, "attach", "--foreground" };

  self[len > 0 ? len : 0] = '\0';
  for (size_t n = 3; *rest && n < MAX_ARGS + 3; n++)
    args[n] = *rest++;
  setsid ();
  dup2 (fd, READY_FD);
  closefrom (READY_FD + 1);
  setenv (READY_ENV, "", 1);
  if (scope_is_possible ()) {
    scope_run (r, args);
    log_notice ("systemd-run: %m; it is started without");
  }
  execv (self, args);
  log_error ("%s: %m", self);
  _exit (EXIT_FAILURE);
}

/* The length of what it says; 0: it has ended; -1: a signal came. */
static ssize_t
await (int fd, char *buf, size_t len, const sigset_t *before)
{
  struct pollfd p = { .fd = fd, .events = POLLIN };

  return ppoll (&p, 1, NULL, before) == -1 ? -1 : read (fd, buf, len);
}

int
start_in_background (const struct attach_request *r, char *const *args,
                     char device[BLOCK_PATH_LEN])
{
  sigset_t before;
  int fds[2], status = 0;
  ssize_t n;
  pid_t pid;

  catch_signals (&before);
  if (pipe (fds) == -1 || (pid = fork ()) == -1) {
    log_error ("fork: %m");
    leave_signals (&before);
    return -1;
  }
  if (pid == 0) {
    leave_signals (&before);
    run (r, args, fds[1]);
  }
  close (fds[1]);
  n = await (fds[0], device, BLOCK_PATH_LEN - 1, &before);
  leave_signals (&before);
  close (fds[0]);
  if (n > 0) {
    device[n] = '\0';
    device[strcspn (device, "\n")] = '\0';
    return 0;
  }
  /* A signal: it ends, too, and detaches what it has attached. */
  if (n == -1)
    kill (pid, SIGTERM);
  while (waitpid (pid, &status, 0) == -1 && errno == EINTR)
    ;
  if (WIFSIGNALED (status))
    log_error ("%s: %s", r->uri, strsignal (WTERMSIG (status)));
  return -1;
}
