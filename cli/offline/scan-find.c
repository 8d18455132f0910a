/* gpuraid scan: find members on disks and in folders.
 *
 * Takes no lock and reads only superblocks, so that it can be run at any time.
 * What cannot be a member is passed over without a word, unless it was named.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "array/stores/look.h"
#include "cli/offline/scan.h"
#include "common/bits.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "member/member.h"

#define BLOCK_FOLDER "/sys/class/block"
#define ID_FOLDER "/dev/disk/by-id"

void
scan_free (struct scan *s)
{
  for (size_t i = 0; i < s->nr; i++) {
    free (s->member[i]->path);
    free (s->member[i]);
  }
  free (s->member);
  for (unsigned i = 0; i < SCAN_NAMED; i++)
    free (s->forbidden[i]);
}

/* ---- one file or disk ------------------------------------------------- */

unsigned
scan_nr_good (const struct found *f)
{
  unsigned nr = 0;

  for (unsigned c = 0; c < SB_NR_COPIES; c++)
    nr += f->result[c] == SB_OK;
  return nr;
}

/* Two files are copies, no image of a disk and of its partition: a server
 * refuses them together.  Of disks this is not known, as there may be several
 * ways to one.
 */
static bool
are_copies (const struct scanned *a, const struct scanned *b)
{
  struct stat sa, sb;

  return scan_nr_good (&a->f) == scan_nr_good (&b->f) &&
    stat (a->path, &sa) == 0 && stat (b->path, &sb) == 0 &&
    S_ISREG (sa.st_mode) && S_ISREG (sb.st_mode) &&
    (sa.st_dev != sb.st_dev || sa.st_ino != sb.st_ino);
}

/* The same member is found twice: a file under two names, a disk with two
 * paths, or a partition that ends where its disk ends.  The last two copies
 * then seem to be those of the whole disk too, so the one with more counts.
 */
static bool
replace_same (struct scan *s, struct scanned *m)
{
  for (size_t i = 0; i < s->nr; i++) {
    struct scanned *old = s->member[i];

    if (memcmp (&found_newest (&old->f)->member_uuid,
                &found_newest (&m->f)->member_uuid,
                sizeof (uuid_bytes)) != 0 || are_copies (old, m))
      continue;
    if (scan_nr_good (&m->f) > scan_nr_good (&old->f)) {
      s->member[i] = m;
      m = old;
    }
    free (m->path);
    free (m);
    return true;
  }
  return false;
}

/* Takes over m. */
static int
add (struct scan *s, struct scanned *m)
{
  struct scanned **p;

  if (replace_same (s, m))
    return 0;
  p = reallocarray (s->member, s->nr + 1, sizeof *p);
  if (p == NULL) {
    log_error ("realloc: %m");
    free (m->path);
    free (m);
    return -1;
  }
  s->member = p;
  p[s->nr++] = m;
  return 0;
}

/* Something of ours is there, but no sound superblock. */
static void
say_unsound (const char *path, const struct found *f)
{
  bool too_new = false, corrupt = false;

  for (unsigned c = 0; c < SB_NR_COPIES; c++) {
    too_new |= f->result[c] == SB_TOO_NEW;
    corrupt |= f->result[c] == SB_CORRUPT;
  }
  if (too_new)
    log_notice ("%s: a member of an array of a newer version of gpuraid",
                path);
  else if (corrupt)
    log_notice ("%s: a member whose superblocks are damaged (gpuraid examine "
                "says how)", path);
}

/* 0; a positive errno if it can't be read, which is not reported; -1 reported.
 */
static int
look (struct scan *s, const char *path)
{
  struct scanned *m = calloc (1, sizeof *m);
  int err;

  if (m == NULL || (m->path = strdup (path)) == NULL) {
    free (m);
    log_error ("malloc: %m");
    return -1;
  }
  err = look_at (m->path, &m->f);
  if (err == 0 && found_newest (&m->f))
    return add (s, m);
  if (err == 0)
    say_unsound (path, &m->f);
  free (m->path);
  free (m);
  return err;
}

/* Likewise, of one that was not named: what can't be a member is passed over,
 * but not one that may be.  0, or -1 reported.
 */
static int
look_at_any (struct scan *s, const char *path)
{
  const int err = look (s, path);

  switch (err) {
  case 0: case -1:
    return err;
  case EACCES: case EPERM:
    if (s->nr_forbidden < SCAN_NAMED)
      s->forbidden[s->nr_forbidden] = strdup (path);
    s->nr_forbidden++;
    return 0;
  case EINVAL: case ENOENT: case ENODEV: case ENOMEDIUM: case ENXIO:
    return 0;
  default:
    log_notice ("%s: %s", path, strerror (err));
    return 0;
  }
}

/* ---- folders ----------------------------------------------------------- */

static int
not_dots (const struct dirent *d)
{
  return strcmp (d->d_name, ".") != 0 && strcmp (d->d_name, "..") != 0;
}

/* Call f with each name in a folder, in order, until it returns -1.  -1 with
 * errno 0 if it did.
 */
