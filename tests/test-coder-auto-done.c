/* gpuraid: coder auto ends a job as soon as its side does.
 *
 * Near's submit may take a while to return when the job is over: whoever
 * waits for the job must not wait for that.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gf/coder-auto.h"
#include "tests/coder-device.h"
#include "tests/coder-stub.h"
#include "tests/gf-answer.h"

static bool is_done;
static unsigned nr_near, nr_late;

/* Does nothing, at once; and only then returns. */
static void
near_submit (struct coder *c, struct coder_job *job)
{
  nr_near++;
  job->done (job, 0);
  nr_late += !is_done;
}

static const struct coder_ops near_ops = {
  .name = "near", .start = coder_stub_start, .submit = near_submit,
  .shares = coder_stub_shares, .free = coder_stub_free,
};

static void
job_done (struct coder_job *job, int error)
{
  assert_int_equal (error, 0);
  __atomic_store_n (&is_done, true, __ATOMIC_RELEASE);
}

static void
test_done_before_submit_returns (void **state)
{
  enum { k = 4, m = 2, cell_len = 4096, nr_jobs = 100 };
  static uint8_t cells[(k + m) * cell_len] __attribute__ ((aligned (64)));
  const uint8_t *in[k];
  uint8_t *out[m], coef[m * k];
  struct coder near = { .ops = &near_ops };
  struct device *far = device_new (coder_isal_new (0));
  struct coder *c = coder_auto_new (&near, 0, &far->coder, NULL, 0);
  struct coder_job job = {
    .cell_len = cell_len, .nr_rects = 1, .in = in, .out = out,
    .done = job_done,
  };
  struct matrix *a;

  for (unsigned i = 0; i < k; i++)
    in[i] = cells + i * cell_len;
  for (unsigned j = 0; j < m; j++)
    out[j] = cells + (k + j) * cell_len;
  matrix_rs_parity (k, m, coef);
  job.matrix = a = matrix_new (m, k, coef);
  assert_non_null (a);
  assert_non_null (c);
  assert_int_equal (coder_start (c, NULL, 0), 0);
  for (unsigned n = 0; n < nr_jobs; n++) {
    is_done = false;
    coder_submit (c, &job);
    while (!__atomic_load_n (&is_done, __ATOMIC_ACQUIRE))
      ;
  }
  assert_true (nr_near > nr_jobs / 2);
  assert_int_equal (nr_late, 0);
  coder_free (c);
  matrix_free (a);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_done_before_submit_returns),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
