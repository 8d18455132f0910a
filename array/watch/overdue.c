/* gpuraid: members that do not answer.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>

#include "array/health/fail.h"
#include "array/io/store.h"
#include "array/io/xfer.h"
#include "array/seats/seat.h"
#include "array/seats/unlocked.h"
#include "array/watch/ask.h"
#include "array/watch/overdue.h"
#include "array/watch/stalled.h"
#include "common/plant.h"

/* One turn; a read that has not ended after two (a second) is overdue. */
#define PREAD_NS UINT64_C (500000000)
/* What came while this process did not run is read in this time. */
#define CATCH_UP_NS UINT64_C (1000000000)

static bool
has_preads (const struct array *a)
{
  for (unsigned i = 0; i < a->nr_seats; i++)
    for (unsigned j = 0; j < SEAT_PREADS; j++)
      if (seat_preads (a->seat[i], j) > 0)
        return true;
  return false;
}

/* Without reads the ticks may end.  Then none must begin unseen. */
static void
look_for_preads (struct array *a)
{
  a->any_pread = has_preads (a);
  if (a->any_pread)
    return;
  unlocked_close_all (a);
  a->any_pread = has_preads (a);
}

/* Reads that are in the oldest count began at least two turns ago. */
static void
check_preads (struct array *a, uint64_t now)
{
  if (now - a->pread_since < PREAD_NS)
    return;
  a->pread_since = now;
  a->pread_now = (a->pread_now + 1) % SEAT_PREADS;
  look_for_preads (a);
  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct seat *s = a->seat[i];
    const unsigned oldest = (a->pread_now + 1) % SEAT_PREADS;

    stalled_note_preads (s, a->pread_now, oldest, now);
    if (!s->suspect && seat_preads (s, oldest) > 0) {
      log_debug ("slot %u: a read is overdue, reads avoid it", s->slot);
      unlocked_close (a, s);
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

/* Note which are overdue.  True if any is. */
static bool
note_overdue (struct array *a, uint64_t now)
{
  bool any = false, news = false;

  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct seat *s = a->seat[i];
    const bool before = s->overdue;
    struct late late;

    s->overdue = may_be_overdue (s) && is_overdue (a, s, now, &late);
    any |= s->overdue;
    news |= s->overdue && !before;
  }
  if (any)
    ask_others (a, news, now);
  return any;
}

enum others { ENOUGH, TOO_FEW, UNKNOWN };

/* If more are overdue, silent or away than can fail, the fault is in something
 * they share: wait for all of them.  The first of them to be overdue would be
 * taken out, if the others did not count before they are overdue.
 */
static enum others
are_others_there (const struct array *a, uint64_t now)
{
  unsigned nr = 0, nr_open = 0;

  for (unsigned i = 0; i < a->nr_seats; i++) {
    const struct seat *s = a->seat[i];

    if (!may_be_overdue (s) || s->state != SEAT_ACTIVE)
      continue;
    if (s->overdue || atomic_load (&s->m->away))
      nr++;
    else
      switch (ask_answer (a, s, now)) {
      case ASK_OPEN: nr_open++; break;
      case ASK_THERE: break;
      case ASK_SILENT: nr++; break;
      }
  }
  return nr_good_slots (a) < a->g.k + nr ? TOO_FEW :
    nr_good_slots (a) < a->g.k + nr + nr_open ? UNKNOWN : ENOUGH;
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

/* Answers that wait are read before a member is judged for having none. */
static bool
catches_up (const struct array *a, uint64_t now)
{
  const uint64_t paused = loop_paused (a->loop);

  return paused > 0 && now < paused + CATCH_UP_NS && !PLANTED ("pause-judged");
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

static void
take_out (struct array *a, struct seat *s, uint64_t now)
{
  struct late late;

  if (!is_overdue (a, s, now, &late))
    return;
  seat_note_error (a, s, late.kind, late.off, ETIMEDOUT);
  seat_fail (a, s, "no answer to a write or flush", ETIMEDOUT);
}

static void
judge (struct array *a, uint64_t now)
{
  const enum others others = note_overdue (a, now) ?
    are_others_there (a, now) : ENOUGH;

  if (others == TOO_FEW)
    a->overdue_waited = now;
  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct seat *s = a->seat[i];
    const bool can_fail = others != TOO_FEW && seat_can_fail (a, s);

    if (!s->overdue)
      s->waited_for = false;
    else if (!can_fail || was_waiting (a, now))
      wait_for (s, !can_fail);
    else if (others == ENOUGH)
      take_out (a, s, now);
  }
}

void
overdue_tick (struct array *a, uint64_t now)
{
  check_preads (a, now);
  if (!catches_up (a, now)) {
    judge (a, now);
    stalled_tick (a, now);
  }
  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct seat *s = a->seat[i];

    if (has_overdue_read (s, now)) {
      unlocked_close (a, s);
      s->suspect = true;
    }
    if (s->suspect && !owes_a_read (s))
      s->suspect = false;       /* the overdue answer has come */
  }
  seats_close_retired (a);
}

void
overdue_abandon_failing (struct array *a)
{
  for (unsigned i = 0; a->any_failing && i < a->nr_seats; i++) {
    struct seat *s = a->seat[i];

    if (s->failing && !PLANTED ("hang-waits") &&
        (atomic_load (&s->users) > 0 || xfers_want_space (a, s) ||
         stores_want_space (a, s))) {
      xfers_abandon (a, s, ENODEV);
      stores_abandon (a, s, ENODEV);
      atomic_store (&s->m->unused, true);
    }
  }
}
