/* gpuraid: open an NBD export as a member, and its calls that wait.
 *
 * Those are made before nbdkit's fork, on one connection and in the caller's
 * thread; once the member's thread runs it does them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <inttypes.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/bits.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/plant.h"
#include "member/io.h"
#include "member/nbd/nbd.h"

/* A call that waits ends with an error if no answer comes for this long. */
#define ANSWER_NS UINT64_C (30000000000)

/* ---- calls that wait, before the thread runs ----------------------------- */

static void
drop_connection (struct nbd_member *n, struct nbd_req *r)
{
  nbd_close (n->conn[0]);
  n->conn[0] = NULL;
  n->nr_conns = 0;
  n->in_flight[0] = 0;
  n->nr_partial = 0;
  nbd_req_reset (r);
}

/* Until r is in n->done.  0 or a positive errno. */
static int
wait_for (struct nbd_member *n, struct nbd_req *r)
{
  n->answered = running_now ();
  nbd_req_issue (r, 0);
  while (list_empty (&n->done)) {
    if (running_now () >= n->answered + ANSWER_NS) {
      drop_connection (n, r);
      return ETIMEDOUT;
    }
    if (nbd_poll (n->conn[0], 1000) == -1 || nbd_conn_is_lost (n->conn[0])) {
      drop_connection (n, r);
      return ENOTCONN;
    }
    nbd_reqs_go_on (n);
  }
  if (r->error && nbd_conn_is_lost (n->conn[0])) {
    drop_connection (n, r);
    return ENOTCONN;
  }
  return r->error;
}

struct passed_on {
  struct io io;
  sem_t sem;
};

static void
post (struct io *io)
{
  sem_post (&list_item (io, struct passed_on, io)->sem);
}

/* The same through the thread. */
static int
pass_on (struct nbd_member *n, enum io_kind kind, void *buf, uint64_t len,
         uint64_t off)
{
  struct iovec iov = { buf, len };
  struct passed_on p = {
    .io = { .kind = kind, .member = &n->member, .off = off, .len = len,
            .iov = &iov, .nr_iov = 1, .done = post },
  };

  sem_init (&p.sem, 0, 0);
  n->member.ops->submit (&n->member, &p.io);
  while (sem_wait (&p.sem) == -1)
    ;
  sem_destroy (&p.sem);
  return p.io.error;
}

static int
call (struct nbd_member *n, enum io_kind kind, void *buf, uint64_t len,
      uint64_t off, bool fast)
{
  struct nbd_req *r;
  int err = io_check (&n->member, n->size, kind, off, len);

  if (err || (len == 0 && kind != IO_FLUSH))
    return err;
  pthread_mutex_lock (&n->lock);
  if (n->running) {
    pthread_mutex_unlock (&n->lock);
    return fast ? EOPNOTSUPP : pass_on (n, kind, buf, len, off);
  }
  r = nbd_req_new (n, NBD_FOR_IO, kind, off, len);
  if (r == NULL || n->conn[0] == NULL)
    err = r ? ENOTCONN : ENOMEM;
  else {
    r->data = buf;
    r->fast = fast;
    err = wait_for (n, r);
    if (err == 0 && io_changes (kind))
      nbd_marks_apply (&n->marks, r);
  }
  if (r)
    nbd_req_free (r);
  pthread_mutex_unlock (&n->lock);
  return err;
}

/* ---- the member's calls -------------------------------------------------- */

static uint64_t
nbd_size (struct member *m)
{
  return nbd_of (m)->size;
}

static void
nbd_ask_size (struct member *m)
{
  nbd_grow_ask (nbd_of (m));
}

/* Two names of one export can't be told from two exports; membership finds a
 * superblock that it meets twice.
 */
static bool
nbd_same (struct member *m, struct member *m2)
{
  return m2->ops == &nbd_member_ops && strcmp (m->path, m2->path) == 0;
}

static int
nbd_member_pread (struct member *m, void *buf, size_t len, uint64_t off)
{
  return call (nbd_of (m), IO_READ, buf, len, off, false);
}

static int
nbd_member_pwrite (struct member *m, const void *buf, size_t len,
                   uint64_t off)
{
  return call (nbd_of (m), IO_WRITE, (void *) buf, len, off, false);
}

