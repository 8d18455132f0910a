/* gpuraid: for the tests of array/replay.[ch]: what a crash left, made in
 * memory, and a slow and obvious reference of what is made of it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "common/bits.h"
#include "tests/array/replay/replay-reference.h"

/* ---- making one --------------------------------------------------------- */

void
crash_begin (struct crash *c, unsigned k, unsigned m, unsigned rows_per_chunk)
{
  memset (c, 0, sizeof *c);
  c->g = (struct geometry) {
    .k = k, .m = m, .chunk = rows_per_chunk * BLOCK_LEN,
    .size = (uint64_t) k * rows_per_chunk * BLOCK_LEN * 1000,
  };
}

unsigned
crash_dev (unsigned member)
{
  return 90 - 7 * member;
}

unsigned
crash_add_member (struct crash *c, unsigned slot, uint64_t tail)
{
  const unsigned i = c->nr_members++;

  assert_in_range (i, 0, CRASH_MAX_MEMBERS - 1);
  c->member[i] = (struct replay_member) {
    .slot = slot, .dev = crash_dev (i), .ring = &c->ring[i],
  };
  c->ring[i].record = c->record[i];
  if (tail) {
    c->ring[i].begun = true;
    c->ring[i].header.seq = tail;
    c->ring[i].max_seq = tail - 1;
  }
  return i;
}

struct ring_record *
crash_add_record (struct crash *c, unsigned member, uint64_t seq,
                  uint64_t participants)
{
  struct ring_contents *ring = &c->ring[member];
  const unsigned i = ring->nr_records++;
  struct ring_record *rec = &c->record[member][i];

  assert_in_range (i, 0, CRASH_MAX_RECORDS - 1);
  assert_true (ring->begun);
  if (i > 0)
    assert_true (seq > rec[-1].r.seq);
  rec->r.seq = seq;
  rec->r.dev = crash_dev (member);
  rec->r.place = 100 * (member + 1) + 20 * i;
  FOR_EACH_BIT (j, participants | BIT (member))
    device_set_add (&rec->r.participants, crash_dev (j));
  rec->r.entry = c->entry[member][i];
  rec->r.crc = c->crc[member][i];
  rec->good = c->good[member][i];
  rec->stored = c->stored[member][i];
  ring->max_seq = MAX (ring->max_seq, seq);
  return rec;
}

/* Of what this transaction writes to a row. */
static uint32_t
crc_of (uint64_t seq, uint64_t row)
{
  return (uint32_t) seq * 0x9e3779b9 ^ (uint32_t) row;
}

void
crash_add_entry (struct ring_record *rec, uint64_t first, uint32_t nr,
                 uint64_t roles, uint32_t flags, uint64_t bad)
{
  assert_in_range (rec->r.nr_entries, 0, CRASH_MAX_ENTRIES - 1);
  rec->r.entry[rec->r.nr_entries++] = (struct journal_entry) {
    .first_block = first, .nr_blocks = nr, .roles = roles, .flags = flags,
    .generation = (uint32_t) rec->r.seq,
  };
  if (flags & JOURNAL_ENTRY_ZERO)
    return;
  assert_in_range (rec->r.nr_crcs + nr, 1, CRASH_MAX_CRCS);
  for (uint32_t b = 0; b < nr; b++) {
    rec->good[rec->r.nr_crcs] = b >= 64 || (bad & BIT (b)) == 0;
    rec->r.crc[rec->r.nr_crcs++] = crc_of (rec->r.seq, first + b);
  }
  if ((flags & JOURNAL_ENTRY_DIRECT) == 0)
    rec->r.nr_blocks += nr;
}

void
crash_add_bad (struct crash *c, uint64_t row, uint64_t slots)
{
  assert_in_range (c->nr_bad, 0, CRASH_MAX_BAD - 1);
  c->bad[c->nr_bad++] = (struct replay_bad) { row, slots };
}

