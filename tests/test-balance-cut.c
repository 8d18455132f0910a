/* gpuraid: how coder auto learns to cut large jobs, one after the other,
 * with coders that only take (virtual) time.
 *
 * What start measured is wrong here in several ways, as it is where the
 * caches, or the processors that all want at once, make a long job unlike
 * those of start.
 *
 * run-tests: no-thread
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/bits.h"
#include "gf/auto-task.h"
#include "gf/matrix.h"
#include "tests/auto-sim.h"

enum { cell_len = auto_sim_cell_len };

static const double noise[] = { 0, 0.15 };

/* One host, after start; start takes near to be so many times as fast as it
 * is, and what they leave each other to be start_shared.
 */
struct host {
  const char *name;
  unsigned cols, rows;
  double near, far, far_fixed;
  double shared[2], start_shared[2];
  double start_near;
};

#define NEAR_FIXED (5 * US)

static double
bytes_of (const struct host *h, size_t nr_rects)
{
  return (double) nr_rects * h->cols * cell_len;
}

/* Bytes a second of jobs whose parts end at once, could they be cut
 * anywhere.
 */
static double
best_cut (const struct host *h, size_t nr_rects)
{
  double near = h->near * GB * h->shared[NEAR];
  double far = h->far * GB * h->shared[FAR];
  double bytes = bytes_of (h, nr_rects);

  return bytes * (near + far) /
    (bytes + near * NEAR_FIXED + far * h->far_fixed * US);
}

/* ---- one job at a time -------------------------------------------------- */

static bool done;

static void
job_done (struct coder_job *job, int error)
{
  assert_int_equal (error, 0);
  done = true;
}

static void
submit_one (struct coder_job *job, struct coder *c, const struct matrix *a,
            size_t nr_rects)
{
  auto_sim_job (job, a, nr_rects);
  job->done = job_done;
  done = false;
  coder_submit (c, job);
}

static void
one_job (struct coder_sim *sim, struct coder *c, const struct matrix *a,
         size_t nr_rects)
{
  struct coder_job job;

  submit_one (&job, c, a, nr_rects);
  while (!done)
    assert_true (coder_sim_step (sim));
}

static double
rate_of (struct coder_sim *sim, struct coder *c, const struct matrix *a,
         size_t nr_rects, unsigned nr_jobs)
{
  double began = sim->now;

  for (unsigned i = 0; i < nr_jobs; i++)
    one_job (sim, c, a, nr_rects);
  return (double) nr_jobs * nr_rects * a->cols * cell_len /
    (sim->now - began);
}

static void
init_host (struct coder_sim *sim, const struct host *h)
{
  coder_sim_init (sim, 1000 * GB);
  sim->side[NEAR].fixed = NEAR_FIXED;
  sim->side[NEAR].rate = h->near * GB;
  sim->side[FAR].fixed = h->far_fixed * US;
  sim->side[FAR].rate = h->far * GB;
  for (unsigned s = 0; s < 2; s++)
    sim->side[s].shared = h->shared[s];
}

static struct coder *
start_auto (struct coder_sim *sim, const struct host *h,
            const struct matrix *a)
{
  struct coder *c;

  sim->side[NEAR].rate *= h->start_near;
  for (unsigned s = 0; s < 2; s++)
    sim->side[s].shared = h->start_shared[s];
  c = auto_sim_start (sim, a);
  sim->side[NEAR].rate /= h->start_near;
  for (unsigned s = 0; s < 2; s++)
    sim->side[s].shared = h->shared[s];
  return c;
}

/* ---- hosts -------------------------------------------------------------- */

