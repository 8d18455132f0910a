/* gpuraid: a pool of objects of one size.
 *
 * With an address sanitizer the content of an idle object is poisoned, so
 * that its use is found as if it had been freed; and what is not cleared is
 * spoilt.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/bits.h"
#include "common/plant.h"
#include "common/pool.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define CHECKED true
#else
#define CHECKED false
#define ASAN_POISON_MEMORY_REGION(p, len) ((void) (p), (void) (len))
#define ASAN_UNPOISON_MEMORY_REGION(p, len) ((void) (p), (void) (len))
#endif

/* The beginning of an idle object. */
struct pool_object {
  struct pool_object *next;
};

void
pool_init (struct pool *p, size_t len, size_t clear)
{
  assert (len >= sizeof (struct pool_object) && clear <= len);
  *p = (struct pool) { .len = len, .clear = clear,
                       .max_idle = POOL_MAX_IDLE };
}

/* NULL: none is idle. */
static struct pool_object *
take_idle (struct pool *p)
{
  struct pool_object *o = p->idle;

  if (o == NULL)
    return NULL;
  ASAN_UNPOISON_MEMORY_REGION (o, p->len);
  p->idle = o->next;
  p->nr_idle--;
  return o;
}

void *
pool_get (struct pool *p)
{
  struct pool_object *o = take_idle (p);

  if (o == NULL)
    o = p->align ? aligned_alloc (p->align, p->len) : malloc (p->len);
  if (o == NULL)
    return NULL;
  if (!PLANTED ("pool-uncleared"))
    memset (o, 0, p->clear);
  if (CHECKED)
    memset ((uint8_t *) o + p->clear, 0xbe, p->len - p->clear);
  return o;
}

void
pool_put (struct pool *p, void *object)
{
  struct pool_object *o = object;

  if (p->nr_idle == p->max_idle) {
    free (o);
    return;
  }
  o->next = p->idle;
  p->idle = o;
  p->nr_idle++;
  ASAN_POISON_MEMORY_REGION (o, p->len);
}

void
pool_end (struct pool *p)
{
  struct pool_object *o;

  while ((o = take_idle (p)) != NULL)
    free (o);
}

void
pools_init (struct pools *ps, size_t least, size_t align)
{
  for (unsigned i = 0; i < POOLS_NR; i++) {
    pool_init (&ps->pool[i], least << i, 0);
    ps->pool[i].align = align;
    ps->pool[i].max_idle =
      MIN (POOL_MAX_IDLE, MAX (POOLS_MAX_LEN / (least << i), 1));
  }
}

void
pools_end (struct pools *ps)
{
  for (unsigned i = 0; i < POOLS_NR; i++)
    pool_end (&ps->pool[i]);
}

struct pool *
pools_at (struct pools *ps, size_t len)
{
  struct pool *p = ps->pool;

  while (p->len < len) {
    p++;
    assert (p < ps->pool + POOLS_NR);
  }
  return p;
}
