/* gpuraid: tests: the rules (docs/rules.md) that a single I/O can break, looked
 * at when it is submitted.
 *
 * A broken rule leads to wrong bytes only with a crash at the right moment,
 * and often a lost member besides; here it is found whenever it happens.
 *
 *   settled    what a process that was killed has left in a cache is not read
 *              (M35, M36)
 *   places     of two places of a page or a ring's header one is not written
 *              before the other is durable, and never the only good one; of a
 *              superblock's copies no two are on their way, and of a pair
 *              neither the only good one nor the newer one is written before
 *              the other (D3, M13)
 *   R1         nothing is in place before its records are durable
 *   R3         a header frees records whose blocks are durable
 *   R4         records are written over when a durable header on each active
 *              member has freed them
 *   R5         no record goes out before all older ones are durable
 *   R12        a row is written directly where the stable entries of all that
 *              take it are {0, 0}
 *   W6         rows move directly only over rows that all durable headers call
 *              dead
 *   R14        no page of the table is stored with entries of a transaction
 *              whose records are not durable, or before a recovery has marked
 *              what it places
 *   open       without a journal: the bit is durable before what is in place
 *              (D1)
 *   missed     likewise, while a slot is not active; and that of what was in a
 *              transaction, before this is freed (D2)
 *   written    only superblocks, bitmaps and tables, and headers of rings of
 *              members that are behind, before a record of the session is in
 *              force (M10)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "array/membership/older-copy.h"
#include "array/membership/rules.h"
#include "raidmap/bitmap.h"
#include "tests/sim/sim-rules-internal.h"

/* ---- what is where ------------------------------------------------------- */

static void
map_block (struct rules *ru, uint64_t off, struct place p)
{
  assert (off / BLOCK_LEN < ru->r->sa->disk_size / BLOCK_LEN);
  ru->map[off / BLOCK_LEN] = p;
}

static void
make_map (struct rules *ru, const struct member_layout *l)
{
  const uint64_t size = ru->r->sa->disk_size;

  memset (ru->map, 0, size / BLOCK_LEN * sizeof *ru->map);
  for (unsigned c = 0; c < SB_NR_COPIES; c++)
    map_block (ru, layout_sb_off (size, c),
               (struct place) { SUPERBLOCK, c, 0 });
  for (uint64_t b = 0; b < l->ring_len / BLOCK_LEN; b++)
    map_block (ru, l->ring_off + b * BLOCK_LEN, (struct place) {
        b < JOURNAL_NR_HEADERS ? HEADER : RECORD, b, b & 1,
      });
  for (unsigned which = 0; which < 2; which++) {
    for (uint64_t no = 0; l->table_len > 0 && no < table_nr_pages (l); no++)
      map_block (ru, table_page_off (l, no, which),
                 (struct place) { TABLE, no, which });
    for (uint64_t no = 0; no < bitmap_nr_pages (l); no++)
      map_block (ru, bitmap_page_off (l, no, which),
                 (struct place) { BITMAP, no, which });
  }
  for (uint64_t row = 0; row < l->data_len / BLOCK_LEN; row++)
    map_block (ru, layout_data_off (l, row * BLOCK_LEN),
               (struct place) { DATA, row, 0 });
}

static void
forget_all (struct rules *ru)
{
  for (unsigned i = 0; i < SIM_MAX_DISKS; i++)
    rules_forget (ru, &ru->of[i]);
}

/* The seat of a disk that is in use, or NULL. */
static const struct seat *
seat_of (const struct array *a, const struct sim_disk *d)
{
  for (unsigned i = 0; i < a->nr_seats; i++) {
    const struct seat *s = a->seat[i];

    if (s->m && !s->failing && s->state != SEAT_IDLE &&
        sim_array_disk_of (s) == d)
      return s;
  }
  return NULL;
}

/* ---- pages --------------------------------------------------------------- */

static uint64_t
page_off (const struct array *a, const struct place *p, unsigned which)
{
  switch (p->kind) {
  case HEADER: return a->sb.l.ring_off + which * BLOCK_LEN;
  case TABLE: return table_page_off (&a->sb.l, p->no, which);
  default: return bitmap_page_off (&a->sb.l, p->no, which);
  }
}

/* Is this the stable content of a place? */
static bool
is_good (const struct array *a, const struct sim_disk *d,
         const struct seat *s, const struct place *p, unsigned which)
{
  static struct bitmap_page bitmap;
  static struct table_page table;
  const uint8_t *buf = d->stable + page_off (a, p, which);
  const struct ring_id id = rule_ring (a, s);
  struct ring_header h;

  switch (p->kind) {
  case HEADER:
    return ring_header_decode (buf, &id, which, &h);
  case TABLE:
    return table_page_decode (buf, &a->sb.array_uuid, s->slot, p->no, &table);
  default:
    return bitmap_page_decode (buf, &a->sb.array_uuid, s->slot, p->no,
                               &bitmap);
  }
}

