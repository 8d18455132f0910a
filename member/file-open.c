/* gpuraid: open a file or disk.
 *
 * Decides whether a path can be a member, takes the locks, and checks whether
 * the store supports direct I/O.  array/ checks the content.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "common/bits.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/plant.h"
#include "member/file.h"

/* Two copies of the superblock at each end, a block each. */
#define MIN_LEN (4 * 4096u)

unsigned file_used_wait_ms = 500;
#define USED_PAUSE_MS 20u       /* between two tries */

/* Not resolved any further: a link in /dev/disk/by-id still names the
 * right disk after a reboot, its target may not.
 */
static char *
absolute (const char *path)
{
  CLEANUP_FREE char *cwd = NULL;
  char *r;

  if (path[0] == '/') {
    r = strdup (path);
    if (r == NULL)
      log_error ("strdup: %m");
    return r;
  }
  cwd = getcwd (NULL, 0);
  if (cwd == NULL) {
    log_error ("getcwd: %m");
    return NULL;
  }
  if (asprintf (&r, "%s/%s", cwd, path) == -1) {
    log_error ("asprintf: %m");
    return NULL;
  }
  return r;
}

/* Report what went wrong with call, unless the caller is to count the member as
 * missing.  When creating, no member can be missing: ENOENT is then about the
 * folder.
 */
static void
report (const char *call, const char *path, unsigned flags)
{
  bool missing = errno == ENOENT || errno == ENXIO || errno == EIO;

  if (missing && !(flags & MEMBER_CREATE))
    return;
  log_error ("%s: %s: %m%s", call, path, errno == ENOENT ?
             ": make its folder first" : errno == EACCES ?
             ": run this as root, or as the owner of the member" : "");
  if (missing)
    errno = EINVAL;
}

static const char *
name_of_type (mode_t mode)
{
  return S_ISDIR (mode) ? "a directory" :
    S_ISCHR (mode) ? "a character device" :
    S_ISFIFO (mode) ? "a pipe" : "a socket";
}

const char *
member_other_type (const char *path)
{
  struct stat st;

  if (stat (path, &st) == 0)
    return S_ISREG (st.st_mode) || S_ISBLK (st.st_mode) ? NULL :
      name_of_type (st.st_mode);
  return errno == ENOENT && lstat (path, &st) == 0 ?
    "a symbolic link to a file that is not there" : NULL;
}

/* Before the open: opening a pipe would wait for its other end, and a
 * disk needs one more flag.
 */
static int
check_type (const struct file_member *f, const struct stat *st)
{
  if (S_ISREG (st->st_mode) || S_ISBLK (st->st_mode))
    return 0;
  errno = S_ISDIR (st->st_mode) ? EISDIR : EINVAL;
  log_error ("%s: is %s, not a file or disk: leave it out", f->member.path,
             name_of_type (st->st_mode));
  return -1;
}

/* The folder, or the nearest one above it that is there.  dir is absolute, and
 * is cut.
 */
static char *
real_folder (char *dir)
{
  char *real;

  while ((real = realpath (dir, NULL)) == NULL && errno == ENOENT &&
         strrchr (dir, '/') != dir)
    *strrchr (dir, '/') = '\0';
  return real;
}

/* Is this folder for devices?  A file that is made there, where a device was
 * meant, would be in memory.
 */
static bool
holds_devices (char *dir)
{
  CLEANUP_FREE char *real = real_folder (dir);
  struct stat st, dev, root;

  if (real == NULL)
    return false;               /* the open will say why */
  if (strcmp (real, "/dev/shm") == 0 || strncmp (real, "/dev/shm/", 9) == 0)
    return false;
  if (strcmp (real, "/dev") == 0 || strncmp (real, "/dev/", 5) == 0)
    return true;
  /* The same file system under another name. */
  return stat (real, &st) == 0 && stat ("/dev", &dev) == 0 &&
    stat ("/", &root) == 0 && st.st_dev == dev.st_dev &&
    dev.st_dev != root.st_dev;
}

bool
member_is_no_device (const char *path)
{
  const char *slash = strrchr (path, '/');
  CLEANUP_FREE char *dir = strndup (path, MAX (1, slash - path));

  return dir && access (path, F_OK) != 0 && holds_devices (dir);
}

static int
check_folder (const char *path)
{
  if (!member_is_no_device (path))
    return 0;                   /* the open will say if it is there */
  log_error ("%s: no such device", path);
  errno = ENODEV;
  return -1;
}

/* io_uring closes the files of a process that was killed a moment after the
 * process is gone.  A server that is started again at once waits for that.
 */
static bool
wait_more (unsigned *waited_ms)
{
  const struct timespec pause = { .tv_nsec = USED_PAUSE_MS * 1000000L };

  if (*waited_ms >= file_used_wait_ms)
    return false;
  nanosleep (&pause, NULL);
  *waited_ms += USED_PAUSE_MS;
  return true;
}