static const struct host hosts[] = {
  { "as it was measured", 32, 16, 20, 52, 30,
    { 0.9, 0.95 }, { 0.9, 0.95 }, 1 },
  { "near was in the cache", 32, 16, 18, 52, 30,
    { 1, 1 }, { 1, 1 }, 2 },
  /* Far's threads get no processor while near has a long job. */
  { "near starves far", 32, 16, 20, 52, 30,
    { 0.85, 0.35 }, { 1, 1 }, 1 },
  { "near in the cache, and starves far", 32, 16, 20, 52, 30,
    { 0.85, 0.35 }, { 1, 1 }, 2 },
  { "far was starved", 32, 16, 20, 52, 30,
    { 1, 1 }, { 0.85, 0.35 }, 1 },
  { "memory", 10, 4, 65, 52, 30,
    { 0.754, 0.885 }, { 0.754, 0.885 }, 1 },
  { "memory, near in the cache", 10, 4, 65, 52, 30,
    { 0.754, 0.885 }, { 1, 0.885 }, 1.6 },
  { "memory, far was starved", 10, 4, 65, 52, 30,
    { 0.754, 0.885 }, { 0.9, 0.4 }, 1 },
  { "near is the better one", 4, 2, 148, 52, 30,
    { 0.5, 0.7 }, { 0.9, 0.9 }, 1 },
};
static const size_t sizes[] = { 1, 4, 16, 64, 170 };

/* Never slower than the better one alone, and with all that a cut gives
 * where it gives something.
 */
static void
test_throughput (void **state)
{
  unsigned nr_bad = 0;

  for (unsigned i = 0; i < ARRAY_LEN (hosts) * ARRAY_LEN (sizes) * 2; i++) {
    const struct host *h = &hosts[i / 2 / ARRAY_LEN (sizes)];
    size_t size = sizes[i / 2 % ARRAY_LEN (sizes)];
    const unsigned nr_jobs = 300;
    struct matrix *a = auto_sim_encode (h->cols, h->rows);
    struct coder_sim sim;
    struct coder *c;
    double alone[2], both, least;

    for (unsigned s = 0; s < 2; s++) {
      init_host (&sim, h);
      alone[s] = rate_of (&sim, &sim.side[s].coder, a, size, nr_jobs);
    }
    init_host (&sim, h);
    sim.side[NEAR].noise = sim.side[FAR].noise = noise[i % 2];
    c = start_auto (&sim, h, a);
    both = rate_of (&sim, c, a, size, nr_jobs);
    least = 0.95 * MAX (alone[NEAR], alone[FAR]);
    /* Where a rect is not much.  Of two that differ by chance the later one
     * ends the job.
     */
    if (size >= 64)
      least = MAX (least, (i % 2 ? 0.9 : 0.95) * best_cut (h, size));
    print_message ("%s, %ux%u, %zu rects, noise %g: near %.1f far %.1f auto "
                   "%.1f GB/s%s\n", h->name, h->cols, h->rows, size,
                   noise[i % 2], alone[NEAR] / GB, alone[FAR] / GB,
                   both / GB, both < least ? ": too slow" : "");
    nr_bad += both < least;
    coder_free (c);
    matrix_free (a);
  }
  assert_int_equal (nr_bad, 0);
}

/* ---- how soon ----------------------------------------------------------- */

/* When did each side end its part? */
static void
ends_of_parts (struct coder_sim *sim, struct coder *c, const struct matrix *a,
               size_t nr_rects, double ends[2])
{
  double began = sim->now;

  sim->ended[NEAR] = sim->ended[FAR] = began;
  one_job (sim, c, a, nr_rects);
  for (unsigned s = 0; s < 2; s++)
    ends[s] = sim->ended[s] - began;
}

/* Near's seconds for one unit of a job. */
static double
unit_seconds (const struct host *h, const struct matrix *a, size_t nr_rects)
{
  const struct coder_job job = {
    .matrix = a, .cell_len = cell_len, .nr_rects = nr_rects,
  };
  struct auto_units u;

  auto_units (&job, &u);
  return bytes_of (h, nr_rects) / u.nr / (h->near * h->shared[NEAR] * GB);
}

/* After twenty jobs those that are cut end at once, but for a unit: some of
 * them were to see what one side alone takes.
 */
