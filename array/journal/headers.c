/* gpuraid: the headers of the journal's rings.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>
#include <string.h>

#include "array/health/fail.h"
#include "array/io/store.h"
#include "array/io/xfer.h"
#include "array/journal/headers.h"
#include "array/journal/txn.h"
#include "array/replay/internal.h"
#include "common/plant.h"
#include "raidmap/journal.h"

/* In the place that does not have the last one. */
static void
add_header (struct array *a, struct store *st, struct ring_header h)
{
  struct seat *s = st->seat;
  const struct ring_id id = ring_id_of (&a->sb, s->slot);

  h.counter = ++s->ring_counter;
  s->ring_which ^= 1;
  ring_header_encode (&h, &id, s->ring_which,
                      store_add (st, a->sb.l.ring_off +
                                 s->ring_which * BLOCK_LEN));
}

static bool
is_used (const struct seat *s)
{
  return s->m && !s->failing && s->slot != SLOT_NONE;
}

/* Where the ring's part of a transaction begins, or of the next one that
 * has a part in it.
 */
static uint64_t
pos_of (const struct seat *s, struct list *live, const struct txn *stays)
{
  bool found = false;

  list_for_each (l, live) {
    const struct txn *t = list_item (l, struct txn, link);

    found |= t == stays;
    for (unsigned i = 0; found && i < t->nr_records; i++)
      if (t->record[i].seat == s)
        return t->record[i].pos;
  }
  return s->ring.head;
}

static void
header_written (struct array *a, struct store *st)
{
  if (st->error)
    seat_fail (a, st->seat, "journal header", st->error);
  if (--a->ring_headers == 0)
    list_move (&a->engine.ready, &a->ring_waiter->link);
}

void
ring_headers_write (struct array *a, uint64_t session,
                    struct list *live, const struct txn *stays,
                    uint64_t next_seq, uint64_t frontier, struct waiter *w)
{
  a->ring_waiter = w;
  a->ring_headers = 1;
  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct seat *s = a->seat[i];
    struct store *st;

    if (!is_used (s) || s->state != SEAT_ACTIVE)
      continue;
    s->ring_free = pos_of (s, live, stays);
    st = store_new (a, s, header_written);
    add_header (a, st, (struct ring_header) {
        .session = session, .seq = stays ? stays->seq : next_seq,
        .place = ring_place (&s->ring, s->ring_free),
        .frontier = frontier });
    a->ring_headers++;
    store_start (a, st);
  }
  if (--a->ring_headers == 0)
    list_move (&a->engine.ready, &w->link);
}

void
ring_headers_mark_behind (struct array *a, struct waiter *w)
{
  a->ring_waiter = w;
  a->ring_headers = 1;
  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct ring_header h = a->recovery->ring[i].header;
    struct seat *s = a->seat[i];
    struct store *st;

    if (!s->behind || !is_used (s) || !a->recovery->ring[i].begun)
      continue;
    h.behind = true;
    st = store_new (a, s, header_written);
    for (unsigned j = 0; j < 2; j++)
      add_header (a, st, h);
    a->ring_headers++;
    store_start (a, st);
  }
  if (--a->ring_headers == 0)
    list_move (&a->engine.ready, &w->link);
}

void
ring_headers_take (struct array *a)
{
  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct seat *s = a->seat[i];

    if (is_used (s) && s->state == SEAT_ACTIVE)
      s->ring.tail = s->ring_free;
  }
}

#define ALLOCATE_LEN (1u << 20)

static void
allocated (struct array *a, struct xfer *x)
{
  struct seat *s = x->seat;

  if (x->error)
    seat_fail (a, s, "journal", x->error);
  else
    s->write_gen++;
  s->ring_allocated += x->len;
  engine_run_waiters (a, &a->ring_waiters);
}

static bool
allocate_more (struct array *a, struct seat *s)
{
  const uint64_t len =
    MIN (ALLOCATE_LEN, a->sb.l.ring_len - s->ring_allocated);
  struct xfer_memory *mem = xfer_memory_new (a, len);
  struct xfer *x;

  if (mem == NULL)
    return false;
  memset (mem->p, 0, len);
  x = xfer_new (a, s, IO_WRITE, allocated);
  x->memory = mem;
  x->off = a->sb.l.ring_off + s->ring_allocated;
  x->len = len;
  x->buf = mem->p;
  xfer_start (a, x);
  xfer_memory_put (mem);
  return true;
}

bool
ring_allocate (struct array *a, struct seat *s, struct waiter *w)
{
  if (s->failing || s->ring_allocated >= a->sb.l.ring_len)
    return true;
  /* One at a time: w is on the list while one is under way. */
  list_move (list_empty (&a->ring_waiters) && !allocate_more (a, s) ?
             &a->pause_waiters : &a->ring_waiters, &w->link);
  return false;
}

static void
begun (struct array *a, struct store *st)
{
  struct seat *s = st->seat;

  s->ring_storing = false;
  if (st->error)
    seat_fail (a, s, "journal header", st->error);
  else if (s->ring_state == RING_BEGINNING)
    s->ring_state = RING_BEGUN;
  s->ring_behind = false;
}

bool
ring_headers_begin (struct array *a, bool (*which) (const struct seat *s),
                    uint64_t session, uint64_t next_seq)
{
  bool all = true;

  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct seat *s = a->seat[i];
    struct store *st;

    if (!is_used (s) || !which (s) || s->ring_state == RING_BEGUN)
      continue;
    all = false;
    /* It may be that of before, which does not count any more. */
    if (s->ring_storing)
      continue;
    s->ring_state = RING_BEGINNING;
    s->ring_storing = true;
    ring_begin (&s->ring, a->sb.l.ring_len / BLOCK_LEN);
    st = store_new (a, s, begun);
    for (unsigned j = 0; j < (PLANTED ("ring-one-header") ? 1 : 2); j++)
      add_header (a, st, (struct ring_header) {
          .session = session, .seq = next_seq,
          .place = ring_place (&s->ring, s->ring.head),
          .frontier = a->g.frontier });
    store_start (a, st);
  }
  return all;
}

bool
ring_headers_begin_active (const struct array *a)
{
  for (unsigned i = 0; i < a->nr_seats; i++) {
    const struct seat *s = a->seat[i];

    if (is_used (s) && s->state == SEAT_ACTIVE && s->ring_storing)
      return !PLANTED ("ring-anew-unwaited");
  }
  return false;
}
