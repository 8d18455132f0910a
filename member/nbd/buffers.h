/* gpuraid: memory for what an NBD member writes, until that is flushed.
 *
 * A member that writes fast keeps some ten megabytes, and frees them with each
 * flush.  From malloc they would be new pages of the system each time, which
 * costs more than to send them.  So buffers are kept and used again.
 *
 * No locks: the member's thread, or that of the open before there is one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_NBD_BUFFERS_H
#define GPURAID_NBD_BUFFERS_H

#include <stdint.h>

#include "common/pool.h"

/* Four lengths for each doubling, so a buffer is at most a quarter too long. */
#define NBD_BUFFERS_NR 64u

/* Bytes in buffers.  used + idle is at most max, unless used alone is more. */
struct nbd_buffers {
  uint64_t used, idle, max;
  struct pool pool[NBD_BUFFERS_NR];     /* by length */
};

extern void nbd_buffers_init (struct nbd_buffers *b, uint64_t max);

/* How long a buffer for len bytes is, for used. */
extern uint64_t nbd_buffers_len (struct nbd_buffers *b, uint64_t len);
/* One, not cleared; NULL: no memory. */
extern uint8_t *nbd_buffers_get (struct nbd_buffers *b, uint64_t len);
/* Give it back; len as in nbd_buffers_get. */
extern void nbd_buffers_put (struct nbd_buffers *b, uint8_t *p, uint64_t len);

/* Free what is idle: also at the end, when all have been put back. */
extern void nbd_buffers_trim (struct nbd_buffers *b);

#endif
