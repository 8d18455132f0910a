/* gpuraid: members that keep clients waiting.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/health/event.h"
#include "array/io/store.h"
#include "array/io/xfer.h"
#include "array/seats/seat.h"
#include "array/watch/stalled.h"

/* Longer than a disk needs to spin up, or a queue of large requests. */
#define STALLED_NS UINT64_C (5000000000)

void
stalled_note_preads (struct seat *s, unsigned newest, unsigned oldest,
                     uint64_t now)
{
  /* What was late in the count that is used again has been answered. */
  if (seat_preads (s, newest) == 0)
    s->pread_late[newest] = 0;
  if (seat_preads (s, oldest) == 0)
    s->pread_late[oldest] = 0;
  else if (s->pread_late[oldest] == 0)
    s->pread_late[oldest] = now;
}

/* Since when it owes an answer to a read: ns; never: now. */
static uint64_t
owes_read (const struct seat *s, uint64_t now)
{
  uint64_t since = now;

  list_for_each (l, &s->xfers) {
    const struct xfer *x = list_item (l, struct xfer, seat_link);

    if (!x->abandoned && x->kind == IO_READ)
      since = MIN (since, x->since);
  }
  for (unsigned i = 0; i < SEAT_PREADS; i++)
    if (s->pread_late[i] && seat_preads (s, i) > 0)
      since = MIN (since, s->pread_late[i]);
  return since;
}

/* Likewise to all else, and has given no other. */
static uint64_t
owes_write (const struct seat *s, uint64_t now)
{
  uint64_t since = now;

  list_for_each (l, &s->xfers) {
    const struct xfer *x = list_item (l, struct xfer, seat_link);

    if (!x->abandoned && x->kind != IO_READ)
      since = MIN (since, MAX (x->since, s->answered));
  }
  list_for_each (l, &s->stores) {
    const struct store *st = list_item (l, struct store, link);

    if (!st->abandoned)
      since = MIN (since, MAX (st->since, s->answered));
  }
  return since;
}

static uint64_t
if_stalled (uint64_t since, uint64_t now)
{
  return now - since >= STALLED_NS ? since : 0;
}

void
stalled_tick (struct array *a, uint64_t now)
{
  a->any_stalled = false;
  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct seat *s = a->seat[i];
    const bool before = s->read_stalled || s->write_stalled;

    s->read_stalled = s->write_stalled = 0;
    if (s->m == NULL || s->failing)
      continue;
    s->read_stalled = if_stalled (owes_read (s, now), now);
    s->write_stalled = if_stalled (owes_write (s, now), now);
    if (s->read_stalled == 0 && s->write_stalled == 0)
      continue;
    a->any_stalled = true;
    if (!before)
      event_stalled (a, s);
  }
}
