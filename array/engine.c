/* gpuraid: the baton, and what is done when it is let go.
 *
 * A thread of its own for the engine was measured and is too slow: two
 * hand-offs a request left a third to two thirds of the rate before any
 * I/O.  So whoever has news runs it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdlib.h>

#include "array/cache.h"
#include "array/internal.h"
#include "array/op.h"
#include "array/seat.h"
#include "array/space.h"
#include "array/writeback.h"
#include "common/cleanup.h"

/* Neighbouring transfers become one I/O up to this. */
#define BUNDLE_MAX_LEN (4u << 20)

int
engine_init (struct engine *e)
{
  int err;

  err = pthread_mutex_init (&e->baton, NULL);
  if (err)
    return err;
  atomic_init (&e->news, NULL);
  list_init (&e->ready);
  list_init (&e->xfers);
  e->last_job = &e->jobs;
  e->last_call = &e->calls;
  e->last_wake = &e->wakes;
  return 0;
}

void
engine_destroy (struct engine *e)
{
  pthread_mutex_destroy (&e->baton);
}

struct xfer *
xfer_new (struct seat *seat, enum io_kind kind,
          void (*done) (struct array *a, struct xfer *x))
{
  struct xfer *x = calloc (1, sizeof *x);

  if (x == NULL)
    abort ();           /* a few bytes: nothing could go on */
  x->seat = seat;
  x->kind = kind;
  x->done = done;
  list_init (&x->link);
  list_init (&x->seat_link);
  list_init (&x->owner_link);
  return x;
}

void
engine_xfer_again (struct array *a, struct xfer *x)
{
  atomic_fetch_add_explicit (&x->seat->users, 1, memory_order_relaxed);
  x->error = 0;
  x->since = loop_now (a->loop);
  list_move (&x->seat->xfers, &x->seat_link);
  list_append (&a->engine.xfers, &x->link);
  a->engine.nr_xfers++;
}

void
engine_xfer (struct array *a, struct xfer *x)
{
  if (x->cell)
    cell_ref (x->cell);
  engine_xfer_again (a, x);
}

void
engine_job (struct array *a, struct coder_job *job)
{
  job->next = NULL;
  *a->engine.last_job = job;
  a->engine.last_job = &job->next;
}

void
engine_call (struct array *a, struct call *c)
{
  c->next = NULL;
  *a->engine.last_call = c;
  a->engine.last_call = &c->next;
}

void
engine_wake (struct array *a, struct request *r)
{
  r->next_wake = NULL;
  *a->engine.last_wake = r;
  a->engine.last_wake = &r->next_wake;
}

void
engine_run_waiters (struct array *a, struct list *waiters)
{
  list_splice (&a->engine.ready, waiters);
}

/* ---- transfers ------------------------------------------------------- */

/* One I/O that carries neighbouring transfers. */
struct bundle {
  struct io io;
  struct news news;
  struct array *a;
  unsigned nr;
  struct xfer **xfer;
  struct iovec iov[];
};

static void
xfer_free (struct array *a, struct xfer *x)
{
  if (x->cell) {
    if (x->abandoned && x->kind == IO_WRITE)
      x->cell->frozen--;
    cell_put (a, x->cell);
  }
  free (x);
}

/* Baton: the I/O of a transfer has ended. */
static void
xfer_ended (struct array *a, struct xfer *x)
{
  if (x->abandoned) {
    if (x->kind == IO_READ && x->error)
      seat_read_error (a, x->seat, x->error);
    else if (x->error == 0)
      x->seat->suspect = false;
    xfer_free (a, x);
  }
  else if (space_is_short (a, x->seat, x->kind, x->error))
    space_wait (a, x);
  else if (x->error && x->kind == IO_WRITE && !x->retried &&
           !x->seat->failing) {
    x->retried = true;
    engine_xfer_again (a, x);
  }
  else {
    x->done (a, x);
    xfer_free (a, x);
  }
}

