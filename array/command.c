/* gpuraid: commands to a running array.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "array/change/grow.h"
#include "array/change/join.h"
#include "array/change/readd.h"
#include "array/change/shape.h"
#include "array/health/health.h"
#include "array/health/outcome.h"
#include "array/passes/pace.h"
#include "array/passes/pass.h"
#include "array/request/blocking.h"
#include "array/reshape/reshape.h"
#include "array/scrub/scrub.h"
#include "array/seats/seat.h"
#include "array/stores/copies.h"
#include "array/work.h"
#include "raidmap/uuid.h"

/* The place in the device table of a uuid, in text; else SB_MAX_DEVICES. */
static unsigned
find_uuid (const struct array *a, const char *text)
{
  uuid_bytes uuid;
  int dev = -1;

  if (uuid_parse (text, &uuid) == 0)
    dev = membership_find (a->membership.device, &uuid);
  return dev == -1 ? SB_MAX_DEVICES : (unsigned) dev;
}

/* The seat in use of a place in the device table, or NULL. */
static struct seat *
seat_at (const struct array *a, unsigned dev)
{
  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct seat *s = a->seat[i];

    if (s->m && s->state != SEAT_IDLE && s->dev == dev && !s->failing)
      return s;
  }
  return NULL;
}

/* Find a member by slot number, uuid or path.  A rebuild's target is not found
 * by its slot if that has an active member as well.
 */
static struct seat *
find_seat (struct array *a, const char *which, unsigned *slot)
{
  const unsigned dev = find_uuid (a, which);
  char *end;
  const unsigned long n = strtoul (which, &end, 10);

  *slot = SLOT_NONE;
  if (*which && *end == '\0') {
    if (n >= a->n)
      return NULL;
    *slot = n;
    return a->at[n][0] ? a->at[n][0] : a->at[n][1];
  }
  if (dev < SB_MAX_DEVICES) {
    *slot = a->membership.device[dev].slot;
    return seat_at (a, dev);
  }
  for (unsigned i = a->nr_seats; i-- > 0; ) {
    struct seat *s = a->seat[i];

    if (s->m && s->state != SEAT_IDLE && strcmp (s->m->path, which) == 0) {
      *slot = s->slot;
      return s;
    }
  }
  for (unsigned i = 0; i < a->n; i++)
    if (a->slot_path[i] && strcmp (a->slot_path[i], which) == 0)
      *slot = i;
  for (unsigned i = 0; i < a->nr_seats && *slot == SLOT_NONE; i++)
    if (a->seat[i]->m && strcmp (a->seat[i]->m->path, which) == 0)
      *slot = a->seat[i]->slot;
  return NULL;
}

static int
make_writable (struct array *a, int (*make) (struct array *a),
               char why[ARRAY_WHY_LEN])
{
  int err = make (a);

  if (err)
    snprintf (why, ARRAY_WHY_LEN, "the array can't be written: %s",
              strerror (err));
  return err;
}

/* Was the member of this slot taken out?  One that was only missing would come
 * back at the next start.
 */
static bool
is_out (const struct array *a, unsigned slot)
{
  bool failed = false, missing = false;

  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++) {
    const struct device *d = &a->membership.device[dev];

    if (d->state != DEVICE_NONE && d->slot == slot) {
      failed |= d->state == DEVICE_FAILED;
      missing |= d->state == DEVICE_MISSING;
    }
  }
  return failed && !missing;
}

int
array_fail (struct array *a, const char *which, bool *already,
            char why[ARRAY_WHY_LEN])
{
  struct request r;
  unsigned slot, dev;
  bool spare;
  int err = make_writable (a, array_serve_writer, why);

  if (err)
    return err;
  request_init (&r, a, REQUEST_COMMAND);
  r.command.kind = COMMAND_FAIL;
  r.command.why = why;
  engine_lock (a);
  r.command.seat = find_seat (a, which, &slot);
  dev = find_uuid (a, which);
  spare = dev < SB_MAX_DEVICES && seat_spare_is_missing (a, dev);
  if (spare)
    r.command.uuid = a->membership.device[dev].uuid;
  *already = r.command.seat == NULL && !spare && slot != SLOT_NONE &&
    is_out (a, slot);
  engine_unlock (a);
  if (*already)
    return 0;
  if (r.command.seat == NULL && !spare) {
    snprintf (why, ARRAY_WHY_LEN, slot == SLOT_NONE ?
              "%s: no such member (gpuraid status lists them)" :
              "%s: the member is not there: gpuraid replace takes its slot",
              which);
    return EINVAL;
  }
  err = request_block (&r);
  *already = r.command.already;
  return err;
}

