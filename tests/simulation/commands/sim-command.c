/* gpuraid: tests: commands to a simulated array.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <stdlib.h>

#include "array/change/grow.h"
#include "array/change/readd.h"
#include "array/passes/pass.h"
#include "array/seats/seat.h"
#include "common/bits.h"
#include "tests/simulation/sim-run.h"

static void
command_done (struct sim_request *q)
{
  struct sim_command *c = (struct sim_command *) q;

  if (!q->sa->dead) {
    run_say (c->run, "command: error %d: %s", q->r.error, c->why);
    if (q->r.command.kind == COMMAND_REPLACE && q->r.error == 0)
      stats.replaced++;
    if (q->r.command.kind == COMMAND_SPARE && q->r.error == 0)
      stats.spares++;
    if (q->r.command.kind == COMMAND_READD && q->r.error == 0) {
      stats.readded++;
      stats.readded_full += q->r.command.full;
    }
  }
  sim_array_end_readd (q);
  c->run->nr_commands--;
  free (c);
}

static struct sim_command *
command_new (struct run *r)
{
  struct sim_command *c = calloc (1, sizeof *c);

  assert (c != NULL);
  c->run = r;
  r->nr_commands++;
  return c;
}

static void
command_start (struct sim_command *c)
{
  c->q.done = command_done;
  c->q.r.command.why = c->why;
  sim_request_start (&c->q);
}

void
command_fail (struct run *r, unsigned slot)
{
  struct array *a = r->sa->a;
  struct seat *s = a->at[slot][0] ? a->at[slot][0] : a->at[slot][1];
  struct sim_command *c;

  if (s == NULL || s->m == NULL ||
      !allow_faulty (r, sim_array_disk_no (r->sa, sim_array_disk_of (s))))
    return;
  run_say (r, "command: fail slot %u", slot);
  stats.fails++;
  c = command_new (r);
  sim_command_init (&c->q, r->sa, COMMAND_FAIL);
  c->q.r.command.seat = s;
  command_start (c);
}

/* A new disk, which may be slow or have faults. */
static unsigned
new_disk (struct run *r)
{
  const unsigned disk = sim_array_add_disk (r->sa);
  struct sim_disk *d = r->sa->disk[disk];

  /* So that clients and crashes overlap with it. */
  if (run_percent (r, 40))
    d->max_delay_ns = 1000000 + run_below (r, 30000000);
  if (r->chaos_on && run_percent (r, 8)) {
    d->write_error_ppm = run_below (r, 200000);
    d->flush_error_ppm = run_below (r, 200000);
    r->bad_targets |= BIT (disk);
  }
  return disk;
}

void
command_replace (struct run *r, unsigned slot)
{
  const unsigned disk = new_disk (r);
  struct sim_command *c = command_new (r);

  run_say (r, "command: replace slot %u with disk%u", slot, disk);
  sim_array_init_replace (&c->q, r->sa, slot, disk);
  command_start (c);
}

void
command_spare (struct run *r)
{
  const unsigned disk = new_disk (r);
  struct sim_command *c = command_new (r);

  run_say (r, "command: disk%u is a spare", disk);
  sim_array_init_spare (&c->q, r->sa, disk);
  command_start (c);
}

/* Nothing waits for it: a stop may come first. */
void
command_grow (struct run *r)
{
  char why[ARRAY_WHY_LEN] = "";
  int err;

  engine_lock (r->sa->a);
  err = grow_start (r->sa->a, why);
  engine_unlock (r->sa->a);
  run_say (r, "command: grow: %s", err ? why : "it begins");
  if (err == 0)
    run_crash_soon (r, 30, 40 * r->n);
}

void
command_parity (struct run *r)
{
  const unsigned disk = new_disk (r);
  struct sim_command *c = command_new (r);

  run_say (r, "command: disk%u is one more parity member", disk);
  sim_array_init_parity (&c->q, r->sa, disk);
  r->sa->more_parity = true;
  command_start (c);
}

void
command_parity_cancel (struct run *r)
{
  struct sim_command *c = command_new (r);

  run_say (r, "command: parity is not added");
  sim_command_init (&c->q, r->sa, COMMAND_PARITY_CANCEL);
  command_start (c);
}

static const struct seat *
find_spare (const struct array *a)
{
  for (unsigned i = 0; i < a->nr_seats; i++)
    if (a->seat[i]->m && !a->seat[i]->failing &&
        a->seat[i]->state == SEAT_SPARE)
      return a->seat[i];
  return NULL;
}

