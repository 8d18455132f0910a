/* gpuraid: resume=yes: work goes on before a client comes.
 *
 * A thread that waits a little, so that a client that comes at once is first,
 * and then opens the array for writing as that client would; but only if there
 * is work, so that a start alone changes nothing.
 *
 * Two hosts that start servers of the same members may do so at the same time,
 * when their power comes back.  If both open it within a second neither sees
 * the other (docs/remote.md), so each waits for a random time more.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "common/bytes/random.h"
#include "common/log.h"
#include "common/threads/thread.h"
#include "nbdkit-plugin/plugin.h"

#define DELAY_S 2
#define SHARED_MORE_S 10        /* at most */

static pthread_t thread;
static bool started;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended;
static bool ending;             /* with the lock */

static void
add_random (struct timespec *t)
{
  uint64_t ns;

  if (random_bytes (&ns, sizeof ns) == -1)
    return;
  ns = t->tv_nsec + ns % (SHARED_MORE_S * UINT64_C (1000000000));
  t->tv_sec += ns / 1000000000;
  t->tv_nsec = ns % 1000000000;
}

/* False: the server ends. */
static bool
wait_a_little (bool shared)
{
  struct timespec until;
  bool r;

  clock_gettime (CLOCK_MONOTONIC, &until);
  until.tv_sec += DELAY_S;
  if (shared)
    add_random (&until);
  pthread_mutex_lock (&lock);
  while (!ending && pthread_cond_timedwait (&ended, &lock, &until) == 0)
    ;
  r = !ending;
  pthread_mutex_unlock (&lock);
  return r;
}

static void *
resume (void *array)
{
  int err = 0;

  if (!wait_a_little (array_is_shared (array)))
    return NULL;
  if (array_has_work (array)) {
    log_notice ("resume=yes: going on with what the last server had begun");
    err = array_serve_writer (array);
  }
  array_set_resumes (array, false);
  if (err)
    log_error ("resume=yes: the array can't be opened for writing: %s",
               strerror (err));
  return NULL;
}

int
resume_start (struct array *array)
{
  pthread_condattr_t attr;
  int err;

  pthread_condattr_init (&attr);
  pthread_condattr_setclock (&attr, CLOCK_MONOTONIC);
  pthread_cond_init (&ended, &attr);
  pthread_condattr_destroy (&attr);
  array_set_resumes (array, true);
  err = thread_start (&thread, "gpuraid-resume", resume, array);
  if (err) {
    log_error ("resume=yes: pthread_create: %s", strerror (err));
    return -1;
  }
  started = true;
  return 0;
}

void
resume_stop (void)
{
  if (!started)
    return;
  pthread_mutex_lock (&lock);
  ending = true;
  pthread_cond_signal (&ended);
  pthread_mutex_unlock (&lock);
  pthread_join (thread, NULL);
  started = false;
}
