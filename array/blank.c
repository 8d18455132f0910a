/* gpuraid: check that a member is blank.
 *
 * libblkid gets its own file descriptor: the member's is for direct I/O, and
 * libblkid's reads are not aligned.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <blkid.h>

#include "array/blank.h"
#include "array/copies.h"
#include "common/cleanup.h"
#include "common/log.h"

int
member_has_superblock (struct member *m, char *why)
{
  CLEANUP_FREE struct found *f = calloc (1, sizeof *f);
  int err;

  if (f == NULL) {
    snprintf (why, BLANK_WHY_LEN, "calloc: %s", strerror (errno));
    return -1;
  }
  err = copies_read (m, f, NULL);
  if (err) {
    snprintf (why, BLANK_WHY_LEN, "can't be read: %s", strerror (err));
    return -1;
  }
  for (enum sb_copy copy = 0; copy < SB_NR_COPIES; copy++)
    if (f->result[copy] != SB_BLANK)
      return 1;
  return 0;
}

static blkid_probe
new_probe (int fd)
{
  blkid_probe pr = blkid_new_probe ();

  if (pr == NULL)
    return NULL;
  if (blkid_probe_set_device (pr, fd, 0, 0) != 0 ||
      blkid_probe_enable_superblocks (pr, 1) != 0 ||
      blkid_probe_set_superblocks_flags (pr, BLKID_SUBLKS_TYPE |
                                         BLKID_SUBLKS_MAGIC |
                                         BLKID_SUBLKS_BADCSUM) != 0 ||
      blkid_probe_enable_partitions (pr, 1) != 0 ||
      blkid_probe_set_partitions_flags (pr, BLKID_PARTS_MAGIC) != 0) {
    blkid_free_probe (pr);
    return NULL;
  }
  return pr;
}

/* Get the first signature found, or "" if there is none.  -1: errno. */
static int
find_signature (const char *path, char *type, size_t len)
{
  CLEANUP_CLOSE int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const char *value = "unknown";
  blkid_probe pr;
  int r;

  if (fd == -1)
    return -1;
  pr = new_probe (fd);
  if (pr == NULL)
    return -1;
  r = blkid_do_probe (pr);
  if (r == 0 && blkid_probe_lookup_value (pr, "TYPE", &value, NULL) == -1)
    blkid_probe_lookup_value (pr, "PTTYPE", &value, NULL);
  snprintf (type, len, "%s", r == 0 ? value : "");
  blkid_free_probe (pr);
  return r < 0 ? -1 : 0;
}

int
member_is_blank (struct member *m, char *why)
{
  char type[64];
  int r = member_has_superblock (m, why);

  if (r == -1)
    return -1;
  if (r == 1) {
    snprintf (why, BLANK_WHY_LEN, "is not blank: it has a gpuraid superblock");
    return 0;
  }
  if (m->ops->fd (m) == -1)     /* not a file: libblkid can't look */
    return 1;
  errno = 0;
  if (find_signature (m->path, type, sizeof type) == -1) {
    snprintf (why, BLANK_WHY_LEN, "libblkid can't look at it%s%s",
              errno ? ": " : "", errno ? strerror (errno) : "");
    return -1;
  }
  if (type[0]) {
    snprintf (why, BLANK_WHY_LEN, "is not blank: it has a %s signature", type);
    return 0;
  }
  return 1;
}

int
member_wipe_signatures (struct member *m)
{
  CLEANUP_CLOSE int fd = -1;
  blkid_probe pr;
  int r;

  if (m->ops->fd (m) == -1)
    return 0;
  fd = open (m->path, O_RDWR | O_CLOEXEC);
  if (fd == -1) {
    log_error ("open: %s: %m", m->path);
    return -1;
  }
  pr = new_probe (fd);
  if (pr == NULL) {
    log_error ("%s: libblkid can't look at it", m->path);
    return -1;
  }
  while ((r = blkid_do_probe (pr)) == 0)
    if (blkid_do_wipe (pr, 0) != 0) {
      r = -1;
      break;
    }
  blkid_free_probe (pr);
  if (r < 0 || fsync (fd) == -1) {
    log_error ("%s: can't remove the signatures on it", m->path);
    return -1;
  }
  return 0;
}
