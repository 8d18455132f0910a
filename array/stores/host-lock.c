/* gpuraid: of the servers on one host, one has an array open for writing.
 *
 * A socket has no shared lock.  So there are several names for each array: a
 * writer takes all of them, a reader takes one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "array/stores/copies.h"
#include "array/stores/host-lock.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/plant.h"
#include "raidmap/uuid.h"

#define NR_PLACES 8u
#define FOLDER "/run/gpuraid"
#define LOCKS FOLDER "/lock"

/* The files of a process that was killed are closed a moment later. */
#define WAIT_MS 500u
#define PAUSE_MS 20u

struct host_lock {
  uuid_bytes uuid;
  int place[NR_PLACES];         /* bound sockets, or -1 */
  int file;                     /* locked, or -1 */
};

/* ---- sockets ------------------------------------------------------------- */

static socklen_t
place_name (const uuid_bytes *uuid, unsigned n, struct sockaddr_un *addr)
{
  char text[UUID_TEXT_LEN];
  int len;

  *addr = (struct sockaddr_un) { .sun_family = AF_UNIX };
  len = snprintf (addr->sun_path + 1, sizeof addr->sun_path - 1,
                  "gpuraid/%s/%u", uuid_text (uuid, text), n);
  return offsetof (struct sockaddr_un, sun_path) + 1 + len;
}

