/* gpuraid: tests: what must hold on the disks at any moment of a run.
 *
 *   rows      a row that is not being written is a code word, if
 *             its region is synced; if not, the parity written to it
 *             since the array was opened fits the data
 *   closed    after a crash: so is every row of a region that no active
 *             member says is open
 *   open      a region that was open is open in the next session
 *   missed    while a record without a slot is in force, all regions that are
 *             open and not yet synced again are missed too; but what was
 *             open when parity was added is not, as all of that is filled
 *
 * The content compared is that of a read, so these checks do not cover blocks
 * that can't be read.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array/cache/cache.h"
#include "array/dirty/dirty.h"
#include "array/engine/consistency.h"
#include "array/health/lost.h"
#include "array/ops/ops.h"
#include "array/seats/seat.h"
#include "raidmap/bitmap.h"
#include "tests/simulation/sim-run.h"

static bool
is_used (const struct seat *s)
{
  return s && s->m && s->state == SEAT_ACTIVE && !s->failing;
}

/* The disks of the active members by slot: those that are read from; or,
 * where a slot has two, the others.
 */
static bool
disks_at (const struct run *r, bool others, struct sim_disk **at)
{
  const struct array *a = r->sa->a;
  bool any = false;

  for (unsigned slot = 0; slot < r->n; slot++) {
    const struct seat *s = a->at[slot][0], *t = a->at[slot][1];

    at[slot] = is_used (s) ? sim_array_disk_of (s) : NULL;
    if (is_used (t) && (others || at[slot] == NULL)) {
      at[slot] = sim_array_disk_of (t);
      any = true;
    }
  }
  return any;
}

static uint64_t
region_of (const struct run *r, uint64_t row)
{
  return row * BLOCK_LEN / r->sa->l.region_len;
}

/* ---- rows ---- */

struct rows {
  struct run *r;
  struct sim_disk *const *at;
  const uint64_t *only;         /* regions, or NULL: all */
  const uint64_t *never;        /* regions, or NULL */
};

/* The content of a row with a block that can't be read is lost until it is
 * written.
 */
static bool
has_bad_block (const struct rows *rows, uint64_t row)
{
  const uint64_t block =
    layout_data_off (&rows->r->sa->l, row * BLOCK_LEN) / SIM_BLOCK;

  for (unsigned slot = 0; slot < rows->r->n; slot++)
    if (rows->at[slot] && rows->at[slot]->bad[block])
      return true;
  return false;
}

static bool
has_region (const uint64_t *w, uint64_t region)
{
  return w[region / 64] >> (region % 64) & 1;
}

/* Roles whose block has no valid content, and is known not to. */
static uint64_t
lost_at (const struct run *r, uint64_t row)
{
  const struct array *a = r->sa->a;

  return lost_roles (a, row * BLOCK_LEN / a->cell_len,
                     BIT (row % a->cell_blocks));
}

static uint64_t
roles_at_rest (void *opaque, uint64_t row)
{
  const struct rows *rows = opaque;
  struct run *r = rows->r;
  struct array *a = r->sa->a;
  const uint64_t no = row * BLOCK_LEN / a->cell_len;
  const struct line *line = line_find (a, no);

  /* Of a window that is over rows which count some may be in place. */
  if ((rows->only && !has_region (rows->only, region_of (r, row))) ||
      row_moves (a, row) || (line && line->op) || op_zeroes (a, no, no + 1) ||
      has_bad_block (rows, row))
    return 0;
  if (run_is_unsynced (a, row * BLOCK_LEN))
    return (LOW_BITS (r->g.k) | r->sa->written[row]) & ~lost_at (r, row);
  return LOW_BITS (r->n) & ~lost_at (r, row);
}

/* Where nothing was corrupted all checksums are right. */
static void
check_sums (struct run *r)
{
  const struct array_counters *c = &r->sa->a->counters;

  if (c->corrupt_found > 0 && !r->any_rot && !r->over && !r->forced &&
      !r->sa->a->failed)
    run_die (r, "%" PRIu64 " blocks with another checksum", c->corrupt_found);
}

