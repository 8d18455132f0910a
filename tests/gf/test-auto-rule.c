/* gpuraid: coder auto in virtual time: what is measured, where jobs go, and the
 * resulting rates.
 *
 * run-tests: check=plain,address,thread
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/bits.h"
#include "gf/auto/measure.h"
#include "tests/gf-reference.h"
#include "tests/gf/auto-sim.h"

static struct auto_sim sim;
static struct matrix *a;

static struct auto_sim_side *const cpu = &sim.side[SIM_CPU];
static struct auto_sim_side *const gpu = &sim.side[SIM_GPU];

/* ---- what is measured --------------------------------------------------- */

static int
measure (struct auto_rates *found)
{
  struct coder_auto_clock clock;
  const struct auto_measure m = {
    .cpu = &cpu->coder, .gpu = &gpu->coder, .cpu_threads = cpu->nr_workers,
    .matrix = a, .cell_len = auto_sim_cell_len, .arena = auto_sim_arena,
    .arena_len = auto_sim_arena_len, .clock = &clock,
  };

  auto_sim_clock (&sim, &clock);
  return auto_measure (&m, found);
}

static void
assert_near (double x, double wanted)
{
  print_message ("%g, wanted %g\n", x, wanted);
  assert_true (fabs (x - wanted) <= 0.05 * wanted);
}

static void
test_rates (void **state)
{
  struct auto_rates found;
  const double began = sim.now;

  assert_int_equal (measure (&found), 0);
  assert_near (found.cpu, 75 * GB);
  assert_near (found.gpu, 45 * GB);
  /* (20 us - 2 * 1 us) / (2 * 14 / 75 GB/s - 1 / 45 GB/s), by 4 rows. */
  assert_near (found.threshold, 4 * 51266);
  assert_true (sim.now - began < 0.2);
}

/* One worker is twice as fast as the device: jobs of a slice are divided. */
static void
test_never_sooner (void **state)
{
  struct auto_rates found;

  cpu->nr_workers = 7;
  cpu->rate = 7 * 100 * GB;
  assert_int_equal (measure (&found), 0);
  assert_near (found.threshold, 4 * AUTO_GPU_SLICE * 45 * GB);
}

static void
test_useless (void **state)
{
  struct auto_rates found;

  gpu->rate = 1 * GB;
  assert_int_equal (measure (&found), 0);
  assert_true (found.threshold == UINT64_MAX);
}

static void
test_not_measured (void **state)
{
  struct auto_rates found = { .threshold = 7 };

  gpu->error = EIO;
  assert_int_equal (measure (&found), EIO);
  assert_int_equal (found.threshold, 7);
}

/* ---- jobs --------------------------------------------------------------- */

enum { max_clients = 16 };

struct client {
  struct coder_job job;         /* first */
  struct coder *coder;
  unsigned nr_left, nr_done;    /* jobs */
  unsigned nr_errors;
  double ended;
};

static void
client_done (struct coder_job *job, int error)
{
  struct client *cl = (struct client *) job;

  cl->nr_done++;
  cl->nr_errors += error != 0;
  cl->ended = sim.now;
  if (cl->nr_left > 0) {
    cl->nr_left--;
    coder_submit (cl->coder, &cl->job);
  }
}

/* Jobs, each client's one after the other: bytes a second. */
static double
load (struct coder *c, struct client *cl, unsigned nr, size_t nr_rects,
      unsigned nr_each)
{
  const double began = sim.now;
  double bytes = 0;

  for (unsigned i = 0; i < nr; i++) {
    cl[i] = (struct client) { .coder = c, .nr_left = nr_each - 1 };
    auto_sim_job (&cl[i].job, a, nr_rects);
    cl[i].job.done = client_done;
    bytes += nr_each * auto_sim_bytes (&cl[i].job);
  }
  for (unsigned i = 0; i < nr; i++)
    coder_submit (c, &cl[i].job);
  while (auto_sim_step (&sim))
    ;
  for (unsigned i = 0; i < nr; i++) {
    assert_int_equal (cl[i].nr_done, nr_each);
    assert_int_equal (cl[i].nr_errors, 0);
  }
  return bytes / (sim.now - began);
}

static double
lone_seconds (struct coder *c, size_t nr_rects)
{
  struct client cl;
  const double rate = load (c, &cl, 1, nr_rects, 1);

  return auto_sim_bytes (&cl.job) / rate;
}

/* A single stripe goes to the device, and whole to the CPU if this needs less
 * than half of its time.
 */
static void
test_lone_stripe (void **state)
{
  struct coder *c = auto_sim_start (&sim, a);
  struct client cl = { .coder = c };

  assert_near (lone_seconds (c, 1), 20 * US + 10 * 65536 / (45 * GB));
  assert_int_equal (gpu->nr_jobs, 1);
  assert_int_equal (cpu->nr_jobs, 0);

  auto_sim_job (&cl.job, a, 1);
  cl.job.cell_len = 4096;
  cl.job.done = client_done;
  coder_submit (c, &cl.job);
  while (auto_sim_step (&sim))
    ;
  assert_int_equal (cl.nr_done, 1);
  assert_int_equal (gpu->nr_jobs, 1);
  assert_int_equal (cpu->nr_jobs, 1);
  coder_free (c);
}

