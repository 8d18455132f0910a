/* gpuraid: the engine in a world that fails, one seed one run.
 *
 *   build/tests/test-simulation [NUMBER [FIRST]]
 *
 * Runs NUMBER seeds (or for ten seconds) from FIRST on (or from $SEED, or
 * from 1); stops at the first that fails.
 * SIM_VERBOSE=1 tells all that happens.
 *
 * In each run clients read and write an array at random while members
 * give errors, hang, are slow, die, are taken out and replaced; it
 * crashes and is started again, with some members missing.  What is read
 * is checked against tests/sim-model.h.  That knows nothing of stripes;
 * which blocks may be lost with a slot when a row was being written is
 * worked out here: a row is *torn* from a crash until its region is
 * synced, and with each slot that is not active at the crash or before
 * the sync, the torn rows lose the blocks of that slot.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "array/stop.h"
#include "common/bits.h"
#include "tests/sim-array.h"
#include "tests/sim-model.h"

#define MAX_CLIENTS 6u
#define MAX_REPLACED 40u        /* disks; the end needs some more */
#define SECONDS UINT64_C (1000000000)
#define DEFAULT_SECONDS 10

struct run;

struct client {
  struct sim_request q;         /* first */
  struct run *run;
  uint8_t *buf;
  struct model_write *w;
  uint64_t began;               /* the model's time */
  uint64_t since;               /* ns */
  bool busy;
};

struct command {
  struct sim_request q;         /* first */
  struct run *run;
  char why[ARRAY_WHY_LEN];
};

struct run {
  uint64_t seed;
  struct sim_array *sa;
  struct sim *sim;
  struct model *model;
  struct geometry g;
  unsigned n;
  uint64_t max_len;             /* of a request */
  uint8_t *buf;                 /* the whole array */
  struct client client[MAX_CLIENTS];
  unsigned nr_clients, nr_busy;
  unsigned nr_left;             /* requests to be made in this session */
  unsigned nr_commands;         /* under way */

  unsigned rows_per_stripe;
  uint64_t nr_rows;
  bool *torn;                   /* per row */
  bool any_torn;
  uint64_t lost;                /* slots, as last seen */

  unsigned trouble;             /* how much goes wrong */
  bool may_exceed;              /* more than m members at once, too */
  bool over;                    /* that has happened */
  bool chaos_on, may_crash;
  uint64_t faulty;              /* disks that may give errors or hang */
  uint64_t spoilt;              /* of those: with bad blocks */

  /* As it was when it crashed. */
  uint64_t was_active;          /* disks */
  uint64_t in_force;            /* disks, of the record in force */
  uint64_t was_lost;            /* slots */
  bool was_open;                /* a dirty bit was durably set */
};

struct stats {
  uint64_t runs, sessions, crashes, refused, forced, readonly, given_up;
  uint64_t requests, errors, rebuilt, replaced, failed_arrays, lost_blocks;
} stats;

static bool verbose;

static void die (struct run *r, const char *fmt, ...)
  __attribute__ ((format (printf, 2, 3), noreturn));

static void
die (struct run *r, const char *fmt, ...)
{
  va_list args;

  va_start (args, fmt);
  fflush (stdout);
  fprintf (stderr, "seed %" PRIu64 ", at %.3f ms, moment %" PRIu64 ": ",
           r->seed, sim_now (r->sim) / 1e6, sim_moments (r->sim));
  vfprintf (stderr, fmt, args);
  fprintf (stderr, "\n%u+%u, chunk %u, %" PRIu64 " stripes; replay with: "
           "SIM_VERBOSE=1 build/tests/test-simulation 1 %" PRIu64 "\n",
           r->g.k, r->g.m, r->g.chunk, r->sa->nr_stripes, r->seed);
  va_end (args);
  exit (1);
}

static void say (struct run *r, const char *fmt, ...)
  __attribute__ ((format (printf, 2, 3)));

static void
say (struct run *r, const char *fmt, ...)
{
  va_list args;

  if (!verbose)
    return;
  va_start (args, fmt);
  fprintf (stderr, "%12.6f ms: -- ", sim_now (r->sim) / 1e6);
  vfprintf (stderr, fmt, args);
  fputc ('\n', stderr);
  va_end (args);
}

static uint64_t
below (struct run *r, uint64_t n)
{
  return sim_below (r->sim, n);
}

static bool
percent (struct run *r, unsigned n)
{
  return below (r, 100) < n;
}

/* ---- torn rows ---- */

static uint64_t
row_of (const struct run *r, const struct piece *p)
{
  return p->stripe * r->rows_per_stripe + p->chunk_off / BLOCK_LEN;
}

static bool
is_unsynced (const struct array *a, uint64_t pos)
{
  const uint64_t region = pos / a->sb.l.region_len;

  return a->unsynced[region / 64] >> (region % 64) & 1;
}

