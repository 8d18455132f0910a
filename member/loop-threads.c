/* gpuraid: the loop on plain threads.
 *
 * Each member with I/O has a thread of its own, so that a member that hangs
 * delays no other.  A thread with an empty queue sleeps until any member needs
 * one.  Nothing here outlives a member's last I/O, and there are never more
 * threads than members that were busy at once.  One more thread fires the
 * timers.  Members that are async only get their I/O here.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "common/bits.h"
#include "common/cleanup.h"
#include "common/list.h"
#include "common/log.h"
#include "member/member.h"
#include "member/thread.h"

/* A thread and its work.  All with the loop's lock held. */
struct worker {
  struct threads_loop *loop;
  struct list link;             /* in busy or idle */
  pthread_t thread;
  pthread_cond_t work;          /* member was set, or stop */
  struct member *member;        /* its member; NULL: idle.  Compared, never
                                 * dereferenced */
  struct io *first, **last;     /* its queue, oldest first */
};

struct threads_loop {
  struct loop loop;
  pthread_t timer_thread;
  atomic_uint nr_wakers;        /* in submit, still to signal workers */
  pthread_mutex_t lock;

  /* With lock held. */
  bool stop;
  struct list busy, idle;       /* every worker is in one of them */
  struct timer *timers;         /* armed, the next to fire first */
  pthread_cond_t timers_changed;
};

static struct threads_loop *
threads_of (struct loop *l)
{
  return (struct threads_loop *) l;
}

/* Small I/O that follows soon: a few microseconds each. */
#define MORE_MAX_LEN 16384u
#define MORE_MAX_IOS 16u

static void
carry_out (struct io *io)
{
  for (unsigned n = 1; io; n++) {
    struct io *next = io->next; /* done gives io back */

    io->more = next && n % MORE_MAX_IOS && next->len <= MORE_MAX_LEN &&
      (next->kind == IO_READ || next->kind == IO_WRITE);
    io->member->ops->submit (io->member, io);
    io = next;
  }
}

static void *
worker_run (void *arg)
{
  struct worker *w = arg;
  struct threads_loop *t = w->loop;
  struct io *io;

  pthread_mutex_lock (&t->lock);
  for (;;) {
    while (w->member == NULL && !t->stop)
      pthread_cond_wait (&w->work, &t->lock);
    if (w->member == NULL)
      break;
    io = w->first;
    if (io == NULL) {
      w->member = NULL;
      list_remove (&w->link);
      list_append (&t->idle, &w->link);
      continue;
    }
    w->first = NULL;
    w->last = &w->first;
    pthread_mutex_unlock (&t->lock);
    carry_out (io);
    pthread_mutex_lock (&t->lock);
  }
  pthread_mutex_unlock (&t->lock);
  return NULL;
}

static void
worker_free (struct worker *w)
{
  pthread_cond_destroy (&w->work);
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
  pthread_cond_init (&w->work, NULL);
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

/* Sleeping workers that a submit has given work, one for each member. */
struct to_wake {
  unsigned nr;
  struct worker *w[64];
};

/* Without the lock, or each would wake up only to wait for it.  No worker is
 * freed meanwhile; a signal to one already awake is harmless.
 */
static void
wake (struct threads_loop *t, const struct to_wake *to_wake)
{
  for (unsigned i = 0; i < to_wake->nr; ++i)
    pthread_cond_signal (&to_wake->w[i]->work);
  atomic_fetch_sub (&t->nr_wakers, 1);
}

/* The idle worker that slept last, as its stack is still warm; else a new one.
 */
static struct worker *
engage_worker (struct threads_loop *t, struct member *m,
               struct to_wake *to_wake)
{
  struct worker *w;

  if (!list_empty (&t->idle)) {
    w = list_item (t->idle.prev, struct worker, link);
    if (to_wake->nr < ARRAY_LEN (to_wake->w))
      to_wake->w[to_wake->nr++] = w;
    else
      pthread_cond_signal (&w->work);
  }
  else {
    w = worker_new (t);
    if (w == NULL)
      return NULL;
  }
  w->member = m;
  list_remove (&w->link);
  list_append (&t->busy, &w->link);
  return w;
}

static void
threads_submit (struct loop *l, struct io **ios, size_t nr)
{
  struct threads_loop *t = threads_of (l);
  struct worker *w = NULL;
  struct io *unserved = NULL, **last = &unserved;
  struct io *async = NULL, **async_last = &async;
  struct to_wake to_wake;

  to_wake.nr = 0;

  pthread_mutex_lock (&t->lock);
  for (size_t i = 0; i < nr; ++i) {
    struct io *io = ios[i];

    io->next = NULL;
    if (io->member->async) {
      *async_last = io;
      async_last = &io->next;
      continue;
    }
    if (w == NULL || w->member != io->member) {
      w = find_worker (t, io->member);
      if (w == NULL)
        w = engage_worker (t, io->member, &to_wake);
    }
    if (w) {
      *w->last = io;
      w->last = &io->next;
    }
    else {
      *last = io;
      last = &io->next;
    }
  }
  if (to_wake.nr > 0)
    atomic_fetch_add (&t->nr_wakers, 1);
  pthread_mutex_unlock (&t->lock);

  if (to_wake.nr > 0)
    wake (t, &to_wake);
  if (async)
    carry_out (async);
  if (unserved) {
    log_debug ("no more threads: I/O in the caller's");
    carry_out (unserved);
  }
}

static uint64_t
threads_now (struct loop *l)
{
  struct timespec ts;

  clock_gettime (CLOCK_MONOTONIC, &ts);
  return ts.tv_sec * UINT64_C (1000000000) + ts.tv_nsec;
}

static void
threads_timer (struct loop *l, struct timer *timer, uint64_t at_ns)
{
  struct threads_loop *t = threads_of (l);
  struct timer **p;
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&t->lock);

  for (p = &t->timers; *p; p = &(*p)->next) {
    if (*p == timer) {
      *p = timer->next;
      break;
    }
  }
  timer->at_ns = at_ns;
  if (at_ns == 0)
    return;
  for (p = &t->timers; *p && (*p)->at_ns <= at_ns; p = &(*p)->next)
    ;
  timer->next = *p;
  *p = timer;
  if (t->timers == timer)
    pthread_cond_signal (&t->timers_changed);
}

