/* gpuraid: members that do not answer.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>

#include "array/fail.h"
#include "array/overdue.h"
#include "array/seat.h"
#include "array/space-retry.h"
#include "array/store.h"
#include "array/xfer.h"
#include "common/plant.h"

/* One turn; a read that has not ended after two (a second) is overdue. */
#define PREAD_NS UINT64_C (500000000)
#define MINUTE_NS UINT64_C (60000000000)

/* Reads that are in the oldest count began at least two turns ago. */
static void
check_preads (struct array *a, uint64_t now)
{
  if (now - a->pread_since < PREAD_NS)
    return;
  a->pread_since = now;
  a->pread_now = (a->pread_now + 1) % SEAT_PREADS;
  a->any_pread = false;
  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct seat *s = a->seat[i];
    const unsigned oldest = (a->pread_now + 1) % SEAT_PREADS;

    for (unsigned j = 0; j < SEAT_PREADS; j++)
      a->any_pread |= seat_preads (s, j) > 0;
    if (!s->suspect && seat_preads (s, oldest) > 0) {
      log_debug ("slot %u: a read is overdue, reads go round it", s->slot);
      s->suspect = true;
    }
  }
}

/* The timeout of a transfer; zeroes get more time for their length. */
static uint64_t
xfer_timeout (const struct array *a, const struct xfer *x)
{
  const uint64_t second = UINT64_C (1000000000);

  return a->timeout_ns + (x->kind == IO_ZERO || x->kind == IO_TRIM ?
                          x->len / (16 * MIB) * second : 0);
}

struct late {
  enum io_kind kind;
  uint64_t off;                 /* bytes on the member */
};

/* True if a write or flush is overdue. */
static bool
is_overdue (const struct array *a, const struct seat *s, uint64_t now,
            struct late *late)
{
  list_for_each (l, &s->xfers) {
    const struct xfer *x = list_item (l, struct xfer, seat_link);

    *late = (struct late) { x->kind, x->off };
    if (x->kind != IO_READ && !x->abandoned &&
        now > MAX (x->since, s->answered) + xfer_timeout (a, x))
      return true;
  }
  list_for_each (l, &s->stores) {
    const struct store *st = list_item (l, struct store, link);

    *late = (struct late) { IO_WRITE, st->off[0] };
    if (!st->abandoned &&
        now > MAX (st->since, s->answered) + a->timeout_ns)
      return true;
  }
  return false;
}

static bool
may_be_overdue (const struct seat *s)
{
  return s->m && !s->failing && s->state != SEAT_IDLE;
}

/* If more are overdue, or away, than can fail, the fault is in something they
 * share: wait for all of them.  The first of them to be overdue would be taken
 * out, if those without a connection did not count before they are overdue.
 */
static bool
too_many_overdue (const struct array *a, uint64_t now)
{
  struct late late;
  bool any = false;
  unsigned nr = 0;

  for (unsigned i = 0; i < a->nr_seats; i++) {
    const struct seat *s = a->seat[i];

    if (!may_be_overdue (s) || s->state != SEAT_ACTIVE)
      continue;
    if (is_overdue (a, s, now, &late)) {
      any = true;
      nr++;
    }
    else
      nr += atomic_load (&s->m->away);
  }
  return any && nr_good_slots (a) < a->g.k + nr;
}

/* True if a read was abandoned or hedged, and has not ended in a second. */
static bool
has_overdue_read (const struct seat *s, uint64_t now)
{
  list_for_each (l, &s->xfers) {
    const struct xfer *x = list_item (l, struct xfer, seat_link);

    if (x->kind == IO_READ && (x->abandoned || x->hedged) &&
        now > x->since + 2 * PREAD_NS)
      return true;
  }
  return false;
}

/* True if a read was abandoned, or is slow in a client's thread. */
static bool
owes_a_read (const struct seat *s)
{
  list_for_each (l, &s->xfers)
    if (list_item (l, struct xfer, seat_link)->abandoned)
      return true;
  for (unsigned i = 0; i < SEAT_PREADS; i++)
    if (seat_preads (s, i) > 0)
      return true;
  return false;
}

/* They come back one after another, so the last of them are not taken out as
 * soon as enough others are there.
 */
static bool
was_waiting (const struct array *a, uint64_t now)
{
  return a->overdue_waited > 0 && now < a->overdue_waited + a->timeout_ns;
}

static void
wait_for (struct seat *s, bool too_few)
{
  char name[SEAT_NAME_LEN];

  if (too_few && !s->waited_for && s->state == SEAT_ACTIVE)
    log_notice ("%s: no answer to a write or flush; it is waited for, as too "
                "few members would remain without it", seat_name (s, name));
  s->waited_for = true;
}

void
overdue_tick (struct array *a, uint64_t now)
{
  const bool minute = now - a->last_minute >= MINUTE_NS;
  const bool wait = too_many_overdue (a, now);
  struct late late;

  if (wait)
    a->overdue_waited = now;
  check_preads (a, now);
  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct seat *s = a->seat[i];
    const bool can_fail = !wait && seat_can_fail (a, s);

    if (!may_be_overdue (s) || !is_overdue (a, s, now, &late))
      s->waited_for = false;
    else if (!can_fail || was_waiting (a, now))
      wait_for (s, !can_fail);
    else {
      seat_note_error (a, s, late.kind, late.off, ETIMEDOUT);
      seat_fail (a, s, "no answer to a write or flush", ETIMEDOUT);
    }
    s->suspect |= has_overdue_read (s, now);
    if (s->suspect && !owes_a_read (s))
      s->suspect = false;       /* the overdue answer has come */
    if (minute)
      s->read_errors /= 2;
  }
  if (minute)
    a->last_minute = now;
  seats_close_retired (a);
}

void
overdue_abandon_failing (struct array *a)
{
  for (unsigned i = 0; a->any_failing && i < a->nr_seats; i++) {
    struct seat *s = a->seat[i];

    if (s->failing && !PLANTED ("hang-waits") &&
        (atomic_load (&s->users) > 0 || space_is_wanted (a, s))) {
      xfers_abandon (a, s, ENODEV);
      stores_abandon (a, s, ENODEV);
      atomic_store (&s->m->unused, true);
    }
  }
}
