/* gpuraid: hand a source to a child, and take machine code from it.
 *
 * Both sides are the same program, so what goes through the pipes is plain
 * memory: a struct request, the options and the source, each with its 0;
 * back comes the code and nothing else.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <fcntl.h>
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
#include "common/write-all.h"
#include "gpu/compiler-child.h"
#include "gpu/compiler.h"

extern char **environ;

#define MAX_LEN ((size_t) 256 << 20)
#define MAX_OPTIONS 30

struct request {
  int arch;
  uint32_t nr_options;
  size_t len;                   /* of all that follows */
};

static const char *const *child_argv;

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

/* ---- the child ------------------------------------------------------- */

void
compiler_child_main (void)
{
  const char *option[MAX_OPTIONS + 1] = { NULL };
  struct request r;
  size_t len;
  char *all, *p;
  void *code;

  prctl (PR_SET_PDEATHSIG, SIGKILL);
  all = read_all (STDIN_FILENO, &len);
  if (all == NULL || len < sizeof r)
    _exit (1);
  memcpy (&r, all, sizeof r);
  if (r.len != len - sizeof r || r.len == 0 || all[len-1] != '\0' ||
      r.nr_options > MAX_OPTIONS)
    _exit (1);
  p = all + sizeof r;
  for (uint32_t i = 0; i < r.nr_options; i++) {
    option[i] = p;
    p += strlen (p) + 1;
    if (p >= all + len)
      _exit (1);
  }
  if (compiler_run (p, r.arch, option, &code, &len) == -1 ||
      write_all (STDOUT_FILENO, code, len) == -1)
    _exit (1);
  _exit (0);
}

/* ---- the server ------------------------------------------------------ */

/* All of the environment, and one more. */
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

static int
start_child (int in, int out, pid_t *pid)
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
  posix_spawnattr_init (&attr);
  posix_spawnattr_setsigmask (&attr, &none);
  posix_spawnattr_setflags (&attr, POSIX_SPAWN_SETSIGMASK);
  r = posix_spawn (pid, child_argv[0], &actions, &attr,
                   (char *const *) child_argv, env);
  posix_spawnattr_destroy (&attr);
  posix_spawn_file_actions_destroy (&actions);
  return r;
}

static bool
send_request (int fd, const char *source, int arch, const char *const *options)
{
  struct request r = { .arch = arch, .len = strlen (source) + 1 };

  for (; options && options[r.nr_options] && r.nr_options < MAX_OPTIONS;
       r.nr_options++)
    r.len += strlen (options[r.nr_options]) + 1;
  if (write_all (fd, &r, sizeof r) == -1)
    return false;
  for (uint32_t i = 0; i < r.nr_options; i++)
    if (write_all (fd, options[i], strlen (options[i]) + 1) == -1)
      return false;
  return write_all (fd, source, strlen (source) + 1) == 0;
}

/* false: *err says why there was no child, or else *status, of waitpid, what
 * became of it.  *code may be set either way.
 */
static bool
talk (const char *source, int arch, const char *const *options,
      void **code, size_t *len, int *err, int *status)
{
  int to[2], from[2];
  pid_t pid;
  bool ok;

  if (pipe2 (to, O_CLOEXEC) == -1) {
    *err = errno;
    return false;
  }
  if (pipe2 (from, O_CLOEXEC) == -1) {
    *err = errno;
    close (to[0]);
    close (to[1]);
    return false;
  }
  *err = start_child (to[0], from[1], &pid);
  close (to[0]);
  close (from[1]);
  ok = *err == 0 && send_request (to[1], source, arch, options);
  close (to[1]);
  *code = *err == 0 ? read_all (from[0], len) : NULL;
  close (from[0]);
  if (*err)
    return false;
  while (waitpid (pid, status, 0) == -1 && errno == EINTR)
    ;
  return ok && *code && *len > 0 && *status == 0;
}

int
compiler_child_run (const char *source, int arch, const char *const *options,
                    void **code, size_t *len)
{
  int err = 0, status = 0;

  if (child_argv == NULL)
    return 1;
  *code = NULL;
  if (talk (source, arch, options, code, len, &err, &status))
    return 0;
  free (*code);
  *code = NULL;
  if (err)
    log_error ("%s can't be run to compile: %s", child_argv[0],
               strerror (err));
  else
    log_error ("the process that compiled a kernel failed (status %#x)",
               status);
  return -1;
}
