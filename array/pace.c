/* gpuraid: how fast a rebuild and a scrub go.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/pace.h"
#include "array/state.h"

/* There are clients if one has begun a request this long ago. */
#define CLIENT_NS UINT64_C (50000000)

void
pace_set (struct array *a, uint64_t limit)
{
  a->pace.limit = limit;
  a->pace.next = 0;
}

bool
pace_allows (struct array *a, uint64_t now)
{
  a->pace.held = a->pace.limit > 0 && now < a->pace.next;
  return !a->pace.held;
}

/* What was not used counts for two ticks: one that waits is only woken by the
 * next.
 */
void
pace_begun (struct array *a, uint64_t now)
{
  struct pace *p = &a->pace;

  if (p->limit == 0)
    return;
  p->next = MAX (p->next, now - MIN (now, 2 * limits.tick_ns)) +
    (uint64_t) ((double) a->cell_len * 1e9 / p->limit);
}

bool
pace_has_clients (struct array *a, uint64_t now)
{
  const struct array_counters *c = &a->counters;
  const uint64_t ops = c->read_ops + c->write_ops + c->zero_ops + c->flush_ops;

  if (ops != a->pace.client_ops) {
    a->pace.client_ops = ops;
    a->pace.client_until = now + CLIENT_NS;
  }
  return now < a->pace.client_until;
}

bool
pace_wants_tick (const struct array *a)
{
  return a->pace.held && !a->failed && !a->stopping;
}
