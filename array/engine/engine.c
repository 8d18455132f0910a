/* gpuraid: the array lock, and the work done when it is released.
 *
 * The thread with news runs the engine.  A separate engine thread costs two
 * hand-offs a request, which left a third to two thirds of the rate before any
 * I/O; what it gave where the lock is always taken: docs/benchmarks.md.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/engine/engine.h"
#include "array/engine/shared.h"
#include "array/engine/state.h"

static void
deferred_init (struct deferred *d)
{
  list_init (&d->xfers);
  d->nr_xfers = 0;
  d->jobs = NULL;
  d->last_job = &d->jobs;
  d->calls = NULL;
  d->last_call = &d->calls;
  d->wakes = NULL;
  d->last_wake = &d->wakes;
}

int
engine_init (struct engine *e, const struct engine_hooks *hooks)
{
  int err;

  e->hooks = hooks;
  err = pthread_mutex_init (&e->lock, NULL);
  if (err)
    return err;
  atomic_init (&e->news, NULL);
  list_init (&e->ready);
  deferred_init (&e->deferred);
  return 0;
}

void
engine_destroy (struct engine *e)
{
  pthread_mutex_destroy (&e->lock);
}

void
engine_job (struct array *a, struct coder_job *job)
{
  job->next = NULL;
  *a->engine.deferred.last_job = job;
  a->engine.deferred.last_job = &job->next;
}

void
engine_call (struct array *a, struct call *c)
{
  c->next = NULL;
  *a->engine.deferred.last_call = c;
  a->engine.deferred.last_call = &c->next;
}

void
engine_wake (struct array *a, struct call *c)
{
  c->next = NULL;
  *a->engine.deferred.last_wake = c;
  a->engine.deferred.last_wake = &c->next;
}

void
engine_run_waiters (struct array *a, struct list *waiters)
{
  list_splice (&a->engine.ready, waiters);
}

/* ---- the array lock -------------------------------------------------- */

/* One hold of these is measured: the clock costs as much as a short one. */
#define MEASURED_OF 16u

static void
hold_begins (struct array *a)
{
  struct engine *e = &a->engine;

  e->now = 0;
  e->held_since =
    e->nr_holds++ % MEASURED_OF == 0 && a->loop ? engine_now (a) : 0;
}

static void
hold_ends (struct array *a)
{
  struct engine *e = &a->engine;

  if (e->held_since)
    e->held_ns += loop_now (a->loop) - e->held_since;
  pthread_mutex_unlock (&e->lock);
}

void
engine_lock_use (const struct array *a, struct array_lock_use *u)
{
  u->taken = a->engine.nr_holds;
  u->held_ns = a->engine.held_ns * MEASURED_OF;
}

void
engine_lock (struct array *a)
{
  pthread_mutex_lock (&a->engine.lock);
  hold_begins (a);
  log_hold ();
}

uint64_t
engine_now (struct array *a)
{
  if (a->engine.now == 0)
    a->engine.now = loop_now (a->loop);
  return a->engine.now;
}

/* With the lock held: run news and waiters until there are none. */
static void
run_all (struct array *a)
{
  struct engine *e = &a->engine;
  struct news *n, *next, *ordered;
  struct list *l;

  for (;;) {
    n = atomic_exchange_explicit (&e->news, NULL, memory_order_acquire);
    ordered = NULL;
    e->now = 0;
    for (; n; n = next) {
      next = n->next;
      n->next = ordered;
      ordered = n;
    }
    for (n = ordered; n; n = next) {
      next = n->next;
      n->run (a, n);
    }
    while ((l = list_pop (&e->ready)) != NULL) {
      struct waiter *w = list_item (l, struct waiter, link);

      w->run (a, w);
    }
    e->hooks->turn (a);
    if (list_empty (&e->ready) &&
        atomic_load_explicit (&e->news, memory_order_relaxed) == NULL)
      break;
  }
  e->hooks->last (a);
}

#define TAKE_CHAIN(e, d, head, last)            \
  do {                                          \
    if ((e)->head) {                            \
      *(d)->last = (e)->head;                   \
      (d)->last = (e)->last;                    \
      (e)->head = NULL;                         \
      (e)->last = &(e)->head;                   \
    }                                           \
  } while (0)