/* 0, or an errno: EADDRINUSE if it is taken. */
static int
take_place (struct host_lock *l, unsigned n)
{
  struct sockaddr_un addr;
  const socklen_t len = place_name (&l->uuid, n, &addr);
  int err;

  l->place[n] = socket (AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (l->place[n] == -1)
    return errno;
  if (bind (l->place[n], (struct sockaddr *) &addr, len) == 0)
    return 0;
  err = errno;
  close (l->place[n]);
  l->place[n] = -1;
  return err;
}

static int
take_places (struct host_lock *l, bool readonly)
{
  int err = 0;

  for (unsigned n = 0; n < NR_PLACES; n++) {
    err = take_place (l, n);
    if (readonly ? err != EADDRINUSE : err)
      break;
  }
  return err;
}

static bool
place_is_taken (const uuid_bytes *uuid, unsigned n)
{
  CLEANUP_CLOSE int fd = socket (AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  struct sockaddr_un addr;
  const socklen_t len = place_name (uuid, n, &addr);

  return fd != -1 && connect (fd, (struct sockaddr *) &addr, len) == 0;
}

/* ---- the file ------------------------------------------------------------ */

#define PATH_LEN (sizeof LOCKS + UUID_TEXT_LEN)

static const char *
file_path (const uuid_bytes *uuid, char path[PATH_LEN])
{
  char text[UUID_TEXT_LEN];

  snprintf (path, PATH_LEN, LOCKS "/%s", uuid_text (uuid, text));
  return path;
}

static int
lock_file (int fd, short type)
{
  struct flock fl = { .l_type = type, .l_whence = SEEK_SET };

  return fcntl (fd, F_OFD_SETLK, &fl) == 0 ? 0 : errno;
}

/* 0, also where there can be no file; or EAGAIN if it is locked, or was removed
 * by the one that had it locked.
 */
static int
take_file (struct host_lock *l, bool readonly)
{
  char path[PATH_LEN];
  struct stat st;
  int err;

  if ((mkdir (FOLDER, 0755) == -1 && errno != EEXIST) ||
      (mkdir (LOCKS, 0700) == -1 && errno != EEXIST) ||
      (l->file = open (file_path (&l->uuid, path), O_RDWR | O_CREAT |
                       O_CLOEXEC | O_NOFOLLOW, 0600)) == -1) {
    log_debug ("no lock file in %s: %m", LOCKS);
    return 0;
  }
  err = lock_file (l->file, readonly ? F_RDLCK : F_WRLCK);
  if (err == 0 && fstat (l->file, &st) == 0 && st.st_nlink > 0)
    return 0;
  close (l->file);
  l->file = -1;
  return err == 0 || err == EACCES ? EAGAIN : err;
}

static bool
file_is_locked (const uuid_bytes *uuid)
{
  char path[PATH_LEN];
  CLEANUP_CLOSE int fd = open (file_path (uuid, path), O_RDWR | O_CLOEXEC |
                               O_NOFOLLOW);
  struct flock fl = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

  return fd != -1 && fcntl (fd, F_OFD_GETLK, &fl) == 0 && fl.l_type != F_UNLCK;
}

/* ---- both ---------------------------------------------------------------- */

static void
let_go (struct host_lock *l)
{
  char path[PATH_LEN];

  /* Not while others read. */
  if (l->file != -1) {
    if (lock_file (l->file, F_WRLCK) == 0)
      unlink (file_path (&l->uuid, path));
    close (l->file);
    l->file = -1;
  }
  for (unsigned n = 0; n < NR_PLACES; n++)
    if (l->place[n] != -1) {
      close (l->place[n]);
      l->place[n] = -1;
    }
}

void
host_lock_free (struct host_lock *l)
{
  if (l == NULL)
    return;
  let_go (l);
  free (l);
}

static int
try (struct host_lock *l, bool readonly)
{
  int err = take_places (l, readonly);

  if (err == 0)
    err = take_file (l, readonly);
  if (err)
    let_go (l);
  return err;
}

struct host_lock *
host_lock_take (const uuid_bytes *uuid, bool readonly)
{
  const struct timespec pause = { .tv_nsec = PAUSE_MS * 1000000L };
  struct host_lock *l = calloc (1, sizeof *l);
  int err;

  if (l == NULL) {
    log_error ("calloc: %m");
    return NULL;
  }
  l->uuid = *uuid;
  l->file = -1;
  for (unsigned n = 0; n < NR_PLACES; n++)
    l->place[n] = -1;
  if (PLANTED ("host-unlocked"))
    return l;
  for (unsigned waited = 0;; waited += PAUSE_MS) {
    char text[UUID_TEXT_LEN];

    err = try (l, readonly);
    if (err == 0)
      return l;
    if (err != EADDRINUSE && err != EAGAIN) {
      errno = err;
      log_error ("can't lock the array: %m");
      break;
    }
    if (waited >= WAIT_MS) {
      log_error ("the array is in use by another server on this host, maybe "
                 "through other names of its members: stop it there (gpuraid "
                 "stop; its uuid is %s)", uuid_text (uuid, text));
      break;
    }
    nanosleep (&pause, NULL);
  }
  free (l);
  return NULL;
}

int
host_lock_members (struct member *const *m, unsigned nr,
                   struct host_lock **l)
{
  CLEANUP_FREE struct found *f = calloc (1, sizeof *f);
  CLEANUP_FREE uuid_bytes *uuid = calloc (nr + 1, sizeof *uuid);
  unsigned nr_uuids = 0;

  *l = NULL;
  if (f == NULL || uuid == NULL) {
    log_error ("calloc: %m");
    return -1;
  }
  for (unsigned i = 0; i < nr; i++) {
    const struct superblock *sb =
      copies_read (m[i], f, NULL) == 0 ? found_newest (f) : NULL;

    if (sb)
      uuid[nr_uuids++] = sb->array_uuid;
  }
  if (!uuid_most (uuid, nr_uuids, &uuid[nr]))
    return 0;
  *l = host_lock_take (&uuid[nr], m[0]->readonly);
  return *l ? 0 : -1;
}

bool
host_lock_covers (const struct host_lock *l, const uuid_bytes *uuid)
{
  if (l && uuid_equal (&l->uuid, uuid))
    return true;
  log_error ("the members were changed while they were opened: try again");
  return false;
}

bool
host_lock_held (const uuid_bytes *uuid)
{
  for (unsigned n = 0; n < NR_PLACES; n++)
    if (place_is_taken (uuid, n))
      return true;
  return file_is_locked (uuid);
}
