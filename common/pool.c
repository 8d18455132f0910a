/* gpuraid: a pool of objects of one size.
 *
 * With an address sanitizer the content of an idle object is poisoned, so
 * that its use is found as if it had been freed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/plant.h"
#include "common/pool.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, len) ((void) (p), (void) (len))
#define ASAN_UNPOISON_MEMORY_REGION(p, len) ((void) (p), (void) (len))
#endif

/* The beginning of an idle object. */
struct pool_object {
  struct pool_object *next;
};

void
pool_init (struct pool *p, size_t len)
{
  assert (len >= sizeof (struct pool_object));
  *p = (struct pool) { .len = len };
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
    return calloc (1, p->len);
  if (!PLANTED ("pool-uncleared"))
    memset (o, 0, p->len);
  return o;
}

void
pool_put (struct pool *p, void *object)
{
  struct pool_object *o = object;

  if (p->nr_idle == POOL_MAX_IDLE) {
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
