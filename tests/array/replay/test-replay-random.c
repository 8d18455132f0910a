/* gpuraid test: what is made of what random crashes left in the journal.
 *
 * Small arrays, few rows and transactions; each row is compared with the
 * reference.
 *
 * run-tests: no-thread
 * It has one thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "raidmap/layout/reshape.h"
#include "tests/array/replay/replay-reference.h"
#include "tests/format-random.h"

static struct crash c;
static struct replay r;

#define MAX_TXNS 4
#define MAX_ROWS 3

/* What a transaction does; not what is left of it. */
struct plan_of_txn {
  uint64_t seq;
  uint64_t roles[MAX_ROWS];     /* 0: not in this row */
  uint64_t zero[MAX_ROWS], direct[MAX_ROWS];    /* some of these roles */
  bool moves;                   /* all rows from the frontier on */
};

struct shape {
  bool any;                     /* all that the format allows; else as
                                 * array/journal/txn.c writes */
  bool widening;                /* some rows are old */
  bool moves, directly;         /* the newest transaction moves these */
  unsigned nr_txns, nr_rows;
  struct plan_of_txn txn[MAX_TXNS];
  unsigned damage;              /* 0: none .. 3: much */
};

static struct {
  uint64_t found, newest, dropped, lost, lost_newest, erased, holes,
    lost_zeroes, moved, unmoved;
} tally;

static void
random_txn (struct rng *rng, const struct shape *s, struct plan_of_txn *t)
{
  const uint64_t data = LOW_BITS (c.g.k), all = LOW_BITS (c.g.k + c.g.m);

  for (unsigned row = 0; row < s->nr_rows; row++) {
    const uint64_t zeroes = reshape_zeroes (&c.g, row);

    t->roles[row] = t->zero[row] = t->direct[row] = 0;
    if (rng_below (rng, 3) == 0)
      continue;
    t->roles[row] = (rng_next (rng) & data) | (all & ~data);
    if (rng_below (rng, 4) == 0)
      t->roles[row] = t->zero[row] = all;
    t->roles[row] &= ~zeroes;
    if (!s->any)
      continue;
    if (rng_below (rng, 3) == 0)
      t->roles[row] = rng_next (rng) & all & ~zeroes;
    if (rng_below (rng, 3) == 0)
      t->zero[row] = rng_below (rng, 2) ? all : rng_next (rng);
    if (rng_below (rng, 8) == 0 && t->zero[row] == 0)
      t->direct[row] = all;
  }
}

static uint32_t
flags_of (const struct plan_of_txn *t, unsigned row, unsigned slot)
{
  const uint64_t role = BIT (reshape_role (&c.g, row, slot));

  return t->zero[row] & role ? JOURNAL_ENTRY_ZERO :
    t->direct[row] & role ? JOURNAL_ENTRY_DIRECT : 0;
}

static bool
changes (const struct plan_of_txn *t, unsigned row, unsigned slot)
{
  const uint64_t role = BIT (reshape_role (&c.g, row, slot));

  return t->roles[row] & role & ~reshape_zeroes (&c.g, row);
}

static void
move_rows (struct rng *rng, const struct shape *s, struct plan_of_txn *t)
{
  const uint64_t all = LOW_BITS (c.g.k + c.g.m);

  t->moves = true;
  for (unsigned row = 0; row < s->nr_rows; row++) {
    t->roles[row] = row < c.g.frontier ? 0 : all;
    t->zero[row] = rng_below (rng, 4) ? 0 : all;
    t->direct[row] = s->directly && t->zero[row] == 0 ? all : 0;
  }
}

/* The newest in damage cases of four, an older one less often. */
static bool
is_damaged (struct rng *rng, const struct shape *s,
            const struct plan_of_txn *t)
{
  if (t != &s->txn[s->nr_txns - 1] && rng_below (rng, 8) >= s->damage)
    return false;
  return rng_below (rng, 4) < s->damage;
}

/* What is left of a transaction in one ring. */
static void
left_record (struct rng *rng, const struct shape *s,
               const struct plan_of_txn *t, unsigned member)
{
  const unsigned slot = c.member[member].slot;
  const uint64_t frontier = c.g.frontier;
  struct ring_record *rec = NULL;

  if (!c.ring[member].begun || is_damaged (rng, s, t))
    return;
  if (t->moves)
    c.g.frontier = s->nr_rows;
  for (unsigned row = 0, nr; row < s->nr_rows; row += nr) {
    uint64_t roles = t->roles[row];
    uint64_t bad = 0;

    nr = 1;
    if (!changes (t, row, slot))
      continue;
    while (row + nr < s->nr_rows && rng_below (rng, 3) &&
           changes (t, row + nr, slot) && t->roles[row + nr] == roles &&
           flags_of (t, row + nr, slot) == flags_of (t, row, slot))
      nr++;
    for (unsigned b = 0; b < nr; b++)
      if (is_damaged (rng, s, t))
        bad |= BIT (b);
    /* Each names some. */
    if (s->any && rng_below (rng, 8) == 0)
      roles &= rng_next (rng) | (roles & -roles);
    if (rec == NULL)
      rec = crash_add_record (&c, member, t->seq, rng_next (rng) &
                              LOW_BITS (CRASH_MAX_MEMBERS));
    crash_add_entry (rec, row, nr, roles, flags_of (t, row, slot), bad);
    if (rec->r.nr_crcs > 0 && rng_below (rng, 8) == 0)
      rec->stored[rec->r.nr_crcs - 1] = true;
  }
  c.g.frontier = frontier;
  if (rec && t->moves) {
    rec->r.move_first = frontier;
    rec->r.move_rows = s->nr_rows - frontier;
  }
}

