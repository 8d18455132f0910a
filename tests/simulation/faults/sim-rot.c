/* gpuraid: tests: silent corruption, in runs with checksums.
 *
 * An older copy of a page of the checksum table is left out: only the
 * generations tell it from the page, and only a scrub compares these.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "array/seats/unlocked.h"
#include "common/bits.h"
#include "raidmap/bitmap.h"
#include "raidmap/table.h"
#include "tests/simulation/sim-run.h"

/* ---- blocks ---- */

static void
poke_zeroes (struct sim_disk *d, uint64_t off)
{
  static const uint8_t zeroes[BLOCK_LEN];

  sim_disk_poke (d, zeroes, BLOCK_LEN, off);
}

static void
flip_bits (struct run *r, struct sim_disk *d, uint64_t off)
{
  for (unsigned n = 1 + run_below (r, 8); n > 0; n--) {
    const uint64_t at = off + run_below (r, BLOCK_LEN);
    const uint8_t byte = d->image[at] ^ 1u << run_below (r, 8);

    sim_disk_poke (d, &byte, 1, at);
  }
}

/* ---- data ---- */

static uint64_t
data_off (const struct run *r, uint64_t row)
{
  return layout_data_off (&r->sa->l, row * BLOCK_LEN);
}

static void
note_row (struct run *r, const struct sim_disk *d, uint64_t row)
{
  run_say (r, "%s: block %" PRIu64 " rots", d->name, row);
  allow_bad_row (r, row);
}

static void
flip_blocks (struct run *r, struct sim_disk *d)
{
  for (unsigned n = 1 + run_below (r, 4); n > 0; n--) {
    const uint64_t row = run_below (r, r->nr_rows);

    note_row (r, d, row);
    flip_bits (r, d, data_off (r, row));
  }
}

static void
zero_blocks (struct run *r, struct sim_disk *d)
{
  const uint64_t row = run_below (r, r->nr_rows);
  const uint64_t nr = 1 + run_below (r, 8);

  for (uint64_t i = row; i < MIN (row + nr, r->nr_rows); i++) {
    note_row (r, d, i);
    poke_zeroes (d, data_off (r, i));
  }
}

static void
swap_blocks (struct run *r, struct sim_disk *d)
{
  const uint64_t row = run_below (r, r->nr_rows);
  const uint64_t other = run_below (r, r->nr_rows);
  uint8_t block[BLOCK_LEN], other_block[BLOCK_LEN];

  note_row (r, d, row);
  note_row (r, d, other);
  memcpy (block, d->image + data_off (r, row), BLOCK_LEN);
  memcpy (other_block, d->image + data_off (r, other), BLOCK_LEN);
  sim_disk_poke (d, block, BLOCK_LEN, data_off (r, other));
  sim_disk_poke (d, other_block, BLOCK_LEN, data_off (r, row));
}

static void
remember_data (struct run *r, unsigned no)
{
  if (r->old_data == NULL)
    r->old_data = malloc (r->max_rows * BLOCK_LEN);
  assert (r->old_data != NULL);
  for (uint64_t row = 0; row < r->nr_rows; row++)
    memcpy (r->old_data + row * BLOCK_LEN,
            r->sa->disk[no]->image + data_off (r, row), BLOCK_LEN);
  r->old_rows = r->nr_rows;
  r->old_disk = no;
}

/* Some of the blocks that have changed since. */
static void
age_blocks (struct run *r, struct sim_disk *d)
{
  unsigned left = 1 + run_below (r, 4);

  for (uint64_t row = run_below (r, r->old_rows);
       row < r->old_rows && left > 0; row++) {
    const uint8_t *old = r->old_data + row * BLOCK_LEN;

    if (memcmp (old, d->image + data_off (r, row), BLOCK_LEN) == 0)
      continue;
    note_row (r, d, row);
    sim_disk_poke (d, old, BLOCK_LEN, data_off (r, row));
    left--;
  }
}

