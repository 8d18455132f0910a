/* gpuraid: the holes that the files of all active members have in common.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/io/hole.h"
#include "array/replay/recovery.h"

/* A hung server would block the thread. */
static bool
may_ask (const struct seat *s)
{
  return !s->failing && s->state == SEAT_ACTIVE && s->m->local && !s->suspect;
}

/* Without the lock. */
static void
ask_call (struct call *c)
{
  struct hole_query *q = list_item (c, struct hole_query, call);
  uint64_t end = q->end, data = q->off;

  for (unsigned i = 0; i < q->nr_seats; i++) {
    struct member *m = q->seat[i]->m;
    uint64_t upto;
    bool hole;

    if (end == q->off)
      ;
    else if (m->ops->extent (m, q->off, end - q->off, &hole, &upto) != 0) {
      data = end;
      end = q->off;
    }
    else if (hole)
      end = upto;
    else {
      data = upto;
      end = q->off;
    }
    atomic_fetch_sub (&q->seat[i]->users, 1);
  }
  q->hole_end = end;
  q->data_end = data;
  engine_post (q->a, &q->news);
}

static void
answered (struct array *a, struct news *n)
{
  struct hole_query *q = list_item (n, struct hole_query, news);

  q->answered (a, q);
}

bool
hole_ask (struct array *a, struct hole_query *q)
{
  q->nr_seats = 0;
  for (unsigned slot = 0; slot < a->n; slot++) {
    struct seat *s = a->at[slot][0];

    if (s && !may_ask (s))
      return false;
    if (s)
      q->seat[q->nr_seats++] = s;
  }
  if (q->nr_seats < a->g.k || recover_is_pending (a))
    return false;
  for (unsigned i = 0; i < q->nr_seats; i++)
    atomic_fetch_add (&q->seat[i]->users, 1);
  q->a = a;
  q->call.run = ask_call;
  q->news.run = answered;
  engine_call (a, &q->call);
  return true;
}
