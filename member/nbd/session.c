/* gpuraid: the life of the connections to an NBD server.
 *
 * Down, connecting (the first connection, then the others), looking (is it the
 * same export, as we left it?), replaying (what was not flushed is issued
 * again, in order, before anything else: R9), up.  When one connection is lost
 * all are closed: the server may have restarted, and a flush on one would not
 * cover what an earlier server was told on another.
 *
 * All of this runs in the member's thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bits.h"
#include "common/log.h"
#include "common/plant.h"
#include "member/io.h"
#include "member/nbd/nbd.h"

#define SECOND UINT64_C (1000000000)
/* Between two tries to connect.  A server that is back is noticed before its
 * member is taken out: timeout= is at least a second.  So this does not grow.
 */
#define RETRY_NS (SECOND / 5)
/* When the array stops, a server that has been away for this long is not waited
 * for any more, nor one that has answered nothing for longer.
 */
#define STOP_NS (5 * SECOND)

_Atomic uint64_t nbd_silent_ns = 30 * SECOND;

#define LOG_MAX_NR 8192u        /* changes in the log; then writes wait */

#define MAX_REPLAY 32u          /* changes issued again at a time */

/* io->done is to be called with this error. */
static void
finish (struct nbd_member *n, struct io *io, int error)
{
  io->error = error;
  io->next = NULL;
  *n->finished_last = io;
  n->finished_last = &io->next;
}

/* ---- the end of a session ------------------------------------------------ */

static void
close_all (struct nbd_member *n, void (*close_one) (struct nbd_handle *h))
{
  for (unsigned c = 0; c < NBD_MAX_CONNS; c++) {
    close_one (n->conn[c]);
    n->conn[c] = NULL;
    n->in_flight[c] = 0;
  }
  n->nr_conns = 0;
}

/* Back into the queue, which is by seq. */
static void
requeue (struct nbd_member *n, struct nbd_req *r)
{
  struct list *before = n->queue.prev;

  while (before != &n->queue &&
         list_item (before, struct nbd_req, link)->seq > r->seq)
    before = before->prev;
  list_remove (&r->link);
  list_append (before->next, &r->link);
}

static void
take_back (struct nbd_member *n, struct nbd_req *r)
{
  nbd_req_reset (r);
  switch (r->why) {
  case NBD_FOR_IO:
    requeue (n, r);
    break;
  case NBD_FOR_LOG:
    nbd_log_put_back (&n->log, r);
    break;
  case NBD_FOR_FLUSH:
  case NBD_FOR_LOOK:
    nbd_req_free (r);
    break;
  }
}

static void
take_all_back (struct nbd_member *n)
{
  list_for_each (l, &n->done)
    take_back (n, list_item (l, struct nbd_req, link));
  list_for_each (l, &n->active)
    take_back (n, list_item (l, struct nbd_req, link));
  list_for_each (l, &n->replay)
    take_back (n, list_item (l, struct nbd_req, link));
  n->nr_partial = n->looks = 0;
  n->own_flush = false;
}

/* A connection is lost, see n->why: close all, and issue all again. */
static void
lose (struct nbd_member *n)
{
  const uint64_t now = running_now ();

  close_all (n, nbd_conn_abort);
  take_all_back (n);
  nbd_buffers_trim (&n->kept);
  n->lost = false;
  if (n->state == NBD_OUT)
    return;
  atomic_store (&n->member.away, true);
  n->retry_at = now + RETRY_NS;
  if (n->down_since == 0) {
    n->down_since = now;
    log_notice ("%s: connection lost: %s; trying again", n->member.path,
                n->why);
  }
  else
    log_debug ("%s: can't connect: %s", n->member.path, n->why);
  n->state = NBD_DOWN;
}

static void
out (struct nbd_member *n, int err)
{
  atomic_store (&n->out, err);
  n->state = NBD_OUT;
  close_all (n, err == ESTALE ? nbd_conn_abort : nbd_conn_close);
  take_all_back (n);
  list_for_each (l, &n->queue) {
    struct nbd_req *r = list_item (l, struct nbd_req, link);

    if (r->io)
      finish (n, r->io, ENODEV);
    nbd_req_free (r);
  }
  list_for_each (l, &n->log.changes)
    nbd_req_free (list_item (l, struct nbd_req, link));
  n->log.nr = 0;
}

