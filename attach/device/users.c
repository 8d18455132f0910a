/* gpuraid: what uses a block device.
 *
 * Mounts in each name space; devices above it, and swap; processes that have it
 * open, or a file of its file system.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "attach/device/users.h"
#include "common/bits.h"

#define MANY 3                  /* as many are named */
#define MAX_DEVICES 64
#define NS_LEN 32               /* "mnt:[4026531841]" */

struct device {
  char path[64];
  unsigned major, minor;
};

struct search {
  struct device device[MAX_DEVICES];    /* it, and its partitions */
  unsigned nr_devices;
  pid_t owner;                  /* left out; 0: none */
  char ours[NS_LEN];            /* this name space */
  char seen[64][NS_LEN];        /* name spaces; more than that are seen again */
  unsigned nr_seen;
  char *text;
  size_t len;
  FILE *fp;
  unsigned nr;
};

static void
add (struct search *s, const char *what, const char *name)
{
  if (s->nr < MANY)
    fprintf (s->fp, "%s%s%s", s->nr ? ", " : "", what, name);
  s->nr++;
}

/* "process 7 (cat)" */
static void
name_process (pid_t pid, char *buf, size_t len)
{
  char path[64], comm[32] = "";
  FILE *fp;

  snprintf (path, sizeof path, "/proc/%d/comm", pid);
  fp = fopen (path, "re");
  if (fp) {
    if (fgets (comm, sizeof comm, fp) == NULL)
      comm[0] = '\0';
    fclose (fp);
  }
  comm[strcspn (comm, "\n")] = '\0';
  snprintf (buf, len, "process %d (%s)", pid, comm);
}

static bool
read_link (const char *path, char *buf, size_t len)
{
  const ssize_t n = readlink (path, buf, len - 1);

  buf[n > 0 ? n : 0] = '\0';
  return n > 0;
}

/* ---- processes --------------------------------------------------------- */

static int
is_number (const struct dirent *d)
{
  return d->d_name[strspn (d->d_name, "0123456789")] == '\0';
}

static int
by_number (const struct dirent **a, const struct dirent **b)
{
  return atoi ((*a)->d_name) - atoi ((*b)->d_name);
}

/* Call it for each process but those that are left out.  The oldest first:
 * others may have got a file from it.
 */
static void
each_process (struct search *s, void (*look) (struct search *, pid_t))
{
  struct dirent **d;
  const int n = scandir ("/proc", &d, is_number, by_number);

  for (int i = 0; i < n; i++) {
    const pid_t pid = atoi (d[i]->d_name);

    if (pid != getpid () && pid != s->owner)
      look (s, pid);
    free (d[i]);
  }
  if (n >= 0)
    free (d);
}

/* Is there a file of this process for which it is true?  Its folders, too, with
 * all.
 */
static bool
any_file (const struct search *s, pid_t pid, bool all,
          bool (*is) (const struct search *, const char *))
{
  static const char *const folders[] = { "cwd", "root" };
  char path[PATH_MAX];
  struct dirent **d;
  bool found = false;
  int n;

  snprintf (path, sizeof path, "/proc/%d/fd", pid);
  n = scandir (path, &d, is_number, NULL);
  for (int i = 0; i < n; i++) {
    snprintf (path, sizeof path, "/proc/%d/fd/%s", pid, d[i]->d_name);
    found = found || is (s, path);
    free (d[i]);
  }
  if (n >= 0)
    free (d);
  for (size_t i = 0; all && !found && i < ARRAY_LEN (folders); i++) {
    snprintf (path, sizeof path, "/proc/%d/%s", pid, folders[i]);
    found = is (s, path);
  }
  return found;
}

/* Does not ask the server of a file system, which may hang. */
static bool
see (const char *path, struct statx *st)
{
  return statx (AT_FDCWD, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT,
                STATX_TYPE, st) == 0;
}

static bool
is_number_of (const struct search *s, unsigned major, unsigned minor)
{
  for (unsigned i = 0; i < s->nr_devices; i++)
    if (s->device[i].major == major && s->device[i].minor == minor)
      return true;
  return false;
}

static bool
is_path_of (const struct search *s, const char *path)
{
  for (unsigned i = 0; i < s->nr_devices; i++)
    if (strcmp (s->device[i].path, path) == 0)
      return true;
  return false;
}

static bool
is_device (const struct search *s, const char *path)
{
  struct statx st;

  return see (path, &st) && S_ISBLK (st.stx_mode) &&
    is_number_of (s, st.stx_rdev_major, st.stx_rdev_minor);
}

static bool
is_file (const struct search *s, const char *path)
{
  struct statx st;

  return see (path, &st) &&
    is_number_of (s, st.stx_dev_major, st.stx_dev_minor);
}

