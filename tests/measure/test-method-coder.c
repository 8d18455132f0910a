/* gpuraid: gpuraid bench goes through all cells of a case.
 *
 * run-tests: no-thread
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "measure/method-coder.h"
#include "tests/coder-stub.h"

enum { nr_jobs = 8, nr_times = 20, depth = 3 };

/* Keeps this many jobs, and finishes the oldest when another comes. */
static struct {
  struct coder coder;           /* first */
  struct coder_job *kept[nr_jobs];
  unsigned nr_kept, nr;
  const uint8_t *cell[nr_jobs];
  unsigned nr_runs[nr_jobs];    /* by the job's first cell */
} keeper;

static void
count (const struct coder_job *job)
{
  unsigned i = 0;

  while (keeper.cell[i] && keeper.cell[i] != job->in[0])
    i++;
  assert (i < nr_jobs);
  keeper.cell[i] = job->in[0];
  keeper.nr_runs[i]++;
}

static void
end_oldest (void)
{
  struct coder_job *job = keeper.kept[0];

  keeper.nr_kept--;
  for (unsigned i = 0; i < keeper.nr_kept; i++)
    keeper.kept[i] = keeper.kept[i + 1];
  job->done (job, 0);
}

static void
keeper_submit (struct coder *c, struct coder_job *job)
{
  count (job);
  keeper.kept[keeper.nr_kept++] = job;
  keeper.nr++;
  while (keeper.nr_kept > (keeper.nr < nr_jobs * nr_times ? depth : 0))
    end_oldest ();
}

static const struct coder_ops keeper_ops = {
  .name = "keeper", .start = coder_stub_start, .submit = keeper_submit,
  .shares = coder_stub_shares, .free = coder_stub_free,
};

static void
test_order (void **state)
{
  static const struct method_ops ops = { .name = "keeper" };
  static const uint8_t coef[] = { 1, 1 };
  struct matrix *a = matrix_new (1, 2, coef);
  const struct bench_case bc = {
    .k = 2, .m = 1, .w = 8, .matrix = a, .cell_len = 4096,
    .nr_rects = 2 * nr_jobs, .slices = nr_jobs,
  };
  char why[BENCH_WHY_LEN];
  struct method *e;
  double seconds;

  keeper.coder.ops = &keeper_ops;
  e = coder_method_open (&ops, &keeper.coder, NULL, &bc, why);
  assert_non_null (e);
  assert_int_equal (coder_method_run (e, nr_times, &seconds, why), 0);
  assert_int_equal (keeper.nr, nr_jobs * nr_times);
  for (unsigned i = 0; i < nr_jobs; i++)
    assert_int_equal (keeper.nr_runs[i], nr_times);
  coder_method_close (e);
  matrix_free (a);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_order),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
