/* gpuraid: files and disks as members.
 *
 * Runs on tmpfs, on the file system of /var/tmp and, where this machine
 * lends us one, on a loop device.  The system calls that
 * move data are wrapped, so that they can be made to stop short.
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
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/bits.h"
#include "common/log.h"
#include "member/member.h"

#define SIZE (4 * MIB)

static char dirs[2][64];        /* [0] on tmpfs, [1] on a disk */
static char path[128], path2[128];
static int nr_errors;           /* messages, since expect_errors */
static int nr_notices;
static char last_message[1024];

static void
sink (enum log_level level, const char *fmt, va_list args)
{
  nr_notices += level == LOG_LEVEL_NOTICE;
  if (level != LOG_LEVEL_ERROR)
    return;
  ++nr_errors;
  vsnprintf (last_message, sizeof last_message, fmt, args);
}

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

static struct member *
open_ok (const char *name, unsigned flags, uint64_t size)
{
  struct member *m;

  nr_errors = 0;
  m = member_open (name, flags, size);
  if (m == NULL)
    print_error ("%s: %s\n", name, last_message);
  assert_non_null (m);
  assert_int_equal (nr_errors, 0);
  return m;
}

/* Fails with this errno, and exactly so many messages. */
static void
open_fails (const char *name, unsigned flags, uint64_t size, int err, int nr)
{
  struct member *m;

  nr_errors = 0;
  errno = 0;
  m = member_open (name, flags, size);
  if (m != NULL || errno != err || nr_errors != nr)
    print_error ("%s: %p errno %d, %d messages, last: %s\n",
                 name, (void *) m, errno, nr_errors, last_message);
  assert_null (m);
  assert_int_equal (errno, err);
  assert_int_equal (nr_errors, nr);
}

static int
in_child (int (*fn) (void))
{
  int status;
  pid_t pid = fork ();

  if (pid == 0)
    _exit (fn ());
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_true (WIFEXITED (status));
  return WEXITSTATUS (status);
}

static int
child_opens (void)
{
  return member_open (path, 0, 0) == NULL && errno == EWOULDBLOCK;
}

static int
child_reads (void)
{
  return member_open (path, MEMBER_RDONLY, 0) == NULL;
}

static void
new_file (const char *dir)
{
  snprintf (path, sizeof path, "%s/a", dir);
  snprintf (path2, sizeof path2, "%s/b", dir);
  unlink (path);
  unlink (path2);
  member_close (open_ok (path, MEMBER_CREATE, SIZE));
}

static void
test_refused (void **state)
{
  char name[256];
  int fd;

  new_file (dirs[1]);
  open_fails ("", 0, 0, EINVAL, 1);
  open_fails (dirs[1], 0, 0, EISDIR, 1);
  open_fails ("/dev/null", 0, 0, EINVAL, 1);
  open_fails ("nbd://localhost", 0, 0, ENOTSUP, 1);
  open_fails ("nbd+unix:///x?socket=/y", 0, 0, ENOTSUP, 1);
  snprintf (name, sizeof name, "%s/pipe", dirs[1]);
  assert_int_equal (mkfifo (name, 0600), 0);
  open_fails (name, 0, 0, EINVAL, 1);
  open_fails (name, MEMBER_NOLOCK, 0, EINVAL, 1);
  snprintf (name, sizeof name, "%s/absent", dirs[1]);
  open_fails (name, 0, 0, ENOENT, 0);
  assert_int_equal (symlink ("absent", path2), 0);
  open_fails (path2, 0, 0, ENOENT, 0);
  unlink (path2);
  snprintf (name, sizeof name, "%s/absent/x", dirs[1]);
  open_fails (name, MEMBER_CREATE, SIZE, EINVAL, 1);
  open_fails (path, MEMBER_CREATE, SIZE, EEXIST, 1);
  open_fails (path2, MEMBER_CREATE, 1000, EINVAL, 1);
  assert_int_equal (access (path2, F_OK), -1);
  /* Made, and taken back when it can't have its size. */
  open_fails (path2, MEMBER_CREATE, INT64_MAX, EFBIG, 1);
  assert_int_equal (access (path2, F_OK), -1);

  fd = open (path2, O_RDWR | O_CREAT, 0600);
  open_fails (path2, 0, 0, EINVAL, 1);
  assert_int_equal (ftruncate (fd, 8192), 0);
  open_fails (path2, 0, 0, EINVAL, 1);
  close (fd);
}

