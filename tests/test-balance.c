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
#include "tests/auto-sim.h"
#include "tests/gf-reference.h"

enum { k = 10, m = 4, cell_len = auto_sim_cell_len, max_streams = 16 };

static struct matrix *encode, *one_row;

/* Jobs, each submitted when the last one of its stream is done. */
struct stream {
  struct coder_job job;         /* first */
  struct load *load;
};

struct load {
  struct coder *coder;
  const struct matrix *matrix;
  const size_t *nr_rects;       /* of the jobs, in turn */
  unsigned nr_sizes, next;
  double left, done;            /* bytes */
  unsigned errors;
  struct stream stream[max_streams];
};

static void stream_done (struct coder_job *job, int error);

static void
submit_next (struct stream *s)
{
  struct load *l = s->load;

  auto_sim_job (&s->job, l->matrix, l->nr_rects[l->next++ % l->nr_sizes]);
  s->job.done = stream_done;
  l->left -= auto_sim_bytes (&s->job);
  coder_submit (l->coder, &s->job);
}

static void
stream_done (struct coder_job *job, int error)
{
  struct stream *s = (struct stream *) job;

  s->load->errors += error != 0;
  s->load->done += auto_sim_bytes (job);
  if (s->load->left > 0)
    submit_next (s);
}

/* Bytes a second of nr_streams. */
static double
throughput (struct coder_sim *sim, struct coder *c, const struct matrix *a,
            unsigned nr_streams, const size_t *nr_rects, unsigned nr_sizes,
            unsigned nr_jobs)
{
  struct load *l = ref_alloc (sizeof *l);
  double began = sim->now, r;

  memset (l, 0, sizeof *l);
  l->coder = c;
  l->matrix = a;
  l->nr_rects = nr_rects;
  l->nr_sizes = nr_sizes;
  for (unsigned i = 0; i < nr_sizes; i++)
    l->left += (double) nr_rects[i] * k * cell_len * nr_jobs / nr_sizes;
  for (unsigned i = 0; i < nr_streams; i++) {
    l->stream[i].load = l;
    submit_next (&l->stream[i]);
  }
  while (coder_sim_step (sim))
    ;
  assert_int_equal (l->errors, 0);
  r = l->done / (sim->now - began);
  free (l);
  return r;
}

struct pair {
  double near_fixed, near_rate, near_single;
  double far_fixed, far_rate;
  double ceiling;
};

