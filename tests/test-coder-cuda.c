/* gpuraid: the coder on CUDA, on a fake driver, against GF-Complete: any
 * job from many threads, and anything that fails, at any call.
 *
 * What the kernels compute is for other tests; here it is that they are
 * launched with the right cells, and that nothing is lost or done twice.
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
#include "gpu/device.h"
#include "tests/cuda-coder.h"
#include "tests/fake-cuda.h"

/* ---- jobs ------------------------------------------------------------ */

static void
test_shapes (void **state)
{
  static const struct {
    unsigned rows, cols;
    size_t nr_rects, cell_len;
    bool crc;
  } jobs[] = {
    { 1, 1, 1, 64 }, { 1, 1, 1, 4096, true }, { 4, 10, 1, 65536 },
    { 4, 10, 1, 65536, true }, { 4, 10, 20, 4096 },
    { 4, 10, 5, 16384, true }, { 2, 4, 700, 64 }, { 3, 5, 200, 192 },
    { 16, 32, 1, 8192, true }, { 16, 32, 30, 192 }, { 1, 14, 3, 12288 },
    /* Cells cut, into bands of a part of a block at the end too. */
    { 1, 2, 1, 200 << 10 }, { 2, 1, 1, (300 << 10) + 64 },
    { 1, 3, 2, 96 << 10, true }, { 1, 64, 1, 16448 },
    { 1, 100, 2, 12 << 10, true }, { 5, 150, 1, 4096 },
  };
  struct ref_random rnd = { seed };
  struct cuda_options options = plain_options ();
  struct coder *c;

  options.part_len = 128 << 10;
  c = start_coder (&options);
  for (size_t i = 0; i < ARRAY_LEN (jobs); i++) {
    struct matrix *a = random_matrix (&rnd, jobs[i].rows, jobs[i].cols);

    if (!run_one (c, &rnd, a, jobs[i].nr_rects, jobs[i].cell_len,
                  jobs[i].crc))
      fail_msg ("%zu: %u x %u, %zu rects, cells of %zu: wrong", i,
                jobs[i].rows, jobs[i].cols, jobs[i].nr_rects,
                jobs[i].cell_len);
    matrix_free (a);
  }
  expect_all_on (c, true);
  expect_messages (0);
  coder_free (c);
}

/* The same for packets: those of arrays, and others, which are not whole
 * blocks, so that bands end elsewhere.
 */
static void
test_packets (void **state)
{
  static const struct {
    unsigned w;
    size_t packet_len, nr_rects, cell_len;
    bool crc;
  } jobs[] = {
    { 8, 512, 1, 4096 }, { 8, 512, 2, 65536, true },
    { 4, 1024, 3, 65536, true }, { 4, 1024, 1, 81920 },
    { 5, 64, 40, 1280 }, { 6, 192, 1, 1152 * 40 }, { 7, 1024, 1, 7168 * 9 },
  };
  struct ref_random rnd = { seed };
  struct cuda_options options = plain_options ();
  struct coder *c;

  options.part_len = 128 << 10;
  c = start_coder (&options);
  for (size_t i = 0; i < ARRAY_LEN (jobs); i++) {
    uint8_t coef[3 * 5];
    struct matrix *a;

    for (size_t j = 0; j < sizeof coef; j++)
      coef[j] = ref_below (&rnd, 1 << jobs[i].w);
    a = matrix_new_packets (jobs[i].w, jobs[i].packet_len, 3, 5, coef);
    assert_non_null (a);
    if (!run_one (c, &rnd, a, jobs[i].nr_rects, jobs[i].cell_len,
                  jobs[i].crc))
      fail_msg ("%zu: w %u, packets of %zu, cells of %zu: wrong", i,
                jobs[i].w, jobs[i].packet_len, jobs[i].cell_len);
    matrix_free (a);
  }
  expect_all_on (c, true);
  expect_messages (0);
  coder_free (c);
}

