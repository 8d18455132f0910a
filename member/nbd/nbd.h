/* gpuraid: a member that is an NBD export, for member/nbd/ only.
 *
 * Before the fork its calls are synchronous, on one connection.  The first
 * submit starts its thread, which from then on does everything: connections,
 * requests, the log of what was not flushed, and every done.
 *
 * docs/remote.md says what is promised, tests/model/remote.py why the rules
 * are as they are.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_NBD_H
#define GPURAID_NBD_H

#include <libnbd.h>
#include <pthread.h>

#include "common/plant.h"
#include "common/threads/running.h"
#include "member/member.h"
#include "member/nbd/buffers.h"
#include "member/nbd/log.h"

#define NBD_MAX_CONNS 4u
#define NBD_WHY_LEN 256

/* Payload that is kept in memory until it is flushed.  From the first of these
 * on a flush is sent to make room; above the second, writes wait for it.
 */
#define NBD_KEPT_SOFT (32 * MIB)
#define NBD_KEPT_HARD (64 * MIB)

/* What the server said when it was connected to. */
struct nbd_server {
  uint64_t size;                /* bytes */
  uint64_t max_len;             /* of the payload of a request, in bytes */
  uint64_t min_block;           /* bytes */
  bool readonly, can_flush, can_zero, can_fast_zero, multi_conn;
};

/* An export that has become larger: grow.c. */
struct nbd_larger {
  uint64_t size;                /* bytes */
  struct nbd_marks marks;       /* those of its end, as they are */
  bool tried;                   /* a new connection was made */
};

struct nbd_member {
  struct member member;
  _Atomic uint64_t size;        /* bytes; any thread may read */
  pthread_mutex_t lock;
  int wake_fd;                  /* an eventfd: the thread has something to do */

  /* With lock held. */
  bool running;                 /* the thread was started */
  bool stop;                    /* it is to end */
  struct list submitted;        /* requests for it */
  struct nbd_larger larger;
  atomic_bool grows;            /* ... is set, for the thread */
  atomic_int out;               /* 0, or why it can't be used any more: an
                                 * errno; any thread may read */

  /* The thread's; before it runs: with lock held. */
  pthread_t thread;
  struct nbd_server server;
  struct nbd_handle *conn[NBD_MAX_CONNS];       /* NULL: none */
  unsigned in_flight[NBD_MAX_CONNS];    /* parts of requests */
  unsigned nr_conns;
  enum {
    NBD_DOWN,                   /* not connected; again at retry_at */
    NBD_CONNECTING,             /* the first connection, until deadline */
    NBD_WIDENING,               /* the others */
    NBD_LOOKING,                /* is it still the same export? */
    NBD_REPLAYING,              /* the log is issued again */
    NBD_UP,
    NBD_OUT,                    /* for ever: see out */
  } state;
  uint64_t retry_at, deadline;  /* ns; all times are of running_now (), except
                                 * for those of looks: running_boot_time () */
  uint64_t down_since;          /* ns; 0: it is up */
  uint64_t answered;            /* ns, when the server answered last, or was
                                 * asked after it had answered everything;
                                 * but not looks */
  uint64_t look_at;             /* ns, when to look at the marks next */
  unsigned looks;               /* blocks that are being looked at */
  bool look_good;               /* ... and those before were ours */
  uint64_t look_gen;            /* marks.gen when that began */
  bool look_open;               /* when that began, a change of a mark was not
                                 * answered, or never */
  bool look_torn;               /* ... and may be why one is not ours */
  unsigned nr_torn;             /* such looks, one after another */
  uint64_t look_began;          /* ns */
  uint64_t looked;              /* ns: look_began of the last good look */
  uint64_t nr_looked;           /* good looks */
  uint64_t leave_at;            /* ns, by when it is out; 0: not leaving */
  int leave_error;              /* out, then */
  bool lost;                    /* a connection was, in this turn */
  char why[NBD_WHY_LEN];        /* ... why */
  uint64_t seq;                 /* of the newest request */
  struct list queue;            /* requests to issue, by seq */
  struct list active;           /* issued, not all of it answered */
  unsigned nr_partial;          /* of these, not wholly issued */
  struct list done;             /* answered */
  struct list replay;           /* of the log, to be issued again */
  unsigned nr_replayed;         /* for the message */
  struct io *finished, **finished_last; /* their done is to be called */
  struct nbd_log log;
  struct nbd_marks marks;
  struct nbd_buffers kept;      /* payload in memory: of what was issued, and
                                 * is not flushed */
  bool own_flush;               /* one of our own is active */
  int flush_error;              /* of one: the next flush fails */
};

static inline struct nbd_member *
nbd_of (struct member *m)
{
  return (struct nbd_member *) m;
}

extern const struct member_ops nbd_member_ops;

/* ---- conn.c: one connection ---------------------------------------------- */

/* Begin to connect.  NULL: why says why not, errno is EINVAL if the URI is
 * wrong, else anything.
 */
extern struct nbd_handle *nbd_conn_begin (const char *uri,
                                          char why[NBD_WHY_LEN]);
