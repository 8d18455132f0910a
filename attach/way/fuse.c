/* gpuraid: a server as a loop device over nbdfuse, where the kernel has no nbd
 * driver.
 *
 * nbdfuse does not connect again: if its server ends, all that was not flushed
 * is lost.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attach/device/module.h"
#include "attach/way/way.h"
#include "common/bits.h"
#include "common/cleanup.h"
#include "common/log.h"

#define START_MS 60000
#define END_MS 10000
#define STEP_MS 50
#define HELPER_FD 9             /* its lock, by which it is known */

bool
fuse_is_there (void)
{
  static const char *const devices[] = { "/dev/fuse", "/dev/loop-control" };

  module_load ("fuse");
  module_load ("loop");
  for (size_t i = 0; i < ARRAY_LEN (devices); i++)
    if (access (devices[i], F_OK) == -1) {
      log_error ("no kernel module nbd, and no %s for nbdfuse", devices[i]);
      return false;
    }
  return true;
}

static void
pause_ms (int ms)
{
  const struct timespec t = { .tv_nsec = ms * 1000000L };

  nanosleep (&t, NULL);
}

/* The URI with the name of the export, which it may not have.  The caller frees
 * it; NULL: no memory.
 */
static char *
name_export (const char *uri, const char *export)
{
  const char *path = strstr (uri, "://") + 3;
  const char *rest = path + strcspn (path, "?");
  char *named;

  path += strcspn (path, "/?");
  if (rest - path > 1 || export[0] == '\0')
    return strdup (uri);
  return asprintf (&named, "%.*s/%s%s", (int) (path - uri), uri, export,
                   rest) == -1 ? NULL : named;
}

/* In the child.  It ends with what it serves, so signals to a group of
 * processes, as systemd sends, are not for it.
 */
static void
run_nbdfuse (const struct owner *o, const char *file, int log, int lock)
{
  const int null = open ("/dev/null", O_RDWR);
  sigset_t none;

  sigemptyset (&none);
  signal (SIGTERM, SIG_IGN);
  signal (SIGINT, SIG_IGN);
  signal (SIGHUP, SIG_IGN);
  signal (SIGPIPE, SIG_DFL);
  sigprocmask (SIG_SETMASK, &none, NULL);
  setsid ();
  dup2 (null, STDIN_FILENO);
  dup2 (log, STDOUT_FILENO);
  dup2 (log, STDERR_FILENO);
  if (lock == HELPER_FD)
    fcntl (lock, F_SETFD, 0);
  else
    dup2 (lock, HELPER_FD);
  closefrom (HELPER_FD + 1);
  execlp ("nbdfuse", "nbdfuse", file, name_export (o->request->uri,
                                                   o->export.name), NULL);
  fprintf (stderr, "nbdfuse: %s\n", errno == ENOENT ? "is not installed"
           : strerror (errno));
  _exit (127);
}

static void
say_log (const struct owner *o)
{
  char path[PATH_MAX], line[512], last[512] = "it ended";
  FILE *fp = fopen (state_path (&o->state, "log", path), "re");

  while (fp && fgets (line, sizeof line, fp))
    memcpy (last, line, sizeof last);
  last[strcspn (last, "\n")] = '\0';
  if (fp)
    fclose (fp);
  log_error ("%s: %s%s", o->request->uri,
             strncmp (last, "nbdfuse", 7) == 0 ? "" : "nbdfuse: ", last);
}