static void
test_readonly (void **state)
{
  struct member *m, *m2;
  char buf[4096] __attribute__ ((aligned (4096))) = "";
  int err = EACCES;

  new_file (dirs[1]);
  m = open_ok (path, MEMBER_RDONLY, 0);
  assert_true (m->readonly);
  m2 = open_ok (path, MEMBER_RDONLY, 0);
  open_fails (path, 0, 0, EWOULDBLOCK, 1);
  assert_int_equal (m->ops->pwrite (m, buf, 4096, 0), EROFS);
  assert_int_equal (m->ops->discard (m, 0, 4096), EROFS);
  assert_int_equal (m->ops->pread (m, buf, 4096, 0), 0);
  assert_int_equal (m->ops->flush (m), 0);
  member_close (m);
  open_fails (path, 0, 0, EWOULDBLOCK, 1);
  member_close (m2);

  /* Root ignores the mode of a file but not its attributes. */
  if (geteuid () == 0) {
    char cmd[256];

    err = EPERM;
    snprintf (cmd, sizeof cmd, "chattr +i %s 2>/dev/null", path);
    if (system (cmd) != 0) {
      print_message ("no chattr +i here\n");
      return;
    }
  }
  else
    assert_int_equal (chmod (path, 0400), 0);
  open_fails (path, 0, 0, err, 1);
  member_close (open_ok (path, MEMBER_RDONLY, 0));
  if (geteuid () == 0) {
    char cmd[256];

    snprintf (cmd, sizeof cmd, "chattr -i %s", path);
    assert_int_equal (system (cmd), 0);
  }
}

static void
test_locks (void **state)
{
  struct member *m, *m2;

  for (size_t i = 0; i < ARRAY_LEN (dirs); ++i) {
    new_file (dirs[i]);
    m = open_ok (path, 0, 0);
    open_fails (path, 0, 0, EWOULDBLOCK, 1);
    open_fails (path, MEMBER_RDONLY, 0, EWOULDBLOCK, 1);
    assert_int_equal (in_child (child_opens), 1);
    assert_int_equal (link (path, path2), 0);
    open_fails (path2, 0, 0, EWOULDBLOCK, 1);

    m2 = open_ok (path2, MEMBER_NOLOCK, 0);
    assert_true (m2->readonly);
    assert_true (m->ops->same (m, m2));
    member_close (m2);
    open_fails (path, 0, 0, EWOULDBLOCK, 1);    /* still locked */
    unlink (path2);

    assert_int_equal (symlink ("a", path2), 0);
    m2 = open_ok (path2, MEMBER_NOLOCK, 0);
    assert_true (m->ops->same (m2, m));
    member_close (m2);
    unlink (path2);

    m2 = open_ok (path2, MEMBER_CREATE, SIZE);
    assert_false (m->ops->same (m, m2));
    member_close (m2);
    member_close (m);
    assert_int_equal (in_child (child_opens), 0);
    assert_int_equal (in_child (child_reads), 0);
  }
}

/* nbdkit opens, forks, and the child serves: the lock must be the
 * child's once the parent is gone, and end with the child.
 */
static void
test_lock_survives_fork (void **state)
{
  int fds[2], status;
  pid_t pid;

  new_file (dirs[1]);
  assert_int_equal (pipe (fds), 0);
  pid = fork ();
  if (pid == 0) {
    struct member *m = member_open (path, 0, 0);
    char c;

    close (fds[1]);
    if (m == NULL)
      _exit (1);
    if (fork () == 0)
      _exit (read (fds[0], &c, 1) != 0);
    _exit (0);
  }
  close (fds[0]);
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_int_equal (status, 0);
  open_fails (path, 0, 0, EWOULDBLOCK, 1);
  close (fds[1]);
  for (int i = 0; i < 1000; ++i) {
    struct member *m = member_open (path, 0, 0);

    if (m) {
      member_close (m);
      return;
    }
    usleep (5000);
  }
  fail_msg ("still locked");
}

static void
no_done (struct io *io)
{
}

