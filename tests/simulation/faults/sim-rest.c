/* gpuraid: tests: what happens to members while the array is closed, in arrays
 * of all kinds.
 *
 *   superblocks   one copy of four rots
 *   bitmaps       a page rots, in one place or both, of one member or all
 *   rings         headers rot, one or both, on members that are counted as in
 *                 trouble until the rings have begun anew
 *   tables        if a page was torn, and its member has no ring any more, that
 *                 member counts as corrupted
 *   openings      one ends in the middle of its reads and flushes, which are
 *                 synchronous: by a kill, or with the power
 *
 * All of it is drawn beside the run's own numbers, in half of the runs: the
 * others stay those that they were.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <inttypes.h>

#include "array/engine/consistency.h"
#include "array/seats/seat.h"
#include "common/bits.h"
#include "raidmap/bitmap.h"
#include "raidmap/journal.h"
#include "raidmap/table.h"
#include "tests/simulation/sim-run.h"

/* ---- what rots ---- */

static uint64_t
draw (struct run *r, uint64_t n)
{
  if (r->rest_state == 0)
    r->rest_state = r->seed * 0x9e3779b97f4a7c15 | 1;
  r->rest_state = r->rest_state * 6364136223846793005 + 1442695040888963407;
  return (r->rest_state >> 33) % n;
}

static void
rot_block (struct run *r, struct sim_disk *d, uint64_t off)
{
  static const uint8_t zeroes[BLOCK_LEN];
  const uint64_t at = off + draw (r, BLOCK_LEN);
  const uint8_t byte = d->image[at] ^ 1u << draw (r, 8);

  if (sim_disk_is_unflushed (d, off, BLOCK_LEN))
    return;                     /* it would be written over */
  if (draw (r, 3) == 0)
    sim_disk_poke (d, zeroes, BLOCK_LEN, off);
  else
    sim_disk_poke (d, &byte, 1, at);
}

/* Is every copy good?  What the last server left in a cache may still be torn
 * by a power failure: then there would be a second bad one.
 */
static bool
is_whole (const struct sim_disk *d)
{
  static struct superblock sb;

  for (enum sb_copy c = 0; c < SB_NR_COPIES; c++) {
    const uint64_t off = layout_sb_off (d->size, c);

    if (sim_disk_is_unflushed (d, off, BLOCK_LEN) ||
        superblock_decode (d->image + off, c, &sb, NULL) != SB_OK)
      return false;
  }
  return true;
}

static void
rot_superblock (struct run *r, struct sim_disk *d)
{
  const enum sb_copy copy = draw (r, SB_NR_COPIES);

  if (!is_whole (d))
    return;
  run_say (r, "%s: copy %d of the superblock rots at rest", d->name,
           (int) copy);
  stats.rest_superblock++;
  stats.rest_differs += !rules_pair_is_alike (d, d->image, copy);
  r->rest_rotted = true;
  rot_block (r, d, layout_sb_off (d->size, copy));
}

static void
rot_page (struct run *r, struct sim_disk *d, uint64_t no, unsigned places)
{
  run_say (r, "%s: page %" PRIu64 " of the bitmap rots at rest, places %#x",
           d->name, no, places);
  stats.rest_bitmap++;
  r->rotted_bitmap |= BIT (sim_array_disk_no (r->sa, d));
  stats.rest_bitmap_both += places == 3;
  FOR_EACH_BIT (place, places)
    rot_block (r, d, bitmap_page_off (&r->sa->l, no, place));
}

/* On all members the same places, as these are mostly of one age.  Without a
 * journal an array that is not whole counts as unclean then, and is
 * refused.
 */
static void
rot_bitmap (struct run *r, struct sim_disk *d)
{
  const uint64_t no = draw (r, bitmap_nr_pages (&r->sa->l));
  const unsigned places = 1 + draw (r, 3);
  const bool all = draw (r, 3) == 0;

  if (!r->journal && r->was_lost)
    return;
  for (unsigned slot = 0; slot < r->n; slot++)
    if (r->at[0][slot] && (all || r->at[0][slot] == d))
      rot_page (r, r->at[0][slot], no, places);
}

static void
rot_headers (struct run *r, struct sim_disk *d)
{
  const unsigned which = 1 + draw (r, 3);

  if (!r->journal || !allow_at_rest (r, d))
    return;
  run_say (r, "%s: headers %#x of the ring rot at rest", d->name, which);
  stats.rest_headers++;
  stats.rest_headers_both += which == 3;
  r->ringless |= BIT (sim_array_disk_no (r->sa, d));
  FOR_EACH_BIT (i, which)
    rot_block (r, d, r->sa->l.ring_off + i * BLOCK_LEN);
}

