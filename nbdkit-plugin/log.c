/* gpuraid: pass messages to nbdkit.
 *
 * nbdkit has errors and debug messages, but no level for notices.  Those go to
 * stderr, where nbdkit's messages go too, or to syslog once a daemon has no
 * stderr any more.  With log= all of them go to a file, with the time.
 *
 * Stderr may be a pipe that nothing reads, and a write to it then blocks.  No
 * thread that serves may wait for that.  So once the server runs one thread
 * writes all messages, from a bounded queue.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "common/threads/clock.h"
#include "common/threads/thread.h"
#include "nbdkit-plugin/plugin.h"

/* With its prefix a line is shorter than PIPE_BUF.  If poll says that a pipe
 * can be written to, then that much can be written without blocking.
 */
#define MAX_TEXT_LEN 2048u

#define MAX_QUEUED 1024u
#define MAX_QUEUED_LEN (256u << 10)     /* bytes */

#define POLL_MS 100
/* How often the file is looked at. */
#define TEND_S 1
/* How long log_flush waits for the thread; less where stderr blocks; and how
 * often it looks.
 */
#define FLUSH_NS UINT64_C (1000000000)
#define FLUSH_BLOCKED_NS UINT64_C (100000000)
#define FLUSH_LOOK_NS 1000000
/* At the end: how long stderr may block, and how long the thread. */
#define STOP_NS UINT64_C (1000000000)
#define JOIN_S 3

static pid_t pid_before_fork;
static bool to_syslog;
static enum { WANT_ANY, WANT_STDERR, WANT_SYSLOG } wanted;
static bool started;

/* ---- writing --------------------------------------------------------- */

static void
to_stderr (const char *prefix, const char *fmt, va_list args)
{
  char text[MAX_TEXT_LEN], at[LOG_TIME_LEN];

  vsnprintf (text, sizeof text, fmt, args);
  log_file_time (at);
  fprintf (stderr, "%snbdkit: %s%s\n", at, prefix, text);
}

static void
say_to_syslog (int priority, const char *prefix, const char *fmt, va_list args)
{
  char text[MAX_TEXT_LEN];

  vsnprintf (text, sizeof text, fmt, args);
  syslog (LOG_DAEMON | priority, "%s%s", prefix, text);
}

static void
notice (const char *fmt, va_list args)
{
  if (to_syslog)
    say_to_syslog (LOG_NOTICE, "gpuraid: ", fmt, args);
  else
    to_stderr ("gpuraid: ", fmt, args);
}

/* Before the start nbdkit prints it; later it may send that of a daemon to
 * syslog.
 */
static void
error (const char *fmt, va_list args)
{
  if (log_file_is_used () || (started && wanted == WANT_STDERR))
    to_stderr ("error: ", fmt, args);
  else if (started && wanted == WANT_SYSLOG)
    say_to_syslog (LOG_ERR, "error: ", fmt, args);
  else
    nbdkit_verror (fmt, args);
}

static void
vwrite (enum log_level level, const char *fmt, va_list args)
{
  switch (level) {
  case LOG_LEVEL_ERROR: error (fmt, args); break;
  case LOG_LEVEL_NOTICE: notice (fmt, args); break;
  case LOG_LEVEL_DEBUG: nbdkit_vdebug (fmt, args); break;
  }
}

static void
write_text (enum log_level level, const char *fmt, ...)
{
  va_list args;

  va_start (args, fmt);
  vwrite (level, fmt, args);
  va_end (args);
}

/* Can a message be written without blocking?  For a file poll always says yes.
 */
static bool
stderr_takes (int timeout_ms)
{
  struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };

  return poll (&p, 1, timeout_ms) > 0;
}

bool
log_can_write (void)
{
  return stderr_takes (0);
}

/* ---- the queue ------------------------------------------------------- */

struct message {
  struct message *next;
  enum log_level level;
  unsigned nr_dropped;          /* not 0: the line that reports this number */
  size_t len;                   /* bytes of text */
  char text[];
};

