/* gpuraid: the coder on CUDA, on a fake driver: any call fails, at the start
 * and later.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/bits.h"
#include "tests/gpu/cuda-coder.h"
#include "tests/gpu/fake-cuda.h"

static void
expect_failed (struct coder *c, unsigned device, bool failed)
{
  struct coder_share share[CODER_MAX_SHARES];

  coder_shares (c, share);
  assert_int_equal (share[device].failed[0] != '\0', failed);
}

/* Whichever call fails: a start that reports it, or all jobs done right, with
 * one message for each device.
 */
static void
test_each_call (void **state)
{
  /* All calls, except for cuInit, which is made once in a process. */
  static const char *const calls[] = {
    "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName",
    "cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2", "cuCtxSetCurrent", "cuCtxCreate_v2",
    "cuCtxDestroy_v2", "cuCtxSynchronize",
    "cuStreamCreateWithPriority", "cuStreamDestroy_v2",
    "cuCtxGetStreamPriorityRange", "cuEventCreate", "cuEventDestroy_v2",
    "cuEventRecord", "cuEventQuery", "cuMemAlloc_v2", "cuMemFree_v2",
    "cuMemHostAlloc", "cuMemFreeHost", "cuMemHostRegister_v2",
    "cuMemHostUnregister", "cuMemHostGetDevicePointer_v2",
    "cuMemcpyHtoDAsync_v2", "cuModuleLoadData", "cuModuleUnload",
    "cuModuleGetFunction", "cuFuncGetAttribute", "cuLaunchKernel",
  };
  const struct cuda_options options = plain_options ();
  unsigned nr_failed = 0, nr_refused = 0;
  size_t len;
  void *arena = cuda_arena (&len);

  for (size_t i = 0; i < ARRAY_LEN (calls); i++) {
    for (unsigned n = 1; n <= 13; n += n == 1 ? 1 : 11) {
      struct coder *c;
      char text[100];

      reset (NULL);
      fake_cuda_set ("FAKE_CUDA_DEVICES", "2");
      snprintf (text, sizeof text, "%s:%u%s", calls[i], n, n & 1 ? "+" : "");
      fake_cuda_set ("FAKE_CUDA_FAIL", text);
      c = new_coder (&options);
      if (coder_start (c, arena, len) == 0) {
        run_clients (c, 3, 10000);
        nr_failed += nr_of ("not used any more");
        assert_true (nr_of ("not used any more") <= 2);
      }
      else {
        assert_true (nr_of_all () > 0);
        nr_refused++;
      }
      fake_cuda_set ("FAKE_CUDA_FAIL", NULL);
      coder_free (c);
    }
  }
  assert_true (nr_failed > 10 && nr_refused > 10);
}

/* One that fails at the start leaves the work to the other. */
static void
test_one_starts (void **state)
{
  static const char *const fails[] = {
    "cuDeviceGetName:1", "cuDevicePrimaryCtxRetain:1+:0",
    "cuModuleLoadData:1+:0", "cuMemHostRegister:1+:0:719",
    "cuMemHostRegister:1+:0:1", "cuStreamCreateWithPriority:5:0",
    "cuMemHostAlloc:1+:0",
  };
  const struct cuda_options options = plain_options ();

  for (size_t i = 0; i < ARRAY_LEN (fails); i++) {
    bool harmless = i == 3 || i == 4;   /* the device that pins it */
    struct coder *c;

    reset (NULL);
    fake_cuda_set ("FAKE_CUDA_DEVICES", "2");
    fake_cuda_set ("FAKE_CUDA_FAIL", fails[i]);
    c = start_coder (&options);
    run_clients (c, 3, 10000);
    expect_all_on (c, true);
    if (harmless)
      expect_messages (0);
    else if (nr_of ("cuda:0") != nr_of_all () || nr_of_all () != 1)
      fail_msg ("%s: %u messages", fails[i], nr_of_all ());
    fake_cuda_set ("FAKE_CUDA_FAIL", NULL);
    coder_free (c);
  }
}

/* After some more launches. */
static void
lose_device (unsigned nr)
{
  char name[40], value[40];

  snprintf (name, sizeof name, "launches:%u", nr);
  snprintf (value, sizeof value, "%lld:%u", fake_cuda_count (name) + 20, nr);
  fake_cuda_set ("FAKE_CUDA_LOST_AFTER", value);
}

