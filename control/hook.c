/* gpuraid: run a program for each event of an array.
 *
 * posix_spawn, because a fork of a server with locks held in other threads
 * may only call a few functions.  The event is in a file in memory, so no
 * thread writes to a program that does not read.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/bits.h"
#include "common/cleanup.h"
#include "common/list.h"
#include "common/log.h"
#include "common/threads/thread.h"
#include "control/hook.h"
#include "control/reply.h"

atomic_uint hook_run_ms = 60000, hook_stop_ms = 5000;

struct queued {
  struct list link;
  const char *name;             /* of the event; constant */
  char *text;                   /* owned */
};

struct hook {
  const char *program;
  char label[64];               /* or the uuid */
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;

  /* With lock held. */
  struct list queue;            /* struct queued, oldest first */
  unsigned nr_queued;
  bool dropping;                /* some were, since it was empty */
  bool stopping;
  struct timespec stop_at;      /* if stopping; monotonic */
};

int
hook_check (const char *program)
{
  struct stat st;

  if (stat (program, &st) == -1) {
    log_error ("hook=%s: %m: give the path of a program, or leave the key out",
               program);
    return -1;
  }
  if (!S_ISREG (st.st_mode) || access (program, X_OK) == -1) {
    log_error ("hook=%s: not a program that can be run (chmod +x makes a file "
               "one)", program);
    return -1;
  }
  return 0;
}

/* ---- time ---------------------------------------------------------------- */

static struct timespec
now (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return t;
}

static struct timespec
later (struct timespec t, unsigned ms)
{
  t.tv_sec += ms / 1000;
  t.tv_nsec += ms % 1000 * 1000000;
  if (t.tv_nsec >= 1000000000) {
    t.tv_sec++;
    t.tv_nsec -= 1000000000;
  }
  return t;
}

static bool
is_past (const struct timespec *t)
{
  const struct timespec n = now ();

  return n.tv_sec > t->tv_sec ||
    (n.tv_sec == t->tv_sec && n.tv_nsec >= t->tv_nsec);
}

/* ---- one run, in the thread ---------------------------------------------- */

/* A file in memory with the text, at its beginning.  -1: reported. */
static int
file_of (const char *text)
{
  const int fd = memfd_create ("event", MFD_CLOEXEC);
  const size_t len = strlen (text);

  if (fd != -1 && write (fd, text, len) == (ssize_t) len &&
      lseek (fd, 0, SEEK_SET) == 0)
    return fd;
  log_error ("memfd_create: %m");
  if (fd != -1)
    close (fd);
  return -1;
}

/* Its own session, so that all it starts can be killed; no signal blocked or
 * ignored, no file but these three.
 */
static int
spawn (const struct hook *h, const struct queued *q, int fd, pid_t *pid)
{
  char *const argv[] = {
    (char *) h->program, (char *) q->name, (char *) h->label, NULL,
  };
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attr;
  sigset_t none, all;
  int err;

  sigemptyset (&none);
  sigfillset (&all);
  posix_spawnattr_init (&attr);
  posix_spawnattr_setflags (&attr, POSIX_SPAWN_SETSID |
                            POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setsigmask (&attr, &none);
  posix_spawnattr_setsigdefault (&attr, &all);
  posix_spawn_file_actions_init (&files);
  posix_spawn_file_actions_adddup2 (&files, fd, 0);
  posix_spawn_file_actions_addopen (&files, 1, "/dev/null", O_WRONLY, 0);
#if __GLIBC_PREREQ (2, 34)
  posix_spawn_file_actions_addclosefrom_np (&files, 3);
#endif
  err = posix_spawn (pid, h->program, &files, &attr, argv, environ);
  posix_spawn_file_actions_destroy (&files);
  posix_spawnattr_destroy (&attr);
  return err;
}

/* True if the program has ended, or its end can't be known. */
static bool
has_ended (pid_t pid, int *status)
{
  const pid_t r = waitpid (pid, status, WNOHANG);

  return r == pid || (r == -1 && errno != EINTR);
}

/* True if it must not run any longer. */
static bool
is_too_long (struct hook *h, const struct timespec *began)
{
  const struct timespec end = later (*began, hook_run_ms);

  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&h->lock);
  return is_past (&end) || (h->stopping && is_past (&h->stop_at));
}

