/* gpuraid: tests: clients that read and write at random.
 *
 * Each has one request in flight, checks its result against the model, and
 * makes the next.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/engine/consistency.h"
#include "array/health/lost.h"
#include "array/journal/internal.h"
#include "array/seats/seat.h"
#include "common/bits.h"
#include "tests/simulation/sim-run.h"

/* ---- what may take as long as a disk is full ----------------------------- */

/* Whole stripes without lost blocks: they are zeroed in place. */
static bool
is_of_stripes (const struct run *r, const struct request *q)
{
  const struct array *a = r->sa->a;
  const uint64_t stripe = (uint64_t) r->g.k * r->g.chunk;
  const uint64_t line0 = q->off / stripe * a->nr_bands;
  const uint64_t line1 = (q->off + q->len) / stripe * a->nr_bands;

  return q->off % stripe == 0 && q->len % stripe == 0 &&
    lost_next_line (a, line0, line1) == line1;
}

/* With a journal trims and zeroes of whole stripes do not wait, until the part
 * of the ring that is theirs is full; but a recovery that needs space comes
 * first.
 */
static bool
zero_may_wait (const struct run *r, const struct request *q)
{
  const struct array *a = r->sa->a;

  return !r->journal || !is_of_stripes (r, q) ||
    !a->consistency->is_ready (a) || a->journal->full;
}

/* Short reads of a sound array do not wait: others are operations, and a line
 * has one at a time.
 */
static bool
read_may_wait (const struct run *r, const struct request *q)
{
  return q->len > limits.inline_max_len || r->sa->a->lost_slots != 0 ||
    (r->faulty | r->unreadable | r->sa->rotted) != 0;
}

/* A disk is full for minutes. */
static bool
may_wait_for_space (const struct run *r, const struct request *q)
{
  if (r->full_long == 0)
    return false;
  /* What writes to a window of a widening waits until it has moved. */
  if (r->sa->a->moving.to > 0 && q->kind != REQUEST_READ)
    return true;
  switch (q->kind) {
  case REQUEST_READ: return read_may_wait (r, q);
  case REQUEST_ZERO: return zero_may_wait (r, q);
  case REQUEST_WRITE: return q->flags & ARRAY_WAIT || q->phase != R_START;
  default: return true;
  }
}

/* ---- requests ------------------------------------------------------------ */

static void
client_ended (struct client *c)
{
  struct run *r = c->run;
  struct request *q = &c->q.r;
  char why[2000];

  run_look_at_slots (r);
  run_say (r, "client %d: %c %" PRIu64 "+%" PRIu64 ": error %d",
       (int) (c - r->client), "RWZF"[q->kind], q->off, q->len, q->error);
  if (q->error) {
    if (!(q->error == ENOTSUP && q->flags & ARRAY_FAST)) {
      stats.errors++;
      stats.enospc += q->error == ENOSPC;
      if (!allow_error (r, q, c->start))
        run_die (r, "client: %c %" PRIu64 "+%" PRIu64 ": error %d, with no "
                 "more than m members in trouble", "RWZF"[q->kind], q->off,
                 q->len, q->error);
    }
    if (c->w)
      model_written (r->model, c->w, false, false);
    /* Data not written yet may still be. */
    if (r->over && q->error != ENOTSUP && q->kind != REQUEST_READ)
      model_doubt (r->model);
    return;
  }
  stats.failed_reads += r->sa->a->failed && q->kind == REQUEST_READ;
  stats.long_answered += r->full_long && !may_wait_for_space (r, q);
  if (c->had_failed && q->kind != REQUEST_READ)
    run_die (r, "a write was acknowledged by an array that has failed");
  if (c->w)
    model_written (r->model, c->w, true,
                   q->flags & ARRAY_FUA || r->sa->writethrough);
  else if (q->kind == REQUEST_FLUSH)
    model_flushed (r->model, c->began);
  else if (!model_check (r->model, c->began, q->buf, q->off, q->len, why,
                         sizeof why))
    run_die (r, "read %" PRIu64 "+%" PRIu64 ": %s", q->off, q->len, why);
}

