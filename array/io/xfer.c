/* gpuraid: transfers: I/O on the members.
 *
 * Transfers to neighbouring bytes of a member become one vectored I/O, a
 * bundle.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>

#include "array/cache/cache.h"
#include "array/health/fail.h"
#include "array/io/lease.h"
#include "array/io/space.h"
#include "array/io/xfer.h"
#include "array/seats/seat.h"
#include "array/seats/slow.h"
#include "common/cleanup.h"
#include "common/plant.h"

/* The largest bundle, in bytes. */
#define BUNDLE_MAX_LEN (4u << 20)

/* ---- with the lock --------------------------------------------------- */

void
xfer_init (struct array *a)
{
  pool_init (&a->xfer_pool, sizeof (struct xfer), sizeof (struct xfer));
  pools_init (&a->memory_pools, 2 * BLOCK_LEN, BLOCK_LEN);
  pools_init (&a->pools, 128, 0);
}

struct xfer *
xfer_new (struct array *a, struct seat *seat, enum io_kind kind,
          void (*done) (struct array *a, struct xfer *x))
{
  struct xfer *x = pool_get (&a->xfer_pool);

  if (x == NULL)
    abort ();           /* a few bytes; otherwise the waiters for this I/O
                         * would never end */
  x->seat = seat;
  x->kind = kind;
  x->done = done;
  list_init (&x->link);
  list_init (&x->seat_link);
  list_init (&x->owner_link);
  return x;
}

/* It stands behind the blocks. */
struct xfer_memory *
xfer_memory_new (struct array *a, size_t len)
{
  struct pool *pool = pools_at (&a->memory_pools,
                                len + sizeof (struct xfer_memory));
  char *p = pool_get (pool);
  struct xfer_memory *mem;

  if (p == NULL)
    return NULL;
  mem = (struct xfer_memory *) (p + len);
  *mem = (struct xfer_memory) { 1, pool, p };
  return mem;
}

void
xfer_memory_put (struct xfer_memory *mem)
{
  if (--mem->refs == 0)
    pool_put (mem->pool, mem->p);
}

void
xfer_again (struct array *a, struct xfer *x)
{
  atomic_fetch_add_explicit (&x->seat->users, 1, memory_order_relaxed);
  x->error = 0;
  x->since = engine_now (a);
  list_move (&x->seat->xfers, &x->seat_link);
  list_append (&a->engine.deferred.xfers, &x->link);
  a->engine.deferred.nr_xfers++;
}

void
xfer_start (struct array *a, struct xfer *x)
{
  if (x->cell)
    cell_ref (a, x->cell);
  if (x->memory)
    x->memory->refs++;
  xfer_again (a, x);
}

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
  if (x->memory)
    xfer_memory_put (x->memory);
  pool_put (&a->xfer_pool, x);
}

/* Zeroes have no room where nothing was written yet; a hole needs none. */
static bool
becomes_hole (const struct xfer *x)
{
  return x->may_be_hole && x->kind == IO_ZERO && space_is_error (x->error) &&
    !x->abandoned && !x->seat->failing && !PLANTED ("zero-stays");
}

/* With the lock held: the I/O of a transfer has ended. */
static void
xfer_ended (struct array *a, struct xfer *x)
{
  const bool is_short = x->error && !x->abandoned && !x->no_wait &&
    space_is_short (a, x->seat, x->kind, x->error);
  const bool waits = is_short && !x->moot;

  if (becomes_hole (x)) {
    x->kind = IO_TRIM;
    xfer_again (a, x);
    return;
  }
  if (is_short && x->moot)
    x->error = 0;

  if (x->error && !waits)
    seat_note_error (a, x->seat, x->kind, x->off, x->error);
  if (x->abandoned) {
    if (x->kind == IO_READ && x->error)
      seat_read_error (a, x->seat, x->error);
    else if (x->error == 0)
      x->seat->suspect = false;
    xfer_free (a, x);
  }
  else if (waits) {
    x->had_no_space = true;
    space_wait (x->seat, &a->no_space, &x->seat_link);
  }
  else if (x->error && x->kind == IO_WRITE && !x->retried &&
           !x->seat->failing && !PLANTED ("member-write-not-retried")) {
    x->retried = true;
    xfer_again (a, x);
  }
  else {
    x->done (a, x);
    xfer_free (a, x);
  }
}

