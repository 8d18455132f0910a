/* gpuraid: what coder auto chooses, with coders that only take (virtual)
 * time.
 *
 * run-tests: no-thread
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/bits.h"
#include "gf/balance.h"
#include "gf/matrix.h"
#include "tests/auto-load.h"
#include "tests/gf-reference.h"

enum { k = 10, m = 4, cell_len = auto_sim_cell_len };

static struct matrix *encode, *one_row;

#define NR_JOBS 200

/* The three side by side; auto over the better alone. */
static double
gain (const struct pair *p, const struct matrix *measured,
      const struct matrix *a, unsigned nr_streams, const size_t *nr_rects,
      unsigned nr_sizes, unsigned nr_jobs, double *near_part)
{
  struct coder_sim sim;
  struct coder *c;
  double alone[2], both;

  for (unsigned i = 0; i < 2; i++) {
    pair_init (&sim, p);
    alone[i] = auto_load (&sim, &sim.side[i].coder, a, nr_streams, nr_rects,
                           nr_sizes, nr_jobs);
  }
  pair_init (&sim, p);
  c = auto_sim_start (&sim, measured);
  sim.side[0].bytes = sim.side[1].bytes = 0;
  both = auto_load (&sim, c, a, nr_streams, nr_rects, nr_sizes, nr_jobs);
  if (near_part)
    *near_part = sim.side[0].bytes / (sim.side[0].bytes + sim.side[1].bytes);
  coder_free (c);
  return both / MAX (alone[0], alone[1]);
}

static const size_t sizes[] = { 1, 2, 5, 16, 60, 250 };
static const unsigned streams[] = { 1, 4, 16 };

static const struct pair host16 = {
  1 * US, 72 * GB, 10 * GB, 27 * US, 49 * GB, 97 * GB
};

/* ---- what start finds -------------------------------------------------- */

static void
test_measured (void **state)
{
  static const struct pair p = {
    1 * US, 10 * GB, 0, 30 * US, 49 * GB, 1000 * GB
  };
  /* fixed + bytes / rate of both are the same here */
  const double cross = 29 * US / (1 / (10 * GB) - 1 / (49 * GB));
  struct coder_auto_measured f;
  struct coder_sim sim;
  struct coder *c;
  double began;

  pair_init (&sim, &p);
  began = sim.now;
  assert_false (coder_auto_measured (&sim.side[0].coder, &f));
  c = auto_sim_start (&sim, encode);
  assert_true (sim.now - began < 0.3);
  assert_true (coder_auto_measured (c, &f));
  assert_int_equal (f.rows, m);
  assert_int_equal (f.cols, k);
  assert_true (f.nr_points >= 5);
  for (unsigned i = 0; i < f.nr_points; i++) {
    assert_int_equal (f.point[i].bytes, f.point[i].nr_rects * k *
                      f.point[i].cell_len);
    assert_true (i == 0 || f.point[i].bytes > f.point[i-1].bytes);
    assert_float_equal (f.point[i].near * 1e6,
                        1 + f.point[i].bytes / (10 * GB) * 1e6, .1);
    assert_float_equal (f.point[i].far * 1e6,
                        30 + f.point[i].bytes / (49 * GB) * 1e6, .1);
  }
  assert_true (f.point[f.nr_points-1].both > 0);
  assert_float_equal (f.near_rate / GB, 10, .2);
  assert_float_equal (f.far_rate / GB, 49, 1);
  assert_float_equal (f.near_shared_rate / GB, 10, .5);
  assert_float_equal (f.far_shared_rate / GB, 49, 2);
  assert_float_equal (f.crossover / cross, 1, .02);
  coder_free (c);

  pair_init (&sim, &host16);
  c = auto_sim_start (&sim, encode);
  assert_true (coder_auto_measured (c, &f));
  assert_float_equal ((f.near_shared_rate + f.far_shared_rate) / GB, 97, 5);
  coder_free (c);

  /* Never, and always. */
  pair_init (&sim, &(struct pair) { 1 * US, 72 * GB, 0, 30 * US, 49 * GB,
                                    200 * GB });
  c = auto_sim_start (&sim, encode);
  assert_true (coder_auto_measured (c, &f));
  assert_true (f.crossover == UINT64_MAX);
  coder_free (c);
  pair_init (&sim, &(struct pair) { 9 * US, 1 * GB, 0, 5 * US, 49 * GB,
                                    200 * GB });
  c = auto_sim_start (&sim, encode);
  assert_true (coder_auto_measured (c, &f));
  assert_int_equal (f.crossover, 0);
  coder_free (c);
}

