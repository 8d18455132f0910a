/* gpuraid: the array lock, and the work done when it is released.
 *
 * The thread with news runs the engine.  To hand each request to another costs
 * two hand-offs, which left a third to two thirds of the rate before any I/O;
 * so only where the lock is taken anyway the engine thread does it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>

#include "array/engine/engine.h"
#include "array/engine/internal.h"
#include "array/engine/state.h"
#include "common/lock-check.h"

/* ---- deferred work ----------------------------------------------------- */

void
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
  d->garbage = NULL;
  d->last_garbage = &d->garbage;
}

#define TAKE_CHAIN(to, from, head, last)        \
  do {                                          \
    if ((from)->head) {                         \
      *(to)->last = (from)->head;               \
      (to)->last = (from)->last;                \
      (from)->head = NULL;                      \
      (from)->last = &(from)->head;             \
    }                                           \
  } while (0)

void
deferred_take (struct deferred *to, struct deferred *from)
{
  list_splice (&to->xfers, &from->xfers);
  to->nr_xfers += from->nr_xfers;
  from->nr_xfers = 0;
  TAKE_CHAIN (to, from, jobs, last_job);
  TAKE_CHAIN (to, from, calls, last_call);
  TAKE_CHAIN (to, from, wakes, last_wake);
  TAKE_CHAIN (to, from, garbage, last_garbage);
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
engine_free (struct array *a, void *p)
{
  struct garbage *g = p;

  if (g == NULL)
    return;
  g->next = NULL;
  *a->engine.deferred.last_garbage = g;
  a->engine.deferred.last_garbage = &g->next;
}

static void
free_all (struct garbage *g)
{
  for (struct garbage *next; g; g = next) {
    next = g->next;
    free (g);
  }
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
carry_out (struct array *a, struct deferred *d, bool away)
{
  struct coder_job *job, *next_job;

  run_calls (d->wakes);
  if (d->nr_xfers > 0)
    a->engine.hooks->carry (a, &d->xfers, d->nr_xfers);
  run_calls (d->calls);
  for (job = d->jobs; job; job = next_job) {
    next_job = job->next;
    job->away = away;
    coder_submit (a->coder, job);
  }
  free_all (d->garbage);
}

/* ---- the engine -------------------------------------------------------- */

int
engine_init (struct engine *e, const struct engine_hooks *hooks)
{
  int err;

  e->hooks = hooks;
  err = pthread_mutex_init (&e->lock, NULL);
  if (err)
    return err;
  pthread_mutex_init (&e->thread.lock, NULL);
  pthread_cond_init (&e->thread.woken, NULL);
  deferred_init (&e->thread.decided);
  atomic_init (&e->news, NULL);
  list_init (&e->ready);
  deferred_init (&e->deferred);
  return 0;
}

void
engine_destroy (struct engine *e)
{
  free_all (e->deferred.garbage);
  pthread_cond_destroy (&e->thread.woken);
  pthread_mutex_destroy (&e->thread.lock);
  pthread_mutex_destroy (&e->lock);
}

void
engine_run_waiters (struct array *a, struct list *waiters)
{
  list_splice (&a->engine.ready, waiters);
}

static bool
thread_decides (const struct engine_thread *t)
{
  return atomic_load (&t->state) == THREAD_DECIDES;
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
  lock_check_held (true);
}

static void
hold_ends (struct array *a)
{
  struct engine *e = &a->engine;
  const bool busy = a->nr_ops > 0;

  lock_check_held (false);
  if (e->held_since)
    e->held_ns += loop_now (a->loop) - e->held_since;
  /* All read it: write it only if it changes. */
  if (busy != atomic_load_explicit (&e->thread.busy, memory_order_relaxed))
    atomic_store_explicit (&e->thread.busy, busy, memory_order_relaxed);
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
engine_now (const struct array *a)
{
  struct engine *e = (struct engine *) &a->engine;

  if (e->now == 0)
    e->now = loop_now (a->loop);
  return e->now;
}

/* With the lock held: run news and waiters until there are none; once if the
 * engine thread decides, so that what it has decided does not wait.
 */
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
        (thread_decides (&e->thread) ||
         atomic_load_explicit (&e->news, memory_order_relaxed) == NULL))
      break;
  }
  e->hooks->last (a);
}

