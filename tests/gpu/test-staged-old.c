/* gpuraid: a driver that has no copies in batches: all is done in place.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/gpu/cuda-coder.h"
#include "tests/gpu/fake-cuda.h"

static void
test_old_driver (void **state)
{
  struct ref_random rnd = { seed };
  struct cuda_options options = plain_options ();
  struct matrix *a = random_matrix (&rnd, 2, 4);
  struct coder *c;
  char why[256];

  assert_non_null (driver_get (why, sizeof why));
  assert_null (driver_get (why, sizeof why)->memcpy_batch_async);
  options.encode = a;
  options.part_len = 512 << 10;
  c = start_coder (&options);
  assert_int_equal (wait_for_kernels (c).nr_special, 1);
  fake_cuda_set ("FAKE_CUDA_SLOW", "20000");
  assert_true (run_one (c, &rnd, a, 15, 64 << 10, false));
  assert_int_equal (fake_cuda_count ("batches:0"), 0);
  expect_all_on (c, true);
  expect_messages (0);
  matrix_free (a);
  coder_free (c);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup (test_old_driver, reset),
  };

  seed = ref_seed ();
  setenv ("FAKE_CUDA_OLD", "1", 1);
  return cmocka_run_group_tests (tests, start_tests, stop_tests);
}
