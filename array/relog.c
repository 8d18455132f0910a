/* gpuraid: log again what the newest transaction lacks.
 *
 * One member after the other.  Of a record with a good header only the bad
 * blocks are written; a record without one is made anew at its place, with
 * the rows in which the transaction is kept.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>
#include <string.h>

#include "array/fail.h"
#include "array/lost.h"
#include "array/op.h"
#include "array/recover.h"
#include "array/relog.h"
#include "array/request.h"
#include "array/state.h"
#include "array/sums.h"
#include "array/xfer.h"
#include "common/crc32c.h"
#include "common/plant.h"

/* A block that is to be written; or only read, since it is lost if that fails
 * later.
 */
#define NO_PLACE UINT32_MAX
struct missing {
  uint64_t row;
  uint32_t place;               /* in the ring, or NO_PLACE */
  uint32_t crc_no;              /* of those of a new record */
};

/* Operations that read at once. */
#define MAX_READS 32u

struct relog_read {
  struct op *op;
  size_t first, nr;             /* of the missing blocks */
};

struct relog {
  struct array *a;
  struct replay *replay;
  const struct ring_contents *ring;     /* by seat */
  const bool *has_ring;
  unsigned next_seat;

  /* Of the member at hand. */
  struct seat *seat;            /* NULL: none */
  struct missing *missing;
  size_t nr_missing;
  size_t nr_read;               /* of those: content in buf */
  bool written;
  uint8_t *buf;                 /* header, then nr_missing blocks */
  struct xfer_memory *memory;   /* of buf */
  struct journal_record r;      /* nr_entries 0: the header is good */
  uint32_t nr_header;           /* blocks */
  uint32_t nr_before;           /* entries that have it */
  struct sums_pin pin;
  struct waiter page_waiter;

  struct relog_read read[MAX_READS];
  unsigned nr_reads;            /* under way together */
  struct request reader;        /* what op_read wakes when all have ended */
  unsigned writes;              /* under way */
};

static void
wake (struct array *a, struct waiter *w)
{
}

struct relog *
relog_new (struct array *a, struct replay *r,
           const struct ring_contents *ring, const bool *has_ring)
{
  struct relog *rl = calloc (1, sizeof *rl);

  if (rl == NULL)
    return NULL;
  rl->a = a;
  rl->replay = r;
  rl->ring = ring;
  rl->has_ring = has_ring;
  rl->page_waiter.run = wake;
  list_init (&rl->page_waiter.link);
  rl->reader.kind = REQUEST_RELOG;
  rl->reader.waiter.run = wake;
  list_init (&rl->reader.waiter.link);
  return rl;
}

static void
end_member (struct relog *rl)
{
  free (rl->missing);
  if (rl->memory)
    xfer_memory_put (rl->memory);
  rl->memory = NULL;
  free (rl->r.entry);
  free (rl->r.crc);
  rl->missing = NULL;
  rl->buf = NULL;
  memset (&rl->r, 0, sizeof rl->r);
  rl->seat = NULL;
  rl->nr_missing = rl->nr_read = rl->nr_header = 0;
  rl->written = false;
  rl->nr_before = 0;
  list_remove (&rl->page_waiter.link);
  if (rl->pin.nr > 0)
    sums_unpin (rl->a, &rl->pin);
}

void
relog_free (struct relog *rl)
{
  if (rl == NULL)
    return;
  end_member (rl);
  free (rl);
}

static void
put_reads (struct array *a, struct relog *rl)
{
  for (unsigned i = 0; i < rl->nr_reads; i++)
    op_put (a, rl->read[i].op);
  rl->nr_reads = 0;
}

void
relog_give_up (struct array *a, struct relog *rl)
{
  if (rl && rl->reader.reads == 0)
    put_reads (a, rl);
}

bool
relog_is_idle (const struct relog *rl)
{
  return rl == NULL || (rl->nr_reads == 0 && rl->writes == 0);
}

/* ---- what a member lacks ------------------------------------------------- */

