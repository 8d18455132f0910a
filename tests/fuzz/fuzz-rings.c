/* gpuraid fuzzer: the journal's rings, and what is decided about them.
 *
 * An input is steps (mutate.h) that write transactions to the rings of
 * a small array, and then damage them: fields of what is sealed are changed
 * and sealed again, bytes are changed, blocks are copied, zeroed, made
 * unreadable.  The rings are read as when an array opens.  All that
 * comes out must be within the array and the rings, and the decision that of
 * the slow reference (replay-reference.h), where that has one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <errno.h>

#include "common/bytes/crc32c.h"
#include "common/bytes/le.h"
#include "raidmap/limits.h"
#include "raidmap/seal.h"
#include "tests/array/replay/replay-reference.h"
#include "tests/fuzz/mutate.h"

#define MAX_RING_BLOCKS 128u
#define NR_ROWS 32u             /* blocks of data of a member */
#define MAX_SEALED 64u          /* of one ring */
#define MAX_STEPS 200u
#define MAX_TXN_ENTRIES 6u
#define RING_OFF 8192u
#define MAX_UNREADABLE 15u      /* of one ring: after one more no more of it
                                 * is read */

enum {
  ENTRY, COMMIT, HEADER, SESSION, SEALED, BYTES, COPY, ZEROES, UNREADABLE, BAD,
  NR_KINDS
};

struct disk {
  struct member member;
  uint8_t image[MAX_RING_BLOCKS * BLOCK_LEN];
  bool bad[MAX_RING_BLOCKS];
  unsigned nr_bad;
  uint32_t next;                /* place of the next record */
  uint64_t counter;
  uint32_t sealed[MAX_SEALED];  /* places of headers and records */
  unsigned nr_sealed;
};

static const uint8_t zeroes[BLOCK_LEN];
static struct disk disk[CRASH_MAX_MEMBERS];
static struct crash c;
static struct superblock sb;
static uint64_t session, seq;
static struct journal_entry entry[MAX_TXN_ENTRIES];     /* not committed */
static unsigned nr_entries;

/* ---- a member ----------------------------------------------------------- */

static int
fake_pread (struct member *m, void *buf, size_t len, uint64_t off)
{
  struct disk *d = (struct disk *) m;

  assert (off >= RING_OFF && off - RING_OFF + len <= sb.l.ring_len);
  off -= RING_OFF;
  for (uint64_t o = off; o < off + len; o += BLOCK_LEN)
    if (d->bad[o / BLOCK_LEN])
      return EIO;
  memcpy (buf, d->image + off, len);
  return 0;
}

static const struct member_ops fake_ops = { .pread = fake_pread };

static struct ring_id
id_of (unsigned i)
{
  return ring_id_of (&sb, c.member[i].slot);
}

static uint8_t *
block_at (unsigned i, uint32_t place)
{
  return disk[i].image + (size_t) place * BLOCK_LEN;
}

static void
add_sealed (struct disk *d, uint32_t place)
{
  if (d->nr_sealed < MAX_SEALED)
    d->sealed[d->nr_sealed++] = place;
}

/* ---- writing what an array writes --------------------------------------- */

static void
write_header (unsigned i, unsigned which, uint64_t of_session, uint64_t of_seq,
              uint32_t place)
{
  struct disk *d = &disk[i];
  const struct ring_id id = id_of (i);
  const struct ring_header h = {
    .session = of_session, .seq = of_seq, .place = place,
    .counter = ++d->counter,
  };

  ring_header_encode (&h, &id, which, block_at (i, which));
  add_sealed (d, which);
}

static void
begin_array (const uint8_t *head)
{
  const unsigned k = 1 + head[0] % 3, m = 1 + head[1] % 2;

  crash_begin (&c, k, m, 1u << head[2] % 3);
  memset (&sb, 0, sizeof sb);
  sb.g = c.g;
  sb.array_uuid.b[3] = 7;
  sb.l.ring_off = RING_OFF;
  sb.l.ring_len = (32 + head[3] % (MAX_RING_BLOCKS - 31)) * BLOCK_LEN;
  sb.l.data_len = NR_ROWS * BLOCK_LEN;
  session = 5;
  seq = head[4] & 1 ? 0xfffffffd : 1;
  nr_entries = 0;
  c.nr_members = 0;
  for (unsigned slot = 0; slot < k + m; slot++)
    for (unsigned nr = head[5] == slot ? 2 : head[6] == slot ? 0 : 1; nr > 0;
         nr--)
      crash_add_member (&c, slot, 0);
  for (unsigned i = 0; i < c.nr_members; i++) {
    struct disk *d = &disk[i];

    memset (d->image, 0, sb.l.ring_len);
    memset (d->bad, 0, sizeof d->bad);
    d->member = (struct member) { .ops = &fake_ops, .path = "fake" };
    d->nr_bad = 0;
    d->next = JOURNAL_NR_HEADERS;
    d->counter = 1;
    d->nr_sealed = 0;
    write_header (i, 0, session, seq, d->next);
  }
}

