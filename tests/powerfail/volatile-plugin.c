/* gpuraid: tests: an nbdkit plugin whose disks lose what was not flushed.
 *
 *   nbdkit volatile-plugin.so dir=DIR control=SOCKET
 *
 * Each file of the folder is an export, found by its name when it is first
 * asked for.  disk.c decides what a failure of the power leaves in it; this
 * file has nbdkit's callbacks, and the control socket, which takes lines and
 * answers each with a line:
 *
 *   off SEED drop|some|keep NAME...   the power of that disk fails, and of
 *                                     others after it, in the same moment:
 *                                     I/O gets EIO
 *   die SEED drop|some|keep NAME...   likewise, and this server ends, with no
 *                                     answer, to this or to other requests
 *   on NAME...                        it is back
 *   blank NAME...                     without power: as new
 *   delay USEC                        requests take up to this much longer
 *   tear USEC                         likewise a read, in the middle: a write
 *                                     beside it is seen in part, down to the
 *                                     byte, as with page caches
 *   flushes fail|work                 of all disks
 *   stats NAME                        numbers: see struct disk_stats
 *
 * The answer begins with "ok" or "error".
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include "common/cleanup.h"
#include "tests/powerfail/disk.h"

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL

static char *dir, *control;
static int listen_fd = -1;
static _Atomic unsigned delay, tear;    /* microseconds, at most */
static atomic_bool flushes_fail;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list disks;               /* with lock held; never shorter */
/* Requests read; a failure of the power, which may be of several disks,
 * writes.
 */
static pthread_rwlock_t power = PTHREAD_RWLOCK_INITIALIZER;

/* ---- the disks ------------------------------------------------------- */

static struct disk *
open_new (const char *name)
{
  CLEANUP_FREE char *path = NULL;
  struct disk *d;

  if (name[0] == '\0' || name[0] == '.' || strchr (name, '/')) {
    nbdkit_error ("no such disk");
    return NULL;
  }
  if (asprintf (&path, "%s/%s", dir, name) == -1) {
    path = NULL;
    nbdkit_error ("asprintf: %m");
    return NULL;
  }
  d = disk_open (path, name);
  if (d == NULL) {
    nbdkit_error ("open: %s: %m", path);
    return NULL;
  }
  list_append (&disks, &d->link);
  return d;
}

static struct disk *
find_disk (const char *name)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&lock);
  list_for_each (l, &disks) {
    struct disk *d = list_item (l, struct disk, link);

    if (strcmp (d->name, name) == 0)
      return d;
  }
  return open_new (name);
}

/* ---- the control socket ---------------------------------------------- */

static int
find_mode (const char *name, enum power_mode *mode)
{
  static const char *const names[] = {
    [POWER_DROP] = "drop", [POWER_SOME] = "some", [POWER_KEEP] = "keep",
  };

  for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strcmp (name, names[i]) == 0) {
      *mode = i;
      return 0;
    }
  return EINVAL;
}

/* For each disk that is named in the rest of the line. */
static int
each_disk (char **rest, int (*call) (struct disk *))
{
  const char *name;

  while ((name = strtok_r (NULL, " ", rest)) != NULL) {
    struct disk *d = find_disk (name);
    const int err = d ? call (d) : ENOENT;

    if (err)
      return err;
  }
  return 0;
}

static int
all_off (char **rest, uint64_t seed)
{
  const char *mode_name, *name;

  while ((mode_name = strtok_r (NULL, " ", rest)) != NULL) {
    struct disk *d;
    enum power_mode mode;
    int err;

    name = strtok_r (NULL, " ", rest);
    if (name == NULL || find_mode (mode_name, &mode))
      return EINVAL;
    d = find_disk (name);
    err = d ? disk_off (d, mode, seed) : ENOENT;
    if (err)
      return err;
    seed += UINT64_C (0x2545f4914f6cdd1d);  /* each disk loses others */
  }
  return 0;
}

static int
command_off (char **rest, bool die)
{
  const char *seed = strtok_r (NULL, " ", rest);
  int err;

  if (seed == NULL)
    return EINVAL;
  pthread_rwlock_wrlock (&power);
  err = all_off (rest, strtoull (seed, NULL, 10));
  if (die && err == 0)
    _exit (0);
  pthread_rwlock_unlock (&power);
  return err;
}

