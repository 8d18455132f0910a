/* gpuraid: the baton, and what is done when it is let go.
 *
 * All state of the array belongs to whoever holds one mutex, the baton.
 * Under it there are only decisions: no copy of payload, no CRC of
 * payload, no system call.  What was decided is carried out after it is
 * let go, by the thread that held it:
 *
 *   transfers   I/O on members; neighbours on a member become one
 *               vectored I/O
 *   jobs        for the coder
 *   calls       anything else that must not happen under the baton
 *   wakes       requests whose client thread has something to do
 *
 * Messages (common/log.h) are kept, and passed on then too: a pipe that
 * nothing reads would block under the baton.
 *
 * A thread with news (a finished I/O or job) posts it; if the baton is
 * free it takes it and runs the engine until no news is left.  If not,
 * the holder will see it: it looks once more after it let go.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ENGINE_H
#define GPURAID_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/list.h"
#include "gf/coder.h"
#include "member/loop.h"

struct array;
struct cell;
struct request;
struct seat;

/* Something that happened.  run is called once with the baton held. */
struct news {
  struct news *next;
  void (*run) (struct array *a, struct news *n);
};

/* Something to be tried again under the baton when a list is woken. */
struct waiter {
  struct list link;
  void (*run) (struct array *a, struct waiter *w);
};

/* Something to be done without the baton; run owns it. */
struct call {
  struct call *next;
  void (*run) (struct call *c);
};

/* A run of bytes to move between a cell and a seat, or a flush, zero or
 * trim.  Made with xfer_new and owned by the engine from engine_xfer on.
 * done is called once, with the baton held: when the I/O has ended, or
 * before, when it is abandoned because nothing is expected of its seat
 * any more.  The xfer is freed after done and after the I/O.
 */
struct xfer {
  struct list link;
  struct list seat_link;        /* in seat->xfers from engine_xfer until the
                                 * I/O ends; in a->no_space while it waits
                                 * for space */
  struct seat *seat;
  enum io_kind kind;
  uint64_t off, len;            /* bytes, from the start of the member */
  void *buf;                    /* IO_READ, IO_WRITE */
  int error;                    /* out: 0 or a positive errno */
  bool retried;
  bool alone;                   /* not bundled: a bundle of it failed */
  bool abandoned;               /* done was called, or never will be */
  uint64_t since;               /* ns, when it was submitted */
  void (*done) (struct array *a, struct xfer *x);
  struct cell *cell;            /* whose memory buf is, or NULL: a reference
                                 * is held until the I/O ends */
  /* The owner's. */
  void *owner;
  struct list owner_link;
  unsigned role;
  unsigned b0, nr;              /* blocks of the cell */
  uint64_t write_gen;           /* a flush: what it covers */
};

/* What was decided under the lock and is carried out without it. */
struct deferred {
  struct list xfers;
  size_t nr_xfers;
  struct coder_job *jobs, **last_job;
  struct call *calls, **last_call;
  struct request *wakes, **last_wake;
  bool away;                    /* coder jobs: see struct coder_job */
};

struct engine {
  pthread_mutex_t lock;         /* the array lock */
  _Atomic (struct news *) news; /* newest first */

  /* With the lock held. */
  struct list ready;            /* waiters to be run */
  struct deferred deferred;
};

extern int engine_init (struct engine *e);
extern void engine_destroy (struct engine *e);

/* Take the baton; let it go after all news is run, and carry out what
 * was decided.
 */
extern void engine_lock (struct array *a);
extern void engine_unlock (struct array *a);

/* Any thread, without the baton.  lazily: this thread will post or kick
 * again at once, and the engine may see this news then.
 */
extern void engine_post (struct array *a, struct news *n);
extern void engine_post_lazily (struct array *a, struct news *n);
extern void engine_kick (struct array *a);

/* With the baton: decide on something.  xfer_new never fails. */
extern struct xfer *xfer_new (struct seat *seat, enum io_kind kind,
                              void (*done) (struct array *a, struct xfer *x));
extern void engine_xfer (struct array *a, struct xfer *x);
/* A transfer that had to wait for space: again. */
extern void engine_xfer_again (struct array *a, struct xfer *x);
extern void engine_job (struct array *a, struct coder_job *job);
extern void engine_call (struct array *a, struct call *c);
extern void engine_wake (struct array *a, struct request *r);

/* With the baton: nobody waits for this transfer any more, so done is not
 * called.  Its cell stays as it is until the I/O ends.
 */
extern void engine_forget (struct xfer *x);
/* The same for all transfers of a seat, with done and this error; also
 * for those that wait for space.
 */
extern void engine_abandon (struct array *a, struct seat *s, int error);
/* One that waits for space is not tried again: done, with this error. */
extern void engine_give_up (struct array *a, struct xfer *x, int error);

/* With the baton: run all waiters of a list soon, in order. */
extern void engine_run_waiters (struct array *a, struct list *waiters);

#endif
