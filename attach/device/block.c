/* gpuraid: a block device of this host.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/fs.h>
#include <linux/loop.h>

#include "attach/device/block.h"
#include "attach/device/netlink.h"
#include "common/cleanup.h"
#include "common/log.h"

#define LOOP_CONTROL "/dev/loop-control"
#define TRIES 100               /* others make loop devices, too */

const char *
block_path (const struct block *d, char buf[BLOCK_PATH_LEN])
{
  snprintf (buf, BLOCK_PATH_LEN, "/dev/%s", d->name);
  return buf;
}

unsigned
block_number (const struct block *d)
{
  return atoi (d->name + strcspn (d->name, "0123456789"));
}

static bool
is_loop (const struct block *d)
{
  return strncmp (d->name, "loop", 4) == 0;
}

/* ---- which one it is --------------------------------------------------- */

/* The first line of a file in /sys, or "". */
static void
read_sys (const char *name, const char *attribute, char *buf, size_t len)
{
  char path[128];
  FILE *fp;

  snprintf (path, sizeof path, "/sys/block/%s/%s", name, attribute);
  fp = fopen (path, "re");
  if (fp == NULL || fgets (buf, len, fp) == NULL)
    buf[0] = '\0';
  buf[strcspn (buf, "\n")] = '\0';
  if (fp)
    fclose (fp);
}

/* An nbd device has a pid while it is attached, and a loop device a file. */
static void
read_id (const char *name, char id[BLOCK_ID_LEN])
{
  char seq[24], pid[16];

  read_sys (name, "diskseq", seq, sizeof seq);
  read_sys (name, strncmp (name, "nbd", 3) == 0 ? "pid" : "loop/offset", pid,
            sizeof pid);
  if (pid[0])
    snprintf (id, BLOCK_ID_LEN, "%s %s", seq, pid);
  else
    id[0] = '\0';
}

bool
block_is_there (const struct block *d)
{
  char id[BLOCK_ID_LEN];

  read_id (d->name, id);
  return id[0] && strcmp (id, d->id) == 0;
}

int
block_open (struct block *d)
{
  char path[BLOCK_PATH_LEN];
  const int fd = open (block_path (d, path), O_RDONLY | O_CLOEXEC);

  if (fd == -1)
    return -1;
  /* While it is open it stays what it is. */
  if (d->id[0] == '\0')
    read_id (d->name, d->id);
  if (!block_is_there (d)) {
    close (fd);
    errno = ESTALE;
    return -1;
  }
  d->fd = fd;
  return 0;
}

uint64_t
block_size (const struct block *d)
{
  uint64_t size = 0;

  return ioctl (d->fd, BLKGETSIZE64, &size) == -1 ? 0 : size;
}

bool
block_is_readonly (const struct block *d)
{
  int readonly = 0;

  return ioctl (d->fd, BLKROGET, &readonly) == 0 && readonly;
}

/* ---- detach ------------------------------------------------------------ */

/* Whether the kernel detaches it when it is closed for the last time.  Of a
 * loop device all else is as it was made; to ask for that would ask its server.
 */
static int
detach_on_close (struct block *d, bool detach)
{
  const struct loop_info64 info = {
    .lo_flags = detach ? LO_FLAGS_AUTOCLEAR : 0,
  };

  if (!is_loop (d))
    return netlink_open () == -1 ? -1
      : netlink_detach_on_close (block_number (d), detach);
  return ioctl (d->fd, LOOP_SET_STATUS64, &info);
}

bool
block_is_gone (int err)
{
  return err == ESTALE || err == ENXIO || err == ENOENT;
}

int
block_detach (struct block *d)
{
  if (detach_on_close (d, true) == -1) {
    log_error ("/dev/%s: can't be detached: %m", d->name);
    return -1;
  }
  close (d->fd);
  d->fd = -1;
  if (block_open (d) == -1) {
    if (block_is_gone (errno))
      return 1;
    log_error ("/dev/%s: %m; it is detached when nothing uses it any more",
               d->name);
    return -1;
  }
  if (detach_on_close (d, false) == -1) {
    log_error ("/dev/%s: %m; it is detached when nothing uses it any more",
               d->name);
    return -1;
  }
  return 0;
}

/* ---- loop devices ------------------------------------------------------- */

/* Only to read: a kernel may refuse to mount what others can write.  fd is
 * closed.  0, or -1 reported.
 */
static int
open_new (struct block *d, int fd)
{
  const int r = block_open (d);

  if (r == -1) {
    log_error ("/dev/%s: %m", d->name);
    ioctl (fd, LOOP_CLR_FD);
  }
  close (fd);
  return r;
}

int
block_make_loop (struct block *d, int file, bool readonly)
{
  CLEANUP_CLOSE int control = open (LOOP_CONTROL, O_RDWR | O_CLOEXEC);
  struct loop_config config = {
    .fd = file,
    .info.lo_flags = readonly ? LO_FLAGS_READ_ONLY : 0,
  };

  if (control == -1) {
    log_error ("%s: %m", LOOP_CONTROL);
    return -1;
  }
  for (int i = 0; i < TRIES; i++) {
    const int number = ioctl (control, LOOP_CTL_GET_FREE);
    char path[BLOCK_PATH_LEN];
    int fd, err;

    if (number == -1)
      break;
    snprintf (d->name, sizeof d->name, "loop%d", number);
    fd = open (block_path (d, path),
               (readonly ? O_RDONLY : O_RDWR) | O_CLOEXEC);
    if (fd == -1)
      break;
    if (ioctl (fd, LOOP_CONFIGURE, &config) == 0)
      return open_new (d, fd);
    err = errno;
    close (fd);
    errno = err;
    if (err != EBUSY)
      break;
  }
  log_error ("no loop device: %m");
  return -1;
}