static void
print_record (const struct ring_record *rec)
{
  const bool *good = rec->good;

  print_error ("  seq %#" PRIx64 " place %u:", rec->r.seq, rec->r.place);
  for (uint32_t i = 0; i < rec->r.nr_entries; i++) {
    const struct journal_entry *e = &rec->r.entry[i];

    print_error (" rows %" PRIu64 "+%u roles %#" PRIx64 "%s", e->first_block,
                 e->nr_blocks, e->roles,
                 e->flags & JOURNAL_ENTRY_ZERO ? " zero" :
                 e->flags & JOURNAL_ENTRY_DIRECT ? " direct" : "");
    for (uint32_t b = 0;
         (e->flags & JOURNAL_ENTRY_ZERO) == 0 && b < e->nr_blocks; b++)
      print_error (" %s", *good++ ? "good" : "bad");
    print_error (";");
  }
  print_error ("\n");
}

struct replay_input
crash_input (const struct crash *c)
{
  return (struct replay_input) {
    .g = &c->g, .member = c->member, .nr_members = c->nr_members,
    .bad = c->bad, .nr_bad = c->nr_bad,
  };
}

void
crash_print (const struct crash *c)
{
  print_error ("k %u m %u, %u rows a chunk\n", c->g.k, c->g.m,
               c->g.chunk / BLOCK_LEN);
  for (unsigned i = 0; i < c->nr_members; i++) {
    const struct ring_contents *ring = &c->ring[i];

    print_error ("slot %u dev %u%s tail %#" PRIx64 " max %#" PRIx64 "\n",
                 c->member[i].slot, c->member[i].dev,
                 ring->begun ? "" : " without a header", ring->header.seq,
                 ring->max_seq);
    for (unsigned j = 0; j < ring->nr_records; j++)
      print_record (&ring->record[j]);
  }
  for (unsigned i = 0; i < c->nr_bad; i++)
    print_error ("row %" PRIu64 ": slots %#" PRIx64 " can't be read\n",
                 c->bad[i].row, c->bad[i].slots);
}

/* ---- the reference ------------------------------------------------------ */

static const struct ring_record *
find_record (const struct crash *c, unsigned member, uint64_t seq)
{
  for (unsigned j = 0; j < c->ring[member].nr_records; j++)
    if (c->ring[member].record[j].r.seq == seq)
      return &c->ring[member].record[j];
  return NULL;
}

static bool
is_in_any_ring (const struct crash *c, uint64_t seq)
{
  for (unsigned i = 0; i < c->nr_members; i++)
    if (find_record (c, i, seq))
      return true;
  return false;
}

static bool
is_in_incomplete_ring (const struct crash *c, unsigned member, uint64_t seq)
{
  const struct ring_record *rec = find_record (c, member, seq);
  bool named = false;

  for (unsigned i = 0; i < c->nr_members; i++) {
    const struct ring_record *other = find_record (c, i, seq);

    named |= other && device_set_has (&other->r.participants,
                                      c->member[member].dev);
  }
  if (!named)
    return false;
  for (uint32_t b = 0; rec && b < rec->r.nr_crcs; b++)
    if (!rec->good[b])
      return true;
  return rec == NULL;
}

void
ref_replay (const struct crash *c, struct ref_replay *ref)
{
  memset (ref, 0, sizeof *ref);
  for (unsigned i = 0; i < c->nr_members; i++)
    ref->tail = MAX (ref->tail, c->ring[i].header.seq);
  for (unsigned i = 0; i < c->nr_members; i++) {
    ref->next_seq = MAX (ref->next_seq, c->ring[i].max_seq + 1);
    for (unsigned j = 0; j < c->ring[i].nr_records; j++)
      if (c->ring[i].record[j].r.seq >= ref->tail)
        ref->newest = MAX (ref->newest, c->ring[i].record[j].r.seq);
  }
  if ((uint32_t) ref->next_seq == 0)
    ref->next_seq++;
  for (uint64_t seq = ref->tail; seq < ref->newest; seq++)
    if ((uint32_t) seq != 0 && !is_in_any_ring (c, seq))
      ref->hole = true;
  if (ref->tail == 0 && ref->next_seq > 1)
    ref->hole = true;
  for (unsigned i = 0; i < c->nr_members && ref->newest; i++)
    ref->incomplete |= is_in_incomplete_ring (c, i, ref->newest);
}

