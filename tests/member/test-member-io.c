/* gpuraid: I/O of files and disks as members.
 *
 * On tmpfs, on the file system of /var/tmp and, where this machine lends us
 * one, on a loop device.  The system calls that move data are wrapped, so
 * that they can be made to stop short.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/member/member-files.h"

/* How the wrapped calls misbehave. */
static bool nasty;              /* short and interrupted transfers */
static bool no_fallocate;
static unsigned nr_nasty;

static ssize_t
be_nasty (size_t *len)
{
  if (!nasty)
    return 0;
  ++nr_nasty;
  if (nr_nasty % 3 == 0) {
    errno = nr_nasty % 2 ? EINTR : EAGAIN;
    return -1;
  }
  if (*len > 512)
    *len = *len / 2 / 512 * 512;
  return 0;
}

ssize_t
pread (int fd, void *buf, size_t len, off_t off)
{
  return be_nasty (&len) ? -1 : syscall (SYS_pread64, fd, buf, len, off);
}

ssize_t
pwrite (int fd, const void *buf, size_t len, off_t off)
{
  return be_nasty (&len) ? -1 : syscall (SYS_pwrite64, fd, buf, len, off);
}

/* Shortened: stops anywhere in the vector. */
static ssize_t
vector (int fd, const struct iovec *iov, int nr, off_t off, bool write)
{
  ssize_t r, sum = 0;

  for (int i = 0; i < nr; ++i) {
    size_t len = iov[i].iov_len;

    if (len > 0 && be_nasty (&len))
      return sum ? sum : -1;
    r = syscall (write ? SYS_pwrite64 : SYS_pread64, fd, iov[i].iov_base,
                 len, off + sum);
    if (r == -1)
      return sum ? sum : -1;
    sum += r;
    if ((size_t) r < iov[i].iov_len)
      return sum;
  }
  return sum;
}

ssize_t
preadv (int fd, const struct iovec *iov, int nr, off_t off)
{
  return vector (fd, iov, nr, off, false);
}

ssize_t
pwritev (int fd, const struct iovec *iov, int nr, off_t off)
{
  return vector (fd, iov, nr, off, true);
}

int
fallocate (int fd, int mode, off_t off, off_t len)
{
  if (no_fallocate) {
    errno = EOPNOTSUPP;
    return -1;
  }
  return syscall (SYS_fallocate, fd, mode, off, len);
}

static bool
is_zero (const uint8_t *p, size_t len)
{
  return p[0] == 0 && memcmp (p, p + 1, len - 1) == 0;
}

static void
check_zeroing (struct member *m, uint8_t *buf, enum io_kind kind)
{
  struct iovec iov = { buf, 256 * 1024 };

  memset (buf, 0xaa, MIB);
  assert_int_equal (m->ops->pwrite (m, buf, MIB, MIB), 0);
  assert_int_equal (m->ops->flush (m), 0);
  assert_int_equal (submit_io (m, kind, MIB + 65536, &iov, 0, 524288), 0);
  assert_int_equal (m->ops->pread (m, buf, MIB, MIB), 0);
  assert_true (is_zero (buf + 65536, 524288));
  assert_int_equal (buf[65535], 0xaa);
  assert_int_equal (buf[65536 + 524288], 0xaa);
}

/* Everything, through whichever path m is. */
static void
check_io (struct member *m)
{
  uint8_t *buf = NULL, *buf2 = NULL;
  struct iovec iov[4];
  int err;

  assert_int_equal (posix_memalign ((void **) &buf, 4096, MIB), 0);
  assert_int_equal (posix_memalign ((void **) &buf2, 4096, MIB), 0);
  assert_int_equal (m->ops->size (m), SIZE);
  for (size_t i = 0; i < MIB; ++i)
    buf[i] = i * 7 + (i >> 8);
  assert_int_equal (m->ops->pwrite (m, buf, MIB, 8192), 0);
  assert_int_equal (m->ops->flush (m), 0);
  assert_int_equal (m->ops->pread (m, buf2, MIB, 8192), 0);
  assert_memory_equal (buf, buf2, MIB);

  /* Vectors: the second half first. */
  iov[0] = (struct iovec) { buf + 524288, 4096 };
  iov[1] = (struct iovec) { buf, 0 };
  iov[2] = (struct iovec) { buf + 524288 + 4096, 524288 - 4096 };
  iov[3] = (struct iovec) { buf, 524288 };
  assert_int_equal (submit_io (m, IO_WRITE, 2 * MIB, iov, 4, MIB), 0);
  assert_int_equal (submit_io (m, IO_FLUSH, 0, iov, 0, 0), 0);
  for (int i = 0; i < 4; ++i)
    iov[i].iov_base = buf2 + ((uint8_t *) iov[i].iov_base - buf);
  memset (buf2, 0, MIB);
  assert_int_equal (submit_io (m, IO_READ, 2 * MIB, iov, 4, MIB), 0);
  assert_memory_equal (buf, buf2, MIB);

  /* Nothing past the end, and nothing that wraps around. */
  assert_int_equal (m->ops->pread (m, buf, 8192, SIZE - 4096), EIO);
  assert_int_equal (m->ops->pwrite (m, buf, 8192, SIZE - 4096), EIO);
  assert_int_equal (m->ops->pwrite (m, buf, 4096, -4096ULL), EIO);
  assert_int_equal (m->ops->discard (m, SIZE, 4096), EIO);
  assert_int_equal (submit_io (m, IO_READ, SIZE, iov, 4, MIB), EIO);
  assert_int_equal (submit_io (m, IO_ZERO, SIZE - 4096, iov, 0, 8192), EIO);

  check_zeroing (m, buf, IO_ZERO);
  check_zeroing (m, buf, IO_TRIM);
  no_fallocate = true;
  check_zeroing (m, buf, IO_ZERO);
  check_zeroing (m, buf, IO_TRIM);
  assert_int_equal (m->ops->discard (m, 0, 4096), EOPNOTSUPP);
  no_fallocate = false;
  memset (buf, 0xaa, 65536);
  assert_int_equal (m->ops->pwrite (m, buf, 65536, 0), 0);
  err = m->ops->discard (m, 4096, 8192);
  assert_true (err == 0 || err == EOPNOTSUPP);
  if (err == 0) {
    assert_int_equal (m->ops->pread (m, buf, 65536, 0), 0);
    assert_true (is_zero (buf + 4096, 8192));
    assert_int_equal (buf[4095], 0xaa);
    assert_int_equal (buf[4096 + 8192], 0xaa);
  }
  free (buf);
  free (buf2);
}

