/* gpuraid: members that became longer in place.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/change/grow.h"

static void
ask (struct member *m, bool wait)
{
  if (m->ops->look_size)
    m->ops->look_size (m);
  else if (m->ops->ask_size && wait)
    m->ops->ask_size (m);
}

void
grow_ask_sizes (struct array *a, bool wait)
{
  struct {
    struct seat *s;
    struct member *m;           /* its; open while the seat has a user */
  } asked[MAX_SEATS];
  unsigned nr = 0;

  engine_lock (a);
  for (unsigned i = 0; i < a->nr_seats && !a->stopping; i++) {
    struct seat *s = a->seat[i];

    if (s->m == NULL || s->failing || s->state == SEAT_IDLE)
      continue;
    atomic_fetch_add (&s->users, 1);
    asked[nr].s = s;
    asked[nr++].m = s->m;
  }
  engine_unlock (a);
  for (unsigned i = 0; i < nr; i++)
    ask (asked[i].m, wait);
  engine_lock (a);
  for (unsigned i = 0; i < nr; i++)
    atomic_fetch_sub (&asked[i].s->users, 1);
  engine_unlock (a);
}