static bool
is_present (const struct crash *c, unsigned slot)
{
  for (unsigned i = 0; i < c->nr_members; i++)
    if (c->member[i].slot == slot)
      return true;
  return false;
}

static bool
covers (const struct journal_entry *e, uint64_t row)
{
  return row >= e->first_block && row - e->first_block < e->nr_blocks;
}

/* While the array is widened, from the frontier on: the last slot counts as
 * zeroes, and the others are where they were with one data role less.
 */
static uint64_t frontier;       /* if what moves rows counts, behind these */
static uint64_t moving;         /* its seq, or 0 */

static bool
is_old (const struct crash *c, uint64_t row)
{
  return c->g.widening && row >= frontier;
}

static bool
counts_as_zeroes (const struct crash *c, uint64_t row, unsigned slot)
{
  return is_old (c, row) && slot == c->g.k + c->g.m - 1;
}

static unsigned
slot_of (const struct crash *c, uint64_t row, unsigned role)
{
  const uint64_t stripe = row * BLOCK_LEN / c->g.chunk;
  struct geometry old = { .k = c->g.k - 1, .m = c->g.m, .chunk = c->g.chunk };

  if (!is_old (c, row))
    return layout_slot (&c->g, stripe, role);
  if (role == c->g.k - 1)
    return c->g.k + c->g.m - 1;
  return layout_slot (&old, stripe, role < c->g.k ? role : role - 1);
}

/* Does the record say that the slot changes in this row? */
static bool
names_slot (const struct crash *c, const struct ring_record *rec,
            uint64_t row, unsigned slot)
{
  if (counts_as_zeroes (c, row, slot) ||
      (rec->r.move_rows > 0 && rec->r.seq != moving))
    return false;
  for (uint32_t i = 0; i < rec->r.nr_entries; i++)
    for (unsigned role = 0; role < c->g.k + c->g.m; role++)
      if (covers (&rec->r.entry[i], row) &&
          (rec->r.entry[i].roles & BIT (role)) &&
          slot_of (c, row, role) == slot)
        return true;
  return false;
}

/* The newest transaction in [tail, limit] that changes the slot, or 0. */
static uint64_t
newest_that_changes (const struct crash *c, uint64_t row, unsigned slot,
                     uint64_t tail, uint64_t limit)
{
  uint64_t seq = 0;

  for (unsigned i = 0; i < c->nr_members; i++)
    for (unsigned j = 0; j < c->ring[i].nr_records; j++) {
      const struct ring_record *rec = &c->ring[i].record[j];

      if (rec->r.seq >= tail && rec->r.seq <= limit &&
          names_slot (c, rec, row, slot))
        seq = MAX (seq, rec->r.seq);
    }
  return seq;
}

/* What this member's record has for the row: a good block and its place, or
 * that it is in place, or zeroes; else it is erased.
 */
static enum replay_kind
content_in (const struct crash *c, unsigned member, uint64_t seq,
            uint64_t row, uint32_t *place)
{
  const struct ring_record *rec = find_record (c, member, seq);
  uint32_t block = 0, crc = 0;

  for (uint32_t i = 0; rec && i < rec->r.nr_entries; i++) {
    const struct journal_entry *e = &rec->r.entry[i];

    if (covers (e, row) && e->flags == JOURNAL_ENTRY_ZERO)
      return REPLAY_ZERO;
    if (covers (e, row) && e->flags == JOURNAL_ENTRY_DIRECT &&
        rec->good[crc + row - e->first_block])
      return REPLAY_DIRECT;
    if (covers (e, row) && e->flags == 0 &&
        rec->good[crc + row - e->first_block]) {
      *place = rec->r.place + block + row - e->first_block +
        journal_header_blocks (rec->r.nr_entries, rec->r.nr_crcs);
      return REPLAY_RING;
    }
    block += e->flags == 0 ? e->nr_blocks : 0;
    crc += e->flags == JOURNAL_ENTRY_ZERO ? 0 : e->nr_blocks;
  }
  return REPLAY_ERASED;
}

