/* gpuraid: when an array gets no more data member, and when one is not taken
 * back.
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

#include "array/cache/cache.h"
#include "array/engine/place.h"
#include "array/reshape/internal.h"
#include "array/scrub/scrub.h"
#include "array/sums/sums.h"
#include "raidmap/limits.h"
#include "tests/array/reshape/widen-array.h"

/* Nothing moves. */
static void
stay (struct sim_array *sa)
{
  sa->a->reshape->not_before = UINT64_MAX;
}

static void
not_taken_back (struct sim_array *sa, const char *what)
{
  assert_int_equal (sim_array_cancel_widen (sa), EINVAL);
  assert_non_null (strstr (sa->said, what));
}

/* Before rows move it is taken back, and can be done again. */
static void
test_taken_back (void **state)
{
  struct sim_array *sa = start_widening (2, 1);

  not_taken_back (sa, "no data member is being added");
  stay (sa);
  widen (sa);
  put (sa, 5 * CHUNK, 9000, 0);
  assert_int_equal (sim_array_cancel_widen (sa), 0);
  assert_int_equal (sa->g.k, 2);
  check_all (sa);
  sa->a->reshape->not_before = 0;
  widen (sa);
  assert_int_equal (sa->g.k, 3);
  move_all (sa);
  end_whole (sa);
}

/* A window is under way, or some rows have moved. */
static void
test_not_taken_back (void **state)
{
  struct sim_array *sa = start_widening (2, 1);

  widen (sa);
  while (!rows_move (sa->a))
    assert_true (sim_step (sa->sim));
  assert_int_equal (sa->a->g.frontier, 0);
  not_taken_back (sa, "rows have moved");
  move_to (sa, 8);
  not_taken_back (sa, "rows have moved");
  assert_int_equal (sa->g.k, 3);
  move_all (sa);
  not_taken_back (sa, "no data member is being added");
  end_whole (sa);
}

/* An array of zeroes. */
static struct sim_array *
start_of_code (unsigned k, unsigned m, enum code code, unsigned w)
{
  const struct geometry g = { .k = k, .m = m, .chunk = CHUNK };
  struct sim_array *sa = sim_array_new (1, &g, STRIPES, 0);

  sa->code = code;
  sa->w = w;
  sa->cache_len = 64 << 20;
  sim_array_create (sa);
  open_again (sa, ~0, true);
  return sa;
}

/* Where the parity of rows would be another one. */
static void
test_code (void **state)
{
  for (unsigned m = 2; m <= 4; m++) {
    struct sim_array *sa = start_of_code (2, m, CODE_RS, 8);

    stay (sa);
    widen (sa);
    end_degraded (sa);

    sa = start_of_code (2, m, CODE_CRS, m == 4 ? 4 : 8);
    stay (sa);
    if (m == 2)
      widen (sa);
    else
      not_widened (sa, "with this code=crs and m the parity of all rows");
    assert_int_equal (sa->a->g.k, m == 2 ? 3 : 2);
    end_degraded (sa);
  }
}

/* The code has no room for one more. */
static void
test_small_code (void **state)
{
  struct sim_array *sa = start_of_code (14, 2, CODE_CRS, 4);

  not_widened (sa, "its code can: w=4 has no room for more");
  end_degraded (sa);
}

static void
test_without_journal (void **state)
{
  struct sim_array *sa;

  (void) setup_bare (NULL);
  sa = start_of_code (2, 1, CODE_RS, 8);
  not_widened (sa, "an array with consistency=none can't be widened");
  end_degraded (sa);
}

static void
test_cache (void **state)
{
  struct sim_array *sa = start_of_code (2, 1, CODE_RS, 8);
  struct geometry g = sa->g;

  g.k = 3;
  assert_true (sim_array_stop (sa));
  sa->cache_len = cache_min_len (&g) + sums_memory (&g, 0) - 1;
  open_again (sa, ~0, true);
  not_widened (sa, "the cache is too small for one more");
  end_degraded (sa);
}

/* It is to be a spare. */
static void
test_no_spare (void **state)
{
  struct sim_array *sa = start_of_code (2, 1, CODE_RS, 8);
  char why[ARRAY_WHY_LEN] = "";
  struct sim_request q;

  sim_command_init (&q, sa, COMMAND_WIDEN);
  memset (&q.r.command.uuid, 0x5a, sizeof q.r.command.uuid);
  q.r.command.why = why;
  assert_int_equal (sim_array_run (&q), EINVAL);
  assert_non_null (strstr (why, "is no spare any more"));
  assert_int_equal (sa->a->g.k, 2);
  end_degraded (sa);
}

/* All members are there, and nothing else changes the array. */
static void
test_members (void **state)
{
  char why[ARRAY_WHY_LEN] = "";
  struct sim_array *sa = start_widening (2, 2);

  engine_lock (sa->a);
  assert_int_equal (scrub_start (sa->a, false, why), 0);
  assert_int_equal (scrub_control (sa->a, ARRAY_SCRUB_PAUSE, why), 0);
  engine_unlock (sa->a);
  not_widened (sa, "a scrub is under way");
  assert_int_equal (sa->a->g.k, 2);
  end_whole (sa);

  sa = start_widening (2, 2);
  assert_int_equal (sim_array_fail (sa, 1), 0);
  not_widened (sa, "a slot has no active member");
  assert_int_equal (sa->a->g.k, 2);
  assert_true (sim_array_settle (sa, 600 * SECOND));
  widen (sa);
  move_all (sa);
  end_whole (sa);
}

/* One after the other, and not more of them than a start has memory for. */
static void
test_many (void **state)
{
  struct sim_array *sa = start_widening (1, 1);

  stay (sa);
  widen (sa);
  not_widened (sa, "a data member is being added");
  assert_int_equal (sa->a->g.k, 2);
  sa->a->reshape->not_before = 0;
  move_all (sa);
  while (sa->a->n < 2 + SUMS_MAX_ADDED) {
    widen (sa);
    move_all (sa);
  }
  not_widened (sa, "too many were added since the start");
  open_again (sa, ~0, true);
  widen (sa);
  move_all (sa);
  end_whole (sa);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_taken_back),
    cmocka_unit_test (test_not_taken_back),
    cmocka_unit_test_setup (test_code, setup_both),
    cmocka_unit_test (test_small_code),
    cmocka_unit_test_teardown (test_without_journal, setup_both),
    cmocka_unit_test (test_cache),
    cmocka_unit_test (test_no_spare),
    cmocka_unit_test (test_members),
    cmocka_unit_test (test_many),
  };

  widen_limits ();
  return cmocka_run_group_tests (tests, setup_both, free_data);
}
