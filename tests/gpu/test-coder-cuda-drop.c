/* gpuraid: the coder on CUDA, on a fake driver: no cell is given back while a
 * device that failed may still write to it.
 *
 * An error of a context is returned here while its launches still run, and
 * write, unless the context ends first.
 * run-tests: long
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/bits.h"
#include "gpu/device/device.h"
#include "tests/gpu/cuda-coder.h"
#include "tests/gpu/fake-cuda.h"

#define MAX_JOBS 12
#define HANG_S 120              /* without anything: a test fails */

static struct ref_random rnd;
static struct matrix *a;
static struct cuda_job *job[MAX_JOBS];

static int
setup (void **state)
{
  reset (state);
  rnd.state = seed;
  a = random_matrix (&rnd, 2, 3);
  device_hang_s = 30;
  fake_cuda_set ("FAKE_CUDA_LATE", "1");
  return 0;
}

static int
setup_impatient (void **state)
{
  setup (state);
  device_hang_s = 1;
  return 0;
}

/* And no thread has used a context that had ended, or was about to. */
static int
teardown (void **state)
{
  matrix_free (a);
  assert_int_equal (fake_cuda_count ("misused"), 0);
  assert_int_equal (fake_cuda_count ("live"), 0);
  return 0;
}

static void
make_jobs (unsigned nr, size_t nr_rects, size_t cell_len)
{
  for (unsigned i = 0; i < nr; i++)
    job[i] = new_job (&rnd, a, nr_rects, cell_len, false);
}

static void
submit_jobs (struct coder *c, unsigned nr)
{
  for (unsigned i = 0; i < nr; i++)
    cuda_job_submit (c, job[i]);
}

static bool
is_done (struct cuda_job *t)
{
  bool r;

  pthread_mutex_lock (&t->lock);
  r = t->nr_done > 0;
  pthread_mutex_unlock (&t->lock);
  return r;
}

/* The cells are reused as soon as the job is done. */
static void
use_cells (struct cuda_job *t)
{
  assert_true (cuda_job_wait (t));
  for (unsigned j = 0; j < t->nr_out; j++) {
    memset (t->out[j], 0x5a, t->job.cell_len);
    memset (t->expected[j], 0x5a, t->job.cell_len);
  }
}

static void
expect_untouched (unsigned nr)
{
  for (unsigned i = 0; i < nr; i++)
    use_cells (job[i]);
  usleep (400000);
  for (unsigned i = 0; i < nr; i++) {
    if (!cuda_job_wait (job[i]))
      fail_msg ("cells of job %u were written to after it was done", i);
    cuda_job_free (job[i]);
  }
}

static void
wait_for_message (const char *text)
{
  for (unsigned i = 0; i < HANG_S * 1000 && nr_of (text) == 0; i++)
    usleep (1000);
  assert_int_equal (nr_of (text), 1);
}

/* Until a count of the fake driver is as high as that. */
static void
wait_for_count (const char *name, long long nr)
{
  for (unsigned i = 0; fake_cuda_count (name) < nr; i++) {
    if (i == HANG_S * 1000)
      fail_msg ("%s: %lld, not %lld", name, fake_cuda_count (name), nr);
    usleep (1000);
  }
}

static void
expect_status (struct coder *c, const char *text)
{
  struct coder_share share[CODER_MAX_SHARES];

  coder_shares (c, share);
  if (strstr (share[0].failed, text) == NULL)
    fail_msg ("status: %s", share[0].failed);
}

/* ---- launches in flight ------------------------------------------------ */

/* Kernels that write in place, after an error of any kind, by any call. */
static void
test_late_kernels (void **state)
{
  static const char *const fails[] = {
    "cuEventQuery:1+:0:719", "cuEventQuery:1:0:214", "cuEventQuery:1:0:999",
    "cuLaunchKernel:4:0:700", "cuEventRecord:4:0:1",
  };
  const struct cuda_options options = plain_options ();

  for (size_t i = 0; i < ARRAY_LEN (fails); i++) {
    struct coder *c = start_coder (&options);

    make_jobs (4, 1, 4096);
    fake_cuda_set ("FAKE_CUDA_SLOW", "250000");
    fake_cuda_set ("FAKE_CUDA_FAIL", fails[i]);
    submit_jobs (c, 4);
    expect_untouched (4);
    expect_messages (1);
    assert_int_equal (nr_of ("not used any more"), 1);
    expect_status (c, "cu");
    coder_free (c);
    reset (NULL);
    fake_cuda_set ("FAKE_CUDA_LATE", "1");
  }
}