/* Takes over target. */
static int
add_member (struct request *r, struct member *target,
            char why[ARRAY_WHY_LEN])
{
  const uint64_t need = array_member_size (r->a);
  int err = EINVAL;

  r->command.why = why;
  r->command.target = target;
  if (target->ops->size (target) < need)
    snprintf (why, ARRAY_WHY_LEN, "%s: too small, %" PRIu64
              " bytes are needed", target->path, need);
  else if (copies_new_uuid (&r->command.uuid) == -1)
    snprintf (why, ARRAY_WHY_LEN, "no random numbers");
  else
    err = request_block (r);
  member_close (r->command.target);     /* NULL if the array has taken it */
  return err;
}

int
array_replace (struct array *a, const char *which, struct member *target,
               char why[ARRAY_WHY_LEN])
{
  struct request r;
  int err = make_writable (a, array_make_writable, why);

  if (err) {
    member_close (target);
    return err;
  }
  request_init (&r, a, REQUEST_COMMAND);
  r.command.kind = COMMAND_REPLACE;
  engine_lock (a);
  find_seat (a, which, &r.command.slot);
  engine_unlock (a);
  if (r.command.slot == SLOT_NONE) {
    snprintf (why, ARRAY_WHY_LEN, "%s: no such member (gpuraid status lists "
              "them)", which);
    member_close (target);
    return EINVAL;
  }
  return add_member (&r, target, why);
}

int
array_spare (struct array *a, struct member *target, char why[ARRAY_WHY_LEN])
{
  struct request r;
  int err = make_writable (a, array_make_writable, why);

  if (err) {
    member_close (target);
    return err;
  }
  request_init (&r, a, REQUEST_COMMAND);
  r.command.kind = COMMAND_SPARE;
  return add_member (&r, target, why);
}

int
array_may_add (struct array *a, bool data, char why[ARRAY_WHY_LEN])
{
  int err;

  engine_lock (a);
  err = shape_may_begin (a, data, why);
  engine_unlock (a);
  return err;
}

int
array_add_parity (struct array *a, struct member *target,
                  char why[ARRAY_WHY_LEN])
{
  struct request r;
  int err = array_may_add (a, false, why);

  if (err == 0)
    err = make_writable (a, array_make_writable, why);
  if (err) {
    member_close (target);
    return err;
  }
  request_init (&r, a, REQUEST_COMMAND);
  r.command.kind = COMMAND_PARITY;
  return add_member (&r, target, why);
}

/* The uuid of a spare that is there. */
static bool
find_spare (struct array *a, const char *which, uuid_bytes *uuid)
{
  const struct seat *s;
  unsigned slot;
  bool found;

  engine_lock (a);
  s = find_seat (a, which, &slot);
  found = s && s->state == SEAT_SPARE && !s->failing;
  if (found)
    *uuid = s->uuid;
  engine_unlock (a);
  return found;
}

bool
array_has_spare (struct array *a, const char *which)
{
  uuid_bytes uuid;

  return find_spare (a, which, &uuid);
}

static int
widen (struct array *a, const uuid_bytes *spare, char why[ARRAY_WHY_LEN])
{
  struct request r;

  request_init (&r, a, REQUEST_COMMAND);
  r.command.kind = COMMAND_WIDEN;
  r.command.uuid = *spare;
  r.command.why = why;
  return request_block (&r);
}

int
array_widen_to (struct array *a, const char *spare, char why[ARRAY_WHY_LEN])
{
  uuid_bytes uuid;
  int err = array_may_add (a, true, why);

  if (err == 0)
    err = make_writable (a, array_make_writable, why);
  if (err)
    return err;
  if (find_spare (a, spare, &uuid))
    return widen (a, &uuid, why);
  snprintf (why, ARRAY_WHY_LEN, "%s: no such spare", spare);
  return EINVAL;
}

int
array_widen (struct array *a, struct member *target, char why[ARRAY_WHY_LEN])
{
  struct request r;
  int err = array_may_add (a, true, why);

  if (err == 0)
    err = make_writable (a, array_make_writable, why);
  if (err) {
    member_close (target);
    return err;
  }
  request_init (&r, a, REQUEST_COMMAND);
  r.command.kind = COMMAND_SPARE;
  err = add_member (&r, target, why);
  if (err)
    return err;
  err = widen (a, &r.command.uuid, why);
  if (err) {
    const size_t len = strlen (why);

    snprintf (why + len, ARRAY_WHY_LEN - len, "; it is a spare now");
  }
  return err;
}