/* The torn rows lose their blocks on a slot. */
static void
lose_slot (struct run *r, unsigned slot, bool synced_too)
{
  for (uint64_t row = 0; row < r->nr_rows && r->any_torn; row++) {
    const uint64_t stripe = row / r->rows_per_stripe;
    const uint32_t chunk_off = row % r->rows_per_stripe * BLOCK_LEN;
    const unsigned role = layout_role (&r->g, stripe, slot);
    uint64_t off;

    if (!r->torn[row] || role >= r->g.k)
      continue;
    if (!synced_too &&
        !is_unsynced (r->sa->a, stripe * r->g.chunk + chunk_off))
      continue;
    off = layout_address (&r->g, stripe, role, chunk_off);
    if (off >= r->g.size)
      continue;
    model_lose (r->model, off, BLOCK_LEN);
    stats.lost_blocks++;
    say (r, "the block at %" PRIu64 " (slot %u) may be lost", off, slot);
  }
}

/* When something has just happened a crash tells most. */
static void
crash_soon (struct run *r, unsigned chance, unsigned moments)
{
  if (r->may_crash && percent (r, chance))
    sim_crash_after (r->sim, 1 + below (r, moments));
}

/* Look whether another slot is not active any more. */
static void
look_at_slots (struct run *r)
{
  const uint64_t lost = r->sa->a->lost_slots;

  if (lost == r->lost)
    return;
  say (r, "slots that are not active: %#" PRIx64, lost);
  crash_soon (r, 25, 40);
  FOR_EACH_BIT (slot, lost & ~r->lost)
    lose_slot (r, slot, false);
  r->lost = lost;
}

static bool
step (struct run *r)
{
  if (!sim_step (r->sim))
    return false;
  look_at_slots (r);
  return true;
}

/* It has stopped dead; which rows were being written? */
static void
note_torn (struct run *r)
{
  struct piece p;

  r->any_torn = false;
  for (uint64_t row = 0; row < r->nr_rows; row++)
    if (r->torn[row] &&
        !is_unsynced (r->sa->a, row / r->rows_per_stripe * r->g.chunk +
                      row % r->rows_per_stripe * BLOCK_LEN))
      r->torn[row] = false;
  model_crash (r->model);
  for (uint64_t off = 0; off < r->g.size; off += BLOCK_LEN) {
    layout_piece (&r->g, off, BLOCK_LEN, &p);
    if (model_was_in_flight (r->model, off, BLOCK_LEN))
      r->torn[row_of (r, &p)] = true;
    r->any_torn |= r->torn[row_of (r, &p)];
  }
}

/* ---- clients ---- */

static void client_next (struct client *c);

static void
client_ended (struct client *c)
{
  struct run *r = c->run;
  struct request *q = &c->q.r;
  char why[2000];

  look_at_slots (r);
  say (r, "client %d: %c %" PRIu64 "+%" PRIu64 ": error %d",
       (int) (c - r->client), "RWZF"[q->kind], q->off, q->len, q->error);
  if (q->error) {
    if (!(q->error == ENOTSUP && q->flags & ARRAY_FAST)) {
      stats.errors++;
      if (!r->over)
        die (r, "client: %c %" PRIu64 "+%" PRIu64 ": error %d, with no more "
             "than m members lost", "RWZF"[q->kind], q->off, q->len,
             q->error);
    }
    if (c->w)
      model_written (r->model, c->w, false, false);
    if (q->error != ENOTSUP && q->kind != REQUEST_READ)
      model_doubt (r->model);
    return;
  }
  if (r->sa->a->failed && q->kind != REQUEST_READ)
    die (r, "a write was acknowledged by an array that has failed");
  if (c->w)
    model_written (r->model, c->w, true,
                   q->flags & ARRAY_FUA || r->sa->writethrough);
  else if (q->kind == REQUEST_FLUSH)
    model_flushed (r->model, c->began);
  else if (!model_check (r->model, c->began, q->buf, q->off, q->len, why,
                         sizeof why))
    die (r, "read %" PRIu64 "+%" PRIu64 ": %s", q->off, q->len, why);
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
    crash_soon (c->run, 2, 3);
  client_next (c);
}

/* Half of all in a small part, so that they meet. */
static void
choose_range (struct run *r, uint64_t *off, uint64_t *len)
{
  const uint64_t stripe = (uint64_t) r->g.k * r->g.chunk;
  uint64_t size = r->g.size, unit = 1;

  if (percent (r, 50))
    size = MIN (size, 2 * stripe);
  switch (below (r, 6)) {
  case 0: *len = 1 + below (r, 3000); break;
  case 1: *len = 1 + below (r, r->max_len); break;
  case 2: *len = stripe * (1 + below (r, 3)); unit = stripe; break;
  case 3: *len = r->g.chunk; unit = r->g.chunk; break;
  case 4: *len = 1 + below (r, 5 * BLOCK_LEN); break;
  default: unit = BLOCK_LEN; *len = unit * (1 + below (r, 8)); break;
  }
  *len = MIN (*len, MIN (r->max_len, size));
  *off = round_down (below (r, size), unit);
  *len = MIN (*len, r->g.size - *off);
}