/* Connect and wait; at most 10 seconds.  Likewise. */
extern struct nbd_handle *nbd_conn_open (const char *uri,
                                         char why[NBD_WHY_LEN]);
extern bool nbd_conn_is_lost (struct nbd_handle *h);
/* Has it bytes that its socket has no room for?  They are sent later. */
extern bool nbd_conn_is_full (struct nbd_handle *h);
extern void nbd_conn_close (struct nbd_handle *h);
/* The same, and what was not sent, by us or the kernel, never is. */
extern void nbd_conn_abort (struct nbd_handle *h);
/* The text of libnbd's last error in this thread, without its call's name. */
extern void nbd_conn_why (char why[NBD_WHY_LEN]);
/* Call once when connected: also sets the time-outs of TCP. */
extern void nbd_conn_ask (struct nbd_handle *h, struct nbd_server *s);
/* NULL, or why an export can't be a member: a constant. */
extern const char *nbd_server_unfit (const struct nbd_server *s,
                                     bool readonly);

/* ---- req.c: requests ----------------------------------------------------- */

/* NULL: no memory. */
extern struct nbd_req *nbd_req_new (struct nbd_member *n, enum nbd_for why,
                                    enum io_kind kind, uint64_t off,
                                    uint64_t len);
extern void nbd_req_free (struct nbd_req *r);
/* On which connection to issue the next one of this kind; n->nr_conns: on none
 * now.
 */
extern unsigned nbd_req_conn (const struct nbd_member *n, enum io_kind kind);
/* Issue as much of r as may be issued, on connection c, and put it in
 * n->active, or n->done with an error.
 */
extern void nbd_req_issue (struct nbd_req *r, unsigned c);
/* Issue the rest of requests that are too large for one command. */
extern void nbd_reqs_go_on (struct nbd_member *n);
/* Give it memory for a transfer with io->iov, and the payload of a write.  0,
 * or ENOMEM.
 */
extern int nbd_req_fill (struct nbd_req *r);
/* No part of it is issued any more: as if it was new. */
extern void nbd_req_reset (struct nbd_req *r);

/* ---- look.c: is it still our export? ------------------------------------- */

extern _Atomic uint64_t nbd_look_ns;    /* how often; tests change it */

/* Issue reads of all marks. */
extern void nbd_look_begin (struct nbd_member *n);
/* One was answered; frees r.  False: it has other content; if it has changed
 * meanwhile that is not known, and it is true.
 */
extern bool nbd_look_answer (struct nbd_member *n, struct nbd_req *r);
/* May r be issued now?  If not, a look will be made. */
extern bool nbd_look_allows (struct nbd_member *n, struct nbd_req *r);
/* Is the last good look so old that nothing may be changed?  The calls before
 * the thread runs, and members that are only read, have none; array/open/live.c
 * waits for longer.
 */
static inline bool
nbd_look_is_old (const struct nbd_member *n)
{
  return n->state >= NBD_REPLAYING && !n->member.readonly &&
    running_boot_time () > n->looked + 2 * nbd_look_ns &&
    !PLANTED ("nbd-look-old");
}
/* Is it, so that the rest of what this connection has must not be sent? */
extern bool nbd_look_holds (const struct nbd_member *n, unsigned c);
/* Does it hold all connections, so that no look can be sent? */
extern bool nbd_look_is_too_late (const struct nbd_member *n);

/* ---- connect.c: to a server again ---------------------------------------- */

/* Begin the first connection; n->lost if that fails at once. */
extern void nbd_connect_begin (struct nbd_member *n);
/* It is there: begin the others.  False, reported: the export fits no more. */
extern bool nbd_connected (struct nbd_member *n);
/* They are there, or too late: go on to look. */
extern void nbd_connect_more (struct nbd_member *n);

/* ---- grow.c, grow-ask.c: an export that has become larger ---------------- */

/* Any thread: ask, and wait until its size is in use, or some seconds. */
extern void nbd_grow_ask (struct nbd_member *n);
/* While all is up: use it; n->lost, to connect to it again. */
extern void nbd_grow_step (struct nbd_member *n);

/* ---- session.c: from the first connection to the last answer ------------- */

/* One step of the thread: connect, compare, replay, issue. */
extern void nbd_session_step (struct nbd_member *n);
/* Answers are in n->done. */
extern void nbd_session_answers (struct nbd_member *n);
/* Is there a request that has not been answered? */
extern bool nbd_session_owes (const struct nbd_member *n);
extern _Atomic uint64_t nbd_silent_ns;  /* when the array stops, how long to
                                 * wait for an answer; tests change it */
/* Never use it again: every request ends with an error, as soon as those that
 * were sent are answered, or a second later.  err: what check says.
 */
extern void nbd_session_leave (struct nbd_member *n, int err);

/* ---- run.c: the thread --------------------------------------------------- */

/* Hand a request to the thread, which is started if need be.  0, or an errno
 * and r is the caller's.
 */
extern int nbd_run_submit (struct nbd_member *n, struct nbd_req *r);
/* It has something else to do; likewise. */
extern int nbd_run_wake (struct nbd_member *n);
/* End the thread; nothing is in flight. */
extern void nbd_run_stop (struct nbd_member *n);

#endif
