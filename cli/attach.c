/* gpuraid attach: the server of an array, or any NBD server, as a block device
 * of this host.
 *
 * It starts the process that owns the device (attach/owner.h), in the
 * background, and where systemd runs in a scope of its own: the end of a login
 * session is not the end of it, and at a shutdown it ends after the file
 * systems and before the server.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "attach/detach.h"
#include "attach/owner.h"
#include "attach/place.h"
#include "cli/cli.h"
#include "cli/names.h"
#include "common/bits.h"
#include "common/cleanup.h"
#include "common/log.h"

#define DEAD_TIMEOUT 600
#define PATIENCE 5              /* seconds */
#define RESIZE_TRIES 200
#define READY_FD 3              /* where to say that it is attached */
#define READY_ENV "GPURAID_READY"       /* if this is set */

/* A NAME, the path of a socket, or a URI.  The caller frees it; NULL: reported,
 * and *usage: it is none of these.
 */
static char *
find_uri (const char *text, bool *usage)
{
  CLEANUP_FREE char *path = NULL, *quoted = NULL;
  char *uri = NULL, *q;

  if (strstr (text, "://"))
    return strdup (text);
  if (strchr (text, '/'))
    path = realpath (text, NULL);
  else {
    *usage = !names_check (text);
    path = *usage ? NULL : names_socket (text, NAMES_NBD);
  }
  if (path == NULL) {
    if (strchr (text, '/'))
      log_error ("%s: %m", text);
    return NULL;
  }
  quoted = q = malloc (strlen (path) * 3 + 1);
  for (const char *c = path; q && *c; c++)
    q += sprintf (q, strchr ("/._-~", *c) || (*c >= '0' && *c <= '9') ||
                  ((*c | 32) >= 'a' && (*c | 32) <= 'z') ? "%c" : "%%%02X",
                  (unsigned char) *c);
  if (q == NULL || asprintf (&uri, "nbd+unix:///?socket=%s", quoted) == -1) {
    log_error ("%s: no memory", text);
    return NULL;
  }
  return uri;
}

/* ---- the process that stays ---- */

static bool in_foreground;
static int ready_fd = -1;

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
  tell_systemd (path);
  if (in_foreground) {
    printf ("%s\n", path);
    fflush (stdout);
    return 0;
  }
  if (leave_terminal (s) == -1 || dprintf (ready_fd, "%s\n", path) < 0)
    return -1;
  close (ready_fd);
  return 0;
}

/* ---- in the background ---- */

/* It ends before the server does, if that is a service: an option for
 * systemd-run.
 */
static void
order (const struct attach_request *r, char *buf, size_t len)
{
  const char *socket = strstr (r->uri, "?socket=");
  const size_t n = strlen (r->rundir);
  size_t name;

  snprintf (buf, len, "--collect");
  if (socket == NULL || strncmp (socket += 8, r->rundir, n) != 0 ||
      socket[n] != '/')
    return;
  socket += n + 1;
  name = strlen (socket) - MIN (strlen (socket), strlen (NAMES_NBD));
  if (strcmp (socket + name, NAMES_NBD) == 0 && !strchr (socket, '/'))
    snprintf (buf, len, "--property=After=gpuraid@%.*s.service", (int) name,
              socket);
}

/* The caller's arguments, after those of systemd-run if that is to start it. */
static void
run_in_scope (const struct attach_request *r, char **argv, int argc)
{
  static const char *const scope[] = {
    "systemd-run", "--scope", "--quiet", "--collect",
    "--slice=system.slice", "--description=gpuraid: an attached server",
    "--property=Wants=remote-fs-pre.target",
    "--property=Before=remote-fs-pre.target", "--property=SendSIGKILL=no",
    NULL, NULL, NULL, "attach", "--foreground",
  };
  const char **args = calloc (ARRAY_LEN (scope) + argc + 1, sizeof *args);
  char self[PATH_MAX], unit[64], after[128];
  const ssize_t len = readlink ("/proc/self/exe", self, sizeof self - 1);
  size_t n = 0;

  if (args == NULL || len <= 0)
    return;
  self[len] = '\0';
  snprintf (unit, sizeof unit, "--unit=gpuraid-attach-%d", getpid ());
  for (size_t i = 0; i < ARRAY_LEN (scope); i++)
    args[n++] = scope[i];
  order (r, after, sizeof after);
  args[9] = unit;
  args[10] = after;
  args[11] = self;
  for (int i = 1; i < argc; i++)
    args[n++] = argv[i];
  execvp (args[0], (char **) args);
}

/* Does systemd run here?  What it leaves is not enough, as in a container. */
static bool
has_systemd (void)
{
  const struct sockaddr_un addr = { .sun_family = AF_UNIX,
                                    .sun_path = "/run/systemd/private" };
  CLEANUP_CLOSE int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

  return fd >= 0 &&
    connect (fd, (const struct sockaddr *) &addr, sizeof addr) == 0;
}

static void
ignore (int signum)
{
}

/* They interrupt the wait, once. */
static void
catch_signals (void)
{
  const struct sigaction action = { .sa_handler = ignore };

  sigaction (SIGINT, &action, NULL);
  sigaction (SIGTERM, &action, NULL);
}

/* Start the process; wait until it has the device, or has failed.  Returns an
 * exit status.
 */
