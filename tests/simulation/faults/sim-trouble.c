/* gpuraid: tests: which faults happen, and when.
 *
 * sim-allow.c decides how many may.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/bits.h"
#include "tests/simulation/sim-run.h"

/* faults that end by themselves */

/* A crash drops the event, and this with the run. */
struct ending {
  struct run *run;
  unsigned disk;
};

static struct ending *
ending_of (struct run *r, unsigned no)
{
  static struct ending endings[SIM_MAX_DISKS];

  endings[no] = (struct ending) { r, no };
  return &endings[no];
}

static void
unhang (void *arg)
{
  const struct ending *e = arg;

  sim_disk_hang (e->run->sa->disk[e->disk], false);
  e->run->long_hung &= ~BIT (e->disk);
}

static void
end_read_errors (void *arg)
{
  const struct ending *e = arg;

  e->run->sa->disk[e->disk]->read_error_ppm = 0;
  run_say (e->run, "disk%u: no more read errors", e->disk);
}

static void
end_full (void *arg)
{
  const struct ending *e = arg;

  trouble_has_space (e->run, e->disk);
}

void
trouble_has_space (struct run *r, unsigned disk)
{
  if ((r->full >> disk & 1) == 0)
    return;
  run_say (r, "disk%u: has space again", disk);
  r->sa->disk[disk]->full = false;
  r->full &= ~BIT (disk);
  r->full_long &= ~BIT (disk);
  /* A write that waits for space may take a while to notice it. */
  r->full_ended = sim_now (r->sim) + 10 * SECONDS;
}

/* ---- kinds ---- */

static void
be_slow (struct run *r, unsigned no)
{
  r->sa->disk[no]->max_delay_ns = 1000000 + run_below (r, 200000000);
  run_say (r, "disk%u: slow", no);
  stats.slow++;
}

/* Permanently, or for some milliseconds. */
static void
fail_reads (struct run *r, unsigned no)
{
  const bool soon = run_percent (r, 60);

  if (!allow_unreadable (r, no))
    return;
  r->flaky = true;
  r->sa->disk[no]->read_error_ppm = soon && run_percent (r, 50) ? 1000000 :
    10000 + run_below (r, 300000);
  run_say (r, "disk%u: read errors%s", no, soon ? " for a moment" : "");
  stats.read_errors++;
  if (soon)
    sim_at (r->sim, run_below (r, 50000000), end_read_errors,
            ending_of (r, no));
}

static void
fail_writes (struct run *r, unsigned no)
{
  if (!allow_faulty (r, no))
    return;
  r->sa->disk[no]->write_error_ppm = 1000 + run_below (r, 300000);
  run_say (r, "disk%u: write errors", no);
  stats.write_errors++;
}

static void
fail_flushes (struct run *r, unsigned no)
{
  if (!allow_faulty (r, no))
    return;
  r->sa->disk[no]->flush_error_ppm = 1000 + run_below (r, 300000);
  run_say (r, "disk%u: flush errors", no);
  stats.flush_errors++;
}

/* A place of a page of the checksum table. */
static void
spoil_page (struct run *r, struct sim_disk *d)
{
  const struct member_layout *l = &r->sa->l;
  const uint64_t no = run_below (r, table_nr_pages (l));
  const unsigned place = run_below (r, 2);
  const uint64_t first = no * limits.table_page_entries;

  run_say (r, "%s: place %u of page %" PRIu64 " of the table is bad", d->name,
           place, no);
  sim_disk_set_bad (d, table_page_off (l, no, place), TABLE_PAGE_LEN);
  /* The array may grow. */
  for (uint64_t row = first;
       row < MIN (r->max_rows, first + limits.table_page_entries); row++)
    allow_bad_row (r, row);
  stats.bad_pages++;
}

