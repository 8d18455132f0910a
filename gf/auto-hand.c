/* gpuraid: threads that submit jobs for a thread that has no time to.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "gf/auto-hand.h"

/* Large jobs are shared among the coder's own threads anyway. */
#define NR_THREADS 2

struct auto_hand {
  struct coder *to;
  unsigned nr_started;
  pthread_t thread[NR_THREADS];

  pthread_mutex_t lock;
  pthread_cond_t wake;          /* there is a job, or stop */

  /* lock */
  struct coder_job *first, **last;
  bool stop;
};

static void *
hand (void *hv)
{
  struct auto_hand *h = hv;
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&h->lock);

  for (;;) {
    struct coder_job *job;

    while (h->first == NULL && !h->stop)
      pthread_cond_wait (&h->wake, &h->lock);
    job = h->first;
    if (job == NULL)
      return NULL;
    h->first = job->next;
    if (h->first == NULL)
      h->last = &h->first;
    pthread_mutex_unlock (&h->lock);
    coder_submit (h->to, job);
    pthread_mutex_lock (&h->lock);
  }
}

struct auto_hand *
auto_hand_start (struct coder *to)
{
  struct auto_hand *h = calloc (1, sizeof *h);
  sigset_t all, old;
  int err = 0;

  if (h == NULL) {
    log_error ("calloc: %m");
    return NULL;
  }
  h->to = to;
  h->last = &h->first;
  pthread_mutex_init (&h->lock, NULL);
  pthread_cond_init (&h->wake, NULL);

  /* Signals are for the threads of the program. */
  sigfillset (&all);
  pthread_sigmask (SIG_SETMASK, &all, &old);
  while (h->nr_started < NR_THREADS && err == 0) {
    err = pthread_create (&h->thread[h->nr_started], NULL, hand, h);
    if (err == 0)
      pthread_setname_np (h->thread[h->nr_started++], "gpuraid-hand");
  }
  pthread_sigmask (SIG_SETMASK, &old, NULL);
  if (err) {
    errno = err;
    log_error ("pthread_create: %m");
    auto_hand_stop (h);
    return NULL;
  }
  return h;
}

void
auto_hand_over (struct auto_hand *h, struct coder_job *job)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&h->lock);

  job->next = NULL;
  *h->last = job;
  h->last = &job->next;
  pthread_cond_signal (&h->wake);
}

void
auto_hand_stop (struct auto_hand *h)
{
  if (h == NULL)
    return;
  pthread_mutex_lock (&h->lock);
  h->stop = true;
  pthread_cond_broadcast (&h->wake);
  pthread_mutex_unlock (&h->lock);
  for (unsigned i = 0; i < h->nr_started; i++)
    pthread_join (h->thread[i], NULL);
  pthread_cond_destroy (&h->wake);
  pthread_mutex_destroy (&h->lock);
  free (h);
}
