/* gpuraid: launches on cells that are copied to the device and back, on the
 * fake driver: that there are any, the right bytes, and any call that fails.
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
#include "tests/sanitized.h"

/* Batches of copies that a device was given so far. */
static long long
nr_batches (unsigned device)
{
  char name[40];

  snprintf (name, sizeof name, "batches:%u", device);
  return fake_cuda_count (name);
}

/* Only what has a kernel of its own is staged. */
static void
make_kernel (struct coder *c, struct ref_random *rnd, const struct matrix *a,
             bool crc)
{
  size_t block = a->packet_len ? a->w * a->packet_len : 64;
  struct kernels_state s, was = wait_for_kernels (c);

  assert_true (run_one (c, rnd, a, 1, crc ? MAX (block, 4096) : block, crc));
  s = wait_for_kernels (c);
  assert_int_equal (s.nr_special, was.nr_special + 1);
}

static struct cuda_options
staged_options (size_t part_len)
{
  struct cuda_options options = plain_options ();

  options.special_after = 1;
  options.part_len = part_len;
  return options;
}

/* ---- the right bytes ------------------------------------------------- */

static const struct shape {
  unsigned rows, cols, w;
  size_t packet_len, nr_rects, cell_len, part_len;
  bool crc;
} shapes[] = {
  /* Encoding, and what decoding is like. */
  { 4, 10, 8, 0, 8, 64 * KIB, 640 * KIB },
  { 4, 10, 8, 0, 8, 64 * KIB, 640 * KIB, true },
  { 2, 4, 8, 0, 15, 64 * KIB, 512 * KIB },
  { 1, 10, 8, 0, 7, 64 * KIB, 640 * KIB },
  { 3, 6, 8, 0, 20, 32 * KIB, 400 * KIB, true },
  /* More comes out than goes in. */
  { 6, 3, 8, 0, 10, 64 * KIB, 192 * KIB },
  /* Bands, the last of them too short to be staged. */
  { 2, 4, 8, 0, 1, 512 * KIB, 256 * KIB },
  { 2, 4, 8, 0, 2, 404 * KIB + 64, 400 * KIB },
  { 2, 4, 8, 0, 2, 404 * KIB, 400 * KIB, true },
  /* Packets, whole stripes and bands. */
  { 3, 5, 8, 512, 7, 64 * KIB, 320 * KIB },
  { 3, 5, 8, 512, 1, 512 * KIB, 320 * KIB },
  { 3, 5, 4, 1024, 7, 64 * KIB, 320 * KIB, true },
  { 3, 5, 4, 1024, 2, 260 * KIB, 320 * KIB, true },
};

static struct matrix *
shape_matrix (struct ref_random *rnd, const struct shape *s)
{
  uint8_t coef[100];
  struct matrix *a;

  /* Some of them 0, some of them 1. */
  for (unsigned i = 0; i < s->rows * s->cols; i++)
    coef[i] = ref_below (rnd, 4) ? ref_below (rnd, 1 << s->w)
      : ref_below (rnd, 2);
  a = s->packet_len
    ? matrix_new_packets (s->w, s->packet_len, s->rows, s->cols, coef)
    : matrix_new (s->rows, s->cols, coef);
  assert_non_null (a);
  return a;
}

/* Kernels that take their time, so that all lanes are in use: of those that
 * are launched first on a device all but one are staged.
 */
static void
try_shapes (unsigned nr_devices)
{
  struct ref_random rnd = { seed };

  for (size_t i = 0; i < ARRAY_LEN (shapes); i += nr_devices) {
    const struct shape *s = &shapes[i];
    const struct cuda_options options = staged_options (s->part_len);
    struct coder *c = start_coder (&options);
    struct matrix *a = shape_matrix (&rnd, s);
    long long was[2] = { nr_batches (0), nr_batches (1) };
    long long least = nr_devices == 1 ? 6 : 2;

    make_kernel (c, &rnd, a, s->crc);
    fake_cuda_set ("FAKE_CUDA_SLOW", "20000");
    if (!run_one (c, &rnd, a, s->nr_rects, s->cell_len, s->crc))
      fail_msg ("%zu: wrong", i);
    fake_cuda_set ("FAKE_CUDA_SLOW", NULL);
    expect_all_on (c, true);
    coder_free (c);
    matrix_free (a);
    for (unsigned d = 0; d < nr_devices; d++)
      if (nr_batches (d) < was[d] + least)
        fail_msg ("%zu: device %u: %lld batches of copies", i, d,
                  nr_batches (d) - was[d]);
  }
  expect_messages (0);
}

static void
test_shapes (void **state)
{
  try_shapes (1);
}

static void
test_two_devices (void **state)
{
  fake_cuda_set ("FAKE_CUDA_DEVICES", "2");
  try_shapes (2);
}

/* A device that has no room for it, or a driver that has the call but can't
 * do it: all is done in place.
 */
