/* gpuraid: look at what may be a member.
 *
 * For lists that have other things too, such as all disks of a machine: what
 * cannot be a member is no mistake, so it is not reported.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "array/stores/copies.h"
#include "array/stores/look.h"
#include "common/cleanup.h"

/* member_open would report these. */
static int
check (const char *path)
{
  CLEANUP_CLOSE int fd = -1;
  struct stat st;
  off_t size;

  if (member_is_uri (path))
    return 0;
  if (stat (path, &st) == -1)
    return errno;
  if (!S_ISREG (st.st_mode) && !S_ISBLK (st.st_mode))
    return EINVAL;
  fd = open (path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (fd == -1)
    return errno;
  size = lseek (fd, 0, SEEK_END);
  if (size == -1)
    return errno;
  return size < SB_NR_COPIES * (off_t) SB_LEN ? EINVAL : 0;
}

int
look_at (const char *path, struct found *f)
{
  int err = check (path);
  struct member *m;

  if (err)
    return err;
  m = member_open (path, MEMBER_NOLOCK | MEMBER_LISTED, 0);
  if (m == NULL)
    return errno;
  err = copies_read (m, f, NULL);
  f->name = path;
  member_close (m);
  return err;
}

bool
look_same_store (const char *a, const char *b)
{
  struct stat sa, sb;

  if (stat (a, &sa) == -1 || stat (b, &sb) == -1)
    return false;
  if (S_ISBLK (sa.st_mode) && S_ISBLK (sb.st_mode))
    return sa.st_rdev == sb.st_rdev;
  return sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}