/* Where one of several neighbours failed each is tried alone. */
static void
bundle_news (struct array *a, struct news *n)
{
  struct bundle *b =
    (struct bundle *) ((char *) n - offsetof (struct bundle, news));

  for (unsigned i = 0; i < b->nr; i++) {
    struct xfer *x = b->xfer[i];

    atomic_fetch_sub_explicit (&x->seat->users, 1, memory_order_relaxed);
    list_remove (&x->seat_link);
    x->error = b->io.error;
    if (x->error && b->nr > 1 && !x->abandoned && !x->seat->failing) {
      x->alone = true;
      engine_xfer_again (a, x);
    }
    else
      xfer_ended (a, x);
  }
  free (b);
}

/* The I/O may still read what is in the cell. */
void
engine_forget (struct xfer *x)
{
  x->abandoned = true;
  if (x->cell && x->kind == IO_WRITE)
    x->cell->frozen++;
}

void
engine_give_up (struct array *a, struct xfer *x, int error)
{
  list_remove (&x->seat_link);
  x->error = error;
  x->done (a, x);
  xfer_free (a, x);
}

void
engine_abandon (struct array *a, struct seat *s, int error)
{
  list_for_each (l, &s->xfers) {
    struct xfer *x = list_item (l, struct xfer, seat_link);

    if (x->abandoned)
      continue;
    engine_forget (x);
    x->error = error;
    x->done (a, x);
  }
  list_for_each (l, &a->no_space) {
    struct xfer *x = list_item (l, struct xfer, seat_link);

    if (x->seat == s)
      engine_give_up (a, x, error);
  }
}

static void
bundle_done (struct io *io)
{
  struct bundle *b = (struct bundle *) ((char *) io - offsetof (struct bundle,
                                                                io));
  struct array *a = b->a;

  if (io->more)
    engine_post_lazily (a, &b->news);
  else
    engine_post (a, &b->news);
}

static int
compare_xfers (const void *p, const void *q)
{
  const struct xfer *x = *(struct xfer *const *) p;
  const struct xfer *y = *(struct xfer *const *) q;

  if (x->seat->dev != y->seat->dev)
    return x->seat->dev < y->seat->dev ? -1 : 1;
  if (x->kind != y->kind)
    return x->kind < y->kind ? -1 : 1;
  return x->off < y->off ? -1 : x->off > y->off;
}

static bool
neighbours (const struct xfer *x, const struct xfer *y)
{
  return x->seat == y->seat && x->kind == y->kind && !x->alone && !y->alone &&
    (x->kind == IO_READ || x->kind == IO_WRITE) && x->off + x->len == y->off;
}

static struct bundle *
bundle_new (struct array *a, struct xfer **x, unsigned nr)
{
  struct bundle *b = calloc (1, sizeof *b + nr * sizeof b->iov[0] +
                             nr * sizeof b->xfer[0]);

  if (b == NULL)
    return NULL;
  b->a = a;
  b->nr = nr;
  b->xfer = (struct xfer **) &b->iov[nr];
  b->news.run = bundle_news;
  b->io.kind = x[0]->kind;
  b->io.member = x[0]->seat->m;
  b->io.off = x[0]->off;
  b->io.done = bundle_done;
  for (unsigned i = 0; i < nr; i++) {
    b->xfer[i] = x[i];
    b->iov[i].iov_base = x[i]->buf;
    b->iov[i].iov_len = x[i]->len;
    b->io.len += x[i]->len;
  }
  if (x[0]->kind == IO_READ || x[0]->kind == IO_WRITE) {
    b->io.iov = b->iov;
    b->io.nr_iov = nr;
  }
  return b;
}

/* Without the baton. */
static void
carry_xfers (struct array *a, struct list *xfers, size_t nr)
{
  CLEANUP_FREE struct xfer **x = malloc (nr * sizeof *x);
  CLEANUP_FREE struct io **io = malloc (nr * sizeof *io);
  size_t n = 0, nr_io = 0;

  if (x == NULL || io == NULL)
    abort ();           /* a few kilobytes: nothing could go on */
  for (struct list *l; (l = list_pop (xfers)) != NULL; )
    x[n++] = list_item (l, struct xfer, link);
  if (n > 1)
    qsort (x, n, sizeof *x, compare_xfers);

  for (size_t i = 0, j; i < n; i = j) {
    uint64_t len = x[i]->len;
    struct bundle *b;

    for (j = i + 1; j < n && neighbours (x[j-1], x[j]) &&
           j - i < limits.bundle_max_xfers &&
           len + x[j]->len <= BUNDLE_MAX_LEN; j++)
      len += x[j]->len;
    b = bundle_new (a, &x[i], j - i);
    if (b == NULL)
      abort ();
    io[nr_io++] = &b->io;
  }
  loop_submit (a->loop, io, nr_io);
}

