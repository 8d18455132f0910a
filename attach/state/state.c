/* gpuraid: the state of an attached server.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "attach/state/state.h"
#include "common/bits.h"
#include "common/cleanup.h"
#include "common/log.h"

#define TAKE_TRIES 20
#define LOCK_FD 500

static const char *const files[] = {
  "control", "server", "uri", "export", "what", "how", "device", "id", "pid",
  "log-from", "lost", "log", "mountpoint", "helper", "lock",
};

char *
state_path (const struct state *s, const char *file, char *path)
{
  snprintf (path, PATH_MAX, "%s/%s", s->dir, file);
  return path;
}

int
state_lock_all (const char *rundir)
{
  char path[PATH_MAX];
  int fd;

  if (mkdir (rundir, 0755) == -1 && errno != EEXIST) {
    log_error ("mkdir: %s: %m", rundir);
    return -1;
  }
  snprintf (path, sizeof path, "%s/attached", rundir);
  if (mkdir (path, 0755) == -1 && errno != EEXIST) {
    log_error ("mkdir: %s: %m", path);
    return -1;
  }
  snprintf (path, sizeof path, "%s/attached.lock", rundir);
  fd = open (path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd >= 0)
    while (flock (fd, LOCK_EX) == -1)
      if (errno != EINTR) {
        close (fd);
        fd = -1;
        break;
      }
  if (fd == -1)
    log_error ("%s: %m", path);
  return fd;
}

void
state_read_text (const struct state *s, const char *file,
                 char buf[STATE_TEXT_LEN])
{
  char path[PATH_MAX];
  FILE *fp = fopen (state_path (s, file, path), "re");

  if (fp == NULL || fgets (buf, STATE_TEXT_LEN, fp) == NULL)
    buf[0] = '\0';
  buf[strcspn (buf, "\n")] = '\0';
  if (fp)
    fclose (fp);
}

int
state_write (const struct state *s, const char *file, const char *text)
{
  char path[PATH_MAX], new[PATH_MAX + 4];
  FILE *fp;
  bool ok;

  state_path (s, file, path);
  snprintf (new, sizeof new, "%s.new", path);
  fp = fopen (new, "we");
  ok = fp && fprintf (fp, "%s\n", text) > 0;
  ok = fp && fclose (fp) == 0 && ok;
  if (ok && rename (new, path) == 0)
    return 0;
  log_error ("%s: %m", path);
  unlink (new);
  return -1;
}

static int
set_dir (struct state *s, const char *rundir, const char *name)
{
  memset (s, 0, sizeof *s);
  s->device.fd = -1;
  snprintf (s->name, sizeof s->name, "%s", name);
  if (asprintf (&s->dir, "%s/attached/%s", rundir, name) != -1)
    return 0;
  s->dir = NULL;
  return -1;
}

int
state_read (struct state *s, const char *rundir, const char *name)
{
  char text[STATE_TEXT_LEN];

  if (set_dir (s, rundir, name) == -1 || access (s->dir, F_OK) == -1)
    return -1;
  state_read_text (s, "how", text);
  s->kernel = strcmp (text, "kernel") == 0;
  state_read_text (s, "device", text);
  snprintf (s->device.name, sizeof s->device.name, "%.31s",
            strncmp (text, "/dev/", 5) == 0 ? text + 5 : "");
  state_read_text (s, "id", text);
  snprintf (s->device.id, sizeof s->device.id, "%.63s", text);
  return 0;
}

void
state_free (struct state *s)
{
  if (s->device.fd >= 0)
    close (s->device.fd);
  s->device.fd = -1;
  free (s->dir);
  s->dir = NULL;
}

static int
is_name (const struct dirent *d)
{
  return d->d_name[0] != '.';
}

char **
state_list (const char *rundir, unsigned *nr)
{
  char path[PATH_MAX];
  struct dirent **d = NULL;
  char **list;
  int n;

  *nr = 0;
  snprintf (path, sizeof path, "%s/attached", rundir);
  n = scandir (path, &d, is_name, alphasort);
  if (n == -1 && errno != ENOENT) {
    log_error ("%s: %m", path);
    return NULL;
  }
  list = calloc (n > 0 ? n : 1, sizeof *list);
  for (int i = 0; i < n; i++) {
    if (list && (list[*nr] = strdup (d[i]->d_name)))
      ++*nr;
    free (d[i]);
  }
  free (d);
  if (list == NULL)
    log_error ("calloc: %m");
  return list;
}

/* ---- owners ---- */