/* Copies back from the device, of parts that were staged. */
static void
test_late_copies (void **state)
{
  struct cuda_options options = plain_options ();
  long long batches;
  struct coder *c;

  options.encode = a;
  c = start_coder (&options);
  assert_int_equal (wait_for_kernels (c).nr_special, 1);
  make_jobs (DEVICE_NR_LARGE, 8, 64 << 10);
  batches = fake_cuda_count ("batches:0");
  fake_cuda_set ("FAKE_CUDA_SLOW_COPIES", "400000");
  submit_jobs (c, DEVICE_NR_LARGE);
  assert_true (fake_cuda_count ("batches:0") > batches + 1);
  wait_for_count ("copying back", 1);
  fake_cuda_set ("FAKE_CUDA_FAIL", "cuEventQuery:1+:0:700");
  expect_untouched (DEVICE_NR_LARGE);
  expect_messages (1);
  coder_free (c);
}

/* Errors at any time, with kernels being made and loaded meanwhile. */
static void
test_any_time (void **state)
{
  struct cuda_options options = plain_options ();
  unsigned nr_failed = 0;

  options.special_after = 20000;
  for (unsigned i = 1; i < 30; i += 3) {
    char fail[60];
    struct coder *c;

    reset (NULL);
    fake_cuda_set ("FAKE_CUDA_LATE", "1");
    fake_cuda_set ("FAKE_CUDA_DEVICES", "2");
    fake_cuda_set ("FAKE_CUDA_SLOW", "1000");
    snprintf (fail, sizeof fail, "%s:%u+:%u:700",
              i & 1 ? "cuLaunchKernel" : "cuEventRecord", i, i / 2 & 1);
    fake_cuda_set ("FAKE_CUDA_FAIL", fail);
    c = start_coder (&options);
    run_clients (c, 10, 20000);
    assert_true (nr_of_all () <= 1);
    nr_failed += nr_of ("not used any more");
    coder_free (c);
  }
  assert_true (nr_failed >= 5);
}

/* The memory of all stays pinned when the device that is the first goes. */
static void
test_others_go_on (void **state)
{
  const struct cuda_options options = plain_options ();

  for (unsigned dead = 0; dead < 2; dead++) {
    struct coder *c;
    long long before;
    char fail[40];

    reset (NULL);
    fake_cuda_set ("FAKE_CUDA_LATE", "1");
    fake_cuda_set ("FAKE_CUDA_DEVICES", "2");
    c = start_coder (&options);
    run_clients (c, 5, 20000);
    snprintf (fail, sizeof fail, "cuLaunchKernel:5:%u:719", dead);
    fake_cuda_set ("FAKE_CUDA_FAIL", fail);
    run_clients (c, 20, 20000);
    expect_messages (1);
    assert_int_equal (nr_of ("not used any more"), 1);
    before = fake_cuda_count (dead ? "launches:0" : "launches:1");
    run_clients (c, 5, 20000);
    assert_true (fake_cuda_count (dead ? "launches:0" : "launches:1") >
                 before);
    expect_messages (1);
    expect_all_on (c, true);
    coder_free (c);
  }
}

/* ... unless its error is one of all contexts of the process.  Then those go
 * too, each with its message, and the processors do all.
 */
static void
all_go (const char *lost_after)
{
  const struct cuda_options options = plain_options ();
  struct coder_share share[CODER_MAX_SHARES];
  struct coder *c;

  fake_cuda_set ("FAKE_CUDA_ONE_FOR_ALL", "1");
  fake_cuda_set ("FAKE_CUDA_DEVICES", "2");
  fake_cuda_set ("FAKE_CUDA_SLOW", "1000");
  c = start_coder (&options);
  run_clients (c, 5, 20000);
  fake_cuda_set ("FAKE_CUDA_LOST_AFTER", lost_after);
  make_jobs (MAX_JOBS, 1, 8192);
  submit_jobs (c, MAX_JOBS);
  expect_untouched (MAX_JOBS);
  run_clients (c, 20, 20000);
  expect_messages (2);
  assert_int_equal (nr_of ("not used any more"), 2);
  assert_true (coder_shares (c, share) >= 2);
  for (unsigned i = 0; i < 2; i++)
    assert_true (share[i].failed[0] != '\0');
  coder_free (c);
}

static void
test_all_go_with_first (void **state)
{
  all_go ("4:0");
}

static void
test_all_go_with_second (void **state)
{
  all_go ("1:1");
}

static struct coder *coder;
static void (*told) (struct coder_job *, int);

/* In the thread of device 1: something more for it to wait for, and then
 * an error of device 0.
 */
static void
submit_more (struct coder_job *t, int error)
{
  fake_cuda_set ("FAKE_CUDA_SLOW", "300000");
  cuda_job_submit (coder, job[2]);
  fake_cuda_set ("FAKE_CUDA_FAIL", "cuLaunchKernel:1:0:719");
  cuda_job_submit (coder, job[3]);
  told (t, error);
}

