/* gpuraid: one backing store.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_MEMBER_H
#define GPURAID_MEMBER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "member/loop.h"

struct member {
  const struct member_ops *ops;
  char *path;                   /* absolute path or URI; owned */
  bool readonly;
  bool direct;                  /* addresses, offsets and lengths must be
                                 * multiples of 4096, and I/O goes to the
                                 * medium: worth overlapping, not worth
                                 * doing in the client's thread when large */
  bool local;                   /* suits short reads in the client's thread: no
                                 * server that may hang is involved */
  bool async;                   /* submit never waits: a loop calls it in the
                                 * thread that has the I/O */
  atomic_bool truncated;        /* see intact below: all I/O is refused with
                                 * ENXIO */
  /* What the array lets an async member know; set by any thread. */
  atomic_bool unused;           /* it was taken out: end all I/O with an error
                                 * soon, and refuse more */
  atomic_bool hurry;            /* the array stops: don't wait for ever for a
                                 * server that is away */
  /* What an async member lets the array know. */
  atomic_bool away;             /* there is no connection to its server now */
  /* What a member that is not async lets a loop know: a bit for each io_kind
   * whose last I/O was over at once.
   */
  atomic_uint quick;
};

/* The synchronous calls are for .get_ready, which runs before the fork, and for
 * small clean reads; any thread.  They return 0 or a positive errno.  The only
 * message is one that a file was truncated.  None returns a short transfer.
 */
struct member_ops {
  uint64_t (*size) (struct member *);   /* bytes; never less than before */
  /* Ask the store: size gives what it has from now on, if that is more.  Any
   * thread; never waits for the store.  NULL: that can't be asked so.
   */
  void (*look_size) (struct member *);
  /* The same, but it waits, for some seconds at most, and may connect again.
   * NULL: it has look_size.
   */
  void (*ask_size) (struct member *);
  /* One store under two names (hard link, symbolic link, two nodes of
   * one disk)?
   */
  bool (*same) (struct member *, struct member *);
  int (*pread) (struct member *, void *buf, size_t len, uint64_t off);
  /* Into several buffers, at most IO_MAX_IOV and len bytes in all; iov is as
   * before when this returns.  NULL: there is only pread.
   */
  int (*preadv) (struct member *, struct iovec *iov, unsigned nr_iov,
                 size_t len, uint64_t off);
  int (*pwrite) (struct member *, const void *buf, size_t len, uint64_t off);
  int (*flush) (struct member *);
  /* Make a range read as zeroes at once (punch a hole, BLKZEROOUT that the
   * device does itself); EOPNOTSUPP if that would mean writing.
   */
  int (*discard) (struct member *, uint64_t off, uint64_t len);
  /* Make a range read as zeroes, with its space allocated, without writing
   * it; EOPNOTSUPP if that can't be done.
   */
  int (*allocate) (struct member *, uint64_t off, uint64_t len);
  /* Is the byte at off in a hole that reads as zeroes, and where does that run
   * end?  *end is past off, at most off + len.  A store that cannot tell
   * returns data.
   */
  int (*extent) (struct member *, uint64_t off, uint64_t len,
                 bool *hole, uint64_t *end);
  /* Carry out one I/O and call its done: synchronously, in the calling
   * thread (loop_threads gives each member that may hang its own); an async
   * member does it in a thread of its own.  The io_uring loop uses fd instead
   * where that is not -1.
   */
  void (*submit) (struct member *, struct io *);
  int (*fd) (struct member *);                  /* or -1 */
  /* Does the store still have all of its bytes?  0, or ENXIO from the moment
   * when it was found shorter than when it was opened.  The loop that carries
   * out I/O on fd calls it after every successful read and flush, and with eof
   * when a read has met the end of the file.  It never waits for the store.
   * NULL: it can't be truncated.
   */
  int (*intact) (struct member *, bool eof);
  /* Can the store still be used?  0, or ENOENT where its file was deleted while
   * it was open; another errno, which was reported, where a server has another
   * export now, or another user.  Any thread; never waits for the store.  NULL:
   * it always can.
   */
  int (*check) (struct member *);
  /* End the member's own thread.  No I/O is in flight, nor is there more.
   * NULL: it has none.
   */
  void (*end) (struct member *);
  void (*close) (struct member *);              /* drops the locks; frees */
};

static inline void
member_close (struct member *m)
{
  if (m)
    m->ops->close (m);
}

/* How to open. */
#define MEMBER_RDONLY   1u      /* shared lock, O_RDONLY */
#define MEMBER_NOLOCK   2u      /* examine: no lock, O_RDONLY; never waits */
#define MEMBER_CREATE   4u      /* make a file that must not be there yet
                                 * (O_EXCL); then size applies */
#define MEMBER_LISTED   8u      /* one of those listed for an array: one that is
                                 * too small may count as missing */

/* Open a file or block device by path.  O_DIRECT if the store supports it, else
 * buffered with one debug message; member->direct says which.  Files are locked
 * with OFD locks (whole file), disks opened O_EXCL too.  A path that is a
 * directory, empty, too small for a superblock, not a file or disk: reported,
 * NULL, errno set.
 *
 * NULL with errno ENOENT, ENXIO or EIO is *not* reported: the caller counts
 * such a member as missing (a node without a disk is ENXIO).  So is ENODATA,
 * with MEMBER_LISTED only: empty, or too small for a superblock.  All other
 * failures have been reported in one line (EBUSY, EWOULDBLOCK: in use by
 * another); with MEMBER_CREATE every failure has (ENODEV: it would be made
 * where devices are).
 */
extern struct member *member_open_file (const char *path, unsigned flags,
                                        uint64_t size);

/* Connect to an NBD export.  Waits at most 10 seconds for its server, and 30
 * for an answer.  One that can't be reached, or is empty or unreadable:
 * NULL with errno ENXIO and a notice that says why if it is MEMBER_LISTED, else
 * reported as an error.  All other failures have been reported: a bad URI, an
 * export that can't be a member (EINVAL; EROFS: read-only, which is reported
 * unless it is MEMBER_LISTED).  There is no lock.
 */
extern struct member *member_open_nbd (const char *uri, unsigned flags);
/* Does this absolute path mean a device that is not there?  A file that is made
 * there would be in memory.
 */
extern bool member_is_no_device (const char *path);
/* "a pipe", or what else at this path is neither file nor disk; constant.
 * NULL: it is one, or nothing is there.
 */
extern const char *member_other_type (const char *path);
/* Is it one of the URIs that member_open_nbd takes? */
extern bool member_is_uri (const char *name);
/* Is it one of a Unix socket that does not name it? */
extern bool member_uri_lacks_socket (const char *uri);
/* A URI with the files in it made absolute, seen from this folder, which is
 * absolute, or NULL for the current one.  The caller frees it.  NULL: reported.
 */
extern char *member_absolute_uri (const char *uri, const char *folder);

/* Open by name: a path, or an NBD URI. */
extern struct member *member_open (const char *name, unsigned flags,
                                   uint64_t size);

#endif