/* Those of some regions, or all. */
static void
check_rows_of (struct run *r, const uint64_t *only, const char *when)
{
  struct sim_disk *at[MAX_SLOTS];
  struct rows rows = { .r = r, .at = at, .only = only };
  char why[200];

  check_sums (r);
  /* It is unknown which rows could not be written. */
  if (r->sa->a->failed || !r->sa->a->consistency->is_ready (r->sa->a))
    return;
  disks_at (r, false, at);
  if (!sim_array_rows_are_right (r->sa, at, roles_at_rest, &rows, why,
                                 sizeof why))
    run_die (r, "%s: %s", when, why);
}

void
check_rows (struct run *r, const char *when)
{
  check_rows_of (r, NULL, when);
}

/* Regions become synced, one after the other. */
void
check_synced (struct run *r)
{
  const struct array *a = r->sa->a;
  const uint64_t words = div_round_up (a->nr_regions, 64);

  if (a->nr_unsynced == r->nr_unsynced)
    return;
  if (a->nr_unsynced < r->nr_unsynced) {
    for (uint64_t i = 0; i < words; i++)
      r->unsynced[i] &= ~a->unsynced[i];
    check_rows_of (r, r->unsynced, "a region is resynced");
    stats.resynced += r->nr_unsynced - a->nr_unsynced;
  }
  memcpy (r->unsynced, a->unsynced, words * sizeof *r->unsynced);
  r->nr_unsynced = a->nr_unsynced;
}

/* ---- members ---- */

void
check_ejected (struct run *r, unsigned slot)
{
  const struct seat *s = r->sa->a->at[slot][0];
  unsigned no;

  /* If there are two it may have been the other one. */
  if (s == NULL || s->m == NULL || r->over || r->sa->a->at[slot][1])
    return;
  no = sim_array_disk_no (r->sa, sim_array_disk_of (s));
  if (s->last_error.error == ETIMEDOUT && !(r->faulty >> no & 1))
    run_die (r, "slot %u: disk%u: a member that answers is taken out", slot,
             no);
  if (r->full >> no & 1 && !((r->faulty | r->unreadable) >> no & 1))
    run_die (r, "slot %u: disk%u: a member without space is taken out", slot,
             no);
}

/* ---- when it stops ---- */

/* The newest copy of a page.  Returns the number of places that are good. */
static unsigned
read_page (const struct run *r, unsigned slot, const struct sim_disk *d,
           uint64_t no, struct bitmap_page *page)
{
  static struct bitmap_page p;
  unsigned nr = 0;

  for (unsigned place = 0; place < 2; place++)
    if (bitmap_page_decode (d->image + bitmap_page_off (&r->sa->l, no, place),
                            &r->array_uuid, slot, no, &p)) {
      if (nr == 0 || p.counter > page->counter)
        *page = p;
      nr++;
    }
  if (nr == 1)
    stats.torn_pages++;
  return nr;
}

/* A page of an earlier session may say that it is open on some members only:
 * the others may have been told that it no longer is.
 */
static bool
is_open_on_all (const struct run *r, uint64_t region)
{
  static struct bitmap_page p;

  for (unsigned slot = 0; slot < r->n; slot++)
    for (unsigned i = 0; i < 2; i++)
      if (r->at[i][slot] &&
          read_page (r, slot, r->at[i][slot], region / limits.page_regions,
                     &p) > 0 &&
          !has_region (p.open, region % limits.page_regions))
        return false;
  return true;
}

void
check_note_end (struct run *r, bool clean)
{
  const struct array *a = r->sa->a;

  rot_count (r);
  memset (r->at, 0, sizeof r->at);
  r->two_active = disks_at (r, true, r->at[1]);
  disks_at (r, false, r->at[0]);
  r->marked = 0;
  for (unsigned slot = 0; slot < r->n; slot++)
    for (unsigned i = 0; i < 2; i++)
      if (r->at[i][slot])
        r->marked |= BIT (sim_array_disk_no (r->sa, r->at[i][slot]));
  r->array_uuid = a->sb.array_uuid;
  r->degraded = false;
  FOR_EACH_BIT (slot, LOW_BITS (r->n) & ~seats_first_slot (a))
    r->degraded |= a->writable && !a->failed &&
      (a->at[slot][0] == NULL || a->at[slot][0]->state != SEAT_ACTIVE);
  memcpy (r->unsynced, a->unsynced,
          div_round_up (a->nr_regions, 64) * sizeof *r->unsynced);
  for (uint64_t row = 0; row < r->nr_rows; row++)
    r->was_lost_at[row] = lost_at (r, row);
  for (uint64_t i = 0; i < a->nr_regions; i++) {
    const struct dirty_page *p = a->page[i / limits.page_regions];

    /* When the last write of a page is the reason of its failure, the member
     * that lacks it is not marked.
     */
    r->was_open[i] = !a->failed &&
      (has_region (p->stored.open, i % limits.page_regions) ||
       (clean && has_region (p->want.open, i % limits.page_regions) &&
        is_open_on_all (r, i)));
  }
}