/* After a job's end its owner continues with other work, on any device, in the
 * thread of the device that did the job.  That thread then asks its own context
 * again, and not the last one.
 */
static void
test_error_of_another (void **state)
{
  /* The device that has fewer bytes to do gets the next: 0, 1, 1, 0. */
  static const size_t cell_len[] = { 16384, 64, 32768, 64 };
  const struct cuda_options options = plain_options ();

  fake_cuda_set ("FAKE_CUDA_DEVICES", "2");
  coder = start_coder (&options);
  for (unsigned i = 0; i < ARRAY_LEN (cell_len); i++)
    job[i] = new_job (&rnd, a, 1, cell_len[i], false);
  told = job[1]->job.done;
  job[1]->job.done = submit_more;

  fake_cuda_set ("FAKE_CUDA_SLOW", "60000000");
  cuda_job_submit (coder, job[0]);
  wait_for_count ("slow", 1);
  fake_cuda_set ("FAKE_CUDA_SLOW", NULL);
  cuda_job_submit (coder, job[1]);
  expect_untouched (ARRAY_LEN (cell_len));
  expect_messages (1);
  assert_int_equal (nr_of ("cuda:0 "), 1);
  expect_all_on (coder, true);
  coder_free (coder);
}

/* ---- a context that does not end ------------------------------------- */

/* Its jobs wait, others do not; it is reported once, and in the status. */
static void
no_end (const char *name, const char *value, unsigned nr_devices)
{
  const struct cuda_options options = plain_options ();
  struct coder *c;
  char fail[100];

  fake_cuda_set ("FAKE_CUDA_DEVICES", nr_devices == 1 ? "1" : "2");
  c = start_coder (&options);
  make_jobs (2, 1, 4096);
  snprintf (fail, sizeof fail, "cuEventQuery:1+:0:719%s%s",
            strcmp (name, "FAKE_CUDA_FAIL") == 0 ? "," : "",
            strcmp (name, "FAKE_CUDA_FAIL") == 0 ? value : "");
  fake_cuda_set (name, value);
  fake_cuda_set ("FAKE_CUDA_FAIL", fail);
  submit_jobs (c, 2);

  wait_for_message ("not used any more");
  assert_true (run_one (c, &rnd, a, 1, 4096, false));
  wait_for_message ("its jobs wait");
  expect_status (c, "its jobs wait");
  assert_true (run_one (c, &rnd, a, 3, 4096, false));
  usleep (300000);
  expect_messages (2);
  assert_true (!is_done (job[0]));

  fake_cuda_set (name, NULL);
  expect_untouched (2);
  expect_messages (3);
  assert_int_equal (nr_of ("goes on"), 1);
  /* Of whichever call was the first to have it. */
  expect_status (c, "CUDA_ERROR_LAUNCH_FAILED");
  coder_free (c);
}

static void
test_end_hangs (void **state)
{
  no_end ("FAKE_CUDA_HANG", "cuDevicePrimaryCtxReset", 1);
}

static void
test_end_hangs_of_two (void **state)
{
  no_end ("FAKE_CUDA_HANG", "cuDevicePrimaryCtxReset", 2);
}

static void
test_end_fails (void **state)
{
  no_end ("FAKE_CUDA_FAIL", "cuDevicePrimaryCtxReset:1+", 1);
}

/* Nothing can be said of it when the driver does not even tell that. */
static void
test_state_unknown (void **state)
{
  no_end ("FAKE_CUDA_FAIL", "cuDevicePrimaryCtxReset:1+,"
          "cuDevicePrimaryCtxGetState:1+", 1);
}

/* It must not end while a call is under way in it: here a kernel is loaded. */
static void
test_somebody_inside (void **state)
{
  struct cuda_options options = plain_options ();
  struct coder *c;

  options.special_after = 1;
  c = start_coder (&options);
  make_jobs (1, 1, 4096);
  fake_cuda_set ("FAKE_CUDA_HANG", "cuModuleLoadData");
  assert_true (run_one (c, &rnd, a, 1, 4096, false));
  wait_for_count ("hanging", 1);
  fake_cuda_set ("FAKE_CUDA_FAIL", "cuEventQuery:1+:0:719");
  submit_jobs (c, 1);
  wait_for_message ("its jobs wait");
  assert_true (!is_done (job[0]));
  fake_cuda_set ("FAKE_CUDA_HANG", NULL);
  expect_untouched (1);
  coder_free (c);
}