/* An arena that has no room for one rect, and none at all. */
static void
test_not_measured (void **state)
{
  static const size_t one[] = { 1 };
  struct coder_auto_measured f;
  struct coder_sim sim;

  for (unsigned i = 0; i < 2; i++) {
    struct coder *c;

    pair_init (&sim, &host16);
    c = auto_sim_new (&sim, encode);
    assert_int_equal (coder_start (c, i ? auto_sim_arena : NULL,
                                   i ? (k + m) * cell_len - 1 : 0), 0);
    assert_false (coder_auto_measured (c, &f));
    assert_true (auto_load (&sim, c, encode, 1, one, 1, 10) > 0);
    coder_free (c);
  }
}

/* ---- where jobs go ----------------------------------------------------- */

static void
test_small_and_large (void **state)
{
  static const struct pair p = {
    1 * US, 10 * GB, 0, 200 * US, 49 * GB, 1000 * GB
  };
  static const size_t small[] = { 1 }, large[] = { 256 };
  double near_part;

  gain (&p, encode, encode, 1, small, 1, NR_JOBS, &near_part);
  assert_true (near_part > 0.97);
  /* To both: 10 of 59 near. */
  gain (&p, encode, encode, 1, large, 1, NR_JOBS, &near_part);
  assert_float_equal (near_part, 10. / 59, 0.03);
}

/* Few rows are quick to do near. */
static void
test_rows (void **state)
{
  static const size_t eight[] = { 8 };
  struct coder_sim sim;

  for (unsigned i = 0; i < 2; i++) {
    struct coder *c;

    coder_sim_init (&sim, 1000 * GB);
    sim.side[0].rate = 40 * GB;
    sim.side[0].row_cost = 3;
    sim.side[1].fixed = 150 * US;
    sim.side[1].rate = 49 * GB;
    c = auto_sim_start (&sim, encode);
    sim.side[0].bytes = sim.side[1].bytes = 0;
    auto_load (&sim, c, i ? encode : one_row, 1, eight, 1, 20);
    if (i == 0)
      assert_int_equal (sim.side[1].bytes, 0);
    else
      assert_true (sim.side[1].bytes > sim.side[0].bytes);
    coder_free (c);
  }
}

/* ---- throughput -------------------------------------------------------- */

/* Never slower than the better one alone. */
static void
test_never_slower (void **state)
{
  static const double near_rate[] = { 2, 10, 30, 72, 150 };
  static const double far_fixed[] = { 10, 30, 120, 1000 };
  static const double far_rate[] = { 5, 25, 49, 100 };
  static const double single[] = { 0, 0.1, 0.5 };       /* of the rate */
  static const double ceiling[] = { 0, 97, 1000 };      /* 0: the better one */
  /* All of it takes half a minute. */
  const unsigned nr = getenv ("ALL") ? 3 : 2;
#if defined __SANITIZE_THREAD__ || defined __SANITIZE_ADDRESS__
  const unsigned step = 7;
#else
  const unsigned step = 1;
#endif
  double worst = 10, least;
  unsigned nr_bad = 0;

  for (unsigned n = 0; n < 5 * 4 * 4 * nr * nr; n += step) {
    struct pair p = {
      .near_fixed = 1 * US, .near_rate = near_rate[n % 5] * GB,
      .far_fixed = far_fixed[n / 5 % 4] * US,
      .far_rate = far_rate[n / 20 % 4] * GB,
    };

    p.near_single = single[n / 80 % nr] * p.near_rate;
    p.ceiling = MAX (ceiling[n / 80 / nr] * GB, MAX (p.near_rate, p.far_rate));
    for (unsigned i = 0; i < ARRAY_LEN (streams); i++)
      for (unsigned s = 0; s <= ARRAY_LEN (sizes); s++) {
        bool mix = s == ARRAY_LEN (sizes);
        double g = gain (&p, encode, encode, streams[i],
                         mix ? sizes : &sizes[s], mix ? s : 1, NR_JOBS, NULL);

        /* A little is lost where both together are no faster than one, at
         * first more: until one alone was tried.
         */
        if (g < 0.94 && g >= 0.9)
          g = gain (&p, encode, encode, streams[i], mix ? sizes : &sizes[s],
                    mix ? s : 1, 10 * NR_JOBS, NULL);
        least = p.far_fixed > 500 * US ? 0.85 : 0.94;
        if (g < least)
          print_message ("near %g GB/s (%g), far %g us %g GB/s, ceiling %g: "
                         "%u streams of %zu%s: %.3f\n", p.near_rate / GB,
                         p.near_single / GB, p.far_fixed / US,
                         p.far_rate / GB, p.ceiling / GB, streams[i],
                         mix ? 0 : sizes[s], mix ? " (mixed)" : "", g);
        worst = MIN (worst, g);
        nr_bad += g < least;
      }
  }
  print_message ("worst: %.3f of the better one alone\n", worst);
  assert_int_equal (nr_bad, 0);
}