static void
spoil_blocks (struct run *r, unsigned no)
{
  const struct member_layout *l = &r->sa->l;
  struct sim_disk *d = r->sa->disk[no];

  if (!allow_unreadable (r, no))
    return;
  r->spoilt |= BIT (no);
  for (unsigned n = 1 + run_below (r, 4); n > 0; n--) {
    const uint64_t b = run_below (r, l->data_len / BLOCK_LEN);
    const uint64_t left = l->data_len / BLOCK_LEN - b;
    const uint64_t off = layout_data_off (l, b * BLOCK_LEN);
    uint64_t nr = 1 + run_below (r, 3), run;

    /* Drawn again, as a seed is to stay the run that it was. */
    if (nr < left)
      nr = 1 + run_below (r, 3);
    run = layout_data_run (l, b * BLOCK_LEN, MIN (nr, left) * BLOCK_LEN);
    run_say (r, "%s: bad blocks at %" PRIu64 "+%" PRIu64, d->name, off, run);
    sim_disk_set_bad (d, off, run);
  }
  stats.bad_blocks++;
  allow_bad_blocks (r, d);
  if (r->sums && run_percent (r, 30))
    spoil_page (r, d);
}

static void
fail_it (void *arg)
{
  const struct ending *e = arg;
  struct run *r = e->run;

  for (unsigned slot = 0; slot < r->n && r->chaos_on; slot++)
    if (r->sa->a->at[slot][0] &&
        sim_array_disk_at (r->sa, slot) == r->sa->disk[e->disk])
      command_fail (r, slot);
}

/* For a moment; or until long after it is taken out. */
static void
hang (struct run *r, unsigned no)
{
  const bool is_long = allow_kind ("long") && run_percent (r, 25);
  uint64_t ns = run_below (r, run_percent (r, 30) ? 9 * SECONDS :
                           SECONDS / 2);

  if (!allow_kind ("hang") || !allow_faulty (r, no))
    return;
  if (is_long)
    ns = 40 * SECONDS + run_below (r, 200 * SECONDS);
  run_say (r, "disk%u: hangs for %" PRIu64 " ms", no, ns / 1000000);
  sim_disk_hang (r->sa->disk[no], true);
  sim_at (r->sim, ns, unhang, ending_of (r, no));
  stats.hangs++;
  if (!is_long)
    return;
  r->long_hung |= BIT (no);
  stats.long_hangs++;
  if (run_percent (r, 70))
    sim_at (r->sim, run_below (r, 20 * SECONDS), fail_it, ending_of (r, no));
}

static void
die (struct run *r, unsigned no)
{
  if ((r->blocks_less && r->sa->a->nr_unsynced > 0) || !allow_faulty (r, no))
    return;
  run_say (r, "disk%u: dead", no);
  stats.dead++;
  r->sa->disk[no]->dead = true;
  /* While parity may be wrong it is not taken out for its reads. */
  r->unreadable |= BIT (no);
  r->flaky = true;
}

/* In an eighth of the runs one disk in each session, for longer than clients
 * allow for a request: so one is seen that waits for space and must not.  The
 * other runs stay those that they were.
 */
static bool
stays_full (struct run *r)
{
  return r->seed / 4 % 8 == 0 && !r->stayed_full && run_percent (r, 50);
}

static void
be_full (struct run *r, unsigned no)
{
  uint64_t ns;

  if (!allow_kind ("full") || r->full >> no & 1)
    return;
  r->sa->disk[no]->full = true;
  r->full |= BIT (no);
  stats.full++;
  ns = run_below (r, run_percent (r, 30) ? 15 * SECONDS : SECONDS / 2);
  if (stays_full (r)) {
    ns = (320 + run_below (r, 100)) * SECONDS;
    r->full_long |= BIT (no);
    r->stayed_full = true;
    stats.full_long++;
  }
  run_say (r, "disk%u: full for %" PRIu64 " ms", no, ns / 1000000);
  sim_at (r->sim, ns, end_full, ending_of (r, no));
}

/* The process does not run, for a moment or very long.  In a quarter of the
 * runs; the others stay those that they were.
 */
