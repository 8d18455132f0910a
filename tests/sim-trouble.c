/* gpuraid: tests: what goes wrong, and commands.
 *
 * At most m members are in trouble at once, except in runs that may
 * exceed that.
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

#include "common/bits.h"
#include "tests/sim-run.h"

/* May this disk be in trouble too?  It is counted if so. */
static bool
can_afford (struct run *r, unsigned disk)
{
  const uint64_t faulty = r->faulty | BIT (disk);
  const uint64_t slots = r->sa->a->lost_slots | run_slots_of (r, faulty);

  if (nr_bits (slots) > r->g.m) {
    if (!r->may_exceed || !run_percent (r, 30))
      return false;
    if (!r->over)
      run_say (r, "from here on more than m are in trouble");
    r->over = true;
    model_shaky (r->model, true);
  }
  r->faulty = faulty;
  /* A block that can't be read is lost like one of a lost member. */
  FOR_EACH_BIT (slot, run_slots_of (r, BIT (disk)))
    run_lose_slot (r, slot, false);
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
    run_say (c->run, "command: error %d: %s", q->r.error, c->why);
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
  run_say (r, "command: fail slot %u", slot);
  c = command_new (r);
  sim_request_init (&c->q, r->sa, REQUEST_FAIL);
  c->q.r.seat = s;
  command_start (c);
}

void
command_replace (struct run *r, unsigned slot)
{
  struct command *c;
  unsigned disk;

  disk = sim_array_add_disk (r->sa);
  run_say (r, "command: replace slot %u with disk%u", slot, disk);
  /* So that clients, and crashes, meet it half way. */
  if (run_percent (r, 40))
    r->sa->disk[disk]->max_delay_ns = 1000000 + run_below (r, 30000000);
  if (r->chaos_on && run_percent (r, 8)) {
    r->sa->disk[disk]->write_error_ppm = run_below (r, 200000);
    r->sa->disk[disk]->flush_error_ppm = run_below (r, 200000);
    r->bad_targets |= BIT (disk);
  }
  c = command_new (r);
  sim_array_init_replace (&c->q, r->sa, slot, disk);
  command_start (c);
}

static void
spoil_blocks (struct run *r, struct sim_disk *d)
{
  const struct member_layout *l = &r->sa->l;

  for (unsigned n = 1 + run_below (r, 4); n > 0; n--) {
    const uint64_t b = run_below (r, l->data_len / BLOCK_LEN);
    const uint64_t len = MIN (1 + run_below (r, 3),
                              l->data_len / BLOCK_LEN - b);

    run_say (r, "%s: bad blocks at %" PRIu64 "+%" PRIu64, d->name,
         l->data_off + b * BLOCK_LEN, len * BLOCK_LEN);
    sim_disk_set_bad (d, l->data_off + b * BLOCK_LEN, len * BLOCK_LEN);
  }
}

static void
trouble_disk (struct run *r, unsigned no)
{
  struct sim_disk *d = r->sa->disk[no];
  const unsigned what = run_below (r, 7);

  if (what == 0) {
    d->max_delay_ns = 1000000 + run_below (r, 200000000);
    run_say (r, "%s: slow", d->name);
    return;
  }
  if (!can_afford (r, no))
    return;
  switch (what) {
  case 1:
    d->read_error_ppm = 10000 + run_below (r, 300000);
    run_say (r, "%s: read errors", d->name);
    break;
  case 2:
    d->write_error_ppm = 1000 + run_below (r, 300000);
    run_say (r, "%s: write errors", d->name);
    break;
  case 3:
    d->flush_error_ppm = 1000 + run_below (r, 300000);
    run_say (r, "%s: flush errors", d->name);
    break;
  case 4:
    r->spoilt |= BIT (no);
    spoil_blocks (r, d);
    break;
  case 5:
    run_say (r, "%s: hangs", d->name);
    sim_disk_hang (d, true);
    sim_at (r->sim,
            run_below (r, run_percent (r, 30) ? 9 * SECONDS : SECONDS / 2),
            unhang, d);
    break;
  case 6:
    run_say (r, "%s: dead", d->name);
    d->dead = true;
    break;
  }
}

static void
chaos_soon (struct run *r)
{
  static const uint64_t ms[] = { 1, 10, 100, 1000 };

  sim_at (r->sim, 1 + run_below (r, ms[run_below (r, 4)] * 1000000),
          trouble_start, r);
}

/* Is some target partly current? */
static bool
is_half_way (const struct run *r)
{
  const struct array *a = r->sa->a;

  for (unsigned i = 0; i < a->nr_seats; i++)
    if (a->seat[i]->state == SEAT_TARGET && a->seat[i]->cursor > 0 &&
        a->seat[i]->cursor < r->sa->l.data_len)
      return true;
  return false;
}

void
trouble_start (void *arg)
{
  struct run *r = arg;
  struct array *a = r->sa->a;
  unsigned slot;

  if (!r->chaos_on || a->failed)
    return;
  slot = run_below (r, r->n);
  if (is_half_way (r))
    run_crash_soon (r, 15, 100);
  if (a->writable) {
    const uint64_t empty = run_empty_slots (a);

    if (empty && run_percent (r, 60) && r->sa->nr_disks < MAX_REPLACED)
      command_replace (r, __builtin_ctzll (empty));
    else if (run_percent (r, 8) && r->sa->nr_disks < MAX_REPLACED)
      command_replace (r, slot);
    else if (run_percent (r, 15))
      command_fail (r, slot);
    else if (a->at[slot][0] && run_percent (r, r->trouble))
      trouble_disk (r, sim_array_disk_no (r->sa,
                                          sim_array_disk_at (r->sa, slot)));
  }
  chaos_soon (r);
}

void
trouble_end (struct run *r)
{
  const bool slow = run_percent (r, 15);

  for (unsigned i = 0; i < r->sa->nr_disks; i++) {
    struct sim_disk *d = r->sa->disk[i];

    d->read_error_ppm = d->write_error_ppm = d->flush_error_ppm = 0;
    d->max_delay_ns = 100000 + run_below (r, slow ? 40000000 : 1000000);
    d->absent = false;
    if (d->hung)
      sim_disk_hang (d, false);
  }
  r->faulty = r->spoilt;
}