/* Near is told to leave processors while far has something to do, and only
 * then.
 */
static void
test_leaves (void **state)
{
  static const size_t nr_rects[] = { 1, 60 };
  struct coder_sim sim;
  struct coder *c;

  for (unsigned n = 0; n < ARRAY_LEN (streams); n++) {
    struct sim_side *near = &sim.side[NEAR];

    pair_init (&sim, &(struct pair) { 1 * US, 30 * GB, 0, 30 * US, 30 * GB,
                                      200 * GB });
    sim.near_leaves = 3;
    c = auto_sim_start (&sim, encode);
    near->least_left = 9;
    auto_load (&sim, c, encode, 1, nr_rects, 2, 10);
    near->most_left = 0;
    auto_load (&sim, c, encode, streams[n], nr_rects, 2, 500);
    assert_int_equal (near->most_left, 0);
    assert_int_equal (near->least_left, 3);
    coder_free (c);
  }
}

/* Where each side is in the other's way one alone is used, which gets jobs
 * whole; much later all is open again.
 */
static void
test_one_alone (void **state)
{
  static const size_t large[] = { 60 };
  struct coder_sim sim;
  struct coder *c;

  for (unsigned best = NEAR; best <= FAR; best++) {
    unsigned nr_jobs;

    pair_init (&sim, &(struct pair) { 1 * US, 30 * GB, 0, 30 * US, 30 * GB,
                                      200 * GB });
    c = auto_sim_start (&sim, encode);
    sim.side[best].shared = 0.4;
    sim.side[1 - best].shared = 0.2;
    sim.side[best].rate *= 1.5;
    auto_load (&sim, c, encode, 4, large, 1, 2000);
    /* But for trials. */
    nr_jobs = sim.side[1 - best].nr_jobs;
    for (unsigned i = 0; i < 5; i++) {
      auto_load (&sim, c, encode, 4, large, 1, 50);
      if (sim.side[1 - best].nr_jobs == nr_jobs)
        break;
      nr_jobs = sim.side[1 - best].nr_jobs;
    }
    nr_jobs = sim.side[best].nr_jobs;
    auto_load (&sim, c, encode, 4, large, 1, 20);
    assert_int_equal (sim.side[best].nr_jobs, nr_jobs + 20);
    sim.now += 10;
    nr_jobs = sim.side[1 - best].nr_jobs;
    auto_load (&sim, c, encode, 4, large, 1, 4);
    assert_true (sim.side[1 - best].nr_jobs > nr_jobs);
    coder_free (c);
  }
}

/* Both are used where that pays, also where it did not at the start, and the
 * other way round.
 */
static void
test_start_was_wrong (void **state)
{
  static const size_t large[] = { 60 };
  const struct pair p = { 1 * US, 40 * GB, 0, 30 * US, 30 * GB, 200 * GB };

  for (unsigned later = 0; later < 2; later++) {
    struct coder_sim sim;
    struct coder *c;
    double r;

    pair_init (&sim, &p);
    for (unsigned s = 0; s < 2; s++)
      sim.side[s].shared = later ? 0.4 : 0;
    c = auto_sim_start (&sim, encode);
    for (unsigned s = 0; s < 2; s++)
      sim.side[s].shared = later ? 0 : 0.4;
    r = auto_load (&sim, c, encode, 4, large, 1, 4000);
    print_message ("%.1f GB/s\n", r / GB);
    assert_true (r > (later ? 60 * GB : 36 * GB));
    coder_free (c);
  }
}

/* Small jobs, of which one side alone does the most, and then large ones, of
 * which both do.
 */