static void
client_start (void *arg)
{
  struct client *c = arg;
  struct run *r = c->run;
  const unsigned kind = below (r, 100);
  enum request_kind k = kind < 38 ? REQUEST_READ : kind < 82 ? REQUEST_WRITE :
    kind < 90 ? REQUEST_ZERO : REQUEST_FLUSH;
  uint64_t off, len;

  if (r->sa->a->readonly)
    k = REQUEST_READ;
  sim_request_init (&c->q, r->sa, k);
  c->w = NULL;
  c->q.done = client_done;
  c->since = sim_now (r->sim);
  if (k != REQUEST_FLUSH) {
    choose_range (r, &off, &len);
    c->q.r.off = off;
    c->q.r.len = len;
    c->q.r.buf = k == REQUEST_ZERO ? NULL : c->buf;
  }
  if ((k == REQUEST_WRITE || k == REQUEST_ZERO) && percent (r, 15))
    c->q.r.flags |= ARRAY_FUA;
  if (k == REQUEST_ZERO)
    c->q.r.flags |= (percent (r, 50) ? ARRAY_TRIM : 0) |
      (percent (r, 5) ? ARRAY_FAST : 0);
  if (k == REQUEST_WRITE || k == REQUEST_ZERO) {
    c->w = model_write (r->model, off, len,
                        k == REQUEST_ZERO ? MODEL_ZEROES : MODEL_DATA);
    if (k == REQUEST_WRITE)
      model_fill (c->w, c->buf);
  }
  else
    c->began = model_begin (r->model);
  say (r, "client %d: %c %" PRIu64 "+%" PRIu64 " flags %u%s begins (write "
       "%" PRIu64 ")", (int) (c - r->client), "RWZF"[k], c->q.r.off,
       c->q.r.len, c->q.r.flags, "", c->w ? c->w->id : 0);
  sim_request_start (&c->q);
}

static void
client_next (struct client *c)
{
  struct run *r = c->run;
  const unsigned p = below (r, 1000);
  uint64_t pause = below (r, 200000);

  if (r->nr_left == 0 || r->sa->a->failed) {
    c->busy = false;
    r->nr_busy--;
    return;
  }
  r->nr_left--;
  if (p < 4)
    pause = below (r, 7 * SECONDS);
  else if (p < 60)
    pause = below (r, SECONDS / 4);
  sim_at (r->sim, pause, client_start, c);
}

/* ---- what goes wrong ---- */

/* Slots whose disks are among these. */
static uint64_t
slots_of (const struct run *r, uint64_t disks)
{
  const struct array *a = r->sa->a;
  uint64_t slots = 0;

  for (unsigned i = 0; i < a->nr_seats; i++) {
    const struct seat *s = a->seat[i];

    if (s->m && s->state == SEAT_ACTIVE && s->slot < a->n &&
        disks >> sim_array_disk_no (r->sa, sim_array_disk_of (s)) & 1)
      slots |= BIT (s->slot);
  }
  return slots;
}

static uint64_t
active_disks (const struct run *r)
{
  const struct array *a = r->sa->a;
  uint64_t disks = 0;

  for (unsigned i = 0; i < a->nr_seats; i++)
    if (a->seat[i]->m && a->seat[i]->state == SEAT_ACTIVE)
      disks |= BIT (sim_array_disk_no (r->sa,
                                       sim_array_disk_of (a->seat[i])));
  return disks;
}

/* May this disk be in trouble too?  It is counted if so. */
static bool
can_afford (struct run *r, unsigned disk)
{
  const uint64_t faulty = r->faulty | BIT (disk);
  const uint64_t slots = r->sa->a->lost_slots | slots_of (r, faulty);

  if (nr_bits (slots) > r->g.m) {
    if (!r->may_exceed || !percent (r, 30))
      return false;
    if (!r->over)
      say (r, "from here on more than m are in trouble");
    r->over = true;
    model_shaky (r->model, true);
  }
  r->faulty = faulty;
  /* A block that can't be read is lost like one of a lost member. */
  FOR_EACH_BIT (slot, slots_of (r, BIT (disk)))
    lose_slot (r, slot, false);
  return true;
}

static void
unhang (void *arg)
{
  sim_disk_hang (arg, false);
}

static void
command_done (struct sim_request *q)
{
  struct command *c = (struct command *) q;

  if (!q->sa->dead) {
    say (c->run, "command: error %d: %s", q->r.error, c->why);
    if (q->r.kind == REQUEST_REPLACE && q->r.error == 0)
      stats.replaced++;
  }
  member_close (q->r.target);
  c->run->nr_commands--;
  free (c);
}

