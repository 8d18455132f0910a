/* gpuraid: the coder on CUDA, on a fake driver, against GF-Complete: any
 * job, from many threads.
 *
 * What the kernels compute is for other tests; here it is that they are
 * launched with the right cells, and that nothing is lost or done twice.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/bits.h"
#include "tests/coder-stub.h"
#include "tests/gpu/cuda-coder.h"
#include "tests/gpu/fake-cuda.h"

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
  assert_false (c->keeps_arena);
  assert_int_equal (coder_start (c, arena, len), 0);
  assert_true (c->keeps_arena);
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

/* The fallback takes anything. */
static void
take_job (struct coder *c, struct coder_job *job)
{
}

/* In a child: does an assertion about cell_len fail? */
static bool
is_refused (struct coder *c, struct coder_job *job)
{
  char text[1000];
  FILE *err = tmpfile ();
  size_t len;
  pid_t pid;

  assert_non_null (err);
  pid = fork ();
  if (pid == 0) {
    alarm (20);
    signal (SIGABRT, SIG_DFL);
    dup2 (fileno (err), STDERR_FILENO);
    coder_submit (c, job);
    _exit (0);
  }
  assert_int_equal (waitpid (pid, NULL, 0), pid);
  rewind (err);
  len = fread (text, 1, sizeof text - 1, err);
  text[len] = '\0';
  fclose (err);
  return strstr (text, "job->cell_len %") != NULL;
}

/* As on the CPU: the caller is wrong, and is told so. */
static void
test_cell_len (void **state)
{
  struct ref_random rnd = { seed };
  const struct cuda_options options = plain_options ();
  struct matrix *a = random_matrix (&rnd, 2, 3);
  struct matrix *packets = matrix_new_packets (4, 64, 2, 3, a->coef);
  const struct {
    const struct matrix *a;
    size_t cell_len;
    bool crc;
  } jobs[] = {
    { a, 100 }, { a, 65535 }, { packets, 3 * 64 }, { a, 4096 + 64, true },
  };
  static const struct coder_ops ops = {
    .name = "stub", .start = coder_stub_start, .submit = take_job,
    .free = coder_stub_free, .shares = coder_stub_shares,
  };
  struct coder stub = { .ops = &ops };
  struct coder *c = coder_cuda_new (&options, &stub);
  size_t len;
  void *arena = cuda_arena (&len);

  assert_non_null (packets);
  assert_int_equal (coder_start (c, arena, len), 0);
  for (size_t i = 0; i < ARRAY_LEN (jobs); i++) {
    struct cuda_job *t = new_job (&rnd, a, 1, 65536, true);
    struct coder_job job = t->job;

    job.matrix = jobs[i].a;
    job.cell_len = jobs[i].cell_len;
    if (!jobs[i].crc)
      job.crc = NULL;
    if (!is_refused (c, &job))
      fail_msg ("%zu: cells of %zu bytes are coded", i, job.cell_len);
    cuda_job_free (t);
  }
  coder_free (c);
  matrix_free (packets);
  matrix_free (a);
}

int
main (void)
{
#define TEST(f) cmocka_unit_test_setup (f, reset)
  const struct CMUnitTest tests[] = {
    TEST (test_shapes),
    TEST (test_packets),
    TEST (test_fallback),
    TEST (test_cell_len),
    TEST (test_threads),
    TEST (test_many_small),
    TEST (test_small_first),
  };

  seed = ref_seed ();
  return cmocka_run_group_tests (tests, start_tests, stop_tests);
}