static void
add_entry (const struct step *s)
{
  static const uint32_t flags[] = {
    0, 0, JOURNAL_ENTRY_ZERO, JOURNAL_ENTRY_DIRECT,
  };
  const uint64_t all = LOW_BITS (c.g.k + c.g.m);
  const uint64_t roles = s->v & all;
  struct journal_entry *e = &entry[nr_entries];

  if (nr_entries == MAX_TXN_ENTRIES)
    return;
  *e = (struct journal_entry) {
    .first_block = s->a % NR_ROWS, .roles = roles ? roles : all,
    .flags = flags[s->which % ARRAY_LEN (flags)], .generation = seq,
  };
  e->nr_blocks = 1 + s->b % MIN (NR_ROWS - e->first_block, 8);
  nr_entries++;
}

static void
write_record (unsigned i, const struct device_set *participants,
              const uint32_t *place_of)
{
  static uint32_t crc[MAX_TXN_ENTRIES * 8];
  static uint8_t buf[4 * BLOCK_LEN];
  const struct ring_id id = id_of (i);
  struct journal_record r = {
    .session = session, .seq = seq, .place = disk[i].next,
    .dev = c.member[i].dev, .participants = *participants, .entry = entry,
    .nr_entries = nr_entries, .crc = crc,
  };
  uint32_t place;

  memcpy (r.place_of, place_of, sizeof r.place_of);
  for (unsigned e = 0; e < nr_entries; e++) {
    r.nr_crcs += entry[e].flags & JOURNAL_ENTRY_ZERO ? 0 : entry[e].nr_blocks;
    r.nr_blocks += entry[e].flags ? 0 : entry[e].nr_blocks;
  }
  place = r.place + journal_header_blocks (r.nr_entries, r.nr_crcs);
  if (place + r.nr_blocks > id.nr_blocks)
    return;
  memset (crc, 0, sizeof crc);
  for (unsigned e = 0, n = 0; e < nr_entries; e++)
    for (uint32_t b = 0; !(entry[e].flags & JOURNAL_ENTRY_ZERO) &&
           b < entry[e].nr_blocks; b++, n++) {
      if (entry[e].flags)
        continue;
      put_le64 (block_at (i, place), seq << 8 | i);
      crc[n] = crc32c (block_at (i, place++), BLOCK_LEN);
    }
  assert (journal_record_check (&r, &id));
  journal_record_encode (&r, &id, buf);
  memcpy (block_at (i, r.place), buf,
          (size_t) journal_header_blocks (r.nr_entries, r.nr_crcs) * BLOCK_LEN);
  add_sealed (&disk[i], r.place);
  disk[i].next = place;
}

/* To the members in the mask s->b, of which those in s->v also have it. */
static void
commit (const struct step *s)
{
  struct device_set participants = {{ 0, 0 }};
  uint32_t place_of[SB_MAX_DEVICES] = { 0 };

  if (nr_entries == 0)
    return;
  for (unsigned i = 0; i < c.nr_members; i++) {
    /* The next record begins at the start again. */
    if (disk[i].next + 4 + MAX_TXN_ENTRIES * 8 > sb.l.ring_len / BLOCK_LEN &&
        s->a & 1)
      disk[i].next = JOURNAL_NR_HEADERS;
    if (disk[i].next >= sb.l.ring_len / BLOCK_LEN || !(s->b & BIT (i)))
      continue;
    device_set_add (&participants, c.member[i].dev);
    place_of[c.member[i].dev] = disk[i].next;
  }
  for (unsigned i = 0; i < c.nr_members; i++)
    if (device_set_has (&participants, c.member[i].dev) && s->v & BIT (i))
      write_record (i, &participants, place_of);
  nr_entries = 0;
  for (unsigned n = 0; n <= s->which % 64 / 60; n++)
    seq = journal_seq_after (seq);
}

/* ---- damage ------------------------------------------------------------- */

