/* gpuraid: pass messages to the sink.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/log.h"
#include "common/plant.h"

/* How long a thread may take to get from an unlock to log_release. */
#define RELEASE_MS 100

/* A message between log_hold and log_release. */
struct held {
  struct held *next;
  enum log_level level;
  char text[];
};

/* Of this thread.  The TLS model saves a call for each message, which the usual
 * model of a plugin needs.
 */
static __thread struct {
  bool holding;
  unsigned nr_dropped;
  struct held *first, **last;
} held __attribute__ ((tls_model ("initial-exec")));

static void
to_stderr (enum log_level level, const char *fmt, va_list args)
{
  if (level == LOG_LEVEL_DEBUG)
    return;
  flockfile (stderr);
  fputs ("gpuraid: ", stderr);
  vfprintf (stderr, fmt, args);
  fputc ('\n', stderr);
  funlockfile (stderr);
}

static log_sink sink = to_stderr;
static void (*flush_sink) (void);
static atomic_uint nr_held;     /* messages, of all threads */

void
log_nowhere (enum log_level level, const char *fmt, va_list args)
{
}

void
log_set_sink (log_sink s)
{
  sink = s ? s : to_stderr;
}

/* A path may have a newline in it, or control codes for a terminal. */
static void
make_one_line (char *text)
{
  for (char *p = text; *p; p++)
    if (iscntrl ((unsigned char) *p))
      *p = '?';
}

/* ---- prefix ---------------------------------------------------------- */

static __thread const char *prefix
  __attribute__ ((tls_model ("initial-exec")));

void
log_set_prefix (const char *p)
{
  prefix = p;
}

static void
to_sink (enum log_level level, const char *fmt, ...)
{
  va_list args;

  va_start (args, fmt);
  sink (level, fmt, args);
  va_end (args);
}

/* If memory is short the message is passed on as it is, with no prefix. */
static void
to_sink_prefixed (enum log_level level, const char *fmt, va_list args)
{
  const int err = errno;
  va_list again;
  char *text;
  int len;

  va_copy (again, args);
  len = vasprintf (&text, fmt, again);
  va_end (again);
  errno = err;                  /* for %m, and for the sink */
  if (len == -1) {
    sink (level, fmt, args);
    return;
  }
  make_one_line (text);
  to_sink (level, prefix ? "%s: %s" : "%s%s", prefix ? prefix : "", text);
  free (text);
}

/* ---- holding --------------------------------------------------------- */

static struct held *
held_new (enum log_level level, const char *fmt, va_list args)
{
  const int err = errno;
  va_list again;
  struct held *h = NULL;
  int len;

  va_copy (again, args);
  len = vsnprintf (NULL, 0, fmt, again);
  va_end (again);
  if (len >= 0)
    h = malloc (sizeof *h + len + 1);
  if (h == NULL)
    return NULL;
  h->next = NULL;
  h->level = level;
  errno = err;                  /* for %m */
  vsnprintf (h->text, len + 1, fmt, args);
  make_one_line (h->text);
  return h;
}

static void
forward (enum log_level level, const char *fmt, va_list args)
{
  struct held *h;

  if (!held.holding) {
    to_sink_prefixed (level, fmt, args);
    return;
  }
  h = held_new (level, fmt, args);
  if (h == NULL) {
    held.nr_dropped++;
    return;
  }
  atomic_fetch_add (&nr_held, 1);
  *held.last = h;
  held.last = &h->next;
}

void
log_hold (void)
{
  if (PLANTED ("log-under-lock"))
    return;
  assert (!held.holding);
  held.holding = true;
  held.last = &held.first;
}

void
log_release (void)
{
  const unsigned nr_dropped = held.nr_dropped;
  struct held *h = held.first, *next;
  int err;

  if (!held.holding)
    return;
  held.holding = false;
  if (h == NULL && nr_dropped == 0)
    return;
  held.first = NULL;
  held.nr_dropped = 0;
  err = errno;
  for (; h; h = next) {
    next = h->next;
    to_sink (h->level, "%s", h->text);
    atomic_fetch_sub (&nr_held, 1);
    free (h);
  }
  if (nr_dropped > 0)
    to_sink (LOG_LEVEL_NOTICE, "%u messages were dropped", nr_dropped);
  errno = err;
}

/* ---- flush ----------------------------------------------------------- */

void
log_set_flush (void (*flush) (void))
{
  flush_sink = flush;
}

/* A thread that has changed something under a lock gives its messages to the
 * sink after it unlocks: others see the change before.
 */
void
log_flush (void)
{
  const struct timespec pause = { .tv_nsec = 1000000 };

  if (flush_sink == NULL)
    return;
  for (unsigned ms = 0; ms < RELEASE_MS && atomic_load (&nr_held) > 0; ms++)
    nanosleep (&pause, NULL);
  flush_sink ();
}

/* ---- messages -------------------------------------------------------- */

#define FORWARD(level)                          \
  do {                                          \
    int err = errno;                            \
    va_list args;                               \
    va_start (args, fmt);                       \
    forward ((level), fmt, args);               \
    va_end (args);                              \
    errno = err;                                \
  } while (0)

void
log_error (const char *fmt, ...)
{
  FORWARD (LOG_LEVEL_ERROR);
}

void
log_notice (const char *fmt, ...)
{
  FORWARD (LOG_LEVEL_NOTICE);
}

void
log_debug (const char *fmt, ...)
{
  FORWARD (LOG_LEVEL_DEBUG);
}
