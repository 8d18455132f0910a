/* gpuraid: the control socket's threads.
 *
 * One thread takes connections; each connection has a thread of its own, so
 * that a client that waits for a rebuild delays no other.  control/request.c
 * decides what a request means.
 *
 * A session is on one of two lists, with the lock held: those that run, and
 * those whose thread is about to end.  The acceptor joins the latter; no thread
 * is detached, because this code may be unloaded once control_stop has
 * returned.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/list.h"
#include "common/log.h"
#include "common/threads/thread.h"
#include "control/control.h"
#include "control/line.h"
#include "control/request.h"
#include "control/socket.h"

#define MAX_SESSIONS CONTROL_MAX_SESSIONS

unsigned control_last_s = 1;

struct control {
  struct control_socket socket;
  int wake_fd;                  /* an eventfd: the acceptor is to end */

  /* Set once in control_start. */
  const struct control_ops *ops;
  void *opaque;
  pthread_t acceptor;
  bool started;

  struct control_last last;     /* the acceptor's, then control_stop's */

  pthread_mutex_t lock;
  pthread_cond_t none_runs;
  /* With lock held. */
  bool stopping;
  unsigned nr_running;          /* without those that make room */
  uint64_t nr_waits;            /* for a request, of all sessions */
  struct list running;
  struct list ended;            /* to be joined */
};

struct session {
  struct list link;             /* control's lock */
  struct control *control;
  pthread_t thread;             /* the acceptor writes it; the joining thread
                                 * reads */
  int fd;                       /* closed by its thread, with lock held, since
                                 * control_stop shuts down running ones; or
                                 * kept until the end if it asked for a stop */
  bool asked_stop;

  /* With control's lock held. */
  uint64_t wait;                /* which of nr_waits it is in; 0: none */
  bool makes_room;              /* for another client: it ends when it has
                                 * answered what has arrived */
};

static bool
is_stopping (struct control *c)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&c->lock);
  return c->stopping;
}

/* For array_wait.  POLLHUP means that the client has closed; a client that has
 * only shut down its sending side still expects the answer.
 */
static bool
session_cancelled (void *vp)
{
  struct session *s = vp;
  struct pollfd p = { .fd = s->fd };

  if (is_stopping (s->control))
    return true;
  return poll (&p, 1, 0) == 1 && p.revents & (POLLHUP|POLLERR|POLLNVAL);
}

/* Send and free the reply.  -1: the client is lost. */
static int
send_reply (int fd, struct json_object *reply)
{
  const char *text;
  size_t len;
  int r = -1;

  text = json_object_to_json_string_length (reply, JSON_C_TO_STRING_PLAIN |
                                            JSON_C_TO_STRING_NOSLASHESCAPE,
                                            &len);
  if (reply && text)
    r = line_write (fd, text, len);
  json_object_put (reply);
  return r;
}

/* The client has asked for a stop, and is answered at its end.  If it leaves
 * meanwhile, the stop goes on.
 */
static void
session_await_stop (struct session *s, enum request_stop how)
{
  struct control *c = s->control;
  const struct timespec pause = { .tv_nsec = 50000000 };

  while (!is_stopping (c)) {
    if (how == STOP_FORCE)
      c->ops->disconnect (c->opaque);
    nanosleep (&pause, NULL);
  }
  s->asked_stop = true;
}

/* The next request.  False: there is none. */
static bool
session_read (struct session *s, struct line_buf *b, char **line, size_t *len)
{
  struct control *c = s->control;
  enum line_result r;
  bool makes_room;

  pthread_mutex_lock (&c->lock);
  if (s->wait == 0)
    s->wait = ++c->nr_waits;
  pthread_mutex_unlock (&c->lock);
  r = line_read (b, s->fd, line, len);
  pthread_mutex_lock (&c->lock);
  s->wait = 0;
  makes_room = s->makes_room;
  pthread_mutex_unlock (&c->lock);

  if (r == LINE_TOO_LONG)
    send_reply (s->fd, reply_refuse ("a request has at most %u bytes",
                                     LINE_MAX_REQUEST));
  else if (r != LINE_OK && makes_room)
    send_reply (s->fd, reply_refuse ("the server has made room for another "
                                     "client of the control socket: connect "
                                     "again"));
  return r == LINE_OK && !is_stopping (c);
}

