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
    for (unsigned i = 0; i < 40 + 7 * n && sa->a->g.widening; i++)
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

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_widened),
    cmocka_unit_test (test_started_again),
    cmocka_unit_test (test_crashes),
  };

  widen_limits ();
  return cmocka_run_group_tests_name ("journal, checksums", tests, setup_both,
                                      free_data) +
    cmocka_run_group_tests_name ("journal", tests, setup_journal, free_data);
}
