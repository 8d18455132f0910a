/* gpuraid: transfers: from decisions to I/O on the members, and back.
 *
 * With the array lock held, all of these but xfers_carry.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_XFER_H
#define GPURAID_XFER_H

#include "array/internal.h"

/* A run of bytes to move between a cell and a seat, or a flush, zero or
 * trim.  Made with xfer_new and owned by the engine from xfer_start on.
 * done is called once, with the array lock held: when the I/O has ended, or
 * before, when it is abandoned because nothing is expected of its seat
 * any more.  The xfer is freed after done and after the I/O.
 */
struct xfer {
  struct list link;
  struct list seat_link;        /* in seat->xfers from xfer_start until the
                                 * I/O ends; in a->no_space while it waits
                                 * for space */
  struct seat *seat;
  enum io_kind kind;
  uint64_t off, len;            /* bytes, from the start of the member */
  void *buf;                    /* IO_READ, IO_WRITE */
  int error;                    /* out: 0 or a positive errno */
  bool retried;
  bool alone;                   /* not bundled: a bundle of it failed */
  bool abandoned;               /* done was called, or never will be */
  uint64_t since;               /* ns, when it was submitted */
  void (*done) (struct array *a, struct xfer *x);
  struct cell *cell;            /* whose memory buf is, or NULL: a reference
                                 * is held until the I/O ends */
  /* The owner's. */
  void *owner;
  struct list owner_link;
  unsigned role;
  unsigned b0, nr;              /* blocks of the cell */
  uint64_t write_gen;           /* a flush: what it covers */
};

/* Never fails. */
extern struct xfer *xfer_new (struct seat *seat, enum io_kind kind,
                              void (*done) (struct array *a, struct xfer *x));
extern void xfer_start (struct array *a, struct xfer *x);
/* A transfer that had to wait for space: again. */
extern void xfer_again (struct array *a, struct xfer *x);

/* Nothing waits for this transfer any more, so done is not called.  Its cell
 * stays as it is until the I/O ends.
 */
extern void xfer_forget (struct xfer *x);
/* The same for all transfers of a seat, with done and this error; also
 * for those that wait for space.
 */
extern void xfers_abandon (struct array *a, struct seat *s, int error);
/* One that waits for space is not tried again: done, with this error. */
extern void xfer_give_up (struct array *a, struct xfer *x, int error);

/* The engine's hook. */
extern void xfers_carry (struct array *a, struct list *xfers, size_t nr);

#endif