/* socket-group= and socket-mode= let others connect.  Through a command that
 * names a path the server would write there as its own user.
 */
static bool
is_another_user (int fd)
{
  struct ucred peer;
  socklen_t len = sizeof peer;

  return getsockopt (fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == -1 ||
    (peer.uid != 0 && peer.uid != geteuid ());
}

static void
session_serve (struct session *s)
{
  enum request_stop stop = STOP_NONE;
  struct line_buf b = { .max = LINE_MAX_REQUEST };
  struct request_env env = {
    .ops = s->control->ops,
    .opaque = s->control->opaque,
    .cancelled = session_cancelled,
    .cancelled_opaque = s,
    .only_status = is_another_user (s->fd),
  };

  while (stop == STOP_NONE) {
    struct json_object *reply;
    char *line;
    size_t len;

    if (!session_read (s, &b, &line, &len))
      break;
    reply = request_run (&env, line, len, &stop);
    /* What it says, and what the request has done, is in the log before: a
     * script may look there next.
     */
    log_flush ();
    if (stop != STOP_NONE)
      session_await_stop (s, stop);
    else if (send_reply (s->fd, reply) == -1)
      break;
  }
  line_free (&b);
}

static void *
session_thread (void *vp)
{
  struct session *s = vp;
  struct control *c = s->control;

  session_serve (s);

  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&c->lock);
  if (!s->asked_stop)
    close (s->fd);
  list_remove (&s->link);
  list_append (&c->ended, &s->link);
  if (!s->makes_room)
    c->nr_running--;
  if (list_empty (&c->running))
    pthread_cond_signal (&c->none_runs);
  return NULL;
}

/* If there are too many, the one that has asked nothing for longest ends.  It
 * still answers what has arrived: only its reading ends.  False: all are waited
 * for.  With the lock held.
 */
static bool
make_room (struct control *c)
{
  struct session *idle = NULL;

  if (c->nr_running < MAX_SESSIONS)
    return true;
  list_for_each (l, &c->running) {
    struct session *s = list_item (l, struct session, link);

    if (s->wait && !s->makes_room && (idle == NULL || s->wait < idle->wait))
      idle = s;
  }
  if (idle == NULL)
    return false;
  idle->makes_room = true;
  c->nr_running--;
  shutdown (idle->fd, SHUT_RD);
  return true;
}

/* Takes over fd. */
static void
session_start (struct control *c, int fd)
{
  struct session *s = NULL;
  int err = ENOMEM;

  pthread_mutex_lock (&c->lock);
  if (!make_room (c)) {
    pthread_mutex_unlock (&c->lock);
    send_reply (fd, reply_refuse ("too many clients of the control socket: "
                                  "each of %u waits for an answer",
                                  MAX_SESSIONS));
    close (fd);
    return;
  }
  s = calloc (1, sizeof *s);
  if (s) {
    s->control = c;
    s->fd = fd;
    s->wait = ++c->nr_waits;    /* its thread may begin much later */
    err = thread_start (&s->thread, "gpuraid-session", session_thread, s);
  }
  if (err == 0) {
    list_append (&c->running, &s->link);
    c->nr_running++;
  }
  pthread_mutex_unlock (&c->lock);

  if (err) {
    errno = err;
    log_error ("control: a client was turned away: %m");
    free (s);
    close (fd);
  }
}

static void
join_ended (struct control *c)
{
  struct list ended;

  list_init (&ended);
  pthread_mutex_lock (&c->lock);
  list_splice (&ended, &c->ended);
  pthread_mutex_unlock (&c->lock);
  list_for_each (l, &ended) {
    struct session *s = list_item (l, struct session, link);

    pthread_join (s->thread, NULL);
    /* There can be more than that, if one made room when it asked. */
    if (s->asked_stop && c->last.nr < MAX_SESSIONS)
      c->last.fd[c->last.nr++] = s->fd;
    else if (s->asked_stop)
      close (s->fd);
    free (s);
  }
}

