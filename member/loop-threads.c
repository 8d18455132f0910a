/* gpuraid: the loop on plain threads.
 *
 * Each member with I/O has a thread of its own, so that a member that hangs
 * delays no other.  A thread with an empty queue sleeps until any member needs
 * one.  Nothing here outlives a member's last I/O, and there are never more
 * threads than members that were busy at once, and one.  One more thread fires
 * the timers.  Members that are async only get their I/O here.
 *
 * To wake a thread up costs more than a small I/O on a file in the page cache.
 * So small I/O of a kind that was quick on its member the last time is left to
 * one thread, which all members share (quick_*).  If one such I/O takes long
 * after all, the thread becomes that member's own, and what else was in its
 * queue goes to other threads.  A timer notices if it does not end.
 *
 * A thread sleeps in a semaphore of its own, without the lock: one that wakes
 * up from a condition variable makes a system call more, since the mutex then
 * counts as contended.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "common/bits.h"
#include "common/cleanup.h"
#include "common/list.h"
#include "common/log.h"
#include "common/threads/running.h"
#include "common/threads/thread.h"
#include "member/member.h"
#include "member/timers.h"

/* A thread and its work.  All with the loop's lock held. */
struct worker {
  struct threads_loop *loop;
  struct list link;             /* in busy or idle */
  pthread_t thread;
  sem_t work;                   /* to wake it up, once if it is asleep */
  bool asleep;
  struct worker *next;          /* in to_wake */
  struct member *member;        /* its member; NULL: idle, or the shared one.
                                 * Compared, never dereferenced */
  struct io *first, **last;     /* its queue, oldest first */
};

/* The thread that all members share, and its I/O.  With the loop's lock. */
struct quick {
  struct worker *worker;        /* in busy; NULL: there is none now */
  unsigned nr;                  /* I/Os in its queue */
  struct member *member;        /* of the I/O that it carries out; NULL: none.
                                 * Compared, never dereferenced */
  uint64_t since;               /* when that began */
  struct timer watch;
  bool watched;                 /* watch is armed */
  bool used;                    /* since watch fired last */
  uint64_t max_len;             /* of an I/O */
  unsigned max_nr;
};

struct threads_loop {
  struct loop loop;
  struct timers timers;
  atomic_uint nr_wakers;        /* still to post a semaphore */
  pthread_mutex_t lock;

  /* With lock held. */
  bool stop;
  struct list busy, idle;       /* every worker is in one of them */
  struct quick quick;
};

static struct threads_loop *
threads_of (struct loop *l)
{
  return (struct threads_loop *) l;
}

/* Small I/O that follows soon: a few microseconds each. */
#define MORE_MAX_LEN 16384u
#define MORE_MAX_IOS 16u

/* The owner of io may learn only with next that io is done.  So next must not
 * be of another member, which may hang.
 */
static bool
follows_soon (const struct io *next, const struct io *io)
{
  return next && next->member == io->member && next->len <= MORE_MAX_LEN &&
    (next->kind == IO_READ || next->kind == IO_WRITE);
}

static void
carry_out (struct io *io)
{
  for (unsigned n = 1; io; n++) {
    struct io *next = io->next; /* done gives io back */

    io->more = n % MORE_MAX_IOS && follows_soon (next, io);
    io->member->ops->submit (io->member, io);
    io = next;
  }
}

static void
enqueue (struct worker *w, struct io *io)
{
  io->next = NULL;
  *w->last = io;
  w->last = &io->next;
}

static void carry_out_quick (struct threads_loop *t, struct worker *w);

/* Sleep until there is something to do.  The lock is held, but not meanwhile.
 */
static void
worker_sleep (struct threads_loop *t, struct worker *w)
{
  w->asleep = true;
  pthread_mutex_unlock (&t->lock);
  while (sem_wait (&w->work) == -1)
    ;
  pthread_mutex_lock (&t->lock);
}