static int
each (const char *folder, int (*f) (void *opaque, const char *name),
      void *opaque)
{
  struct dirent **d;
  int n = scandir (folder, &d, not_dots, alphasort), r = 0;

  if (n == -1)
    return -1;
  for (int i = 0; i < n; i++) {
    if (r == 0)
      r = f (opaque, d[i]->d_name);
    free (d[i]);
  }
  free (d);
  errno = 0;
  return r;
}

struct folder {
  struct scan *s;
  const char *path;
};

static int
look_in_folder (void *opaque, const char *name)
{
  const struct folder *f = opaque;
  CLEANUP_FREE char *path = NULL;
  const size_t len = strlen (f->path);
  struct stat st;

  if (asprintf (&path, "%s%s%s", f->path,
                len && f->path[len - 1] == '/' ? "" : "/", name) == -1) {
    log_error ("asprintf: %m");
    return -1;
  }
  if (stat (path, &st) == 0 && S_ISDIR (st.st_mode)) {
    f->s->folders = true;
    return 0;
  }
  return look_at_any (f->s, path);
}

int
scan_path (struct scan *s, const char *path)
{
  struct folder f = { s, path };
  const char *other;
  struct stat st;
  int r;

  if (stat (path, &st) == 0 && S_ISDIR (st.st_mode)) {
    r = each (path, look_in_folder, &f);
    if (r == -1 && errno)
      log_error ("%s: %m", path);
    return r;
  }
  r = look (s, path);
  if (r <= 0 || member_is_uri (path))   /* else it was reported */
    return r ? -1 : 0;
  other = member_other_type (path);
  if (other)
    log_error ("%s: is %s, not a file or disk: leave it out", path, other);
  else
    log_error ("%s: %s", path, r == EINVAL ?
               "is too small for a member: leave it out" : strerror (r));
  return -1;
}

/* ---- disks ------------------------------------------------------------- */

/* The name that still means this disk after a restart. */
struct id {
  dev_t dev;
  char *path;                   /* or NULL; owned */
};

/* Of several names the first that is made for people. */
static bool
is_number (const char *name)
{
  static const char *const prefix[] = {
    "wwn-", "nvme-eui.", "nvme-nvme.", "nvme-uuid.", "dm-uuid-",
    "lvm-pv-uuid-", "md-uuid-",
  };

  for (size_t i = 0; i < ARRAY_LEN (prefix); i++)
    if (strncmp (name, prefix[i], strlen (prefix[i])) == 0)
      return true;
  return false;
}

static int
compare_id (void *opaque, const char *name)
{
  struct id *id = opaque;
  struct stat st;
  char *path;

  if (asprintf (&path, "%s/%s", ID_FOLDER, name) == -1) {
    log_error ("asprintf: %m");
    return -1;
  }
  if (stat (path, &st) == -1 || !S_ISBLK (st.st_mode) ||
      st.st_rdev != id->dev ||
      (id->path && (is_number (name) ||
                    !is_number (id->path + strlen (ID_FOLDER) + 1)))) {
    free (path);
    return 0;
  }
  free (id->path);
  id->path = path;
  return 0;
}

/* Without a medium it has no size, and these may be slow to say so. */
static bool
is_disk (const char *name)
{
  static const char *const not[] = { "ram", "zram", "fd", "sr" };
  CLEANUP_FREE char *path = NULL;
  unsigned long long sectors = 0;
  FILE *fp;

  for (size_t i = 0; i < ARRAY_LEN (not); i++) {
    const size_t len = strlen (not[i]);

    if (strncmp (name, not[i], len) == 0 && name[len] >= '0' &&
        name[len] <= '9')
      return false;
  }
  if (asprintf (&path, "%s/%s/size", BLOCK_FOLDER, name) == -1) {
    path = NULL;
    return true;
  }
  fp = fopen (path, "re");
  if (fp == NULL)
    return true;
  if (fscanf (fp, "%llu", &sectors) != 1)
    sectors = 0;
  fclose (fp);
  return sectors > 0;
}

static int
look_at_disk (void *opaque, const char *name)
{
  struct scan *s = opaque;
  CLEANUP_FREE char *path = NULL;
  struct id id = { 0 };
  struct stat st;
  int r;

  if (!is_disk (name))
    return 0;
  if (asprintf (&path, "/dev/%s", name) == -1) {
    log_error ("asprintf: %m");
    return -1;
  }
  for (char *p = path; *p; p++)
    if (*p == '!')              /* the kernel's name for a folder in /dev */
      *p = '/';
  if (stat (path, &st) == -1 || !S_ISBLK (st.st_mode))
    return 0;
  id.dev = st.st_rdev;
  if (each (ID_FOLDER, compare_id, &id) == -1 && errno == 0)
    return -1;
  r = look_at_any (s, id.path ? id.path : path);
  free (id.path);
  return r;
}

int
scan_disks (struct scan *s)
{
  int r = each (BLOCK_FOLDER, look_at_disk, s);

  if (r == -1 && errno)
    log_error ("%s: %m", BLOCK_FOLDER);
  return r;
}