/* Is the newest transaction kept in this row? */
static bool
is_kept (const struct relog *rl, uint64_t row)
{
  const struct replay_run *run = replay_find (rl->replay, row);

  return run && run->newest && !run->lost;
}

static void
add_missing (struct relog *rl, uint64_t row, uint32_t place, uint32_t crc_no)
{
  rl->missing[rl->nr_missing++] = (struct missing) { row, place, crc_no };
}

static bool
has_entry (const struct journal_record *r, uint64_t row)
{
  for (uint32_t i = 0; i < r->nr_entries; i++)
    if (row >= r->entry[i].first_block &&
        row < r->entry[i].first_block + r->entry[i].nr_blocks)
      return true;
  return false;
}

/* Rows that its record does not have, although the transaction is kept there:
 * an earlier recovery made the record, and had dropped it.
 */
static bool
find_unlogged (struct relog *rl, const struct ring_record *rec)
{
  const unsigned slot = rl->seat->slot;
  size_t nr = rl->nr_missing;
  struct missing *p;

  for (unsigned i = 0; i < rl->replay->nr_runs; i++)
    nr += rl->replay->run[i].erased >> slot & 1 ? rl->replay->run[i].nr : 0;
  p = realloc (rl->missing, (nr + 1) * sizeof *p);
  if (p == NULL)
    return false;
  rl->missing = p;
  for (unsigned i = 0; i < rl->replay->nr_runs; i++) {
    const struct replay_run *run = &rl->replay->run[i];

    for (uint64_t row = run->first;
         run->newest && !run->lost && run->erased >> slot & 1 &&
           row < run->first + run->nr; row++)
      if (!has_entry (&rec->r, row))
        add_missing (rl, row, NO_PLACE, 0);
  }
  return true;
}

/* The blocks of its record that are bad. */
static bool
find_bad_blocks (struct relog *rl, const struct ring_record *rec)
{
  uint32_t place = rec->r.place +
    journal_header_blocks (rec->r.nr_entries, rec->r.nr_crcs);
  const bool *good = rec->good;

  rl->missing = calloc (rec->r.nr_blocks + 1, sizeof *rl->missing);
  if (rl->missing == NULL)
    return false;
  for (uint32_t i = 0; i < rec->r.nr_entries; i++) {
    const struct journal_entry *e = &rec->r.entry[i];

    if (e->flags & JOURNAL_ENTRY_DIRECT)
      good += e->nr_blocks;
    for (uint32_t b = 0; e->flags == 0 && b < e->nr_blocks; b++, place++)
      if (!*good++ && is_kept (rl, e->first_block + b))
        add_missing (rl, e->first_block + b, place, 0);
  }
  return PLANTED ("recover-unread") || find_unlogged (rl, rec);
}

static bool
slot_changes (const struct array *a, const struct journal_entry *e,
              uint64_t row, unsigned slot)
{
  return e->roles & BIT (layout_role (&a->g, row / (a->g.chunk / BLOCK_LEN),
                                      slot));
}

/* Any record of the newest transaction: they name the same rows for this
 * slot where a role of it changes.  NULL: there is none.
 */
static const struct ring_record *
any_record (const struct relog *rl)
{
  for (unsigned i = 0; i < rl->a->nr_seats; i++)
    if (rl->has_ring[i]) {
      const struct ring_record *rec =
        ring_find_record (&rl->ring[i], rl->replay->newest);

      if (rec)
        return rec;
    }
  return NULL;
}

/* The entry of the newest transaction for this run, in some record, if it
 * changes this slot.
 */
static const struct journal_entry *
newest_entry (const struct relog *rl, const struct replay_run *run,
              unsigned slot)
{
  const struct array *a = rl->a;

  for (unsigned i = 0; i < a->nr_seats; i++) {
    const struct ring_record *rec = rl->has_ring[i] ?
      ring_find_record (&rl->ring[i], rl->replay->newest) : NULL;

    for (uint32_t j = 0; rec && j < rec->r.nr_entries; j++) {
      const struct journal_entry *e = &rec->r.entry[j];

      if (run->first >= e->first_block &&
          run->first < e->first_block + e->nr_blocks &&
          slot_changes (a, e, run->first, slot))
        return e;
    }
  }
  return NULL;
}

