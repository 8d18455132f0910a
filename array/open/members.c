/* gpuraid: open the members of a configuration.
 *
 * Opens all of them for writing, or all for reading, and decides which
 * failures only make a member missing.  array/open/assemble.c looks at the
 * contents.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "array/open/assemble.h"
#include "common/cleanup.h"
#include "common/log.h"

/* Check first, so that a member that cannot be written is no error.  One that
 * does not even open counts as writable: opening it reports why.
 */
static bool
can_write (const char *path)
{
  CLEANUP_CLOSE int fd = -1;
  struct stat st;
  int ro = 0;

  if (member_is_uri (path))
    return true;
  if (faccessat (AT_FDCWD, path, W_OK, AT_EACCESS) == -1 &&
      (errno == EACCES || errno == EPERM || errno == EROFS))
    return false;
  if (stat (path, &st) == -1 || !S_ISBLK (st.st_mode))
    return true;
  fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  return fd == -1 || ioctl (fd, BLKROGET, &ro) == -1 || !ro;
}

static int
refuse_same (struct member **members, unsigned nr, struct member *m)
{
  for (unsigned i = 0; i < nr; i++)
    if (m->ops->same (m, members[i])) {
      log_error ("%s and %s are the same file or disk: leave one out",
                 members[i]->path, m->path);
      return -1;
    }
  return 0;
}

const char *
find_unwritable (const struct config *c)
{
  for (unsigned i = 0; i < c->nr_members; i++)
    if (!can_write (c->member[i]))
      return c->member[i];
  return NULL;
}

int
open_members (const struct config *c, struct member **members,
              unsigned *nr, unsigned *nr_absent)
{
  const bool readonly = c->readonly || find_unwritable (c);
  const unsigned flags = MEMBER_LISTED | (readonly ? MEMBER_RDONLY : 0);

  *nr = *nr_absent = 0;
  for (unsigned i = 0; i < c->nr_members; i++) {
    struct member *m = member_open (c->member[i], flags, 0);

    if (m == NULL) {
      if (errno != ENOENT && errno != ENXIO && errno != EIO &&
          errno != ENODATA)
        goto err;
      (*nr_absent)++;
      continue;
    }
    if (refuse_same (members, *nr, m) == -1) {
      member_close (m);
      goto err;
    }
    members[(*nr)++] = m;
  }
  return 0;

 err:
  for (unsigned i = 0; i < *nr; i++)
    member_close (members[i]);
  *nr = 0;
  return -1;
}
