/* gpuraid: transfers: I/O on the members.
 *
 * Call all of these except xfers_carry with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_IO_XFER_H
#define GPURAID_IO_XFER_H

#include "array/engine/shared.h"

/* A run of bytes to move between a cell and a seat, or a flush, zero or trim.
 * Made with xfer_new and owned by the engine from xfer_start on.  done is
 * called once, with the array lock held: when the I/O has ended, or earlier
 * if the transfer is abandoned because its seat is no longer used.  The xfer
 * is freed after both done and the I/O.
 */
struct xfer {
  struct list link;
  struct list seat_link;        /* in seat->xfers from xfer_start until the
                                 * I/O ends; in a->no_space while it waits
                                 * for space, in a->lease.xfers for a look */
  struct seat *seat;
  enum io_kind kind;
  uint64_t off, len;            /* bytes, from the start of the member */
  void *buf;                    /* IO_READ, IO_WRITE */
  int error;                    /* out: 0 or a positive errno */
  bool retried;
  bool had_no_space;            /* at its last try */
  bool moot;                    /* it need not be written where there is no
                                 * space: something newer is durable */
  bool may_be_hole;             /* IO_ZERO: IO_TRIM where there is no space */
  bool alone;                   /* not bundled: a bundle with it failed */
  bool abandoned;               /* done was called, or never will be */
  bool timed;                   /* a client waits for it: seats/slow.c counts
                                 * it */
  bool judged;                  /* it has counted as late */
  bool extra;                   /* made although another read of the same was
                                 * under way */
  bool hedged;                  /* its operation does not wait for it */
  uint64_t since;               /* ns, when it was submitted */
  void (*done) (struct array *a, struct xfer *x);
  struct cell *cell;            /* contains buf, or NULL: a reference is held
                                 * until the I/O ends */
  struct xfer_memory *memory;   /* likewise */
  /* For the owner. */
  void *owner;
  bool of_op;                   /* that is an operation */
  bool no_wait;                 /* ENOSPC is an error, and not waited for */
  struct list owner_link;
  unsigned role;
  unsigned b0, nr;              /* blocks of the cell */
  uint64_t write_gen;           /* a flush: the writes it covers */
};

/* Memory that transfers write from, and that stays until the last of them
 * has ended, abandoned ones too.
 */
struct xfer_memory {
  unsigned refs;
  struct pool *pool;
  void *p;                      /* blocks */
};

/* len: bytes, a multiple of BLOCK_LEN.  With one reference.  NULL: no memory.
 */
extern struct xfer_memory *xfer_memory_new (struct array *a, size_t len);
extern void xfer_memory_put (struct xfer_memory *mem);

/* Before any other of these. */
extern void xfer_init (struct array *a);

/* Never fails. */
extern struct xfer *xfer_new (struct array *a, struct seat *seat,
                              enum io_kind kind,
                              void (*done) (struct array *a, struct xfer *x));
extern void xfer_start (struct array *a, struct xfer *x);
/* Submit again a transfer that waited for space. */
extern void xfer_again (struct array *a, struct xfer *x);

/* Drop interest in this transfer: done is not called.  Its cell stays as it
 * is until the I/O ends.
 */
extern void xfer_forget (struct xfer *x);
/* Abandon all transfers of a seat, calling done with this error; also those
 * that wait for space.
 */
extern void xfers_abandon (struct array *a, struct seat *s, int error);
/* End a transfer that waits for space: done is called with this error. */
extern void xfer_give_up (struct array *a, struct xfer *x, int error);
/* True if none of this seat is under way, or held for a look. */
extern bool xfers_have_ended (const struct array *a, const struct seat *s);
/* True if one waits for space on this seat, or is tried again and has not
 * succeeded yet.
 */
extern bool xfers_want_space (const struct array *a, const struct seat *s);

/* The engine's hook. */
extern void xfers_carry (struct array *a, struct list *xfers, size_t nr);

#endif