/* The blocks of an entry are on one page of the checksum table. */
static bool
is_one_page (const struct array *a, uint64_t row, uint64_t row2)
{
  return a->sums == NULL || row / limits.table_page_entries ==
    row2 / limits.table_page_entries;
}

/* A whole record, of the rows in which the transaction is kept. */
static bool
make_record (struct relog *rl, const struct ring_record *like)
{
  const unsigned nr = rl->replay->nr_runs;
  struct journal_record *r = &rl->r;
  uint32_t place;

  rl->missing = calloc (nr + 1, sizeof *rl->missing);
  r->entry = calloc (nr + 1, sizeof *r->entry);
  r->crc = calloc (nr + 1, sizeof *r->crc);
  if (rl->missing == NULL || r->entry == NULL || r->crc == NULL)
    return false;
  for (unsigned i = 0; i < nr; i++) {
    const struct replay_run *run = &rl->replay->run[i];
    const struct journal_entry *e = run->newest && !run->lost ?
      newest_entry (rl, run, rl->seat->slot) : NULL;
    const uint32_t flags = e ? e->flags : 0;
    const uint32_t most = flags & JOURNAL_ENTRY_ZERO ?
      JOURNAL_ZERO_MAX_BLOCKS : JOURNAL_ENTRY_MAX_BLOCKS;
    struct journal_entry *last = r->nr_entries ?
      &r->entry[r->nr_entries - 1] : NULL;

    if (e == NULL)
      continue;
    if (last && last->flags == flags && last->roles == e->roles &&
        is_one_page (rl->a, last->first_block, run->first) &&
        last->first_block + last->nr_blocks == run->first &&
        last->nr_blocks + run->nr <= most)
      last->nr_blocks += run->nr;
    else
      r->entry[r->nr_entries++] = (struct journal_entry) {
        .first_block = run->first, .nr_blocks = run->nr,
        .generation = (uint32_t) rl->replay->newest, .roles = e->roles,
        .flags = flags,
      };
    if (flags & JOURNAL_ENTRY_ZERO)
      continue;
    if (flags == 0)
      add_missing (rl, run->first, 0, r->nr_crcs);
    r->crc[r->nr_crcs++] = run->source[rl->seat->slot].crc;
  }
  if (r->nr_entries == 0)
    return true;
  r->session = like->r.session;
  r->seq = like->r.seq;
  r->dev = rl->seat->dev;
  r->participants = like->r.participants;
  memcpy (r->place_of, like->r.place_of, sizeof r->place_of);
  r->place = r->place_of[r->dev];
  r->nr_blocks = rl->nr_missing;
  rl->nr_header = journal_header_blocks (r->nr_entries, r->nr_crcs);
  place = r->place + rl->nr_header;
  for (size_t i = 0; i < rl->nr_missing; i++)
    rl->missing[i].place = place++;
  return true;
}

static bool
begin_member (struct relog *rl, unsigned i)
{
  const struct ring_record *like = any_record (rl);
  const struct ring_record *rec =
    ring_find_record (&rl->ring[i], rl->replay->newest);

  rl->seat = rl->a->seat[i];
  if (rec ? !find_bad_blocks (rl, rec) :
      device_set_has (&like->r.participants, rl->seat->dev) &&
      !make_record (rl, like))
    return false;
  if (posix_memalign ((void **) &rl->buf, BLOCK_LEN,
                      (rl->nr_header + rl->nr_missing + 1) * BLOCK_LEN))
    return false;
  rl->memory = xfer_memory_new (rl->buf);
  return rl->memory != NULL;
}

/* ---- reading, writing ---------------------------------------------------- */

