/* gpuraid: an array that gets one more data member, and a row of which too
 * little can be read: the widening stops there until it is written.
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
#include <cmocka.h>

#include "array/engine/place.h"
#include "array/reshape/internal.h"
#include "tests/array/reshape/widen-array.h"

#define K 3u                    /* before */
#define CHUNK_ROWS (CHUNK / BLOCK_LEN)

/* Two blocks of an old stripe can't be read, after this row has moved. */
static struct sim_array *
start_bad (uint64_t stripe, uint64_t row)
{
  struct sim_array *sa = start_widening (K, 1);
  struct geometry old;

  widen (sa);
  move_to (sa, row);
  reshape_old (&sa->a->g, &old);
  for (unsigned role = 0; role < 2; role++)
    sim_disk_set_bad (sa->disk[layout_slot (&old, stripe, role)],
                      place (sa, stripe, CHUNK - BLOCK_LEN), BLOCK_LEN);
  return sa;
}

/* For a time; nothing is held for what can't be read. */
static void
look (struct sim_array *sa, uint64_t ns)
{
  const uint64_t end = sim_now (sa->sim) + ns;

  while (sim_now (sa->sim) < end) {
    assert_true (sim_step (sa->sim));
    assert_false (sa->a->ops_held);
  }
}

/* All of the rows before it move, once. */
static void
stops (uint64_t stripe, uint64_t row)
{
  struct sim_array *sa = start_bad (stripe, row);
  const struct reshape *r = sa->a->reshape;

  sim_array_pause (sa, 20 * SECOND);
  assert_true (r->stopped);
  assert_int_equal (r->bad_no, line_of_row (sa->a, stripe * K / (K + 1) *
                                            CHUNK_ROWS));
  assert_int_equal (sa->a->g.frontier, line_row (sa->a, r->bad_no));
  count_from_here (sa);
  look (sa, 100 * SECOND);
  assert_true (bytes (sa, IO_WRITE) < 4 * CHUNK);       /* superblocks */
  put (sa, stripe * K * CHUNK, 2 * CHUNK, 0);
  move_all (sa);
  check_all (sa);
  end_whole (sa);
}

static void
test_stops (void **state)
{
  stops (30, 19 * CHUNK_ROWS);
}

/* In a window of which each line goes through the journal. */
static void
test_stops_in_journaled (void **state)
{
  stops (2, CHUNK_ROWS);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_stops),
    cmocka_unit_test (test_stops_in_journaled),
  };

  widen_limits ();
  return cmocka_run_group_tests_name ("journal, checksums", tests, setup_both,
                                      free_data) +
    cmocka_run_group_tests_name ("journal", tests, setup_journal, free_data);
}