static struct command *
command_new (struct run *r)
{
  struct command *c = calloc (1, sizeof *c);

  assert (c != NULL);
  c->run = r;
  r->nr_commands++;
  return c;
}

static void
command_start (struct command *c)
{
  c->q.done = command_done;
  c->q.r.why = c->why;
  sim_request_start (&c->q);
}

static void
command_fail (struct run *r, unsigned slot)
{
  struct array *a = r->sa->a;
  struct seat *s = a->at[slot][0] ? a->at[slot][0] : a->at[slot][1];
  struct command *c;

  if (s == NULL || s->m == NULL ||
      !can_afford (r, sim_array_disk_no (r->sa, sim_array_disk_of (s))))
    return;
  say (r, "command: fail slot %u", slot);
  c = command_new (r);
  sim_request_init (&c->q, r->sa, REQUEST_FAIL);
  c->q.r.seat = s;
  command_start (c);
}

static void
command_replace (struct run *r, unsigned slot)
{
  struct command *c;
  unsigned disk;

  disk = sim_array_add_disk (r->sa);
  say (r, "command: replace slot %u with disk%u", slot, disk);
  c = command_new (r);
  sim_array_init_replace (&c->q, r->sa, slot, disk);
  command_start (c);
}

static void
spoil_blocks (struct run *r, struct sim_disk *d)
{
  const struct member_layout *l = &r->sa->l;

  for (unsigned n = 1 + below (r, 4); n > 0; n--) {
    const uint64_t b = below (r, l->data_len / BLOCK_LEN);
    const uint64_t len = MIN (1 + below (r, 3), l->data_len / BLOCK_LEN - b);

    say (r, "%s: bad blocks at %" PRIu64 "+%" PRIu64, d->name,
         l->data_off + b * BLOCK_LEN, len * BLOCK_LEN);
    sim_disk_set_bad (d, l->data_off + b * BLOCK_LEN, len * BLOCK_LEN);
  }
}

static void
trouble_disk (struct run *r, unsigned no)
{
  struct sim_disk *d = r->sa->disk[no];
  const unsigned what = below (r, 7);

  if (what == 0) {
    d->max_delay_ns = 1000000 + below (r, 200000000);
    say (r, "%s: slow", d->name);
    return;
  }
  if (!can_afford (r, no))
    return;
  switch (what) {
  case 1:
    d->read_error_ppm = 10000 + below (r, 300000);
    say (r, "%s: read errors", d->name);
    break;
  case 2:
    d->write_error_ppm = 1000 + below (r, 300000);
    say (r, "%s: write errors", d->name);
    break;
  case 3:
    d->flush_error_ppm = 1000 + below (r, 300000);
    say (r, "%s: flush errors", d->name);
    break;
  case 4:
    r->spoilt |= BIT (no);
    spoil_blocks (r, d);
    break;
  case 5:
    say (r, "%s: hangs", d->name);
    sim_disk_hang (d, true);
    sim_at (r->sim, below (r, percent (r, 30) ? 9 * SECONDS : SECONDS / 2),
            unhang, d);
    break;
  case 6:
    say (r, "%s: dead", d->name);
    d->dead = true;
    break;
  }
}

static void chaos (void *arg);

static void
chaos_soon (struct run *r)
{
  static const uint64_t ms[] = { 1, 10, 100, 1000 };

  sim_at (r->sim, 1 + below (r, ms[below (r, 4)] * 1000000), chaos, r);
}

static uint64_t
empty_slots (const struct array *a)
{
  uint64_t slots = 0;

  FOR_EACH_BIT (slot, a->lost_slots)
    if (a->at[slot][1] == NULL)
      slots |= BIT (slot);
  return slots;
}

static void
chaos (void *arg)
{
  struct run *r = arg;
  struct array *a = r->sa->a;
  unsigned slot;

  if (!r->chaos_on || a->failed)
    return;
  slot = below (r, r->n);
  if (a->writable) {
    const uint64_t empty = empty_slots (a);

    if (empty && percent (r, 60) && r->sa->nr_disks < MAX_REPLACED)
      command_replace (r, __builtin_ctzll (empty));
    else if (percent (r, 8) && r->sa->nr_disks < MAX_REPLACED)
      command_replace (r, slot);
    else if (percent (r, 15))
      command_fail (r, slot);
    else if (a->at[slot][0] && percent (r, r->trouble))
      trouble_disk (r, sim_array_disk_no (r->sa,
                                          sim_array_disk_at (r->sa, slot)));
  }
  chaos_soon (r);
}