static uint8_t *
block_buf (const struct relog *rl, size_t i)
{
  return rl->buf + (rl->nr_header + i) * BLOCK_LEN;
}

/* Blocks gave errors, of which the decision did not know. */
static void
note_bad (struct array *a, const struct op *op, uint64_t no, unsigned b)
{
  const uint64_t roles = op_errors (op, b);

  if (roles)
    recover_note_bad (a, no, b, roles);
  else if (!recover_is_outdated (a))
    array_set_failed (a, "its journal can't be read");
  lost_rows_remove (a, no, block_mask (b, 1));
}

static unsigned
role_of (const struct relog *rl, uint64_t row)
{
  return layout_role (&rl->a->g, row / (rl->a->g.chunk / BLOCK_LEN),
                      rl->seat->slot);
}

/* How many of the missing blocks from i on follow each other in a line. */
static size_t
nr_adjacent (const struct relog *rl, size_t i)
{
  const uint64_t row = rl->missing[i].row;
  const size_t most = MIN (rl->nr_missing - i,
                           rl->a->cell_blocks - row % rl->a->cell_blocks);
  size_t nr = 1;

  while (nr < most && rl->missing[i + nr].row == row + nr)
    nr++;
  return nr;
}

/* As many as there are credits for. */
static void
start_reads (struct array *a, struct relog *rl)
{
  size_t i = rl->nr_read;

  rl->reader.a = a;
  while (i < rl->nr_missing && rl->nr_reads < MAX_READS) {
    const uint64_t row = rl->missing[i].row;
    struct relog_read *rd = &rl->read[rl->nr_reads];

    rd->first = i;
    rd->nr = nr_adjacent (rl, i);
    rd->op = op_read (a, &rl->reader, line_of_row (a, row),
                      BIT (role_of (rl, row)), 0, row % a->cell_blocks,
                      rd->nr);
    if (rd->op == NULL)
      break;
    rl->nr_reads++;
    i += rd->nr;
  }
}

static bool
copy_block (struct array *a, struct relog *rl, const struct op *op, size_t i)
{
  const uint64_t row = rl->missing[i].row;
  const unsigned b = row % a->cell_blocks;

  if (op_copy (op, role_of (rl, row), b * BLOCK_LEN, BLOCK_LEN,
               block_buf (rl, i)) == 0)
    return true;
  note_bad (a, op, line_of_row (a, row), b);
  return false;
}

/* All of them have ended.  False: some can't be read, and it is decided again.
 */
static bool
take_reads (struct array *a, struct relog *rl)
{
  bool all = true;

  for (unsigned i = 0; i < rl->nr_reads; i++) {
    const struct relog_read *rd = &rl->read[i];

    for (size_t j = 0; j < rd->nr; j++)
      all &= copy_block (a, rl, rd->op, rd->first + j);
    if (all)
      rl->nr_read = rd->first + rd->nr;
  }
  put_reads (a, rl);
  return all;
}

/* The content of the missing blocks.  True when all of it is there. */
static bool
read_blocks (struct array *a, struct relog *rl)
{
  for (;;) {
    if (rl->nr_reads == 0) {
      if (rl->nr_read == rl->nr_missing)
        return true;
      start_reads (a, rl);
      return false;             /* without a credit: the next turn */
    }
    if (rl->reader.reads > 0 || !take_reads (a, rl))
      return false;
  }
}

static void
write_done (struct array *a, struct xfer *x)
{
  struct relog *rl = x->owner;

  if (x->error)
    seat_fail (a, x->seat, "journal", x->error);
  else
    x->seat->write_gen++;
  rl->writes--;
}

static void
write_blocks (struct relog *rl, uint32_t place, void *buf, size_t nr)
{
  struct xfer *x = xfer_new (rl->seat, IO_WRITE, write_done);

  x->off = rl->a->sb.l.ring_off + (uint64_t) place * BLOCK_LEN;
  x->len = nr * BLOCK_LEN;
  x->buf = buf;
  x->memory = rl->memory;
  x->owner = rl;
  rl->writes++;
  xfer_start (rl->a, x);
}

