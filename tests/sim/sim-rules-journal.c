/* gpuraid: tests: rules of the journal, at each I/O: see tests/sim/sim-rules.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "raidmap/layout/reshape.h"
#include "tests/sim/sim-rules-internal.h"

/* ---- records ------------------------------------------------------------- */

static void
forget_record (struct records *of, unsigned i)
{
  free (of->record[i].r.entry);
  free (of->record[i].r.crc);
  of->record[i] = of->record[--of->nr];
}

void
rules_forget (struct rules *ru, struct records *of)
{
  while (of->nr > 0)
    forget_record (of, 0);
  of->unknown = ru->newest;
}

static bool
is_pending (const struct array *a, const struct sim_disk *d,
            const struct logged *rec)
{
  const uint64_t off = a->sb.l.ring_off +
    (uint64_t) rec->r.place * BLOCK_LEN;
  const uint64_t len = (uint64_t) rec->nr * BLOCK_LEN;

  return sim_disk_is_unflushed (d, off, len) || sim_disk_is_lost (d, off, len);
}

static struct ring_header
newest_header (const struct array *a, const struct seat *s,
               const uint8_t *image)
{
  const struct ring_id id = rule_ring (a, s);
  struct ring_header h, newest = { 0 };

  for (unsigned i = 0; i < JOURNAL_NR_HEADERS; i++)
    if (ring_header_decode (image + a->sb.l.ring_off + i * BLOCK_LEN, &id, i,
                            &h) && h.counter >= newest.counter)
      newest = h;
  return newest;
}

/* What the durable headers have not freed. */
static uint64_t
stable_tail (const struct array *a, const struct seat *s)
{
  return newest_header (a, s, sim_array_disk_of (s)->stable).seq;
}

static void
check_overwrite (struct rules *ru, const struct sim_disk *d, uint32_t place,
                 uint32_t nr, uint64_t seq)
{
  struct records *of = &ru->of[sim_array_disk_no (ru->r->sa, d)];
  const struct array *a = ru->a;

  for (unsigned i = 0; i < of->nr; i++) {
    const struct logged *rec = &of->record[i];

    if (rec->r.place >= place + nr || place >= rec->r.place + rec->nr)
      continue;
    for (unsigned j = 0; j < a->nr_seats && rec->r.seq != seq; j++)
      if (rule_is_active (a->seat[j]) &&
          !rule_is_spoilt (ru->r, sim_array_disk_of (a->seat[j])) &&
          stable_tail (a, a->seat[j]) <= rec->r.seq)
        run_die (ru->r, "R4: %s: transaction %" PRIu64 " is written over, and "
                 "slot %u does not know that it is free", d->name, rec->r.seq,
                 a->seat[j]->slot);
    forget_record (of, i--);
  }
}

/* False: there is none. */
static bool
get_record (const uint8_t *data, uint64_t len, uint32_t place,
            const struct ring_id *id, struct logged *rec)
{
  *rec = (struct logged) { 0 };
  if (!journal_record_peek (data, id, place, &rec->r))
    return false;
  rec->r.entry = calloc (rec->r.nr_entries + 1, sizeof *rec->r.entry);
  rec->r.crc = calloc (rec->r.nr_crcs + 1, sizeof *rec->r.crc);
  assert (rec->r.entry != NULL && rec->r.crc != NULL);
  rec->nr = journal_header_blocks (rec->r.nr_entries, rec->r.nr_crcs) +
    rec->r.nr_blocks;
  if (journal_record_decode (data, len, id, place, &rec->r))
    return true;
  free (rec->r.entry);
  free (rec->r.crc);
  return false;
}

static void
add_record (struct records *of, const struct logged *rec)
{
  if (of->nr == of->room) {
    of->room = MAX (16, 2 * of->room);
    of->record = realloc (of->record, of->room * sizeof *of->record);
    assert (of->record != NULL);
  }
  of->record[of->nr++] = *rec;
}