/* ---- the baton ------------------------------------------------------- */

void
engine_lock (struct array *a)
{
  pthread_mutex_lock (&a->engine.baton);
  log_hold ();
}

/* Baton: run news and waiters until there are none. */
static void
run_all (struct array *a)
{
  struct engine *e = &a->engine;
  struct news *n, *next, *ordered;
  struct list *l;

  for (;;) {
    n = atomic_exchange_explicit (&e->news, NULL, memory_order_acquire);
    ordered = NULL;
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
    writeback_decide (a);
    if (list_empty (&e->ready) &&
        atomic_load_explicit (&e->news, memory_order_relaxed) == NULL)
      break;
  }
  op_start_jobs (a);
}

/* What was decided, taken from the engine to be carried out. */
struct errands {
  struct list xfers;
  size_t nr_xfers;
  struct coder_job *jobs, **last_job;
  struct call *calls, **last_call;
  struct request *wakes, **last_wake;
  bool away;                    /* coder jobs: see struct coder_job */
};

static void
errands_init (struct errands *d)
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
take_errands (struct engine *e, struct errands *d)
{
  list_splice (&d->xfers, &e->xfers);
  d->nr_xfers += e->nr_xfers;
  e->nr_xfers = 0;
  TAKE_CHAIN (e, d, jobs, last_job);
  TAKE_CHAIN (e, d, calls, last_call);
  TAKE_CHAIN (e, d, wakes, last_wake);
}

static void
carry_out (struct array *a, struct errands *d)
{
  struct coder_job *job, *next_job;
  struct call *call, *next_call;
  struct request *r, *next_r;

  for (r = d->wakes; r; r = next_r) {
    next_r = r->next_wake;
    r->wake (r);
  }
  if (d->nr_xfers > 0)
    carry_xfers (a, &d->xfers, d->nr_xfers);
  for (call = d->calls; call; call = next_call) {
    next_call = call->next;
    call->run (call);
  }
  for (job = d->jobs; job; job = next_job) {
    next_job = job->next;
    job->away = d->away;
    coder_submit (a->coder, job);
  }
}

/* Is there news, and is the baton free to run it?  The exchange reads the
 * latest value, and a poster whose news it misses comes after it, and so
 * sees in its try that the baton was let go.
 */
static bool
take_again (struct engine *e)
{
  struct news *none = NULL;

  return !atomic_compare_exchange_strong (&e->news, &none, NULL) &&
    pthread_mutex_trylock (&e->baton) == 0;
}

/* Set while this thread carries out: it looks for news afterwards, so a
 * job or transfer that is done before its submit returns need not (and,
 * so as not to recurse, must not) run the engine.  The model: a plugin's
 * usual one costs a call for each look, and the thread sanitizer, preloaded,
 * does not survive it.
 */
static __thread const struct array *carrying
  __attribute__ ((tls_model ("initial-exec")));

/* client: this thread has nothing else to do than what it asked for; a
 * loop's brings the news of others.
 */
static void
let_go (struct array *a, bool client)
{
  struct engine *e = &a->engine;
  const struct array *outer = carrying;
  struct errands d;

  for (;;) {
    errands_init (&d);
    do {
      run_all (a);
      take_errands (e, &d);
      d.away = !client && a->nr_ops > 1;
      pthread_mutex_unlock (&e->baton);
    } while (take_again (e));
    log_release ();
    carrying = a;
    carry_out (a, &d);
    carrying = outer;
    if (outer == a || !take_again (e))
      break;
    log_hold ();
  }
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
  if (carrying != a && pthread_mutex_trylock (&a->engine.baton) == 0) {
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
