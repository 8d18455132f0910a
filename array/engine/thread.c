/* gpuraid: the engine thread, which decides while the array is busy.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/engine/internal.h"
#include "array/engine/thread.h"
#include "common/plant.h"
#include "common/threads/clock.h"
#include "common/threads/thread.h"

/* How long it looks for news before it sleeps.  To wake it takes as long. */
#define LOOKS_NS 20000u

static bool
is_empty (const struct deferred *d)
{
  return d->nr_xfers == 0 && d->jobs == NULL && d->calls == NULL &&
    d->wakes == NULL && d->garbage == NULL;
}

static void
put_decided (struct engine_thread *t, struct deferred *d)
{
  if (is_empty (d))
    return;
  pthread_mutex_lock (&t->lock);
  deferred_take (&t->decided, d);
  atomic_store (&t->has_decided, true);
  pthread_mutex_unlock (&t->lock);
}

static bool
has_news (const struct array *a)
{
  return atomic_load (&a->engine.news) != NULL;
}

/* Leave THREAD_DECIDES.  False: it stays, as there is news. */
static bool
leave (struct array *a, enum thread_state to)
{
  struct engine_thread *t = &a->engine.thread;

  atomic_store (&t->state, to);
  if (!has_news (a) || PLANTED ("thread-leaves-news"))
    return true;
  atomic_store (&t->state, THREAD_DECIDES);
  return false;
}

bool
engine_thread_step (struct array *a)
{
  struct engine_thread *t = &a->engine.thread;
  struct deferred d;

  if (has_news (a)) {
    deferred_init (&d);
    engine_decide (a, &d);
    put_decided (t, &d);
    return true;
  }
  if (!atomic_load (&t->has_decided) || PLANTED ("thread-keeps-decided"))
    return false;
  if (!PLANTED ("thread-carries-deciding") && !leave (a, THREAD_CARRIES))
    return true;
  if (engine_get_decided (t, &d))
    engine_carry (a, &d);
  atomic_store (&t->state, THREAD_DECIDES);
  return true;
}

bool
engine_thread_rest (struct array *a)
{
  return leave (a, THREAD_ASLEEP);
}

/* False: it is to end. */
static bool
sleep_until_woken (struct engine_thread *t)
{
  bool ends;

  pthread_mutex_lock (&t->lock);
  while (atomic_load (&t->state) == THREAD_ASLEEP && !t->ends)
    pthread_cond_wait (&t->woken, &t->lock);
  ends = t->ends;
  pthread_mutex_unlock (&t->lock);
  return !ends;
}

/* Until it sleeps. */
static void
work (struct array *a)
{
  struct engine_thread *t = &a->engine.thread;
  uint64_t since = 0;

  for (;;) {
    if (engine_thread_step (a))
      since = 0;
    else if (since == 0)
      since = monotonic_ns ();
    else if (!atomic_load (&t->busy) || monotonic_ns () - since > LOOKS_NS) {
      if (engine_thread_rest (a))
        return;
      since = 0;
    }
  }
}

static void *
thread_run (void *p)
{
  struct array *a = p;

  while (sleep_until_woken (&a->engine.thread))
    work (a);
  return NULL;
}

int
engine_thread_start (struct array *a)
{
  struct engine_thread *t = &a->engine.thread;
  int err;

  atomic_store (&t->state, THREAD_ASLEEP);
  err = thread_start (&t->thread, "gpuraid-engine", thread_run, a);
  if (err)
    atomic_store (&t->state, THREAD_NONE);
  t->runs = err == 0;
  return err;
}

void
engine_thread_stop (struct array *a)
{
  struct engine_thread *t = &a->engine.thread;
  struct deferred d;

  if (t->runs) {
    pthread_mutex_lock (&t->lock);
    t->ends = true;
    pthread_cond_signal (&t->woken);
    pthread_mutex_unlock (&t->lock);
    pthread_join (t->thread, NULL);
    t->runs = false;
  }
  atomic_store (&t->state, THREAD_NONE);
  engine_get_decided (t, &d);
  engine_carry (a, &d);         /* and then what was posted */
}