static void
calm (struct run *r)
{
  const bool slow = percent (r, 15);

  for (unsigned i = 0; i < r->sa->nr_disks; i++) {
    struct sim_disk *d = r->sa->disk[i];

    d->read_error_ppm = d->write_error_ppm = d->flush_error_ppm = 0;
    d->max_delay_ns = 100000 + below (r, slow ? 40000000 : 1000000);
    d->absent = false;
    if (d->hung)
      sim_disk_hang (d, false);
  }
  r->faulty = r->spoilt;
}

/* ---- sessions ---- */

/* It has crashed or failed: all I/O fails, and it is gone. */
static void
end_session (struct run *r)
{
  struct array *a = r->sa->a;
  const struct device_set *set = a->membership.in_force ?
    &a->membership.cur.self.active : &a->membership.base.active;

  r->may_crash = false;
  look_at_slots (r);
  r->was_active = active_disks (r);
  r->was_lost = a->lost_slots;
  r->in_force = 0;
  for (unsigned i = 0; i < a->nr_seats; i++)
    if (device_set_has (set, a->seat[i]->dev) && a->seat[i]->m)
      r->in_force |= BIT (sim_array_disk_no (r->sa,
                                             sim_array_disk_of (a->seat[i])));
  r->was_open = false;
  for (uint64_t p = 0; p < a->nr_pages; p++)
    for (unsigned w = 0; w < BITMAP_PAGE_WORDS; w++)
      r->was_open |= a->page[p].stored.open[w] != 0;
  note_torn (r);
  FOR_EACH_BIT (slot, a->lost_slots)
    lose_slot (r, slot, true);
  if (a->failed)
    stats.failed_arrays++;
  if (!sim_array_abandon (r->sa))
    die (r, "all members are gone, and it never ends");
  r->nr_busy = 0;
}

static void
crash (struct run *r)
{
  say (r, "crash");
  stats.crashes++;
  end_session (r);
  sim_crash (r->sim);
}

/* No request takes so long, whatever hangs for a while. */
static void
check_clients (struct run *r)
{
  for (unsigned i = 0; i < r->nr_clients; i++) {
    const struct client *c = &r->client[i];

    if (c->busy && c->q.state != SIM_IDLE &&
        sim_now (r->sim) - c->since > 60 * SECONDS)
      die (r, "client %u: %c %" PRIu64 "+%" PRIu64 " never ends: phase %d, "
           "pending %u", i, "RWZF"[c->q.r.kind], c->q.r.off, c->q.r.len,
           c->q.r.phase, c->q.r.pending);
  }
}

/* Step until a condition holds; false: it crashed. */
static bool
until (struct run *r, bool (*condition) (struct run *), uint64_t limit_ns,
       const char *what)
{
  const uint64_t end = sim_now (r->sim) + limit_ns;

  for (unsigned i = 0; !condition (r); i++) {
    if (i % 64 == 0 && r->nr_busy > 0)
      check_clients (r);
    if (sim_now (r->sim) > end)
      die (r, "it takes too long: %s", what);
    if (!step (r)) {
      if (sim_crashed (r->sim))
        return false;
      die (r, "nothing happens any more: %s", what);
    }
  }
  return true;
}

static struct sim_request *waited_for;

static bool
has_ended (struct run *r)
{
  return waited_for->state == SIM_IDLE;
}

static void
nothing (struct sim_request *q)
{
}

/* 0, a positive errno, or -1: it crashed. */
static int
run_request (struct run *r, struct sim_request *q)
{
  q->done = nothing;
  sim_request_start (q);
  waited_for = q;
  return until (r, has_ended, 200 * SECONDS, "a request") ? q->r.error : -1;
}

/* Read all, and settle what it is.  False: it crashed. */
static bool
read_all (struct run *r)
{
  static struct sim_request q;
  uint64_t len;
  char why[2000];
  int err;

  for (uint64_t off = 0; off < r->g.size; off += len) {
    len = MIN (r->g.size - off, 200 * 1024);
    sim_request_init (&q, r->sa, REQUEST_READ);
    q.r.buf = r->buf + off;
    q.r.off = off;
    q.r.len = len;
    err = run_request (r, &q);
    if (err == -1)
      return false;
    if (err && !r->over)
      die (r, "read %" PRIu64 "+%" PRIu64 " after opening: error %d", off,
           len, err);
    if (err == 0 && !model_settle (r->model, r->buf + off, off, len, why,
                                   sizeof why))
      die (r, "read %" PRIu64 "+%" PRIu64 " after opening: %s", off, len,
           why);
  }
  return true;
}

static bool
clients_rest (struct run *r)
{
  return (r->nr_busy == 0 && r->nr_commands == 0) || r->sa->a->failed;
}

static bool
is_whole (struct run *r)
{
  const struct array *a = r->sa->a;

  return a->odd_slots == 0 && a->nr_unsynced == 0 && !a->change &&
    !a->change_wanted;
}