static int
attach_in_background (const struct attach_request *r, char **argv, int argc)
{
  char line[BLOCK_PATH_LEN] = "";
  int fds[2], status = 0;
  ssize_t n;
  pid_t pid;

  catch_signals ();
  if (pipe (fds) == -1 || (pid = fork ()) == -1) {
    log_error ("fork: %m");
    return EXIT_FAILURE;
  }
  if (pid == 0) {
    signal (SIGINT, SIG_DFL);
    signal (SIGTERM, SIG_DFL);
    setsid ();
    dup2 (fds[1], READY_FD);
    closefrom (READY_FD + 1);
    ready_fd = READY_FD;
    if (has_systemd ()) {
      setenv (READY_ENV, "", 1);
      run_in_scope (r, argv, argc);
      log_notice ("systemd-run: %m; it is started without");
    }
    fcntl (ready_fd, F_SETFD, FD_CLOEXEC);
    _exit (owner_run (r, ready));
  }
  close (fds[1]);
  n = read (fds[0], line, sizeof line - 1);
  if (n > 0) {
    printf ("%.*s", (int) n, line);
    return EXIT_SUCCESS;
  }
  /* A signal: it ends, too, and detaches what it has attached. */
  if (n == -1) {
    kill (pid, SIGTERM);
    close (fds[0]);
  }
  while (waitpid (pid, &status, 0) == -1 && errno == EINTR)
    ;
  if (WIFSIGNALED (status))
    log_error ("%s: %s", r->uri, strsignal (WTERMSIG (status)));
  return EXIT_FAILURE;
}

/* ---- the commands ---- */

/* 0, or -1 reported. */
static int
take_size (struct state *s)
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
  if (server_reach (uri, false, PATIENCE, false, &e, why) == -1) {
    log_error ("%s: %s", uri, why);
    return -1;
  }
  if (detach_reconnect (s) == -1)
    return -1;
  if (block_open (&s->device) == -1) {
    log_error ("/dev/%s: %m", s->device.name);
    return -1;
  }
  for (int tries = 0; block_size (&s->device) != e.size; tries++) {
    if (tries == RESIZE_TRIES) {
      log_error ("/dev/%s: still has %" PRIu64 " bytes, not %" PRIu64,
                 s->device.name, block_size (&s->device), e.size);
      return -1;
    }
    nanosleep (&pause, NULL);
  }
  printf ("/dev/%s has %" PRIu64 " bytes\n", s->device.name, e.size);
  return 0;
}

static int
resize (const char *rundir, const char *name)
{
  struct state s = { .device.fd = -1 };
  int r = -1;

  if (place_of_name (rundir, name, &s) == 0)
    r = take_size (&s);
  state_free (&s);
  return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int
cmd_attach (int argc, char **argv)
{
  static const struct option options[] = {
    { "with", required_argument, NULL, 'w' },
    { "name", required_argument, NULL, 'n' },
    { "dead-timeout", required_argument, NULL, 't' },
    { "no-wait", no_argument, NULL, 'p' },
    { "again", no_argument, NULL, 'a' },
    { "mountpoint", required_argument, NULL, 'm' },
    { "resize", no_argument, NULL, 'r' },
    { "foreground", no_argument, NULL, 'f' },
    { NULL }
  };
  CLEANUP_FREE char *rundir = NULL, *uri = NULL;
  struct attach_request r = { .dead_timeout = DEAD_TIMEOUT,
                              .patience = PATIENCE };
  bool sizes = false, usage = false;
  int opt;

  opterr = 0;
  while ((opt = getopt_long (argc, argv, "", options, NULL)) != -1)
    switch (opt) {
    case 'w':
      r.way = strcmp (optarg, "kernel") == 0 ? ATTACH_KERNEL
        : strcmp (optarg, "fuse") == 0 ? ATTACH_FUSE : ATTACH_ANY;
      if (r.way == ATTACH_ANY)
        return cli_usage (argv[0]);
      break;
    case 'n':
      if (!names_check (optarg))
        return EXIT_USAGE;
      r.name = optarg;
      break;
    case 't':
      if (!cli_seconds (optarg, &r.dead_timeout))
        return cli_usage (argv[0]);
      break;
    case 'p': r.patience = 0; break;
    case 'a': r.again = true; break;
    case 'm': r.mountpoint = optarg; break;
    case 'r': sizes = true; break;
    case 'f': in_foreground = true; break;
    default: return cli_usage (argv[0]);
    }
  if (argc - optind != 1)
    return cli_usage (argv[0]);
  if (!cli_is_root () || names_make_rundir () == -1 ||
      (rundir = names_rundir ()) == NULL)
    return EXIT_FAILURE;
  if (sizes)
    return resize (rundir, argv[optind]);
  r.rundir = rundir;
  r.uri = uri = find_uri (argv[optind], &usage);
  if (uri == NULL)
    return usage ? EXIT_USAGE : EXIT_FAILURE;
  if (r.name == NULL && !strchr (argv[optind], '/'))
    r.name = argv[optind];
  r.link = strcmp (rundir, "/run/gpuraid") == 0;
  if (in_foreground && getenv (READY_ENV)) {
    ready_fd = READY_FD;
    fcntl (ready_fd, F_SETFD, FD_CLOEXEC);
    unsetenv (READY_ENV);
    in_foreground = false;
  }
  else if (!in_foreground)
    return attach_in_background (&r, argv, argc);
  return owner_run (&r, ready);
}
