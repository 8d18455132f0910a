/* gpuraid: zeroes, trims and reads over both kinds of rows, where the frontier
 * is anywhere, also in the middle of a stripe.
 *
 * run-tests: no-thread
 * It has one thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "array/reshape/internal.h"
#include "common/bits.h"
#include "raidmap/limits.h"
#include "tests/array/reshape/widen-array.h"

#define CELL (CHUNK / 2)
#define CELL_ROWS (CELL / BLOCK_LEN)
#define CHUNK_ROWS (CHUNK / BLOCK_LEN)

static void
zero (struct sim_array *sa, uint64_t off, uint64_t len, unsigned flags)
{
  memset (data + off, 0, len);
  assert_int_equal (sim_array_zero (sa, len, off, flags), 0);
}

/* The next window. */
static void
move_one (struct sim_array *sa)
{
  struct reshape *r = sa->a->reshape;

  r->not_before = 0;
  while (r->phase == WINDOW_NONE)
    assert_true (sim_step (sa->sim));
  r->not_before = UINT64_MAX;
  while (r->phase != WINDOW_NONE)
    assert_true (sim_step (sa->sim));
}

/* Rows move until this one, and then no more. */
static struct sim_array *
start_middle (unsigned k, unsigned m, uint64_t row)
{
  struct sim_array *sa = start_widening (k, m);

  sa->a->window_len = CELL;
  sa->a->reshape->not_before = UINT64_MAX;
  widen (sa);
  while (sa->a->g.frontier < row)
    move_one (sa);
  assert_int_equal (sa->a->g.frontier, row);
  assert_true (sa->a->g.widening);
  return sa;
}

static void
go_on (struct sim_array *sa)
{
  sa->a->reshape->not_before = 0;
  move_all (sa);
  end_whole (sa);
}

/* From the middle of new rows to that of old ones, and more and more of it. */
static void
zero_around (unsigned k, unsigned m, uint64_t row, unsigned flags)
{
  struct sim_array *sa = start_middle (k, m, row);
  const uint64_t middle = sa->a->g.frontier / CHUNK_ROWS * (k + 1) * CHUNK;
  const uint64_t size = sa->g.size;

  for (uint64_t len = 3 * CHUNK; len < size / 2; len = 2 * len + 700) {
    const uint64_t from = middle > len ? middle - len : 0;

    zero (sa, from, MIN (size - from, 2 * len), flags);
    check_all (sa);
    put (sa, from, MIN (size - from, 2 * len), 0);
  }
  zero (sa, CHUNK + 700, size - 3 * CHUNK, flags);
  check_all (sa);
  open_again (sa, ~0, true);
  check_all (sa);
  go_on (sa);
}

static void
test_zeroes (void **state)
{
  for (uint64_t row = 2 * CHUNK_ROWS; row < 4 * CHUNK_ROWS; row += CELL_ROWS)
    for (unsigned flags = 0; flags <= ARRAY_TRIM; flags += ARRAY_TRIM) {
      zero_around (2, 1, row, flags);
      zero_around (3, 2, row, flags);
    }
}

/* All of it, before any row has moved and when almost all have. */
static void
test_all (void **state)
{
  for (uint64_t row = 0; row < STRIPES * CHUNK_ROWS;
       row += 9 * CHUNK_ROWS - CELL_ROWS) {
    struct sim_array *sa = start_middle (2, 1, row);

    zero (sa, 0, sa->g.size, ARRAY_TRIM);
    check_all (sa);
    put (sa, 5 * CHUNK + 100, 9000, 0);
    go_on (sa);
  }
}

/* Whole stripes are zeroed by the members: of both kinds of rows. */
static void
test_stripes (void **state)
{
  struct sim_array *sa = start_middle (2, 1, 8 * CHUNK_ROWS + CELL_ROWS);
  const uint64_t new_end = 8 * 3 * CHUNK, old_from = 9 * 3 * CHUNK;
  const uint64_t old_first = round_up (old_from, 2 * CHUNK);

  count_from_here (sa);
  zero (sa, 3 * CHUNK, new_end - 3 * CHUNK, ARRAY_TRIM);
  assert_int_equal (bytes (sa, IO_TRIM) + bytes (sa, IO_ZERO),
                    4 * 7 * CHUNK);
  count_from_here (sa);
  zero (sa, old_first, 10 * CHUNK, ARRAY_TRIM);
  assert_int_equal (bytes (sa, IO_TRIM) + bytes (sa, IO_ZERO),
                    4 * 5 * CHUNK);
  check_all (sa);
  go_on (sa);
}

/* No promise is made that it is fast. */
static void
test_not_fast (void **state)
{
  struct sim_array *sa = start_widening (2, 1);

  assert_int_equal (sim_array_zero (sa, 20 * CHUNK, 0, ARRAY_FAST), 0);
  memset (data, 0, 20 * CHUNK);
  sa->a->reshape->not_before = UINT64_MAX;
  widen (sa);
  assert_int_equal (sim_array_zero (sa, 20 * CHUNK, 0, ARRAY_FAST), ENOTSUP);
  sa->a->reshape->not_before = 0;
  move_all (sa);
  end_whole (sa);
}

/* While rows move. */
static void
test_meanwhile (void **state)
{
  struct sim_array *sa = start_widening (3, 1);
  unsigned n = 0;

  sa->a->window_len = CELL;
  widen (sa);
  while (sa->a->g.widening) {
    const uint64_t off = n * 7 * CHUNK / 2 % (sa->g.size - 20 * CHUNK);

    for (unsigned i = 0; i < 30; i++)
      assert_true (sim_step (sa->sim));
    zero (sa, off, 12 * CHUNK + 300, n % 2 ? ARRAY_TRIM : 0);
    put (sa, off + CHUNK, 5 * CHUNK, 0);
    if (n++ % 4 == 0)
      check_all (sa);
  }
  assert_true (n > 5);
  move_all (sa);
  end_whole (sa);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_zeroes),
    cmocka_unit_test (test_all),
    cmocka_unit_test (test_stripes),
    cmocka_unit_test (test_not_fast),
    cmocka_unit_test (test_meanwhile),
  };

  widen_limits ();
  limits.cell_max_len = CELL;
  return cmocka_run_group_tests_name ("journal, checksums", tests, setup_both,
                                      free_data) +
    cmocka_run_group_tests_name ("journal", tests, setup_journal, free_data);
}