/* The length of what is sealed there, as its bytes have it now. */
static size_t
sealed_len (unsigned i, uint32_t place)
{
  const struct ring_id id = id_of (i);
  struct journal_record r;
  uint32_t nr;

  if (place < JOURNAL_NR_HEADERS ||
      !journal_record_peek (block_at (i, place), &id, place, &r))
    return BLOCK_LEN;
  nr = journal_header_blocks (r.nr_entries, r.nr_crcs);
  return MIN (nr, id.nr_blocks - place) * (size_t) BLOCK_LEN;
}

static void
change_sealed (unsigned i, const struct step *s)
{
  struct disk *d = &disk[i];
  uint32_t place;
  uint8_t *p;

  if (d->nr_sealed == 0)
    return;
  place = d->sealed[s->a % d->nr_sealed];
  /* Most of the block is zeroes. */
  p = block_at (i, place) + 12 + s->b % (s->b >> 16 & 1 ? 640 : 4076);
  switch (s->b >> 17 & 3) {
  case 0: *p = s->v; break;
  case 1: put_le32 (p, s->v); break;
  case 2: put_le64 (p, s->v); break;
  default: put_le32 (p, get_le32 (p) + (s->v & 1 ? 1 : -1)); break;
  }
  seal (block_at (i, place), sealed_len (i, place), 8, &sb.array_uuid,
        c.member[i].slot);
}

static void
damage (unsigned i, const struct step *s)
{
  const uint32_t nr = sb.l.ring_len / BLOCK_LEN;

  switch (s->kind % NR_KINDS) {
  case SEALED:
    change_sealed (i, s);
    break;
  case BYTES:
    put_le64 (disk[i].image + s->b % (sb.l.ring_len - 8), s->v);
    break;
  case COPY:
    memmove (block_at (i, s->a % nr),
             block_at (s->v % c.nr_members, s->b % nr), BLOCK_LEN);
    add_sealed (&disk[i], s->a % nr);
    break;
  case ZEROES:
    memset (block_at (i, s->a % nr), 0, BLOCK_LEN);
    break;
  case UNREADABLE:
    if (disk[i].nr_bad++ < MAX_UNREADABLE)
      disk[i].bad[s->a % nr] = true;
    break;
  case BAD:
    if (c.nr_bad < CRASH_MAX_BAD)
      crash_add_bad (&c, s->a % NR_ROWS, s->v & LOW_BITS (c.g.k + c.g.m));
    break;
  }
}

static void
carry_out (const struct step *s)
{
  const unsigned i = s->which % c.nr_members;

  switch (s->kind % NR_KINDS) {
  case ENTRY:
    add_entry (s);
    break;
  case COMMIT:
    commit (s);
    break;
  case HEADER:
    write_header (i, s->a & 1, session,
                  seq > s->b % 8 && (uint32_t) (seq - s->b % 8) ?
                  seq - s->b % 8 : seq, disk[i].next);
    break;
  case SESSION:
    session = s->v;
    break;
  default:
    damage (i, s);
    break;
  }
}

/* ---- what comes out ----------------------------------------------------- */

/* A block is good if it was read and has its crc. */
static void
check_good (unsigned i, const struct ring_record *rec)
{
  uint32_t place = rec->r.place +
    journal_header_blocks (rec->r.nr_entries, rec->r.nr_crcs);
  const uint32_t *crc = rec->r.crc;
  const bool *good = rec->good;

  for (uint32_t e = 0; e < rec->r.nr_entries; e++) {
    const struct journal_entry *en = &rec->r.entry[e];

    if (en->flags == JOURNAL_ENTRY_DIRECT) {
      crc += en->nr_blocks;
      good += en->nr_blocks;
    }
    for (uint32_t b = 0; en->flags == 0 && b < en->nr_blocks; b++, place++)
      assert (*good++ == (crc32c (disk[i].bad[place] ? zeroes :
                                  block_at (i, place), BLOCK_LEN) == *crc++));
  }
}

static void
check_record (unsigned i, const struct ring_record *rec)
{
  const struct ring_id id = id_of (i);

  assert (journal_record_check (&rec->r, &id));
  assert (rec->r.session == c.ring[i].header.session);
  assert (rec->r.seq <= c.ring[i].max_seq);
  for (uint32_t e = 0; e < rec->r.nr_entries; e++) {
    const struct journal_entry *en = &rec->r.entry[e];

    assert (en->first_block + en->nr_blocks <= NR_ROWS);
    assert ((en->roles & ~LOW_BITS (c.g.k + c.g.m)) == 0);
  }
  check_good (i, rec);
}