static bool
is_locked (const struct state *s, const char *file)
{
  char path[PATH_MAX];
  CLEANUP_CLOSE int fd = open (state_path (s, file, path), O_RDWR | O_CLOEXEC);

  return fd >= 0 && flock (fd, LOCK_SH | LOCK_NB) == -1;
}

bool
state_has_owner (const struct state *s)
{
  return is_locked (s, "lock");
}

bool
state_has_helper (const struct state *s)
{
  return is_locked (s, "helper");
}

bool
state_is_unmounted (const struct state *s)
{
  return is_locked (s, "mountpoint");
}

bool
state_is_live (const struct state *s)
{
  return state_has_owner (s) || state_has_helper (s) ||
    (s->device.name[0] && block_is_there (&s->device));
}

/* If this process is killed, the kernel closes its files from the last one on.
 * To close the device may wait for the server, and another process is to go on
 * with it then.  So the lock comes after it.
 */
static int
move_up (int fd)
{
  const int up = fd >= 0 ? fcntl (fd, F_DUPFD_CLOEXEC, LOCK_FD) : -1;

  if (fd >= 0)
    close (fd);
  return up;
}

/* A look at it locks it for a moment, too (is_locked). */
int
state_take (const struct state *s)
{
  const struct timespec pause = { .tv_nsec = 10000000 };
  char path[PATH_MAX];
  const int fd = move_up (open (state_path (s, "lock", path),
                                O_RDWR | O_CREAT | O_CLOEXEC, 0600));

  for (int tries = 0; fd >= 0; tries++) {
    if (flock (fd, LOCK_EX | LOCK_NB) == 0)
      return fd;
    if (tries == TAKE_TRIES)
      break;
    nanosleep (&pause, NULL);
  }
  if (fd >= 0)
    close (fd);
  return -1;
}

int
state_make (struct state *s, const char *rundir, const char *name, bool kernel)
{
  int fd;

  if (set_dir (s, rundir, name) == -1 ||
      (mkdir (s->dir, 0755) == -1 && errno != EEXIST)) {
    log_error ("mkdir: %s: %m", s->dir ? s->dir : name);
    return -1;
  }
  s->kernel = kernel;
  fd = state_take (s);
  if (fd == -1)
    log_error ("%s/lock: %m", s->dir);
  else if (state_write (s, "how", kernel ? "kernel" : "fuse") == 0)
    return fd;
  if (fd >= 0)
    close (fd);
  state_remove (s);
  return -1;
}

/* Under another name first, so that a new one can have this. */
int
state_remove (const struct state *s)
{
  char path[PATH_MAX], file[PATH_MAX];
  struct state gone = { .dir = path };
  const char *slash = strrchr (s->dir, '/');

  snprintf (path, sizeof path, "%.*s/.%s.%d", (int) (slash - s->dir), s->dir,
            slash + 1, getpid ());
  if (rename (s->dir, path) == -1) {
    if (errno == ENOENT)
      return 0;
    log_error ("rename: %s: %m", s->dir);
    return -1;
  }
  for (size_t i = 0; i < ARRAY_LEN (files); i++) {
    unlink (state_path (&gone, files[i], file));
    strcat (file, ".new");
    unlink (file);
  }
  rmdir (state_path (&gone, "fuse", file));
  if (rmdir (path) == -1)
    log_notice ("rmdir: %s: %m", path);
  return 0;
}

/* ---- what is noted ---- */

void
state_note_lost (struct state *s, const char *what)
{
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  char text[STATE_TEXT_LEN], when[32];
  const time_t now = time (NULL);
  struct tm tm;

  pthread_mutex_lock (&lock);
  state_read_text (s, "lost", text);
  if (text[0] == '\0') {
    strftime (when, sizeof when, "%Y-%m-%d %H:%M:%S", localtime_r (&now, &tm));
    snprintf (text, sizeof text, "%s (%s)", what, when);
    state_write (s, "lost", text);
  }
  pthread_mutex_unlock (&lock);
}

int
state_note_device (const struct state *s)
{
  char path[BLOCK_PATH_LEN];

  return state_write (s, "id", s->device.id) == -1 ? -1
    : state_write (s, "device", block_path (&s->device, path));
}