static void
test_refused (void **state)
{
  static const char *const fails[] = {
    "cuMemcpyBatchAsync:1+:0:801", "cuMemAlloc:2+",
  };
  struct ref_random rnd = { seed };
  const struct cuda_options options = staged_options (512 * KIB);

  for (size_t i = 0; i < ARRAY_LEN (fails); i++) {
    struct matrix *a = shape_matrix (&rnd, &shapes[2]);
    struct coder *c;
    long long was = nr_batches (0);

    fake_cuda_set ("FAKE_CUDA_FAIL", fails[i]);
    c = start_coder (&options);
    make_kernel (c, &rnd, a, false);
    fake_cuda_set ("FAKE_CUDA_SLOW", "10000");
    assert_true (run_one (c, &rnd, a, 15, 64 * KIB, false));
    assert_int_equal (nr_batches (0), was);
    expect_all_on (c, true);
    expect_messages (0);
    reset (NULL);
    coder_free (c);
    matrix_free (a);
  }
}

/* What is small, alone, or has short cells is done in place. */
static void
test_in_place (void **state)
{
  struct ref_random rnd = { seed };
  const struct cuda_options options = staged_options (0);
  struct coder *c = start_coder (&options);
  struct matrix *a = shape_matrix (&rnd, &shapes[2]);
  struct cuda_job *job[6];
  long long was = nr_batches (0);

  make_kernel (c, &rnd, a, false);
  assert_true (run_one (c, &rnd, a, 8, 64 * KIB, false));
  assert_int_equal (nr_batches (0), was);
  fake_cuda_set ("FAKE_CUDA_SLOW", "20000");
  for (unsigned i = 0; i < ARRAY_LEN (job); i++) {
    job[i] = new_job (&rnd, a, i & 1 ? 18 : 4, (i & 1 ? 16 : 64) * KIB, false);
    cuda_job_submit (c, job[i]);
  }
  for (unsigned i = 0; i < ARRAY_LEN (job); i++) {
    assert_true (cuda_job_wait (job[i]));
    cuda_job_free (job[i]);
  }
  assert_int_equal (nr_batches (0), was);
  matrix_free (a);
  coder_free (c);
  expect_messages (0);
}

/* And everything where it is told to. */
static void
test_all_in_place (void **state)
{
  struct ref_random rnd = { seed };
  struct matrix *a = shape_matrix (&rnd, &shapes[0]);
  static const unsigned threads[] = { 0, 32, 1000 };

  for (size_t i = 0; i < ARRAY_LEN (threads); i++) {
    struct cuda_options options = staged_options (640 * KIB);
    struct coder *c;
    long long was;

    options.in_place = true;
    options.in_place_threads = threads[i];
    c = start_coder (&options);
    was = nr_batches (0);
    make_kernel (c, &rnd, a, false);
    fake_cuda_set ("FAKE_CUDA_SLOW", "20000");
    assert_true (run_one (c, &rnd, a, 8, 64 * KIB, false));
    fake_cuda_set ("FAKE_CUDA_SLOW", NULL);
    expect_all_on (c, true);
    coder_free (c);
    assert_int_equal (nr_batches (0), was);
  }
  matrix_free (a);
}

/* ---- many threads ---------------------------------------------------- */

struct client {
  pthread_t thread;
  struct coder *c;
  struct matrix *const *a;
  uint64_t seed;
  bool ok;
};

#define NR_MATRICES 2

/* Two jobs in flight at once, large ones and small ones. */
static void *
client (void *arg)
{
  enum { NR_JOBS = 10 };
  struct client *cl = arg;
  struct ref_random rnd = { cl->seed };
  struct cuda_job *job[2] = { NULL };

  cl->ok = true;
  for (unsigned n = 0; n < NR_JOBS + 2; n++) {
    struct cuda_job **j = &job[n % 2];
    const struct matrix *a = cl->a[ref_below (&rnd, NR_MATRICES)];

    if (*j) {
      cl->ok &= cuda_job_wait (*j);
      cuda_job_free (*j);
    }
    if (n >= NR_JOBS)
      continue;
    *j = new_job (&rnd, a, 1 + ref_below (&rnd, 8),
                  (32 + 4 * ref_below (&rnd, 20)) * KIB, ref_below (&rnd, 2));
    cuda_job_submit (cl->c, *j);
  }
  return NULL;
}

static bool
run_stagers (struct coder *c, struct matrix *const *a)
{
  struct client clients[3];
  bool ok = true;

  for (unsigned i = 0; i < ARRAY_LEN (clients); i++) {
    clients[i] = (struct client) { .c = c, .a = a, .seed = seed + i };
    assert_int_equal (pthread_create (&clients[i].thread, NULL, client,
                                      &clients[i]), 0);
  }
  for (unsigned i = 0; i < ARRAY_LEN (clients); i++) {
    pthread_join (clients[i].thread, NULL);
    ok &= clients[i].ok;
  }
  return ok;
}

/* lost: device 1 is, in the middle of it: of its 230 launches and more.  The
 * first ones may all be of jobs too small to be staged.
 */