/* Counted as one, as it was for the member. */
static void
count_io (struct array *a, const struct bundle *b)
{
  const struct xfer *x = b->xfer[0];
  const uint64_t ns = engine_now (a) - x->since;
  struct seat *s = x->seat;

  if (b->io.error)
    return;
  switch (b->io.kind) {
  case IO_READ:
    seat_io_add (&s->lane[LANE_OF_LOCK].reads, b->io.len, ns);
    break;
  case IO_WRITE: seat_io_add (&s->writes, b->io.len, ns); break;
  case IO_FLUSH: seat_io_add (&s->flushes, 0, ns); break;
  default: break;
  }
}

/* A client's read has succeeded. */
static void
note_time (struct array *a, const struct xfer *x)
{
  const struct slow_read r = {
    .len = x->len, .ns = engine_now (a) - x->since,
    .judged = x->judged, .extra = x->extra,
  };

  slow_read_done (a, x->seat, &r);
}

/* If one of several bundled transfers failed, each is tried alone. */
static void
bundle_news (struct array *a, struct news *n)
{
  struct bundle *b =
    (struct bundle *) ((char *) n - offsetof (struct bundle, news));

  count_io (a, b);
  for (unsigned i = 0; i < b->nr; i++) {
    struct xfer *x = b->xfer[i];

    atomic_fetch_sub_explicit (&x->seat->users, 1, memory_order_relaxed);
    list_remove (&x->seat_link);
    x->error = b->io.error;
    if (x->kind != IO_READ)
      x->seat->answered = engine_now (a);
    else if (x->timed && x->error == 0)
      note_time (a, x);
    if (x->error && b->nr > 1 && !x->abandoned && !x->seat->failing) {
      x->alone = true;
      xfer_again (a, x);
    }
    else
      xfer_ended (a, x);
  }
  engine_free (a, b);
}

/* It was not submitted. */
static void
bundle_held (struct array *a, struct news *n)
{
  struct bundle *b =
    (struct bundle *) ((char *) n - offsetof (struct bundle, news));

  for (unsigned i = 0; i < b->nr; i++) {
    struct xfer *x = b->xfer[i];

    atomic_fetch_sub_explicit (&x->seat->users, 1, memory_order_relaxed);
    list_remove (&x->seat_link);
    if (x->abandoned)
      xfer_free (a, x);
    else
      lease_hold (a, &a->lease.xfers, &x->seat_link);
  }
  engine_free (a, b);
}

/* The I/O may still read what is in the cell. */
void
xfer_forget (struct xfer *x)
{
  x->abandoned = true;
  if (x->cell && x->kind == IO_WRITE)
    x->cell->frozen++;
}

void
xfer_give_up (struct array *a, struct xfer *x, int error)
{
  list_remove (&x->seat_link);
  x->error = error;
  x->done (a, x);
  xfer_free (a, x);
}

static void
give_up_waiting (struct array *a, struct list *waiting, const struct seat *s,
                 int error)
{
  list_for_each (l, waiting) {
    struct xfer *x = list_item (l, struct xfer, seat_link);

    if (x->seat == s)
      xfer_give_up (a, x, error);
  }
}

void
xfers_abandon (struct array *a, struct seat *s, int error)
{
  list_for_each (l, &s->xfers) {
    struct xfer *x = list_item (l, struct xfer, seat_link);

    if (x->abandoned)
      continue;
    xfer_forget (x);
    x->error = error;
    x->done (a, x);
  }
  give_up_waiting (a, &a->no_space, s, error);
  give_up_waiting (a, &a->lease.xfers, s, error);
}

bool
xfers_have_ended (const struct array *a, const struct seat *s)
{
  list_for_each (l, &a->lease.xfers)
    if (list_item (l, struct xfer, seat_link)->seat == s)
      return false;
  return list_empty (&s->xfers);
}

bool
xfers_want_space (const struct array *a, const struct seat *s)
{
  list_for_each (l, &a->no_space)
    if (list_item (l, struct xfer, seat_link)->seat == s)
      return true;
  list_for_each (l, &s->xfers)
    if (list_item (l, struct xfer, seat_link)->had_no_space)
      return true;
  return false;
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
    x->kind != IO_FLUSH && x->off + x->len == y->off;
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

void
xfers_carry (struct array *a, struct list *xfers, size_t nr)
{
  CLEANUP_FREE struct xfer **x = malloc (nr * sizeof *x);
  CLEANUP_FREE struct io **io = malloc (nr * sizeof *io);
  size_t n = 0, nr_io = 0;

  if (x == NULL || io == NULL)
    abort ();           /* as in xfer_new */
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
      abort ();         /* as in xfer_new */
    if (lease_allows (a, &b->io))
      io[nr_io++] = &b->io;
    else {
      b->news.run = bundle_held;
      engine_post (a, &b->news);
    }
  }
  loop_submit (a->loop, io, nr_io);
}
