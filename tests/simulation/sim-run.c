/* gpuraid: tests: one run of the simulation: shared code.
 *
 * Computes which blocks may be lost with a slot: a row is *torn* from a crash
 * in which it was being written until its region is synced, and with each slot
 * that is not active at the crash or before the sync, the torn rows lose the
 * blocks of that slot.
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

#include "array/dirty/dirty.h"
#include "common/bits.h"
#include "raidmap/layout/reshape.h"
#include "tests/simulation/sim-run.h"

void
run_die (struct run *r, const char *fmt, ...)
{
  char text[500], replay[REPLAY_LEN];
  va_list args;

  replay_line (r->seed, replay, sizeof replay);
  draw_describe (r, text, sizeof text);
  va_start (args, fmt);
  fflush (stdout);
  fprintf (stderr, "seed %" PRIu64 ", at %.3f ms, moment %" PRIu64 ": ",
           r->seed, sim_now (r->sim) / 1e6, sim_moments (r->sim));
  vfprintf (stderr, fmt, args);
  fprintf (stderr, "\n%s\n%s", text, replay);
  va_end (args);
  exit (1);
}

void
run_say (struct run *r, const char *fmt, ...)
{
  va_list args;

  if (getenv ("SIM_VERBOSE") == NULL)
    return;
  va_start (args, fmt);
  fprintf (stderr, "%12.6f ms: -- ", sim_now (r->sim) / 1e6);
  vfprintf (stderr, fmt, args);
  fputc ('\n', stderr);
  va_end (args);
}

uint64_t
run_below (struct run *r, uint64_t n)
{
  return sim_below (r->sim, n);
}

bool
run_percent (struct run *r, unsigned n)
{
  return run_below (r, 100) < n;
}

/* ---- slots ---- */

/* Slots whose disks are among these. */
uint64_t
run_slots_of (const struct run *r, uint64_t disks)
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

uint64_t
run_active_disks (const struct run *r)
{
  const struct array *a = r->sa->a;
  uint64_t disks = 0;

  for (unsigned i = 0; i < a->nr_seats; i++)
    if (a->seat[i]->m && a->seat[i]->state == SEAT_ACTIVE)
      disks |= BIT (sim_array_disk_no (r->sa,
                                       sim_array_disk_of (a->seat[i])));
  return disks;
}

uint64_t
run_empty_slots (const struct array *a)
{
  uint64_t slots = 0;

  FOR_EACH_BIT (slot, a->lost_slots)
    if (a->at[slot][1] == NULL)
      slots |= BIT (slot);
  return slots;
}

uint64_t
run_changes_made (const struct run *r)
{
  uint64_t nr = 0;

  for (unsigned i = 0; i < r->sa->nr_disks; i++)
    nr += r->sa->disk[i]->nr_ios[IO_WRITE] + r->sa->disk[i]->nr_ios[IO_ZERO] +
      r->sa->disk[i]->nr_ios[IO_TRIM] + r->sa->disk[i]->nr_ios[IO_FLUSH];
  return nr;
}

bool
run_address (const struct run *r, uint64_t row, unsigned role, uint64_t *off)
{
  const struct geometry *g = &r->sa->g;
  const unsigned k = g->k - reshape_is_old (g, row);

  *off = (row / r->rows_per_stripe * k + role) * g->chunk +
    row % r->rows_per_stripe * BLOCK_LEN;
  return role < k && !reshape_is_dead (g, row);
}

/* ---- torn rows ---- */

static uint64_t
row_of (const struct run *r, const struct piece *p)
{
  return p->stripe * r->rows_per_stripe + p->chunk_off / BLOCK_LEN;
}

bool
run_is_unsynced (const struct array *a, uint64_t pos)
{
  const uint64_t region = pos / a->sb.l.region_len;

  return a->unsynced[region / 64] >> (region % 64) & 1;
}

/* The torn rows lose their blocks on a slot. */
void
run_lose_slot (struct run *r, unsigned slot, bool synced_too)
{
  if (r->journal)
    return;
  for (uint64_t row = 0; row < r->nr_rows && r->any_torn; row++) {
    const uint64_t stripe = row / r->rows_per_stripe;
    const uint32_t chunk_off = row % r->rows_per_stripe * BLOCK_LEN;
    const unsigned role = layout_role (&r->g, stripe, slot);
    uint64_t off;

    if (!r->torn[row] || role >= r->g.k)
      continue;
    if (!synced_too &&
        !run_is_unsynced (r->sa->a, stripe * r->g.chunk + chunk_off))
      continue;
    off = layout_address (&r->g, stripe, role, chunk_off);
    /* Also where it may grow. */
    if (off >= r->max_size)
      continue;
    model_lose (r->model, off, BLOCK_LEN);
    stats.lost_blocks++;
    run_say (r, "the block at %" PRIu64 " (slot %u) may be lost", off, slot);
  }
}

/* A crash right after an event is most likely to reveal a mistake. */
void
run_crash_soon (struct run *r, unsigned chance, unsigned moments)
{
  if (r->may_crash && run_percent (r, chance))
    sim_crash_after (r->sim, 1 + run_below (r, moments));
}

/* Check whether another slot is not active any more. */
void
run_look_at_slots (struct run *r)
{
  const uint64_t lost = r->sa->a->lost_slots;

  if (lost == r->lost)
    return;
  run_say (r, "slots that are not active: %#" PRIx64, lost);
  run_crash_soon (r, 25, 40);
  FOR_EACH_BIT (slot, lost & ~r->lost) {
    run_lose_slot (r, slot, false);
    check_ejected (r, slot);
  }
  r->lost = lost;
}