static bool
has_stopped (struct run *r)
{
  /* Some steps take no time. */
  for (unsigned i = 0; i < 8; i++)
    if (stop_step (r->sa->a))
      return true;
  return false;
}

static bool
make_writable (struct run *r)
{
  static struct sim_request q;
  int err;

  sim_request_init (&q, r->sa, REQUEST_WRITABLE);
  err = run_request (r, &q);
  if (err > 0 && !r->over)
    die (r, "it can't be made writable: error %d", err);
  return err == 0;
}

static uint64_t
changes_made (const struct run *r)
{
  uint64_t nr = 0;

  for (unsigned i = 0; i < r->sa->nr_disks; i++)
    nr += r->sa->disk[i]->nr_ios[IO_WRITE] + r->sa->disk[i]->nr_ios[IO_ZERO] +
      r->sa->disk[i]->nr_ios[IO_TRIM] + r->sa->disk[i]->nr_ios[IO_FLUSH];
  return nr;
}

/* Let clients at it.  False: it crashed or failed. */
static bool
use_array (struct run *r, unsigned nr_requests)
{
  r->nr_left = nr_requests;
  r->nr_busy = r->nr_clients;
  for (unsigned i = 0; i < r->nr_clients; i++) {
    r->client[i].busy = true;
    client_next (&r->client[i]);
  }
  r->chaos_on = r->trouble > 0;
  if (r->chaos_on)
    sim_at (r->sim, below (r, percent (r, 50) ? 3000000 : 100000000), chaos,
            r);
  if (!until (r, clients_rest, 3000 * SECONDS, "clients"))
    return false;
  r->chaos_on = false;
  return !r->sa->a->failed;
}

static bool
any_open (const struct array *a)
{
  for (uint64_t p = 0; p < a->nr_pages; p++)
    for (unsigned w = 0; w < BITMAP_PAGE_WORDS; w++)
      if (a->page[p].want.open[w])
        return true;
  return false;
}

/* Which regions stay open, and what was torn in them, outlives a stop. */
static void
note_stop (struct run *r)
{
  r->was_open = any_open (r->sa->a);
  r->was_lost = r->lost;
  r->was_active = r->in_force = active_disks (r);
  r->any_torn = false;
  for (uint64_t row = 0; row < r->nr_rows; row++) {
    r->torn[row] = r->torn[row] &&
      is_unsynced (r->sa->a, row / r->rows_per_stripe * r->g.chunk +
                   row % r->rows_per_stripe * BLOCK_LEN);
    r->any_torn |= r->torn[row];
  }
}

/* False: it crashed or failed on the way. */
static bool
stop_cleanly (struct run *r)
{
  const uint64_t began = model_begin (r->model);

  say (r, "stop");
  if (!until (r, has_stopped, 600 * SECONDS, "the stop") || r->sa->a->failed)
    return false;
  r->may_crash = false;
  note_stop (r);
  if (!sim_array_stop (r->sa))
    die (r, "it does not stop");
  model_flushed (r->model, began);
  return true;
}

/* ---- starting again ---- */

/* Those that a person would list: with a superblock. */
static uint64_t
disks_known (const struct run *r)
{
  static struct superblock sb;
  uint64_t disks = 0;

  for (unsigned i = 0; i < r->sa->nr_disks; i++)
    for (enum sb_copy c = 0; c < SB_NR_COPIES; c++) {
      const struct sim_disk *d = r->sa->disk[i];

      if (superblock_decode (d->image + layout_sb_off (d->size, c), c, &sb,
                             NULL) == SB_OK)
        disks |= BIT (i);
    }
  return disks;
}

static uint64_t
disks_there (const struct run *r)
{
  uint64_t disks = 0;

  for (unsigned i = 0; i < r->sa->nr_disks; i++)
    if (!r->sa->disk[i]->absent && !r->sa->disk[i]->dead)
      disks |= BIT (i);
  return disks;
}

static bool
try_open (struct run *r, uint64_t which, bool force, bool readonly)
{
  const uint64_t there = which & disks_there (r);
  const bool all = (r->was_active & ~there) == 0;

  if (sim_array_open (r->sa, which, force ? DEGRADED_FORCE : DEGRADED_ALLOW,
                      readonly) == -1) {
    stats.refused++;
    say (r, "disks %#" PRIx64 "%s: refused: %s", which, force ? " (force)" :
         "", r->sa->said);
    if (all && (force || r->was_lost == 0) && !r->over)
      die (r, "it was refused with all members: %s", r->sa->said);
    return false;
  }
  say (r, "disks %#" PRIx64 "%s: open, %u+%u, slots not active %#" PRIx64,
       which, force ? " (force)" : "", r->g.k, r->g.m,
       r->sa->a->lost_slots);
  if (r->was_open && !any_open (r->sa->a))
    die (r, "the dirty bits are lost");
  if (!force && r->sa->a->lost_slots && any_open (r->sa->a))
    die (r, "it was unclean and a slot is missing, yet it opened");
  stats.forced += force;
  r->lost = r->sa->a->lost_slots;
  FOR_EACH_BIT (slot, r->lost | slots_of (r, r->faulty))
    lose_slot (r, slot, true);
  if (nr_bits (r->lost | slots_of (r, r->faulty)) > r->g.m)
    r->over = true;
  model_shaky (r->model, r->over);
  return true;
}

