/* gpuraid: log again what the newest transaction lacks.
 *
 * One member after the other: what it lacks (array/journal/relog-find.c) is
 * read, which decodes it, and written to its ring.  Of a record with a good
 * header only the bad blocks are written; a record without one is made anew at
 * its place.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>
#include <string.h>

#include "array/engine/place.h"
#include "array/engine/state.h"
#include "array/health/fail.h"
#include "array/health/lost.h"
#include "array/io/xfer.h"
#include "array/journal/relog.h"
#include "array/ops/ops.h"
#include "array/replay/recovery.h"
#include "common/bytes/crc32c.h"
#include "common/plant.h"

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
  rl->reads.waiter = &rl->read_waiter;
  rl->read_waiter.run = wake;
  list_init (&rl->read_waiter.link);
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
  if (rl && rl->reads.pending == 0)
    put_reads (a, rl);
}

bool
relog_is_idle (const struct relog *rl)
{
  return rl == NULL || (rl->nr_reads == 0 && rl->writes == 0);
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
  return line_role (rl->a, line_of_row (rl->a, row), rl->seat->slot);
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

  while (i < rl->nr_missing && rl->nr_reads < MAX_READS) {
    const uint64_t row = rl->missing[i].row;
    struct relog_read *rd = &rl->read[rl->nr_reads];

    rd->first = i;
    rd->nr = nr_adjacent (rl, i);
    rd->op = op_read (a, &rl->reads, line_of_row (a, row),
                      BIT (role_of (rl, row)), 0, row % a->cell_blocks,
                      rd->nr);
    if (rd->op == NULL)
      break;
    op_read_undecided (rd->op);
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
    if (rl->reads.pending > 0 || !take_reads (a, rl))
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
  struct xfer *x = xfer_new (rl->a, rl->seat, IO_WRITE, write_done);

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
    if (!PLANTED ("relog-before-lost"))
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
      if (!relog_begin_member (rl, rl->next_seat)) {
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