/* Is it in the record, to be in place, and is not? */
static bool
lacks_direct (const struct crash *c, unsigned member, uint64_t seq,
              uint64_t row)
{
  const struct ring_record *rec = find_record (c, member, seq);
  uint32_t place;

  for (uint32_t i = 0; rec && i < rec->r.nr_entries; i++)
    if (covers (&rec->r.entry[i], row) &&
        rec->r.entry[i].flags == JOURNAL_ENTRY_DIRECT)
      return content_in (c, member, seq, row, &place) == REPLAY_ERASED;
  return false;
}

/* Is it the newest of all, and does some record zero the row of all slots?  No
 * member is behind.
 */
static bool
zeroes_row (const struct crash *c, uint64_t seq, uint64_t row)
{
  for (unsigned i = 0; i < c->nr_members; i++) {
    const struct ring_contents *ring = &c->ring[i];

    if (c->member[i].missed)
      return false;
    for (unsigned j = 0; j < ring->nr_records; j++)
      if (ring->record[j].r.seq > seq)
        return false;
  }
  for (unsigned i = 0; i < c->nr_members; i++) {
    const struct ring_record *rec = find_record (c, i, seq);

    for (uint32_t j = 0; rec && j < rec->r.nr_entries; j++)
      if (covers (&rec->r.entry[j], row) &&
          rec->r.entry[j].flags == JOURNAL_ENTRY_ZERO &&
          rec->r.entry[j].roles == LOW_BITS (c->g.k + c->g.m))
        return true;
  }
  return false;
}

/* Of any member of the slot; what is in place, of all. */
static enum replay_kind
content_of (const struct crash *c, unsigned slot, uint64_t seq, uint64_t row)
{
  enum replay_kind kind = REPLAY_ERASED;
  uint32_t place;

  if (zeroes_row (c, seq, row))
    return REPLAY_ZERO;
  for (unsigned i = 0; i < c->nr_members; i++) {
    if (c->member[i].slot != slot)
      continue;
    if (lacks_direct (c, i, seq, row))
      return REPLAY_ERASED;
    if (kind == REPLAY_ERASED ||
        (kind == REPLAY_DIRECT &&
         content_in (c, i, seq, row, &place) != REPLAY_ERASED))
      kind = content_in (c, i, seq, row, &place);
  }
  return kind;
}

static bool
is_bad (const struct crash *c, uint64_t row, unsigned slot)
{
  for (unsigned i = 0; i < c->nr_bad; i++)
    if (c->bad[i].row == row && (c->bad[i].slots & BIT (slot)))
      return true;
  return false;
}

/* Step 3, with the transactions up to limit.  How many slots are known? */
static unsigned
take_row (const struct crash *c, uint64_t row, uint64_t tail, uint64_t limit,
          struct ref_row *ref)
{
  unsigned nr_known = 0;

  memset (ref, 0, sizeof *ref);
  for (unsigned slot = 0; slot < c->g.k + c->g.m; slot++) {
    const uint64_t seq = newest_that_changes (c, row, slot, tail, limit);

    if (seq)
      ref->changed |= BIT (slot);
    if (counts_as_zeroes (c, row, slot))
      nr_known++;
    if (!is_present (c, slot) || counts_as_zeroes (c, row, slot))
      continue;
    ref->seq[slot] = seq;
    ref->kind[slot] = seq ? content_of (c, slot, seq, row) :
      REPLAY_IN_PLACE;
    if ((ref->kind[slot] == REPLAY_IN_PLACE ||
         ref->kind[slot] == REPLAY_DIRECT) && is_bad (c, row, slot))
      ref->kind[slot] = REPLAY_ERASED;
    if (ref->kind[slot] == REPLAY_ERASED)
      ref->erased |= BIT (slot);
    else
      nr_known++;
  }
  return nr_known;
}