/* Is a file of the file system in its memory? */
static bool
has_mapped (const struct search *s, pid_t pid)
{
  char path[64], line[PATH_MAX + 128];
  unsigned maj, min;
  bool found = false;
  FILE *fp;

  snprintf (path, sizeof path, "/proc/%d/maps", pid);
  fp = fopen (path, "re");
  while (fp && !found && fgets (line, sizeof line, fp))
    found = sscanf (line, "%*s %*s %*s %x:%x", &maj, &min) == 2 &&
      is_number_of (s, maj, min);
  if (fp)
    fclose (fp);
  return found;
}

static void
look_for_device (struct search *s, pid_t pid)
{
  char name[64];

  if (any_file (s, pid, false, is_device)) {
    name_process (pid, name, sizeof name);
    add (s, "in use by ", name);
  }
}

static void
look_for_files (struct search *s, pid_t pid)
{
  char name[64];

  if (has_mapped (s, pid) || any_file (s, pid, true, is_file)) {
    name_process (pid, name, sizeof name);
    add (s, "in use by ", name);
  }
}

/* ---- mounts ------------------------------------------------------------- */

/* "\040" is a space there. */
static void
decode (char *text)
{
  char *to = text;

  for (const char *c = text; *c; to++) {
    unsigned code;
    int len = 0;

    if (sscanf (c, "\\%3o%n", &code, &len) == 1 && len == 4)
      *to = code;
    else
      *to = *c, len = 1;
    c += len;
  }
  *to = '\0';
}

/* A line of mountinfo: "36 35 98:0 /root /mnt options - ext4 /dev/loop0 rw". */
static bool
is_mount (const struct search *s, char *line, char where[PATH_MAX])
{
  unsigned maj, min;
  char source[PATH_MAX], *rest = strstr (line, " - ");

  if (rest == NULL ||
      sscanf (line, "%*d %*d %u:%u %*s %4095s", &maj, &min, where) != 3 ||
      sscanf (rest, " - %*s %4095s", source) != 1)
    return false;
  decode (where);
  /* btrfs has numbers of its own. */
  return is_number_of (s, maj, min) || is_path_of (s, source);
}

static bool
find_name_space (pid_t pid, char ns[NS_LEN])
{
  char path[64];

  snprintf (path, sizeof path, "/proc/%d/ns/mnt", pid);
  return read_link (path, ns, NS_LEN);
}

/* The mounts that a process sees, if those of its name space were not looked at
 * yet; or NULL.
 */
static FILE *
open_mounts (struct search *s, pid_t pid, char ns[NS_LEN])
{
  char path[64];

  if (!find_name_space (pid, ns))
    return NULL;
  for (unsigned i = 0; i < s->nr_seen; i++)
    if (strcmp (s->seen[i], ns) == 0)
      return NULL;
  if (s->nr_seen < ARRAY_LEN (s->seen))
    strcpy (s->seen[s->nr_seen++], ns);
  snprintf (path, sizeof path, "/proc/%d/mountinfo", pid);
  return fopen (path, "re");
}

/* One process of each name space is asked. */
static void
look_at_mounts (struct search *s, pid_t pid)
{
  char ns[NS_LEN], where[PATH_MAX], name[64], text[PATH_MAX + 128];
  char line[2 * PATH_MAX];
  FILE *fp = open_mounts (s, pid, ns);

  while (fp && fgets (line, sizeof line, fp)) {
    if (!is_mount (s, line, where))
      continue;
    name_process (pid, name, sizeof name);
    snprintf (text, sizeof text, "%s%s%s", where,
              strcmp (ns, s->ours) == 0 ? "" : " in the name space of ",
              strcmp (ns, s->ours) == 0 ? "" : name);
    add (s, "mounted on ", text);
  }
  if (fp)
    fclose (fp);
}

/* ---- a name space that was left ----------------------------------------- */

static bool
is_our_name_space (const struct search *s, const char *path)
{
  char text[NS_LEN];

  return read_link (path, text, sizeof text) && strcmp (text, s->ours) == 0;
}

/* Is this process in our name space, or has that open, or sees a mount that
 * keeps it, as unshare --mount=FILE makes one?  Or is it mounted there, too?
 */
static void
look_outside (struct search *s, pid_t pid)
{
  char ns[NS_LEN], line[2 * PATH_MAX], where[PATH_MAX];
  FILE *fp;

  if ((find_name_space (pid, ns) && strcmp (ns, s->ours) == 0) ||
      any_file (s, pid, false, is_our_name_space))
    s->nr++;
  fp = open_mounts (s, pid, ns);
  while (fp && fgets (line, sizeof line, fp))
    if (strstr (line, s->ours) || is_mount (s, line, where))
      s->nr++;
  if (fp)
    fclose (fp);
}

/* ---- devices above it ---------------------------------------------------- */

static void
look_at_holders (struct search *s, const struct device *d)
{
  char pattern[128];
  glob_t found;

  snprintf (pattern, sizeof pattern, "/sys/dev/block/%u:%u/holders/*",
            d->major, d->minor);
  if (glob (pattern, 0, NULL, &found) != 0)
    return;
  for (size_t i = 0; i < found.gl_pathc; i++)
    add (s, "in use by /dev/", strrchr (found.gl_pathv[i], '/') + 1);
  globfree (&found);
}

