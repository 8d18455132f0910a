/* gpuraid: where I/O completes.
 *
 * Three kinds, one choice per process: io_uring, plain threads, and
 * simulated (member/sim/sim.h).  A loop is made after nbdkit's fork.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_LOOP_H
#define GPURAID_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "common/lock-check.h"

struct member;
struct loop;

enum io_kind {
  IO_READ, IO_WRITE, IO_FLUSH,
  IO_ZERO,              /* reads as zeroes afterwards, stays allocated where
                         * the store can do that */
  IO_TRIM,              /* the same, and frees the space if it can */
};

/* One I/O on one member.  The loop and the member own it from submit
 * until done is called; iov and the memory behind it likewise.
 */
struct io {
  enum io_kind kind;
  struct member *member;
  uint64_t off;                 /* bytes, from the start of the member */
  uint64_t len;                 /* bytes; the sum of iov to read or write */
  struct iovec *iov;
  unsigned nr_iov;              /* at most IO_MAX_IOV */
  int error;                    /* out: 0 or a positive errno.  Short transfers,
                                 * EINTR and EAGAIN are handled before; a read
                                 * past the end is EIO */
  void (*done) (struct io *);   /* called once, in some thread that holds no
                                 * lock, possibly before submit returns; must
                                 * not block */
  bool more;                    /* out: the same thread calls another done at
                                 * once, so the owner may wait for that */
  struct io *next;              /* the loop's, between submit and done */
};
#define IO_MAX_IOV 1024

/* A one-shot timer. */
struct timer {
  void (*fire) (struct timer *);        /* like done */
  uint64_t at_ns;                       /* the loop's; of its now */
  struct timer *next;                   /* the loop's */
};

struct loop_ops {
  const char *name;                     /* "io_uring", "threads", "sim" */
  void (*submit) (struct loop *, struct io **, size_t nr);
  /* Arm t to fire at at_ns, or move it there if it is armed; 0 disarms
   * (fire may still be running when that returns).
   */
  void (*timer) (struct loop *, struct timer *t, uint64_t at_ns);
  /* ns; never goes back, and leaves out the time in which this process did not
   * run (common/threads/running.h).
   */
  uint64_t (*now) (struct loop *);
  /* When that began to go on after the last such pause; 0: there was none.
   * Answers that came in the pause may be noticed later.
   */
  uint64_t (*paused) (struct loop *);
  /* ns of a clock that goes on then, and while the machine sleeps. */
  uint64_t (*boot_time) (struct loop *);
  /* Register memory that most I/O will use.  An optional optimization: a
   * failure is logged at debug level and ignored.
   */
  void (*add_buffer) (struct loop *, void *p, size_t len);
  /* Undo that for [p, p+len), until I/O uses it again: other memory may then be
   * in its place.  The caller sees that none uses it meanwhile.  0, or a
   * positive errno: some may be registered as it was.
   */
  int (*release_buffer) (struct loop *, void *p, size_t len);
  void (*free) (struct loop *);         /* nothing in flight any more */
};

struct loop {
  const struct loop_ops *ops;
};

/* Any thread for these. */
static inline void
loop_submit (struct loop *l, struct io **ios, size_t nr)
{
  lock_check_call ("loop_submit");
  l->ops->submit (l, ios, nr);
}

static inline void
loop_timer (struct loop *l, struct timer *t, uint64_t at_ns)
{
  lock_check_call ("loop_timer");
  l->ops->timer (l, t, at_ns);
}

static inline uint64_t
loop_now (struct loop *l)
{
  lock_check_call ("loop_now");
  return l->ops->now (l);
}

static inline uint64_t
loop_paused (struct loop *l)
{
  return l->ops->paused (l);
}

static inline uint64_t
loop_boot_time (struct loop *l)
{
  return l->ops->boot_time (l);
}

static inline void
loop_free (struct loop *l)
{
  if (l)
    l->ops->free (l);
}

/* io_uring; NULL with errno (and one debug message) if it is forbidden or
 * missing.
 */
extern struct loop *loop_uring_new (void);
/* True if this process may use io_uring.  Has no side effects, so it may be
 * called before the fork.
 */
extern bool loop_uring_works (void);

/* Plain threads: one for each member with I/O, so that a member that hangs
 * delays no other; but small I/O of members that are quick shares one.  NULL:
 * reported.
 */
extern struct loop *loop_threads_new (void);
/* An I/O in the shared thread that has taken as long was not quick: looked at
 * while it runs, and after it, since several would delay others in turn.  Tests
 * change them.
 */
extern _Atomic uint64_t loop_quick_hangs_ns, loop_quick_long_ns;

#endif
