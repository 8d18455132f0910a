/* gpuraid: carry out I/O on a file or disk.
 *
 * Handles short transfers, EINTR and EAGAIN.  file-open.c has decided before
 * which file it is, under which lock, and whether I/O is direct.
 *
 * Also detects a file that another program truncates.  A read past its new end
 * fails.  But after a write beyond the new end the file is longer again, and
 * the lost data between reads as zeroes with no error.  So the size is checked
 * after each read: if the file then has its full length, the data was not
 * truncated before.  This holds as long as no write of ours restores the
 * length, and only writes to the last bytes could: a superblock's copy, seldom
 * written, and only after a check of the size.  The size is also checked after
 * a flush, so that acknowledged data is on a whole member.  In a truncated file
 * no data can be trusted, and where it was truncated is unknown: all I/O is
 * refused, and the array continues without the member.  Not detected: a file
 * that another program truncates and makes as long again between two checks, or
 * truncates in the microseconds between the check and the write of its end.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/bits.h"
#include "common/log.h"
#include "common/threads/clock.h"
#include "member/file.h"
#include "member/io.h"

/* Written if a store can't make zeroes by itself.  Never changed, but not
 * const: it would then take this much room in the program.
 */
static uint8_t zeroes[256 * 1024] __attribute__ ((aligned (4096)));

static struct file_member *
file_of (struct member *m)
{
  return (struct file_member *) m;
}

static uint64_t
file_size (struct member *m)
{
  return file_of (m)->size;
}

static bool
file_same (struct member *m, struct member *m2)
{
  struct file_member *f = file_of (m), *f2 = file_of (m2);

  return m2->ops == &file_member_ops && f->disk == f2->disk &&
    f->dev == f2->dev && f->ino == f2->ino;
}

/* The kernel's own value of the size: a file system in user space or on the
 * network, which may hang, is not asked.  190 ns, like fstat.  UINT64_MAX if it
 * is unknown.
 */
static uint64_t
size_now (const struct file_member *f)
{
  struct statx st;
  struct stat old;

  if (statx (f->fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_SIZE,
             &st) == 0)
    return st.stx_size;
  return fstat (f->fd, &old) == 0 ? (uint64_t) old.st_size : UINT64_MAX;
}

static void
file_look_size (struct member *m)
{
  struct file_member *f = file_of (m);
  uint64_t now = 0, had = f->size;

  if (atomic_load_explicit (&m->truncated, memory_order_relaxed))
    return;
  if (!f->disk)
    now = size_now (f);
  else if (ioctl (f->fd, BLKGETSIZE64, &now) == -1)
    return;
  while (now != UINT64_MAX && now > had &&
         !atomic_compare_exchange_weak (&f->size, &had, now))
    ;
}

/* A disk can't grow again by a write: past its end all I/O fails. */
static int
file_intact (struct member *m, bool eof)
{
  const struct file_member *f = file_of (m);
  const uint64_t size = f->size;
  uint64_t now;

  if (f->disk)
    return eof ? EIO : 0;
  if (atomic_load_explicit (&m->truncated, memory_order_relaxed))
    return ENXIO;
  now = size_now (f);
  if (now >= size && !eof)
    return 0;
  if (!atomic_exchange (&m->truncated, true))
    log_notice ("%s: was cut short: has %" PRIu64 " bytes, had %" PRIu64,
                m->path, now, size);
  return ENXIO;
}

/* The kernel's own value, as in size_now. */
static int
file_check (struct member *m)
{
  const struct file_member *f = file_of (m);
  struct statx st;

  if (f->named &&
      statx (f->fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_NLINK,
             &st) == 0 && st.stx_nlink == 0)
    return ENOENT;
  return 0;
}

static int
check (struct file_member *f, enum io_kind kind, uint64_t off, uint64_t len)
{
  const int err = io_check (&f->member, f->size, kind, off, len);

  if (err || !io_reaches_end (f->size, kind, off, len))
    return err;
  return file_intact (&f->member, false);
}

/* Should a call that failed with errno be repeated? */
static bool
again (void)
{
  if (errno == EAGAIN)
    nanosleep (&(struct timespec) { .tv_nsec = 1000000 }, NULL);
  return errno == EINTR || errno == EAGAIN;
}