/* A target's faults end before they count, if there are enough others. */
static void
look_at_targets (struct run *r)
{
  const struct array *a = r->sa->a;
  const uint64_t disks = r->faulty | (r->may_lose_rows ? 0 : r->unreadable);

  for (unsigned i = 0; i < a->nr_seats && r->bad_targets; i++) {
    const struct seat *s = a->seat[i];
    const unsigned no = s->m ?
      sim_array_disk_no (r->sa, sim_array_disk_of (s)) : 0;

    if (s->m == NULL || (r->bad_targets >> no & 1) == 0 ||
        s->state == SEAT_SPARE ||
        (s->state == SEAT_TARGET && !s->complete))
      continue;
    r->bad_targets &= ~BIT (no);
    if (nr_bits (a->lost_slots | run_slots_of (r, disks) |
                 BIT (s->slot)) > r->g.m)
      r->sa->disk[no]->write_error_ppm =
        r->sa->disk[no]->flush_error_ppm = 0;
    else
      r->faulty |= BIT (no);
  }
}

/* The checksums of a slot are those of both its members: what one of them has
 * spoilt is made anew when it is found, perhaps after that member is gone.
 */
static void
inherit_spoilt (struct run *r, const struct seat *s, const struct seat *t)
{
  const unsigned no = sim_array_disk_no (r->sa, sim_array_disk_of (s));

  if (r->sums && t->m && r->spoilt >> no & 1) {
    const unsigned other = sim_array_disk_no (r->sa, sim_array_disk_of (t));

    r->spoilt |= BIT (other);
    r->unreadable |= BIT (other);
  }
}

/* For a moment a slot has two active members. */
static void
look_at_twos (struct run *r)
{
  const struct array *a = r->sa->a;
  bool two = false;

  FOR_EACH_BIT (slot, a->irregular_slots) {
    const struct seat *s = a->at[slot][0], *t = a->at[slot][1];

    two |= s && t && s->state == SEAT_ACTIVE && t->state == SEAT_ACTIVE;
    if (s && t && s->m)
      inherit_spoilt (r, s, t);
  }
  if (two && !r->two_now)
    run_crash_soon (r, 80, 40);
  r->two_now = two;
}

/* It may fail if too much is lost, or held in memory for rows that can't be
 * written, or for members without space at a stop.  While a data slot is added
 * or taken back its member may be one that is lost in the record before.
 */
void
run_look_at_failure (struct run *r)
{
  const struct array *a = r->sa->a;

  if (!a->failed || r->over)
    return;
  if (!(r->rows_lost && a->nr_stuck > 0) && !(r->full && a->stopping) &&
      nr_bits (a->lost_slots |
               run_slots_of (r, r->faulty | r->unreadable)) +
      r->resizes <= r->g.m)
    run_die (r, "the array has failed, with no more than m members in "
             "trouble");
  stats.held_too_much++;
  r->over = true;
  model_shaky (r->model, true);
}

/* Check whether a page of dirty bits is being written, and whether it clears
 * some.
 */
static void
look_at_pages (struct run *r)
{
  const struct array *a = r->sa->a;

  for (uint64_t i = 0; i < a->nr_pages; i++) {
    const struct dirty_page *p = a->page[i];
    bool clears = false;

    if (p->want.counter == r->page[i].counter)
      continue;
    for (unsigned w = 0; w < BITMAP_PAGE_WORDS; w++) {
      clears |= (r->page[i].open[w] & ~p->sending.open[w]) != 0;
      r->page[i].open[w] = p->sending.open[w];
    }
    r->page[i].counter = p->want.counter;
    stats.pages_cleared += clears;
    run_crash_soon (r, clears ? 15 : 2, 3 * r->n);
  }
}

/* Check whether a record is being proposed or accepted, by one member before
 * another; and after a kill, perhaps because of what was left in a cache; or
 * where a copy is bad, and another is being written.
 */
static void
look_at_record (struct run *r)
{
  const enum membership_phase phase = r->sa->a->membership.phase;

  if (phase == r->record_phase)
    return;
  r->record_phase = phase;
  if (phase == MEMBERSHIP_PROPOSE)
    run_crash_soon (r, r->killed || r->rest_rotted ? 25 : 3, 4 * r->n);
  else if (phase == MEMBERSHIP_ACCEPT)
    run_crash_soon (r, r->rest_rotted ? 40 : 15, 4 * r->n);
  if (phase == MEMBERSHIP_PROPOSE || phase == MEMBERSHIP_ACCEPT)
    trouble_in_change (r);
}

bool
run_step (struct run *r)
{
  if (!sim_step (r->sim))
    return false;
  shape_look (r);
  run_look_at_slots (r);
  allow_look (r);
  look_at_pages (r);
  look_at_targets (r);
  look_at_twos (r);
  look_at_record (r);
  run_look_at_failure (r);
  check_synced (r);
  scrub_look (r);
  recovery_look (r);
  return true;
}

/* It has stopped; which rows were being written? */
void
run_note_torn (struct run *r)
{
  struct piece p;

  r->any_torn = false;
  for (uint64_t row = 0; row < r->nr_rows; row++)
    if (r->torn[row] &&
        !run_is_unsynced (r->sa->a, row / r->rows_per_stripe * r->g.chunk +
                      row % r->rows_per_stripe * BLOCK_LEN))
      r->torn[row] = false;
  model_crash (r->model);
  for (uint64_t off = 0; off < r->g.size && !r->journal; off += BLOCK_LEN) {
    layout_piece (&r->g, off, BLOCK_LEN, &p);
    if (model_was_in_flight (r->model, off, BLOCK_LEN))
      r->torn[row_of (r, &p)] = true;
    r->any_torn |= r->torn[row_of (r, &p)];
  }
}
