/* gpuraid: an array that gets one more data member, on simulated members: its
 * rows move while clients go on.
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

#include "array/engine/state.h"
#include "array/seats/seat.h"
#include "common/bits.h"
#include "tests/array/reshape/widen-array.h"

static void
test_widened (void **state)
{
  static const struct { unsigned k, m; } sizes[] = {
    { 1, 1 }, { 2, 1 }, { 3, 2 }, { 4, 2 },
  };

  for (unsigned i = 0; i < ARRAY_LEN (sizes); i++) {
    const unsigned k = sizes[i].k, m = sizes[i].m;
    struct sim_array *sa = start_widening (k, m);

    check_all (sa);
    widen (sa);
    assert_int_equal (sa->g.k, k + 1);
    assert_int_equal (sa->a->lost_slots, 0);
    check_all (sa);
    put (sa, 3 * CHUNK + 100, 9000, 0);
    move_all (sa);
    check_all (sa);
    assert_int_equal (sa->g.size, (uint64_t) (k + 1) * sa->l.data_len);
    put (sa, sa->g.size - 9 * CHUNK, 9 * CHUNK, 0);
    end_whole (sa);
  }
}

/* However little may move, no client waits for it: not for a window, nor for a
 * line that moves alone.
 */
static void
test_little_at_a_time (void **state)
{
  struct sim_array *sa = start_widening (3, 1);

  array_set_rate (sa->a, 1);
  widen (sa);
  for (unsigned i = 0; i < 4 * STRIPES; i++) {
    const uint64_t begun = sim_now (sa->sim);

    if (i == 2 * STRIPES)
      array_set_rate (sa->a, 4 * CHUNK);
    put (sa, (i * 7 % STRIPES) * CHUNK, 9000, ARRAY_FUA);
    check_range (sa, (i * 5 % STRIPES) * CHUNK, CHUNK);
    assert_true (sim_now (sa->sim) - begun < SECOND);
  }
  assert_true (sa->a->g.widening && sa->a->g.frontier > 0);
  array_set_rate (sa->a, 0);
  move_all (sa);
  check_all (sa);
  end_whole (sa);
}

/* At any time it is stopped, or crashes, and goes on; some members are not
 * there then.
 */
static void
go_on_after (bool crash, unsigned k, unsigned m)
{
  struct sim_array *sa = start_widening (k, m);
  unsigned n = 0;

  widen (sa);
  while (sa->a->g.widening) {
    for (unsigned i = 0; i < 20 + 7 * n && sa->a->g.widening; i++)
      assert_true (sim_step (sa->sim));
    put (sa, (n * 11 % STRIPES) * CHUNK + 5000 * (n % 3), 9000, ARRAY_FUA);
    note_size (sa);
    if (crash)
      crash_array (sa);
    for (unsigned i = 0; i < m; i++) {
      open_again (sa, ~BIT ((n + 2 * i) % (k + m + 1)), false);
      check_all (sa);
    }
    open_again (sa, ~0, true);
    check_all (sa);
    n++;
  }
  assert_true (n > 5);
  move_all (sa);
  end_whole (sa);
}

static void
test_started_again (void **state)
{
  go_on_after (false, 3, 1);
  go_on_after (false, 4, 2);
}

static void
test_crashes (void **state)
{
  go_on_after (true, 1, 1);
  go_on_after (true, 3, 1);
  go_on_after (true, 4, 2);
}

/* The array fails at any time while the second stripe moves: what was read
 * before is read.
 */
static void
test_fails (void **state)
{
  unsigned n = 0;

  for (bool alone = true; alone; n += 3) {
    struct sim_array *sa = start_widening (3, 1);

    widen (sa);
    move_to (sa, CHUNK / BLOCK_LEN);
    for (unsigned i = 0; i < n; i++)
      assert_true (sim_step (sa->sim));
    alone = sa->a->g.frontier == CHUNK / BLOCK_LEN;
    array_set_failed (sa->a, "as the test wants");
    check_all (sa);
    sim_array_abandon (sa);
    sim_array_free (sa);
  }
  assert_true (n > 30);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_widened),
    cmocka_unit_test (test_little_at_a_time),
    cmocka_unit_test (test_started_again),
    cmocka_unit_test (test_crashes),
    cmocka_unit_test (test_fails),
  };

  widen_limits ();
  return cmocka_run_group_tests_name ("journal, checksums", tests, setup_both,
                                      free_data) +
    cmocka_run_group_tests_name ("journal", tests, setup_journal, free_data);
}