static void *
worker_run (void *arg)
{
  struct worker *w = arg;
  struct threads_loop *t = w->loop;
  struct io *io;

  pthread_mutex_lock (&t->lock);
  for (;;) {
    if (w->first && t->quick.worker == w)
      carry_out_quick (t, w);
    else if (w->first) {
      io = w->first;
      w->first = NULL;
      w->last = &w->first;
      pthread_mutex_unlock (&t->lock);
      carry_out (io);
      pthread_mutex_lock (&t->lock);
    }
    else if (w->member) {
      w->member = NULL;
      list_move (&t->idle, &w->link);
    }
    else if (t->stop)
      break;
    else
      worker_sleep (t, w);
  }
  pthread_mutex_unlock (&t->lock);
  return NULL;
}

static void
worker_free (struct worker *w)
{
  sem_destroy (&w->work);
  free (w);
}

/* NULL if the system has no more threads.  That is not reported, because the
 * I/O can be done without one.
 */
static struct worker *
worker_new (struct threads_loop *t)
{
  struct worker *w = calloc (1, sizeof *w);

  if (w == NULL)
    return NULL;
  w->loop = t;
  w->last = &w->first;
  sem_init (&w->work, 0, 0);
  list_init (&w->link);
  if (thread_start (&w->thread, "gpuraid-io", worker_run, w) != 0) {
    worker_free (w);
    return NULL;
  }
  return w;
}

static struct worker *
find_worker (struct threads_loop *t, struct member *m)
{
  list_for_each (l, &t->busy) {
    struct worker *w = list_item (l, struct worker, link);

    if (w->member == m)
      return w;
  }
  return NULL;
}

/* What to wake up after the lock is released: each would only wait for it. */
struct to_wake {
  struct worker *workers;
  uint64_t watch_at;            /* arm the timer; 0: it is armed */
};

/* With the lock. */
static void
will_wake (struct to_wake *to_wake, struct worker *w)
{
  if (!w->asleep)
    return;
  w->asleep = false;
  w->next = to_wake->workers;
  to_wake->workers = w;
}

/* No worker is freed meanwhile. */
static void
unlock_and_wake (struct threads_loop *t, const struct to_wake *to_wake)
{
  const bool any = to_wake->workers || to_wake->watch_at;
  struct worker *w = to_wake->workers, *next;

  if (any)
    atomic_fetch_add (&t->nr_wakers, 1);
  pthread_mutex_unlock (&t->lock);
  if (!any)
    return;
  for (; w; w = next) {
    next = w->next;
    sem_post (&w->work);
  }
  if (to_wake->watch_at)
    timers_arm (&t->timers, &t->quick.watch, to_wake->watch_at);
  atomic_fetch_sub (&t->nr_wakers, 1);
}

/* The idle worker that slept last, as its stack is still warm; else a new one.
 * It is in busy then.
 */
static struct worker *
engage_worker (struct threads_loop *t, struct member *m)
{
  struct worker *w = list_empty (&t->idle) ? worker_new (t) :
    list_item (t->idle.prev, struct worker, link);

  if (w == NULL)
    return NULL;
  w->member = m;
  list_move (&t->busy, &w->link);
  return w;
}

/* ---- quick I/O ----------------------------------------------------------- */

_Atomic uint64_t loop_quick_hangs_ns = 10000000;
_Atomic uint64_t loop_quick_long_ns = 1000000;
/* How often to look for one that hangs. */
#define QUICK_WATCH_NS 10000000u
/* With processors to spare larger copies, and more than a few, are better made
 * by several threads.
 */
#define QUICK_MAX_LEN 16384u
#define QUICK_MAX_NR 16u
#define QUICK_MAX_LEN_ONE (1u << 20)

/* A member that has a thread just now has all of its I/O there: it may hang.
 */
static bool
is_quick (const struct threads_loop *t, const struct io *io)
{
  const struct quick *q = &t->quick;

  return q->nr < q->max_nr && io->len <= q->max_len &&
    io->kind <= IO_FLUSH &&
    atomic_load_explicit (&io->member->quick, memory_order_relaxed)
    >> io->kind & 1;
}

