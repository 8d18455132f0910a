/* gpuraid test: which rows are zeroed, against a list of all of them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "array/journal/zeroed.h"
#include "tests/gf-reference.h"
#include "tests/seed.h"

#define NR_RUNS 40u

static uint64_t seed;
static struct zeroed z;

static bool
has (uint64_t first, uint64_t end)
{
  return zeroed_maybe (&z, first, end);
}

static void
test_groups (void **state)
{
  const struct zeroed_rows a = { 15, 33 }, b = { 40, 41 };
  const uint64_t turn = UINT64_C (16) * ZEROED_COUNTERS;

  zeroed_init (&z, 16);
  assert_false (has (0, turn));
  zeroed_add (&z, &a, 1);
  assert_true (has (15, 16));
  assert_true (has (16, 20));
  assert_true (has (32, 33));
  assert_false (has (60, 2000));
  assert_true (has (47, 49));           /* of the same group */
  assert_false (has (48, 49));
  assert_true (has (turn, turn + 1));   /* shares its counter */
  zeroed_add (&z, &b, 1);
  zeroed_remove (&z, &a, 1);
  assert_false (has (0, 32));
  assert_true (has (31, 41));
  zeroed_remove (&z, &b, 1);
  assert_false (has (0, turn));
  assert_int_equal (z.nr_runs, 0);
}

static struct zeroed_rows
draw (struct ref_random *r)
{
  struct zeroed_rows run;

  run.first = ref_below (r, 100000);
  run.end = run.first + 1 + ref_below (r, 2000);
  return run;
}

/* Runs come and go; what is in one is always found, and nothing when there is
 * none.
 */
static void
test_random (void **state)
{
  struct zeroed_rows run[NR_RUNS];
  struct ref_random r = { seed };
  unsigned nr = 0;

  zeroed_init (&z, 1 + ref_below (&r, 600));
  for (unsigned n = 0; n < 20000; n++) {
    if (nr < NR_RUNS && ref_below (&r, 2)) {
      run[nr] = draw (&r);
      zeroed_add (&z, &run[nr++], 1);
    }
    else if (nr > 0) {
      const unsigned i = ref_below (&r, nr);

      zeroed_remove (&z, &run[i], 1);
      run[i] = run[--nr];
    }
    for (unsigned i = 0; i < nr; i++) {
      const uint64_t row =
        run[i].first + ref_below (&r, run[i].end - run[i].first);

      assert_true (has (row, row + 1));
    }
  }
  zeroed_remove (&z, run, nr);
  assert_false (has (0, 200000));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_groups),
    cmocka_unit_test (test_random),
  };

  seed = test_seed (NULL);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