static void
check_extents (struct member *m)
{
  void *buf = NULL;
  bool hole;
  uint64_t end;

  assert_int_equal (posix_memalign (&buf, 4096, MIB), 0);
  memset (buf, 1, MIB);
  assert_int_equal (m->ops->discard (m, 0, SIZE), 0);
  assert_int_equal (m->ops->pwrite (m, buf, MIB, MIB), 0);
  assert_int_equal (m->ops->extent (m, 0, SIZE, &hole, &end), 0);
  assert_true (hole && end == MIB);
  assert_int_equal (m->ops->extent (m, 4096, 8192, &hole, &end), 0);
  assert_true (hole && end == 4096 + 8192);
  assert_int_equal (m->ops->extent (m, MIB, SIZE - MIB, &hole, &end), 0);
  assert_true (!hole && end == 2 * MIB);
  assert_int_equal (m->ops->extent (m, MIB + 4096, 4096, &hole, &end), 0);
  assert_true (!hole && end == MIB + 8192);
  assert_int_equal (m->ops->extent (m, 2 * MIB, 2 * MIB, &hole, &end), 0);
  assert_true (hole && end == SIZE);
  free (buf);
}

static void
test_file_io (void **state)
{
  for (size_t i = 0; i < ARRAY_LEN (dirs); ++i) {
    struct member *m;

    new_file (dirs[i]);
    m = open_ok (path, 0, 0);
    print_message ("%s: direct %d\n", path, m->direct);
    assert_true (m->ops->fd (m) >= 0);
    if (i == 0)
      assert_false (m->direct);
    check_io (m);
    nasty = true;
    nr_nasty = 0;
    check_io (m);
    assert_true (nr_nasty > 10);
    nasty = false;
    check_extents (m);
    member_close (m);
  }
}

/* The loop device's name, or false if there is none. */
static bool
losetup (const char *options, char *dev, size_t len)
{
  char cmd[256];
  FILE *fp;
  bool ok;

  snprintf (cmd, sizeof cmd, "losetup --find --show %s %s 2>/dev/null",
            options, path);
  fp = popen (cmd, "r");
  ok = fp && fgets (dev, len, fp) != NULL;
  if (fp)
    pclose (fp);
  if (ok)
    dev[strcspn (dev, "\n")] = '\0';
  else
    print_message ("no loop device: disks are not tested\n");
  return ok;
}

static void
losetup_detach (const char *dev)
{
  char cmd[256];

  snprintf (cmd, sizeof cmd, "losetup --detach %s", dev);
  assert_int_equal (system (cmd), 0);
}

static void
test_disk (void **state)
{
  char dev[64], node[128];
  struct member *m, *m2;
  struct stat st;
  bool hole;
  uint64_t end;

  new_file (dirs[1]);
  if (!losetup ("", dev, sizeof dev))
    return;
  m = open_ok (dev, 0, 0);
  print_message ("%s: direct %d\n", dev, m->direct);
  check_io (m);
  assert_int_equal (m->ops->extent (m, 0, SIZE, &hole, &end), 0);
  assert_true (!hole && end == SIZE);
  open_fails (dev, 0, 0, EBUSY, 1);
  open_fails (dev, MEMBER_RDONLY, 0, EBUSY, 1);
  open_fails (dev, MEMBER_CREATE, SIZE, EEXIST, 1);
  /* As mount and mkfs open it; and the file behind it. */
  assert_int_equal (open (dev, O_RDONLY|O_EXCL|O_CLOEXEC), -1);
  assert_int_equal (errno, EBUSY);
  open_fails (path, 0, 0, EWOULDBLOCK, 1);

  /* The same disk through another node. */
  assert_int_equal (stat (dev, &st), 0);
  snprintf (node, sizeof node, "%s/node", dirs[1]);
  if (mknod (node, S_IFBLK | 0600, st.st_rdev) == 0) {
    m2 = member_open (node, MEMBER_NOLOCK, 0);
    if (m2) {                   /* not on a nodev mount */
      assert_true (m->ops->same (m, m2));
      member_close (m2);
      open_fails (node, 0, 0, EBUSY, 1);
    }
    unlink (node);
  }
  m2 = open_ok (path, MEMBER_NOLOCK, 0);
  assert_false (m->ops->same (m, m2));
  member_close (m2);
  member_close (m);
  losetup_detach (dev);

  if (!losetup ("--read-only", dev, sizeof dev))
    return;
  file_errors = 0;
  assert_null (member_open (dev, 0, 0));
  assert_int_equal (file_errors, 1);
  member_close (open_ok (dev, MEMBER_RDONLY, 0));
  losetup_detach (dev);
  /* A node with nothing behind it counts as missing. */
  open_fails (dev, 0, 0, ENXIO, 0);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_file_io),
    cmocka_unit_test (test_disk),
  };

  return cmocka_run_group_tests (tests, make_dirs, remove_dirs);
}
