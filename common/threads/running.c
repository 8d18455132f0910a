/* gpuraid: the time in which this process ran.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/plant.h"
#include "common/threads/clock.h"
#include "common/threads/running.h"
#include "common/threads/thread.h"

#define SECOND UINT64_C (1000000000)

/* ---- any clock ----------------------------------------------------------- */

void
running_init (struct running *r)
{
  atomic_store (&r->out, 0);
  atomic_store (&r->until, UINT64_MAX);
  atomic_store (&r->paused, 0);
}

/* out changes first: a reader that has the new until has the new out too, and
 * the old until holds back one that has not.
 */
void
running_beat (struct running *r, uint64_t raw)
{
  const uint64_t until = atomic_load (&r->until);
  uint64_t now = raw - atomic_load (&r->out);

  if (now > until && !PLANTED ("pause-counted")) {
    atomic_fetch_add (&r->out, now - until);
    atomic_store (&r->paused, until);
    now = until;
  }
  atomic_store (&r->until, now + RUNNING_MAY_NS);
}

uint64_t
running_at (const struct running *r, uint64_t raw)
{
  const uint64_t until = atomic_load (&r->until);
  const uint64_t now = raw - atomic_load (&r->out);

  return now < until || PLANTED ("pause-counted") ? now : until;
}

/* ---- that of this process ------------------------------------------------ */

static struct running ours = { .until = UINT64_MAX };
static pthread_mutex_t beating = PTHREAD_MUTEX_INITIALIZER;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned nr_users;       /* lock held */
static pthread_t thread;
static sem_t stop;

static void
beat (void)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&beating);

  /* Not after running_stop. */
  if (atomic_load (&ours.until) < UINT64_MAX)
    running_beat (&ours, monotonic_ns ());
}

/* The clock is read last.  A thread that finds it standing gives the beat: it
 * runs, so the process does.
 */
uint64_t
running_now (void)
{
  const uint64_t until = atomic_load (&ours.until);
  const uint64_t out = atomic_load (&ours.out);
  const uint64_t now = monotonic_ns () - out;

  if (now < until)
    return now;
  beat ();
  return until;
}

uint64_t
running_paused (void)
{
  return atomic_load (&ours.paused);
}

uint64_t
running_wake (uint64_t at)
{
  const uint64_t out = atomic_load (&ours.out);

  return at > UINT64_MAX - out ? UINT64_MAX : at + out;
}

uint64_t
running_boot_time (void)
{
  return clock_ns (CLOCK_BOOTTIME);
}

static void *
run (void *arg)
{
  bool more;

  do {
    const uint64_t next = monotonic_ns () + RUNNING_BEAT_NS;
    const struct timespec ts = { next / SECOND, next % SECOND };

    beat ();
    more = sem_clockwait (&stop, CLOCK_MONOTONIC, &ts) == -1;
  } while (more);
  return NULL;
}

static void
set_until (uint64_t until)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&beating);

  atomic_store (&ours.until, until);
}

int
running_start (void)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&lock);
  int err;

  if (nr_users > 0) {
    nr_users++;
    return 0;
  }
  sem_init (&stop, 0, 0);
  set_until (running_now () + RUNNING_MAY_NS);
  err = thread_start (&thread, "gpuraid-clock", run, NULL);
  if (err) {
    set_until (UINT64_MAX);
    sem_destroy (&stop);
    return err;
  }
  nr_users = 1;
  return 0;
}

void
running_stop (void)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&lock);

  if (--nr_users > 0)
    return;
  sem_post (&stop);
  pthread_join (thread, NULL);
  set_until (UINT64_MAX);
  sem_destroy (&stop);
}