/* Some servers end when a client leaves that they are about to answer (nbdkit
 * 1.32.5).  Messages were written.
 */
void
nbd_session_leave (struct nbd_member *n, int err)
{
  atomic_store (&n->out, err);
  if (n->leave_at)
    return;
  n->leave_at = running_now () + SECOND;
  n->leave_error = err;
}

/* Nothing is sent any more. */
static bool
is_leaving (struct nbd_member *n, uint64_t now)
{
  bool full = false;

  if (n->leave_at == 0)
    return false;
  for (unsigned c = 0; c < n->nr_conns; c++)
    full |= nbd_conn_is_full (n->conn[c]);
  if (n->state == NBD_DOWN || list_empty (&n->active) || full ||
      now >= n->leave_at) {
    n->leave_at = 0;
    out (n, n->leave_error);
  }
  return true;
}

/* ---- is it the same export? ---------------------------------------------- */

static void
stranger (struct nbd_member *n, uint64_t off)
{
  log_notice ("%s: other content than was written, at byte %" PRIu64 ": "
              "another server uses it, or it is another export now; it is not "
              "used any more", n->member.path, off);
  nbd_session_leave (n, ESTALE);
}

/* Then nothing may be written either. */
static void
unreadable (struct nbd_member *n, int err)
{
  log_notice ("%s: its superblock can't be read: %s; it is not used any more",
              n->member.path, strerror (err));
  nbd_session_leave (n, err);
}

static void
replay_begin (struct nbd_member *n)
{
  n->nr_replayed = n->log.nr;
  n->log.nr = 0;
  list_splice (&n->replay, &n->log.changes);
  if (PLANTED ("nbd-not-again"))
    list_for_each (l, &n->replay)
      nbd_req_free (list_item (l, struct nbd_req, link));
  list_for_each (l, &n->replay)
    list_item (l, struct nbd_req, link)->why = NBD_FOR_LOG;
  n->state = NBD_REPLAYING;
}

/* Frees r. */
static void
looked (struct nbd_member *n, struct nbd_req *r)
{
  const uint64_t off = r->off;
  const int err = r->error;
  const bool ours = nbd_look_answer (n, r);

  if (err && n->state == NBD_LOOKING) {
    snprintf (n->why, sizeof n->why, "its superblock can't be read: %s",
              strerror (err));
    n->lost = true;
  }
  else if (!err && !ours && n->leave_at == 0)
    stranger (n, off);
  else if (err && nbd_look_is_old (n) && n->leave_at == 0)
    unreadable (n, err);
  else if (n->looks == 0 && n->look_good && n->state == NBD_LOOKING &&
           n->leave_at == 0)
    replay_begin (n);
}

/* ---- answers ------------------------------------------------------------- */

static void
scatter (const struct nbd_req *r)
{
  const uint8_t *p = r->data;

  for (unsigned i = 0; r->own_data && i < r->io->nr_iov; i++) {
    memcpy (r->io->iov[i].iov_base, p, r->io->iov[i].iov_len);
    p += r->io->iov[i].iov_len;
  }
}

static void
flushed (struct nbd_member *n, uint64_t mark)
{
  struct list gone;

  list_init (&gone);
  nbd_log_flushed (&n->log, mark, &gone);
  list_for_each (l, &gone) {
    struct nbd_req *r = list_item (l, struct nbd_req, link);

    nbd_marks_apply (&n->marks, r);
    nbd_req_free (r);
  }
}

/* Its io ends; a change that was made stays in the log. */
static void
answered (struct nbd_member *n, struct nbd_req *r)
{
  struct io *io = r->io;
  int err = r->error ? r->error : n->leave_at ? ENODEV : 0;

  if (err == 0 && r->kind == IO_FLUSH) {
    flushed (n, r->mark);
    err = n->flush_error;
  }
  if (err == 0 && r->kind == IO_READ)
    scatter (r);
  finish (n, io, err);
  if (err == 0 && io_changes (r->kind)) {
    r->io = NULL;
    nbd_log_add (&n->log, r);
  }
  else
    nbd_req_free (r);
}

/* Without these writes what was acknowledged would be lost in silence. */
static void
not_again (struct nbd_member *n, int err)
{
  if (n->leave_at)
    return;
  log_notice ("%s: a write that was not flushed can't be made again: %s; it is "
              "not used any more", n->member.path, strerror (err));
  nbd_session_leave (n, err);
}

