/* gpuraid: a few blocks that must be durable on a member before something
 * goes on: superblock copies, pages of dirty bits.
 *
 * Each block is written and flushed before the next one is written.
 *
 * Call all of these with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_IO_STORE_H
#define GPURAID_IO_STORE_H

#include "array/engine/shared.h"

#define STORE_MAX_BLOCKS 4u

struct store {
  struct seat *seat;
  int error;                    /* out: 0 or a positive errno */
  /* Called once: when the last block is flushed, when something failed,
   * or when the seat is abandoned.
   */
  void (*done) (struct array *a, struct store *st);
  /* For the owner. */
  void *owner;
  unsigned tag;

  /* Private. */
  struct array *a;
  struct list link;             /* in seat->stores; in a->no_space_stores
                                 * while it waits for space, in
                                 * a->lease.stores for a look */
  uint64_t since;               /* ns, when it was started */
  bool abandoned;               /* done was called before the I/O ended */
  bool had_no_space;            /* at its last try */
  bool held;                    /* it was not submitted: io/lease.h */
  unsigned nr, nr_done;
  uint64_t off[STORE_MAX_BLOCKS];       /* bytes from the member's start */
  uint8_t *buf;                 /* nr blocks */
  struct io io;
  struct iovec iov;
  struct call call;
  struct news news;
};

/* Before any other of these. */
extern void stores_init (struct array *a);

/* For a seat whose member is open; never fails. */
extern struct store *store_new (struct array *a, struct seat *s,
                                void (*done) (struct array *a,
                                              struct store *st));
/* Add a block at this place: 4096 bytes, to be filled by the caller. */
extern uint8_t *store_add (struct store *st, uint64_t off);
extern void store_start (struct array *a, struct store *st);
/* End a wait for space: write again, or call done with this error. */
extern void store_again (struct array *a, struct store *st);
extern void store_give_up (struct array *a, struct store *st, int error);

/* End all stores of a seat that is no longer used, with this error. */
extern void stores_abandon (struct array *a, struct seat *s, int error);

/* True if one waits for space on this seat, or is tried again and has not
 * succeeded yet.
 */
extern bool stores_want_space (const struct array *a, const struct seat *s);

#endif