bool
array_has_idle (struct array *a, const char *path)
{
  bool has;

  engine_lock (a);
  has = readd_find_idle (a, path) != NULL;
  engine_unlock (a);
  return has;
}

void
array_close_idle (struct array *a, const char *path)
{
  member_close (readd_take_idle (a, path));
}

bool
array_is_closing (struct array *a, const char *path)
{
  bool is = false;

  engine_lock (a);
  for (unsigned i = 0; i < a->nr_seats; i++) {
    const struct seat *s = a->seat[i];

    is |= s->m && s->failing && strcmp (s->m->path, path) == 0;
  }
  engine_unlock (a);
  return is;
}

/* Refuse what can be refused before the array is written to. */
int
array_readd (struct array *a, const char *path, struct member *m, bool *full,
             char why[ARRAY_WHY_LEN])
{
  char text[MEMBERSHIP_TEXT_LEN];
  struct readd *rd = NULL;
  struct request r;
  int err = EINVAL;

  if (m && (rd = readd_new (a, m, text)) == NULL)
    goto refused;
  err = array_make_writable (a);
  if (err) {
    snprintf (text, sizeof text, "the array can't be written: %s",
              strerror (err));
    goto refused;
  }
  err = EINVAL;
  if (m == NULL && (m = readd_take_idle (a, path)) == NULL) {
    snprintf (text, sizeof text, "%s: in use already: there is nothing to do",
              path);
    goto refused;
  }
  if (rd == NULL && (rd = readd_new (a, m, text)) == NULL)
    goto refused;
  request_init (&r, a, REQUEST_COMMAND);
  r.command.kind = COMMAND_READD;
  r.command.why = why;
  r.command.target = m;
  r.command.back = rd;
  err = request_block (&r);
  m = r.command.target;                 /* NULL if the array has taken it */
  *full = r.command.full;
  goto out;

 refused:
  snprintf (why, ARRAY_WHY_LEN, "%.*s", ARRAY_WHY_LEN - 1, text);
 out:
  readd_free (rd);
  member_close (m);
  return err;
}

uint64_t
array_member_size (struct array *a)
{
  uint64_t size;

  engine_lock (a);
  size = a->member_size;
  engine_unlock (a);
  return size;
}

void
array_get_layout (struct array *a, struct member_layout *l)
{
  engine_lock (a);
  *l = a->sb.l;
  engine_unlock (a);
}

bool
array_shares_store (struct array *a, struct member *m)
{
  bool used = false;

  engine_lock (a);
  for (unsigned i = 0; i < a->nr_seats; i++) {
    struct member *own = a->seat[i]->m;

    used |= own && own->ops->same (own, m);
  }
  engine_unlock (a);
  return used;
}

/* Does a rebuild wait for the first connection that may write?  Until then its
 * target has no seat.
 */
static bool
target_waits (const struct array *a)
{
  for (unsigned dev = 0; dev < SB_MAX_DEVICES && !a->writable; dev++)
    if (a->membership.device[dev].state == DEVICE_REBUILDING)
      return true;
  return false;
}

static void
tell_failed (struct array *a, uint64_t since, char failed[ARRAY_WHY_LEN])
{
  const char *text = outcome_take (a, since);

  if (text)
    memcpy (failed, text, ARRAY_WHY_LEN);
}

/* Is something under way that array_wait waits for? */
static bool
is_busy (struct array *a, unsigned reasons)
{
  const bool paused = pass_is_paused (a);
  unsigned slot;

  return join_find_spare (a, &slot) != NULL ||
    (!a->failed &&
     ((a->writable && ((pass_is_wanted (a) && !paused) || a->change ||
                       a->change_wanted || reshape_goes_on (a))) ||
      (scrub_is_running (a) && !paused) ||
      (a->resumes && (work_waits (a) || (a->open_wanted && !a->writable))) ||
      (reasons & ARRAY_WHY_STALLED)));
}