static void
test_large_after_small (void **state)
{
  static const size_t small[] = { 8 }, large[] = { 100 };
  struct coder_sim sim;
  struct coder *c;
  double r;

  pair_init (&sim, &(struct pair) { 1 * US, 5 * GB, 0, 30 * US, 7.5 * GB,
                                    100 * GB });
  c = auto_sim_start (&sim, encode);
  sim.side[NEAR].shared = sim.side[FAR].shared = 0.4;
  auto_load (&sim, c, encode, 16, small, 1, 2000);
  sim.side[NEAR].shared = sim.side[FAR].shared = 0;
  r = auto_load (&sim, c, encode, 4, large, 1, 2000);
  print_message ("%.1f GB/s\n", r / GB);
  assert_true (r > 11 * GB);
  coder_free (c);
}

static void
test_both (void **state)
{
  static const size_t large[] = { 16, 64, 256 };

  for (unsigned i = 0; i < ARRAY_LEN (streams); i++) {
    double g = gain (&host16, encode, encode, streams[i], large,
                     ARRAY_LEN (large), NR_JOBS, NULL);

    print_message ("%u streams: %.2f\n", streams[i], g);
    assert_true (g >= 1.25);
  }
}

/* ---- what changes ------------------------------------------------------ */

static void
test_far_gets_slow (void **state)
{
  static const size_t some[] = { 4, 64 };

  for (unsigned i = 0; i < ARRAY_LEN (streams); i++) {
    struct coder_sim sim;
    struct coder *c;
    double near, after, far_bytes, back;

    pair_init (&sim, &host16);
    near = auto_load (&sim, &sim.side[0].coder, encode, streams[i], some, 2,
                       400);
    pair_init (&sim, &host16);
    c = auto_sim_start (&sim, encode);
    auto_load (&sim, c, encode, streams[i], some, 2, 400);
    sim.side[1].rate /= 10;
    sim.side[1].fixed *= 10;
    auto_load (&sim, c, encode, streams[i], some, 2, 400);
    far_bytes = sim.side[1].bytes;
    after = auto_load (&sim, c, encode, streams[i], some, 2, 2000);
    far_bytes = sim.side[1].bytes - far_bytes;
    /* Far may still do what it is good for: a tenth. */
    assert_true (after > 0.95 * near);
    assert_true (far_bytes < 0.1 * 2000 * 34 * k * cell_len);

    /* As good as new: found out, later. */
    sim.side[1].rate *= 10;
    sim.side[1].fixed /= 10;
    for (unsigned j = 0; j < 60; j++) {
      sim.now += 1;
      auto_load (&sim, c, encode, streams[i], some, 2, 100);
    }
    back = auto_load (&sim, c, encode, streams[i], some, 2, 2000);
    print_message ("%u streams: %.1f GB/s near alone, %.1f with a slow far, "
                   "%.1f with a good one again\n", streams[i], near / GB,
                   after / GB, back / GB);
    assert_true (back > 1.2 * near);
    coder_free (c);
  }
}

/* What far fails is done by near, and then far is not asked. */
static void
test_far_fails (void **state)
{
  static const size_t large[] = { 64 };
  struct coder_sim sim;
  struct coder *c;
  unsigned before, nr;

  pair_init (&sim, &host16);
  c = auto_sim_start (&sim, encode);
  sim.side[1].fails = true;
  auto_load (&sim, c, encode, 4, large, 1, 50);
  before = sim.side[1].nr_jobs;
  auto_load (&sim, c, encode, 4, large, 1, 200);
  nr = sim.side[1].nr_jobs - before;
  print_message ("%u of 200 went to a coder that fails\n", nr);
  assert_true (nr <= 10);
  coder_free (c);
}

static int
set_up (void **state)
{
  uint8_t coef[m * k];

  matrix_rs_parity (k, m, coef);
  encode = auto_sim_encode (k, m);
  one_row = matrix_new (1, k, coef + k);
  assert_non_null (one_row);
  return auto_sim_set_up (state);
}

static int
tear_down (void **state)
{
  matrix_free (encode);
  matrix_free (one_row);
  return auto_sim_tear_down (state);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_measured),
    cmocka_unit_test (test_not_measured),
    cmocka_unit_test (test_small_and_large),
    cmocka_unit_test (test_rows),
    cmocka_unit_test (test_leaves),
    cmocka_unit_test (test_one_alone),
    cmocka_unit_test (test_start_was_wrong),
    cmocka_unit_test (test_large_after_small),
    cmocka_unit_test (test_both),
    cmocka_unit_test (test_far_gets_slow),
    cmocka_unit_test (test_far_fails),
    cmocka_unit_test (test_never_slower),
  };

  return cmocka_run_group_tests (tests, set_up, tear_down);
}