static int
open_fd (struct file_member *f, unsigned flags)
{
  const char *path = f->member.path;
  int oflags = O_CLOEXEC | O_NOCTTY |
    (f->member.readonly ? O_RDONLY : O_RDWR);
  unsigned waited = 0;
  struct stat st;

  if (flags & MEMBER_CREATE) {
    if (check_folder (path) == -1)
      return -1;
    oflags |= O_CREAT | O_EXCL;
  }
  else {
    if (stat (path, &st) == -1) {
      report ("stat", path, flags);
      return -1;
    }
    if (check_type (f, &st) == -1)
      return -1;
    f->disk = S_ISBLK (st.st_mode);
    if (f->disk && !(flags & MEMBER_NOLOCK) && !PLANTED ("disk-shared"))
      oflags |= O_EXCL;
  }

  while ((f->fd = open (path, oflags, 0600)) == -1 && errno == EBUSY &&
         wait_more (&waited))
    ;
  if (f->fd == -1) {
    if (errno == EBUSY)
      log_error ("%s: disk is in use (mounted: umount it; or held by another "
                 "program), or given twice: leave it out", path);
    else
      report ("open", path, flags);
    return -1;
  }
  return 0;
}

static int
identify (struct file_member *f, unsigned flags)
{
  struct stat st;

  if (fstat (f->fd, &st) == -1) {
    report ("fstat", f->member.path, flags);
    return -1;
  }
  if (check_type (f, &st) == -1)
    return -1;
  if (f->disk != S_ISBLK (st.st_mode)) {
    errno = EBUSY;
    log_error ("%s: was replaced while it was opened", f->member.path);
    return -1;
  }
  f->dev = f->disk ? st.st_rdev : st.st_dev;
  f->ino = f->disk ? 0 : st.st_ino;
  f->named = !f->disk && st.st_nlink > 0;
  return 0;
}

/* These locks belong to the open file, not to the process: they survive
 * nbdkit's fork, and a second open of the same file by this process conflicts
 * too.
 */
static int
take_lock (struct file_member *f, int fd, uint64_t off, uint64_t len)
{
  struct flock fl = {
    .l_type = f->member.readonly ? F_RDLCK : F_WRLCK,
    .l_whence = SEEK_SET, .l_start = off, .l_len = len,
  };
  unsigned waited = 0;
  int r;

  while ((r = fcntl (fd, F_OFD_SETLK, &fl)) == -1 &&
         (errno == EWOULDBLOCK || errno == EACCES) && wait_more (&waited))
    ;
  if (r == 0)
    return 0;
  if (errno == EWOULDBLOCK || errno == EACCES) {
    errno = EWOULDBLOCK;
    log_error ("%s: in use by another process, or given twice: stop the array "
               "that uses it (gpuraid stop), or leave it out",
               f->member.path);
  }
  else {
    log_error ("fcntl: can't lock: %s: %m", f->member.path);
    if (errno == EIO || errno == ENOENT || errno == ENXIO)
      errno = ENOLCK;           /* reported, so not one of these */
  }
  return -1;
}

static int
find_size (struct file_member *f, unsigned flags)
{
  off_t r = lseek (f->fd, 0, SEEK_END);
  int ro = 0;

  if (r == -1) {
    report ("lseek", f->member.path, flags);
    return -1;
  }
  f->size = r;
  if (f->size == 0 && f->disk) {
    errno = ENXIO;              /* a node without a disk: missing */
    return -1;
  }
  if (f->size < MIN_LEN && (flags & MEMBER_LISTED)) {
    errno = ENODATA;
    return -1;
  }
  if (f->size < MIN_LEN) {
    errno = EINVAL;
    log_error ("%s: %s: name another, or make it longer", f->member.path,
               f->size == 0 ? "file is empty" : "too small for a member");
    return -1;
  }
  if (f->disk && !f->member.readonly &&
      ioctl (f->fd, BLKROGET, &ro) == 0 && ro) {
    errno = EROFS;
    log_error ("%s: disk is read-only (blockdev --setrw, if it can be "
               "written)", f->member.path);
    return -1;
  }
  return 0;
}

