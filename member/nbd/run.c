/* gpuraid: the thread of an NBD member.
 *
 * Waits at the sockets and for submissions, and lets session.c decide.
 * One for each member, so that one that hangs delays no other.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/bits.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/threads/thread.h"
#include "member/nbd/nbd.h"

/* While something is waited for, how often to look at the clock, and at what
 * the array thinks of this member.
 */
#define BUSY_MS 100
#define IDLE_MS 1000

static bool
take_submitted (struct nbd_member *n)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&n->lock);

  if (!list_empty (&n->submitted) && !nbd_session_owes (n))
    n->answered = running_now ();   /* from now on something is waited for */
  list_for_each (l, &n->submitted) {
    list_item (l, struct nbd_req, link)->seq = ++n->seq;
    list_move (&n->queue, l);
  }
  return !n->stop;
}

static void
run_finished (struct nbd_member *n)
{
  struct io *io = n->finished;

  n->finished = NULL;
  n->finished_last = &n->finished;
  while (io) {
    struct io *next = io->next;

    io->more = next != NULL;
    io->done (io);
    io = next;
  }
}

static int
timeout_ms (const struct nbd_member *n)
{
  if (n->lost || (n->leave_at && list_empty (&n->active)) ||
      (n->state == NBD_REPLAYING && list_empty (&n->active)))
    return 0;
  if (n->state == NBD_UP && list_empty (&n->queue) && list_empty (&n->active))
    return IDLE_MS;
  return n->state == NBD_OUT ? IDLE_MS : BUSY_MS;
}

static short
events_of (struct nbd_handle *h)
{
  const unsigned dir = nbd_aio_get_direction (h);

  return (dir & LIBNBD_AIO_DIRECTION_READ ? POLLIN : 0) |
    (dir & LIBNBD_AIO_DIRECTION_WRITE ? POLLOUT : 0);
}

static void
notify (struct nbd_member *n, struct nbd_handle *h, short revents)
{
  const unsigned dir = nbd_aio_get_direction (h);
  int r = 0;

  if ((revents & (POLLIN | POLLHUP | POLLERR)) &&
      (dir & LIBNBD_AIO_DIRECTION_READ))
    r = nbd_aio_notify_read (h);
  else if (revents && (dir & LIBNBD_AIO_DIRECTION_WRITE))
    r = nbd_aio_notify_write (h);
  if (r == -1)
    nbd_conn_why (n->why);
}

static void
wait_and_notify (struct nbd_member *n)
{
  struct pollfd fds[1 + NBD_MAX_CONNS] = {
    { .fd = n->wake_fd, .events = POLLIN },
  };
  uint64_t count;
  int nr;

  for (unsigned c = 0; c < n->nr_conns; c++) {
    fds[1 + c].fd = nbd_conn_is_lost (n->conn[c]) || nbd_look_holds (n, c) ?
      -1 : nbd_aio_get_fd (n->conn[c]);
    fds[1 + c].events = fds[1 + c].fd == -1 ? 0 : events_of (n->conn[c]);
  }
  nr = poll (fds, 1 + n->nr_conns, timeout_ms (n));
  if (nr == 0 && timeout_ms (n) == IDLE_MS)
    nbd_buffers_trim (&n->kept);
  if (nbd_look_is_too_late (n)) {
    snprintf (n->why, sizeof n->why, "no answer for too long");
    n->lost = true;
    return;
  }
  if (nr <= 0)
    return;
  if (fds[0].revents && read (n->wake_fd, &count, sizeof count) == -1)
    log_debug ("eventfd: %m");
  for (unsigned c = 0; c < n->nr_conns; c++)
    if (fds[1 + c].revents && !nbd_look_holds (n, c))
      notify (n, n->conn[c], fds[1 + c].revents);
}

static void *
run (void *arg)
{
  struct nbd_member *n = arg;

  while (take_submitted (n)) {
    nbd_session_step (n);
    nbd_session_answers (n);
    run_finished (n);
    wait_and_notify (n);
    nbd_session_answers (n);
    run_finished (n);
  }
  /* Of its own: looks.  See nbd_session_leave. */
  for (const uint64_t end = running_now () + UINT64_C (1000000000);
       !list_empty (&n->active) && !n->lost && running_now () < end; ) {
    wait_and_notify (n);
    nbd_session_answers (n);
    run_finished (n);
  }
  return NULL;
}

/* lock held.  The connection of the open is used on: a server for one client
 * might end without it.
 */
static int
start (struct nbd_member *n)
{
  int err;

  n->state = n->conn[0] ? NBD_CONNECTING : NBD_DOWN;
  n->answered = running_now ();
  n->deadline = n->answered + UINT64_C (10000000000);
  err = thread_start (&n->thread, "gpuraid-nbd", run, n);
  n->running = err == 0;
  return err;
}

int
nbd_run_submit (struct nbd_member *n, struct nbd_req *r)
{
  const uint64_t one = 1;
  bool first;
  int err = 0;

  pthread_mutex_lock (&n->lock);
  if (!n->running)
    err = start (n);
  first = list_empty (&n->submitted);
  if (err == 0)
    list_append (&n->submitted, &r->link);
  pthread_mutex_unlock (&n->lock);
  if (err == 0 && first && write (n->wake_fd, &one, sizeof one) == -1)
    log_debug ("eventfd: %m");
  return err;
}

int
nbd_run_wake (struct nbd_member *n)
{
  const uint64_t one = 1;
  int err = 0;

  pthread_mutex_lock (&n->lock);
  if (!n->running)
    err = start (n);
  pthread_mutex_unlock (&n->lock);
  if (err == 0 && write (n->wake_fd, &one, sizeof one) == -1)
    log_debug ("eventfd: %m");
  return err;
}

void
nbd_run_stop (struct nbd_member *n)
{
  const uint64_t one = 1;
  bool running;

  pthread_mutex_lock (&n->lock);
  n->stop = true;
  running = n->running;
  pthread_mutex_unlock (&n->lock);
  if (!running)
    return;
  if (write (n->wake_fd, &one, sizeof one) == -1)
    log_debug ("eventfd: %m");
  pthread_join (n->thread, NULL);
  n->running = false;
}
