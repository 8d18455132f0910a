/* gpuraid: tests: which faults and which errors are allowed.
 *
 * Members with faults are counted in two kinds.  Those that may lose writes
 * (faulty) are at most m at once, with the slots that are not active.  A block
 * that can't be read is no loss (unreadable): with the others these may be more
 * than m in some runs.  Then requests that need such a row may get EIO, and no
 * others.  The same holds for regions that are not synced: their parity is no
 * help.
 *
 * A member that was corrupted silently counts as one with such blocks, for
 * ever.  Where more than m could be in trouble only data is corrupted.
 *
 * In runs that may exceed m altogether (over) any error is allowed from then
 * on.  Wrong data never is.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bits.h"
#include "raidmap/layout/reshape.h"
#include "tests/simulation/sim-run.h"

bool
allow_kind (const char *kind)
{
  static const char *without;

  if (without == NULL)
    without = getenv ("SIM_WITHOUT") ? getenv ("SIM_WITHOUT") : "";
  return strstr (without, kind) == NULL;
}

/* What is in no ring that is there is lost, also when fewer are in trouble
 * again.
 */
static void
lose_rows_of_rings (struct run *r)
{
  if (!r->ringless)
    return;
  r->rows_lost = true;
  for (uint64_t row = 0; row < r->nr_rows; row++)
    r->bad_row[row] = true;
}

bool
allow_faulty (struct run *r, unsigned disk)
{
  const uint64_t faulty = r->faulty | BIT (disk);

  if (nr_bits (r->sa->a->lost_slots | run_slots_of (r, faulty)) > r->g.m) {
    if (!r->may_exceed || !run_percent (r, 30))
      return false;
    if (!r->over) {
      run_say (r, "from here on more than m are in trouble");
      stats.exceeded++;
    }
    r->over = true;
    lose_rows_of_rings (r);
    model_shaky (r->model, true);
  }
  if (!r->may_lose_rows &&
      nr_bits (r->sa->a->lost_slots |
               run_slots_of (r, faulty | r->unreadable)) > r->g.m)
    return false;
  r->faulty = faulty;
  return true;
}

bool
allow_unreadable (struct run *r, unsigned disk)
{
  const uint64_t disks = r->faulty | r->unreadable | BIT (disk);

  if (r->blocks_less || !allow_kind ("unreadable") ||
      (!r->may_lose_rows &&
       nr_bits (r->sa->a->lost_slots | run_slots_of (r, disks)) > r->g.m))
    return false;
  r->unreadable |= BIT (disk);
  allow_look (r);
  return true;
}

bool
allow_rot (struct run *r, unsigned disk, bool no_loss)
{
  const uint64_t disks = r->faulty | r->unreadable | BIT (disk);

  if (!r->sums || !allow_kind ("rot") || r->may_exceed || r->over)
    return false;
  /* Without a journal what is found in such a region counts. */
  if (!r->journal && r->sa->a->nr_unsynced > 0)
    return false;
  if (r->may_lose_rows ? no_loss || !allow_unreadable (r, disk) :
      nr_bits (r->sa->a->lost_slots | run_slots_of (r, disks)) > r->g.m)
    return false;
  r->unreadable |= BIT (disk);
  r->spoilt |= BIT (disk);
  r->sa->rotted |= BIT (disk);
  r->sa->ever_rotted |= BIT (disk);
  r->any_rot = true;
  allow_look (r);
  return true;
}

static uint64_t
slots_in_trouble (const struct run *r)
{
  const uint64_t bad = r->spoilt | r->ringless |
    (r->may_lose_rows ? 0 : r->unreadable);
  /* It may have been opened with another record since. */
  uint64_t slots = (r->was_lost | (r->first ? BIT (r->n - 1) : 0)) &
    LOW_BITS (r->n);

  /* Of two active members of a slot each may be the only one, as the last
   * record may not count.
   */
  for (unsigned i = 0; i < 2; i++)
    for (unsigned slot = 0; slot < r->n; slot++) {
      const struct sim_disk *d = r->at[i][slot];

      if (d && (d->absent || d->dead ||
                bad >> sim_array_disk_no (r->sa, d) & 1))
        slots |= BIT (slot);
    }
  return slots;
}

