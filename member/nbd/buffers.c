/* gpuraid: memory for what an NBD member writes, until that is flushed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>

#include "member/nbd/buffers.h"

#define LEAST 4096u             /* bytes, of the shortest */

void
nbd_buffers_init (struct nbd_buffers *b, uint64_t max)
{
  *b = (struct nbd_buffers) { .max = max };
  for (unsigned i = 0; i < NBD_BUFFERS_NR; i++) {
    const size_t len = (size_t) LEAST << i / 4;

    pool_init (&b->pool[i], len + len / 4 * (i % 4), 0);
  }
}

void
nbd_buffers_trim (struct nbd_buffers *b)
{
  for (unsigned i = 0; i < NBD_BUFFERS_NR; i++)
    pool_end (&b->pool[i]);
  b->idle = 0;
}

static struct pool *
pool_for (struct nbd_buffers *b, uint64_t len)
{
  struct pool *p = b->pool;

  while (p->len < len) {
    p++;
    assert (p < b->pool + NBD_BUFFERS_NR);
  }
  return p;
}

uint64_t
nbd_buffers_len (struct nbd_buffers *b, uint64_t len)
{
  return pool_for (b, len)->len;
}

uint8_t *
nbd_buffers_get (struct nbd_buffers *b, uint64_t len)
{
  struct pool *pool = pool_for (b, len);
  uint8_t *p;

  if (pool->nr_idle > 0)
    b->idle -= pool->len;
  /* What is idle has other lengths than those that are wanted now. */
  else if (b->used + b->idle + pool->len > b->max)
    nbd_buffers_trim (b);
  p = pool_get (pool);
  if (p == NULL && b->idle > 0) {
    nbd_buffers_trim (b);
    p = pool_get (pool);
  }
  if (p)
    b->used += pool->len;
  return p;
}

void
nbd_buffers_put (struct nbd_buffers *b, uint8_t *p, uint64_t len)
{
  struct pool *pool = pool_for (b, len);
  const unsigned had = pool->nr_idle;

  pool_put (pool, p);
  b->used -= pool->len;
  if (pool->nr_idle > had)
    b->idle += pool->len;
  if (b->used + b->idle > b->max)
    nbd_buffers_trim (b);
}