/* Has any member's table an entry of the transaction for this row? */
static bool
has_entry (const struct crash *c, uint64_t row, uint64_t seq)
{
  for (unsigned i = 0; i < c->nr_members; i++) {
    const struct ring_record *rec = find_record (c, i, seq);
    uint32_t crc = 0;

    for (uint32_t j = 0; rec && j < rec->r.nr_entries; j++) {
      const struct journal_entry *e = &rec->r.entry[j];

      if (e->flags == JOURNAL_ENTRY_ZERO)
        continue;
      if (rec->stored && covers (e, row) &&
          rec->stored[crc + row - e->first_block])
        return true;
      crc += e->nr_blocks;
    }
  }
  return false;
}

/* Does the newest transaction have the content of rows that it moves? */
static const struct journal_record *
find_move (const struct crash *c, const struct ref_replay *all)
{
  for (unsigned i = 0; i < c->nr_members; i++)
    for (unsigned j = 0; j < c->ring[i].nr_records; j++) {
      const struct journal_record *r = &c->ring[i].record[j].r;

      if (r->seq == all->newest && r->seq >= all->tail && r->move_rows > 0 &&
          r->nr_blocks > 0)
        return r;
    }
  return NULL;
}

/* It is kept as a whole, or dropped: then true. */
static bool
drops_move (const struct crash *c, const struct ref_replay *all)
{
  const struct journal_record *r;
  bool whole = true, proven = false;

  moving = 0;
  frontier = c->g.frontier;
  if (!c->g.widening || (r = find_move (c, all)) == NULL)
    return false;
  moving = r->seq;
  frontier += r->move_rows;
  for (uint64_t row = c->g.frontier; row < frontier; row++) {
    struct ref_row ref;

    whole &= take_row (c, row, all->tail, UINT64_MAX, &ref) >= c->g.k &&
      ref.changed;
    proven |= has_entry (c, row, r->seq);
  }
  if (whole || proven)
    return false;
  moving = 0;
  frontier = c->g.frontier;
  return true;
}

/* Step 4. */
void
ref_row (const struct crash *c, uint64_t row, struct ref_row *ref)
{
  struct ref_replay all;
  struct ref_row without;
  bool enough, drops;

  ref_replay (c, &all);
  drops = drops_move (c, &all);
  enough = take_row (c, row, all.tail, UINT64_MAX, ref) >= c->g.k;
  for (unsigned slot = 0; slot < c->g.k + c->g.m; slot++)
    if (all.newest &&
        newest_that_changes (c, row, slot, all.newest, all.newest))
      ref->newest = true;
  ref->dropped = drops && row >= c->g.frontier;
  if (enough)
    return;
  if (ref->newest && !moving && !has_entry (c, row, all.newest) &&
      take_row (c, row, all.tail, all.newest - 1, &without) >= c->g.k) {
    *ref = without;
    ref->dropped = true;
    return;
  }
  ref->lost = true;
  for (unsigned slot = 0; slot < c->g.k + c->g.m; slot++)
    if (ref->changed & BIT (slot) &&
        (!is_present (c, slot) || ref->kind[slot] == REPLAY_ERASED))
      ref->lacks = true;
}

/* ---- comparing ---------------------------------------------------------- */

#define SAME(what, x, y)                                                \
  do {                                                                  \
    if ((x) != (y)) {                                                   \
      crash_print (c);                                                  \
      fail_msg ("%s %" PRIu64 ": %s is %#" PRIx64 ", should be %#"      \
                PRIx64, of, (uint64_t) (nr), what, (uint64_t) (x),      \
                (uint64_t) (y));                                        \
    }                                                                   \
  } while (0)