void
rules_load (struct rules *ru, const struct array *a, const struct seat *s)
{
  const struct sim_disk *d = sim_array_disk_of (s);
  struct records *of = &ru->of[sim_array_disk_no (ru->r->sa, d)];
  const struct member_layout *l = &a->sb.l;
  const struct ring_id id = rule_ring (a, s);
  const struct ring_header h = newest_header (a, s, d->image);
  uint64_t tail = h.seq;
  struct logged rec;

  for (unsigned i = 0; i < a->nr_seats; i++)
    if (rule_is_active (a->seat[i]))
      tail = MAX (tail, newest_header (a, a->seat[i], sim_array_disk_of
                                       (a->seat[i])->image).seq);

  for (uint64_t b = JOURNAL_NR_HEADERS; b < l->ring_len / BLOCK_LEN; b++) {
    if (!get_record (d->image + l->ring_off + b * BLOCK_LEN,
                     l->ring_len - b * BLOCK_LEN, b, &id, &rec))
      continue;
    if (rec.r.session == h.session && rec.r.seq >= tail) {
      rec.left = true;
      add_record (of, &rec);
      ru->newest_left = MAX (ru->newest_left, rec.r.seq);
      continue;
    }
    free (rec.r.entry);
    free (rec.r.crc);
  }
}

static void
check_order (struct rules *ru, const struct logged *rec)
{
  for (unsigned i = 0; i < ru->a->nr_seats; i++) {
    const struct seat *s = ru->a->seat[i];
    const struct sim_disk *d = s->m ? sim_array_disk_of (s) : NULL;
    const struct records *of = d && rule_is_active (s) ?
      &ru->of[sim_array_disk_no (ru->r->sa, d)] : NULL;

    for (unsigned j = 0; of && j < of->nr; j++)
      if (of->record[j].r.seq < rec->r.seq &&
          is_pending (ru->a, d, &of->record[j]))
        run_die (ru->r, "R5: transaction %" PRIu64 " is logged before %" PRIu64
                 " is durable on %s", rec->r.seq, of->record[j].r.seq,
                 d->name);
  }
}

/* {0, 0} in the newest stable place?  Where the first store of a page was torn,
 * the other place is as it was.
 */
static bool
is_zero_entry (const struct array *a, const struct seat *s, uint64_t row)
{
  static struct table_page page;
  const struct sim_disk *d = sim_array_disk_of (s);
  const uint64_t no = row / limits.table_page_entries;
  struct table_entry e = { 0 };
  uint64_t counter = 0;
  unsigned blank = 0, good = 0;

  for (unsigned which = 0; which < 2; which++) {
    const uint8_t *buf = d->stable + table_page_off (&a->sb.l, no, which);

    blank += all_zeroes (buf, BLOCK_LEN);
    if (!table_page_decode (buf, &a->sb.array_uuid, s->slot, no, &page) ||
        (good++ > 0 && page.counter < counter))
      continue;
    counter = page.counter;
    e = page.entry[row % limits.table_page_entries];
  }
  return good > 0 ? table_kind (e) == TABLE_ZERO : blank > 0;
}

/* What a new data member has of old rows proves nothing. */
static bool
is_current_at (const struct seat *s, uint64_t row)
{
  const struct geometry *g = &s->a->g;

  if (reshape_is_old (g, row) && s->slot == s->a->n - 1)
    return false;
  return s->state == SEAT_ACTIVE ||
    (s->state == SEAT_TARGET && row * BLOCK_LEN < s->cursor);
}

/* Rows that move may lie over rows that are dead, as the durable headers of all
 * active members say (W6, W7).
 */
static void
check_moved (struct rules *ru, const struct logged *rec,
             const struct journal_entry *e)
{
  const struct array *a = ru->a;

  for (unsigned i = 0; i < a->nr_seats; i++) {
    const struct seat *s = a->seat[i];
    struct geometry g = a->g;

    if (!rule_is_active (s) ||
        rule_is_spoilt (ru->r, sim_array_disk_of (s)))
      continue;
    g.frontier = newest_header (a, s, sim_array_disk_of (s)->stable).frontier;
    for (uint64_t row = e->first_block; row < e->first_block + e->nr_blocks;
         row++)
      if (!reshape_is_dead (&g, row))
        run_die (ru->r, "W6: transaction %" PRIu64 " writes row %" PRIu64
                 " directly, which is not dead, as slot %u says", rec->r.seq,
                 row, s->slot);
  }
}