void
rest_rot (struct run *r)
{
  static void (*const kind[]) (struct run *, struct sim_disk *) = {
    rot_superblock, rot_bitmap, rot_headers, rot_headers,
  };

  r->faulty |= r->ringless;
  if (r->seed % 2 || !allow_kind ("rot") || draw (r, 2))
    return;
  for (unsigned n = 1 + draw (r, r->n); n > 0; n--) {
    struct sim_disk *d = r->at[0][draw (r, r->n)];

    if (d && !d->dead)
      kind[draw (r, ARRAY_LEN (kind))] (r, d);
  }
  r->faulty |= r->ringless;
}

/* ---- a ring that is gone ---- */

/* The transaction from which on the ring has those that count, as far as this
 * member knows; 0: it has no header.
 */
static uint64_t
ring_tail (const struct run *r, const struct sim_disk *d, unsigned slot)
{
  const struct ring_id id = ring_id_of (&r->sa->a->sb, slot);
  struct ring_header h;
  uint64_t seq = 0;

  for (unsigned i = 0; i < JOURNAL_NR_HEADERS; i++)
    if (ring_header_decode (d->image + r->sa->l.ring_off + i * BLOCK_LEN, &id,
                            i, &h))
      seq = MAX (seq, h.seq);
  return seq;
}

/* Is one place of the page good, and the other not, and all that is in the good
 * one older than this transaction?
 */
static bool
is_torn (const struct run *r, const struct sim_disk *d, unsigned slot,
         uint64_t no, uint64_t tail)
{
  static struct table_page p;
  unsigned nr_good = 0;
  uint64_t seq = 0;

  for (unsigned place = 0; place < 2; place++)
    if (table_page_decode (d->image + table_page_off (&r->sa->l, no, place),
                           &r->sa->a->sb.array_uuid, slot, no, &p) &&
        table_counter_place (p.counter) == place) {
      nr_good++;
      seq = table_counter_seq (p.counter);
    }
  return nr_good == 1 && seq < tail;
}

static void
note_torn (struct run *r, const struct sim_disk *d, uint64_t no)
{
  const uint64_t first = no * limits.table_page_entries;

  run_say (r, "%s: page %" PRIu64 " of the table is torn, and its ring is gone",
           d->name, no);
  stats.rest_torn++;
  r->spoilt |= BIT (sim_array_disk_no (r->sa, d));
  r->unreadable |= BIT (sim_array_disk_no (r->sa, d));
  /* The array may grow. */
  for (uint64_t row = first;
       row < MIN (r->max_rows, first + limits.table_page_entries); row++)
    allow_bad_row (r, row);
}

static const struct sim_disk *
active_disk (const struct seat *s)
{
  return s->m && s->state == SEAT_ACTIVE ? sim_array_disk_of (s) : NULL;
}

/* If the good place of a torn page has no transaction that counts, only the
 * records of that member tell whether it is the newest (docs/checksums.md).
 * Without them its blocks are lost there, as if the page had rotted.
 */
void
rest_look_at_open (struct run *r)
{
  const struct array *a = r->sa->a;
  const struct sim_disk *d;
  uint64_t tail = 0;

  if (!r->journal || !r->sums)
    return;
  for (unsigned i = 0; i < a->nr_seats; i++)
    if ((d = active_disk (a->seat[i])) != NULL)
      tail = MAX (tail, ring_tail (r, d, a->seat[i]->slot));
  for (unsigned i = 0; i < a->nr_seats; i++) {
    const unsigned slot = a->seat[i]->slot;

    if ((d = active_disk (a->seat[i])) == NULL || ring_tail (r, d, slot) > 0)
      continue;
    for (uint64_t no = 0; no < table_nr_pages (&r->sa->l); no++)
      if (is_torn (r, d, slot, no, tail))
        note_torn (r, d, no);
  }
}

/* ---- openings ---- */

/* A part of what was left in caches is durable then, and with the power the
 * rest is gone.
 */
void
rest_open (struct run *r, uint64_t which)
{
  const bool power = draw (r, 2);
  bool opened;

  if (r->seed % 2 || draw (r, 4))
    return;
  limits.max_seats = default_limits.max_seats;
  sim_crash_after (r->sim, 1 + draw (r, r->n));
  opened = sim_array_open (r->sa, which, DEGRADED_ALLOW, draw (r, 2)) == 0;
  if (opened && !sim_array_abandon (r->sa))
    run_die (r, "an opening that is cut short never ends");
  stats.crash_open += sim_crashed (r->sim);
  run_say (r, "disks %#" PRIx64 ": an opening ends, crashed %d, power %d",
           which, sim_crashed (r->sim), power);
  if (power)
    sim_crash (r->sim);
  else
    sim_kill (r->sim);
  r->killed &= !power;
  sim_crash_after (r->sim, 0);
}

void
rest_note_end (struct run *r)
{
  const struct array *a = r->sa->a;

  r->rest_rotted = false;
  if (a->writable && a->consistency->is_ready (a))
    r->ringless = 0;
}
