/* gpuraid: look again at slow members, and at reads that have not ended.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>

#include "array/io/xfer.h"
#include "array/seats/seat.h"
#include "array/seats/slow.h"
#include "array/seats/unlocked.h"
#include "array/watch/probe.h"

static void
probe_done (struct array *a, struct xfer *x)
{
  const uint64_t now = engine_now (a);
  struct seat *s = x->seat;
  char name[SEAT_NAME_LEN];

  s->probing = false;
  if (!hedge_end_probe (&a->hedge, &s->hedge, x->len,
                        x->error ? UINT64_MAX : now - x->since, now))
    return;
  log_debug ("%s: it is not slow any more", seat_name (s, name));
  slow_compare (a);
}

static void
start_probe (struct array *a, struct seat *s, uint64_t now)
{
  struct xfer_memory *mem = xfer_memory_new (a, s->probe_len);
  struct xfer *x;

  if (mem == NULL)
    return;
  x = xfer_new (a, s, IO_READ, probe_done);
  x->memory = mem;
  x->buf = mem->p;
  x->len = s->probe_len;
  x->off = layout_data_off (&a->sb.l, s->probe_off);
  s->probing = true;
  s->probe_len = 0;
  hedge_begin_probe (&s->hedge, now);
  xfer_start (a, x);
  xfer_memory_put (x->memory);  /* the transfer has its own reference */
  slow_spend (a, x->len);
  a->counters.member_read_ops++;
  a->counters.member_read_bytes += x->len;
}

/* Reads that have not ended are late too. */
static void
judge_waiting (struct array *a, struct seat *s, uint64_t now)
{
  list_for_each (l, &s->xfers) {
    struct xfer *x = list_item (l, struct xfer, seat_link);
    const uint64_t late = x->timed && !x->judged ?
      hedge_late (&a->hedge, &s->hedge, x->len) : 0;

    if (late == 0 || now - x->since <= late || slow_was_pause (a, x->since))
      continue;
    x->judged = true;
    slow_judge (a, s, true);
  }
}

void
probe_tick (struct array *a, uint64_t now)
{
  a->any_slow = false;
  for (unsigned slot = 0; slot < a->n; slot++) {
    struct seat *s = a->at[slot][0];

    if (s == NULL || s->failing)
      continue;
    judge_waiting (a, s, now);
    if (hedge_wants_probe (&a->hedge, &s->hedge, now) && s->probe_len > 0 &&
        !s->probing)
      start_probe (a, s, now);
    a->any_slow |= s->hedge.slow;
  }
  if (a->any_slow)
    unlocked_close_all (a);
}
