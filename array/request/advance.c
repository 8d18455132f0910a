/* gpuraid: a client's request, from start to end.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <string.h>

#include "array/change/change.h"
#include "array/engine/consistency.h"
#include "array/engine/state.h"
#include "array/io/superblock.h"
#include "array/request/internal.h"
#include "array/request/writeback.h"
#include "common/plant.h"

static void
count (struct array *a, struct request *r)
{
  struct array_counters *c = &a->counters;

  if (r->counted)
    return;
  r->counted = true;
  switch (r->kind) {
  case REQUEST_READ:
    c->read_ops++;
    c->read_bytes += r->len;
    break;
  case REQUEST_WRITE:
    c->write_ops++;
    c->write_bytes += r->len;
    break;
  case REQUEST_ZERO:
    c->zero_ops++;
    c->zero_bytes += r->len;
    break;
  case REQUEST_FLUSH:
    c->flush_ops++;
    break;
  default:
    break;
  }
  if (r->flags & ARRAY_FUA)
    c->fua_ops++;
}

/* With the array lock held: what is next is the client's part. */
static bool
is_for_client (const struct request *r)
{
  return r->phase == R_COPY || r->phase == R_COPY_OPS || r->phase == R_DONE;
}

static void
decide (struct array *a, struct request *r)
{
  request_advance (a, r);
  r->asleep = !is_for_client (r);
  if (r->phase == R_DONE || r->phase == R_COPY)
    count (a, r);
}

static void
copy_for_client (struct call *call)
{
  struct request *r = list_item (call, struct request, copy_call);

  request_copy (r);
  engine_post (r->a, &r->ask);
}

/* A client that sleeps would have to be woken for this, and ask again: to copy
 * a few pages takes less time than that.
 */
#define COPIED_MAX_LEN (4 * BLOCK_LEN)

static bool
is_copied (const struct request *r)
{
  return r->phase == R_COPY && r->kind != REQUEST_READ && r->nr_fills == 0 &&
    r->batch_end - r->pos <= COPIED_MAX_LEN;
}

static void
decide_for_client (struct array *a, struct request *r)
{
  decide (a, r);
  if (r->asleep)
    return;
  if (is_copied (r))
    engine_call (a, &r->copy_call);
  else {
    r->decided = true;
    engine_wake (a, &r->wake_call);
  }
}

static void
request_retry (struct array *a, struct waiter *w)
{
  struct request *r = list_item (w, struct request, waiter);

  /* Its client is running, and will look again. */
  if (r->asleep)
    decide_for_client (a, r);
}

/* Another thread had the array lock. */
static void
asked (struct array *a, struct news *n)
{
  decide_for_client (a, list_item (n, struct request, ask));
}

static void
wake_client (struct call *call)
{
  struct request *r = list_item (call, struct request, wake_call);

  r->wake (r);
}

void
request_init (struct request *r, struct array *a, enum request_kind kind)
{
  memset (r, 0, offsetof (struct request, step));
  r->a = a;
  r->kind = kind;
  r->waiter.run = request_retry;
  r->ask.run = asked;
  r->wake_call.run = wake_client;
  r->copy_call.run = copy_for_client;
  list_init (&r->waiter.link);
  list_init (&r->flush_link);
  list_init (&r->held_link);
  r->reads.waiter = r->stable.waiter = &r->waiter;
  r->command.whole.waiter = &r->waiter;
  list_init (&r->command.link);
}

/* Wait for data that is dirty or being written now, not for data written
 * later; then for a flush of the members.
 */
static void
flush_start (struct array *a, struct request *r)
{
  if (a->failed && !PLANTED ("member-failed-acks")) {
    request_fail (r, EIO);
    return;
  }
  tickets_take (a, &r->stable, r->flags & ARRAY_WAIT);
  r->phase = R_STABLE;
}

static void
start (struct array *a, struct request *r)
{
  switch (r->kind) {
  case REQUEST_READ: read_start (a, r); break;
  case REQUEST_WRITE: write_start (a, r, r->len); break;
  case REQUEST_ZERO: zero_start (a, r); break;
  case REQUEST_FLUSH: flush_start (a, r); break;
  case REQUEST_SAVE: r->phase = R_SAVE; break;
  case REQUEST_COMMAND:
    r->phase = R_CHANGE;
    change_command (a, &r->command);
    break;
  }
}

/* Steps whose operations have not ended. */
static void
look (struct array *a, struct request *r)
{
  if (r->kind == REQUEST_READ ? read_look (a, r) : write_look (a, r))
    r->phase = R_COPY_OPS;
}

/* A batch is done: start the next one, or end. */
static void
commit (struct array *a, struct request *r)
{
  if (r->kind == REQUEST_READ)
    read_commit (a, r);
  else
    write_commit (a, r);
  if (r->error) {
    request_fail (r, r->error);
    return;
  }
  r->pos = r->batch_end;
  if (r->pos < r->len) {
    r->phase = R_START;
    return;
  }
  if (r->kind == REQUEST_READ)
    r->phase = R_DONE;
  else
    r->phase = R_STABLE;
}