/* Other sizes take no longer than on the device, and large ones no longer
 * than both need for them together, and some slices.
 */
static void
test_lone_jobs (void **state)
{
  struct coder *c = auto_sim_start (&sim, a);

  for (size_t n = 1; n <= 512; n *= 2) {
    const double bytes = n * 10 * 65536;
    const double t = lone_seconds (c, n);

    print_message ("%zu rects: %g us\n", n, t / US);
    assert_true (t <= 1.1 * (20 * US + bytes / gpu->rate));
    assert_true (t <= bytes / (cpu->rate + gpu->rate) + 175 * US);
  }
  coder_free (c);
}

/* Both do what they can, the CPU no more at once than it has workers.  A few
 * small jobs are not shared with the CPU.
 */
static void
test_load (void **state)
{
  static const size_t nr_rects[] = { 1, 3, 20, 300 };
  struct coder *c = auto_sim_start (&sim, a);
  struct client cl[max_clients];

  for (unsigned i = 0; i < ARRAY_LEN (nr_rects); i++) {
    const unsigned nr = nr_rects[i] == 1 ? max_clients : 8;
    const double rate = load (c, cl, nr, nr_rects[i], 4000 / nr_rects[i]);

    print_message ("%zu rects: %g GB/s\n", nr_rects[i], rate / GB);
    assert_true (rate >= (nr_rects[i] < 20 ? 0.9 * gpu->rate
                                           : 0.9 * (cpu->rate + gpu->rate)));
  }
  assert_true (cpu->most_busy <= cpu->nr_workers);
  coder_free (c);
}

/* Those that came first end first. */
static void
test_order (void **state)
{
  struct coder *c = auto_sim_start (&sim, a);
  struct client cl[8];

  load (c, cl, 8, 200, 1);
  for (unsigned i = 1; i < 8; i++)
    assert_true (cl[i].ended >= cl[i-1].ended);
  coder_free (c);
}

/* A CPU with other work gets only a few slices each second, and comes back. */
static void
test_rest (void **state)
{
  struct coder *c = auto_sim_start (&sim, a);
  struct client cl[8];
  uint64_t nr_jobs;
  double rate;

  cpu->slowness = 7;
  /* For about two seconds. */
  rate = load (c, cl, 8, 300, 60);
  print_message ("%g GB/s, %u slices of the CPU\n", rate / GB,
                 (unsigned) cpu->nr_jobs);
  assert_true (rate >= 0.95 * gpu->rate);
  assert_true (cpu->nr_jobs < 300);

  cpu->slowness = 1;
  sim.now += 1.1;
  nr_jobs = cpu->nr_jobs;
  rate = load (c, cl, 8, 300, 10);
  assert_true (rate >= 0.9 * (cpu->rate + gpu->rate));
  assert_true (cpu->nr_jobs - nr_jobs > 1000);
  coder_free (c);
}

/* A CPU that was measured in its cache, and takes four times as long from
 * memory, still does as much as the device.
 */
static void
test_memory (void **state)
{
  struct coder *c;
  struct client cl[8];

  cpu->rate = 4.2 * gpu->rate;  /* slices of 2 rects */
  c = auto_sim_start (&sim, a);
  cpu->slowness = 4;
  assert_true (load (c, cl, 8, 300, 30) >= 0.9 * 2 * gpu->rate);
  coder_free (c);
}

/* One slice that takes long does not matter. */
static void
test_one_slow (void **state)
{
  struct coder *c = auto_sim_start (&sim, a);
  struct client cl[8];

  cpu->late = 100;
  assert_true (load (c, cl, 8, 300, 10) >= 0.8 * (cpu->rate + gpu->rate));
  coder_free (c);
}

/* Without workers the device does what is large. */
static void
test_no_workers (void **state)
{
  struct client cl[8];
  struct coder *c;

  cpu->nr_workers = 0;
  c = auto_sim_start (&sim, NULL);
  assert_true (load (c, cl, 8, 300, 4) >= 0.9 * gpu->rate);
  assert_int_equal (cpu->nr_jobs, 0);
  coder_free (c);
}

static int
begin (void **state)
{
  auto_sim_init (&sim);
  return 0;
}

static int
set_up (void **state)
{
  auto_sim_arena = ref_alloc (auto_sim_arena_len);
  a = auto_sim_matrix (10, 4);
  return 0;
}

static int
tear_down (void **state)
{
  matrix_free (a);
  free (auto_sim_arena);
  return 0;
}

int
main (void)
{
#define TEST(f) cmocka_unit_test_setup (f, begin)
  const struct CMUnitTest tests[] = {
    TEST (test_rates), TEST (test_never_sooner), TEST (test_useless),
    TEST (test_not_measured), TEST (test_lone_stripe), TEST (test_lone_jobs),
    TEST (test_load), TEST (test_order), TEST (test_rest),
    TEST (test_memory), TEST (test_one_slow), TEST (test_no_workers),
  };

  return cmocka_run_group_tests (tests, set_up, tear_down);
}
