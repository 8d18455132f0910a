/* gpuraid: coder auto with devices, on the fake driver.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gf/auto/auto.h"
#include "tests/gf/gf-answer.h"
#include "tests/gpu/cuda-coder.h"
#include "tests/gpu/fake-cuda.h"

static struct coder *
start_auto (void)
{
  const struct cuda_options options = plain_options ();
  struct coder *cuda = coder_cuda_new (&options, NULL);
  struct coder *c;
  size_t len;
  void *arena = cuda_arena (&len);

  assert_non_null (cuda);
  c = coder_auto_new (coder_isal_new (2), 2, cuda, NULL, 65536);
  assert_non_null (c);
  assert_int_equal (coder_start (c, arena, len), 0);
  assert_true (c->keeps_arena);
  return c;
}

/* That many of both devices have failed: what they did so far, and the jobs
 * of the CPU.
 */
static uint64_t
device_bytes (struct coder *c, unsigned failed, uint64_t *cpu_jobs)
{
  struct coder_share share[CODER_MAX_SHARES];
  uint64_t bytes = 0;

  assert_int_equal (coder_shares (c, share), 3);
  assert_string_equal (share[0].name, "isal");
  *cpu_jobs = share[0].nr_jobs;
  for (unsigned i = 1; i < 3; i++) {
    bytes += share[i].bytes;
    failed -= share[i].failed[0] != '\0';
  }
  assert_int_equal (failed, 0);
  return bytes;
}

static void
run_some (struct coder *c, unsigned nr)
{
  struct ref_random rnd = { seed };
  struct matrix *a = random_matrix (&rnd, 2, 4);

  for (unsigned i = 0; i < nr; i++)
    assert_true (run_one (c, &rnd, a, 20, 32768, i % 2));
  matrix_free (a);
}

/* One device does what the other one had; then the CPU does all, and later
 * jobs whole.
 */
static void
test_devices_fail (void **state)
{
  struct coder *c;
  uint64_t bytes, nr, before;

  fake_cuda_set ("FAKE_CUDA_DEVICES", "2");
  c = start_auto ();
  run_some (c, 4);
  assert_true (device_bytes (c, 0, &nr) > 0);

  fake_cuda_set ("FAKE_CUDA_FAIL", "cuLaunchKernel:1+:0");
  run_some (c, 4);
  bytes = device_bytes (c, 1, &nr);
  fake_cuda_set ("FAKE_CUDA_FAIL", "cuLaunchKernel:1+");
  run_some (c, 4);
  expect_messages (2);
  assert_int_equal (device_bytes (c, 2, &before), bytes);
  run_some (c, 4);
  expect_messages (2);
  assert_int_equal (device_bytes (c, 2, &nr), bytes);
  assert_int_equal (nr - before, 4);
  coder_free (c);
}

/* The CPU does what is not in the arena, and the devices other jobs. */
static void
test_not_in_arena (void **state)
{
  const struct shape s = { 4, 10, 20, 8192, true, 0, 0 };
  struct ref_random rnd = { seed };
  struct coder *reference = coder_gf_complete_new (0);
  struct coder *c;
  struct answer a;
  uint64_t nr;

  fake_cuda_set ("FAKE_CUDA_DEVICES", "2");
  c = start_auto ();
  answer_make (&a, &rnd, &s, reference);
  answer_forget (&a);
  ref_job_run (c, a.t);
  answer_check (&a);
  assert_int_equal (device_bytes (c, 0, &nr), 0);
  run_some (c, 2);
  assert_true (device_bytes (c, 0, &nr) > 0);
  expect_messages (0);
  answer_free (&a);
  coder_free (reference);
  coder_free (c);
}

int
main (void)
{
#define TEST(f) cmocka_unit_test_setup (f, reset)
  const struct CMUnitTest tests[] = {
    TEST (test_devices_fail), TEST (test_not_in_arena),
  };

  seed = ref_seed ();
  return cmocka_run_group_tests (tests, start_tests, stop_tests);
}