/* Open it somehow.  False: too much is lost for good. */
static bool
start_again (struct run *r, bool readonly)
{
  const uint64_t which = disks_known (r);

  calm (r);
  r->over = false;
  if (percent (r, 30))
    for (unsigned n = 1 + below (r, r->g.m); n > 0; n--)
      r->sa->disk[below (r, r->sa->nr_disks)]->absent = true;
  if (try_open (r, which, false, readonly) ||
      (r->in_force & disks_there (r) && percent (r, 70) &&
       try_open (r, which, true, readonly)))
    return true;
  for (unsigned i = 0; i < r->sa->nr_disks; i++)
    r->sa->disk[i]->absent = false;
  if (try_open (r, which, false, readonly))
    return true;
  if (r->in_force & disks_there (r) && try_open (r, which, true, readonly))
    return true;
  stats.given_up++;
  return false;
}

/* A look at it that may not change anything. */
static void
look_only (struct run *r)
{
  const uint64_t before = changes_made (r);

  stats.readonly++;
  if (!read_all (r) || !use_array (r, 20))
    die (r, "it crashed or failed without a write");
  if (!sim_array_stop (r->sa))
    die (r, "it does not stop");
  if (changes_made (r) != before)
    die (r, "something was written");
}

static void
draw_crash (struct run *r)
{
  r->may_crash = percent (r, 70);
  if (r->may_crash && percent (r, 70))
    sim_crash_after (r->sim, 1 + below (r, UINT64_C (1) << below (r, 13)));
}

/* From an array that is open to one that is not. */
static void
session (struct run *r)
{
  stats.sessions++;
  draw_crash (r);
  if (!make_writable (r) ||
      (percent (r, 60) && !read_all (r)) ||
      !use_array (r, 10 + below (r, 150)) ||
      (percent (r, 50) && !sim_array_pause (r->sa, below (r, 12 * SECONDS)))) {
    crash (r);
    return;
  }
  look_at_slots (r);
  if (percent (r, 40) || !stop_cleanly (r)) {
    crash (r);
    return;
  }
  sim_crash_after (r->sim, 0);
}

/* ---- the end ---- */

/* Replace what is lost, and let it be rebuilt. */
static void
make_whole (struct run *r)
{
  if (!make_writable (r))
    die (r, "it can't be made writable");
  FOR_EACH_BIT (slot, empty_slots (r->sa->a))
    command_replace (r, slot);
  if (!until (r, is_whole, 600 * SECONDS, "to be whole again"))
    die (r, "it crashed");
  look_at_slots (r);
}

/* Look at every byte, through the array and on the disks. */
static void
finish (struct run *r)
{
  char why[2000];

  say (r, "the end");
  r->may_crash = false;
  sim_crash_after (r->sim, 0);
  if (r->over)
    for (unsigned i = 0; i < r->sa->nr_disks; i++)
      memset (r->sa->disk[i]->bad, 0, r->sa->disk_size / SIM_BLOCK);
  r->over = false;
  make_whole (r);
  if (!read_all (r) || !stop_cleanly (r))
    die (r, "it failed");
  if (!sim_array_parity_is_right (r->sa, why, sizeof why))
    die (r, "%s", why);
  sim_array_image (r->sa, r->buf);
  if (!model_settle (r->model, r->buf, 0, r->g.size, why, sizeof why))
    die (r, "on the disks: %s", why);
  if (!try_open (r, disks_known (r), false, true))
    die (r, "it does not open: %s", r->sa->said);
  if (!read_all (r) || !sim_array_stop (r->sa))
    die (r, "it failed");
}

/* ---- one run ---- */

static uint64_t
draw_geometry (struct sim *sim, struct geometry *g)
{
  static const uint32_t chunk[] = { 4096, 8192, 16384 };

  *g = (struct geometry) {
    .k = 1 + sim_below (sim, 4), .m = 1 + sim_below (sim, 3),
    .chunk = chunk[sim_below (sim, 3)],
  };
  if (sim_below (sim, 10) == 0)
    g->k = 5 + sim_below (sim, 2);
  if (sim_below (sim, 10) > 0)
    return 8 + sim_below (sim, 33);
  /* Several bands in a chunk, several regions in a member. */
  g->chunk = 131072;
  g->k = 1 + sim_below (sim, 2);
  g->m = 1 + sim_below (sim, 2);
  return 3 + sim_below (sim, 10);
}