void
command_widen (struct run *r)
{
  const struct seat *s = find_spare (r->sa->a);
  struct sim_command *c;

  if (s == NULL) {
    command_spare (r);
    return;
  }
  run_say (r, "command: disk%u is one more data member",
           sim_array_disk_no (r->sa, sim_array_disk_of (s)));
  c = command_new (r);
  sim_command_init (&c->q, r->sa, COMMAND_WIDEN);
  c->q.r.command.uuid = s->uuid;
  r->sa->widens = true;
  command_start (c);
}

void
command_widen_cancel (struct run *r)
{
  struct sim_command *c = command_new (r);

  run_say (r, "command: the array is not widened");
  sim_command_init (&c->q, r->sa, COMMAND_WIDEN_CANCEL);
  command_start (c);
}

/* What was wrong with it has passed, or not. */
static void
come_back (struct run *r, unsigned disk)
{
  struct sim_disk *d = r->sa->disk[disk];

  d->dead = false;
  if (run_percent (r, 20))
    return;
  d->read_error_ppm = d->write_error_ppm = d->flush_error_ppm = 0;
}

static bool
is_idle (struct run *r, const struct sim_disk *d)
{
  bool is;

  engine_lock (r->sa->a);
  is = readd_find_idle (r->sa->a, d->name) != NULL;
  engine_unlock (r->sa->a);
  return is;
}

void
command_readd (struct run *r)
{
  const unsigned disk = run_below (r, r->sa->nr_disks);
  struct sim_disk *d = r->sa->disk[disk];
  struct sim_command *c;

  if (d->hung || d->absent)
    return;
  if ((d->readers || d->writers) && !is_idle (r, d))
    return;
  copies_readd (r, disk);
  come_back (r, disk);
  c = command_new (r);
  if (!sim_array_init_readd (&c->q, r->sa, disk)) {
    r->nr_commands--;
    free (c);
    return;
  }
  run_say (r, "command: take disk%u again", disk);
  if (run_percent (r, 40))
    d->max_delay_ns = 1000000 + run_below (r, 30000000);
  command_start (c);
}

static void
pause_ends (void *arg)
{
  struct run *r = arg;
  char why[ARRAY_WHY_LEN];

  if (r->sa->a == NULL)
    return;
  engine_lock (r->sa->a);
  (void) pass_pause (r->sa->a, false, why);
  engine_unlock (r->sa->a);
}

void
command_pause (struct run *r)
{
  char why[ARRAY_WHY_LEN];
  int err;

  engine_lock (r->sa->a);
  err = pass_pause (r->sa->a, true, why);
  engine_unlock (r->sa->a);
  if (err)
    return;
  run_say (r, "command: pause the rebuild");
  stats.pauses++;
  sim_at (r->sim, 1 + run_below (r, 3000) * 1000000, pause_ends, r);
}

void
command_forget (struct run *r)
{
  const struct array *a = r->sa->a;
  struct sim_command *c;
  unsigned dev;

  for (dev = 0; dev < SB_MAX_DEVICES; dev++)
    if (seat_spare_is_missing (a, dev))
      break;
  if (dev == SB_MAX_DEVICES)
    return;
  run_say (r, "command: take the missing spare out");
  stats.forgotten++;
  c = command_new (r);
  sim_command_init (&c->q, r->sa, COMMAND_FAIL);
  c->q.r.command.uuid = a->membership.device[dev].uuid;
  command_start (c);
}

/* ---- several at once ----------------------------------------------------- */

static uint64_t
draw (struct run *r, uint64_t n)
{
  if (r->several_state == 0)
    r->several_state = r->seed * 0x9e3779b97f4a7c15 | 1;
  r->several_state = r->several_state * 6364136223846793005 +
    1442695040888963407;
  return (r->several_state >> 33) % n;
}

static void
any_command (struct run *r)
{
  const bool room = r->sa->nr_disks + 1 < MAX_REPLACED;

  switch (draw (r, 8)) {
  case 0: command_fail (r, draw (r, r->n)); break;
  case 1: command_readd (r); break;
  case 2: if (room) command_replace (r, draw (r, r->n)); break;
  case 3: if (room && r->use_spares) command_spare (r); break;
  case 4: if (r->spare_len) command_grow (r); break;
  case 5: command_pause (r); break;
  case 6: command_forget (r); break;
  case 7: if (room) shape_command (r); break;
  }
}

/* Beside the run's own numbers, in a quarter of the runs: the others stay those
 * that they were.
 */
void
command_several (struct run *r)
{
  const unsigned before = r->nr_commands;

  if (r->seed % 4 != 2 || draw (r, 12))
    return;
  for (unsigned n = 2 + draw (r, 3); n > 0; n--)
    any_command (r);
  if (r->nr_commands > before + 1)
    stats.several += r->nr_commands - before;
}