static void
rot_data (struct run *r, struct sim_disk *d)
{
  static void (*const kind[]) (struct run *, struct sim_disk *) = {
    flip_blocks, zero_blocks, swap_blocks,
  };

  stats.rot_data++;
  if (r->old_data && d == r->sa->disk[r->old_disk] && run_percent (r, 70))
    age_blocks (r, d);
  else
    kind[run_below (r, ARRAY_LEN (kind))] (r, d);
}

/* ---- what is beside the data ---- */

static void
rot_table (struct run *r, struct sim_disk *d)
{
  const uint64_t no = run_below (r, table_nr_pages (&r->sa->l));
  const unsigned places = 1 + run_below (r, 3);
  const bool zeroes = run_percent (r, 50);

  run_say (r, "%s: page %" PRIu64 " of the table rots, places %#x%s", d->name,
           no, places, zeroes ? ": zeroes" : "");
  stats.rot_table++;
  FOR_EACH_BIT (place, places)
    if (zeroes)
      poke_zeroes (d, table_page_off (&r->sa->l, no, place));
    else
      flip_bits (r, d, table_page_off (&r->sa->l, no, place));
}

static void
rot_ring (struct run *r, struct sim_disk *d)
{
  const uint64_t nr = r->sa->l.ring_len / BLOCK_LEN;

  stats.rot_ring++;
  for (unsigned n = 1 + run_below (r, 6); n > 0; n--) {
    const uint64_t b = run_below (r, run_percent (r, 20) ? 2 : nr);

    run_say (r, "%s: block %" PRIu64 " of the ring rots", d->name, b);
    if (run_percent (r, 30))
      poke_zeroes (d, r->sa->l.ring_off + b * BLOCK_LEN);
    else
      flip_bits (r, d, r->sa->l.ring_off + b * BLOCK_LEN);
  }
}

static void
rot_bitmap (struct run *r, struct sim_disk *d)
{
  const uint64_t no = run_below (r, bitmap_nr_pages (&r->sa->l));
  const unsigned place = run_below (r, 2);

  run_say (r, "%s: page %" PRIu64 " of the bitmap rots, place %u", d->name, no,
           place);
  stats.rot_bitmap++;
  r->rotted_bitmap |= BIT (sim_array_disk_no (r->sa, d));
  flip_bits (r, d, bitmap_page_off (&r->sa->l, no, place));
}

static bool
is_superblock (const struct sim_disk *d, enum sb_copy c)
{
  static struct superblock sb;

  return superblock_decode (d->image + layout_sb_off (d->size, c), c, &sb,
                            NULL) == SB_OK;
}

/* One copy of four, or some sectors of it: the others are good. */
static void
rot_superblock (struct run *r, struct sim_disk *d)
{
  const enum sb_copy copy = run_below (r, SB_NR_COPIES);
  const uint64_t off = layout_sb_off (d->size, copy);

  for (enum sb_copy c = 0; c < SB_NR_COPIES; c++)
    if (!is_superblock (d, c))
      return;
  run_say (r, "%s: copy %d of the superblock rots", d->name, (int) copy);
  stats.rot_superblock++;
  r->rotted_copy |= BIT (sim_array_disk_no (r->sa, d));
  if (run_percent (r, 30))
    poke_zeroes (d, off);
  else
    flip_bits (r, d, off);
}

bool
rot_lost_pair (struct run *r)
{
  bool lost = false;

  FOR_EACH_BIT (i, r->rotted_copy) {
    const struct sim_disk *d = r->sa->disk[i];
    unsigned good = 0;

    for (enum sb_copy c = 0; c < SB_NR_COPIES; c++)
      good |= is_superblock (d, c) << c;
    if (good == LOW_BITS (SB_NR_COPIES))
      r->rotted_copy &= ~BIT (i);
    lost |= (good & (BIT (SB_A1) | BIT (SB_B1))) == 0 ||
      (good & (BIT (SB_A2) | BIT (SB_B2))) == 0;
  }
  return lost;
}