static void
test_soon (void **state)
{
  unsigned nr_bad = 0, nr_cut = 0;

  for (unsigned i = 0; i < ARRAY_LEN (hosts) * ARRAY_LEN (sizes); i++) {
    const struct host *h = &hosts[i / ARRAY_LEN (sizes)];
    size_t size = sizes[i % ARRAY_LEN (sizes)];
    struct matrix *a = auto_sim_encode (h->cols, h->rows);
    struct coder_sim sim;
    struct coder *c;
    bool bad = false;

    init_host (&sim, h);
    c = start_auto (&sim, h, a);
    rate_of (&sim, c, a, size, 20);
    for (unsigned j = 0; j < 20; j++) {
      double ends[2], most;

      ends_of_parts (&sim, c, a, size, ends);
      if (ends[NEAR] == 0 || ends[FAR] == 0)
        continue;
      nr_cut++;
      most = 0.1 * MAX (ends[NEAR], ends[FAR]) + unit_seconds (h, a, size);
      if (fabs (ends[NEAR] - ends[FAR]) > most && !bad) {
        print_message ("%s, %zu rects: job %u ends after %.0f and %.0f us\n",
                       h->name, size, 21 + j, ends[NEAR] / US,
                       ends[FAR] / US);
        bad = true;
        nr_bad++;
      }
    }
    coder_free (c);
    matrix_free (a);
  }
  assert_int_equal (nr_bad, 0);
  assert_true (nr_cut > 20 * ARRAY_LEN (hosts));
}

/* ---- what changes meanwhile ------------------------------------------- */

static const struct host steady = {
  "", 10, 4, 65, 52, 30, { 0.754, 0.885 }, { 0.754, 0.885 }, 1
};

static struct coder *
start_steady (struct coder_sim *sim, unsigned near_leaves, struct matrix **a)
{
  *a = auto_sim_encode (steady.cols, steady.rows);
  init_host (sim, &steady);
  sim->near_leaves = near_leaves;
  return start_auto (sim, &steady, *a);
}

/* Near becomes slow while all goes on, and as fast again. */
static void
test_changes (void **state)
{
  const size_t size = 64;
  struct host h = steady;
  struct coder_sim sim;
  struct matrix *a;
  struct coder *c = start_steady (&sim, 0, &a);
  unsigned nr_bad = 0;

  for (unsigned i = 0; i < 3; i++) {
    double r;

    h.near = i == 1 ? 65. / 3 : 65;
    sim.side[NEAR].rate = h.near * GB;
    rate_of (&sim, c, a, size, 25);
    r = rate_of (&sim, c, a, size, 100);
    print_message ("near %.1f: %.1f of %.1f GB/s\n", h.near, r / GB,
                   best_cut (&h, size) / GB);
    nr_bad += r < 0.97 * best_cut (&h, size);
  }
  assert_int_equal (nr_bad, 0);
  coder_free (c);
  matrix_free (a);
}

/* Near has all its threads from when far has done its part. */
static void
test_leaves (void **state)
{
  const size_t size = 64;
  struct coder_sim sim;
  struct matrix *a;
  struct coder *c = start_steady (&sim, 3, &a);
  struct coder_job job;
  unsigned nr = 0;

  rate_of (&sim, c, a, size, 30);
  sim.side[NEAR].rate /= 3;
  for (unsigned i = 0; i < 10; i++) {
    const double began = sim.ended[FAR] = sim.now;

    submit_one (&job, c, a, size);
    for (;;) {
      assert_true (coder_sim_step (&sim));
      if (done)
        break;
      assert_int_equal (sim.side[NEAR].left, sim.ended[FAR] > began ? 0 : 3);
      nr += sim.ended[FAR] > began;
    }
  }
  assert_true (nr > 0);
  coder_free (c);
  matrix_free (a);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_throughput),
    cmocka_unit_test (test_soon),
    cmocka_unit_test (test_changes),
    cmocka_unit_test (test_leaves),
  };

  return cmocka_run_group_tests (tests, auto_sim_set_up, auto_sim_tear_down);
}
