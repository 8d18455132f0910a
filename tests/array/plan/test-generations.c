/* gpuraid: which parity of a row is old.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "array/plan/generations.h"
#include "common/bits.h"

/* 2+3: roles 0 and 1 are data. */
static uint64_t
old (uint64_t usable, uint32_t seq, uint32_t d0, uint32_t d1, uint32_t p0,
     uint32_t p1, uint32_t p2)
{
  const uint32_t generation[] = { d0, d1, p0, p1, p2 };

  return generations_old_parity (generation, 2, usable, seq);
}

static void
test_good (void **state)
{
  assert_int_equal (old (0x1f, 9, 5, 7, 7, 7, 7), 0);
  assert_int_equal (old (0x1e, 9, 0, 5, 7, 7, 7), 0);
  /* Also if no data has it. */
  assert_int_equal (old (0x1f, 9, 5, 5, 7, 7, 7), 0);
  assert_int_equal (old (0x03, 9, 5, 5, 0, 0, 0), 0);
  assert_int_equal (old (0x07, 9, 5, 5, 3, 0, 0), 0);
}

/* All data is there: it says which counts. */
static void
test_all_data (void **state)
{
  assert_int_equal (old (0x1f, 9, 5, 7, 7, 6, 7), 0x08);
  assert_int_equal (old (0x1f, 9, 5, 5, 5, 8, 8), 0x18);
  /* Both are of some data: the younger one. */
  assert_int_equal (old (0x1f, 9, 5, 7, 5, 7, 7), 0x04);
  /* Of no data: the youngest. */
  assert_int_equal (old (0x1f, 9, 5, 5, 7, 6, 8), 0x0c);
}

/* The data that is not there may be what was written last. */
static void
test_some_data (void **state)
{
  assert_int_equal (old (0x1e, 9, 0, 5, 5, 7, 7), 0x04);
  assert_int_equal (old (0x1d, 9, 5, 0, 5, 7, 5), 0x14);
  assert_int_equal (old (0x1c, 9, 0, 0, 5, 7, 6), 0x14);
}

/* Sequence numbers wrap. */
static void
test_wrap (void **state)
{
  assert_int_equal (old (0x1e, 3, 0, 1, UINT32_MAX, 2, 2), 0x04);
  assert_int_equal (old (0x1e, 3, 0, 1, 2, UINT32_MAX, 2), 0x08);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_good),
    cmocka_unit_test (test_all_data),
    cmocka_unit_test (test_some_data),
    cmocka_unit_test (test_wrap),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