static void
check_direct (struct rules *ru, const struct logged *rec)
{
  const struct array *a = ru->a;

  /* What is logged again may be in the table. */
  if (a->recovery && a->recovery->phase <= RELOG_FLUSH)
    return;
  for (uint32_t i = 0; i < rec->r.nr_entries; i++) {
    const struct journal_entry *e = &rec->r.entry[i];

    if ((e->flags & JOURNAL_ENTRY_DIRECT) == 0)
      continue;
    if (rec->r.move_rows > 0) {
      check_moved (ru, rec, e);
      continue;
    }
    for (uint64_t row = e->first_block; row < e->first_block + e->nr_blocks;
         row++)
      for (unsigned j = 0; j < a->nr_seats; j++) {
        const struct seat *s = a->seat[j];

        if (s->m && !s->failing && is_current_at (s, row) &&
            !rule_is_spoilt (ru->r, sim_array_disk_of (s)) &&
            !is_zero_entry (a, s, row))
          run_die (ru->r, "R12: transaction %" PRIu64 " writes row %" PRIu64
                   " directly, and slot %u has an entry for it", rec->r.seq,
                   row, s->slot);
      }
  }
}

void
rules_look_at_ring (struct rules *ru, const struct sim_disk *d,
                    const struct seat *s, const uint8_t *data, uint64_t len,
                    uint64_t off)
{
  const uint32_t place = (off - ru->a->sb.l.ring_off) / BLOCK_LEN;
  struct records *of = &ru->of[sim_array_disk_no (ru->r->sa, d)];
  const struct ring_id id = rule_ring (ru->a, s);
  struct logged rec;

  if (data == NULL || !get_record (data, len, place, &id, &rec))
    return;
  ru->newest = MAX (ru->newest, rec.r.seq);
  if (!rule_is_active (s)) {
    of->unknown = ru->newest;
    free (rec.r.entry);
    free (rec.r.crc);
    return;
  }
  check_overwrite (ru, d, place, rec.nr, rec.r.seq);
  check_order (ru, &rec);
  check_direct (ru, &rec);
  add_record (of, &rec);
}

/* ---- in place ------------------------------------------------------------ */

/* The entry for a row, and its crc if it has one. */
static const struct journal_entry *
find_entry (const struct logged *rec, uint64_t row, const uint32_t **crc)
{
  const uint32_t *c = rec->r.crc;

  for (uint32_t i = 0; i < rec->r.nr_entries; i++) {
    const struct journal_entry *e = &rec->r.entry[i];
    const bool zero = e->flags & JOURNAL_ENTRY_ZERO;

    if (row >= e->first_block && row - e->first_block < e->nr_blocks) {
      *crc = zero ? NULL : c + (row - e->first_block);
      return e;
    }
    c += zero ? 0 : e->nr_blocks;
  }
  return NULL;
}

enum logged_state { NOT_LOGGED, PENDING, DURABLE };

/* On the member of a seat; seq: its low 32 bits. */
static enum logged_state
logged_state (const struct rules *ru, const struct seat *s, uint32_t seq)
{
  const struct sim_disk *d = sim_array_disk_of (s);
  const struct records *of = &ru->of[sim_array_disk_no (ru->r->sa, d)];
  enum logged_state state = NOT_LOGGED;

  for (unsigned i = 0; i < of->nr; i++)
    if ((uint32_t) of->record[i].r.seq == seq) {
      if (is_pending (ru->a, d, &of->record[i]))
        return PENDING;
      state = DURABLE;
    }
  return state;
}

/* A record that names a participant whose member has none. */
static bool
is_incomplete (const struct rules *ru, const struct logged *rec)
{
  for (unsigned i = 0; i < ru->a->nr_seats && !rec->freed && !rec->left; i++) {
    const struct seat *s = ru->a->seat[i];

    if (rule_is_active (s) && device_set_has (&rec->r.participants, s->dev) &&
        rec->r.seq > ru->of[sim_array_disk_no
                            (ru->r->sa, sim_array_disk_of (s))].unknown &&
        logged_state (ru, s, rec->r.seq) == NOT_LOGGED)
      return true;
  }
  return false;
}

bool
rules_is_undecided (const struct rules *ru, uint64_t seq)
{
  for (unsigned i = 0; i < ru->a->nr_seats; i++) {
    const struct seat *s = ru->a->seat[i];
    const struct records *of;

    if (!rule_is_active (s))
      continue;
    if (logged_state (ru, s, seq) == PENDING)
      return true;
    of = &ru->of[sim_array_disk_no (ru->r->sa, sim_array_disk_of (s))];
    for (unsigned j = 0; j < of->nr; j++)
      if ((uint32_t) of->record[j].r.seq == (uint32_t) seq &&
          is_incomplete (ru, &of->record[j]))
        return true;
  }
  return false;
}

