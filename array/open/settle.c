/* gpuraid: make what can be read of members durable, before it is believed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <pthread.h>
#include <stdlib.h>

#include "array/open/settle.h"
#include "common/cleanup.h"
#include "common/plant.h"
#include "common/threads/thread.h"

struct flusher {
  struct member *m;
  int *err;
  pthread_t thread;
  bool started;
};

static void *
flush (void *arg)
{
  struct flusher *f = arg;

  *f->err = f->m->ops->flush (f->m);
  return NULL;
}

/* The others are over at once. */
static bool
may_wait (struct member *m)
{
  return m->async || m->ops->fd (m) != -1;
}

void
settle (struct member **m, unsigned nr, int *err)
{
  CLEANUP_FREE struct flusher *f = calloc (nr + 1, sizeof *f);

  for (unsigned i = 0; i < nr; i++) {
    err[i] = 0;
    if (PLANTED ("open-unflushed"))
      continue;
    if (f) {
      f[i] = (struct flusher) { .m = m[i], .err = &err[i] };
      f[i].started = nr > 1 && may_wait (m[i]) &&
        thread_start (&f[i].thread, "gpuraid-settle", flush, &f[i]) == 0;
    }
    if (f == NULL || !f[i].started)
      err[i] = m[i]->ops->flush (m[i]);
  }
  for (unsigned i = 0; f && i < nr; i++)
    if (f[i].started)
      pthread_join (f[i].thread, NULL);
}