static ssize_t
transfer_some (int fd, bool write, const struct iovec *iov, unsigned nr_iov,
               uint64_t off)
{
  /* Small reads in the client's thread need no vector. */
  if (nr_iov == 1)
    return write ? pwrite (fd, iov->iov_base, iov->iov_len, off) :
      pread (fd, iov->iov_base, iov->iov_len, off);
  return write ? pwritev (fd, iov, nr_iov, off) :
    preadv (fd, iov, nr_iov, off);
}

static int
transfer (struct file_member *f, bool write, struct iovec *iov,
          unsigned nr_iov, uint64_t off, uint64_t len)
{
  uint64_t moved = 0;

  while (moved < len) {
    struct iov_rest rest;
    ssize_t r;

    iov_skip (iov, nr_iov, moved, &rest);
    r = transfer_some (f->fd, write, iov + rest.i, nr_iov - rest.i,
                       off + moved);
    iov_unskip (iov, &rest);
    if (r == -1) {
      if (again ())
        continue;
      return errno;
    }
    moved += r;
    if (r == 0 || (moved < len && !io_can_go_on (&f->member, moved)))
      return write ? EIO : file_intact (&f->member, true);
  }
  return write ? 0 : file_intact (&f->member, false);
}

static int
file_pread (struct member *m, void *buf, size_t len, uint64_t off)
{
  struct file_member *f = file_of (m);
  struct iovec iov = { buf, len };
  int err = check (f, IO_READ, off, len);

  return err ? err : transfer (f, false, &iov, 1, off, len);
}

static int
file_preadv (struct member *m, struct iovec *iov, unsigned nr_iov, size_t len,
             uint64_t off)
{
  struct file_member *f = file_of (m);
  int err = check (f, IO_READ, off, len);

  return err ? err : transfer (f, false, iov, nr_iov, off, len);
}

static int
file_pwrite (struct member *m, const void *buf, size_t len, uint64_t off)
{
  struct file_member *f = file_of (m);
  struct iovec iov = { (void *) buf, len };
  int err = check (f, IO_WRITE, off, len);

  return err ? err : transfer (f, true, &iov, 1, off, len);
}

/* A file system that can't be written, as squashfs, may have no flush. */
static int
file_flush (struct member *m)
{
  while (fdatasync (file_of (m)->fd) == -1) {
    if (errno == EINVAL && m->readonly)
      break;
    if (!again ())
      return errno;
  }
  return file_intact (m, false);
}

static int
punch_hole (struct file_member *f, uint64_t off, uint64_t len)
{
  while (fallocate (f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    off, len) == -1)
    if (!again ())
      return errno;
  return 0;
}

static int
zero_range (struct file_member *f, uint64_t off, uint64_t len)
{
  while (fallocate (f->fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE,
                    off, len) == -1)
    if (!again ())
      return errno;
  return 0;
}

static int
write_zeroes (struct file_member *f, uint64_t off, uint64_t len)
{
  while (len > 0) {
    struct iovec iov = { zeroes, MIN (len, sizeof zeroes) };
    int err = transfer (f, true, &iov, 1, off, iov.iov_len);

    if (err)
      return err;
    off += iov.iov_len;
    len -= iov.iov_len;
  }
  return 0;
}

/* IO_ZERO and IO_TRIM.  If a store refuses the quick ways for whatever reason
 * (not supported, no space to allocate, not aligned), a plain write gives the
 * final result.
 */
static int
make_zero (struct file_member *f, bool trim, uint64_t off, uint64_t len)
{
  if (len == 0)
    return 0;
  if (trim) {
    if (punch_hole (f, off, len) == 0 || zero_range (f, off, len) == 0)
      return 0;
  }
  else {
    if (zero_range (f, off, len) == 0 || punch_hole (f, off, len) == 0)
      return 0;
  }
  return write_zeroes (f, off, len);
}

/* For a disk the kernel does the same with its "write zeroes" command, and
 * refuses if it would have to send the zeroes.
 */