bool
allow_at_rest (struct run *r, const struct sim_disk *disk)
{
  const uint64_t bad = r->older | BIT (sim_array_disk_no (r->sa, disk));
  uint64_t slots = slots_in_trouble (r);

  for (unsigned slot = 0; slot < r->n; slot++) {
    const struct sim_disk *d = r->at[0][slot];

    if (d && bad >> sim_array_disk_no (r->sa, d) & 1)
      slots |= BIT (slot);
  }
  return !r->two_active && nr_bits (slots) <= r->g.m;
}

void
allow_absent (struct run *r)
{
  for (unsigned i = 0; i < r->sa->nr_disks &&
       (r->sa->rotted || r->ringless || !r->may_lose_rows); i++)
    if (nr_bits (slots_in_trouble (r)) > r->g.m)
      r->sa->disk[i]->absent = false;
}

void
allow_look (struct run *r)
{
  const struct array *a = r->sa->a;

  if (r->rows_lost || r->unreadable == 0)
    return;
  if (a->nr_unsynced > 0)
    stats.unreadable_unsynced++;
  if (a->nr_unsynced > 0 ||
      nr_bits (a->lost_slots |
               run_slots_of (r, r->faulty | r->unreadable)) > r->g.m) {
    run_say (r, "from here on rows may be lost");
    r->rows_lost = true;
    stats.rows_lost++;
  }
}

/* If the newest transaction wrote the row directly, and more than m of its
 * blocks are bad, that transaction is dropped there: it seems not to have got
 * as far.
 */
void
allow_bad_row (struct run *r, uint64_t row)
{
  uint64_t off;

  r->bad_row[row] = true;
  if (!r->sums || !r->journal || !r->may_lose_rows)
    return;
  for (unsigned role = 0; role < r->g.k; role++)
    if (run_address (r, row, role, &off))
      model_may_be_zero (r->model, off, BLOCK_LEN);
}

void
allow_bad_blocks (struct run *r, const struct sim_disk *d)
{
  for (uint64_t row = 0; row < r->nr_rows; row++)
    if (d->bad[layout_data_off (&r->sa->l, row * BLOCK_LEN) / SIM_BLOCK])
      allow_bad_row (r, row);
}

/* Is some row of the lines of this range among those, where they are, or were
 * before they moved?
 */
static bool
has_bad_row_in (const struct run *r, const struct geometry *g, uint64_t off,
                uint64_t len)
{
  const unsigned per_line = r->sa->a->cell_blocks;
  struct piece p;

  for (uint64_t pos = off; pos < off + len; pos += p.len) {
    uint64_t first, last;

    layout_piece (g, pos, off + len - pos, &p);
    first = p.stripe * r->rows_per_stripe + p.chunk_off / BLOCK_LEN;
    last = p.stripe * r->rows_per_stripe +
      (p.chunk_off + p.len - 1) / BLOCK_LEN;
    for (uint64_t row = round_down (first, per_line);
         row < round_up (last + 1, per_line); row++)
      if (r->bad_row[row])
        return true;
  }
  return false;
}

static bool
has_bad_row (const struct run *r, uint64_t off, uint64_t len)
{
  struct geometry old;

  if (has_bad_row_in (r, &r->g, off, len))
    return true;
  reshape_old (&r->g, &old);
  return r->g.widening && has_bad_row_in (r, &old, off, len);
}

bool
allow_error (const struct run *r, const struct request *q, uint64_t since)
{
  const bool durable = q->kind == REQUEST_FLUSH || q->flags & ARRAY_FUA ||
    (q->kind != REQUEST_READ && r->sa->writethrough);

  if (r->over)
    return true;
  if (q->error == ENOSPC)
    return !(q->flags & ARRAY_WAIT) && (r->full || r->full_ended > since) &&
      (durable || (q->kind != REQUEST_READ &&
                   sim_now (r->sim) - since >= r->sa->a->timeout_ns));
  if (q->error != EIO || !r->rows_lost)
    return false;
  return r->flaky || q->kind == REQUEST_FLUSH || durable ||
    has_bad_row (r, q->off, q->len);
}
