/* gpuraid: a stop while clients are connected.
 *
 * nbdkit that is told to stop waits until each client has gone, without a
 * message and without an end.  So a thread looks whether it was told to, says
 * which clients are connected, and after some time disconnects them.  What they
 * had an answer to is written out after that, in .cleanup.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/threads/clock.h"
#include "common/threads/thread.h"
#include "nbdkit-plugin/plugin.h"

/* How often it looks while a client is connected. */
#define LOOK_NS UINT64_C (1000000000)
/* A client may have been on its way in when the others were disconnected. */
#define AGAIN_NS UINT64_C (50000000)

static pthread_t thread;
static bool started;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;

/* Set once before the thread starts. */
static struct {
  struct array *array;
  uint64_t timeout_ns;
  const char *control;
  void (*disconnect) (void);
} this;

/* With the lock. */
static bool ending;
static bool came;               /* a client, since a look that found none */

/* False: the server ends. */
static bool
pause_ns (uint64_t ns)
{
  const uint64_t end = monotonic_ns () + ns;
  const struct timespec until = {
    .tv_sec = end / UINT64_C (1000000000),
    .tv_nsec = end % UINT64_C (1000000000),
  };

  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&lock);
  while (!ending && pthread_cond_timedwait (&changed, &lock, &until) == 0)
    ;
  return !ending;
}

/* False: the server ends. */
static bool
await_client (void)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&lock);
  while (!ending && !came)
    pthread_cond_wait (&changed, &lock);
  came = false;
  return !ending;
}

void
stop_client_came (void)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&lock);
  came = true;
  pthread_cond_signal (&changed);
}

/* nbdkit has no callback for a signal that stops it, but a sleep then fails
 * with this error, and nbdkit prints a message.  So it is not repeated, and not
 * done without a client.
 */
static bool
is_told (void)
{
  return log_can_write () && nbdkit_nanosleep (0, 0) == -1 &&
    errno == ESHUTDOWN;
}

#define NAMES_LEN (CONTROL_MAX_NAMED * (CONTROL_NAME_LEN + 2) + 32)

/* Returns how many there are. */
static unsigned
name_clients (char names[NAMES_LEN])
{
  struct control_clients c = { 0 };
  const unsigned nr = clients_name (this.control, &c);
  size_t n = 0;

  names[0] = '\0';
  for (unsigned i = 0; i < c.nr_named; i++)
    n += snprintf (names + n, NAMES_LEN - n, "%s%s", i ? ", " : "", c.name[i]);
  if (nr > c.nr_named)
    snprintf (names + n, NAMES_LEN - n, " and %u more", nr - c.nr_named);
  if (nr == 0)                  /* nbdkit -s */
    snprintf (names, NAMES_LEN, "on standard input");
  return nr ? nr : clients_count ();
}

static void
stop (void)
{
  char names[NAMES_LEN];
  unsigned nr;

  array_end_waits (this.array, false);
  nr = name_clients (names);
  if (this.timeout_ns == UINT64_MAX) {
    log_notice ("the server was told to stop: it waits until its clients "
                "disconnect (%u of them: %s)", nr, names);
    return;
  }
  if (this.timeout_ns > 0)
    log_notice ("the server was told to stop: it waits until its clients "
                "disconnect (%u of them: %s), for %g s (stop-timeout=)", nr,
                names, this.timeout_ns / 1e9);
  if (!pause_ns (this.timeout_ns))
    return;
  nr = name_clients (names);
  if (nr)
    log_notice ("clients that have not disconnected are disconnected (%u of "
                "them: %s)", nr, names);
  do
    this.disconnect ();
  while (pause_ns (AGAIN_NS));
}

/* Is a client connected, also one that has not said yet what it wants? */
static bool
is_connected (void)
{
  struct control_clients c;

  return clients_count () || clients_name (this.control, &c);
}

static void *
watch (void *arg)
{
  while (await_client ())
    while (is_connected ()) {
      if (is_told ()) {
        stop ();
        return NULL;
      }
      if (!pause_ns (LOOK_NS))
        return NULL;
    }
  return NULL;
}

int
stop_watch (struct array *array, uint64_t timeout_ns, const char *control,
            void (*disconnect) (void))
{
  pthread_condattr_t attr;
  int err;

  this.array = array;
  this.timeout_ns = timeout_ns;
  this.control = control;
  this.disconnect = disconnect;
  pthread_condattr_init (&attr);
  pthread_condattr_setclock (&attr, CLOCK_MONOTONIC);
  pthread_cond_init (&changed, &attr);
  pthread_condattr_destroy (&attr);
  err = thread_start (&thread, "gpuraid-stop", watch, NULL);
  if (err)
    log_error ("pthread_create: %s", strerror (err));
  started = err == 0;
  return started ? 0 : -1;
}

void
stop_end (void)
{
  if (!started)
    return;
  pthread_mutex_lock (&lock);
  ending = true;
  pthread_cond_signal (&changed);
  pthread_mutex_unlock (&lock);
  pthread_join (thread, NULL);
  started = false;
}
