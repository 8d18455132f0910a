/* gpuraid: keep compiled kernels on disk.
 *
 * A file is a header, the whole key and the code.  Its name is a hash of the
 * key, which may have collisions, because the key in the file is compared.  The
 * file gets its name by a rename when it is complete, and is never changed.  A
 * crash of the machine may still leave a file with holes, which the checksum
 * detects.
 *
 * The folder may have other files: only regular files with names of the two
 * forms below are read, counted or deleted.  It is opened once, and no link in
 * it is followed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/bytes/crc32c.h"
#include "common/bytes/random.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/write-all.h"
#include "gpu/choice/store.h"

#define MAGIC "gpuraidK"
#define MAX_CODE_LEN ((uint64_t) 64 << 20)

/* Names of files: a prefix, 32 hex digits, and nothing else. */
#define PREFIX "gpuraid-kernel-"
#define TMP_PREFIX "gpuraid-tmp-"
#define NR_DIGITS 32
#define NAME_LEN 48

/* A temporary file this old was left by a process that died. */
#define TMP_OLD_S 3600

/* In the machine's own byte order: the files stay on this machine. */
struct header {
  char magic[8];
  uint32_t version;
  uint32_t key_len;
  uint64_t code_len;
  uint32_t crc;                 /* of what follows the header */
  uint32_t zero;
};

struct kernel_store {
  int fd;                       /* of the folder */
  uint64_t max_len;
};

/* ---- the folder ------------------------------------------------------ */

/* mkdir -p */
static int
make_folders (char *path)
{
  for (char *p = path + 1; (p = strchr (p, '/')) != NULL; p++) {
    *p = '\0';
    if (mkdir (path, 0700) == -1 && errno != EEXIST) {
      *p = '/';
      return -1;
    }
    *p = '/';
  }
  return mkdir (path, 0700) == -1 && errno != EEXIST ? -1 : 0;
}

/* root's environment may be that of a user of sudo or su.  Such a user must not
 * choose what runs on the device for root, and root must not leave files in
 * their folders.  For the same reason other users only use a home that they
 * own, and not that of root after setuid.
 */
static int
default_dir (char *path, size_t len)
{
  const char *xdg = getenv ("XDG_CACHE_HOME"), *home = getenv ("HOME");
  struct stat st;
  int n;

  if (geteuid () == 0)
    n = snprintf (path, len, "/var/cache/gpuraid");
  else if (xdg && xdg[0] == '/')
    n = snprintf (path, len, "%s/gpuraid", xdg);
  else if (home && home[0] == '/' && stat (home, &st) == 0 &&
           st.st_uid == geteuid ())
    n = snprintf (path, len, "%s/.cache/gpuraid", home);
  else
    return -1;
  return n < (int) len ? 0 : -1;
}

/* A user with write access to the folder, or to a file in it, decides what runs
 * on the device.
 */
static bool
is_ours_alone (const struct stat *st)
{
  return (st->st_uid == geteuid () || st->st_uid == 0) &&
    (st->st_mode & (S_IWGRP|S_IWOTH)) == 0;
}

/* -1 reported. */
static int
open_folder (char *path)
{
  size_t len = strlen (path);
  struct stat st;
  int fd;

  /* With a slash at the end a link would be followed. */
  while (len > 1 && path[len-1] == '/')
    path[--len] = '\0';
  fd = make_folders (path) == -1 ? -1
    : open (path, O_RDONLY|O_DIRECTORY|O_NOFOLLOW|O_CLOEXEC);
  if (fd >= 0 && fstat (fd, &st) == 0 && is_ours_alone (&st))
    return fd;
  if (fd == -1)
    log_notice ("%s: %m: compiled kernels are not kept", path);
  else {
    log_notice ("%s: others may write there: compiled kernels are not kept",
                path);
    close (fd);
  }
  return -1;
}