static void
left_members (struct rng *rng, const struct shape *s)
{
  for (unsigned slot = 0; slot < c.g.k + c.g.m; slot++) {
    unsigned nr = rng_below (rng, 8);

    /* Mostly one; none, or two. */
    for (nr = nr == 0 ? 0 : nr == 1 ? 2 : 1; nr > 0; nr--) {
      uint64_t tail = s->txn[0].seq;
      unsigned i;

      if (rng_below (rng, 8) == 0)
        tail = s->txn[rng_below (rng, s->nr_txns)].seq;
      if (rng_below (rng, 40) == 0)
        tail = s->txn[s->nr_txns - 1].seq + 2;
      if (rng_below (rng, 20) == 0)
        tail = 0;
      i = crash_add_member (&c, slot, tail);
      if (rng_below (rng, 10) == 0)
        c.ring[i].max_seq = s->txn[0].seq + rng_below (rng, 9);
    }
  }
}

static bool
has_zeroes (const struct shape *s)
{
  for (unsigned t = 0; t < s->nr_txns; t++)
    for (unsigned row = 0; row < s->nr_rows; row++)
      if (s->txn[t].zero[row])
        return true;
  return false;
}

static void
random_crash (struct rng *rng, struct shape *s)
{
  static const uint64_t from[] = { 1, 6, 0xfffffffd, 0x1ffffffff };
  const unsigned n = 2 + rng_below (rng, 3), k = 1 + rng_below (rng, n - 1);
  uint64_t seq = from[rng_below (rng, ARRAY_LEN (from))];

  crash_begin (&c, k, n - k, 1u << rng_below (rng, 3));
  s->nr_rows = 1 + rng_below (rng, MAX_ROWS);
  c.g.widening = s->widening && k > 1;
  c.g.frontier = c.g.widening ? rng_below (rng, s->nr_rows + 1) : 0;
  s->moves &= c.g.widening && c.g.frontier < s->nr_rows;
  s->directly = rng_below (rng, 2);
  s->nr_txns = s->moves && !s->directly ? 1 : 1 + rng_below (rng, MAX_TXNS);
  s->damage = rng_below (rng, 4);
  for (unsigned t = 0; t < s->nr_txns; t++, seq++) {
    seq += (uint32_t) seq == 0;
    s->txn[t].seq = seq;
    s->txn[t].moves = false;
    random_txn (rng, s, &s->txn[t]);
  }
  if (s->moves)
    move_rows (rng, s, &s->txn[s->nr_txns - 1]);
  left_members (rng, s);
  for (unsigned t = 0; t < s->nr_txns; t++)
    for (unsigned i = 0; i < c.nr_members; i++)
      left_record (rng, s, &s->txn[t], i);
  if (rng_below (rng, 3) == 0 && (s->any || !has_zeroes (s)))
    for (unsigned i = 0; i <= rng_below (rng, 3); i++)
      crash_add_bad (&c, rng_below (rng, s->nr_rows),
                     BIT (rng_below (rng, n)));
}

static void
count_rows (const struct shape *s)
{
  for (unsigned row = 0; row < s->nr_rows; row++) {
    struct ref_row ref;

    ref_row (&c, row, &ref);
    tally.found += ref.changed != 0;
    tally.newest += ref.newest;
    tally.dropped += ref.dropped;
    tally.lost += ref.lost && ref.changed;
    tally.lost_newest += ref.lost && ref.newest;
    tally.erased += ref.erased && ref.changed && !ref.lost;
  }
  tally.holes += r.hole;
}

/* ---- members that are lost after a first decision ------------------------ */

/* Does the newest transaction make the row zeroes, as this ring says? */
static bool
says_zeroes (const struct ring_contents *ring, uint64_t row)
{
  const struct ring_record *rec = ring_find_record (ring, r.newest);

  for (uint32_t i = 0; rec && rec->r.seq >= r.tail && i < rec->r.nr_entries;
       i++) {
    const struct journal_entry *e = &rec->r.entry[i];

    if (e->flags & JOURNAL_ENTRY_ZERO &&
        e->roles == LOW_BITS (c.g.k + c.g.m) && row >= e->first_block &&
        row < e->first_block + e->nr_blocks)
      return true;
  }
  return false;
}

