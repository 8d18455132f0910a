/* gpuraid: lock the file behind a loop device.
 *
 * A server that has the file itself as a member locks it, and does not see
 * the device.  So a server with the device locks the same bytes of the file,
 * which the kernel sees in all name spaces.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/log.h"
#include "member/file.h"

#define PATH_LEN 4200u          /* more than a path of sysfs has */

/* A line of a file of sysfs.  False: there is no such file. */
static bool
read_line (const char *path, char *line, size_t len)
{
  FILE *fp = fopen (path, "re");
  const bool found = fp && fgets (line, len, fp);

  if (fp)
    fclose (fp);
  if (found)
    line[strcspn (line, "\n")] = '\0';
  return found;
}

/* The path of the file behind this disk.  False: it is no loop device, nor a
 * partition of one.
 */
static bool
find_path (dev_t dev, char path[PATH_LEN])
{
  char sys[128];

  for (unsigned part = 0; part < 2; part++) {
    snprintf (sys, sizeof sys, "/sys/dev/block/%u:%u/%sloop/backing_file",
              major (dev), minor (dev), part ? "../" : "");
    if (read_line (sys, path, PATH_LEN))
      return true;
  }
  return false;
}

/* Where a partition begins on its disk, in bytes; 0: it is none. */
static uint64_t
find_start (dev_t dev)
{
  char sys[128], line[64];

  snprintf (sys, sizeof sys, "/sys/dev/block/%u:%u/start", major (dev),
            minor (dev));
  return read_line (sys, line, sizeof line) ?
    strtoull (line, NULL, 10) * 512 : 0;
}

static bool
is_backing (const struct stat *st, const struct loop_info64 *info)
{
  return S_ISREG (st->st_mode) && st->st_ino == info->lo_inode &&
    st->st_dev == info->lo_device;
}

/* The end of the path that leads to the file from here; NULL: none does, where
 * another file may have that name.  For a process in another name space of
 * mounts the kernel's path begins at that one's root, which may lie above ours.
 */
static const char *
seen_from_here (const char *path, const struct loop_info64 *info)
{
  struct stat st;

  for (; path && *path; path = strchr (path + 1, '/'))
    if (stat (path, &st) == 0 && is_backing (&st, info))
      return path;
  return NULL;
}

/* -1: it can't be seen from here, or not be opened. */
static int
open_backing (const char *path, bool readonly, const struct loop_info64 *info)
{
  struct stat st;
  int fd;

  path = seen_from_here (path, info);
  if (path == NULL)
    return -1;
  fd = open (path, (readonly ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NOCTTY |
             O_NONBLOCK);
  if (fd != -1 && (fstat (fd, &st) == -1 || !is_backing (&st, info))) {
    close (fd);
    return -1;
  }
  return fd;
}

void
file_open_backing (struct file_member *f)
{
  struct loop_info64 info;
  char path[PATH_LEN];

  if (!f->disk || !find_path (f->dev, path) ||
      ioctl (f->fd, LOOP_GET_STATUS64, &info) == -1)
    return;
  f->backing = open_backing (path, f->member.readonly, &info);
  f->backing_off = info.lo_offset + find_start (f->dev);
  if (f->backing == -1)
    log_debug ("%s: the file behind this loop device can't be locked",
               f->member.path);
}