static void
start_run (struct run *r, uint64_t seed)
{
  struct sim *sim = sim_new (seed);
  uint64_t nr_stripes;

  *r = (struct run) { .seed = seed };
  nr_stripes = draw_geometry (sim, &r->g);
  r->sa = sim_array_new (seed, &r->g, nr_stripes, sim_below (sim, 3) == 0);
  sim_free (sim);
  r->sim = r->sa->sim;
  r->g = r->sa->g;
  r->n = r->g.k + r->g.m;
  r->rows_per_stripe = r->g.chunk / BLOCK_LEN;
  r->nr_rows = r->sa->nr_stripes * r->rows_per_stripe;
  r->torn = calloc (r->nr_rows, sizeof *r->torn);
  r->buf = malloc (r->g.size);
  r->model = model_new (r->g.size);
  r->max_len = MIN (r->g.size, 3 * (uint64_t) r->g.k * r->g.chunk + 9000);
  r->nr_clients = 1 + below (r, MAX_CLIENTS);
  for (unsigned i = 0; i < r->nr_clients; i++) {
    r->client[i].run = r;
    r->client[i].buf = malloc (r->max_len);
    assert (r->client[i].buf != NULL);
  }
  assert (r->torn != NULL && r->buf != NULL);
  r->trouble = percent (r, 25) ? 0 : 20 + below (r, 80);
  r->may_exceed = percent (r, 15);
  r->sa->cache_len += below (r, 2) * below (r, 3 * r->sa->cache_len);
  r->sa->writethrough = percent (r, 10);
  r->sa->window_len = (1 + below (r, 16)) * r->g.chunk;
  r->sa->save_ns = 1 + below (r, 2) * below (r, 6 * SECONDS);
  r->sa->clear_ns = 1 + below (r, 2) * below (r, 6 * SECONDS);
  r->sa->max_pause_ns = below (r, 4) * below (r, 1000000);
}

static void
end_run (struct run *r)
{
  for (unsigned i = 0; i < r->nr_clients; i++)
    free (r->client[i].buf);
  free (r->torn);
  free (r->buf);
  model_free (r->model);
  sim_array_free (r->sa);
}

static uint64_t
run (uint64_t seed)
{
  struct run r;
  uint64_t trace;

  start_run (&r, seed);
  sim_array_create (r.sa);
  r.was_active = r.in_force = LOW_BITS (r.n);
  for (unsigned n = 1 + below (&r, 5); n > 0; n--) {
    if (percent (&r, 15)) {
      if (!start_again (&r, true))
        goto end;
      look_only (&r);
    }
    if (!start_again (&r, false))
      goto end;
    session (&r);
  }
  if (start_again (&r, false))
    finish (&r);

 end:
  stats.runs++;
  trace = sim_trace (r.sim);
  end_run (&r);
  return trace;
}

static void
report (double seconds)
{
  printf ("%" PRIu64 " runs in %.1f s: %" PRIu64 " sessions (%" PRIu64
          " only looked), %" PRIu64 " crashes, %" PRIu64 " requests, %" PRIu64
          " of them failed, %" PRIu64 " replacements, %" PRIu64 " openings "
          "refused and %" PRIu64 " forced, %" PRIu64 " arrays failed, %" PRIu64
          " given up, %" PRIu64 " blocks may have been lost\n",
          stats.runs, seconds, stats.sessions, stats.readonly, stats.crashes,
          stats.requests, stats.errors, stats.replaced, stats.refused,
          stats.forced, stats.failed_arrays, stats.given_up,
          stats.lost_blocks);
}

static double
now (void)
{
  struct timespec ts;

  clock_gettime (CLOCK_MONOTONIC, &ts);
  return ts.tv_sec + ts.tv_nsec / 1e9;
}

int
main (int argc, char *argv[])
{
  const char *env = getenv ("SEED");
  const uint64_t nr = argc > 1 ? strtoull (argv[1], NULL, 10) : 0;
  const double start = now ();
  uint64_t first = env ? strtoull (env, NULL, 10) : 1;

  if (argc > 2)
    first = strtoull (argv[2], NULL, 10);
  /* Disks that are calloced cost what is used of them. */
  mallopt (M_MMAP_THRESHOLD, 256 * 1024);
  verbose = getenv ("SIM_VERBOSE") != NULL;
  printf ("first seed %" PRIu64 "\n", first);
  for (uint64_t seed = first; nr ? seed < first + nr :
       now () - start < DEFAULT_SECONDS; seed++) {
    const uint64_t trace = run (seed);

    if (seed == first && run (seed) != trace) {
      fprintf (stderr, "seed %" PRIu64 ": another run does not repeat it\n",
               seed);
      return 1;
    }
  }
  report (now () - start);
  return 0;
}