static struct {
  atomic_bool used;             /* the thread runs */
  _Atomic uint64_t give_up;     /* ns: then stderr has blocked for too long;
                                 * 0: never */
  _Atomic uint64_t blocked_since;       /* ns; 0: stderr takes messages */
  _Atomic uint64_t nr_in, nr_out;       /* messages queued, and those of them
                                         * that were written or given up */
  _Atomic uint64_t stuck_at;    /* 1 + nr_out when a flush gave up */
  pthread_t thread;
  pthread_mutex_t lock;

  /* With the lock. */
  pthread_cond_t changed;
  struct message *first, *newest;
  unsigned nr;
  size_t len;                   /* bytes, of all texts */
  bool stopping;
} queue = {
  .lock = PTHREAD_MUTEX_INITIALIZER,
  .changed = PTHREAD_COND_INITIALIZER,
};

/* With the lock.  Debug messages take at most half of the room: without -v
 * nbdkit drops them, and they must not displace other messages.
 */
static bool
has_room (enum log_level level, size_t len)
{
  const unsigned part = level == LOG_LEVEL_DEBUG ? 2 : 1;

  return queue.nr < MAX_QUEUED / part &&
    queue.len + len <= MAX_QUEUED_LEN / part;
}

/* With the lock. */
static void
append (struct message *m)
{
  if (queue.first == NULL)
    queue.first = m;
  else
    queue.newest->next = m;
  queue.newest = m;
  queue.nr++;
  queue.len += m->len;
  atomic_fetch_add (&queue.nr_in, 1);
  pthread_cond_signal (&queue.changed);
}

/* With the lock.  The line that counts dropped messages is in the queue
 * where they would have been.
 */
static void
drop_one (void)
{
  struct message *m = queue.newest;

  if (queue.first == NULL || m->nr_dropped == 0) {
    m = calloc (1, sizeof *m);
    if (m == NULL)
      return;
    m->level = LOG_LEVEL_NOTICE;
    append (m);
  }
  m->nr_dropped++;
}

static void
enqueue (enum log_level level, const char *fmt, va_list args)
{
  char text[MAX_TEXT_LEN];
  struct message *m;
  size_t len;

  vsnprintf (text, sizeof text, fmt, args);
  len = strlen (text);
  m = calloc (1, sizeof *m + len + 1);
  if (m) {
    m->level = level;
    m->len = len;
    memcpy (m->text, text, len);
  }
  pthread_mutex_lock (&queue.lock);
  if (m && has_room (level, len)) {
    append (m);
    m = NULL;
  }
  else if (level != LOG_LEVEL_DEBUG)
    drop_one ();
  pthread_mutex_unlock (&queue.lock);
  free (m);
}

static void
sink (enum log_level level, const char *fmt, va_list args)
{
  if (atomic_load (&queue.used))
    enqueue (level, fmt, args);
  else
    vwrite (level, fmt, args);
}

void
log_to_client (const char *fmt, ...)
{
  va_list args;

  va_start (args, fmt);
  if (stderr_takes (0))
    nbdkit_verror (fmt, args);
  else
    sink (LOG_LEVEL_ERROR, fmt, args);
  va_end (args);
}

/* ---- the thread ------------------------------------------------------ */

/* With the lock: wait for a message, the end, or the time to tend the file. */
static void
wait_for_work (void)
{
  struct timespec until;

  clock_gettime (CLOCK_MONOTONIC, &until);
  until.tv_sec += TEND_S;
  while (queue.first == NULL && !queue.stopping) {
    if (!log_file_is_used ())
      pthread_cond_wait (&queue.changed, &queue.lock);
    else if (pthread_cond_clockwait (&queue.changed, &queue.lock,
                                     CLOCK_MONOTONIC, &until) == ETIMEDOUT)
      break;
  }
}

/* The oldest message, in *m, or NULL.  False at the end. */
static bool
dequeue (struct message **m)
{
  bool stopping;

  pthread_mutex_lock (&queue.lock);
  wait_for_work ();
  *m = queue.first;
  if (*m) {
    queue.first = (*m)->next;
    queue.nr--;
    queue.len -= (*m)->len;
  }
  stopping = queue.stopping;
  pthread_mutex_unlock (&queue.lock);
  return *m || !stopping;
}