static void
answer (struct nbd_member *n, struct nbd_req *r)
{
  switch (r->why) {
  case NBD_FOR_IO:
    answered (n, r);
    break;
  case NBD_FOR_LOG:
    if (r->error) {
      const int err = r->error;

      nbd_log_put_back (&n->log, r);
      not_again (n, err);
    }
    else
      nbd_log_put_back (&n->log, r);
    break;
  case NBD_FOR_FLUSH:
    n->own_flush = false;
    if (r->error)
      n->flush_error = r->error;
    else
      flushed (n, r->mark);
    nbd_req_free (r);
    break;
  case NBD_FOR_LOOK:
    looked (n, r);
    break;
  }
}

/* libnbd's errors of a lost connection, and the server's "I am going". */
static bool
is_lost_error (int err)
{
  return err == ENOTCONN || err == ESHUTDOWN;
}

void
nbd_session_answers (struct nbd_member *n)
{
  struct list *l;

  while ((l = list_pop (&n->done)) != NULL) {
    struct nbd_req *r = list_item (l, struct nbd_req, link);

    if (is_lost_error (r->error)) {
      if (!n->lost)
        snprintf (n->why, sizeof n->why, "the server closed it");
      n->lost = true;
      list_append (&n->active, l);      /* not answered */
    }
    else
      answer (n, r);
  }
  if (n->state == NBD_OUT)
    take_all_back (n);
}

/* ---- issuing ------------------------------------------------------------- */

/* Make room in the log. */
static void
flush_log (struct nbd_member *n)
{
  struct nbd_req *r;

  if (n->own_flush || n->log.nr == 0 || n->flush_error ||
      nbd_conn_is_full (n->conn[0]) ||
      (n->kept.used < NBD_KEPT_SOFT && n->log.nr < LOG_MAX_NR / 2))
    return;
  r = nbd_req_new (n, NBD_FOR_FLUSH, IO_FLUSH, 0, 0);
  if (r == NULL)
    return;
  n->own_flush = true;
  r->mark = nbd_log_flush (&n->log);
  nbd_req_issue (r, 0);
}

static bool
has_room (struct nbd_member *n, const struct nbd_req *r)
{
  if (!io_changes (r->kind))
    return true;
  return n->log.nr < LOG_MAX_NR &&
    (r->kind != IO_WRITE || r->own_data || n->kept.used == 0 ||
     n->kept.used + nbd_buffers_len (&n->kept, r->len) <= NBD_KEPT_HARD);
}

static void
issue_queue (struct nbd_member *n)
{
  list_for_each (l, &n->queue) {
    struct nbd_req *r = list_item (l, struct nbd_req, link);
    const unsigned c = nbd_req_conn (n, r->kind);
    int err = r->error;

    if (n->lost)
      return;
    if (c == n->nr_conns || (PLANTED ("nbd-flush-first") &&
                             n->state != NBD_UP && r->kind != IO_FLUSH))
      continue;
    if (err || (r->len == 0 && r->kind != IO_FLUSH)) {
      finish (n, r->io, err);
      nbd_req_free (r);
      continue;
    }
    /* The log can't be emptied any more.  No ENOSPC: that would be waited for.
     */
    if (r->kind != IO_READ && n->flush_error)
      err = r->kind == IO_FLUSH ? n->flush_error : EIO;
    if (err == 0 && (!has_room (n, r) || !nbd_look_allows (n, r)))
      continue;
    if (err == 0)
      err = nbd_req_fill (r);
    if (err) {
      finish (n, r->io, err);
      nbd_req_free (r);
      continue;
    }
    if (r->kind == IO_FLUSH)
      r->mark = nbd_log_flush (&n->log);
    if (io_changes (r->kind) && nbd_marks_touched (&n->marks, r->off, r->len))
      n->marks.gen++;
    nbd_req_issue (r, c);
  }
}

static bool
overlaps (const struct nbd_req *r, const struct list *others)
{
  list_for_each (l, (struct list *) others) {
    const struct nbd_req *o = list_item (l, struct nbd_req, link);

    if (r->off < o->off + o->len && o->off < r->off + r->len)
      return true;
  }
  return false;
}