static void
client_done (struct sim_request *q)
{
  struct client *c = (struct client *) q;

  if (q->sa->dead)
    return;
  stats.requests++;
  client_ended (c);
  if (c->q.r.kind == REQUEST_FLUSH || c->q.r.flags & ARRAY_FUA)
    run_crash_soon (c->run, q->sa->a->change ? 50 : 2, 3);
  if (c->w && q->sa->a->nr_unsynced > 0 && run_percent (c->run, 20))
    check_rows (c->run, "before all is resynced");
  client_next (c);
}

/* Half of all in a small part, so that they overlap. */
static void
choose_range (struct run *r, uint64_t *off, uint64_t *len)
{
  const uint64_t stripe = (uint64_t) r->g.k * r->g.chunk;
  uint64_t size = r->g.size, unit = 1;

  if (run_percent (r, 50))
    size = MIN (size, 2 * stripe);
  switch (run_below (r, 6)) {
  case 0: *len = 1 + run_below (r, 3000); break;
  case 1: *len = 1 + run_below (r, r->max_len); break;
  case 2: *len = stripe * (1 + run_below (r, 3)); unit = stripe; break;
  case 3: *len = r->g.chunk; unit = r->g.chunk; break;
  case 4: *len = 1 + run_below (r, 5 * BLOCK_LEN); break;
  default: unit = BLOCK_LEN; *len = unit * (1 + run_below (r, 8)); break;
  }
  *len = MIN (*len, MIN (r->max_len, size));
  *off = round_down (run_below (r, size), unit);
  *len = MIN (*len, r->g.size - *off);
}

/* While a disk is full clients give space back, and take it again.  Beside the
 * run's own numbers, in half of the runs.
 */
static bool
gives_back (struct run *r)
{
  if (r->full == 0 || r->seed / 2 % 2 || !r->sa->a->writable)
    return false;
  r->space_state = (r->space_state ^ r->seed) * 6364136223846793005 +
    1442695040888963407;
  return (r->space_state >> 33) % 4 == 0;
}

/* Whole stripes: they are zeroed in place. */
static void
choose_stripes (struct run *r, uint64_t *off, uint64_t *len)
{
  const uint64_t stripe = (uint64_t) r->g.k * r->g.chunk;

  *off = MIN (round_down (*off, stripe),
              round_down (r->g.size, stripe) - stripe);
  *len = MIN (round_up (*len, stripe), round_down (r->g.size - *off, stripe));
}

static void
client_start (void *arg)
{
  struct client *c = arg;
  struct run *r = c->run;
  const unsigned kind = run_below (r, 100);
  enum request_kind k = kind < 38 ? REQUEST_READ : kind < 82 ? REQUEST_WRITE :
    kind < 90 ? REQUEST_ZERO : REQUEST_FLUSH;
  bool trim = gives_back (r);
  uint64_t off = 0, len = 0;

  /* Most look whether these are answered. */
  if (r->full_long && run_percent (r, 75)) {
    trim = run_percent (r, 50);
    k = REQUEST_READ;
  }
  stats.trims_full += trim;
  if (trim)
    k = REQUEST_ZERO;
  if (!r->sa->a->writable || (r->sa->a->failed && run_percent (r, 90)))
    k = REQUEST_READ;
  trim &= k == REQUEST_ZERO;
  sim_request_init (&c->q, r->sa, k);
  c->w = NULL;
  c->q.done = client_done;
  c->start = c->since = sim_now (r->sim);
  c->had_failed = r->sa->a->failed;
  if (k != REQUEST_FLUSH) {
    choose_range (r, &off, &len);
    if (k == REQUEST_ZERO && run_percent (r, 20))
      len = 1 + run_below (r, r->g.size - off);
    if (trim)
      choose_stripes (r, &off, &len);
    c->q.r.off = off;
    c->q.r.len = len;
    c->q.r.buf = k == REQUEST_ZERO ? NULL : c->buf;
  }
  if ((k == REQUEST_WRITE || k == REQUEST_ZERO) && run_percent (r, 15))
    c->q.r.flags |= ARRAY_FUA;
  if ((c - r->client) % 2 == 1)
    c->q.r.flags |= ARRAY_WAIT;
  if (k == REQUEST_ZERO)
    c->q.r.flags |= (run_percent (r, 50) || trim ? ARRAY_TRIM : 0) |
      (run_percent (r, 5) ? ARRAY_FAST : 0);
  if (k == REQUEST_WRITE || k == REQUEST_ZERO) {
    back_note_write (r, off, len);
    c->w = model_write (r->model, off, len,
                        k == REQUEST_ZERO ? MODEL_ZEROES : MODEL_DATA);
    if (k == REQUEST_WRITE)
      model_fill (c->w, c->buf);
  }
  else
    c->began = model_begin (r->model);
  run_say (r, "client %d: %c %" PRIu64 "+%" PRIu64 " flags %u%s begins (write "
       "%" PRIu64 ")", (int) (c - r->client), "RWZF"[k], c->q.r.off,
       c->q.r.len, c->q.r.flags, "", c->w ? c->w->id : 0);
  sim_request_start (&c->q);
}

