/* gpuraid test: the space of a journal ring.
 *
 * The reference is an array of blocks, each marked with the piece that has
 * it: a record, or the blocks that were left out before one.  A record that
 * does not fit before the end begins at block 2, and what it leaves out
 * must be free and is in use from then on.
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

#include "common/bits.h"
#include "raidmap/ring.h"
#include "tests/format-random.h"

#define MAX_BLOCKS 64
#define FREE 0u

static uint64_t nr_tried;

/* ---- the reference ------------------------------------------------------- */

struct piece_of_ring {
  bool is_record;
  unsigned place, nr;
  uint64_t pos;                 /* of a record, as ring_find gave it */
};

struct slow_ring {
  unsigned nr_blocks;
  unsigned owner[MAX_BLOCKS];   /* FREE, or the number of a piece */
  unsigned next;                /* block after the newest record */
  /* Pieces [first, end), the oldest first; a number is used once. */
  unsigned first, end;
  struct piece_of_ring piece[MAX_BLOCKS];       /* by number mod MAX_BLOCKS */
};

/* An empty ring whose next record comes at this block. */
static void
slow_begin (struct slow_ring *s, unsigned nr_blocks, unsigned next)
{
  memset (s, 0, sizeof *s);
  s->nr_blocks = nr_blocks;
  s->next = next;
  s->first = s->end = 1;
}

static struct piece_of_ring *
slow_piece (struct slow_ring *s, unsigned number)
{
  return &s->piece[number % MAX_BLOCKS];
}

static bool
are_free (const struct slow_ring *s, unsigned place, unsigned nr)
{
  for (unsigned b = place; b < place + nr; b++)
    if (s->owner[b] != FREE)
      return false;
  return true;
}

/* The block where a record of this length begins, or 0. */
static unsigned
slow_find (const struct slow_ring *s, unsigned nr)
{
  if (s->next + nr <= s->nr_blocks)
    return are_free (s, s->next, nr) ? s->next : 0;
  if (!are_free (s, s->next, s->nr_blocks - s->next))
    return 0;
  /* Not the blocks that it leaves out. */
  return 2 + nr <= s->next && are_free (s, 2, nr) ? 2 : 0;
}

static void
slow_add (struct slow_ring *s, bool is_record, unsigned place, unsigned nr,
          uint64_t pos)
{
  const unsigned number = s->end++;

  *slow_piece (s, number) = (struct piece_of_ring) {
    is_record, place, nr, pos,
  };
  for (unsigned b = place; b < place + nr; b++) {
    /* Neither a header nor of another, and before the end. */
    assert_in_range (b, 2, s->nr_blocks - 1);
    assert_int_equal (s->owner[b], FREE);
    s->owner[b] = number;
  }
}

static void
slow_take (struct slow_ring *s, unsigned place, unsigned nr, uint64_t pos)
{
  if (place < s->next)
    slow_add (s, false, s->next, s->nr_blocks - s->next, 0);
  slow_add (s, true, place, nr, pos);
  s->next = place + nr;
  if (s->next == s->nr_blocks)
    s->next = 2;
}

/* All pieces before this one. */
static void
slow_free (struct slow_ring *s, unsigned number)
{
  for (; s->first < number; s->first++)
    for (unsigned b = 2; b < s->nr_blocks; b++)
      if (s->owner[b] == s->first)
        s->owner[b] = FREE;
}

static unsigned
slow_used (const struct slow_ring *s)
{
  unsigned nr = 0;

  for (unsigned b = 2; b < s->nr_blocks; b++)
    nr += s->owner[b] != FREE;
  return nr;
}

/* ---- both at once -------------------------------------------------------- */

/* False: there is no room. */
static bool
try_take (struct ring *r, struct slow_ring *s, unsigned nr)
{
  const unsigned place = slow_find (s, nr);
  const struct ring before = *r;
  uint64_t pos = 0;

  assert_int_equal (ring_find (r, nr, &pos), place != 0);
  assert_memory_equal (r, &before, sizeof before);
  nr_tried++;
  if (place == 0)
    return false;
  assert_true (pos >= r->head);
  assert_int_equal (ring_place (r, pos), place);
  ring_take (r, pos, nr);
  slow_take (s, place, nr, pos);
  assert_true (r->head == pos + nr);
  assert_int_equal (ring_used (r), slow_used (s));
  return true;
}

/* Up to this piece; up to the head if there is none with this number. */
static void
do_free (struct ring *r, struct slow_ring *s, unsigned number)
{
  r->tail = number == s->end ? r->head : slow_piece (s, number)->pos;
  slow_free (s, number);
  assert_int_equal (ring_used (r), slow_used (s));
}

/* Can the tail be there? */
static bool
is_tail (struct slow_ring *s, unsigned number)
{
  return number == s->end || slow_piece (s, number)->is_record;
}

/* Every sequence of this many steps. */
static void
try_all (const struct ring *r, const struct slow_ring *s, unsigned depth)
{
  struct ring r2;
  struct slow_ring s2;

  if (depth == 0)
    return;
  for (unsigned nr = 1; nr <= s->nr_blocks; nr++) {
    r2 = *r;
    s2 = *s;
    if (try_take (&r2, &s2, nr))
      try_all (&r2, &s2, depth - 1);
  }
  for (unsigned number = s->first + 1; number <= s->end; number++) {
    r2 = *r;
    s2 = *s;
    if (!is_tail (&s2, number))
      continue;
    do_free (&r2, &s2, number);
    try_all (&r2, &s2, depth - 1);
  }
}