void
rules_check_logged (struct rules *ru, const struct sim_disk *d, uint64_t row,
                    const uint8_t *data)
{
  const struct records *of = &ru->of[sim_array_disk_no (ru->r->sa, d)];

  for (unsigned i = 0; i < of->nr; i++) {
    const uint32_t *crc;
    const struct journal_entry *e = find_entry (&of->record[i], row, &crc);

    if (e == NULL || e->flags & JOURNAL_ENTRY_DIRECT ||
        (crc == NULL) != (data == NULL) ||
        (crc && crc32c (data, BLOCK_LEN) != *crc))
      continue;
    if (rules_is_undecided (ru, of->record[i].r.seq))
      run_die (ru->r, "R1: %s: transaction %" PRIu64 " is in place in row %"
               PRIu64 " before its records are durable", d->name,
               of->record[i].r.seq, row);
  }
}

/* What it logs again is of the newest transaction. */
void
rules_decided_again (struct rules *ru)
{
  for (unsigned i = 0; i < SIM_MAX_DISKS; i++)
    for (unsigned j = 0; j < ru->of[i].nr; j++)
      ru->of[i].record[j].freed |= !ru->of[i].record[j].left;
}

/* Was it dropped in some rows, or is too little known of them? */
static bool
may_be_dropped (const struct rules *ru, const struct logged *rec)
{
  return rec->left && (rec->r.seq == ru->newest_left || ru->r->forced ||
                       ru->r->may_lose_rows);
}

/* ---- freed records ------------------------------------------------------- */

/* Is the row named by a transaction after this one, which a recovery finds? */
static bool
is_newer (const struct rules *ru, const struct sim_disk *d,
          const struct records *of, uint64_t row, uint64_t seq)
{
  const uint32_t *crc;

  for (unsigned i = 0; i < of->nr; i++)
    if (of->record[i].r.seq > seq && find_entry (&of->record[i], row, &crc) &&
        !is_pending (ru->a, d, &of->record[i]))
      return true;
  return false;
}

/* frontier: of the header.  What was written over dead rows, and has not moved,
 * may have found no space.
 */
static void
check_freed (struct rules *ru, const struct sim_disk *d,
             const struct records *of, const struct logged *rec,
             uint64_t frontier)
{
  for (uint32_t i = 0; i < rec->r.nr_entries; i++) {
    const struct journal_entry *e = &rec->r.entry[i];

    for (uint64_t row = e->first_block; row < e->first_block + e->nr_blocks;
         row++) {
      const uint64_t off = layout_data_off (&ru->a->sb.l, row * BLOCK_LEN);
      const uint32_t *crc;

      find_entry (rec, row, &crc);
      if (rec->r.move_rows > 0 && row >= frontier &&
          e->flags & JOURNAL_ENTRY_DIRECT)
        continue;
      if (crc && !is_newer (ru, d, of, row, rec->r.seq) &&
          crc32c (d->stable + off, BLOCK_LEN) != *crc)
        run_die (ru->r, "R3: transaction %" PRIu64 " is freed, and row %"
                 PRIu64 " of %s is not durable", rec->r.seq, row, d->name);
    }
  }
}

void
rules_look_at_header (struct rules *ru, const struct seat *s,
                      const uint8_t *data, unsigned which)
{
  const struct ring_id id = rule_ring (ru->a, s);
  struct ring_header h;

  if (data == NULL || !ring_header_decode (data, &id, which, &h))
    return;
  for (unsigned i = 0; i < ru->a->nr_seats; i++) {
    const struct seat *t = ru->a->seat[i];
    const struct sim_disk *d =
      rule_is_active (t) ? sim_array_disk_of (t) : NULL;
    struct records *of = d ?
      &ru->of[sim_array_disk_no (ru->r->sa, d)] : NULL;

    for (unsigned j = 0; of && j < of->nr; j++) {
      if (of->record[j].r.seq >= h.seq || of->record[j].freed)
        continue;
      of->record[j].freed = true;
      if (t == s && !of->record[j].left)
        rules_check_freed (ru, &of->record[j].r);
      if (!rule_is_spoilt (ru->r, d) && !may_be_dropped (ru, &of->record[j]))
        check_freed (ru, d, of, &of->record[j], h.frontier);
    }
  }
}