static void *
timers_run (void *arg)
{
  struct threads_loop *t = arg;

  pthread_mutex_lock (&t->lock);
  while (!t->stop) {
    struct timer *timer = t->timers;

    if (timer == NULL)
      pthread_cond_wait (&t->timers_changed, &t->lock);
    else if (timer->at_ns > threads_now (&t->loop)) {
      struct timespec ts = {
        .tv_sec = timer->at_ns / 1000000000,
        .tv_nsec = timer->at_ns % 1000000000,
      };

      pthread_cond_timedwait (&t->timers_changed, &t->lock, &ts);
    }
    else {
      t->timers = timer->next;
      timer->at_ns = 0;
      pthread_mutex_unlock (&t->lock);
      timer->fire (timer);
      pthread_mutex_lock (&t->lock);
    }
  }
  pthread_mutex_unlock (&t->lock);
  return NULL;
}

static void
threads_add_buffer (struct loop *l, void *p, size_t len)
{
}

/* A worker whose last done has run may still be moving from busy to idle, so it
 * stays in its list until it has ended.
 */
static bool
stop_one (struct threads_loop *t)
{
  struct list *head;
  struct worker *w;

  pthread_mutex_lock (&t->lock);
  head = list_empty (&t->idle) ? &t->busy : &t->idle;
  w = list_empty (head) ? NULL : list_item (head->next, struct worker, link);
  if (w)
    pthread_cond_signal (&w->work);
  pthread_mutex_unlock (&t->lock);
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
  pthread_cond_signal (&t->timers_changed);
  pthread_mutex_unlock (&t->lock);

  while (atomic_load (&t->nr_wakers) > 0)
    sched_yield ();
  while (stop_one (t))
    ;
  pthread_join (t->timer_thread, NULL);
  pthread_cond_destroy (&t->timers_changed);
  pthread_mutex_destroy (&t->lock);
  free (t);
}

static const struct loop_ops threads_ops = {
  .name = "threads",
  .submit = threads_submit,
  .timer = threads_timer,
  .now = threads_now,
  .add_buffer = threads_add_buffer,
  .free = threads_free,
};

struct loop *
loop_threads_new (void)
{
  struct threads_loop *t = calloc (1, sizeof *t);
  pthread_condattr_t attr;
  int err;

  if (t == NULL) {
    log_error ("calloc: %m");
    return NULL;
  }
  t->loop.ops = &threads_ops;
  list_init (&t->busy);
  list_init (&t->idle);
  pthread_mutex_init (&t->lock, NULL);
  pthread_condattr_init (&attr);
  pthread_condattr_setclock (&attr, CLOCK_MONOTONIC);
  pthread_cond_init (&t->timers_changed, &attr);
  pthread_condattr_destroy (&attr);

  err = thread_start (&t->timer_thread, "gpuraid-timer", timers_run, t);
  if (err) {
    errno = err;
    log_error ("pthread_create: %m");
    pthread_cond_destroy (&t->timers_changed);
    pthread_mutex_destroy (&t->lock);
    free (t);
    return NULL;
  }
  return &t->loop;
}
