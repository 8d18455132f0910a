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
  size_t align;                 /* 0: as by malloc */
  struct pool_object *idle;     /* the last one first */
  unsigned nr_idle, max_idle;
};

/* len: bytes, at least those of a pointer.  clear: of these, from the start,
 * pool_get sets to zero.
 */
extern void pool_init (struct pool *p, size_t len, size_t clear);

/* Free what is idle.  At the end all must have been put back before. */
extern void pool_end (struct pool *p);

/* An object, aligned as by malloc or as align says: zeroes, and from clear on
 * anything.  NULL: no memory.
 */
extern void *pool_get (struct pool *p);

/* Give back an object of this pool. */
extern void pool_put (struct pool *p, void *object);

/* Pools of objects of any length, each twice as long as the one before.  Each
 * keeps at most POOLS_MAX_LEN bytes, and one object.
 */
#define POOLS_NR 16u
#define POOLS_MAX_LEN (4u << 20)

struct pools {
  struct pool pool[POOLS_NR];
};

/* least: bytes of the shortest.  align: 0, or a divisor of that. */
extern void pools_init (struct pools *ps, size_t least, size_t align);
extern void pools_end (struct pools *ps);

/* The one with objects of at least len bytes.  None of that is cleared. */
extern struct pool *pools_at (struct pools *ps, size_t len);

#endif