static void
wait_for (struct hook *h, const struct queued *q, pid_t pid)
{
  const struct timespec began = now ();
  unsigned ms = 5;
  int status = 0;

  while (!has_ended (pid, &status)) {
    if (is_too_long (h, &began)) {
      log_notice ("hook: %s %s: it takes too long and is killed", h->program,
                  q->name);
      kill (-pid, SIGKILL);
      while (waitpid (pid, &status, 0) == -1 && errno == EINTR)
        ;
      return;
    }
    nanosleep (&(struct timespec) { .tv_nsec = ms * 1000000 }, NULL);
    ms = MIN (2 * ms, 100);
  }
  if (WIFEXITED (status) && WEXITSTATUS (status) != 0)
    log_notice ("hook: %s %s: its exit status was %d", h->program, q->name,
                WEXITSTATUS (status));
  else if (WIFSIGNALED (status))
    log_notice ("hook: %s %s: signal %d", h->program, q->name,
                WTERMSIG (status));
}

static void
run (struct hook *h, const struct queued *q)
{
  const int fd = file_of (q->text);
  pid_t pid;
  int err;

  if (fd == -1)
    return;
  err = spawn (h, q, fd, &pid);
  close (fd);
  if (err)
    log_notice ("hook: %s: %s", h->program, strerror (err));
  else
    wait_for (h, q, pid);
}

/* ---- the queue ----------------------------------------------------------- */

static void
free_queued (struct queued *q)
{
  free (q->text);
  free (q);
}

/* With the lock held. */
static struct queued *
take (struct hook *h)
{
  struct list *l = list_pop (&h->queue);

  if (l)
    h->nr_queued--;
  else
    h->dropping = false;
  return l ? list_item (l, struct queued, link) : NULL;
}

/* The next event; NULL: there will be none. */
static struct queued *
next (struct hook *h)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&h->lock);
  for (;;) {
    struct queued *q = take (h);

    if (q && h->stopping && is_past (&h->stop_at)) {
      free_queued (q);
      continue;
    }
    if (q || h->stopping)
      return q;
    pthread_cond_wait (&h->changed, &h->lock);
  }
}

static void *
hook_thread (void *arg)
{
  struct hook *h = arg;
  struct queued *q;

  while ((q = next (h)) != NULL) {
    run (h, q);
    free_queued (q);
  }
  return NULL;
}

/* True if the oldest event was dropped for it, for the first time. */
static bool
add (struct hook *h, struct queued *q)
{
  bool first = false;

  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&h->lock);
  if (h->nr_queued == HOOK_MAX_QUEUED) {
    first = !h->dropping;
    free_queued (take (h));
    h->dropping = true;
  }
  list_append (&h->queue, &q->link);
  h->nr_queued++;
  pthread_cond_signal (&h->changed);
  return first;
}

void
hook_event (void *opaque, const struct array_event *e)
{
  struct hook *h = opaque;
  struct json_object *o = event_to_json (e, h->label);
  struct queued *q = calloc (1, sizeof *q);
  const char *text = o ?
    json_object_to_json_string_ext (o, JSON_C_TO_STRING_PLAIN) : NULL;

  if (q && text && asprintf (&q->text, "%s\n", text) == -1)
    q->text = NULL;
  json_object_put (o);
  if (q == NULL || q->text == NULL) {
    free (q);
    return;
  }
  list_init (&q->link);
  q->name = event_name (e->kind);
  if (add (h, q))
    log_notice ("hook: %s: it does not keep up: the oldest events are dropped",
                h->program);
}

/* ---- start and stop ------------------------------------------------------ */

struct hook *
hook_start (const char *program, const char *label, const uuid_bytes *uuid)
{
  struct hook *h = calloc (1, sizeof *h);
  char text[UUID_TEXT_LEN];
  int err;

  if (h == NULL) {
    log_error ("calloc: %m");
    return NULL;
  }
  h->program = program;
  snprintf (h->label, sizeof h->label, "%s",
            label[0] ? label : uuid_text (uuid, text));
  list_init (&h->queue);
  pthread_mutex_init (&h->lock, NULL);
  pthread_cond_init (&h->changed, NULL);
  err = thread_start (&h->thread, "gpuraid-hook", hook_thread, h);
  if (err) {
    log_error ("pthread_create: %s", strerror (err));
    free (h);
    return NULL;
  }
  return h;
}

void
hook_stop (struct hook *h)
{
  if (h == NULL)
    return;
  pthread_mutex_lock (&h->lock);
  h->stopping = true;
  h->stop_at = later (now (), hook_stop_ms);
  pthread_cond_signal (&h->changed);
  pthread_mutex_unlock (&h->lock);
  pthread_join (h->thread, NULL);
  pthread_cond_destroy (&h->changed);
  pthread_mutex_destroy (&h->lock);
  free (h);
}