static int
file_discard (struct member *m, uint64_t off, uint64_t len)
{
  struct file_member *f = file_of (m);
  int err = check (f, IO_TRIM, off, len);

  if (err || len == 0)
    return err;
  err = punch_hole (f, off, len);
  return err == ENOSYS || err == ENODEV ? EOPNOTSUPP : err;
}

static int
file_allocate (struct member *m, uint64_t off, uint64_t len)
{
  struct file_member *f = file_of (m);
  int err = check (f, IO_ZERO, off, len);

  if (err || len == 0)
    return err;
  err = zero_range (f, off, len);
  if (err == EOPNOTSUPP && (err = punch_hole (f, off, len)) == 0)
    while ((err = fallocate (f->fd, FALLOC_FL_KEEP_SIZE, off, len) == -1 ?
            errno : 0) != 0)
      if (!again ())
        break;
  return err == ENOSYS || err == ENODEV ? EOPNOTSUPP : err;
}

/* Only the return value of lseek matters: all I/O gives its position. */
static int
file_extent (struct member *m, uint64_t off, uint64_t len,
             bool *hole, uint64_t *end)
{
  struct file_member *f = file_of (m);
  off_t pos;
  int err = check (f, IO_READ, off, len);

  if (err)
    return err;
  *hole = false;
  *end = off + len;
  if (f->disk)
    return 0;

  pos = lseek (f->fd, off, SEEK_DATA);
  if (pos == -1)
    *hole = errno == ENXIO;     /* no data from here on */
  else if ((uint64_t) pos > off)
    *hole = true;
  else
    pos = lseek (f->fd, off, SEEK_HOLE);
  if (pos != -1 && (uint64_t) pos > off)
    *end = MIN (*end, (uint64_t) pos);
  /* The end of a truncated file is no hole of ours. */
  return *hole ? file_intact (m, false) : 0;
}

static int
carry_out (struct file_member *f, struct io *io)
{
  int err = check (f, io->kind, io->off, io->len);

  if (err)
    return err;
  switch (io->kind) {
  case IO_READ:
  case IO_WRITE:
    return transfer (f, io->kind == IO_WRITE, io->iov, io->nr_iov,
                     io->off, io->len);
  case IO_FLUSH:
    return file_flush (&f->member);
  case IO_ZERO:
  case IO_TRIM:
    return make_zero (f, io->kind == IO_TRIM, io->off, io->len);
  }
  abort ();
}

/* What took less was in the page cache, or went there.  Direct I/O does not:
 * a fast medium is as quick, but best does the I/O of all members at once.
 */
#define QUICK_NS 100000

static void
note_quick (struct member *m, enum io_kind kind, bool quick)
{
  const unsigned bit = 1u << kind;
  const unsigned had = atomic_load_explicit (&m->quick, memory_order_relaxed);

  if (quick && (had & bit) == 0)
    atomic_fetch_or_explicit (&m->quick, bit, memory_order_relaxed);
  else if (!quick && (had & bit) != 0)
    atomic_fetch_and_explicit (&m->quick, ~bit, memory_order_relaxed);
}

static void
file_submit (struct member *m, struct io *io)
{
  const uint64_t before = monotonic_ns ();
  const int err = carry_out (file_of (m), io);

  note_quick (m, io->kind, !m->direct &&
              monotonic_ns () - before < QUICK_NS);
  io_done (io, err);
}

static int
file_fd (struct member *m)
{
  return file_of (m)->fd;
}

void
file_member_free (struct file_member *f)
{
  int err = errno;

  if (f == NULL)
    return;
  if (f->fd != -1)
    close (f->fd);              /* and with it the locks */
  if (f->backing != -1)
    close (f->backing);
  free (f->member.path);
  free (f);
  errno = err;
}

static void
file_close (struct member *m)
{
  file_member_free (file_of (m));
}

const struct member_ops file_member_ops = {
  .size = file_size,
  .look_size = file_look_size,
  .same = file_same,
  .pread = file_pread,
  .preadv = file_preadv,
  .pwrite = file_pwrite,
  .flush = file_flush,
  .discard = file_discard,
  .allocate = file_allocate,
  .extent = file_extent,
  .submit = file_submit,
  .fd = file_fd,
  .intact = file_intact,
  .check = file_check,
  .close = file_close,
};
