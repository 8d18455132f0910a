/* gpuraid: a pool of objects of one size.
 *
 * What is put back is kept and given to the next caller, so that most calls
 * need no allocation.  The one that was put back last comes first: it is still
 * in the processor's cache.
 *
 * No locks: that of the owner.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_POOL_H
#define GPURAID_POOL_H

#include <stddef.h>

/* Objects that a pool keeps, at most. */
#define POOL_MAX_IDLE 4096u

struct pool {
  size_t len, clear;            /* bytes of an object */
  struct pool_object *idle;     /* the last one first */
  unsigned nr_idle;
};

/* len: bytes, at least those of a pointer.  clear: of these, from the start,
 * pool_get sets to zero.
 */
extern void pool_init (struct pool *p, size_t len, size_t clear);

/* Free what is idle.  Nothing may be put back afterwards. */
extern void pool_end (struct pool *p);

/* An object, aligned as by malloc: zeroes, and from clear on anything.  NULL:
 * no memory.
 */
extern void *pool_get (struct pool *p);

/* Give back an object of this pool. */
extern void pool_put (struct pool *p, void *object);

#endif