static void
write_member (struct relog *rl)
{
  const struct ring_id id = ring_id_of (&rl->a->sb, rl->seat->slot);

  if (rl->r.nr_entries == 0) {
    for (size_t i = 0; i < rl->nr_missing; i++)
      if (rl->missing[i].place != NO_PLACE)
        write_blocks (rl, rl->missing[i].place, block_buf (rl, i), 1);
    return;
  }
  if (!journal_record_check (&rl->r, &id)) {
    seat_fail (rl->a, rl->seat, "its part of the journal can't be made anew",
               0);
    return;
  }
  for (size_t i = 0; i < rl->nr_missing; i++)
    rl->r.crc[rl->missing[i].crc_no] = crc32c (block_buf (rl, i), BLOCK_LEN);
  journal_record_encode (&rl->r, &id, rl->buf);
  write_blocks (rl, rl->r.place, rl->buf, rl->nr_header + rl->nr_missing);
}

static bool
may_write_to (const struct seat *s)
{
  return s->m && s->state == SEAT_ACTIVE && !s->failing;
}

/* The ring has it now. */
static void
note_written (struct relog *rl, uint64_t row, struct replay_source src)
{
  struct replay_run *run =
    (struct replay_run *) replay_find (rl->replay, row);
  const unsigned slot = rl->seat->slot;

  src.dev = rl->seat->dev;
  src.seq = run->source[slot].seq;
  run->source[slot] = src;
  run->erased &= ~BIT (slot);
}

static void
member_written (struct relog *rl)
{
  for (size_t i = 0; i < rl->nr_missing; i++)
    if (rl->missing[i].place != NO_PLACE)
      note_written (rl, rl->missing[i].row, (struct replay_source) {
          .kind = REPLAY_RING, .place = rl->missing[i].place,
          .crc = crc32c (block_buf (rl, i), BLOCK_LEN) });
  for (uint32_t i = 0; i < rl->r.nr_entries; i++) {
    const struct journal_entry *e = &rl->r.entry[i];
    const struct replay_run *run;

    for (uint64_t row = e->first_block;
         e->flags & JOURNAL_ENTRY_ZERO && row < e->first_block + e->nr_blocks;
         row = run->first + run->nr) {
      run = replay_find (rl->replay, row);
      note_written (rl, row, (struct replay_source) { .kind = REPLAY_ZERO });
    }
  }
}

/* The transactions before, on the pages of the entries.  False: it waits. */
static bool
find_before (struct array *a, struct relog *rl)
{
  while (a->sums && rl->nr_before < rl->r.nr_entries) {
    struct journal_entry *e = &rl->r.entry[rl->nr_before];

    if (!sums_pin (a, &rl->pin, e->first_block, 1, BIT (rl->seat->slot),
                   &rl->page_waiter))
      return false;
    e->before = sums_before (a, &rl->pin, rl->seat->slot, e->first_block);
    sums_unpin (a, &rl->pin);
    rl->nr_before++;
  }
  return true;
}

bool
relog_step (struct array *a, struct relog *rl)
{
  for (;;) {
    if (rl->writes > 0)
      return false;
    if (rl->seat == NULL) {
      while (rl->next_seat < a->nr_seats &&
             (!rl->has_ring[rl->next_seat] ||
              !may_write_to (a->seat[rl->next_seat])))
        rl->next_seat++;
      if (rl->next_seat == a->nr_seats)
        return true;
      if (!begin_member (rl, rl->next_seat)) {
        end_member (rl);
        return false;           /* no memory: the next turn */
      }
      rl->next_seat++;
    }
    if (!find_before (a, rl) || !read_blocks (a, rl) || a->failed)
      return false;
    if (!rl->written && may_write_to (rl->seat)) {
      rl->written = true;
      write_member (rl);
      if (rl->writes > 0)
        return false;
    }
    if (may_write_to (rl->seat))
      member_written (rl);
    end_member (rl);
  }
}