static void
try_clients (bool lost)
{
  struct ref_random rnd = { seed };
  const struct cuda_options options = staged_options (128 * KIB);
  struct matrix *a[NR_MATRICES] = {
    shape_matrix (&rnd, &shapes[2]), shape_matrix (&rnd, &shapes[4]),
  };
  struct coder *c;
  long long was[2];
  char after[40];

  fake_cuda_set ("FAKE_CUDA_DEVICES", "2");
  c = start_coder (&options);
  for (unsigned i = 0; i < NR_MATRICES; i++)
    for (unsigned crc = 0; crc < 2; crc++)
      make_kernel (c, &rnd, a[i], crc);
  for (unsigned d = 0; d < 2; d++)
    was[d] = nr_batches (d);
  if (lost) {
    snprintf (after, sizeof after, "%lld:1", fake_cuda_count ("launches:1") +
              100);
    fake_cuda_set ("FAKE_CUDA_LOST_AFTER", after);
  }
  fake_cuda_set ("FAKE_CUDA_SLOW", "1000");
  assert_true (run_stagers (c, a));
  assert_true (nr_batches (0) > was[0] && nr_batches (1) > was[1]);
  expect_all_on (c, true);
  expect_messages (lost);
  coder_free (c);
  for (unsigned i = 0; i < NR_MATRICES; i++)
    matrix_free (a[i]);
}

static void
test_threads (void **state)
{
  try_clients (false);
}

static void
test_lost (void **state)
{
  try_clients (true);
}

/* ---- failing --------------------------------------------------------- */

/* A job that is done is not touched any more, however long what was
 * launched before the failure takes.
 */
static void
expect_untouched (struct cuda_job *job, const char *fail)
{
  for (unsigned i = 0; i < job->nr_out; i++) {
    memset (job->out[i], 0x5a, job->job.cell_len);
    memset (job->expected[i], 0x5a, job->job.cell_len);
  }
  usleep (50000);
  if (!cuda_job_wait (job))
    fail_msg ("%s: written to after it was done", fail);
}

/* A job of five parts, while call fails.  Where nothing else does the job is
 * another device's.
 */
static void
try_failing (const struct matrix *a, const char *fail, unsigned nr_devices)
{
  struct ref_random rnd = { seed };
  const struct cuda_options options = staged_options (256 * KIB);
  struct coder *c;
  struct cuda_job *job;

  reset (NULL);
  fake_cuda_set ("FAKE_CUDA_DEVICES", nr_devices == 1 ? "1" : "2");
  c = start_coder (&options);
  make_kernel (c, &rnd, a, true);
  job = new_job (&rnd, a, 10, 64 * KIB, true);
  fake_cuda_set ("FAKE_CUDA_SLOW", "8000");
  fake_cuda_set ("FAKE_CUDA_FAIL", fail);
  cuda_job_submit (c, job);
  if (!cuda_job_wait (job))
    fail_msg ("%s: wrong", fail);
  expect_untouched (job, fail);
  fake_cuda_set ("FAKE_CUDA_FAIL", NULL);
  cuda_job_free (job);
  if (nr_of_all () == 0 || nr_of_all () > nr_devices ||
      nr_of ("not used any more") != nr_of_all ())
    fail_msg ("%s: %u messages", fail, nr_of_all ());
  coder_free (c);
}

static void
test_each_call (void **state)
{
  static const struct {
    const char *call;
    unsigned nr;                /* in the parts that are launched at once */
    const char *too;
  } calls[] = {
    { "cuMemcpyBatchAsync", 6, "" }, { "cuStreamWaitEvent", 6, "" },
    { "cuEventRecord", 10, "" }, { "cuLaunchKernel", 4, "" },
    /* One that leaves what was launched running; and to wait for that
     * fails, too.
     */
    { "cuLaunchKernel", 4, ":0:999" },
    { "cuMemcpyBatchAsync", 3, ",cuCtxSynchronize:1" },
    { "cuStreamWaitEvent", 3, ",cuCtxSetCurrent:5" },
  };
  struct ref_random rnd = { seed };
  struct matrix *a = random_matrix (&rnd, 1, 2);

  for (size_t i = 0; i < ARRAY_LEN (calls); i++)
    for (unsigned n = 1; n <= calls[i].nr; n += CASE_STEP) {
      char fail[100];

      snprintf (fail, sizeof fail, "%s:%u%s", calls[i].call, n, calls[i].too);
      try_failing (a, fail, 1 + n % 2);
    }
  matrix_free (a);
}

int
main (void)
{
#define TEST(f) cmocka_unit_test_setup (f, reset)
  const struct CMUnitTest tests[] = {
    TEST (test_shapes),
    TEST (test_two_devices),
    TEST (test_in_place),
    TEST (test_all_in_place),
    TEST (test_refused),
    TEST (test_threads),
    TEST (test_each_call),
    TEST (test_lost),           /* it stays lost */
  };

  seed = ref_seed ();
  return cmocka_run_group_tests (tests, start_tests, stop_tests);
}