static bool
enqueue_quick (struct threads_loop *t, struct io *io, struct to_wake *to_wake)
{
  struct quick *q = &t->quick;

  if (q->worker == NULL)
    q->worker = engage_worker (t, NULL);
  if (q->worker == NULL)
    return false;
  enqueue (q->worker, io);
  q->nr++;
  q->used = true;
  will_wake (to_wake, q->worker);
  if (!q->watched) {
    q->watched = true;
    to_wake->watch_at = running_now () + QUICK_WATCH_NS;
  }
  return true;
}

/* In the thread of its member, w, which is NULL if it has none.  False: the
 * system has no more threads.
 */
static bool
enqueue_own (struct threads_loop *t, struct worker *w, struct io *io,
             struct to_wake *to_wake)
{
  if (w == NULL)
    w = engage_worker (t, io->member);
  if (w == NULL)
    return false;
  enqueue (w, io);
  will_wake (to_wake, w);
  return true;
}

/* False: as above. */
static bool
enqueue_any (struct threads_loop *t, struct io *io, struct to_wake *to_wake)
{
  struct worker *w = find_worker (t, io->member);

  return (w == NULL && is_quick (t, io) && enqueue_quick (t, io, to_wake)) ||
    enqueue_own (t, w, io, to_wake);
}

/* The shared thread becomes the member's own.  What else it had to do goes to
 * the members' own threads, since they may hang like this one; if there are
 * none, it stays.
 */
static void
give_away_quick (struct threads_loop *t, struct to_wake *to_wake)
{
  struct quick *q = &t->quick;
  struct worker *w = q->worker;
  struct io *io = w->first, *next;

  w->member = q->member;
  w->first = NULL;
  w->last = &w->first;
  q->worker = NULL;
  q->member = NULL;
  q->nr = 0;
  for (; io; io = next) {
    next = io->next;
    if (!enqueue_own (t, find_worker (t, io->member), io, to_wake))
      enqueue (w, io);
  }
}

/* The lock is held, but not while one I/O is carried out. */
static void
carry_out_quick (struct threads_loop *t, struct worker *w)
{
  struct quick *q = &t->quick;

  for (unsigned n = 1; q->worker == w && w->first; n++) {
    struct to_wake to_wake = { NULL, 0 };
    struct io *io = w->first;

    w->first = io->next;
    if (w->first == NULL)
      w->last = &w->first;
    q->nr--;
    io->more = n % MORE_MAX_IOS && follows_soon (w->first, io);
    q->member = io->member;
    q->since = running_now ();
    pthread_mutex_unlock (&t->lock);
    io->member->ops->submit (io->member, io);
    pthread_mutex_lock (&t->lock);
    if (q->worker != w)
      break;
    if (w->first && running_now () - q->since > loop_quick_long_ns) {
      give_away_quick (t, &to_wake);
      unlock_and_wake (t, &to_wake);
      pthread_mutex_lock (&t->lock);
    }
    else
      q->member = NULL;
  }
}

static void
quick_watch (struct timer *timer)
{
  struct threads_loop *t = (struct threads_loop *)
    ((char *) timer - offsetof (struct threads_loop, quick.watch));
  struct quick *q = &t->quick;
  const uint64_t now = running_now ();
  struct to_wake to_wake = { NULL, 0 };

  pthread_mutex_lock (&t->lock);
  q->watched = false;
  if (q->member && now > q->since + loop_quick_hangs_ns)
    give_away_quick (t, &to_wake);
  if (!q->watched && (q->used || q->member)) {
    q->watched = true;
    to_wake.watch_at = now + QUICK_WATCH_NS;
  }
  q->used = false;
  unlock_and_wake (t, &to_wake);
}

static void
quick_init (struct quick *q)
{
  cpu_set_t cpus;
  const bool one = sched_getaffinity (0, sizeof cpus, &cpus) == 0 &&
    CPU_COUNT (&cpus) == 1;

  q->watch.fire = quick_watch;
  q->max_len = one ? QUICK_MAX_LEN_ONE : QUICK_MAX_LEN;
  q->max_nr = one ? UINT_MAX : QUICK_MAX_NR;
}