/* The reference takes one of two records of a transaction, and the first of
 * two entries of a row, and every seq in between.
 */
static bool
is_for_reference (const struct ring_contents *ring)
{
  for (unsigned j = 0; j < ring->nr_records; j++) {
    const struct journal_record *r = &ring->record[j].r;
    uint64_t rows = 0;

    if (r->seq > seq || (j > 0 && r->seq == ring->record[j - 1].r.seq))
      return false;
    for (uint32_t e = 0; e < r->nr_entries; e++) {
      const uint64_t those = LOW_BITS (r->entry[e].nr_blocks) <<
        r->entry[e].first_block;

      if (rows & those)
        return false;
      rows |= those;
    }
  }
  return true;
}

static void
check_decision (void)
{
  const uint64_t slots = LOW_BITS (c.g.k + c.g.m);
  const struct replay_input in = crash_input (&c);
  struct replay r;
  uint64_t end = 0;

  assert (replay_decide (&in, &r) == 0);
  for (unsigned i = 0; i < c.nr_members; i++)
    assert (r.next_seq > c.ring[i].max_seq);
  for (unsigned i = 0; i < r.nr_runs; i++) {
    const struct replay_run *run = &r.run[i];

    assert (run->first >= end && run->nr > 0);
    end = run->first + run->nr;
    assert (end <= NR_ROWS);
    assert (((run->changed | run->erased) & ~slots) == 0);
    for (unsigned slot = 0; slot < c.g.k + c.g.m; slot++)
      assert (run->source[slot].kind != REPLAY_RING ||
              run->source[slot].place < sb.l.ring_len / BLOCK_LEN);
  }
  replay_free (&r);
}

static void
check_with_reference (void)
{
  struct replay r;
  uint64_t tail = 0;

  for (unsigned i = 0; i < c.nr_members; i++) {
    tail = MAX (tail, c.ring[i].header.seq);
    if (!is_for_reference (&c.ring[i]))
      return;
  }
  if (seq - tail > 300 && seq > tail)
    return;
  crash_check (&c, NR_ROWS, &r);
  replay_free (&r);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  struct step s;

  if (size < STEPS_HEAD)
    return 0;
  begin_array (data);
  for (unsigned i = 0; i < MAX_STEPS && step_get (data, size, i, &s); i++)
    carry_out (&s);
  for (unsigned i = 0; i < c.nr_members; i++) {
    assert (ring_read (&disk[i].member, &sb, c.member[i].slot, &c.ring[i])
            == 0);
    for (unsigned j = 0; j < c.ring[i].nr_records; j++)
      check_record (i, &c.ring[i].record[j]);
  }
  check_decision ();
  check_with_reference ();
  for (unsigned i = 0; i < c.nr_members; i++)
    ring_contents_free (&c.ring[i]);
  return 0;
}

/* ---- inputs ------------------------------------------------------------- */

/* Transactions as they are without a crash, but that some are not
 * everywhere.
 */
size_t
fuzzing_seed (struct rng *r, uint8_t *data, size_t max)
{
  const unsigned nr_txns = 1 + rng_below (r, 6);
  size_t size = STEPS_HEAD;
  struct step s;

  rng_fill (r, data, STEPS_HEAD);
  for (unsigned t = 0; t < nr_txns; t++) {
    for (unsigned e = 0; e <= rng_below (r, 3); e++) {
      random_step (r, NR_KINDS, &s);
      s.kind = ENTRY;
      size = step_put (data, size, &s);
    }
    s = (struct step) { .kind = COMMIT, .a = 1, .b = ~0u, .v = ~0u };
    if (rng_below (r, 3) == 0)
      s.v = rng_next (r);
    size = step_put (data, size, &s);
  }
  if (rng_below (r, 2)) {
    s = (struct step) { .kind = HEADER, .which = rng_next (r),
                        .a = 1, .b = rng_below (r, 4) };
    size = step_put (data, size, &s);
  }
  return size;
}

size_t
LLVMFuzzerCustomMutator (uint8_t *data, size_t size, size_t max, unsigned seed)
{
  struct rng r = { seed };

  if (size < STEPS_HEAD)
    return max < 65536 ? LLVMFuzzerMutate (data, size, max) :
      fuzzing_seed (&r, data, max);
  return mutate_steps (&r, data, size, max, NR_KINDS);
}