/* nbdkit knows the name of the plugin only in its own threads. */
static void
write_message (const struct message *m)
{
  if (m->nr_dropped)
    write_text (m->level, "%u messages were dropped", m->nr_dropped);
  else if (m->level == LOG_LEVEL_NOTICE)
    write_text (m->level, "%s", m->text);
  else
    write_text (m->level, "gpuraid: %s", m->text);
}

/* False: the server stops, and can't wait any longer. */
static bool
wait_for_stderr (void)
{
  if (stderr_takes (0))
    return true;
  atomic_store (&queue.blocked_since, monotonic_ns ());
  while (!stderr_takes (POLL_MS)) {
    const uint64_t give_up = atomic_load (&queue.give_up);

    if (give_up && monotonic_ns () >= give_up)
      return false;
  }
  atomic_store (&queue.blocked_since, 0);
  return true;
}

static void *
write_queue (void *arg)
{
  struct message *m;
  bool blocked = false;

  while (dequeue (&m)) {
    if (m) {
      blocked = blocked || !wait_for_stderr ();
      if (!blocked)
        write_message (m);
      atomic_fetch_add (&queue.nr_out, 1);
      free (m);
    }
    log_file_tend ();
  }
  return NULL;
}

/* ---- flush ----------------------------------------------------------- */

static bool
may_wait (uint64_t since)
{
  const uint64_t blocked = atomic_load (&queue.blocked_since);
  const uint64_t t = monotonic_ns ();

  return t < since + FLUSH_NS && (!blocked || t < blocked + FLUSH_BLOCKED_NS);
}

/* If it gave up before, and nothing was written since, it does not wait again.
 */
static void
flush (void)
{
  const struct timespec pause = { .tv_nsec = FLUSH_LOOK_NS };
  const uint64_t nr = atomic_load (&queue.nr_in), since = monotonic_ns ();
  uint64_t nr_out;

  while (atomic_load (&queue.used) &&
         (nr_out = atomic_load (&queue.nr_out)) < nr &&
         atomic_load (&queue.stuck_at) != nr_out + 1) {
    if (!may_wait (since)) {
      atomic_store (&queue.stuck_at, nr_out + 1);
      break;
    }
    nanosleep (&pause, NULL);
  }
}

/* ---- from the start to the end --------------------------------------- */

void
log_to_nbdkit (void)
{
  pid_before_fork = getpid ();
  log_set_sink (sink);
  log_set_flush (flush);
}

int
log_choose (const char *target)
{
  if (target && strcmp (target, "stderr") == 0)
    wanted = WANT_STDERR;
  else if (target && strcmp (target, "syslog") == 0)
    wanted = WANT_SYSLOG;
  else
    return log_file_open (target);
  return 0;
}

/* A daemon's stderr is /dev/null. */
static bool
has_no_stderr (void)
{
  struct stat st;

  return getpid () != pid_before_fork && fstat (STDERR_FILENO, &st) == 0 &&
    S_ISCHR (st.st_mode) && st.st_rdev == makedev (1, 3);
}

int
log_start (void)
{
  int err;

  if (log_file_use () == -1)
    return -1;
  if (wanted == WANT_STDERR && has_no_stderr ())
    wanted = WANT_ANY;
  to_syslog = wanted == WANT_SYSLOG ||
    (wanted == WANT_ANY && !log_file_is_used () && has_no_stderr ());
  started = true;
  err = thread_start (&queue.thread, "gpuraid-log", write_queue, NULL);
  if (err) {
    log_error ("pthread_create: %s", strerror (err));
    return -1;
  }
  atomic_store (&queue.used, true);
  return 0;
}

/* A thread that is still blocked in a write is abandoned; see nodelete in the
 * Makefile.
 */
void
log_stop (void)
{
  struct timespec end;

  if (!atomic_load (&queue.used))
    return;
  pthread_mutex_lock (&queue.lock);
  queue.stopping = true;
  atomic_store (&queue.give_up, monotonic_ns () + STOP_NS);
  pthread_cond_signal (&queue.changed);
  pthread_mutex_unlock (&queue.lock);
  /* The sanitizers know no pthread_clockjoin_np. */
  clock_gettime (CLOCK_REALTIME, &end);
  end.tv_sec += JOIN_S;
  pthread_timedjoin_np (queue.thread, NULL, &end);
  atomic_store (&queue.used, false);
}