static void
init_pair (struct coder_sim *sim, const struct pair *p)
{
  coder_sim_init (sim, p->ceiling);
  sim->side[0].fixed = p->near_fixed;
  sim->side[0].rate = p->near_rate;
  sim->side[0].single = p->near_single;
  sim->side[0].small_len = 1 << 20;
  sim->side[1].fixed = p->far_fixed;
  sim->side[1].rate = p->far_rate;
}

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
    init_pair (&sim, p);
    alone[i] = throughput (&sim, &sim.side[i].coder, a, nr_streams, nr_rects,
                           nr_sizes, nr_jobs);
  }
  init_pair (&sim, p);
  c = auto_sim_start (&sim, measured);
  sim.side[0].bytes = sim.side[1].bytes = 0;
  both = throughput (&sim, c, a, nr_streams, nr_rects, nr_sizes, nr_jobs);
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

  init_pair (&sim, &p);
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

  init_pair (&sim, &host16);
  c = auto_sim_start (&sim, encode);
  assert_true (coder_auto_measured (c, &f));
  assert_float_equal ((f.near_shared_rate + f.far_shared_rate) / GB, 97, 5);
  coder_free (c);

  /* Never, and always. */
  init_pair (&sim, &(struct pair) { 1 * US, 72 * GB, 0, 30 * US, 49 * GB,
                                    200 * GB });
  c = auto_sim_start (&sim, encode);
  assert_true (coder_auto_measured (c, &f));
  assert_true (f.crossover == UINT64_MAX);
  coder_free (c);
  init_pair (&sim, &(struct pair) { 9 * US, 1 * GB, 0, 5 * US, 49 * GB,
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

    init_pair (&sim, &host16);
    c = auto_sim_new (&sim, encode);
    assert_int_equal (coder_start (c, i ? auto_sim_arena : NULL,
                                   i ? (k + m) * cell_len - 1 : 0), 0);
    assert_false (coder_auto_measured (c, &f));
    assert_true (throughput (&sim, c, encode, 1, one, 1, 10) > 0);
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

  init_pair (&sim, &p);
  c = auto_sim_start (&sim, encode);
  sim.side[0].bytes = sim.side[1].bytes = 0;
  /* The first job is slow for a reason of its own. */
  sim.side[0].fixed = 150 * US;
  throughput (&sim, c, encode, 1, one, 1, 1);
  sim.side[0].fixed = 2 * US;
  throughput (&sim, c, encode, 1, one, 1, 120);
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

  init_pair (&sim, &p);
  c = auto_sim_start (&sim, encode);
  sim.side[0].bytes = sim.side[1].bytes = 0;
  sim.side[0].rate = 150 * GB;
  sim.side[0].shared = 0.3;
  throughput (&sim, c, encode, 1, few, 1, 60);
  expect_near (&sim);
  coder_free (c);
}

/* For a second and a half, with pauses that do not change what is best. */
static void
go_on (struct coder_sim *sim, struct coder *c)
{
  static const size_t few[] = { 16 };
  double began = sim->now;

  sim->side[0].bytes = sim->side[1].bytes = 0;
  for (unsigned i = 0; i < 20; i++) {
    throughput (sim, c, encode, 1, few, 1, 100);
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
  const struct pair p = { 1 * US, 30 * GB, 0, 30 * US, 49 * GB, 500 * GB };
  struct coder_sim sim;
  struct coder *c;

  init_pair (&sim, &p);
  c = auto_sim_start (&sim, encode);
  sim.side[0].cold = sim.side[1].cold = 1.2;
  sim.side[0].shared = sim.side[1].shared = 0.3;
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

/* Jobs that come now and then are always cold: then that is what counts. */
static void
test_now_and_then (void **state)
{
  static const size_t few[] = { 16 };
  const struct pair p = { 1 * US, 55 * GB, 0, 30 * US, 49 * GB, 500 * GB };
  struct coder_sim sim;
  struct coder *c;

  init_pair (&sim, &p);
  c = auto_sim_start (&sim, encode);
  sim.side[0].cold = 1.2;
  sim.side[0].shared = sim.side[1].shared = 0.3;
  for (unsigned i = 0; i < 400; i++) {
    if (i == 100)
      sim.side[0].bytes = sim.side[1].bytes = 0;
    throughput (&sim, c, encode, 1, few, 1, 1);
    sim.now += 0.005;
  }
  print_message ("%.0f MB near, %.0f far\n", sim.side[0].bytes / 1e6,
                 sim.side[1].bytes / 1e6);
  assert_true (sim.side[1].bytes > 9 * sim.side[0].bytes);
  coder_free (c);
}

/* Slow when it was tried, slower than it was measured, but not for long. */
static void
test_slow_at_first (void **state)
{
  const struct pair p = { 1 * US, 30 * GB, 0, 30 * US, 49 * GB, 500 * GB };
  struct coder_sim sim;
  struct coder *c;

  init_pair (&sim, &p);
  c = auto_sim_start (&sim, encode);
  sim.side[0].shared = sim.side[1].shared = 0.3;
  sim.side[0].rate = 5 * GB;
  go_on (&sim, c);
  assert_true (sim.side[1].bytes > 30 * sim.side[0].bytes);
  sim.side[0].rate = 85 * GB;
  go_on (&sim, c);
  go_on (&sim, c);
  go_on (&sim, c);
  assert_true (sim.side[0].bytes > 30 * sim.side[1].bytes);
  coder_free (c);
}

/* Jobs that are interrupted now and then say nothing of the others. */
static void
test_interrupted (void **state)
{
  static const size_t few[] = { 16 };
  const struct pair p = { 1 * US, 55 * GB, 0, 30 * US, 49 * GB, 500 * GB };
  struct coder_sim sim;
  struct coder *c;

  init_pair (&sim, &p);
  c = auto_sim_start (&sim, encode);
  sim.side[0].bytes = sim.side[1].bytes = 0;
  sim.side[0].shared = sim.side[1].shared = 0.3;
  sim.side[0].interrupted = 25;
  throughput (&sim, c, encode, 1, few, 1, 2000);
  expect_near (&sim);
  coder_free (c);
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
    throughput (&sim, c, i ? encode : one_row, 1, eight, 1, 20);
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

    init_pair (&sim, &(struct pair) { 1 * US, 30 * GB, 0, 30 * US, 30 * GB,
                                      200 * GB });
    sim.near_leaves = 3;
    c = auto_sim_start (&sim, encode);
    near->least_left = 9;
    throughput (&sim, c, encode, 1, nr_rects, 2, 10);
    near->most_left = 0;
    throughput (&sim, c, encode, streams[n], nr_rects, 2, 500);
    assert_int_equal (near->most_left, 0);
    assert_int_equal (near->least_left, 3);
    assert_int_equal (near->left, 0);
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

    init_pair (&sim, &(struct pair) { 1 * US, 30 * GB, 0, 30 * US, 30 * GB,
                                      200 * GB });
    c = auto_sim_start (&sim, encode);
    sim.side[best].shared = 0.4;
    sim.side[1 - best].shared = 0.2;
    sim.side[best].rate *= 1.5;
    throughput (&sim, c, encode, 4, large, 1, 2000);
    /* But for trials. */
    nr_jobs = sim.side[1 - best].nr_jobs;
    for (unsigned i = 0; i < 5; i++) {
      throughput (&sim, c, encode, 4, large, 1, 50);
      if (sim.side[1 - best].nr_jobs == nr_jobs)
        break;
      nr_jobs = sim.side[1 - best].nr_jobs;
    }
    nr_jobs = sim.side[best].nr_jobs;
    throughput (&sim, c, encode, 4, large, 1, 20);
    assert_int_equal (sim.side[best].nr_jobs, nr_jobs + 20);
    sim.now += 10;
    nr_jobs = sim.side[1 - best].nr_jobs;
    throughput (&sim, c, encode, 4, large, 1, 4);
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

    init_pair (&sim, &p);
    for (unsigned s = 0; s < 2; s++)
      sim.side[s].shared = later ? 0.4 : 0;
    c = auto_sim_start (&sim, encode);
    for (unsigned s = 0; s < 2; s++)
      sim.side[s].shared = later ? 0 : 0.4;
    r = throughput (&sim, c, encode, 4, large, 1, 4000);
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

  init_pair (&sim, &(struct pair) { 1 * US, 5 * GB, 0, 30 * US, 7.5 * GB,
                                    100 * GB });
  c = auto_sim_start (&sim, encode);
  sim.side[NEAR].shared = sim.side[FAR].shared = 0.4;
  throughput (&sim, c, encode, 16, small, 1, 2000);
  sim.side[NEAR].shared = sim.side[FAR].shared = 0;
  r = throughput (&sim, c, encode, 4, large, 1, 2000);
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

    init_pair (&sim, &host16);
    near = throughput (&sim, &sim.side[0].coder, encode, streams[i], some, 2,
                       400);
    init_pair (&sim, &host16);
    c = auto_sim_start (&sim, encode);
    throughput (&sim, c, encode, streams[i], some, 2, 400);
    sim.side[1].rate /= 10;
    sim.side[1].fixed *= 10;
    throughput (&sim, c, encode, streams[i], some, 2, 400);
    far_bytes = sim.side[1].bytes;
    after = throughput (&sim, c, encode, streams[i], some, 2, 2000);
    far_bytes = sim.side[1].bytes - far_bytes;
    /* Far may still do what it is good for: a tenth. */
    assert_true (after > 0.95 * near);
    assert_true (far_bytes < 0.1 * 2000 * 34 * k * cell_len);

    /* As good as new: found out, later. */
    sim.side[1].rate *= 10;
    sim.side[1].fixed /= 10;
    for (unsigned j = 0; j < 60; j++) {
      sim.now += 1;
      throughput (&sim, c, encode, streams[i], some, 2, 100);
    }
    back = throughput (&sim, c, encode, streams[i], some, 2, 2000);
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

  init_pair (&sim, &host16);
  c = auto_sim_start (&sim, encode);
  sim.side[1].fails = true;
  throughput (&sim, c, encode, 4, large, 1, 50);
  before = sim.side[1].nr_jobs;
  throughput (&sim, c, encode, 4, large, 1, 200);
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
    cmocka_unit_test (test_small_in_cache),
    cmocka_unit_test (test_large_in_cache),
    cmocka_unit_test (test_cold),
    cmocka_unit_test (test_slow_at_first),
    cmocka_unit_test (test_now_and_then),
    cmocka_unit_test (test_interrupted),
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
