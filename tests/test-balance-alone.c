/* gpuraid: where jobs go that come one at a time: what coder auto learns of
 * them, with coders that only take (virtual) time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "common/bits.h"
#include "gf/matrix.h"
#include "tests/auto-load.h"

enum { k = 10, m = 4 };

static struct matrix *encode;

static void
expect_near (const struct coder_sim *sim)
{
  print_message ("%.0f MB near, %.0f far\n", sim->side[0].bytes / 1e6,
                 sim->side[1].bytes / 1e6);
  assert_true (sim->side[0].bytes > 9 * sim->side[1].bytes);
}

/* What start measured from memory may be in a cache later. */
static void
test_small_in_cache (void **state)
{
  static const size_t one[] = { 1 };
  const struct pair p = { 55 * US, 72 * GB, 0, 20 * US, 49 * GB, 97 * GB };
  struct coder_sim sim;
  struct coder *c;

  pair_init (&sim, &p);
  c = auto_sim_start (&sim, encode);
  sim.side[0].bytes = sim.side[1].bytes = 0;
  /* The first job is slow for a reason of its own. */
  sim.side[0].fixed = 150 * US;
  auto_load (&sim, c, encode, 1, one, 1, 1);
  sim.side[0].fixed = 2 * US;
  auto_load (&sim, c, encode, 1, one, 1, 120);
  expect_near (&sim);
  coder_free (c);
}

/* So may larger jobs, which start would cut in two. */
static void
test_large_in_cache (void **state)
{
  static const size_t few[] = { 16 };
  const struct pair p = { 1 * US, 40 * GB, 0, 30 * US, 49 * GB, 500 * GB };
  struct coder_sim sim;
  struct coder *c;

  pair_init (&sim, &p);
  c = auto_sim_start (&sim, encode);
  sim.side[0].bytes = sim.side[1].bytes = 0;
  sim.side[0].rate = 150 * GB;
  sim.side[0].shared = 0.3;
  auto_load (&sim, c, encode, 1, few, 1, 60);
  expect_near (&sim);
  coder_free (c);
}

/* Near does rate bytes a second; each is in the other's way. */
static struct coder *
start (struct coder_sim *sim, double rate)
{
  const struct pair p = { 1 * US, rate, 0, 30 * US, 49 * GB, 500 * GB };
  struct coder *c;

  pair_init (sim, &p);
  c = auto_sim_start (sim, encode);
  sim->side[0].bytes = sim->side[1].bytes = 0;
  sim->side[0].shared = sim->side[1].shared = 0.3;
  return c;
}

/* For a second and a half, with pauses that do not change what is best. */
static void
go_on (struct coder_sim *sim, struct coder *c)
{
  static const size_t few[] = { 16 };
  double began = sim->now;

  sim->side[0].bytes = sim->side[1].bytes = 0;
  for (unsigned i = 0; i < 20; i++) {
    auto_load (sim, c, encode, 1, few, 1, 100);
    sim->now += 0.05;
  }
  assert_true (sim->now - began > 1.2);
  print_message ("%.0f MB near, %.0f far\n", sim->side[0].bytes / 1e6,
                 sim->side[1].bytes / 1e6);
}

/* What is tried shows what it takes only when it is warm. */
static void
test_cold (void **state)
{
  struct coder_sim sim;
  struct coder *c = start (&sim, 30 * GB);

  sim.side[0].cold = sim.side[1].cold = 1.2;
  go_on (&sim, c);
  assert_true (sim.side[1].bytes > 30 * sim.side[0].bytes);
  /* In a cache now.  It is seen when near is tried again. */
  sim.side[0].rate = 85 * GB;
  go_on (&sim, c);
  go_on (&sim, c);
  assert_true (sim.side[0].bytes > 30 * sim.side[1].bytes);
  /* Not much better, but it stays so while far is tried, and after pauses. */
  sim.side[0].rate = 55 * GB;
  go_on (&sim, c);
  assert_true (sim.side[0].bytes > 30 * sim.side[1].bytes);
  go_on (&sim, c);
  assert_true (sim.side[0].bytes > 30 * sim.side[1].bytes);
  coder_free (c);
}

/* Job by job, with pauses. */
static void
now_and_then (struct coder_sim *sim, struct coder *c, unsigned nr_jobs)
{
  static const size_t few[] = { 16 };

  sim->side[0].bytes = sim->side[1].bytes = 0;
  for (unsigned i = 0; i < nr_jobs; i++) {
    auto_load (sim, c, encode, 1, few, 1, 1);
    sim->now += 0.005;
  }
  print_message ("%.0f MB near, %.0f far\n", sim->side[0].bytes / 1e6,
                 sim->side[1].bytes / 1e6);
}

/* Jobs that come now and then are always cold: then that is what counts. */
static void
test_now_and_then (void **state)
{
  struct coder_sim sim;
  struct coder *c = start (&sim, 55 * GB);

  sim.side[0].cold = 1.2;
  now_and_then (&sim, c, 100);
  now_and_then (&sim, c, 300);
  assert_true (sim.side[1].bytes > 9 * sim.side[0].bytes);
  /* And is seen to change, later. */
  sim.side[0].cold = 0;
  now_and_then (&sim, c, 600);
  now_and_then (&sim, c, 300);
  assert_true (sim.side[0].bytes > 9 * sim.side[1].bytes);
  coder_free (c);
}

/* Slow when it was tried, slower than it was measured, but not for long. */
static void
test_slow_at_first (void **state)
{
  struct coder_sim sim;
  struct coder *c = start (&sim, 30 * GB);

  sim.side[0].rate = 5 * GB;
  go_on (&sim, c);
  assert_true (sim.side[1].bytes > 30 * sim.side[0].bytes);
  sim.side[0].rate = 85 * GB;
  for (unsigned i = 0; i < 5; i++)
    go_on (&sim, c);
  assert_true (sim.side[0].bytes > 30 * sim.side[1].bytes);
  coder_free (c);
}

/* Jobs that are interrupted now and then say nothing of the others. */
static void
test_interrupted (void **state)
{
  static const size_t few[] = { 16 };
  struct coder_sim sim;
  struct coder *c = start (&sim, 55 * GB);

  sim.side[0].interrupted = 25;
  auto_load (&sim, c, encode, 1, few, 1, 2000);
  expect_near (&sim);
  coder_free (c);
}

static int
set_up (void **state)
{
  encode = auto_sim_encode (k, m);
  return auto_sim_set_up (state);
}

static int
tear_down (void **state)
{
  matrix_free (encode);
  return auto_sim_tear_down (state);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_small_in_cache),
    cmocka_unit_test (test_large_in_cache),
    cmocka_unit_test (test_cold),
    cmocka_unit_test (test_now_and_then),
    cmocka_unit_test (test_slow_at_first),
    cmocka_unit_test (test_interrupted),
  };

  return cmocka_run_group_tests (tests, set_up, tear_down);
}