static int
nbd_member_flush (struct member *m)
{
  const struct nbd_member *n = nbd_of (m);

  /* A server that can't flush what is only read has nothing to flush. */
  if (m->readonly && !n->server.can_flush)
    return 0;
  return call (nbd_of (m), IO_FLUSH, NULL, 0, 0, false);
}

/* A server that can't do it quickly would write. */
static int
make_zero (struct member *m, enum io_kind kind, uint64_t off, uint64_t len)
{
  int err;

  if (!nbd_of (m)->server.can_fast_zero)
    return EOPNOTSUPP;
  err = call (nbd_of (m), kind, NULL, len, off, true);
  return err == ENOTSUP ? EOPNOTSUPP : err;
}

static int
nbd_discard (struct member *m, uint64_t off, uint64_t len)
{
  return make_zero (m, IO_TRIM, off, len);
}

static int
nbd_allocate (struct member *m, uint64_t off, uint64_t len)
{
  return make_zero (m, IO_ZERO, off, len);
}

/* Nothing asks a server that may hang. */
static int
extent_of (struct member *m, uint64_t off, uint64_t len, bool *hole,
            uint64_t *end)
{
  *hole = false;
  *end = off + len;
  return io_check (m, nbd_of (m)->size, IO_READ, off, len);
}

/* A loop may hold its lock, so even what is refused is left to the thread. */
static void
nbd_submit (struct member *m, struct io *io)
{
  struct nbd_member *n = nbd_of (m);
  struct nbd_req *r = nbd_req_new (n, NBD_FOR_IO, io->kind, io->off, io->len);
  int err = ENOMEM;

  io->more = false;
  if (r) {
    r->io = io;
    r->error = io_check (m, n->size, io->kind, io->off, io->len);
    err = nbd_run_submit (n, r);
  }
  if (err) {
    if (r)
      nbd_req_free (r);
    io_done (io, err);
  }
}

static int
nbd_fd (struct member *m)
{
  return -1;
}

static int
nbd_check (struct member *m)
{
  return atomic_load (&nbd_of (m)->out);
}

static void
nbd_member_free (struct nbd_member *n)
{
  int err = errno;

  nbd_run_stop (n);
  for (unsigned c = 0; c < NBD_MAX_CONNS; c++)
    nbd_conn_close (n->conn[c]);
  list_for_each (l, &n->log.changes)
    nbd_req_free (list_item (l, struct nbd_req, link));
  list_for_each (l, &n->replay)
    nbd_req_free (list_item (l, struct nbd_req, link));
  list_for_each (l, &n->active)
    nbd_req_free (list_item (l, struct nbd_req, link));
  if (n->wake_fd != -1)
    close (n->wake_fd);
  nbd_buffers_trim (&n->kept);
  pthread_mutex_destroy (&n->lock);
  free (n->member.path);
  free (n);
  errno = err;
}

static void
nbd_end (struct member *m)
{
  nbd_run_stop (nbd_of (m));
}

static void
nbd_member_close (struct member *m)
{
  nbd_member_free (nbd_of (m));
}

const struct member_ops nbd_member_ops = {
  .size = nbd_size,
  .ask_size = nbd_ask_size,
  .same = nbd_same,
  .pread = nbd_member_pread,
  .pwrite = nbd_member_pwrite,
  .flush = nbd_member_flush,
  .discard = nbd_discard,
  .allocate = nbd_allocate,
  .extent = extent_of,
  .submit = nbd_submit,
  .fd = nbd_fd,
  .check = nbd_check,
  .end = nbd_end,
  .close = nbd_member_close,
};

/* ---- opening ------------------------------------------------------------- */

/* One that may be missing is not there, for the caller; why, for people. */
static void
not_there (const struct nbd_member *n, unsigned flags, const char *what,
           const char *why)
{
  if (flags & MEMBER_LISTED) {
    log_notice ("%s: %s%s", n->member.path, what, why);
    errno = ENXIO;
  }
  else {
    log_error ("%s: %s%s (start its server, or correct the URI)",
               n->member.path, what, why);
    errno = ENOTCONN;
  }
}