static void
check_places (struct run *r, const struct array *a, const struct sim_disk *d,
              const struct seat *s, const struct place *p, const uint8_t *data)
{
  static const char *const name[] = {
    [HEADER] = "ring header", [TABLE] = "table page", [BITMAP] = "bitmap page",
  };

  /* A target gets both at once: it has them when its cursor says so. */
  if (s->state == SEAT_TARGET)
    return;
  /* Likewise a spare that is prepared to be one more member. */
  if (s->state == SEAT_SPARE && p->kind == BITMAP && s->nr_page_rounds < 2)
    return;
  /* Both places of a page that was never written become zeroes at once; so they
   * may again before that is durable.
   */
  if (sim_disk_is_unflushed (d, page_off (a, p, !p->which), BLOCK_LEN) &&
      (data || !all_zeroes (d->visible + page_off (a, p, !p->which),
                            BLOCK_LEN)))
    run_die (r, "places: %s: %s %" PRIu64 " is written in place %u while the "
             "other is not durable", d->name, name[p->kind], p->no, p->which);
  /* What a failed flush has lost is read all the same: the member was taken out
   * for that, and one that takes it again by force sees two good places.
   */
  if (sim_disk_is_lost (d, page_off (a, p, !p->which), BLOCK_LEN))
    return;
  if (!rule_is_spoilt (r, d) && is_good (a, d, s, p, p->which) &&
      !sim_disk_is_bad (d, page_off (a, p, p->which), BLOCK_LEN) &&
      !is_good (a, d, s, p, !p->which) &&
      !all_zeroes (d->stable + page_off (a, p, !p->which), BLOCK_LEN))
    run_die (r, "places: %s: the only good place, %u, of %s %" PRIu64
             " is written over", d->name, p->which, name[p->kind], p->no);
}

/* The stable content of a copy.  False: it has none. */
static bool
get_copy (const struct sim_disk *d, enum sb_copy c, struct superblock *sb)
{
  return superblock_decode (d->stable + layout_sb_off (d->size, c), c, sb,
                            NULL) == SB_OK;
}

static enum sb_copy
other_copy (enum sb_copy c)
{
  return c ^ SB_A1 ^ SB_B1;
}

bool
rules_pair_is_alike (const struct sim_disk *d, const uint8_t *image,
                     enum sb_copy c)
{
  return memcmp (image + layout_sb_off (d->size, c) + SIM_SECTOR,
                 image + layout_sb_off (d->size, other_copy (c)) + SIM_SECTOR,
                 BLOCK_LEN - SIM_SECTOR) == 0;
}

/* What rots while the array runs is not known to it, nor what a failed flush
 * has lost, as with pages; and what can't be read is not there.
 */
static void
check_pair (struct run *r, const struct sim_disk *d, enum sb_copy copy)
{
  const enum sb_copy second = other_copy (copy);
  static struct superblock sb, other;

  /* Most often they are. */
  if (rules_pair_is_alike (d, d->stable, copy) ||
      r->rotted_copy >> sim_array_disk_no (r->sa, d) & 1 ||
      sim_disk_is_lost (d, layout_sb_off (d->size, second), BLOCK_LEN) ||
      sim_disk_is_bad (d, layout_sb_off (d->size, copy), BLOCK_LEN) ||
      !get_copy (d, copy, &sb))
    return;
  if (!get_copy (d, second, &other))
    run_die (r, "places: %s: the only good copy of a pair of the superblock, "
             "%u, is written over", d->name, copy);
  if (ballot_newer (&sb.record.self.ballot, &other.record.self.ballot) ||
      (ballot_equal (&sb.record.self.ballot, &other.record.self.ballot) &&
       older_copy_own_step (&sb) > older_copy_own_step (&other)))
    run_die (r, "places: %s: copy %u of the superblock is written over, and "
             "the other one of its pair is older", d->name, copy);
}

static void
check_superblock (struct run *r, const struct sim_disk *d,
                  const struct seat *s, const struct place *p)
{
  /* A member is taken out when a write fails, which may have reached one copy
   * alone; taken again it has no vote.
   */
  if (rule_is_active (s))
    check_pair (r, d, p->no);
  for (unsigned c = 0; c < SB_NR_COPIES; c++)
    if (c != p->no &&
        sim_disk_is_unflushed (d, layout_sb_off (d->size, c), BLOCK_LEN))
      run_die (r, "places: %s: copy %" PRIu64 " of the superblock is written "
               "while copy %u is not durable", d->name, p->no, c);
}