/* A device goes away in the middle of it. */
static void
test_lost (void **state)
{
  const struct cuda_options options = plain_options ();
  struct coder *c;

  fake_cuda_set ("FAKE_CUDA_DEVICES", "2");
  lose_device (1);
  c = start_coder (&options);
  run_clients (c, 40, 50000);
  expect_messages (1);
  assert_int_equal (nr_of ("cuda:1 "), 1);
  expect_failed (c, 0, false);
  expect_failed (c, 1, true);
  expect_all_on (c, true);
  coder_free (c);

  reset (NULL);
  lose_device (0);
  c = start_coder (&options);
  run_clients (c, 40, 50000);
  expect_messages (1);
  expect_failed (c, 0, true);
  coder_free (c);
}

/* What was launched before the failure may write for long after it: a job
 * that is done must not be touched any more.
 */
static void
test_late_writer (void **state)
{
  struct ref_random rnd = { seed };
  struct cuda_options options = plain_options ();
  struct coder *c;
  struct matrix *a = random_matrix (&rnd, 2, 3);
  struct cuda_job *t[3];

  options.fail_after = 2;
  c = start_coder (&options);
  for (unsigned i = 0; i < 3; i++)
    t[i] = new_job (&rnd, a, 1, 4096, false);
  fake_cuda_set ("FAKE_CUDA_SLOW", "200000");
  for (unsigned i = 0; i < 3; i++)
    cuda_job_submit (c, t[i]);
  for (unsigned i = 0; i < 3; i++) {
    assert_true (cuda_job_wait (t[i]));
    for (unsigned j = 0; j < t[i]->nr_out; j++) {
      memset (t[i]->out[j], 0x5a, 4096);
      memset (t[i]->expected[j], 0x5a, 4096);
    }
  }
  usleep (300000);
  for (unsigned i = 0; i < 3; i++) {
    assert_true (cuda_job_wait (t[i]));
    cuda_job_free (t[i]);
  }
  expect_messages (1);
  assert_int_equal (nr_of ("not used any more"), 1);
  matrix_free (a);
  coder_free (c);
}

static void
test_fail_after (void **state)
{
  struct cuda_options options = plain_options ();
  struct coder *c;

  options.fail_after = 10;
  options.fail_device = 0;
  fake_cuda_set ("FAKE_CUDA_DEVICES", "2");
  c = start_coder (&options);
  run_clients (c, 40, 50000);
  expect_messages (1);
  expect_failed (c, 0, true);
  expect_failed (c, 1, false);
  coder_free (c);
}

static void
test_no_device (void **state)
{
  struct cuda_options options = plain_options ();
  struct coder *c = new_coder (&options);
  size_t len;
  void *arena = cuda_arena (&len);

  fake_cuda_set ("FAKE_CUDA_DEVICES", "0");
  assert_int_equal (coder_start (c, arena, len), -1);
  assert_false (c->keeps_arena);
  assert_int_equal (nr_of_all (), 1);
  coder_free (c);

  fake_cuda_set ("FAKE_CUDA_DEVICES", "2");
  options.devices = BIT (2);
  c = new_coder (&options);
  assert_int_equal (coder_start (c, arena, len), -1);
  assert_int_equal (nr_of_all (), 2);
  coder_free (c);

  options.devices = BIT (1);
  c = start_coder (&options);
  {
    struct coder_share share[CODER_MAX_SHARES];

    assert_int_equal (coder_shares (c, share), 2);
    assert_memory_equal (share[0].name, "cuda:1 ", 7);
  }
  coder_free (c);
}

int
main (void)
{
#define TEST(f) cmocka_unit_test_setup (f, reset)
  const struct CMUnitTest tests[] = {
    TEST (test_each_call),
    TEST (test_one_starts),
    TEST (test_late_writer),
    TEST (test_fail_after),
    TEST (test_no_device),
    TEST (test_lost),           /* they stay lost */
  };

  seed = ref_seed ();
  return cmocka_run_group_tests (tests, start_tests, stop_tests);
}