/* What a device can't do. */
static void
test_fallback (void **state)
{
  struct ref_random rnd = { seed };
  const struct cuda_options options = plain_options ();
  struct coder *c = new_coder (&options);
  struct matrix *a = random_matrix (&rnd, 2, 4);
  struct cuda_job *t;
  uint8_t *away = ref_alloc (4096);
  uint8_t *last;
  size_t len;
  uint8_t *arena = cuda_arena (&len);

  /* Before it has started. */
  assert_true (run_one (c, &rnd, a, 2, 4096, false));
  assert_int_equal (coder_start (c, arena, len), 0);
  /* Empty ones. */
  assert_true (run_one (c, &rnd, a, 0, 4096, false));
  assert_true (run_one (c, &rnd, a, 3, 0, false));
  for (unsigned i = 0; i < 3; i++) {
    struct matrix *empty = matrix_new (i & 1, i & 2, NULL);

    assert_true (run_one (c, &rnd, empty, 2, 4096, i == 2));
    matrix_free (empty);
  }
  /* One cell outside, of each kind; one that ends outside. */
  t = new_job (&rnd, a, 2, 4096, true);
  memcpy (away, t->in[5], 4096);
  t->in[5] = away;
  cuda_job_submit (c, t);
  assert_true (cuda_job_wait (t));
  cuda_job_free (t);
  t = new_job (&rnd, a, 2, 4096, false);
  last = t->out[3];
  t->out[3] = away;
  cuda_job_submit (c, t);
  assert_true (cuda_job_wait (t));
  t->out[3] = last;
  cuda_job_free (t);

  expect_all_on (c, false);
  assert_true (run_one (c, &rnd, a, 2, 4096, false));
  matrix_free (a);
  free (away);
  coder_free (c);
  expect_messages (0);
}

/* ---- many threads ---------------------------------------------------- */

struct client {
  pthread_t thread;
  struct coder *c;
  uint64_t seed;
  unsigned nr_jobs, max_len;
  bool ok;
};

/* Some jobs in flight at once, each of them any. */
static void *
client (void *arg)
{
  enum { AT_ONCE = 3 };
  struct client *cl = arg;
  struct ref_random rnd = { cl->seed };
  struct cuda_job *t[AT_ONCE] = { NULL };
  struct matrix *a[AT_ONCE] = { NULL };

  cl->ok = true;
  for (unsigned n = 0; n < cl->nr_jobs + AT_ONCE; n++) {
    unsigned i = n % AT_ONCE;
    bool crc = ref_below (&rnd, 3) == 0;
    size_t unit = crc ? 4096 : 64, max = 1 + ref_below (&rnd, cl->max_len);
    size_t cell_len, row;

    if (t[i]) {
      cl->ok &= cuda_job_wait (t[i]);
      cuda_job_free (t[i]);
      matrix_free (a[i]);
      t[i] = NULL;
    }
    if (n >= cl->nr_jobs)
      continue;
    a[i] = random_matrix (&rnd, 1 + ref_below (&rnd, 4),
                          1 + ref_below (&rnd, 10));
    row = a[i]->rows + a[i]->cols;
    cell_len = unit * (1 + ref_below (&rnd, max / row / unit + 1));
    t[i] = new_job (&rnd, a[i], 1 + max / row / cell_len,
                         cell_len, crc);
    cuda_job_submit (cl->c, t[i]);
  }
  return NULL;
}

static void
run_clients (struct coder *c, unsigned nr_jobs, unsigned max_len)
{
  struct client clients[5];
  bool ok = true;

  for (unsigned i = 0; i < ARRAY_LEN (clients); i++) {
    /* The first has large jobs, too. */
    clients[i] = (struct client) {
      .c = c, .seed = seed + i, .nr_jobs = i ? nr_jobs : nr_jobs / 4,
      .max_len = i ? max_len : max_len * 16,
    };
    assert_int_equal (pthread_create (&clients[i].thread, NULL, client,
                                      &clients[i]), 0);
  }
  for (unsigned i = 0; i < ARRAY_LEN (clients); i++) {
    pthread_join (clients[i].thread, NULL);
    ok &= clients[i].ok;
  }
  assert_true (ok);
}

static void
test_threads (void **state)
{
  const struct cuda_options options = plain_options ();
  struct coder *c;

  for (unsigned nr = 1; nr < 4; nr += 2) {
    struct coder_share share[CODER_MAX_SHARES];

    fake_cuda_set ("FAKE_CUDA_DEVICES", nr == 1 ? "1" : "3");
    c = start_coder (&options);
    run_clients (c, 40, 100000);
    expect_all_on (c, true);
    assert_int_equal (coder_shares (c, share), nr + 1);
    for (unsigned i = 0; i < nr; i++) {
      assert_true (share[i].nr_jobs > 0 && share[i].bytes > 0);
      assert_string_equal (share[i].failed, "");
    }
    coder_free (c);
  }
  expect_messages (0);
}

