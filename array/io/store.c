/* gpuraid: a few blocks that must be durable on a member before something
 * goes on.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <stdlib.h>

#include "array/health/fail.h"
#include "array/io/lease.h"
#include "array/io/space.h"
#include "array/io/store.h"
#include "common/plant.h"

/* The store itself stands behind the blocks. */
#define BUF_LEN (STORE_MAX_BLOCKS * BLOCK_LEN)

void
stores_init (struct array *a)
{
  pool_init (&a->store_pool,
             round_up (BUF_LEN + sizeof (struct store), BLOCK_LEN), 0);
  a->store_pool.align = BLOCK_LEN;
}

static void
store_free (struct store *st)
{
  pool_put (&st->a->store_pool, st->buf);
}

/* Without the array lock, or before the first I/O. */
static void
write_block (struct store *st)
{
  struct io *io = &st->io;

  st->iov = (struct iovec) { st->buf + st->nr_done * BLOCK_LEN, BLOCK_LEN };
  io->kind = IO_WRITE;
  io->off = st->off[st->nr_done];
  io->len = BLOCK_LEN;
  io->iov = &st->iov;
  io->nr_iov = 1;
  if (lease_allows (st->a, io))
    loop_submit (st->a->loop, &io, 1);
  else {
    st->held = true;
    engine_post (st->a, &st->news);
  }
}

static void
store_news (struct array *a, struct news *n)
{
  struct store *st = list_item (n, struct store, news);

  atomic_fetch_sub (&st->seat->users, 1);
  list_remove (&st->link);
  st->seat->answered = engine_now (a);
  if (st->abandoned) {
    store_free (st);
    return;
  }
  if (st->held) {
    st->held = false;
    lease_hold (a, &a->lease.stores, &st->link);
    return;
  }
  st->error = st->io.error;
  if (st->error && space_is_short (a, st->seat, st->io.kind, st->error)) {
    st->had_no_space = true;
    space_wait (st->seat, &a->no_space_stores, &st->link);
    return;
  }
  if (st->error)
    seat_note_error (a, st->seat, st->io.kind, st->off[st->nr_done],
                     st->error);
  st->done (a, st);
  store_free (st);
}

static void
store_io_done (struct io *io)
{
  struct store *st = list_item (io, struct store, io);
  struct array *a = st->a;

  if (io->error == 0 && io->kind == IO_WRITE &&
      !(st->nr_done + 1 < st->nr && PLANTED ("member-copies-unflushed"))) {
    io->kind = IO_FLUSH;
    io->off = io->len = 0;
    io->iov = NULL;
    io->nr_iov = 0;
    loop_submit (a->loop, &io, 1);
    engine_kick (a);
  }
  else if (io->error == 0 && ++st->nr_done < st->nr) {
    write_block (st);
    engine_kick (a);
  }
  else
    engine_post (a, &st->news);
}

static void
store_call (struct call *call)
{
  write_block (list_item (call, struct store, call));
}

struct store *
store_new (struct array *a, struct seat *s,
           void (*done) (struct array *a, struct store *st))
{
  uint8_t *buf = pool_get (&a->store_pool);
  struct store *st = (struct store *) (buf + BUF_LEN);

  if (buf == NULL)
    abort ();           /* as in array/io/xfer.c */
  *st = (struct store) { .a = a, .seat = s, .done = done, .buf = buf };
  list_init (&st->link);
  st->call.run = store_call;
  st->news.run = store_news;
  st->io.member = s->m;
  st->io.done = store_io_done;
  return st;
}

uint8_t *
store_add (struct store *st, uint64_t off)
{
  assert (st->nr < STORE_MAX_BLOCKS);
  st->off[st->nr] = off;
  return st->buf + st->nr++ * BLOCK_LEN;
}

void
store_again (struct array *a, struct store *st)
{
  st->since = engine_now (a);
  atomic_fetch_add (&st->seat->users, 1);
  list_move (&st->seat->stores, &st->link);
  engine_call (a, &st->call);
}

void
store_start (struct array *a, struct store *st)
{
  store_again (a, st);
}

void
store_give_up (struct array *a, struct store *st, int error)
{
  list_remove (&st->link);
  st->error = error;
  st->done (a, st);
  store_free (st);
}

static void
give_up_waiting (struct array *a, struct list *waiting, const struct seat *s,
                 int error)
{
  list_for_each (l, waiting) {
    struct store *st = list_item (l, struct store, link);

    if (st->seat == s)
      store_give_up (a, st, error);
  }
}

void
stores_abandon (struct array *a, struct seat *s, int error)
{
  list_for_each (l, &s->stores) {
    struct store *st = list_item (l, struct store, link);

    if (st->abandoned)
      continue;
    st->abandoned = true;
    st->error = error;
    st->done (a, st);
  }
  give_up_waiting (a, &a->no_space_stores, s, error);
  give_up_waiting (a, &a->lease.stores, s, error);
}

bool
stores_want_space (const struct array *a, const struct seat *s)
{
  list_for_each (l, &a->no_space_stores)
    if (list_item (l, struct store, link)->seat == s)
      return true;
  list_for_each (l, &s->stores)
    if (list_item (l, struct store, link)->had_no_space)
      return true;
  return false;
}
