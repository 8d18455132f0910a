/* gpuraid: threads that share work which comes in parts.
 *
 * The lock is held only to take a part and to count it finished: a part
 * is some ten microseconds or more, so that one lock will do.  It is one
 * that is waited for awake for a moment: to sleep and be woken takes longer
 * than a part, and 15 workers that did so did up to a fifth less.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/bits.h"
#include "common/cleanup.h"
#include "common/lock.h"
#include "common/log.h"
#include "gf/workers.h"

struct workers {
  unsigned nr_threads;          /* wanted */
  unsigned nr_started;          /* written by start and stop alone */
  pthread_t *threads;

  pthread_mutex_t lock;
  pthread_cond_t wake;          /* there is work, or stop */

  /* With lock held. */
  struct list queue;            /* work with parts to begin, oldest first */
  unsigned nr_idle;             /* threads that wait */
  bool stop;
};

struct workers *
workers_new (unsigned nr_threads)
{
  struct workers *w;

  w = calloc (1, sizeof *w);
  if (w == NULL) {
    log_error ("calloc: %m");
    return NULL;
  }
  w->threads = calloc (MAX (nr_threads, 1), sizeof w->threads[0]);
  if (w->threads == NULL) {
    log_error ("calloc: %m");
    free (w);
    return NULL;
  }
  w->nr_threads = nr_threads;
  list_init (&w->queue);
  lock_init (&w->lock);
  pthread_cond_init (&w->wake, NULL);
  return w;
}

/* Lock: the next part, which is there, is this thread's. */
static size_t
begin_part (struct work *work)
{
  const size_t part = work->next_part++;

  if (work->next_part == work->nr_parts)
    list_remove (&work->link);
  return part;
}

/* Run a part that this thread has begun, and return with the lock held.
 * Another thread cannot finish the last part, and done free the work, without
 * the lock: so unless this returns true the work may be looked at.
 */
static bool
run_part (struct workers *w, struct work *work, size_t part)
{
  work->run (work, part);
  pthread_mutex_lock (&w->lock);
  if (--work->nr_left > 0)
    return false;
  pthread_mutex_unlock (&w->lock);
  work->done (work);
  pthread_mutex_lock (&w->lock);
  return true;
}

/* Lock: run parts until all have begun. */
static void
take_parts (struct workers *w, struct work *work)
{
  while (work->next_part < work->nr_parts) {
    const size_t part = begin_part (work);

    pthread_mutex_unlock (&w->lock);
    if (run_part (w, work, part))
      return;
  }
}

/* Threads that are to look for work again. */
struct sleepers {
  size_t nr;
  bool all;                     /* there are no others */
};

/* Lock: for so many there is something to do. */
static struct sleepers
choose_sleepers (const struct workers *w, size_t nr)
{
  return (struct sleepers) {
    .nr = MIN (nr, w->nr_idle), .all = nr >= w->nr_idle,
  };
}

/* No lock: it takes 1 us a thread, in which those that are awake can begin. */
static void
wake (struct workers *w, const struct sleepers *who)
{
  if (who->nr > 1 && who->all)
    pthread_cond_broadcast (&w->wake);
  else
    for (size_t i = 0; i < who->nr; i++)
      pthread_cond_signal (&w->wake);
}

static void *
worker (void *wv)
{
  struct workers *w = wv;
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&w->lock);

  for (;;) {
    while (!w->stop && list_empty (&w->queue)) {
      w->nr_idle++;
      pthread_cond_wait (&w->wake, &w->lock);
      w->nr_idle--;
    }
    if (list_empty (&w->queue))
      return NULL;
    take_parts (w, list_item (w->queue.next, struct work, link));
  }
}

static void
stop_threads (struct workers *w)
{
  pthread_mutex_lock (&w->lock);
  assert (list_empty (&w->queue));
  w->stop = true;
  pthread_cond_broadcast (&w->wake);
  pthread_mutex_unlock (&w->lock);
  for (unsigned i = 0; i < w->nr_started; i++)
    pthread_join (w->threads[i], NULL);
  w->nr_started = 0;
  w->stop = false;
}

int
workers_start (struct workers *w)
{
  sigset_t all, old;
  int err = 0;

  assert (w->nr_started == 0);

  /* Signals are for the threads of the program. */
  sigfillset (&all);
  pthread_sigmask (SIG_SETMASK, &all, &old);
  while (w->nr_started < w->nr_threads) {
    err = pthread_create (&w->threads[w->nr_started], NULL, worker, w);
    if (err)
      break;
    pthread_setname_np (w->threads[w->nr_started++], "gpuraid-coder");
  }
  pthread_sigmask (SIG_SETMASK, &old, NULL);

  if (err) {
    errno = err;
    log_error ("pthread_create: %m");
    stop_threads (w);
    return -1;
  }
  return 0;
}

unsigned
workers_nr (const struct workers *w)
{
  return w->nr_started;
}

/* Lock: queue it. */
static void
put (struct workers *w, struct work *work)
{
  work->next_part = 0;
  work->nr_left = work->nr_parts;
  list_append (&w->queue, &work->link);
}

void
workers_run (struct workers *w, struct work *work)
{
  struct sleepers who;
  size_t part;

  pthread_mutex_lock (&w->lock);
  put (w, work);
  /* Not over before this one is. */
  part = begin_part (work);
  who = choose_sleepers (w, work->nr_parts - 1);
  pthread_mutex_unlock (&w->lock);
  wake (w, &who);
  if (!run_part (w, work, part))
    take_parts (w, work);
  pthread_mutex_unlock (&w->lock);
}

void
workers_give (struct workers *w, struct work *work)
{
  struct sleepers who;

  if (w->nr_started == 0) {
    workers_run (w, work);
    return;
  }
  pthread_mutex_lock (&w->lock);
  put (w, work);
  who = choose_sleepers (w, work->nr_parts);
  pthread_mutex_unlock (&w->lock);
  wake (w, &who);
}

void
workers_free (struct workers *w)
{
  if (w == NULL)
    return;
  stop_threads (w);
  pthread_cond_destroy (&w->wake);
  pthread_mutex_destroy (&w->lock);
  free (w->threads);
  free (w);
}
