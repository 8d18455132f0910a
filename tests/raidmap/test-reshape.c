/* gpuraid: where a byte lies while an array gets one more data member: windows
 * are carried out on a small array whose blocks are numbers.
 *
 * run-tests: no-thread
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/bits.h"
#include "raidmap/layout/reshape.h"

#define MAX_N 16u
#define MAX_ROWS 256u
#define PARITY UINT32_MAX
#define OTHER (UINT32_MAX - 1)  /* rubbish */

/* What a member has: 0 for zeroes, or the number of a block of the array, from
 * 1 on.
 */
static uint32_t disk[MAX_N][MAX_ROWS];
static struct geometry g;
static uint64_t nr_rows, nr_blocks;

static uint64_t
chunk_rows (void)
{
  return g.chunk / BLOCK_LEN;
}

static uint32_t
block_at (uint64_t off)
{
  struct piece p;
  uint64_t row;

  reshape_piece (&g, off, 1, &p);
  row = p.stripe * chunk_rows () + p.chunk_off / BLOCK_LEN;
  assert_true (row < nr_rows);
  return disk[reshape_slot (&g, row, p.role)][row];
}

/* An array that is full, as it is before; the last chunks of the last stripe
 * are not of the array if short_by is not 0.
 */
static void
begin (unsigned k, unsigned m, uint64_t fixed, uint32_t rows,
       uint64_t stripes, unsigned short_by)
{
  struct geometry old = { .k = k, .m = m, .chunk = rows * BLOCK_LEN,
                          .fixed = fixed };

  nr_rows = stripes * rows;
  nr_blocks = nr_rows * k - short_by;
  old.size = nr_blocks * BLOCK_LEN;
  memset (disk, 0, sizeof disk);
  for (uint64_t row = 0; row < nr_rows; row++) {
    disk[k + m][row] = OTHER;
    for (unsigned j = 0; j < m; j++)
      disk[layout_slot (&old, row / rows, k + j)][row] = PARITY;
  }
  for (uint64_t b = 0; b < nr_blocks; b++) {
    struct piece p;

    layout_piece (&old, b * BLOCK_LEN, BLOCK_LEN, &p);
    disk[layout_slot (&old, p.stripe, p.role)]
      [p.stripe * rows + p.chunk_off / BLOCK_LEN] = b + 1;
  }
  g = old;
  g.k++;
  g.widening = true;
}

/* All that clients and words need is where the geometry says. */
static void
check_all (void)
{
  const unsigned n = g.k + g.m;

  for (uint64_t b = 0; b < nr_blocks; b++)
    assert_int_equal (block_at (b * BLOCK_LEN), b + 1);
  for (uint64_t row = 0; row < nr_rows; row++) {
    const uint64_t zeroes = reshape_zeroes (&g, row);
    uint64_t slots = 0;

    for (unsigned role = 0; role < n; role++) {
      const unsigned slot = reshape_slot (&g, row, role);

      assert_true (slot < n);
      assert_int_equal (reshape_role (&g, row, slot), role);
      slots |= BIT (slot);
      if (reshape_is_dead (&g, row))
        continue;
      assert_int_equal (disk[slot][row] == PARITY,
                        role >= g.k && !(zeroes & BIT (role)));
      assert_int_equal (disk[slot][row] == OTHER, (zeroes & BIT (role)) != 0);
    }
    assert_int_equal (slots, LOW_BITS (n));
  }
}

/* No block of the array that clients would still find there.  The last stripe
 * counts as full.
 */
static void
check_dead (void)
{
  for (uint64_t row = 0; row < nr_rows; row++) {
    bool live = false;

    for (uint64_t b = 0; b < nr_blocks; b++) {
      struct piece p;

      reshape_piece (&g, b * BLOCK_LEN, BLOCK_LEN, &p);
      live |= p.stripe * chunk_rows () + p.chunk_off / BLOCK_LEN == row;
    }
    if (reshape_is_dead (&g, row))
      assert_true (!live && row >= g.frontier);
    else
      assert_true (live || row < g.frontier ||
                   row >= nr_rows - chunk_rows ());
  }
}