/* ---- the loop ------------------------------------------------------------ */

static void
threads_submit (struct loop *l, struct io **ios, size_t nr)
{
  struct threads_loop *t = threads_of (l);
  struct io *unserved = NULL, **last = &unserved;
  struct io *async = NULL, **async_last = &async;
  struct to_wake to_wake = { NULL, 0 };

  pthread_mutex_lock (&t->lock);
  for (size_t i = 0; i < nr; ++i) {
    struct io *io = ios[i];

    io->next = NULL;
    if (io->member->async) {
      *async_last = io;
      async_last = &io->next;
    }
    else if (!enqueue_any (t, io, &to_wake)) {
      *last = io;
      last = &io->next;
    }
  }
  unlock_and_wake (t, &to_wake);

  if (async)
    carry_out (async);
  if (unserved) {
    log_debug ("no more threads: I/O in the caller's");
    carry_out (unserved);
  }
}

static void
threads_timer (struct loop *l, struct timer *timer, uint64_t at_ns)
{
  timers_arm (&threads_of (l)->timers, timer, at_ns);
}

static uint64_t
threads_now (struct loop *l)
{
  return running_now ();
}

static uint64_t
threads_paused (struct loop *l)
{
  return running_paused ();
}

static uint64_t
threads_boot_time (struct loop *l)
{
  return running_boot_time ();
}

static void
threads_add_buffer (struct loop *l, void *p, size_t len)
{
}

static int
threads_release_buffer (struct loop *l, void *p, size_t len)
{
  return 0;
}

/* A worker whose last done has run may still be moving from busy to idle, so it
 * stays in its list until it has ended.
 */
static bool
stop_one (struct threads_loop *t)
{
  struct to_wake to_wake = { NULL, 0 };
  struct list *head;
  struct worker *w;

  pthread_mutex_lock (&t->lock);
  head = list_empty (&t->idle) ? &t->busy : &t->idle;
  w = list_empty (head) ? NULL : list_item (head->next, struct worker, link);
  if (w)
    will_wake (&to_wake, w);
  unlock_and_wake (t, &to_wake);
  if (w == NULL)
    return false;

  pthread_join (w->thread, NULL);
  pthread_mutex_lock (&t->lock);
  list_remove (&w->link);
  pthread_mutex_unlock (&t->lock);
  worker_free (w);
  return true;
}

static void
threads_free (struct loop *l)
{
  struct threads_loop *t = threads_of (l);

  pthread_mutex_lock (&t->lock);
  t->stop = true;
  pthread_mutex_unlock (&t->lock);

  while (atomic_load (&t->nr_wakers) > 0)
    sched_yield ();
  timers_stop (&t->timers);
  while (stop_one (t))
    ;
  timers_destroy (&t->timers);  /* the end of a done may have armed one */
  pthread_mutex_destroy (&t->lock);
  free (t);
}

static const struct loop_ops threads_ops = {
  .name = "threads",
  .submit = threads_submit,
  .timer = threads_timer,
  .now = threads_now,
  .paused = threads_paused,
  .boot_time = threads_boot_time,
  .add_buffer = threads_add_buffer,
  .release_buffer = threads_release_buffer,
  .free = threads_free,
};

struct loop *
loop_threads_new (void)
{
  struct threads_loop *t = calloc (1, sizeof *t);
  int err;

  if (t == NULL) {
    log_error ("calloc: %m");
    return NULL;
  }
  t->loop.ops = &threads_ops;
  list_init (&t->busy);
  list_init (&t->idle);
  pthread_mutex_init (&t->lock, NULL);
  quick_init (&t->quick);

  err = timers_start (&t->timers);
  if (err) {
    errno = err;
    log_error ("pthread_create: %m");
    pthread_mutex_destroy (&t->lock);
    free (t);
    return NULL;
  }
  return &t->loop;
}
