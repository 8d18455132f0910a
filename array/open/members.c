/* gpuraid: open the members of a configuration.
 *
 * Opens all of them for writing, or all but those that can't be written, or all
 * for reading, and decides which failures only make a member missing.
 * array/open/assemble.c looks at the contents.
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
#include "array/open/enough.h"
#include "common/cleanup.h"
#include "common/log.h"

static bool
is_readonly_disk (const char *path)
{
  CLEANUP_CLOSE int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  int ro = 0;

  return fd != -1 && ioctl (fd, BLKROGET, &ro) == 0 && ro;
}

/* Why this file or disk can't be written; NULL: it can, or it does not even
 * open, and opening it reports why.
 */
static const char *
why_unwritable (const char *path)
{
  const int err = faccessat (AT_FDCWD, path, W_OK, AT_EACCESS) == -1 ?
    errno : 0;
  struct stat st;
  const bool is_disk = stat (path, &st) == 0 && S_ISBLK (st.st_mode);

  if (err == EACCES || err == EPERM)
    return "no permission";
  if (is_disk && (err == EROFS || is_readonly_disk (path)))
    return "the disk is read-only";
  return err == EROFS ? "the file system is read-only" : NULL;
}

static int
refuse_same (const struct config *c, struct member *const *opened,
             struct member *m)
{
  for (unsigned i = 0; i < c->nr_members; i++)
    if (opened[i] && m->ops->same (m, opened[i])) {
      log_error ("%s and %s are the same file or disk: leave one out",
                 opened[i]->path, m->path);
      return -1;
    }
  return 0;
}

/* opened has a place for each member of the configuration, NULL until it is
 * open.
 */
static int
open_one (const struct config *c, unsigned i, unsigned flags,
          struct member **opened, struct absent *absent)
{
  struct member *m = member_open (c->member[i], MEMBER_LISTED | flags, 0);

  if (m == NULL && errno == EROFS && member_is_uri (c->member[i])) {
    absent->unwritable[i] = "the export is read-only";
    m = member_open (c->member[i], MEMBER_LISTED | MEMBER_RDONLY, 0);
  }
  if (m == NULL)
    return errno == ENOENT || errno == ENXIO || errno == EIO ||
      errno == ENODATA ? 0 : -1;
  if (refuse_same (c, opened, m) == -1) {
    member_close (m);
    return -1;
  }
  opened[i] = m;
  return 0;
}

/* Those that are exports, or those that are not. */
static int
open_some (const struct config *c, bool exports, unsigned flags,
           struct member **opened, struct absent *absent)
{
  for (unsigned i = 0; i < c->nr_members; i++)
    if (member_is_uri (c->member[i]) == exports &&
        !(absent->left_out && absent->unwritable[i]) &&
        open_one (c, i, flags, opened, absent) == -1)
      return -1;
  return 0;
}

static void
close_those (const struct config *c, bool (*which) (const struct absent *,
                                                    unsigned),
             struct member **opened, const struct absent *absent)
{
  for (unsigned i = 0; i < c->nr_members; i++)
    if (which == NULL || which (absent, i)) {
      member_close (opened[i]);
      opened[i] = NULL;
    }
}

static bool
is_unwritable (const struct absent *absent, unsigned i)
{
  return absent->unwritable[i] != NULL;
}

static bool
find_unwritable (const struct config *c, struct absent *absent)
{
  bool any = false;

  for (unsigned i = 0; i < c->nr_members; i++) {
    if (!member_is_uri (c->member[i]))
      absent->unwritable[i] = why_unwritable (c->member[i]);
    any |= is_unwritable (absent, i);
  }
  return any;
}

/* Exports first, because only their servers know whether they can be written.
 * They have no lock, so others are not disturbed until it is known how all are
 * opened.
 */
static int
open_all (const struct config *c, struct member **opened,
          struct absent *absent)
{
  unsigned flags = c->readonly ? MEMBER_RDONLY : 0;

  if (open_some (c, true, flags, opened, absent) == -1)
    return -1;
  if (!c->readonly && find_unwritable (c, absent)) {
    absent->left_out = !c->readonly_why && !c->keep_unwritable &&
      enough_without (c, opened, absent->unwritable);
    close_those (c, absent->left_out ? is_unwritable : NULL, opened, absent);
    if (!absent->left_out) {
      flags = MEMBER_RDONLY;
      if (open_some (c, true, flags, opened, absent) == -1)
        return -1;
    }
  }
  return open_some (c, false, flags, opened, absent);
}

int
open_members (const struct config *c, struct member **members,
              unsigned *nr, struct absent *absent)
{
  struct member *opened[CONFIG_MAX_MEMBERS] = { NULL };

  *nr = 0;
  *absent = (struct absent) { .left_out = false };
  if (open_all (c, opened, absent) == -1) {
    close_those (c, NULL, opened, absent);
    return -1;
  }
  for (unsigned i = 0; i < c->nr_members; i++)
    if (opened[i])
      members[(*nr)++] = opened[i];
  return 0;
}
