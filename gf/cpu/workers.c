/* gpuraid: threads that share work which comes in parts.
 *
 * The lock is held only to take a part and to count it finished.  A part takes
 * some ten microseconds or more, so one lock is enough.  The lock spins before
 * it sleeps: to sleep and be woken takes longer than a part, and 15 workers
 * that slept were up to a fifth slower.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/bits.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/threads/lock.h"
#include "common/threads/thread.h"
#include "gf/cpu/workers.h"

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

/* Lock: take the next part, which must exist, for this thread. */
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
 * the lock.  So unless this returns true, the work may still be used.
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
  bool all;                     /* of the idle threads */
};

/* Lock: there is work for nr threads. */
static struct sleepers
choose_sleepers (const struct workers *w, size_t nr)
{
  return (struct sleepers) {
    .nr = MIN (nr, w->nr_idle), .all = nr >= w->nr_idle,
  };
}

/* No lock: waking takes 1 us a thread, and those already awake can begin. */
static void
wake (struct workers *w, const struct sleepers *s)
{
  if (s->nr > 1 && s->all)
    pthread_cond_broadcast (&w->wake);
  else
    for (size_t i = 0; i < s->nr; i++)
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
  int err = 0;

  assert (w->nr_started == 0);

  while (err == 0 && w->nr_started < w->nr_threads) {
    err = thread_start (&w->threads[w->nr_started], "gpuraid-coder", worker,
                        w);
    w->nr_started += err == 0;
  }
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
  struct sleepers sleepers;
  size_t part;

  pthread_mutex_lock (&w->lock);
  put (w, work);
  /* This part keeps the work from being finished here. */
  part = begin_part (work);
  sleepers = choose_sleepers (w, work->nr_parts - 1);
  pthread_mutex_unlock (&w->lock);
  wake (w, &sleepers);
  if (!run_part (w, work, part))
    take_parts (w, work);
  pthread_mutex_unlock (&w->lock);
}

void
workers_give (struct workers *w, struct work *work)
{
  struct sleepers sleepers;

  if (w->nr_started == 0) {
    workers_run (w, work);
    return;
  }
  pthread_mutex_lock (&w->lock);
  put (w, work);
  sleepers = choose_sleepers (w, work->nr_parts);
  pthread_mutex_unlock (&w->lock);
  wake (w, &sleepers);
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