struct kernel_store *
kernel_store_open (const char *dir, uint64_t max_len)
{
  struct kernel_store *s;
  char path[PATH_MAX];

  if (dir == NULL ||
      (dir[0] == '\0' ? default_dir (path, sizeof path) == -1
       : snprintf (path, sizeof path, "%s", dir) >= (int) sizeof path))
    return NULL;
  s = calloc (1, sizeof *s);
  if (s == NULL)
    return NULL;
  s->max_len = max_len;
  s->fd = open_folder (path);
  if (s->fd >= 0)
    return s;
  kernel_store_close (s);
  return NULL;
}

void
kernel_store_close (struct kernel_store *s)
{
  if (s == NULL)
    return;
  if (s->fd >= 0)
    close (s->fd);
  free (s);
}

/* ---- one file -------------------------------------------------------- */

/* FNV-1a, 128 bits. */
static void
file_name (const void *key, size_t len, char name[NAME_LEN])
{
  const unsigned __int128 prime = ((unsigned __int128) 1 << 88) + 0x13b;
  unsigned __int128 h =
    ((unsigned __int128) UINT64_C (0x6c62272e07bb0142) << 64) +
    UINT64_C (0x62b821756295c58d);
  const unsigned char *p = key;

  for (size_t i = 0; i < len; i++)
    h = (h ^ p[i]) * prime;
  snprintf (name, NAME_LEN, PREFIX "%016" PRIx64 "%016" PRIx64,
            (uint64_t) (h >> 64), (uint64_t) h);
}

/* Any two are different.  0, or -1 reported. */
static int
tmp_name (char name[NAME_LEN])
{
  uint64_t r[2];

  if (random_bytes (r, sizeof r) == -1)
    return -1;
  snprintf (name, NAME_LEN, TMP_PREFIX "%016" PRIx64 "%016" PRIx64, r[0],
            r[1]);
  return 0;
}

/* Is it one of our names, with this prefix? */
static bool
is_name (const char *name, const char *prefix)
{
  const size_t len = strlen (prefix);

  return strncmp (name, prefix, len) == 0 &&
    strspn (name + len, "0123456789abcdef") == NR_DIGITS &&
    name[len + NR_DIGITS] == '\0';
}

static int
read_all (int fd, void *buf, size_t len)
{
  char *p = buf;

  while (len > 0) {
    ssize_t n = read (fd, p, len);

    if (n == -1 && errno == EINTR)
      continue;
    if (n <= 0)
      return -1;
    p += n;
    len -= n;
  }
  return 0;
}

/* Read the key in the file, and the code behind it, into *all. */
static int
read_file (int fd, size_t key_len, void **all, size_t *code_len)
{
  struct header h;
  struct stat st;
  uint64_t len;

  if (fstat (fd, &st) == -1 || !S_ISREG (st.st_mode) ||
      !is_ours_alone (&st) || read_all (fd, &h, sizeof h) == -1 ||
      memcmp (h.magic, MAGIC, sizeof h.magic) != 0 || h.version != 1 ||
      h.key_len != key_len || h.code_len > MAX_CODE_LEN)
    return -1;
  len = key_len + h.code_len;
  if ((uint64_t) st.st_size != sizeof h + len)
    return -1;
  *all = malloc (len);
  if (*all == NULL)
    return -1;
  if (read_all (fd, *all, len) == -1 || crc32c (*all, len) != h.crc) {
    free (*all);
    return -1;
  }
  *code_len = h.code_len;
  return 0;
}

int
kernel_store_get (struct kernel_store *s, const void *key, size_t key_len,
                  void **code, size_t *len)
{
  CLEANUP_CLOSE int fd = -1;
  char name[NAME_LEN];
  void *all;

  if (s == NULL)
    return -1;
  file_name (key, key_len, name);
  /* Do not wait for a writer, in case it is a pipe. */
  fd = openat (s->fd, name, O_RDONLY|O_CLOEXEC|O_NOFOLLOW|O_NONBLOCK);
  if (fd == -1)
    return -1;
  if (read_file (fd, key_len, &all, len) == -1) {
    log_debug ("%s: not a kernel that can be used", name);
    return -1;
  }
  if (memcmp (all, key, key_len) != 0) {
    free (all);
    return -1;
  }
  memmove (all, (char *) all + key_len, *len);
  *code = all;
  (void) futimens (fd, NULL);   /* it is in use: others are older */
  return 0;
}

