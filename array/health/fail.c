/* gpuraid: failing members.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "array/engine/state.h"
#include "array/health/event.h"
#include "array/health/fail.h"
#include "array/health/lost.h"
#include "array/health/outcome.h"
#include "array/seats/seat.h"
#include "common/plant.h"

/* A member fails after this number of read errors in about a minute, or after
 * a lost path.  md allows 20 an hour.
 */
#define MAX_READ_ERRORS 20
#define MINUTE_NS UINT64_C (60000000000)

/* True if its slot has another active member. */
static bool
is_doubled (const struct array *a, const struct seat *s)
{
  const struct seat *other = a->at[s->slot][0] == s ?
    a->at[s->slot][1] : a->at[s->slot][0];

  return other && other != s && other->state == SEAT_ACTIVE &&
    !other->failing;
}

const char *
seat_out_text (const struct seat *s)
{
  return s->state == SEAT_SPARE ? "it is no spare any more" :
    "the member is taken out" READD_HINT;
}

bool
seat_can_fail (const struct array *a, const struct seat *s)
{
  struct device_set gone = {{ 0, 0 }};

  if (s->state != SEAT_ACTIVE)
    return true;
  if (!is_doubled (a, s) && nr_good_slots (a) <= a->g.k)
    return false;
  for (unsigned i = 0; i < a->nr_seats; i++)
    if (a->seat[i] == s ||
        (a->seat[i]->failing && a->seat[i]->state != SEAT_IDLE))
      device_set_add (&gone, a->seat[i]->dev);
  return membership_can_lose (&a->membership, &gone);
}

void
seat_take_out (struct array *a, struct seat *s, const char *why)
{
  char name[SEAT_NAME_LEN];

  s->failing = s->failed = true;
  seats_changed (a);
  event_tell (a, ARRAY_EVENT_MEMBER_FAILED, s);
  if (s->state != SEAT_TARGET)
    return;
  log_notice ("%s: no longer rebuilt onto", seat_name (s, name));
  event_change_failed (a, s, outcome_failed (a, s, why));
}

static bool
is_needed (const struct array *a, const struct seat *s)
{
  return s->state == SEAT_ACTIVE && !is_doubled (a, s) &&
    nr_good_slots (a) <= a->g.k;
}

static void
fail_active (struct array *a, struct seat *s, const char *why)
{
  if (is_needed (a, s)) {
    array_set_failed (a, "too many members are lost");
    return;
  }
  seat_take_out (a, s, why);
  if (a->writable || a->opening)
    change_request (a);
}

void
seat_fail (struct array *a, struct seat *s, const char *what, int error)
{
  char name[SEAT_NAME_LEN], why[ARRAY_WHY_LEN];

  if (s->failing)
    return;
  s->nr_errors++;
  if (a->failed || s->state == SEAT_IDLE)
    return;
  if (error)
    log_notice ("%s: %s: %s; %s", seat_name (s, name), what, strerror (error),
                is_needed (a, s) ? "it is not taken out, as too few members "
              "would remain" : seat_out_text (s));
  else
    log_notice ("%s: %s", seat_name (s, name), what);
  snprintf (why, sizeof why, error ? "%s: %s" : "%s", what, strerror (error));
  if (s->state == SEAT_ACTIVE)
    fail_active (a, s, why);
  else {
    seat_take_out (a, s, why);
    change_request (a);
  }
}

void
seat_note_error (struct array *a, struct seat *s, enum io_kind kind,
                 uint64_t off, int error)
{
  static const char *const operation[] = {
    [IO_READ] = "read", [IO_WRITE] = "write", [IO_FLUSH] = "flush",
    [IO_ZERO] = "zero", [IO_TRIM] = "trim",
  };

  if (!s->failing)
    s->last_error = (struct seat_error) {
      .error = error, .operation = operation[kind],
      .has_off = kind != IO_FLUSH, .off = off, .when = engine_now (a),
    };
}

static void
count_read_error (const struct array *a, struct seat *s)
{
  const uint64_t minutes = PLANTED ("member-errors-kept") ? 0 :
    (engine_now (a) - s->read_errors_halved) / MINUTE_NS;

  s->read_errors >>= MIN (minutes, 31);
  s->read_errors_halved += minutes * MINUTE_NS;
  s->read_errors += !PLANTED ("member-errors-uncounted");
}

void
seat_read_error (struct array *a, struct seat *s, int error)
{
  if (s->failing)
    return;
  s->nr_errors++;
  log_debug ("slot %u: %s: read: %s", s->slot, s->m->path, strerror (error));
  count_read_error (a, s);
  if (s->state == SEAT_ACTIVE && nr_good_slots (a) <= a->g.k &&
      !PLANTED ("member-last-ejected"))
    return;
  if (error == ENODEV || error == ENXIO || error == ENOTCONN ||
      error == ESHUTDOWN)
    seat_fail (a, s, "read", error);
  /* Don't drop a member with mostly good data while it is needed: doubtful
   * parity can't replace it, and it has the other blocks of lost rows.
   */
  else if (s->read_errors >= MAX_READ_ERRORS &&
           !(s->state == SEAT_ACTIVE && (a->nr_unsynced > 0 || lost_any (a))))
    seat_fail (a, s, "read", error);
}