/* ---- bits of regions ----------------------------------------------------- */

enum bit { OPEN, MISSED };

/* A page with a bad place counts as all set. */
static bool
has_stable_bit (const struct array *a, const struct seat *s, uint64_t row,
                enum bit bit)
{
  static struct bitmap_page page;
  const struct sim_disk *d = sim_array_disk_of (s);
  const uint64_t region = row * BLOCK_LEN / a->sb.l.region_len;
  const uint64_t no = region / limits.page_regions;
  const unsigned at = region % limits.page_regions;
  uint64_t counter = 0;
  bool set = false;

  for (unsigned which = 0; which < 2; which++) {
    const uint8_t *buf = d->stable + bitmap_page_off (&a->sb.l, no, which);

    if (all_zeroes (buf, BLOCK_LEN))
      continue;
    if (!bitmap_page_decode (buf, &a->sb.array_uuid, s->slot, no, &page))
      return true;
    if (page.counter < counter)
      continue;
    counter = page.counter;
    set = ((bit == OPEN ? page.open : page.missed)[at / 64] >> at % 64) & 1;
  }
  return set;
}

static void
check_bit (struct rules *ru, const char *what, uint64_t row, enum bit bit)
{
  for (unsigned i = 0; i < ru->a->nr_seats; i++) {
    const struct seat *s = ru->a->seat[i];

    if (rule_is_active (s) && !has_stable_bit (ru->a, s, row, bit))
      run_die (ru->r, "%s: row %" PRIu64 " is %s, and the bit is not durable "
               "on slot %u", bit == OPEN ? "open" : "missed", row, what,
               s->slot);
  }
}

/* Is the record in force what the seats say? */
static bool
is_settled (const struct array *a)
{
  return a->membership.phase == MEMBERSHIP_IDLE && !a->change &&
    !a->change_wanted;
}

static void
check_missed (struct rules *ru, const char *what, uint64_t row, uint64_t nr)
{
  const uint64_t region_rows = ru->a->sb.l.region_len / BLOCK_LEN;

  for (uint64_t i = row; i < row + nr;
       i = round_down (i, region_rows) + region_rows)
    check_bit (ru, what, i, MISSED);
}

void
rules_check_freed (struct rules *ru, const struct journal_record *r)
{
  for (uint32_t i = 0; i < r->nr_entries; i++)
    if (ru->a->lost_slots && is_settled (ru->a))
      check_missed (ru, "freed", r->entry[i].first_block,
                    r->entry[i].nr_blocks);
}

/* A recovery has all in place, and flushes that: then it frees it. */
static void
check_recovered (struct rules *ru, const struct array *a)
{
  const struct recovery *rec = a->recovery;

  if (rec == NULL || rec->phase != PLACE_FLUSH || a->lost_slots == 0 ||
      !is_settled (a))
    return;
  for (unsigned i = 0; i < rec->replay.nr_runs; i++)
    check_missed (ru, "recovered", rec->replay.run[i].first,
                  rec->replay.run[i].nr);
}

static void
look_at_data (struct rules *ru, const struct sim_disk *d,
              const struct seat *s, uint64_t row, const uint8_t *data)
{
  const uint8_t *old =
    d->image + layout_data_off (&ru->a->sb.l, row * BLOCK_LEN);

  /* A target's are checked with the others'; a repair changes nothing. */
  if (!rule_is_active (s) ||
      (data ? memcmp (data, old, BLOCK_LEN) == 0 : all_zeroes (old, BLOCK_LEN)))
    return;
  if (ru->r->journal)
    rules_check_logged (ru, d, row, data);
  if (rule_is_spoilt (ru->r, d))
    return;
  if (!ru->r->journal)
    check_bit (ru, "written", row, OPEN);
  /* What a recovery writes directly is of a transaction that is still live. */
  if (ru->a->lost_slots && is_settled (ru->a) &&
      (ru->a->recovery == NULL || ru->a->recovery->phase != DIRECT))
    check_bit (ru, "written", row, MISSED);
}

/* ---- the table ----------------------------------------------------------- */