static void
pause_all (struct run *r)
{
  static const uint64_t seconds[] = { 1, 40, 2000 };
  uint64_t ns;

  if (r->seed * UINT64_C (0x9e3779b97f4a7c15) >> 62 || !allow_kind ("pause") ||
      !run_percent (r, 8))
    return;
  ns = run_below (r, seconds[run_below (r, 3)] * SECONDS);
  run_say (r, "paused for %" PRIu64 " ms", ns / 1000000);
  stats.stood_still++;
  sim_pause (r->sim, ns);
}

static void
trouble_disk (struct run *r, unsigned no)
{
  static void (*const kind[]) (struct run *, unsigned) = {
    be_slow, fail_reads, fail_writes, fail_flushes, spoil_blocks, hang, die,
    be_full,
    /* Only with checksums: */
    rot_disk, rot_disk, rot_disk, rot_writes,
  };

  kind[run_below (r, ARRAY_LEN (kind) - (r->sums ? 0 : 4))] (r, no);
}

/* While a record is proposed or accepted: writes of superblocks fail, and what
 * should have followed them.
 */
void
trouble_in_change (struct run *r)
{
  const unsigned no = run_below (r, r->sa->nr_disks);

  if (!r->chaos_on || !run_percent (r, 2) || !allow_faulty (r, no))
    return;
  if (run_percent (r, 50))
    r->sa->disk[no]->write_error_ppm = 1000000;
  else
    r->sa->disk[no]->flush_error_ppm = 1000000;
  run_say (r, "disk%u: fails in a change", no);
  stats.fail_in_change++;
}

/* While parity is made anew. */
void
trouble_in_resync (struct run *r)
{
  const unsigned slot = run_below (r, r->n);
  unsigned no;

  if (r->trouble == 0 || r->sa->a->nr_unsynced == 0 ||
      r->sa->a->at[slot][0] == NULL || !run_percent (r, 40))
    return;
  no = sim_array_disk_no (r->sa, sim_array_disk_at (r->sa, slot));
  if (run_percent (r, 70))
    fail_reads (r, no);
  else
    trouble_disk (r, no);
}

/* ---- when ---- */

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
  /* Only commands are waited for, and on slow disks more come than end. */
  const bool has_many = r->nr_busy == 0 && r->nr_commands > 4;
  unsigned slot;

  if (!r->chaos_on || a->failed)
    return;
  slot = run_below (r, r->n);
  pause_all (r);
  if (is_half_way (r))
    run_crash_soon (r, 15, 100);
  /* Not always: a seed is to stay the run that it was. */
  if (a->writable && getenv ("SIM_MORE")) {
    if (run_percent (r, 20))
      command_pause (r);
    if (run_percent (r, 20))
      command_forget (r);
  }
  if (a->writable && !has_many)
    command_several (r);
  if (a->writable && !has_many) {
    const uint64_t empty = run_empty_slots (a);

    shape_command (r);
    if (r->spare_len && run_percent (r, 15))
      command_grow (r);
    if (r->use_spares && r->sa->nr_disks < MAX_REPLACED && run_percent (r, 8))
      command_spare (r);
    if (empty && run_percent (r, 50))
      command_readd (r);
    else if (empty && run_percent (r, 60) && r->sa->nr_disks < MAX_REPLACED)
      command_replace (r, __builtin_ctzll (empty));
    else if (run_percent (r, 8) && r->sa->nr_disks < MAX_REPLACED)
      command_replace (r, slot);
    else if (run_percent (r, 15))
      command_fail (r, slot);
    else if (run_percent (r, 5))
      command_readd (r);
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
    d->lose_write_ppm = d->tear_write_ppm = d->misdirect_write_ppm = 0;
    d->max_delay_ns = 100000 + run_below (r, slow ? 40000000 : 1000000);
    d->absent = d->full = false;
    if (d->hung)
      sim_disk_hang (d, false);
  }
  r->faulty = 0;
  r->ever_unreadable |= r->unreadable;
  r->unreadable = r->spoilt;
  r->bad_targets = r->full = r->full_long = r->full_ended = 0;
  r->long_hung = 0;
  r->stayed_full = false;
}
