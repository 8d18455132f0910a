/* gpuraid: what an NBD server may lose, and how to know an export again.
 *
 * Pure: no I/O, no locks.  For member/nbd/ and tests only.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_NBD_LOG_H
#define GPURAID_NBD_LOG_H

#include "common/list.h"
#include "member/loop.h"

struct nbd_member;

/* Why a request is made. */
enum nbd_for {
  NBD_FOR_IO,                   /* the array's */
  NBD_FOR_LOG,                  /* again, after a reconnect */
  NBD_FOR_FLUSH,                /* to empty the log */
  NBD_FOR_LOOK,                 /* a block that tells which export it is */
};

/* A request, in one of the member's lists.  A change that was acknowledged
 * stays in the log until it is flushed.
 */
struct nbd_req {
  struct list link;
  struct nbd_member *n;
  enum nbd_for why;
  enum io_kind kind;
  uint64_t off, len;            /* bytes */
  uint8_t *data;                /* len bytes of payload; NULL: zeroes, or not
                                 * there yet */
  bool own_data;                /* from malloc; of a write, from n->kept */
  bool fast;                    /* zeroes: only if that is quick */
  struct io *io;                /* NBD_FOR_IO */
  uint64_t seq;                 /* in which order it came */
  uint64_t order;               /* in the log: which acknowledgement it was */
  uint64_t acked;               /* in the log: its time */
  uint64_t mark;                /* a flush: what it covers; a look: which
                                 * mark; a change of a mark: how many good
                                 * looks it waits for */
  bool sent;                    /* some of it may have reached the server */
  uint64_t issued;              /* bytes, so far */
  unsigned parts;               /* commands that are not answered */
  unsigned conn;                /* on which connection */
  int error;                    /* out: positive errno */
};

struct nbd_log {
  struct list changes;          /* by order */
  uint64_t nr;                  /* how many */
  uint64_t nr_acked;            /* orders given so far */
  uint64_t now;                 /* the time: flushes sent so far */
};

/* Blocks that tell one export from another, and one state of the array from
 * another: its superblocks.
 */
#define NBD_NR_MARKS 4u
#define NBD_MARK_LEN 4096u

struct nbd_marks {
  uint64_t off[NBD_NR_MARKS];   /* bytes */
  uint8_t flushed[NBD_NR_MARKS][NBD_MARK_LEN];  /* what is on stable storage,
                                 * if nothing in the log is */
  uint64_t gen;                 /* grows with each change to one of them */
};

extern void nbd_log_init (struct nbd_log *log);
/* A change was acknowledged.  Takes it over. */
extern void nbd_log_add (struct nbd_log *log, struct nbd_req *r);
/* It was in the log before: goes to its old place. */
extern void nbd_log_put_back (struct nbd_log *log, struct nbd_req *r);
/* A flush is about to be sent.  Returns what nbd_log_flushed wants. */
extern uint64_t nbd_log_flush (struct nbd_log *log);
/* That flush was acknowledged: move what it covers to gone, oldest first. */
extern void nbd_log_flushed (struct nbd_log *log, uint64_t mark,
                             struct list *gone);

/* Where they are on a member of this size. */
extern void nbd_marks_init (struct nbd_marks *m, uint64_t size);
extern bool nbd_marks_touched (const struct nbd_marks *m, uint64_t off,
                               uint64_t len);
/* This change is on stable storage. */
extern void nbd_marks_apply (struct nbd_marks *m, const struct nbd_req *r);
/* Which sectors of mark i, read into buf, are as before; a bit each. */
extern unsigned nbd_marks_same (const struct nbd_marks *m, unsigned i,
                                const uint8_t buf[NBD_MARK_LEN]);
/* Which are as this change left them. */
extern unsigned nbd_marks_match (const struct nbd_marks *m, unsigned i,
                                 const uint8_t buf[NBD_MARK_LEN],
                                 const struct nbd_req *r);
#define NBD_MARK_ALL 0xffu      /* every sector */

#endif