/* Those that stay, and then the others.  How many stay. */
static unsigned
lose_some (struct rng *rng, struct replay_member *member)
{
  const uint64_t lost = rng_next (rng) & rng_next (rng);
  unsigned nr = 0, nr_lost = 0;

  for (unsigned i = 0; i < c.nr_members; i++)
    if ((lost >> i & 1) == 0)
      member[nr++] = c.member[i];
  for (unsigned i = 0; i < c.nr_members; i++)
    if (lost >> i & 1)
      member[nr + nr_lost++] = (struct replay_member) {
        .ring = c.member[i].ring,
      };
  return nr;
}

static void
check_same (const struct replay_run *x, const struct replay_run *y)
{
  assert_int_equal (x == NULL, y == NULL);
  if (x == NULL)
    return;
  assert_int_equal (x->changed, y->changed);
  assert_int_equal (x->erased, y->erased);
  assert_int_equal (x->newest, y->newest);
  assert_int_equal (x->lost, y->lost);
  for (unsigned slot = 0; slot < c.g.k + c.g.m; slot++) {
    assert_int_equal (x->source[slot].kind, y->source[slot].kind);
    assert_int_equal (x->source[slot].seq, y->source[slot].seq);
    assert_int_equal (x->source[slot].place, y->source[slot].place);
    assert_int_equal (x->source[slot].dev, y->source[slot].dev);
  }
}

/* What is zeroes by any ring stays so; and of all other rows it is decided as
 * if the lost rings had never been read.
 */
static void
check_lost (struct rng *rng, const struct shape *s)
{
  struct replay_member member[CRASH_MAX_MEMBERS];
  struct replay_input in = crash_input (&c);
  struct replay with, without;

  in.member = member;
  in.nr_members = lose_some (rng, member);
  in.known = r.newest;
  assert_int_equal (replay_decide (&in, &without), 0);
  in.nr_lost = c.nr_members - in.nr_members;
  assert_int_equal (replay_decide (&in, &with), 0);
  assert_int_equal (with.hole, without.hole);
  assert_int_equal (with.tail, without.tail);
  assert_int_equal (with.newest, without.newest);
  /* Else another transaction may be the newest: a newer header is lost. */
  for (unsigned row = 0; with.tail == r.tail && row < s->nr_rows; row++) {
    const struct replay_run *run = replay_find (&with, row);
    bool zeroes = false;

    for (unsigned i = in.nr_members; i < c.nr_members; i++)
      zeroes |= says_zeroes (member[i].ring, row);
    if (!zeroes)
      check_same (run, replay_find (&without, row));
    for (unsigned i = 0; zeroes && i < in.nr_members; i++)
      if ((reshape_zeroes (&c.g, row) &
           BIT (reshape_role (&c.g, row, member[i].slot))) == 0)
        assert_int_equal (run->source[member[i].slot].kind, REPLAY_ZERO);
    tally.lost_zeroes += zeroes;
  }
  replay_free (&with);
  replay_free (&without);
}

static void
try_random (bool any, bool widening)
{
  struct rng rng = rng_start ();
  struct shape s = { .any = any, .widening = widening };

  memset (&tally, 0, sizeof tally);
  for (unsigned i = 0; i < 60000; i++) {
    s.moves = widening && i % 2;
    random_crash (&rng, &s);
    crash_check (&c, s.nr_rows, &r);
    count_rows (&s);
    tally.moved += s.moves && r.frontier > c.g.frontier;
    tally.unmoved += s.moves && r.nr_dropped > 0;
    if (!s.moves)
      check_lost (&rng, &s);
    replay_free (&r);
  }
  print_message ("rows: %" PRIu64 ", newest kept %" PRIu64 ", dropped %" PRIu64
                 ", lost %" PRIu64 " (%" PRIu64 " with the newest), erased "
                 "slots %" PRIu64 "; holes %" PRIu64 "\n", tally.found,
                 tally.newest, tally.dropped, tally.lost, tally.lost_newest,
                 tally.erased, tally.holes);
  assert_true (tally.newest > 10000 && tally.found - tally.newest > 1000);
  assert_true (tally.dropped > 1000 && tally.erased > 1000);
  assert_true (tally.lost > 1000 && tally.lost_newest > 1000);
  assert_true (tally.holes > 1000 && tally.lost_zeroes > 1000);
  if (widening)
    assert_true (tally.moved > 1000 && tally.unmoved > 1000);
}

static void
test_random (void **state)
{
  try_random (false, false);
}

static void
test_random_any (void **state)
{
  try_random (true, false);
}

static void
test_widening (void **state)
{
  try_random (false, true);
  try_random (true, true);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_random),
    cmocka_unit_test (test_random_any),
    cmocka_unit_test (test_widening),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
