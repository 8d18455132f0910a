/* gpuraid: pass a source to a child, and get machine code from it.
 *
 * The child is the program and the plugin that are on the disk now, which may
 * have been upgraded since the server was started, and code in it may print to
 * stdout.  So each side begins with a struct frame, and an answer with another
 * magic, version or length is refused.  The child gets a struct request, the
 * options and the source, each with its 0; it sends back the code.
 *
 * A child that does not end is killed when the server stops.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/version.h"
#include "common/write-all.h"
#include "gpu/compiler/child.h"
#include "gpu/compiler/compiler.h"

extern char **environ;

#define MAX_LEN ((size_t) 256 << 20)
#define MAX_OPTIONS 30

#define MAGIC "gpuraidC"
/* Increment with each change of the structs below. */
#define PROTOCOL 1

struct frame {
  char magic[8];
  uint32_t protocol;
  char version[20];             /* of the side that sends it */
  uint64_t len;                 /* of all that follows */
};

struct request {
  int arch;
  uint32_t nr_options;
};

static const char *const *child_argv;

/* One child at a time. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static struct {
  pthread_mutex_t lock;

  /* With lock held. */
  pid_t pid;                    /* of the child, until it is reaped, or 0 */
  bool forbidden;               /* none may run */
} running = { .lock = PTHREAD_MUTEX_INITIALIZER };

void
compiler_use_child (const char *const *argv)
{
  child_argv = argv;
}

/* Until the other side closes it. */
static void *
read_all (int fd, size_t *len)
{
  size_t max = 64 << 10;
  char *buf = malloc (max);

  *len = 0;
  while (buf) {
    ssize_t n = read (fd, buf + *len, max - *len);

    if (n == -1 && errno == EINTR)
      continue;
    if (n == 0)
      return buf;
    if (n > 0)
      *len += n;
    if (n > 0 && *len < max)
      continue;
    if (n == -1 || max >= MAX_LEN)
      break;
    max *= 2;
    char *more = realloc (buf, max);
    if (more == NULL)
      break;
    buf = more;
  }
  free (buf);
  return NULL;
}

static int
send_frame (int fd, size_t len)
{
  struct frame f = {
    .magic = MAGIC, .protocol = PROTOCOL, .version = GPURAID_RELEASE,
    .len = len,
  };

  return write_all (fd, &f, sizeof f);
}

/* Are these len bytes one frame of our version and its content?  Else why,
 * why_len bytes, says what is wrong.
 */
static bool
check_frame (const void *all, size_t len, char *why, size_t why_len)
{
  struct frame f;

  if (len >= sizeof f)
    memcpy (&f, all, sizeof f);
  if (len < sizeof f || memcmp (f.magic, MAGIC, sizeof f.magic) != 0)
    snprintf (why, why_len, "%zu bytes that are none of ours", len);
  else if (f.protocol != PROTOCOL ||
           strncmp (f.version, GPURAID_RELEASE, sizeof f.version) != 0)
    snprintf (why, why_len, "version %.20s (%u), not %s (%u)", f.version,
              f.protocol, GPURAID_RELEASE, PROTOCOL);
  else if (f.len != len - sizeof f)
    snprintf (why, why_len, "%zu bytes, not %llu", len - sizeof f,
              (unsigned long long) f.len);
  else
    return true;
  return false;
}

/* ---- the child ------------------------------------------------------- */

/* Output of the library must not be taken for an answer. */
static int
take_stdout (void)
{
  int fd = fcntl (STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);

  if (fd == -1 || dup2 (STDERR_FILENO, STDOUT_FILENO) == -1)
    _exit (1);
  return fd;
}

/* A struct request and texts. */
static int
compile (char *p, size_t len, void **code, size_t *code_len)
{
  const char *option[MAX_OPTIONS + 1] = { NULL };
  const char *end = p + len;
  struct request r;

  if (len <= sizeof r || end[-1] != '\0')
    return -1;
  memcpy (&r, p, sizeof r);
  if (r.nr_options > MAX_OPTIONS)
    return -1;
  p += sizeof r;
  for (uint32_t i = 0; i < r.nr_options; i++) {
    option[i] = p;
    p += strlen (p) + 1;
    if (p >= end)
      return -1;
  }
  return compiler_here (p, r.arch, option, code, code_len);
}

void
compiler_child_main (void)
{
  const int out = take_stdout ();
  char why[100], *all;
  size_t len;
  void *code;

  prctl (PR_SET_PDEATHSIG, SIGKILL);
  all = read_all (STDIN_FILENO, &len);
  if (all == NULL)
    _exit (1);
  if (!check_frame (all, len, why, sizeof why)) {
    (void) send_frame (out, 0); /* the answer names the other version */
    _exit (1);
  }
  if (compile (all + sizeof (struct frame), len - sizeof (struct frame),
               &code, &len) == -1 ||
      send_frame (out, len) == -1 || write_all (out, code, len) == -1)
    _exit (1);
  _exit (0);
}

/* ---- the server ------------------------------------------------------ */

/* The whole environment, and one more variable. */
static char **
make_environment (void)
{
  static char mark[] = COMPILER_CHILD_ENV "=1";
  size_t n = 0;
  char **env;

  while (environ[n])
    n++;
  env = calloc (n + 2, sizeof *env);
  if (env) {
    memcpy (env, environ, n * sizeof *env);
    env[n] = mark;
  }
  return env;
}