int
array_wait (struct array *a, bool *healthy, char failed[ARRAY_WHY_LEN],
            bool (*cancelled) (void *), void *opaque)
{
  const struct timespec pause = { .tv_nsec = 100000000 };
  enum array_state state;
  unsigned reasons;
  uint64_t since;
  bool busy;

  failed[0] = '\0';
  engine_lock (a);
  since = outcome_mark (a);
  engine_unlock (a);
  for (;;) {
    engine_lock (a);
    state = health (a, &reasons);
    busy = is_busy (a, reasons);
    *healthy = state == ARRAY_HEALTHY && !busy &&
      (a->irregular_slots & ~seats_first_slot (a)) == 0 &&
      !target_waits (a);
    if (!busy)
      tell_failed (a, since, failed);
    engine_unlock (a);
    if (!busy)
      return 0;
    if (cancelled && cancelled (opaque))
      return ESHUTDOWN;
    nanosleep (&pause, NULL);
  }
}

/* The state of the scrub is in the superblocks. */
static int
save (struct array *a, char why[ARRAY_WHY_LEN])
{
  struct request r;
  int err;

  request_init (&r, a, REQUEST_SAVE);
  err = request_block (&r);
  if (err)
    snprintf (why, ARRAY_WHY_LEN, "too few members are left");
  return err;
}

static int
cancel_shape (struct array *a, bool data, char why[ARRAY_WHY_LEN])
{
  struct request r;

  request_init (&r, a, REQUEST_COMMAND);
  r.command.kind = data ? COMMAND_WIDEN_CANCEL : COMMAND_PARITY_CANCEL;
  r.command.why = why;
  return request_block (&r);
}

int
array_shape_control (struct array *a, bool data,
                     enum array_shape_command command,
                     char why[ARRAY_WHY_LEN])
{
  int err;

  engine_lock (a);
  err = shape_is_added (a, data, why);
  engine_unlock (a);
  if (err == 0)
    err = make_writable (a, array_make_writable, why);
  if (err || command == ARRAY_SHAPE_CANCEL)
    return err ? err : cancel_shape (a, data, why);
  engine_lock (a);
  err = shape_pause (a, data, command == ARRAY_SHAPE_PAUSE, why);
  engine_unlock (a);
  return err ? err : save (a, why);
}

int
array_scrub_start (struct array *a, bool repair, char why[ARRAY_WHY_LEN])
{
  int err = repair ? make_writable (a, array_make_writable, why) : 0;

  if (err)
    return err;
  engine_lock (a);
  err = scrub_start (a, repair, why);
  engine_unlock (a);
  return err ? err : save (a, why);
}

int
array_scrub_control (struct array *a, enum array_scrub_command command,
                     char why[ARRAY_WHY_LEN])
{
  bool interrupted;
  int err = 0;

  engine_lock (a);
  interrupted = scrub_is_interrupted (a) && !a->readonly;
  engine_unlock (a);
  if (interrupted)
    err = make_writable (a, array_make_writable, why);
  if (err)
    return err;
  engine_lock (a);
  err = scrub_control (a, command, why);
  engine_unlock (a);
  return err ? err : save (a, why);
}

int
array_rebuild_pause (struct array *a, bool pause, char why[ARRAY_WHY_LEN])
{
  int err;

  engine_lock (a);
  err = pass_pause (a, pause, why);
  engine_unlock (a);
  return err;
}

void
array_set_rate (struct array *a, uint64_t limit)
{
  engine_lock (a);
  pace_set (a, limit);
  engine_unlock (a);
}

int
array_grow (struct array *a, struct array_growth *growth,
            bool (*cancelled) (void *), void *opaque, char why[ARRAY_WHY_LEN])
{
  const struct timespec pause = { .tv_nsec = 20000000 };
  bool running;
  int err;

  grow_ask_sizes (a, true);
  engine_lock (a);
  err = grow_may_gain (a, why);
  engine_unlock (a);
  if (err == 0)
    err = make_writable (a, array_make_writable, why);
  if (err)
    return err;
  engine_lock (a);
  err = grow_start (a, why);
  engine_unlock (a);
  if (err)
    return err;
  for (;;) {
    engine_lock (a);
    running = grow_is_running (a);
    if (!running)
      err = grow_result (a, growth, why);
    else if (cancelled && cancelled (opaque)) {
      grow_cancel (a);
      snprintf (why, ARRAY_WHY_LEN, "cancelled");
      err = ESHUTDOWN;
    }
    engine_unlock (a);
    if (!running || err)
      return err;
    nanosleep (&pause, NULL);
  }
}