/* What is told of holes, by array_extents. */
struct holes {
  struct run *r;
  uint64_t began;               /* the model's time */
  uint64_t off, end;            /* bytes: the rest */
};

static int
check_hole (void *opaque, uint64_t off, uint64_t len, bool hole)
{
  struct holes *h = opaque;
  char why[2000];

  if (off != h->off || len == 0 || len > h->end - off)
    run_die (h->r, "extent %" PRIu64 "+%" PRIu64 ", in %" PRIu64 " to %"
             PRIu64, off, len, h->off, h->end);
  h->off += len;
  memset (h->r->buf, 0, len);
  if (hole && !model_check (h->r->model, h->began, h->r->buf, off, len, why,
                            sizeof why))
    run_die (h->r, "hole %" PRIu64 "+%" PRIu64 ": %s", off, len, why);
  return 0;
}

static void
look_for_holes (struct run *r)
{
  struct holes h = { .r = r, .began = model_begin (r->model) };

  h.off = run_below (r, r->g.size);
  h.end = h.off + 1 + run_below (r, r->g.size - h.off);
  array_extents (r->sa->a, h.end - h.off, h.off, check_hole, &h);
}

void
client_next (struct client *c)
{
  struct run *r = c->run;
  const unsigned p = run_below (r, 1000);
  uint64_t pause = run_below (r, 200000);

  /* One that has failed may still be read. */
  if ((r->nr_left == 0 && !r->full_long) ||
      (r->sa->a->failed && run_percent (r, 3))) {
    c->busy = false;
    r->nr_busy--;
    return;
  }
  if (!r->full_long)
    r->nr_left--;
  if (run_percent (r, 3))
    look_for_holes (r);
  if (r->full_long)
    pause = run_below (r, 20 * SECONDS);
  else if (p < 4)
    pause = run_below (r, 7 * SECONDS);
  else if (p < 60)
    pause = run_below (r, SECONDS / 4);
  sim_at (r->sim, pause, client_start, c);
}

/* A member that hangs, and is still used, may delay all requests.  One that was
 * taken out keeps cells of its I/O, of which the smallest cache has few.
 */
static bool
hangs_long (const struct run *r)
{
  const struct array *a = r->sa->a;
  uint64_t used = run_active_disks (r);

  for (unsigned i = 0; i < a->nr_seats; i++)
    if (!list_empty (&a->cell_waiters) && a->seat[i]->m &&
        seat_users (a->seat[i]) > 0)
      used |= BIT (sim_array_disk_no (r->sa, sim_array_disk_of (a->seat[i])));
  return (used & r->long_hung) != 0;
}

/* No request goes on so slowly, whatever hangs for a while. */
void
clients_check (struct run *r)
{
  for (unsigned i = 0; i < r->nr_clients; i++) {
    struct client *c = &r->client[i];
    /* With a journal the clients wait for each other's transactions. */
    const uint64_t limit = (r->journal ? 300 : 100) * SECONDS;

    if (c->q.held || hangs_long (r) || c->q.r.pos != c->pos ||
        may_wait_for_space (r, &c->q.r)) {
      c->since = sim_now (r->sim);
      c->pos = c->q.r.pos;
    }
    if (c->busy && c->q.state != SIM_IDLE && c->since < sim_now (r->sim) &&
        sim_now (r->sim) - c->since > limit)
      run_die (r, "client %u: %c %" PRIu64 "+%" PRIu64 " never ends: phase %d, "
           "pending %u", i, "RWZF"[c->q.r.kind], c->q.r.off, c->q.r.len,
           c->q.r.phase, c->q.r.stable.pending);
  }
}