void
kernel_store_remove (struct kernel_store *s, const void *key, size_t key_len)
{
  char name[NAME_LEN];

  if (s == NULL)
    return;
  file_name (key, key_len, name);
  (void) unlinkat (s->fd, name, 0);
}

/* ---- room ------------------------------------------------------------ */

struct found {
  char name[NAME_LEN];
  struct timespec when;
  uint64_t len;
};

static int
older_first (const void *p, const void *q)
{
  const struct found *a = p, *b = q;

  if (a->when.tv_sec != b->when.tv_sec)
    return a->when.tv_sec < b->when.tv_sec ? -1 : 1;
  return (a->when.tv_nsec > b->when.tv_nsec) -
    (a->when.tv_nsec < b->when.tv_nsec);
}

/* false: no memory. */
static bool
found_add (struct found **all, size_t *nr, const char *name,
           const struct stat *st)
{
  struct found *more = realloc (*all, (*nr + 1) * sizeof **all);

  if (more == NULL)
    return false;
  *all = more;
  more += (*nr)++;
  strcpy (more->name, name);
  more->when = st->st_mtim;
  more->len = st->st_size;
  return true;
}

/* All kernels in the folder; files left by a dead process of ours are deleted.
 */
static struct found *
list_folder (struct kernel_store *s, size_t *nr, uint64_t *total)
{
  int fd = openat (s->fd, ".", O_RDONLY|O_DIRECTORY|O_CLOEXEC);
  DIR *dir = fd >= 0 ? fdopendir (fd) : NULL;
  struct found *all = NULL;
  const struct dirent *e;
  struct stat st;

  *nr = *total = 0;
  if (dir == NULL) {
    if (fd >= 0)
      close (fd);
    return NULL;
  }
  while ((e = readdir (dir)) != NULL) {
    const bool is_tmp = is_name (e->d_name, TMP_PREFIX);

    if ((!is_tmp && !is_name (e->d_name, PREFIX)) ||
        fstatat (s->fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == -1 ||
        !S_ISREG (st.st_mode))
      continue;
    if (!is_tmp) {
      if (!found_add (&all, nr, e->d_name, &st))
        break;
      *total += st.st_size;
    }
    else if (time (NULL) - st.st_mtime > TMP_OLD_S)
      (void) unlinkat (s->fd, e->d_name, 0);
  }
  closedir (dir);
  return all;
}

static void
make_room (struct kernel_store *s)
{
  CLEANUP_FREE struct found *all = NULL;
  uint64_t total;
  size_t nr;

  all = list_folder (s, &nr, &total);
  if (all == NULL || total <= s->max_len)
    return;
  qsort (all, nr, sizeof *all, older_first);
  for (size_t i = 0; i < nr && total > s->max_len; i++) {
    (void) unlinkat (s->fd, all[i].name, 0);
    total -= all[i].len;
  }
}

void
kernel_store_put (struct kernel_store *s, const void *key, size_t key_len,
                  const void *code, size_t len)
{
  struct header h = {
    .magic = MAGIC, .version = 1, .key_len = key_len, .code_len = len,
    .crc = crc32c_more (crc32c (key, key_len), code, len),
  };
  char name[NAME_LEN], tmp[NAME_LEN];
  int fd;

  if (s == NULL || len > MAX_CODE_LEN ||
      sizeof h + key_len + len > s->max_len || tmp_name (tmp) == -1)
    return;
  file_name (key, key_len, name);
  fd = openat (s->fd, tmp, O_WRONLY|O_CREAT|O_EXCL|O_CLOEXEC, 0600);
  if (fd == -1) {
    log_debug ("%s: %m: a kernel is not kept", tmp);
    return;
  }
  if (write_all (fd, &h, sizeof h) == -1 ||
      write_all (fd, key, key_len) == -1 || write_all (fd, code, len) == -1 ||
      renameat (s->fd, tmp, s->fd, name) == -1) {
    log_debug ("%s: %m: a kernel is not kept", tmp);
    (void) unlinkat (s->fd, tmp, 0);
  }
  close (fd);
  make_room (s);
}