/* What this member's record says of the block. */
static uint32_t
crc_in (const struct crash *c, unsigned member, uint64_t seq, uint64_t row)
{
  const struct ring_record *rec = find_record (c, member, seq);
  uint32_t crc = 0;

  for (uint32_t i = 0; rec && i < rec->r.nr_entries; i++) {
    const struct journal_entry *e = &rec->r.entry[i];

    if (covers (e, row) && e->flags == 0)
      return rec->r.crc[crc + row - e->first_block];
    crc += e->flags == JOURNAL_ENTRY_ZERO ? 0 : e->nr_blocks;
  }
  return 0;
}

/* Is the source that of a member of the slot that has the block? */
static bool
is_source (const struct crash *c, uint64_t row, unsigned slot, uint64_t seq,
           const struct replay_source *src)
{
  for (unsigned i = 0; i < c->nr_members; i++) {
    uint32_t place;

    if (c->member[i].slot == slot && c->member[i].dev == src->dev &&
        content_in (c, i, seq, row, &place) == REPLAY_RING)
      return place == src->place && src->crc == crc_in (c, i, seq, row);
  }
  return false;
}

static void
check_row (const struct crash *c, const struct replay *r, uint64_t nr,
           const struct ref_row *ref)
{
  const struct replay_run *run = replay_find (r, nr);
  const char *of = "row";

  SAME ("found", run != NULL, ref->changed != 0);
  if (run == NULL)
    return;
  SAME ("in the run", nr >= run->first && nr - run->first < run->nr, true);
  SAME ("newest", run->newest, ref->newest);
  SAME ("lost", run->lost, ref->lost);
  SAME ("lacks", run->lacks, ref->lacks);
  SAME ("changed", run->changed, ref->changed);
  SAME ("erased", run->erased, ref->erased);
  for (unsigned slot = 0; slot < c->g.k + c->g.m; slot++) {
    const struct replay_source *src = &run->source[slot];

    SAME ("kind", src->kind, ref->kind[slot]);
    if (src->kind == REPLAY_RING)
      SAME ("source", is_source (c, nr, slot, ref->seq[slot], src), true);
  }
}

static void
check_runs (const struct crash *c, const struct replay *r, uint64_t nr_rows)
{
  const char *of = "run";
  uint64_t end = 0;

  for (unsigned nr = 0; nr < r->nr_runs; nr++) {
    SAME ("in order", r->run[nr].first >= end, true);
    SAME ("empty", r->run[nr].nr == 0, false);
    end = r->run[nr].first + r->run[nr].nr;
    SAME ("within the rows", end <= nr_rows, true);
  }
}

void
crash_check (const struct crash *c, uint64_t nr_rows, struct replay *r)
{
  const char *of = "rows";
  uint64_t nr = nr_rows, nr_dropped = 0;
  const struct replay_input in = crash_input (c);
  struct ref_replay ref;

  assert_int_equal (replay_decide (&in, r), 0);
  ref_replay (c, &ref);
  SAME ("next_seq", r->next_seq, ref.next_seq);
  SAME ("tail", r->tail, ref.tail);
  SAME ("newest", r->newest, ref.newest);
  SAME ("hole", r->hole, ref.hole);
  SAME ("incomplete", r->incomplete, ref.incomplete);
  check_runs (c, r, nr_rows);
  for (uint64_t row = 0; row < nr_rows; row++) {
    struct ref_row want;

    ref_row (c, row, &want);
    check_row (c, r, row, &want);
    nr_dropped += want.dropped;
  }
  assert_null (replay_find (r, nr_rows));
  assert_null (replay_find (r, UINT64_MAX));
  SAME ("nr_dropped", r->nr_dropped, nr_dropped);
  SAME ("frontier", r->frontier, nr_rows ? frontier : r->frontier);
}