/* The child leads a group of processes, with all that it starts, and has no
 * file of the server except stderr.
 */
static int
spawn (int in, int out, pid_t *pid)
{
  CLEANUP_FREE char **env = make_environment ();
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attr;
  sigset_t none;
  int r;

  if (env == NULL)
    return ENOMEM;
  sigemptyset (&none);
  posix_spawn_file_actions_init (&actions);
  posix_spawn_file_actions_adddup2 (&actions, in, STDIN_FILENO);
  posix_spawn_file_actions_adddup2 (&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_addclosefrom_np (&actions, STDERR_FILENO + 1);
  posix_spawnattr_init (&attr);
  posix_spawnattr_setsigmask (&attr, &none);
  posix_spawnattr_setpgroup (&attr, 0);
  posix_spawnattr_setflags (&attr, POSIX_SPAWN_SETSIGMASK |
                            POSIX_SPAWN_SETPGROUP);
  r = posix_spawn (pid, child_argv[0], &actions, &attr,
                   (char *const *) child_argv, env);
  posix_spawnattr_destroy (&attr);
  posix_spawn_file_actions_destroy (&actions);
  return r;
}

/* 0 or an errno. */
static int
start_child (int in, int out)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&running.lock);
  pid_t pid;
  int r;

  if (running.forbidden)
    return ECANCELED;
  r = spawn (in, out, &pid);
  if (r == 0)
    running.pid = pid;
  return r;
}

/* Returns its status, of waitpid.  Once it is reaped its number may belong to
 * another process, and must not be killed.
 */
static int
reap_child (void)
{
  const pid_t pid = running.pid;
  int status = 0;
  siginfo_t info;

  while (waitid (P_PID, pid, &info, WEXITED | WNOWAIT) == -1 &&
         errno == EINTR)
    ;
  {
    ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&running.lock);

    running.pid = 0;
  }
  while (waitpid (pid, &status, 0) == -1 && errno == EINTR)
    ;
  return status;
}

void
compiler_child_kill (void)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&running.lock);

  running.forbidden = true;
  if (running.pid > 0)
    (void) kill (-running.pid, SIGKILL);
}

void
compiler_child_allow (void)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&running.lock);

  running.forbidden = false;
}

static bool
is_forbidden (void)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&running.lock);

  return running.forbidden;
}

static bool
send_request (int fd, const char *source, int arch, const char *const *options)
{
  struct request r = { .arch = arch };
  size_t len = sizeof r + strlen (source) + 1;

  for (; options && options[r.nr_options] && r.nr_options < MAX_OPTIONS;
       r.nr_options++)
    len += strlen (options[r.nr_options]) + 1;
  if (send_frame (fd, len) == -1 || write_all (fd, &r, sizeof r) == -1)
    return false;
  for (uint32_t i = 0; i < r.nr_options; i++)
    if (write_all (fd, options[i], strlen (options[i]) + 1) == -1)
      return false;
  return write_all (fd, source, strlen (source) + 1) == 0;
}

/* 0, or an errno: there was no child.  Else *status, of waitpid, is how it
 * ended, and *all what it wrote, if it could be read.
 */
static int
talk (const char *source, int arch, const char *const *options,
      void **all, size_t *len, int *status)
{
  int to[2], from[2], err;

  *all = NULL;
  if (pipe2 (to, O_CLOEXEC) == -1)
    return errno;
  if (pipe2 (from, O_CLOEXEC) == -1) {
    err = errno;
    close (to[0]);
    close (to[1]);
    return err;
  }
  err = start_child (to[0], from[1]);
  close (to[0]);
  close (from[1]);
  /* A child that does not take all of it has no right answer either. */
  if (err == 0)
    (void) send_request (to[1], source, arch, options);
  close (to[1]);
  if (err == 0) {
    *all = read_all (from[0], len);
    *status = reap_child ();
  }
  close (from[0]);
  return err;
}

/* 0, or -1 reported, in one line. */
static int
take_answer (char *all, size_t len, int status, void **code, size_t *code_len)
{
  const size_t head = sizeof (struct frame);
  char why[100];

  if (is_forbidden ())
    log_notice ("the process that compiled a kernel did not end in time: it "
                "was killed");
  else if (all && len > 0 && !check_frame (all, len, why, sizeof why))
    log_error ("the process that compiles kernels gave no right answer: %s",
               why);
  else if (all == NULL || len <= head || status != 0)
    log_error ("the process that compiled a kernel failed (status %#x)",
               status);
  else {
    *code_len = len - head;
    *code = memmove (all, all + head, *code_len);
    return 0;
  }
  return -1;
}

int
compiler_run (const char *source, int arch, const char *const *options,
              void **code, size_t *len)
{
  int err, status = 0, r = -1;
  size_t all_len = 0;
  void *all;

  if (child_argv == NULL)
    return compiler_here (source, arch, options, code, len);
  *code = NULL;
  if (!compiler_can_run ())
    return -1;
  {
    ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&turn);

    err = talk (source, arch, options, &all, &all_len, &status);
  }
  if (err == ECANCELED)
    log_debug ("no kernel is compiled any more");
  else if (err)
    log_error ("%s can't be run to compile: %s", child_argv[0],
               strerror (err));
  else
    r = take_answer (all, all_len, status, code, len);
  if (r == -1)
    free (all);
  return r;
}
