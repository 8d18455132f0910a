/* gpuraid: memory that io_uring has registered: the kernel keeps its pages, and
 * does not look them up for each I/O.
 *
 * Before Linux 5.19 there is none.  The caller's lock protects all of it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_REGISTERED_H
#define GPURAID_REGISTERED_H

#include <liburing.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REGISTERED_MAX_PIECES 16384u    /* the kernel takes no more */

/* Zeroes at first: nothing may be registered. */
struct registered {
  struct io_uring *ring;        /* borrowed */
  uint8_t *buffer;
  uint64_t len;
  bool has_piece[REGISTERED_MAX_PIECES];
  unsigned nr_pieces;           /* of those, true */
  bool no_more;                 /* the kernel refuses to keep more */
};

/* [p, p+len) may be registered, in pieces, each when it is first used: until
 * then the kernel does not keep it in memory.  A second buffer is ignored.
 */
extern void registered_init (struct registered *m, struct io_uring *ring,
                             void *p, size_t len);

/* The number, for io_uring's I/O on fixed buffers, of the piece that has all of
 * [p, p+len); or -1.
 */
extern int registered_find (struct registered *m, const void *p, size_t len);

/* No longer any piece that has some of [p, p+len), which lies in the buffer and
 * which no I/O uses.  0 or a positive errno: some may be registered still.
 */
extern int registered_release (struct registered *m, void *p, size_t len);

#endif