/* What waited for a lane is done at once. */
static void
test_queued (void **state)
{
  const struct cuda_options options = plain_options ();
  struct coder *c = start_coder (&options);

  make_jobs (MAX_JOBS, 1, 4096);
  fake_cuda_set ("FAKE_CUDA_SLOW", "60000000");
  fake_cuda_set ("FAKE_CUDA_HANG", "cuDevicePrimaryCtxReset");
  submit_jobs (c, MAX_JOBS);
  fake_cuda_set ("FAKE_CUDA_FAIL", "cuEventQuery:1+:0:719");
  for (unsigned i = DEVICE_NR_SMALL; i < MAX_JOBS; i++)
    assert_true (cuda_job_wait (job[i]));
  for (unsigned i = 0; i < DEVICE_NR_SMALL; i++)
    assert_true (!is_done (job[i]));
  fake_cuda_set ("FAKE_CUDA_HANG", NULL);
  expect_untouched (MAX_JOBS);
  coder_free (c);
}

/* With nothing in flight nothing has to end, and no call waits. */
static void
test_nothing_under_way (void **state)
{
  const struct cuda_options options = plain_options ();
  struct coder *c = start_coder (&options);

  fake_cuda_set ("FAKE_CUDA_HANG", "cuDevicePrimaryCtxReset");
  fake_cuda_set ("FAKE_CUDA_FAIL", "cuModuleGetFunction:1+:0:1");
  assert_true (run_one (c, &rnd, a, 1, 4096, false));
  assert_true (run_one (c, &rnd, a, 1, 4096, false));
  assert_int_equal (nr_of ("not used any more"), 1);
  expect_messages (1);
  coder_free (c);
}

/* ---- silence --------------------------------------------------------- */

/* A launch that does not end, though others do. */
static void
test_hang (void **state)
{
  const struct cuda_options options = plain_options ();
  struct coder *c = start_coder (&options);

  make_jobs (1, 9, 64 << 10);
  fake_cuda_set ("FAKE_CUDA_SLOW", "60000000");
  submit_jobs (c, 1);
  wait_for_count ("slow", 1);
  fake_cuda_set ("FAKE_CUDA_SLOW", NULL);
  for (unsigned i = 0; i < 15; i++) {
    usleep (100000);
    assert_true (run_one (c, &rnd, a, 1, 4096, false));
  }
  expect_untouched (1);
  expect_messages (1);
  assert_int_equal (nr_of ("no answer for 1 s: it is not used any more"), 1);
  expect_status (c, "no answer");
  coder_free (c);
}

static void *
submit_one (void *c)
{
  submit_jobs (c, 1);
  return NULL;
}

/* A call that launches and does not come back. */
static void
test_launch_hangs (void **state)
{
  const struct cuda_options options = plain_options ();
  struct coder *c = start_coder (&options);
  pthread_t thread;

  make_jobs (1, 1, 4096);
  fake_cuda_set ("FAKE_CUDA_HANG", "cuLaunchKernel");
  assert_int_equal (pthread_create (&thread, NULL, submit_one, c), 0);
  wait_for_message ("no answer for 1 s: it is not used any more");
  wait_for_message ("its jobs wait");
  assert_true (run_one (c, &rnd, a, 1, 4096, false));
  assert_true (!is_done (job[0]));
  fake_cuda_set ("FAKE_CUDA_HANG", NULL);
  pthread_join (thread, NULL);
  expect_untouched (1);
  coder_free (c);
}

int
main (void)
{
#define TEST(f) cmocka_unit_test_setup_teardown (f, setup, teardown)
#define TEST_HANG(f) \
  cmocka_unit_test_setup_teardown (f, setup_impatient, teardown)
  const struct CMUnitTest tests[] = {
    TEST (test_late_kernels),
    TEST (test_late_copies),
    TEST (test_any_time),
    TEST (test_others_go_on),
    TEST (test_all_go_with_first),
    TEST (test_all_go_with_second),
    TEST (test_error_of_another),
    TEST_HANG (test_end_hangs),
    TEST_HANG (test_end_hangs_of_two),
    TEST_HANG (test_end_fails),
    TEST_HANG (test_state_unknown),
    TEST_HANG (test_somebody_inside),
    TEST (test_queued),
    TEST_HANG (test_nothing_under_way),
    TEST_HANG (test_hang),
    TEST_HANG (test_launch_hangs),
  };
  int failed = 0, status;
  pid_t pid;

  seed = ref_seed ();
  /* One that fails leaves threads, and memory that is pinned: each has a
   * process of its own.
   */
  for (size_t i = 0; i < ARRAY_LEN (tests); i++) {
    fflush (NULL);
    pid = fork ();
    if (pid == 0) {
      cmocka_set_test_filter (tests[i].name);
      return cmocka_run_group_tests (tests, start_tests, stop_tests);
    }
    if (pid == -1 || waitpid (pid, &status, 0) != pid || status != 0) {
      fprintf (stderr, "%s failed\n", tests[i].name);
      failed = 1;
    }
  }
  return failed;
}