/* An empty ring of which blocks were taken and freed. */
static void
begin_at (struct ring *r, struct slow_ring *s, unsigned nr_blocks,
          uint64_t pos)
{
  ring_begin (r, nr_blocks);
  assert_int_equal (r->nr_blocks, nr_blocks);
  assert_true (r->head == 0 && r->tail == 0);
  r->head = r->tail = pos;
  slow_begin (s, nr_blocks, 2 + pos % (nr_blocks - 2));
}

/* ---- the tests ----------------------------------------------------------- */

static void
test_all (void **state)
{
  static const unsigned depth[] = {
    [5] = 11, [6] = 10, [7] = 9, [8] = 8, [9] = 8, [10] = 7, [11] = 7, [12] = 7,
  };
  struct ring r;
  struct slow_ring s;

  for (unsigned nr_blocks = 5; nr_blocks <= 12; nr_blocks++) {
    begin_at (&r, &s, nr_blocks, 0);
    try_all (&r, &s, depth[nr_blocks]);
  }
  print_message ("%" PRIu64 " records tried\n", nr_tried);
}

/* The same from each block on, in the first rounds and in a late one. */
static void
test_all_heads (void **state)
{
  static const uint64_t from[] = { 0, UINT64_C (0xfffffff0) };
  struct ring r;
  struct slow_ring s;

  for (unsigned nr_blocks = 5; nr_blocks <= 12; nr_blocks++)
    for (unsigned i = 0; i < ARRAY_LEN (from); i++)
      for (unsigned d = 0; d < 3 * (nr_blocks - 2); d++) {
        begin_at (&r, &s, nr_blocks, from[i] + d);
        try_all (&r, &s, 4);
      }
}

/* Rings that are filled to the last block, by short records. */
static void
test_walks (void **state)
{
  struct rng rng = rng_start ();
  unsigned nr_full = 0;

  for (unsigned i = 0; i < 400; i++) {
    const unsigned nr_blocks = 5 + rng_below (&rng, MAX_BLOCKS - 4);
    const unsigned longest = 1 + rng_below (&rng, nr_blocks);
    struct ring r;
    struct slow_ring s;

    begin_at (&r, &s, nr_blocks, rng_bits (&rng, 48));
    for (unsigned step = 0; step < 1000; step++) {
      unsigned number;

      if (rng_below (&rng, 4) > 0) {
        try_take (&r, &s, 1 + rng_below (&rng, longest));
        nr_full += ring_used (&r) == nr_blocks - 2;
        continue;
      }
      number = s.first + rng_below (&rng, s.end - s.first + 1);
      if (is_tail (&s, number))
        do_free (&r, &s, number);
    }
  }
  assert_true (nr_full > 1000);
}

/* The longest record that fits in an empty ring, wherever its head is: half of
 * the places, of which two blocks are none.
 */
static uint32_t
max_record (unsigned nr_blocks)
{
  return (nr_blocks - 2) / 2;
}

/* It always fits in an empty ring, and what is two blocks longer does
 * not.
 */
static void
test_max_record (void **state)
{
  for (unsigned nr_blocks = 5; nr_blocks <= MAX_BLOCKS; nr_blocks++) {
    unsigned nr_too_long = 0;

    for (unsigned pos = 0; pos < 3 * nr_blocks; pos++) {
      struct ring r;
      struct slow_ring s;
      uint64_t found;

      begin_at (&r, &s, nr_blocks, pos);
      assert_true (max_record (nr_blocks) > 0);
      nr_too_long += slow_find (&s, max_record (nr_blocks) + 2) == 0;
      assert_false (ring_find (&r, UINT32_MAX, &found));
      assert_true (try_take (&r, &s, max_record (nr_blocks)));
    }
    assert_true (nr_too_long > 0);
  }
}

/* In numbers that a person can check. */
static void
test_example (void **state)
{
  struct ring r;
  uint64_t pos;

  ring_begin (&r, 12);                  /* ten places */
  assert_int_equal (max_record (12), 5);
  assert_true (ring_find (&r, 7, &pos));
  assert_int_equal (pos, 0);
  ring_take (&r, pos, 7);
  assert_false (ring_find (&r, 4, &pos));       /* three are left */
  assert_true (ring_find (&r, 3, &pos));
  assert_int_equal (ring_place (&r, pos), 9);
  r.tail = r.head;
  assert_true (ring_find (&r, 4, &pos));
  assert_int_equal (pos, 10);
  assert_int_equal (ring_place (&r, pos), 2);
  assert_false (ring_find (&r, 8, &pos));
  assert_true (ring_find (&r, 4, &pos));
  ring_take (&r, pos, 4);
  assert_int_equal (ring_used (&r), 7);         /* with the three */
  r.tail = 10;
  assert_int_equal (ring_used (&r), 4);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_example),
    cmocka_unit_test (test_all),
    cmocka_unit_test (test_all_heads),
    cmocka_unit_test (test_walks),
    cmocka_unit_test (test_max_record),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