static void
stable (struct array *a, struct request *r)
{
  if (r->stable.pending > 0)
    return;
  /* Part of it may have been written out before the rest, which makes an
   * unreadable row whole.
   */
  if (r->stable.error == EIO && r->kind != REQUEST_FLUSH && !r->again &&
      !a->failed) {
    r->again = true;
    r->stable.error = 0;
    flush_start (a, r);
    if (r->stable.pending > 0)
      return;
  }
  if (r->error == 0)
    r->error = r->stable.error;
  if (r->error)
    r->phase = R_DONE;
  else if (r->kind == REQUEST_FLUSH || r->flags & ARRAY_FUA ||
           a->writethrough) {
    r->phase = R_FLUSH;
    list_append (&a->flushes, &r->flush_link);
    a->consistency->flush (a, &r->waiter);
  }
  else
    r->phase = R_DONE;
}

static void
changed (struct request *r)
{
  if (r->command.whole.pending > 0)
    return;
  r->error = r->command.whole.error;
  r->phase = R_DONE;
}

/* A member that fails in the save may keep the old state until a record
 * without it is in force.
 */
static void
save (struct array *a, struct request *r)
{
  if (a->writable && (!change_is_over (a, &r->waiter) ||
                      !save_wanted (a, &r->waiter)))
    return;
  r->error = a->writable && a->failed ? EIO : 0;
  r->phase = R_DONE;
}

/* A write or zero waits before it begins, or does so no longer. */
static void
note_held (struct array *a, struct request *r)
{
  if (r->phase != R_START)
    list_remove (&r->held_link);
  else if (list_empty (&r->held_link) &&
           (r->kind == REQUEST_WRITE || r->kind == REQUEST_ZERO)) {
    r->held_since = engine_now (a);
    list_append (&a->held, &r->held_link);
  }
}

void
request_advance (struct array *a, struct request *r)
{
  enum request_phase before;

  /* Continue until it waits. */
  do {
    before = r->phase;
    switch (r->phase) {
    case R_START: start (a, r); break;
    case R_LOOK: look (a, r); break;
    case R_COMMIT: commit (a, r); break;
    case R_STABLE: stable (a, r); break;
    case R_FLUSH:
      /* Woken by the flush; this waiter is on no other list. */
      r->error = a->failed && !PLANTED ("member-failed-acks") ? EIO : 0;
      list_remove (&r->flush_link);
      r->phase = R_DONE;
      break;
    case R_ZERO: zero_ended (a, r); break;
    case R_CHANGE: changed (r); break;
    case R_SAVE: save (a, r); break;
    default: break;
    }
  } while (r->phase != before && r->phase != R_COPY &&
           r->phase != R_COPY_OPS && r->phase != R_DONE &&
           r->phase != R_FLUSH);
  note_held (a, r);
}

/* Client's thread: true if the whole read came from members, in time, so that
 * no second look under the array lock is needed.
 */
static bool
is_done (const struct request *r)
{
  if (r->kind != REQUEST_READ || r->phase != R_COMMIT ||
      r->batch_end < r->len)
    return false;
  for (unsigned i = 0; i < r->nr_steps; i++)
    if (r->step[i].from != STEP_ZERO &&
        (r->step[i].from != STEP_SEAT || r->step[i].ns >= r->step[i].quick_ns))
      return false;
  return true;
}

static void
end_preads (struct request *r)
{
  const unsigned lane = lane_here ();

  for (unsigned i = 0; i < r->nr_steps; i++) {
    struct step *s = &r->step[i];

    if (s->from != STEP_SEAT)
      continue;
    hedge_add_fast (&s->seat->lane[lane].fast, s->len, s->ns);
    pread_end (s, lane);
  }
}

bool
request_copy (struct request *r)
{
  const bool ops = r->phase == R_COPY_OPS;
  const bool all = r->kind == REQUEST_READ ?
    run_steps (r, r->step, r->nr_steps, ops) :
    r->nr_fills == 0 || run_steps (r, r->fill, r->nr_fills, ops);

  if (!all && !ops) {
    r->phase = R_LOOK;
    return false;
  }
  if (r->kind != REQUEST_READ)
    write_payload (r);
  r->phase = R_COMMIT;
  if (!is_done (r))
    return false;
  end_preads (r);
  return true;
}

enum request_next
request_decide (struct request *r)
{
  struct array *a = r->a;

  if (!r->decided) {
    bool waits;

    if (r->kind == REQUEST_READ && unlocked_start (r))
      return REQUEST_COPY;
    if (!engine_try_lock (a)) {
      engine_ask (a, &r->ask);
      return REQUEST_WAIT;
    }
    decide (a, r);
    waits = r->asleep;
    engine_unlock (a);
    if (waits)
      return REQUEST_WAIT;
  }
  r->decided = false;
  return r->phase == R_DONE ? REQUEST_END : REQUEST_COPY;
}

bool
request_go (struct request *r)
{
  for (;;) {
    switch (request_decide (r)) {
    case REQUEST_END: return true;
    case REQUEST_WAIT: return false;
    case REQUEST_COPY: break;
    }
    if (request_copy (r))
      return true;
  }
}
