/* gpuraid: how fast a rebuild and a scrub go.
 *
 * While clients are there lines go in bursts: a megabyte or so at once, so that
 * a disk does not seek for each line, and then a rest of four times as long as
 * that took.  So clients keep 80 % of the members' time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/passes/pace.h"
#include "array/seats/unlocked.h"

/* There are clients if one has begun a request this long ago. */
#define CLIENT_NS UINT64_C (50000000)
#define BURST_LEN (1u << 20)            /* bytes of a member */
#define REST 4u                         /* times as long as the burst took */

void
pace_set (struct array *a, uint64_t limit)
{
  a->pace->limit = limit;
  a->pace->next = 0;
}

static bool
has_clients (struct array *a, uint64_t now)
{
  const struct array_counters *c = &a->counters;
  const uint64_t ops = c->read_ops + unlocked_reads (a).ops + c->write_ops +
    c->zero_ops + c->flush_ops;

  if (ops != a->pace->client_ops) {
    a->pace->client_ops = ops;
    a->pace->client_until = now + CLIENT_NS;
  }
  return now < a->pace->client_until;
}

bool
pace_may_begin (struct array *a)
{
  const uint64_t now = engine_now (a);
  const struct pace *p = a->pace;

  if (p->limit > 0 && now < p->next)
    return false;
  if (has_clients (a, now))
    return now >= p->rest_until && p->burst_len < BURST_LEN;
  a->pace->burst_len = 0;                /* the next one counts from there */
  return true;
}

void
pace_begun (struct array *a)
{
  const uint64_t now = engine_now (a);
  struct pace *p = a->pace;

  if (p->burst_len == 0)
    p->burst_since = now;
  p->burst_len += a->cell_len;
  /* What was not used counts for two ticks: a line that waits for the limit is
   * only woken by the next.
   */
  if (p->limit > 0)
    p->next = MAX (p->next, now - MIN (now, 2 * limits.tick_ns)) +
      (uint64_t) ((double) a->cell_len * 1e9 / p->limit);
}

void
pace_ended (struct array *a, unsigned in_flight)
{
  const uint64_t now = engine_now (a);
  struct pace *p = a->pace;

  if (in_flight > 0)
    return;
  p->rest_until = now + REST * (now - p->burst_since);
  p->burst_len = 0;
}