static int
command_stats (char **rest, char *text, size_t len)
{
  const char *name = strtok_r (NULL, " ", rest);
  struct disk *d = name ? find_disk (name) : NULL;
  struct disk_stats s;

  if (d == NULL)
    return ENOENT;
  s = disk_stats (d);
  snprintf (text, len, " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
            " %" PRIu64 " %" PRIu64, s.writes, s.flushes, s.unflushed, s.kept,
            s.dropped, s.torn);
  return 0;
}

static int
command (char *line, char *text, size_t len)
{
  char *rest;
  const char *word = strtok_r (line, " ", &rest);

  text[0] = '\0';
  if (word == NULL)
    return EINVAL;
  if (strcmp (word, "off") == 0)
    return command_off (&rest, false);
  if (strcmp (word, "die") == 0)
    return command_off (&rest, true);
  if (strcmp (word, "on") == 0)
    return each_disk (&rest, disk_on);
  if (strcmp (word, "blank") == 0)
    return each_disk (&rest, disk_blank);
  if (strcmp (word, "stats") == 0)
    return command_stats (&rest, text, len);
  if (strcmp (word, "delay") == 0 && (word = strtok_r (NULL, " ", &rest))) {
    delay = strtoul (word, NULL, 10);
    return 0;
  }
  if (strcmp (word, "tear") == 0 && (word = strtok_r (NULL, " ", &rest))) {
    tear = strtoul (word, NULL, 10);
    return 0;
  }
  if (strcmp (word, "flushes") == 0 && (word = strtok_r (NULL, " ", &rest))) {
    flushes_fail = strcmp (word, "fail") == 0;
    return 0;
  }
  return EINVAL;
}

static void
talk (FILE *in, FILE *out)
{
  CLEANUP_FREE char *line = NULL;
  size_t room = 0;

  while (getline (&line, &room, in) != -1) {
    char text[200];
    int err;

    line[strcspn (line, "\n")] = '\0';
    err = command (line, text, sizeof text);
    if (err)
      fprintf (out, "error %s\n", strerror (err));
    else
      fprintf (out, "ok%s\n", text);
    if (fflush (out) == EOF)
      return;
  }
}

/* One client after the other. */
static void *
control_thread (void *unused)
{
  for (;;) {
    const int fd = accept (listen_fd, NULL, NULL);
    FILE *in, *out;

    if (fd == -1)
      continue;
    in = fdopen (fd, "r");
    out = fdopen (dup (fd), "w");
    if (in && out)
      talk (in, out);
    if (in)
      fclose (in);
    if (out)
      fclose (out);
  }
  return NULL;
}

/* ---- nbdkit ---------------------------------------------------------- */

static void
volatile_load (void)
{
  list_init (&disks);
}

static void
volatile_unload (void)
{
  struct list *l;

  while ((l = list_pop (&disks)) != NULL)
    disk_close (list_item (l, struct disk, link));
  free (dir);
  free (control);
}

static int
volatile_config (const char *key, const char *value)
{
  char **to = strcmp (key, "dir") == 0 ? &dir :
    strcmp (key, "control") == 0 ? &control : NULL;

  if (to == NULL) {
    nbdkit_error ("unknown parameter '%s'", key);
    return -1;
  }
  free (*to);
  *to = nbdkit_absolute_path (value);
  return *to ? 0 : -1;
}

static int
volatile_config_complete (void)
{
  if (dir && control)
    return 0;
  nbdkit_error ("dir= and control= are needed");
  return -1;
}

static int
volatile_get_ready (void)
{
  struct sockaddr_un addr = { .sun_family = AF_UNIX };

  if (strlen (control) >= sizeof addr.sun_path) {
    nbdkit_error ("%s: too long for a socket", control);
    return -1;
  }
  strcpy (addr.sun_path, control);
  listen_fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listen_fd == -1 ||
      bind (listen_fd, (struct sockaddr *) &addr, sizeof addr) == -1 ||
      listen (listen_fd, 4) == -1) {
    nbdkit_error ("socket: %s: %m", control);
    return -1;
  }
  return 0;
}