static void
rot_other (struct run *r, struct sim_disk *d)
{
  const unsigned kind = run_below (r, 12);

  if (kind < 7)
    rot_table (r, d);
  else if (kind < 9 && r->journal)
    rot_ring (r, d);
  else if (kind > 9)
    rot_superblock (r, d);
  else
    rot_bitmap (r, d);
}

/* ---- when ---- */

void
rot_disk (struct run *r, unsigned no)
{
  struct sim_disk *d = r->sa->disk[no];
  const bool data = run_percent (r, 60);

  if (!r->old_data || run_percent (r, 20))
    remember_data (r, no);
  if (!allow_rot (r, no, !data))
    return;
  if (data)
    rot_data (r, d);
  else
    rot_other (r, d);
}

void
rot_writes (struct run *r, unsigned no)
{
  const struct member_layout *l = &r->sa->l;
  struct sim_disk *d = r->sa->disk[no];
  const unsigned ppm = 1000 + run_below (r, 200000);

  if (!allow_rot (r, no, true))
    return;
  run_say (r, "%s: loses, tears or misdirects writes", d->name);
  stats.rot_writes++;
  d->lie_begin = l->data_off;
  d->lie_end = l->data_off + layout_data_run (l, 0, l->data_len);
  switch (run_below (r, 3)) {
  case 0: d->lose_write_ppm = ppm; break;
  case 1: d->tear_write_ppm = ppm; break;
  case 2: d->misdirect_write_ppm = ppm; break;
  }
}

void
rot_at_rest (struct run *r)
{
  if (r->sa->rotted == 0 || !run_percent (r, 40))
    return;
  FOR_EACH_BIT (no, r->sa->rotted)
    for (unsigned n = run_below (r, 3); n > 0; n--)
      if (r->may_lose_rows || r->rows_lost || run_percent (r, 40))
        rot_data (r, r->sa->disk[no]);
      else
        rot_other (r, r->sa->disk[no]);
}

static bool
is_rotted (const struct run *r, uint64_t row)
{
  bool rotted = r->bad_row[row];

  for (unsigned i = 0; i < r->sa->nr_disks; i++)
    rotted |= r->sa->disk[i]->lied[data_off (r, row) / SIM_BLOCK];
  return rotted;
}

void
rot_look_at_open (struct run *r)
{
  if (r->journal || !r->any_rot || r->sa->a->nr_unsynced == 0)
    return;
  /* Also where it may grow. */
  for (uint64_t off = 0; off < r->max_size; off += BLOCK_LEN) {
    struct model_write *w;
    struct piece p;
    uint64_t row;

    layout_piece (&r->g, off, BLOCK_LEN, &p);
    row = p.stripe * r->rows_per_stripe + p.chunk_off / BLOCK_LEN;
    if (row >= r->nr_rows)
      continue;
    if (!run_is_unsynced (r->sa->a, row * BLOCK_LEN) || !is_rotted (r, row))
      continue;
    run_say (r, "the block at %" PRIu64 " may have rotted in an open region",
             off);
    w = model_write (r->model, off, BLOCK_LEN, MODEL_ANYTHING);
    model_written (r->model, w, true, true);
    stats.rot_open++;
  }
}

void
rot_count (struct run *r)
{
  const struct array_counters *c = &r->sa->a->counters;

  stats.bad_sums += c->corrupt_found;
  stats.bad_sums_repaired += c->corrupt_repaired;
  stats.unlocked += unlocked_reads (r->sa->a).ops;
  stats.hedged += c->hedged_reads;
  stats.hedges_won += c->hedges_won;
  stats.avoided += c->avoided_reads;
  stats.bad_table_pages += c->corrupt_table_pages;
  if (c->corrupt_table_pages > 0)
    r->sums_lost |= r->ever_unreadable | r->unreadable;
}