/* Read all sources, then write the rows. */
static void
move (const struct reshape_window *w)
{
  static uint32_t line[MAX_N][MAX_ROWS];

  for (uint64_t row = w->first; row < w->end; row++)
    for (unsigned role = 0; role < g.k + g.m; role++) {
      const uint64_t chunk_no = row / chunk_rows () * g.k + role;
      const uint64_t b = chunk_no * chunk_rows () + row % chunk_rows ();
      const bool has = w->kind != RESHAPE_CLEARED && role < g.k &&
        b < nr_blocks;

      line[role][row] = has ? block_at (b * BLOCK_LEN) :
        role < g.k ? 0 : PARITY;
      if (has)
        assert_int_equal (reshape_new_row (&g, b * BLOCK_LEN), row);
    }
  for (uint64_t row = w->first; row < w->end; row++) {
    assert_int_equal (reshape_is_dead (&g, row),
                      w->kind != RESHAPE_JOURNALED);
    for (unsigned role = 0; role < g.k + g.m; role++)
      disk[layout_slot (&g, row / chunk_rows (), role)][row] =
        line[role][row];
  }
}

static void
widen (uint64_t max_rows, uint64_t nr_line)
{
  unsigned nr_journaled = 0;

  for (;;) {
    const struct reshape_window w =
      reshape_next (&g, nr_rows, max_rows, nr_line);

    assert_int_equal (w.first, g.frontier);
    if (w.kind == RESHAPE_ENDED)
      break;
    assert_true (w.end > w.first && w.end <= nr_rows);
    assert_true (w.end - w.first <= MAX (max_rows, nr_line));
    nr_journaled += w.kind == RESHAPE_JOURNALED;
    move (&w);
    g.frontier = w.end;
    check_all ();
    check_dead ();
  }
  assert_int_equal (g.frontier, nr_rows);
  /* Twice only for the first stripes, fewer than there are old data members. */
  assert_true (nr_journaled * nr_line <= (g.k - 1) * chunk_rows ());
  g.widening = false;
  for (uint64_t b = 0; b < nr_blocks; b++)
    assert_int_equal (block_at (b * BLOCK_LEN), b + 1);
}

static void
test_windows (void **state)
{
  for (unsigned k = 1; k <= 6; k++)
    for (unsigned m = 1; m <= 3; m++)
      for (unsigned rows = 1; rows <= 4; rows *= 2)
        for (unsigned stripes = 1; stripes <= 3 * k + 4; stripes++)
          for (unsigned i = 0; i < 4; i++) {
            const uint64_t fixed = i % 2 && m > 1 ? BIT (k + m - 1) : 0;
            const unsigned line = i / 2 ? rows : 1;

            begin (k, m, fixed, rows, stripes, (k + i) % (k * rows));
            check_all ();
            widen ((uint64_t) line << (i + stripes) % 5, line);
          }
}

/* Nothing is different where no member is added. */
static void
test_not_widening (void **state)
{
  struct piece p, q;

  g = (struct geometry) { .k = 3, .m = 2, .chunk = 65536,
                          .size = UINT64_C (1) << 30 };
  for (uint64_t off = 0; off < 100 * 65536; off += 4096 + 512) {
    const uint64_t row = off / BLOCK_LEN;

    layout_piece (&g, off, 99999, &p);
    reshape_piece (&g, off, 99999, &q);
    assert_true (p.stripe == q.stripe && p.role == q.role &&
                 p.chunk_off == q.chunk_off && p.len == q.len);
    assert_int_equal (reshape_zeroes (&g, row), 0);
    assert_false (reshape_is_dead (&g, row));
    for (unsigned role = 0; role < 5; role++)
      assert_int_equal (reshape_slot (&g, row, role),
                        layout_slot (&g, row / 16, role));
  }
}

/* A piece ends where rows become old. */
static void
test_pieces_end (void **state)
{
  struct piece p;

  begin (2, 1, 0, 4, 6, 0);
  g.frontier = 6;               /* two blocks of the chunks of stripe 1 */
  reshape_piece (&g, 3 * g.chunk + 100, g.chunk, &p);
  assert_int_equal (p.stripe, 1);
  assert_int_equal (p.role, 0);
  assert_int_equal (p.len, 2 * BLOCK_LEN - 100);
  reshape_piece (&g, 3 * g.chunk + 2 * BLOCK_LEN, g.chunk, &p);
  assert_int_equal (p.stripe, 1);
  assert_int_equal (p.role, 1);
  assert_int_equal (p.len, 2 * BLOCK_LEN);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_windows),
    cmocka_unit_test (test_not_widening),
    cmocka_unit_test (test_pieces_end),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