static int
volatile_after_fork (void)
{
  pthread_t thread;
  const int err = pthread_create (&thread, NULL, control_thread, NULL);

  if (err) {
    nbdkit_error ("pthread_create: %s", strerror (err));
    return -1;
  }
  pthread_detach (thread);
  return 0;
}

static void *
volatile_open (int readonly)
{
  const char *name = nbdkit_export_name ();

  return name ? find_disk (name) : NULL;
}

static int64_t
volatile_get_size (void *handle)
{
  const struct disk *d = handle;

  return d->size;
}

static int
volatile_block_size (void *handle, uint32_t *minimum, uint32_t *preferred,
                     uint32_t *maximum)
{
  *minimum = SECTOR;
  *preferred = 4096;
  *maximum = 0xffffffff;
  return 0;
}

static int
volatile_yes (void *handle)
{
  return 1;
}

static int
volatile_can_fua (void *handle)
{
  return NBDKIT_FUA_NATIVE;
}

/* Half of it before, half after the request is carried out: what was not
 * answered may be done or not.
 */
static void
pause_for (unsigned most)
{
  if (most)
    nbdkit_nanosleep (0, 1000 * (1 + (unsigned) random () % most));
}

static void
linger (void)
{
  pause_for (delay / 2);
}

static int
done (int err)
{
  linger ();
  if (err == 0)
    return 0;
  nbdkit_set_error (err);
  return -1;
}

static bool
is_aligned (uint64_t off, uint64_t len)
{
  return off % SECTOR == 0 && len % SECTOR == 0;
}

static int
volatile_pread (void *handle, void *buf, uint32_t len, uint64_t off,
                uint32_t flags)
{
  struct disk *d = handle;
  const unsigned life = disk_life (d);
  const uint32_t first = tear && len ? random () % len : 0;
  int err;

  pthread_rwlock_rdlock (&power);
  err = disk_read (d, life, buf, first, off);
  pthread_rwlock_unlock (&power);
  pause_for (tear);
  pthread_rwlock_rdlock (&power);
  if (err == 0)
    err = disk_read (d, life, (char *) buf + first, len - first, off + first);
  pthread_rwlock_unlock (&power);
  return done (err);
}

static int
change (struct disk *d, const void *buf, uint32_t len, uint64_t off,
        uint32_t flags)
{
  const unsigned life = disk_life (d);
  int err;

  if (!is_aligned (off, len))
    return done (EINVAL);
  linger ();
  pthread_rwlock_rdlock (&power);
  err = disk_write (d, life, buf, len, off, flags & NBDKIT_FLAG_FUA);
  pthread_rwlock_unlock (&power);
  return done (err);
}

static int
volatile_pwrite (void *handle, const void *buf, uint32_t len, uint64_t off,
                 uint32_t flags)
{
  return change (handle, buf, len, off, flags);
}

static int
volatile_zero (void *handle, uint32_t len, uint64_t off, uint32_t flags)
{
  return change (handle, NULL, len, off, flags);
}

static int
volatile_flush (void *handle, uint32_t flags)
{
  struct disk *d = handle;
  const unsigned life = disk_life (d);
  int err;

  linger ();
  pthread_rwlock_rdlock (&power);
  err = flushes_fail ? EIO : disk_flush (d, life);
  pthread_rwlock_unlock (&power);
  return done (err);
}

static struct nbdkit_plugin plugin = {
  .name = "volatile",
  .description = "disks that lose what was not flushed, for tests",
  .load = volatile_load,
  .unload = volatile_unload,
  .config = volatile_config,
  .config_complete = volatile_config_complete,
  .get_ready = volatile_get_ready,
  .after_fork = volatile_after_fork,
  .open = volatile_open,
  .get_size = volatile_get_size,
  .block_size = volatile_block_size,
  .can_multi_conn = volatile_yes,
  .can_write = volatile_yes,
  .can_flush = volatile_yes,
  .can_trim = volatile_yes,
  .can_zero = volatile_yes,
  .can_fast_zero = volatile_yes,
  .can_fua = volatile_can_fua,
  .pread = volatile_pread,
  .pwrite = volatile_pwrite,
  .zero = volatile_zero,
  .trim = volatile_zero,
  .flush = volatile_flush,
  .errno_is_preserved = 1,
};

extern struct nbdkit_plugin *plugin_init (void);
NBDKIT_REGISTER_PLUGIN (plugin)