/* Far more at once than there are lanes. */
static void
test_many_small (void **state)
{
  enum { NR = 1500 };
  struct ref_random rnd = { seed };
  const struct cuda_options options = plain_options ();
  struct coder *c = start_coder (&options);
  struct matrix *a = random_matrix (&rnd, 1, 2);
  struct cuda_job *job[NR];

  for (unsigned i = 0; i < NR; i++)
    job[i] = new_job (&rnd, a, 1, 64, false);
  for (unsigned i = 0; i < NR; i++)
    cuda_job_submit (c, job[i]);
  for (unsigned i = 0; i < NR; i++) {
    assert_true (cuda_job_wait (job[i]));
    cuda_job_free (job[i]);
  }
  expect_all_on (c, true);
  expect_messages (0);
  matrix_free (a);
  coder_free (c);
}

/* A small job is done while large ones are in the way, even those that
 * wait.
 */
static void
test_small_first (void **state)
{
  struct ref_random rnd = { seed };
  const struct cuda_options options = plain_options ();
  struct coder *c = start_coder (&options);
  struct matrix *a = random_matrix (&rnd, 1, 2);
  struct cuda_job *large[12], *small;

  fake_cuda_set ("FAKE_CUDA_SLOW", "100000");
  small = new_job (&rnd, a, 1, 4096, false);
  for (unsigned i = 0; i < ARRAY_LEN (large); i++) {
    large[i] = new_job (&rnd, a, 9, 64 << 10, false);
    cuda_job_submit (c, large[i]);
  }
  cuda_job_submit (c, small);
  assert_true (cuda_job_wait (small));
  pthread_mutex_lock (&large[ARRAY_LEN (large) - 1]->lock);
  assert_int_equal (large[ARRAY_LEN (large) - 1]->nr_done, 0);
  pthread_mutex_unlock (&large[ARRAY_LEN (large) - 1]->lock);
  for (unsigned i = 0; i < ARRAY_LEN (large); i++) {
    assert_true (cuda_job_wait (large[i]));
    cuda_job_free (large[i]);
  }
  cuda_job_free (small);
  matrix_free (a);
  coder_free (c);
}

/* A launch that does not end is told of once, though others do end. */
static void
test_hang (void **state)
{
  struct ref_random rnd = { seed };
  const struct cuda_options options = plain_options ();
  struct matrix *a = random_matrix (&rnd, 1, 2);
  struct cuda_job *slow;
  struct coder *c;
  const unsigned was = device_hang_s;

  device_hang_s = 1;
  c = start_coder (&options);
  slow = new_job (&rnd, a, 9, 64 << 10, false);
  fake_cuda_set ("FAKE_CUDA_SLOW", "2000000");
  cuda_job_submit (c, slow);
  usleep (100000);
  fake_cuda_set ("FAKE_CUDA_SLOW", NULL);
  for (unsigned i = 0; i < 15; i++) {
    usleep (100000);
    assert_true (run_one (c, &rnd, a, 1, 4096, false));
  }
  expect_messages (1);
  assert_int_equal (nr_of ("no answer for 1 s"), 1);
  assert_true (cuda_job_wait (slow));
  cuda_job_free (slow);
  assert_true (run_one (c, &rnd, a, 1, 4096, false));
  expect_messages (1);
  coder_free (c);
  matrix_free (a);
  device_hang_s = was;
}

/* ---- failing --------------------------------------------------------- */

static void
expect_failed (struct coder *c, unsigned device, bool failed)
{
  struct coder_share share[CODER_MAX_SHARES];

  coder_shares (c, share);
  assert_int_equal (share[device].failed[0] != '\0', failed);
}

/* Whichever call fails: a start that says so, or all jobs done right, with
 * one message for each device.
 */
static void
test_each_call (void **state)
{
  /* All that are made, but for cuInit, which is once in a process. */
  static const char *const calls[] = {
    "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName",
    "cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2", "cuCtxSetCurrent", "cuCtxSynchronize",
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
    bool harmless = i == 4;     /* whoever pins it */
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
    TEST (test_shapes),
    TEST (test_packets),
    TEST (test_fallback),
    TEST (test_threads),
    TEST (test_many_small),
    TEST (test_small_first),
    TEST (test_hang),
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
