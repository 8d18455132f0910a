/* gpuraid: a coder is freed as soon as its last job is done, while the
 * thread that submitted it may still be on its way back.
 *
 * It takes a sanitizer to see what goes wrong.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gf/auto/auto.h"
#include "tests/gpu/cuda-coder.h"

struct submitter {
  pthread_t thread;
  struct coder *c;
  struct cuda_job *job;
};

static void *
submit (void *arg)
{
  struct submitter *s = arg;

  coder_submit (s->c, &s->job->job);
  return NULL;
}

static void
try_free (struct coder *(*make) (void), size_t nr_rects)
{
  struct ref_random rnd = { seed };
  struct matrix *a = random_matrix (&rnd, 2, 4);
  size_t len;
  void *arena = cuda_arena (&len);

  for (unsigned i = 0; i < 15; i++) {
    struct submitter s = {
      .c = make (), .job = new_job (&rnd, a, nr_rects, 65536, false),
    };

    assert_int_equal (coder_start (s.c, arena, len), 0);
    assert_int_equal (pthread_create (&s.thread, NULL, submit, &s), 0);
    assert_true (cuda_job_wait (s.job));
    coder_free (s.c);
    pthread_join (s.thread, NULL);
    cuda_job_free (s.job);
  }
  matrix_free (a);
}

static struct coder *
new_isal (void)
{
  return coder_isal_new (2);
}

static struct coder *
new_cuda (void)
{
  const struct cuda_options options = plain_options ();

  return new_coder (&options);
}

static struct coder *
new_auto (void)
{
  return coder_auto_new (new_isal (), 2, new_cuda (), NULL, 65536);
}

static void
test_isal (void **state)
{
  try_free (new_isal, 10);
}

static void
test_cuda (void **state)
{
  try_free (new_cuda, 1);
}

static void
test_auto (void **state)
{
  try_free (new_auto, 40);
}

int
main (void)
{
#define TEST(f) cmocka_unit_test_setup (f, reset)
  const struct CMUnitTest tests[] = {
    TEST (test_isal), TEST (test_cuda), TEST (test_auto),
  };

  seed = ref_seed ();
  return cmocka_run_group_tests (tests, start_tests, stop_tests);
}