/* 0, or -1 reported. */
static int
start_nbdfuse (struct owner *o, const char *file)
{
  char path[PATH_MAX];
  CLEANUP_CLOSE int log = open (state_path (&o->state, "log", path),
                                O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
                                0644);
  CLEANUP_CLOSE int lock = open (state_path (&o->state, "helper", path),
                                 O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  char pid[16];

  if (log == -1 || lock == -1 || flock (lock, LOCK_EX | LOCK_NB) == -1) {
    log_error ("%s: %m", path);
    return -1;
  }
  o->helper = fork ();
  if (o->helper == 0)
    run_nbdfuse (o, file, log, lock);
  if (o->helper == -1) {
    log_error ("fork: %m");
    o->helper = 0;
    return -1;
  }
  snprintf (pid, sizeof pid, "%d", o->helper);
  if (state_write (&o->state, "pid", pid) == -1)
    return -1;
  for (int ms = 0; access (file, F_OK) == -1; ms += STEP_MS) {
    if (waitpid (o->helper, NULL, WNOHANG) == o->helper) {
      o->helper = 0;
      say_log (o);
      return -1;
    }
    if (ms > START_MS) {
      log_error ("%s: nbdfuse did not mount it in time", o->request->uri);
      return -1;
    }
    pause_ms (STEP_MS);
  }
  return 0;
}

/* The device has the file; nothing else needs to see the folder.  To remove it
 * ends the mount also in name spaces that began meanwhile.
 */
static int
hide (const char *folder)
{
  if (umount2 (folder, MNT_DETACH) == 0 && rmdir (folder) == 0)
    return 0;
  log_error ("%s: %m", folder);
  return -1;
}

int
fuse_attach (struct owner *o)
{
  char folder[PATH_MAX], file[PATH_MAX + 8];
  int fd = -1, r = -1;
  bool readonly = false;

  state_path (&o->state, "fuse", folder);
  snprintf (file, sizeof file, "%s/nbd", folder);
  if (mkdir (folder, 0700) == -1) {
    log_error ("mkdir: %s: %m", folder);
    return -1;
  }
  if (start_nbdfuse (o, file) == 0) {
    fd = open (file, O_RDWR | O_CLOEXEC);
    if (fd == -1 && (errno == EACCES || errno == EROFS)) {
      readonly = true;
      fd = open (file, O_RDONLY | O_CLOEXEC);
    }
    if (fd == -1)
      log_error ("%s: %m", file);
    else
      r = block_make_loop (&o->state.device, fd, readonly);
    if (fd >= 0)
      close (fd);
  }
  /* It may be mounted, or about to be. */
  if (r == -1 && o->helper)
    kill (o->helper, SIGKILL);
  if (r == 0)
    r = state_note_device (&o->state);
  if (r == 0)
    return hide (folder);
  umount2 (folder, MNT_DETACH);
  rmdir (folder);
  return -1;
}

void
fuse_look (struct state *s)
{
  if (!state_has_helper (s))
    state_note_lost (s, "nbdfuse ended, and with it what was not flushed");
}

void
fuse_ended (struct owner *o)
{
  o->helper = 0;
  fuse_look (&o->state);
  log_error ("%s: nbdfuse has ended: /dev/%s has no server any more",
             o->state.name, o->state.device.name);
}

static bool
has_ended (struct state *s, pid_t helper)
{
  return (helper && waitpid (helper, NULL, WNOHANG) == helper) ||
    !state_has_helper (s);
}

/* Is it the one that was started?  A number can be used again, but only what
 * was started there has the lock.
 */
static bool
is_ours (const struct state *s, pid_t pid)
{
  char path[PATH_MAX], fd[64];
  struct stat a, b;

  snprintf (fd, sizeof fd, "/proc/%d/fd/%d", pid, HELPER_FD);
  return pid > 1 && stat (state_path (s, "helper", path), &a) == 0 &&
    stat (fd, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* What it had was flushed before the device was detached.  It ends by itself,
 * unless its server does not answer.
 */
void
fuse_end (struct state *s, pid_t helper)
{
  char text[STATE_TEXT_LEN];
  pid_t pid = helper;

  if (pid == 0) {
    state_read_text (s, "pid", text);
    pid = atoi (text);
  }
  for (int ms = 0; ms < END_MS; ms += STEP_MS) {
    if (has_ended (s, helper))
      return;
    pause_ms (STEP_MS);
  }
  if (is_ours (s, pid))
    kill (pid, SIGKILL);
  for (int ms = 0; ms < END_MS && !has_ended (s, helper); ms += STEP_MS)
    pause_ms (STEP_MS);
}
