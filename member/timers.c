/* gpuraid: a thread that fires timers.
 *
 * It is woken up only for a timer that is due before it would wake up by
 * itself, so one that is armed again and again costs little.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <time.h>

#include "common/threads/running.h"
#include "common/threads/thread.h"
#include "member/timers.h"

/* With the lock: true if the thread has to be woken up. */
static bool
arm (struct timers *t, struct timer *timer, uint64_t at_ns)
{
  struct timer **p;

  for (p = &t->first; *p; p = &(*p)->next)
    if (*p == timer) {
      *p = timer->next;
      break;
    }
  timer->at_ns = at_ns;
  if (at_ns == 0)
    return false;
  for (p = &t->first; *p && (*p)->at_ns <= at_ns; p = &(*p)->next)
    ;
  timer->next = *p;
  *p = timer;
  if (at_ns >= t->sleeps_until)
    return false;
  t->sleeps_until = 0;
  return true;
}

void
timers_arm (struct timers *t, struct timer *timer, uint64_t at_ns)
{
  bool wake;

  pthread_mutex_lock (&t->lock);
  wake = arm (t, timer, at_ns);
  pthread_mutex_unlock (&t->lock);
  if (wake)
    sem_post (&t->changed);
}

static void
sleep_until (struct timers *t, uint64_t at_ns)
{
  const uint64_t wake = running_wake (at_ns);
  const struct timespec ts = {
    .tv_sec = wake / 1000000000,
    .tv_nsec = wake % 1000000000,
  };

  if (at_ns == UINT64_MAX)
    sem_wait (&t->changed);
  else
    sem_clockwait (&t->changed, CLOCK_MONOTONIC, &ts);
}

static void *
timers_run (void *arg)
{
  struct timers *t = arg;

  pthread_mutex_lock (&t->lock);
  while (!t->stop) {
    struct timer *timer = t->first;
    const uint64_t at_ns = timer ? timer->at_ns : UINT64_MAX;

    if (timer && at_ns <= running_now ()) {
      t->first = timer->next;
      timer->at_ns = 0;
      pthread_mutex_unlock (&t->lock);
      timer->fire (timer);
    }
    else {
      t->sleeps_until = at_ns;
      pthread_mutex_unlock (&t->lock);
      sleep_until (t, at_ns);
    }
    pthread_mutex_lock (&t->lock);
    t->sleeps_until = 0;
  }
  pthread_mutex_unlock (&t->lock);
  return NULL;
}

int
timers_start (struct timers *t)
{
  int err;

  pthread_mutex_init (&t->lock, NULL);
  sem_init (&t->changed, 0, 0);
  t->first = NULL;
  t->sleeps_until = 0;
  t->stop = false;
  err = running_start ();
  if (err == 0) {
    err = thread_start (&t->thread, "gpuraid-timer", timers_run, t);
    if (err)
      running_stop ();
  }
  if (err) {
    sem_destroy (&t->changed);
    pthread_mutex_destroy (&t->lock);
  }
  return err;
}

void
timers_stop (struct timers *t)
{
  pthread_mutex_lock (&t->lock);
  t->stop = true;
  pthread_mutex_unlock (&t->lock);
  sem_post (&t->changed);
  pthread_join (t->thread, NULL);
  running_stop ();
}

void
timers_destroy (struct timers *t)
{
  sem_destroy (&t->changed);
  pthread_mutex_destroy (&t->lock);
}