static void
take_deferred (struct deferred *e, struct deferred *d)
{
  list_splice (&d->xfers, &e->xfers);
  d->nr_xfers += e->nr_xfers;
  e->nr_xfers = 0;
  TAKE_CHAIN (e, d, jobs, last_job);
  TAKE_CHAIN (e, d, calls, last_call);
  TAKE_CHAIN (e, d, wakes, last_wake);
}

static void
run_calls (struct call *call)
{
  for (struct call *next; call; call = next) {
    next = call->next;
    call->run (call);
  }
}

static void
carry_out (struct array *a, struct deferred *d)
{
  struct coder_job *job, *next_job;

  run_calls (d->wakes);
  if (d->nr_xfers > 0)
    a->engine.hooks->carry (a, &d->xfers, d->nr_xfers);
  run_calls (d->calls);
  for (job = d->jobs; job; job = next_job) {
    next_job = job->next;
    job->away = d->away;
    coder_submit (a->coder, job);
  }
}

static bool
try_lock (struct array *a)
{
  if (pthread_mutex_trylock (&a->engine.lock) != 0)
    return false;
  hold_begins (a);
  return true;
}

/* Take the array lock if there is news and the lock is free.  The exchange
 * reads the latest value.  A poster whose news it misses comes after it, and
 * so finds in its own try that the array lock was released.
 */
static bool
try_lock_for_news (struct array *a)
{
  struct news *none = NULL;

  return !atomic_compare_exchange_strong (&a->engine.news, &none, NULL) &&
    try_lock (a);
}

/* Set while this thread carries out decisions: it checks for news afterwards,
 * so a job or transfer that is done before its submit returns need not run
 * the engine (and must not, so as not to recurse).  The TLS model: a plugin's
 * usual one costs a call per access, and crashes the preloaded thread
 * sanitizer.
 */
static __thread const struct array *carrying
  __attribute__ ((tls_model ("initial-exec")));

/* client: this thread is a client's, which only does its own work; a loop's
 * thread brings the news of others.
 */
static void
let_go (struct array *a, bool client)
{
  struct engine *e = &a->engine;
  const struct array *outer = carrying;
  struct deferred d;

  for (;;) {
    deferred_init (&d);
    do {
      run_all (a);
      take_deferred (&e->deferred, &d);
      d.away = !client && a->nr_ops > 1;
      hold_ends (a);
    } while (try_lock_for_news (a));
    log_release ();
    carrying = a;
    carry_out (a, &d);
    carrying = outer;
    if (outer == a || !try_lock_for_news (a))
      break;
    log_hold ();
  }
}

bool
engine_try_lock (struct array *a)
{
  if (!try_lock (a))
    return false;
  log_hold ();
  return true;
}

void
engine_ask (struct array *a, struct news *n)
{
  engine_post_lazily (a, n);
  if (engine_try_lock (a))
    let_go (a, true);
}

void
engine_unlock (struct array *a)
{
  let_go (a, true);
}

void
engine_post_lazily (struct array *a, struct news *n)
{
  struct engine *e = &a->engine;
  struct news *old = atomic_load_explicit (&e->news, memory_order_relaxed);

  do
    n->next = old;
  while (!atomic_compare_exchange_weak_explicit (&e->news, &old, n,
                                                 memory_order_seq_cst,
                                                 memory_order_relaxed));
}

void
engine_kick (struct array *a)
{
  if (carrying != a && try_lock (a)) {
    log_hold ();
    let_go (a, false);
  }
}

void
engine_post (struct array *a, struct news *n)
{
  engine_post_lazily (a, n);
  engine_kick (a);
}

/* array/request/writeback.c tells waiters for write-outs, in the next turn. */
void
array_set_failed (struct array *a, const char *why)
{
  if (a->failed)
    return;
  a->failed = true;
  log_error ("the array has failed: %s; nothing is written any more", why);
  engine_run_waiters (a, &a->change_waiters);
  engine_run_waiters (a, &a->cell_waiters);
}