static void
look_at_page (struct rules *ru, const struct sim_disk *d,
              const struct seat *s, const struct place *p,
              const uint8_t *data)
{
  static struct table_page page;
  const struct recovery *rec = ru->a->recovery;

  if (!ru->r->journal || data == NULL || !rule_is_active (s) ||
      !table_page_decode (data, &ru->a->sb.array_uuid, s->slot, p->no, &page))
    return;
  if (rec && rec->phase < PLACE && !s->behind)
    run_die (ru->r, "R14: %s: page %" PRIu64 " is stored in phase %d of the "
             "recovery", d->name, p->no, (int) rec->phase);
  for (unsigned i = 0; i < limits.table_page_entries; i++) {
    const uint32_t g = page.entry[i].generation;

    if (g && i > 0 && g == page.entry[i - 1].generation)
      continue;
    if (g && rules_is_undecided (ru, g))
      run_die (ru->r, "R14: %s: page %" PRIu64 " has an entry of %" PRIu32
               ", whose records are not durable", d->name, p->no, g);
  }
}

/* May anything be written but what an opening marks? */
static void
check_written (const struct rules *ru, const struct sim_disk *d,
               const struct place *p)
{
  if (!ru->a->writable)
    run_die (ru->r, "M10: %s: block %" PRIu64 " of kind %d is written before "
             "there is a record", d->name, p->no, (int) p->kind);
}

/* ---- all of them --------------------------------------------------------- */

static void
follow (struct rules *ru, const struct array *a)
{
  const int phase = a->recovery ? (int) a->recovery->phase : -1;

  if (ru->a == a && phase >= 0 && phase < ru->phase)
    rules_decided_again (ru);
  ru->phase = phase;
  if (ru->a == a && ru->nr_grown == a->sb.l.nr_grown)
    return;
  if (ru->a != a) {
    ru->newest = a->newest_seq;
    ru->newest_left = 0;
    forget_all (ru);
  }
  make_map (ru, &a->sb.l);
  for (unsigned i = 0; ru->a != a && i < a->nr_seats; i++)
    if (rule_is_active (a->seat[i]) && ru->r->journal)
      rules_load (ru, a, a->seat[i]);
  ru->a = a;
  ru->nr_grown = a->sb.l.nr_grown;
}

static void
look (void *opaque, struct sim_disk *d, enum io_kind kind,
      const uint8_t *data, uint64_t len, uint64_t off)
{
  struct rules *ru = opaque;
  const struct array *a = ru->r->sa->a;
  const struct seat *s;

  if (sim_disk_is_left (d, off, len))
    run_die (ru->r, "settled: %s: %" PRIu64 "+%" PRIu64 " is %s, and was left "
             "by a process that was killed", d->name, off, len,
             kind == IO_READ ? "read" : "written");
  if (a == NULL)
    ru->a = NULL;
  if (a == NULL || kind == IO_READ || ru->r->sa->dead)
    return;
  if (kind == IO_FLUSH) {
    if (ru->a == a)
      check_recovered (ru, a);
    return;
  }
  follow (ru, a);
  s = seat_of (a, d);
  if (s == NULL || !rule_is_active (s))      /* it begins anew */
    rules_forget (ru, &ru->of[sim_array_disk_no (ru->r->sa, d)]);
  for (uint64_t o = 0; s && o < len; o += BLOCK_LEN) {
    const struct place *p = &ru->map[(off + o) / BLOCK_LEN];
    const uint8_t *block = data ? data + o : NULL;

    switch (p->kind) {
    case NOWHERE:
      break;
    case SUPERBLOCK:
      check_superblock (ru->r, d, s, p);
      break;
    case HEADER:
      if (!s->behind)
        check_written (ru, d, p);
      if (s->state != SEAT_SPARE)       /* its headers say nothing */
        check_places (ru->r, a, d, s, p, block);
      rules_look_at_header (ru, s, block, p->which);
      break;
    case RECORD:
      check_written (ru, d, p);
      rules_look_at_ring (ru, d, s, block, len - o, off + o);
      return;
    case TABLE:
      check_places (ru->r, a, d, s, p, block);
      look_at_page (ru, d, s, p, block);
      break;
    case BITMAP:
      check_places (ru->r, a, d, s, p, block);
      break;
    case DATA:
      check_written (ru, d, p);
      look_at_data (ru, d, s, p->no, block);
    }
  }
}

struct rules *
rules_new (struct run *r)
{
  struct rules *ru = calloc (1, sizeof *ru);

  assert (ru != NULL);
  ru->r = r;
  ru->map = calloc (r->sa->disk_size / BLOCK_LEN, sizeof *ru->map);
  assert (ru->map != NULL);
  sim_watch (r->sim, look, ru);
  return ru;
}

void
rules_free (struct rules *ru)
{
  sim_watch (ru->r->sim, NULL, NULL);
  forget_all (ru);
  for (unsigned i = 0; i < SIM_MAX_DISKS; i++)
    free (ru->of[i].record);
  free (ru->map);
  free (ru);
}