/* ---- after a crash ---- */

static void
check_missed (struct run *r, const struct bitmap_page *p, const char *name)
{
  for (unsigned b = 0; b < limits.page_regions; b++) {
    const uint64_t region = p->page_no * limits.page_regions + b;

    if (region < bitmap_nr_regions (&r->sa->l) && has_region (p->open, b) &&
        !has_region (p->missed, b) && !has_region (r->unsynced, region))
      run_die (r, "%s: region %" PRIu64 " is open, but not missed, while a "
               "record without a slot is in force", name, region);
  }
}

/* What a member says is open, added to open.  Where a page has rotted the good
 * place may be the older one, and all of its regions count.
 */
static void
add_open (struct run *r, unsigned slot, const struct sim_disk *d,
          uint64_t *open)
{
  static struct bitmap_page p;
  const struct member_layout *l = &r->sa->l;

  for (uint64_t no = 0; no < bitmap_nr_pages (l); no++) {
    const unsigned nr_good = read_page (r, slot, d, no, &p);
    const bool there = nr_good == 2 ||
      (nr_good == 1 &&
       !(r->rotted_bitmap >> sim_array_disk_no (r->sa, d) & 1));

    /* If its newest copy has rotted it is an older one. */
    if (there && r->degraded && !sim_array_is_rotted (r->sa, d))
      check_missed (r, &p, d->name);
    for (unsigned b = 0; b < limits.page_regions; b++) {
      const uint64_t region = no * limits.page_regions + b;

      if (region < bitmap_nr_regions (l) && (!there || has_region (p.open, b)))
        open[region / 64] |= BIT (region % 64);
    }
  }
}

static uint64_t
roles_of_closed (void *opaque, uint64_t row)
{
  const struct rows *rows = opaque;

  return has_region (rows->never, region_of (rows->r, row)) ||
    has_bad_block (rows, row) ? 0 :
    LOW_BITS (rows->r->n) & ~rows->r->was_lost_at[row];
}

void
check_closed (struct run *r)
{
  uint64_t *open = calloc (div_round_up (r->nr_rows, 64), sizeof *open);
  struct rows rows = { .r = r, .never = open };
  char why[200];

  assert (open != NULL);
  if (r->journal) {             /* what was in flight is in the journal */
    free (open);
    return;
  }
  for (unsigned slot = 0; slot < r->n; slot++)
    for (unsigned i = 0; i < 2; i++)
      if (r->at[i][slot] && (i == 0 || r->at[1][slot] != r->at[0][slot]))
        add_open (r, slot, r->at[i][slot], open);
  /* Either place of a page of the checksum table must be right. */
  for (unsigned i = 0; i < 4; i++) {
    r->sa->old_pages = i & 1;
    rows.at = r->at[i / 2];
    if ((i / 2 == 0 || r->two_active) && (i % 2 == 0 || r->sums) &&
        !sim_array_rows_are_right (r->sa, rows.at, roles_of_closed, &rows,
                                   why, sizeof why))
      run_die (r, "after a crash, in a region that is not open: %s%s%s", why,
               i / 2 ? " (the second member of a slot)" : "",
               i % 2 ? " (the older places)" : "");
  }
  r->sa->old_pages = false;
  free (open);
}

/* ---- in the next session ---- */

/* A page that could not be written to a member may lack bits there; no other
 * page may.
 */
void
check_open (struct run *r)
{
  const struct array *a = r->sa->a;

  if ((run_active_disks (r) & r->marked) == 0)
    return;
  for (uint64_t i = 0; i < a->nr_regions; i++)
    if (r->was_open[i] &&
        !has_region (a->page[i / limits.page_regions]->want.open,
                     i % limits.page_regions))
      run_die (r, "the dirty bit of region %" PRIu64 " is lost", i);
}