static bool
is_memory (int fd)
{
  struct statfs fs;

  return fstatfs (fd, &fs) == 0 &&
    (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

/* File systems that need no server and no program.  Disks and these answer, if
 * only with an error after a while.
 */
static bool
is_local (const struct file_member *f)
{
  static const uint32_t types[] = {
    TMPFS_MAGIC, RAMFS_MAGIC, EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC,
    BTRFS_SUPER_MAGIC, F2FS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC,
    HUGETLBFS_MAGIC, MSDOS_SUPER_MAGIC, 0x2fc12fc1 /* ZFS */,
    0xca451a4e /* bcachefs */, 0x3153464a /* JFS */,
  };
  struct statfs fs;

  if (f->disk)
    return true;
  if (fstatfs (f->fd, &fs) == 0)
    for (unsigned i = 0; i < ARRAY_LEN (types); i++)
      if ((uint32_t) fs.f_type == types[i])
        return true;
  return false;
}

/* A file system may accept the flag and still refuse the I/O, so try one.  A
 * bad sector is no refusal.  tmpfs accepts both on new kernels, but it has no
 * medium, so direct I/O would only require alignment.
 */
static int
try_direct (struct file_member *f)
{
  CLEANUP_FREE void *buf = NULL;
  int fl;

  if (!f->disk && is_memory (f->fd)) {
    log_debug ("%s: in memory, no direct I/O", f->member.path);
    return 0;
  }
  if (posix_memalign (&buf, 4096, 4096) != 0) {
    errno = ENOMEM;
    log_error ("posix_memalign: %m");
    return -1;
  }
  fl = fcntl (f->fd, F_GETFL);
  if (fl != -1 && fcntl (f->fd, F_SETFL, fl | O_DIRECT) == 0) {
    if (pread (f->fd, buf, 4096, 0) != -1 ||
        (errno != EINVAL && errno != EOPNOTSUPP)) {
      f->member.direct = true;
      return 0;
    }
    if (fcntl (f->fd, F_SETFL, fl) == -1) {
      log_error ("fcntl: %s: %m", f->member.path);
      return -1;
    }
  }
  log_debug ("%s: direct I/O refused, using the page cache: %m",
             f->member.path);
  return 0;
}

static int
make_sparse (struct file_member *f, uint64_t size)
{
  CLEANUP_FREE char *dir = strdup (f->member.path);
  CLEANUP_CLOSE int dirfd = -1;

  if (dir == NULL) {
    log_error ("strdup: %m");
    return -1;
  }
  if (ftruncate (f->fd, size) == -1) {
    report ("ftruncate", f->member.path, MEMBER_CREATE);
    return -1;
  }
  /* The name must be as durable as the data. */
  *(strrchr (dir, '/') + 1) = '\0';
  dirfd = open (dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dirfd == -1 || (fsync (dirfd) == -1 && errno != EINVAL)) {
    report ("fsync", dir, MEMBER_CREATE);
    return -1;
  }
  return 0;
}

static int
open_steps (struct file_member *f, unsigned flags, uint64_t size)
{
  if (identify (f, flags) == -1)
    return -1;
  if (!(flags & MEMBER_NOLOCK) && !PLANTED ("member-unlocked") &&
      take_lock (f, f->fd, 0, 0) == -1)
    return -1;
  if ((flags & MEMBER_CREATE) && make_sparse (f, size) == -1)
    return -1;
  if (find_size (f, flags) == -1)
    return -1;
  if (!(flags & MEMBER_NOLOCK) && !PLANTED ("backing-unlocked"))
    file_open_backing (f);
  if (f->backing != -1 &&
      take_lock (f, f->backing, f->backing_off, f->size) == -1)
    return -1;
  f->member.local = is_local (f);
  return try_direct (f);
}

/* Refusals that depend on the arguments alone. */
static int
check_args (const char *path, unsigned flags, uint64_t size)
{
  if (path[0] == '\0') {
    errno = EINVAL;
    log_error ("a member needs a path, this one is empty");
    return -1;
  }
  if ((flags & MEMBER_CREATE) && size < MIN_LEN) {
    errno = EINVAL;
    log_error ("%s: too small for a member", path);
    return -1;
  }
  if ((flags & MEMBER_CREATE) && size > INT64_MAX) {
    errno = EFBIG;
    log_error ("%s: too large for a file", path);
    return -1;
  }
  return 0;
}

struct member *
member_open_file (const char *path, unsigned flags, uint64_t size)
{
  struct file_member *f;

  if (check_args (path, flags, size) == -1)
    return NULL;
  f = calloc (1, sizeof *f);
  if (f == NULL) {
    log_error ("calloc: %m");
    return NULL;
  }
  f->fd = f->backing = -1;
  f->member.ops = &file_member_ops;
  f->member.readonly = (flags & (MEMBER_RDONLY | MEMBER_NOLOCK)) != 0;
  f->member.path = absolute (path);
  if (f->member.path == NULL)
    goto err;
  if (open_fd (f, flags) == -1)
    goto err;
  if (open_steps (f, flags, size) == -1) {
    if (flags & MEMBER_CREATE) {
      int err = errno;

      unlink (f->member.path);
      errno = err;
    }
    goto err;
  }
  return &f->member;

 err:
  file_member_free (f);
  return NULL;
}
