/* gpuraid: check that a member is blank.
 *
 * libblkid gets its own file descriptor: that of the member is for direct I/O,
 * and these reads are not aligned.  For a member that is no file it gets one in
 * memory with the beginning and the end of it, where signatures are.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <blkid.h>

#include "array/create/blank.h"
#include "array/stores/copies.h"
#include "common/bits.h"
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

#define END_LEN (UINT64_C (4) << 20)
#define STEP_LEN (UINT64_C (1) << 20)

/* For each piece of the beginning and the end.  The first error. */
static int
each_piece (struct member *m, int fd,
            int (*call) (struct member *m, int fd, uint8_t *buf, size_t len,
                         uint64_t off))
{
  CLEANUP_FREE uint8_t *buf = malloc (2 * STEP_LEN);
  const uint64_t size = round_down (m->ops->size (m), (uint64_t) SB_LEN);
  int err = buf ? 0 : ENOMEM;
  uint64_t len;

  for (uint64_t off = 0; err == 0 && off < size; off += len) {
    if (off >= END_LEN && off < size - MIN (size, END_LEN))
      off = size - END_LEN;
    len = MIN (size - off, STEP_LEN);
    err = call (m, fd, buf, len, off);
  }
  return err;
}

static int
copy_piece (struct member *m, int fd, uint8_t *buf, size_t len, uint64_t off)
{
  const int err = m->ops->pread (m, buf, len, off);

  if (err)
    return err;
  return pwrite (fd, buf, len, off) == (ssize_t) len ? 0 : errno;
}

/* What libblkid has wiped in the copy. */
static int
copy_back (struct member *m, int fd, uint8_t *buf, size_t len, uint64_t off)
{
  int err = m->ops->pread (m, buf, len, off);

  if (err == 0 && pread (fd, buf + STEP_LEN, len, off) != (ssize_t) len)
    err = errno;
  for (size_t i = 0; err == 0 && i < len; i += SB_LEN)
    if (memcmp (buf + i, buf + STEP_LEN + i, SB_LEN) != 0)
      err = m->ops->pwrite (m, buf + STEP_LEN + i, SB_LEN, off + i);
  return err;
}

/* What libblkid looks at.  -1: errno. */
static int
open_for_blkid (struct member *m, int flags)
{
  int fd, err;

  if (m->ops->fd (m) != -1)
    return open (m->path, flags | O_CLOEXEC);
  fd = memfd_create ("gpuraid-blank", MFD_CLOEXEC);
  if (fd == -1)
    return -1;
  err = ftruncate (fd, m->ops->size (m)) == -1 ? errno :
    each_piece (m, fd, copy_piece);
  if (err) {
    close (fd);
    errno = err;
    return -1;
  }
  return fd;
}

/* Get the first signature found, or "" if there is none.  -1: errno. */
static int
find_signature (struct member *m, char *type, size_t len)
{
  CLEANUP_CLOSE int fd = open_for_blkid (m, O_RDONLY | O_NONBLOCK);
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
    snprintf (why, BLANK_WHY_LEN, "is not blank: it has a gpuraid superblock, "
              "see gpuraid examine");
    return 0;
  }
  errno = 0;
  if (find_signature (m, type, sizeof type) == -1) {
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

static int
wiped (struct member *m, int fd)
{
  int err;

  if (m->ops->fd (m) != -1)
    return fsync (fd);
  err = each_piece (m, fd, copy_back);
  if (err == 0)
    err = m->ops->flush (m);
  errno = err;
  return err ? -1 : 0;
}

int
member_wipe_signatures (struct member *m)
{
  CLEANUP_CLOSE int fd = open_for_blkid (m, O_RDWR);
  blkid_probe pr;
  int r;

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
  if (r < 0 || wiped (m, fd) == -1) {
    log_error ("%s: can't remove the signatures on it", m->path);
    return -1;
  }
  return 0;
}