/* In order: a change that overlaps one before waits until that is made. */
static void
replay_some (struct nbd_member *n)
{
  unsigned nr = 0;

  list_for_each (l, &n->active)
    nr++;
  list_for_each (l, &n->replay) {
    struct nbd_req *r = list_item (l, struct nbd_req, link);
    const unsigned c = nbd_req_conn (n, r->kind);

    if (n->lost || nr == MAX_REPLAY ||
        (overlaps (r, &n->active) && !PLANTED ("nbd-any-order")) ||
        c == n->nr_conns || nbd_look_is_old (n))
      return;
    nr++;
    nbd_req_reset (r);
    if (nbd_marks_touched (&n->marks, r->off, r->len))
      n->marks.gen++;
    nbd_req_issue (r, c);
  }
  if (nr > 0 || !list_empty (&n->done))
    return;

  n->state = NBD_UP;
  n->answered = running_now ();
  atomic_store (&n->member.away, false);
  if (n->down_since && n->nr_replayed)
    log_notice ("%s: connected again; %u write%s that %s not flushed %s made "
                "again", n->member.path, n->nr_replayed,
                n->nr_replayed == 1 ? "" : "s",
                n->nr_replayed == 1 ? "was" : "were",
                n->nr_replayed == 1 ? "is" : "are");
  else if (n->down_since)
    log_notice ("%s: connected again", n->member.path);
  n->down_since = 0;
}

/* ---- one step ------------------------------------------------------------ */

static void
note_lost (struct nbd_member *n)
{
  for (unsigned c = 0; c < n->nr_conns && !n->lost; c++)
    if (nbd_conn_is_lost (n->conn[c]) &&
        !(n->state == NBD_WIDENING && c > 0)) {
      n->lost = true;
      if (n->why[0] == '\0')
        snprintf (n->why, sizeof n->why, "the server closed it");
    }
}

static void
look_if_due (struct nbd_member *n)
{
  if (!n->member.readonly && n->looks == 0 && !n->lost &&
      running_boot_time () >= n->look_at)
    nbd_look_begin (n);
}

/* Looks don't count: a server may answer these, and not a write. */
bool
nbd_session_owes (const struct nbd_member *n)
{
  list_for_each (l, (struct list *) &n->active)
    if (list_item (l, struct nbd_req, link)->why != NBD_FOR_LOOK)
      return true;
  return !list_empty ((struct list *) &n->queue);
}

/* The array goes on without it, or stops. */
static bool
give_up (struct nbd_member *n, uint64_t now)
{
  struct member *m = &n->member;

  if (n->state == NBD_OUT)
    return false;
  if (atomic_load (&m->unused)) {
    nbd_session_leave (n, ENODEV);
    return true;
  }
  if (!atomic_load (&m->hurry) || !nbd_session_owes (n))
    return false;
  if (n->down_since ? now < n->down_since + STOP_NS :
      now < n->answered + nbd_silent_ns)
    return false;
  log_notice ("%s: does not answer, and the array stops: it is not waited for",
              m->path);
  nbd_session_leave (n, ENOTCONN);
  return true;
}

void
nbd_session_step (struct nbd_member *n)
{
  const uint64_t now = running_now ();

  note_lost (n);
  if (!n->lost && n->state != NBD_DOWN && n->state < NBD_REPLAYING &&
      n->state != NBD_WIDENING && now >= n->deadline) {
    snprintf (n->why, sizeof n->why, "no answer");
    n->lost = true;
  }
  if (n->lost)
    lose (n);
  if (is_leaving (n, now) || give_up (n, now))
    return;
  switch (n->state) {
  case NBD_DOWN:
    n->why[0] = '\0';
    if (now >= n->retry_at)
      nbd_connect_begin (n);
    break;
  case NBD_CONNECTING:
    if (nbd_aio_is_ready (n->conn[0]) && !nbd_connected (n))
      nbd_session_leave (n, ENODEV);
    break;
  case NBD_WIDENING:
    nbd_connect_more (n);
    break;
  case NBD_LOOKING:
    look_if_due (n);
    break;
  case NBD_REPLAYING:
    nbd_reqs_go_on (n);
    if (PLANTED ("nbd-flush-first"))
      issue_queue (n);
    replay_some (n);
    look_if_due (n);
    break;
  case NBD_UP:
    nbd_reqs_go_on (n);
    flush_log (n);
    issue_queue (n);
    look_if_due (n);
    nbd_grow_step (n);
    break;
  case NBD_OUT:
    out (n, atomic_load (&n->out));
    break;
  }
}
