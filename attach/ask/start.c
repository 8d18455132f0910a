/* gpuraid: start the process that owns a device.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/ask/scope.h"
#include "attach/ask/start.h"
#include "attach/request.h"
#include "common/log.h"

#define MAX_ARGS 32

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
  dup2 (fd, START_READY_FD);
  closefrom (START_READY_FD + 1);
  setenv (START_READY_ENV, "", 1);
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