static bool
try_lock (struct array *a)
{
  if (pthread_mutex_trylock (&a->engine.lock) != 0)
    return false;
  hold_begins (a);
  return true;
}

/* Take the array lock if there is news, the lock is free, and the engine thread
 * does not decide.  The exchange reads the latest value.  A poster whose news
 * it misses comes after it, and so finds in its own try that the array lock was
 * released.
 */
static bool
try_lock_for_news (struct array *a)
{
  struct news *none = NULL;

  return !atomic_compare_exchange_strong (&a->engine.news, &none, NULL) &&
    !thread_decides (&a->engine.thread) && try_lock (a);
}

/* Set while this thread carries out decisions: it checks for news afterwards,
 * so a job or transfer that is done before its submit returns need not run
 * the engine (and must not, so as not to recurse).  The TLS model: a plugin's
 * usual one costs a call per access, and crashes the preloaded thread
 * sanitizer.
 */
static __thread const struct array *carrying
  __attribute__ ((tls_model ("initial-exec")));

/* Without the lock.  True: this thread has it again, as there is news. */
static bool
carry (struct array *a, struct deferred *d, bool away)
{
  const struct array *outer = carrying;

  carrying = a;
  carry_out (a, d, away);
  carrying = outer;
  if (outer == a || !try_lock_for_news (a))
    return false;
  log_hold ();
  return true;
}

/* client: this thread is a client's, which only does its own work; a loop's
 * thread brings the news of others.
 */
static void
let_go (struct array *a, bool client)
{
  struct deferred d;
  bool away;

  do {
    deferred_init (&d);
    do {
      run_all (a);
      deferred_take (&d, &a->engine.deferred);
      away = !client && a->nr_ops > 1;
      hold_ends (a);
    } while (try_lock_for_news (a));
    log_release ();
  } while (carry (a, &d, away));
}

void
engine_decide (struct array *a, struct deferred *d)
{
  engine_lock (a);
  run_all (a);
  deferred_take (d, &a->engine.deferred);
  hold_ends (a);
  log_release ();
}

void
engine_carry (struct array *a, struct deferred *d)
{
  if (carry (a, d, true))
    let_go (a, false);
}

bool
engine_get_decided (struct engine_thread *t, struct deferred *d)
{
  bool has;

  deferred_init (d);
  pthread_mutex_lock (&t->lock);
  has = atomic_exchange (&t->has_decided, false);
  deferred_take (d, &t->decided);
  pthread_mutex_unlock (&t->lock);
  return has;
}

/* This thread is awake, and has nothing to carry out yet. */
static void
help (struct array *a)
{
  struct engine_thread *t = &a->engine.thread;
  struct deferred d;

  if (atomic_load (&t->has_decided) && engine_get_decided (t, &d))
    engine_carry (a, &d);
}

/* A client's thread has found the array lock taken. */
static void
want_thread (struct engine_thread *t)
{
  enum thread_state asleep = THREAD_ASLEEP;

  if (atomic_load (&t->busy) &&
      atomic_compare_exchange_strong (&t->state, &asleep, THREAD_DECIDES)) {
    pthread_mutex_lock (&t->lock);
    pthread_cond_signal (&t->woken);
    pthread_mutex_unlock (&t->lock);
  }
}

bool
engine_try_lock (struct array *a)
{
  if (thread_decides (&a->engine.thread) || !try_lock (a))
    return false;
  log_hold ();
  return true;
}

void
engine_ask (struct array *a, struct news *n)
{
  struct engine_thread *t = &a->engine.thread;

  engine_post_lazily (a, n);
  if (thread_decides (t))
    help (a);
  else if (engine_try_lock (a))
    let_go (a, true);
  else
    want_thread (t);
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
  if (carrying == a)
    return;
  if (thread_decides (&a->engine.thread))
    help (a);
  else if (try_lock (a)) {
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