static int
connect_first (struct nbd_member *n, unsigned flags)
{
  char why[NBD_WHY_LEN];
  const char *unfit;
  bool readonly;

  n->conn[0] = nbd_conn_open (n->member.path, why);
  if (n->conn[0] == NULL && errno == EINVAL) {
    log_error ("%s: %s", n->member.path, why);
    errno = EINVAL;
    return -1;
  }
  if (n->conn[0] == NULL) {
    not_there (n, flags, "can't connect: ", why);
    return -1;
  }
  n->nr_conns = 1;
  nbd_conn_ask (n->conn[0], &n->server);
  n->size = n->server.size;
  unfit = nbd_server_unfit (&n->server, n->member.readonly);
  if (unfit == NULL)
    return 0;
  readonly = n->server.readonly && !n->member.readonly;
  if (!readonly || !(flags & MEMBER_LISTED))
    log_error ("%s: %s", n->member.path, unfit);
  errno = readonly ? EROFS : EINVAL;
  return -1;
}

/* What an array's server wrote that was killed may still be in the memory of
 * the member's server.  What is read from now on must stay when that restarts.
 */
static int
make_stable (struct nbd_member *n, unsigned flags)
{
  const bool no_need = !n->server.can_flush || PLANTED ("nbd-not-stable");
  const int err = no_need ? 0 : call (n, IO_FLUSH, NULL, 0, 0, false);

  /* Some refuse all but reads of an export that is read-only. */
  if (err == 0 || (n->server.readonly && (err == EPERM || err == EROFS)))
    return 0;
  not_there (n, flags, "can't be flushed: ", strerror (err));
  return -1;
}

/* What tells this export from another from now on. */
static int
read_marks (struct nbd_member *n, unsigned flags)
{
  nbd_marks_init (&n->marks, n->size);
  for (unsigned i = 0; i < NBD_NR_MARKS; i++) {
    int err = call (n, IO_READ, n->marks.flushed[i], NBD_MARK_LEN,
                    n->marks.off[i], false);

    if (err) {
      not_there (n, flags, "can't be read: ", strerror (err));
      return -1;
    }
  }
  return 0;
}

static struct nbd_member *
nbd_member_new (const char *uri, unsigned flags)
{
  struct nbd_member *n = calloc (1, sizeof *n);

  if (n == NULL) {
    log_error ("calloc: %m");
    return NULL;
  }
  n->member.ops = &nbd_member_ops;
  n->member.readonly = (flags & (MEMBER_RDONLY | MEMBER_NOLOCK)) != 0;
  n->member.async = true;
  n->finished_last = &n->finished;
  list_init (&n->submitted);
  list_init (&n->queue);
  list_init (&n->active);
  list_init (&n->done);
  list_init (&n->replay);
  nbd_log_init (&n->log);
  nbd_buffers_init (&n->kept, NBD_KEPT_HARD);
  pthread_mutex_init (&n->lock, NULL);
  n->wake_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  n->member.path = member_absolute_uri (uri, NULL);
  if (n->wake_fd == -1 || n->member.path == NULL) {
    if (n->wake_fd == -1)
      log_error ("eventfd: %m");
    nbd_member_free (n);
    return NULL;
  }
  return n;
}

struct member *
member_open_nbd (const char *uri, unsigned flags)
{
  struct nbd_member *n;

  if (flags & MEMBER_CREATE) {
    errno = EINVAL;
    log_error ("%s: an NBD export can't be made from here: start a server "
               "with one that is large enough", uri);
    return NULL;
  }
  if (member_uri_lacks_socket (uri)) {
    errno = EINVAL;
    log_error ("%s: names no socket: use nbd+unix:///EXPORT?socket=SOCKET",
               uri);
    return NULL;
  }
  n = nbd_member_new (uri, flags);
  if (n == NULL)
    return NULL;
  if (connect_first (n, flags) == -1 || make_stable (n, flags) == -1 ||
      read_marks (n, flags) == -1) {
    nbd_member_free (n);
    return NULL;
  }
  log_debug ("%s: %" PRIu64 " bytes%s", n->member.path, n->server.size,
             n->server.multi_conn ? ", multi-conn" : "");
  return &n->member;
}