static void
look_at_devices (struct search *s)
{
  char line[PATH_MAX];
  glob_t found;
  FILE *fp;

  for (unsigned i = 0; i < s->nr_devices; i++)
    look_at_holders (s, &s->device[i]);
  if (glob ("/sys/block/loop*/loop/backing_file", 0, NULL, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; i++) {
      fp = fopen (found.gl_pathv[i], "re");
      if (fp && fgets (line, sizeof line, fp)) {
        line[strcspn (line, "\n")] = '\0';
        found.gl_pathv[i][strcspn (found.gl_pathv[i] + 11, "/") + 11] = '\0';
        if (is_path_of (s, line))
          add (s, "in use by /dev/", found.gl_pathv[i] + 11);
      }
      if (fp)
        fclose (fp);
    }
    globfree (&found);
  }
  fp = fopen ("/proc/swaps", "re");
  while (fp && fgets (line, sizeof line, fp)) {
    line[strcspn (line, " \t\n")] = '\0';
    if (is_path_of (s, line))
      add (s, "in use as swap", "");
  }
  if (fp)
    fclose (fp);
}

/* False: it is no device. */
static bool
add_device (struct search *s, const char *path)
{
  struct device *d = &s->device[s->nr_devices];
  struct stat st;

  if (s->nr_devices == MAX_DEVICES ||
      stat (path, &st) == -1 || !S_ISBLK (st.st_mode))
    return false;
  snprintf (d->path, sizeof d->path, "%s", path);
  d->major = major (st.st_rdev);
  d->minor = minor (st.st_rdev);
  s->nr_devices++;
  return true;
}

/* It and its partitions, "/sys/block/nbd0/nbd0p1".  False: it is no device. */
static bool
begin (struct search *s, const char *device)
{
  const char *name = strrchr (device, '/');
  char pattern[128], path[64];
  glob_t found;

  if (!add_device (s, device))
    return false;
  snprintf (pattern, sizeof pattern, "/sys/block%s%s*", name, name);
  if (glob (pattern, 0, NULL, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; i++) {
      snprintf (path, sizeof path, "/dev%s", strrchr (found.gl_pathv[i], '/'));
      add_device (s, path);
    }
    globfree (&found);
  }
  return true;
}

static void
each_mount (const struct search *s,
            void (*call) (void *opaque, const char *where), void *opaque)
{
  char line[2 * PATH_MAX], path[PATH_MAX];
  FILE *fp = fopen ("/proc/self/mountinfo", "re");

  while (fp && fgets (line, sizeof line, fp))
    if (is_mount (s, line, path))
      call (opaque, path);
  if (fp)
    fclose (fp);
}

void
users_each_place (const char *device,
                  void (*call) (void *opaque, const char *where),
                  void *opaque)
{
  struct search s = { .nr_devices = 0 };

  if (begin (&s, device))
    each_mount (&s, call, opaque);
}

static void
keep_last (void *where, const char *path)
{
  snprintf (where, PATH_MAX, "%s", path);
}

/* The last mount of it in this name space.  False: there is none. */
static bool
find_mount (const struct search *s, char where[PATH_MAX])
{
  where[0] = '\0';
  each_mount (s, keep_last, where);
  return where[0] != '\0';
}

bool
users_mount (const char *device)
{
  struct search s = { .nr_devices = 0 };
  char where[PATH_MAX];

  return begin (&s, device) && find_mount (&s, where);
}

void
users_unmount (const char *device, pid_t helper)
{
  struct search s = { .owner = helper };
  char where[PATH_MAX];

  if (!begin (&s, device) || !find_name_space (getpid (), s.ours))
    return;
  while (find_mount (&s, where)) {
    s.nr_seen = 0;
    each_process (&s, look_outside);
    if (s.nr > 0 || umount2 (where, UMOUNT_NOFOLLOW) == -1)
      return;
  }
}

char *
users_find (const char *device, pid_t owner)
{
  struct search s = { .owner = owner };

  if (!begin (&s, device))
    return NULL;
  find_name_space (getpid (), s.ours);
  s.fp = open_memstream (&s.text, &s.len);
  if (s.fp == NULL)
    return NULL;
  look_at_mounts (&s, getpid ());
  each_process (&s, look_at_mounts);
  /* Mounts are enough to know; to look for files takes long. */
  if (s.nr == 0) {
    look_at_devices (&s);
    each_process (&s, look_for_device);
  }
  if (s.nr == 0)
    each_process (&s, look_for_files);
  if (s.nr > MANY)
    fprintf (s.fp, ", %u more", s.nr - MANY);
  if (fclose (s.fp) == EOF || s.nr == 0) {
    free (s.text);
    return NULL;
  }
  return s.text;
}