static int
submit (struct member *m, enum io_kind kind, uint64_t off, struct iovec *iov,
        unsigned nr_iov, uint64_t len)
{
  struct iovec before[8];
  struct io io = {
    .kind = kind, .member = m, .off = off, .len = len, .iov = iov,
    .nr_iov = nr_iov, .error = -1, .done = no_done,
  };

  memcpy (before, iov, nr_iov * sizeof *iov);
  m->ops->submit (m, &io);
  assert_memory_equal (before, iov, nr_iov * sizeof *iov);
  return io.error;
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
  assert_int_equal (submit (m, kind, MIB + 65536, &iov, 0, 524288), 0);
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
  assert_int_equal (submit (m, IO_WRITE, 2 * MIB, iov, 4, MIB), 0);
  assert_int_equal (submit (m, IO_FLUSH, 0, iov, 0, 0), 0);
  for (int i = 0; i < 4; ++i)
    iov[i].iov_base = buf2 + ((uint8_t *) iov[i].iov_base - buf);
  memset (buf2, 0, MIB);
  assert_int_equal (submit (m, IO_READ, 2 * MIB, iov, 4, MIB), 0);
  assert_memory_equal (buf, buf2, MIB);

  /* Nothing past the end, and nothing that wraps around. */
  assert_int_equal (m->ops->pread (m, buf, 8192, SIZE - 4096), EIO);
  assert_int_equal (m->ops->pwrite (m, buf, 8192, SIZE - 4096), EIO);
  assert_int_equal (m->ops->pwrite (m, buf, 4096, -4096ULL), EIO);
  assert_int_equal (m->ops->discard (m, SIZE, 4096), EIO);
  assert_int_equal (submit (m, IO_READ, SIZE, iov, 4, MIB), EIO);
  assert_int_equal (submit (m, IO_ZERO, SIZE - 4096, iov, 0, 8192), EIO);

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

/* Full of ones, and then cut in its middle. */
static struct member *
new_cut (const char *dir, uint8_t *buf)
{
  struct member *m;

  new_file (dir);
  m = open_ok (path, 0, 0);
  memset (buf, 1, MIB);
  for (uint64_t off = 0; off < SIZE; off += MIB)
    assert_int_equal (m->ops->pwrite (m, buf, MIB, off), 0);
  assert_int_equal (m->ops->pread (m, buf, MIB, 0), 0);
  assert_int_equal (m->ops->flush (m), 0);
  nr_notices = 0;
  assert_int_equal (truncate (path, SIZE / 2 - 100), 0);
  return m;
}

/* Found to be cut: refuses all, says so once, and stays as it is. */
static void
end_cut (struct member *m, uint8_t *buf, off_t size)
{
  struct iovec iov = { buf, 4096 };
  struct stat st;
  bool hole;
  uint64_t end;

  for (int as_long = 0; as_long < 2; ++as_long) {
    assert_int_equal (m->ops->pread (m, buf, 4096, 0), ENXIO);
    assert_int_equal (m->ops->pread (m, buf, 4096, SIZE / 2), ENXIO);
    assert_int_equal (m->ops->pwrite (m, buf, 4096, 0), ENXIO);
    assert_int_equal (m->ops->pwrite (m, buf, 4096, SIZE - 4096), ENXIO);
    assert_int_equal (m->ops->flush (m), ENXIO);
    assert_int_equal (m->ops->discard (m, 0, 4096), ENXIO);
    assert_int_equal (m->ops->extent (m, 0, 4096, &hole, &end), ENXIO);
    assert_int_equal (submit (m, IO_READ, 0, &iov, 1, 4096), ENXIO);
    assert_int_equal (submit (m, IO_WRITE, 0, &iov, 1, 4096), ENXIO);
    assert_int_equal (submit (m, IO_ZERO, 0, &iov, 0, 4096), ENXIO);
    assert_int_equal (submit (m, IO_FLUSH, 0, &iov, 0, 0), ENXIO);
    assert_int_equal (m->ops->intact (m, false), ENXIO);
    assert_int_equal (stat (path, &st), 0);
    assert_int_equal (st.st_size, size);
    assert_int_equal (nr_notices, 1);
    size = SIZE;
    assert_int_equal (truncate (path, size), 0);
  }
  member_close (m);
}

/* Whoever looks first finds it. */
static void
check_cut (const char *dir, uint8_t *buf)
{
  const uint64_t above = SIZE - MIB;
  struct iovec iov = { buf, 8192 };
  struct member *m;
  bool hole;
  uint64_t end;

  m = new_cut (dir, buf);
  assert_int_equal (m->ops->pread (m, buf, 8192, SIZE / 2 - 4096), ENXIO);
  end_cut (m, buf, SIZE / 2 - 100);
  m = new_cut (dir, buf);
  assert_int_equal (m->ops->pread (m, buf, 8192, 0), ENXIO);
  end_cut (m, buf, SIZE / 2 - 100);

  /* A write above it makes it longer again: the rest reads as zeroes. */
  m = new_cut (dir, buf);
  assert_int_equal (m->ops->pwrite (m, buf, 4096, above), 0);
  assert_int_equal (m->ops->pread (m, buf, 8192, SIZE / 2), ENXIO);
  end_cut (m, buf, above + 4096);
  m = new_cut (dir, buf);
  assert_int_equal (submit (m, IO_WRITE, above, &iov, 1, 8192), 0);
  assert_int_equal (submit (m, IO_READ, SIZE / 2, &iov, 1, 8192), ENXIO);
  end_cut (m, buf, above + 8192);
  m = new_cut (dir, buf);
  assert_int_equal (m->ops->pwrite (m, buf, 4096, above), 0);
  assert_int_equal (m->ops->flush (m), ENXIO);
  end_cut (m, buf, above + 4096);
  m = new_cut (dir, buf);
  assert_int_equal (m->ops->pwrite (m, buf, 4096, above), 0);
  assert_int_equal (m->ops->extent (m, SIZE / 2, 4096, &hole, &end), ENXIO);
  end_cut (m, buf, above + 4096);

  /* What would make it as long as it was is not written at all. */
  m = new_cut (dir, buf);
  assert_int_equal (m->ops->pwrite (m, buf, 4096, SIZE - 4096), ENXIO);
  end_cut (m, buf, SIZE / 2 - 100);
  m = new_cut (dir, buf);
  assert_int_equal (submit (m, IO_WRITE, SIZE - 8192, &iov, 1, 8192), ENXIO);
  end_cut (m, buf, SIZE / 2 - 100);

  /* A read that met the end, though it is as long again. */
  m = new_cut (dir, buf);
  assert_int_equal (truncate (path, SIZE), 0);
  assert_int_equal (m->ops->intact (m, false), 0);
  assert_int_equal (m->ops->intact (m, true), ENXIO);
  end_cut (m, buf, SIZE);
}

static void
test_cut (void **state)
{
  void *buf = NULL;
  struct member *m;

  assert_int_equal (posix_memalign (&buf, 4096, MIB), 0);
  for (size_t i = 0; i < ARRAY_LEN (dirs); ++i)
    check_cut (dirs[i], buf);

  /* Longer is no harm. */
  new_file (dirs[0]);
  m = open_ok (path, 0, 0);
  assert_int_equal (truncate (path, 2 * SIZE), 0);
  assert_int_equal (m->ops->pread (m, buf, 4096, SIZE - 4096), 0);
  assert_int_equal (m->ops->flush (m), 0);
  assert_int_equal (m->ops->size (m), SIZE);
  member_close (m);
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

static void
test_relative_path (void **state)
{
  char cwd[4096];
  struct member *m;

  new_file (dirs[0]);
  assert_non_null (getcwd (cwd, sizeof cwd));
  assert_int_equal (chdir (dirs[0]), 0);
  m = open_ok ("a", 0, 0);
  assert_string_equal (m->path, path);
  member_close (m);
  assert_int_equal (chdir (cwd), 0);
}

/* The loop device's name, or false where there is none to be had. */
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
    print_message ("no loop device to be had: disks are not tested\n");
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
  nr_errors = 0;
  assert_null (member_open (dev, 0, 0));
  assert_int_equal (nr_errors, 1);
  member_close (open_ok (dev, MEMBER_RDONLY, 0));
  losetup_detach (dev);
  /* A node with nothing behind it counts as missing. */
  open_fails (dev, 0, 0, ENXIO, 0);
}

static int
setup (void **state)
{
  log_set_sink (sink);
  strcpy (dirs[0], "/dev/shm/gpuraid-XXXXXX");
  strcpy (dirs[1], "/var/tmp/gpuraid-XXXXXX");
  return mkdtemp (dirs[0]) == NULL || mkdtemp (dirs[1]) == NULL;
}

static int
teardown (void **state)
{
  char cmd[256];

  snprintf (cmd, sizeof cmd, "rm -rf %s %s", dirs[0], dirs[1]);
  return system (cmd);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_refused),
    cmocka_unit_test (test_readonly),
    cmocka_unit_test (test_locks),
    cmocka_unit_test (test_lock_survives_fork),
    cmocka_unit_test (test_file_io),
    cmocka_unit_test (test_cut),
    cmocka_unit_test (test_relative_path),
    cmocka_unit_test (test_disk),
  };

  return cmocka_run_group_tests (tests, setup, teardown);
}