static void *
acceptor_thread (void *vp)
{
  struct control *c = vp;
  struct pollfd p[2] = {
    { .fd = c->socket.fd, .events = POLLIN },
    { .fd = c->wake_fd, .events = POLLIN },
  };

  for (;;) {
    int fd;

    p[0].revents = p[1].revents = 0;
    if (poll (p, 2, -1) == -1 && errno != EINTR) {
      log_error ("control: poll: %m");
      break;
    }
    if (p[1].revents)
      break;
    if (p[0].revents == 0)
      continue;
    join_ended (c);
    fd = accept4 (c->socket.fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
      session_start (c, fd);
    else if (errno != ECONNABORTED && errno != EINTR) {
      /* No descriptors or memory: the client stays in the queue, so do not
       * spin.
       */
      log_debug ("control: accept: %m");
      poll (&p[1], 1, 100);
    }
  }
  return NULL;
}

static void
control_free (struct control *c)
{
  control_socket_close (&c->socket);
  if (c->wake_fd >= 0)
    close (c->wake_fd);
  pthread_cond_destroy (&c->none_runs);
  pthread_mutex_destroy (&c->lock);
  free (c);
}

struct control *
control_bind (const char *path)
{
  struct control *c = calloc (1, sizeof *c);

  if (c == NULL) {
    log_error ("calloc: %m");
    return NULL;
  }
  c->wake_fd = -1;
  pthread_mutex_init (&c->lock, NULL);
  pthread_cond_init (&c->none_runs, NULL);
  list_init (&c->running);
  list_init (&c->ended);
  if (control_socket_open (&c->socket, path) == -1) {
    control_free (c);
    return NULL;
  }
  return c;
}

int
control_start (struct control *c, const struct control_ops *ops, void *opaque)
{
  int err;

  assert (!c->started);
  c->ops = ops;
  c->opaque = opaque;
  c->wake_fd = eventfd (0, EFD_CLOEXEC);
  if (c->wake_fd == -1) {
    log_error ("eventfd: %m");
    return -1;
  }
  err = thread_start (&c->acceptor, "gpuraid-control", acceptor_thread, c);
  if (err) {
    errno = err;
    log_error ("pthread_create: %m");
    return -1;
  }
  c->started = true;
  return 0;
}

/* Shut down the sockets of all sessions; wait for them to end, until
 * the deadline, of CLOCK_MONOTONIC, if there is one.
 */
static void
end_sessions (struct control *c, int how, const struct timespec *deadline)
{
  int err = 0;

  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&c->lock);
  list_for_each (l, &c->running)
    shutdown (list_item (l, struct session, link)->fd, how);
  while (!list_empty (&c->running) && err == 0)
    err = deadline ? pthread_cond_clockwait (&c->none_runs, &c->lock,
                                             CLOCK_MONOTONIC, deadline)
      : pthread_cond_wait (&c->none_runs, &c->lock);
}

void
control_stop_last (struct control *c, struct control_last *last)
{
  struct timespec deadline;

  last->nr = 0;
  if (c == NULL)
    return;
  if (c->started) {
    pthread_mutex_lock (&c->lock);
    c->stopping = true;
    pthread_mutex_unlock (&c->lock);
    if (eventfd_write (c->wake_fd, 1) == -1)
      log_error ("eventfd_write: %m");
    pthread_join (c->acceptor, NULL);

    /* First stop reading, so that no request follows but the last answers are
     * sent; then close, so that a client that does not read causes no delay.
     */
    clock_gettime (CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += control_last_s;
    end_sessions (c, SHUT_RD, &deadline);
    end_sessions (c, SHUT_RDWR, NULL);
    join_ended (c);
    *last = c->last;
  }
  control_free (c);
}

void
control_answer_last (struct control_last *last, bool written_out)
{
  for (unsigned i = 0; i < last->nr; i++) {
    const struct timeval t = { .tv_sec = control_last_s };

    setsockopt (last->fd[i], SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
    send_reply (last->fd[i], request_stopped (written_out));
  }
  last->nr = 0;
}

void
control_stop (struct control *c)
{
  struct control_last last;

  control_stop_last (c, &last);
  for (unsigned i = 0; i < last.nr; i++)
    close (last.fd[i]);
}
