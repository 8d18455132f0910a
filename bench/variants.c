/* gpuraid: compile many kernels at a time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/variants.h"
#include "common/bits.h"
#include "common/cleanup.h"
#include "gpu/compiler.h"

#define MAX_THREADS 64u

struct variant *
variants_add (struct variants *all, const struct kernel_tuning *t)
{
  struct variant *v;
  char name[TUNING_LEN];

  tuning_print (t, name);
  for (unsigned i = 0; i < all->nr; i++)
    if (strcmp (name, all->v[i].name) == 0)
      return &all->v[i];
  assert (all->nr < VARIANTS_MAX);
  v = &all->v[all->nr++];
  *v = (struct variant) { .tuning = *t };
  memcpy (v->name, name, sizeof name);
  return v;
}

void
variants_close (struct variants *all)
{
  for (unsigned i = 0; i < all->nr; i++) {
    free (all->v[i].source);
    free (all->v[i].code);
  }
  all->nr = 0;
}

struct work {
  struct variants *all;
  int arch;
  void (*progress) (void *opaque, unsigned done);
  void *opaque;
  pthread_mutex_t lock;

  /* With lock held. */
  unsigned next, done;
};

/* An earlier variant with the same text as number n, or NULL. */
static const struct variant *
find_same (const struct variants *all, unsigned n)
{
  for (unsigned i = 0; i < n; i++)
    if (all->v[i].source &&
        strcmp (all->v[i].source, all->v[n].source) == 0)
      return &all->v[i];
  return NULL;
}

static void
write_source (struct variants *all, unsigned n, const struct matrix *a)
{
  struct variant *v = &all->v[n];
  const struct variant *same;
  char name[TUNING_LEN];

  if (tuning_check (&v->tuning, a, v->why) == -1)
    return;
  v->source = kernel_source (a, false, &v->tuning, &v->shape);
  if (v->source == NULL) {
    snprintf (v->why, BENCH_WHY_LEN, "no special kernel for this matrix: %s",
              strerror (errno));
    return;
  }
  same = find_same (all, n);
  if (same) {
    snprintf (v->why, BENCH_WHY_LEN, "the same text as %s",
              tuning_print (&same->tuning, name));
    free (v->source);
    v->source = NULL;
  }
}

static void
compile (const struct work *w, struct variant *v)
{
  if (v->source == NULL ||
      compiler_run (v->source, w->arch, NULL, &v->code, &v->code_len) == 0)
    return;
  v->code = NULL;
  snprintf (v->why, BENCH_WHY_LEN, "could not be compiled");
}

static void *
worker (void *opaque)
{
  struct work *w = opaque;

  for (;;) {
    unsigned n;

    {
      ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&w->lock);

      if (w->next == w->all->nr)
        return NULL;
      n = w->next++;
    }
    compile (w, &w->all->v[n]);
    {
      ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&w->lock);

      w->done++;
      w->progress (w->opaque, w->done);
    }
  }
}

void
variants_compile (struct variants *all, unsigned first,
                  const struct matrix *a, int arch, unsigned threads,
                  void (*progress) (void *opaque, unsigned done),
                  void *opaque)
{
  struct work w = {
    .all = all, .arch = arch, .progress = progress, .opaque = opaque,
    .lock = PTHREAD_MUTEX_INITIALIZER, .next = first,
  };
  pthread_t thread[MAX_THREADS];
  unsigned nr = 0;

  for (unsigned n = first; n < all->nr; n++)
    write_source (all, n, a);
  /* This thread works too. */
  threads = MIN (MIN (threads, MAX_THREADS), all->nr - first);
  while (nr + 1 < threads &&
         pthread_create (&thread[nr], NULL, worker, &w) == 0)
    nr++;
  worker (&w);
  while (nr > 0)
    pthread_join (thread[--nr], NULL);
}
