/* gpuraid: which use of two coders is kept, in a server that gets so much
 * done with each: how soon the best is found, and what looking for it costs.
 *
 * run-tests: no-thread
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/bits.h"
#include "tests/trial-server.h"

static uint64_t seed;

static const enum auto_use uses[] = { USE_NEAR, USE_FAR, USE_BOTH };

/* ---- what is found ------------------------------------------------------ */

/* 1.5 times as much: within half a second, and then it stays. */
static void
test_found (void **state)
{
  for (unsigned i = 0; i < 2; i++)
    for (unsigned j = 0; j < 3; j++) {
      const enum auto_use good = uses[i];
      struct server s;
      double t, r;

      server_init (&s, seed, 10e3, 10e3, 10e3);
      s.rate[good] = 15e3;
      /* The other one alone is worse, much worse, or as good as both. */
      s.rate[1 - good] = (double[]) { 8e3, 2e3, 10e3 }[j];
      t = server_seconds_until (&s, good);
      r = server_run (&s, 10);
      print_message ("use %u: after %.2f s, then %.3f of it\n", good, t,
                     r / 15e3);
      assert_true (t < 0.5);
      assert_int_equal (s.trial.best, good);
      assert_true (r > 0.97 * 15e3);
    }
}

/* A little more is found too, in some more time. */
static void
test_a_little_more (void **state)
{
  struct server s;

  server_init (&s, seed, 5e3, 11e3, 10e3);
  assert_true (server_seconds_until (&s, USE_FAR) < 3);
  assert_true (server_run (&s, 10) > 0.97 * 11e3);
}

/* What is slower at first, as any other is then, is found for what it is. */
static void
test_cold (void **state)
{
  static const double cold[] = { 0.9, 0.7, 0.4 };

  for (unsigned i = 0; i < ARRAY_LEN (cold) * 2; i++) {
    const enum auto_use good = uses[i % 2];
    struct server s;

    server_init (&s, seed, 9e3, 9e3, 10e3);
    s.rate[good] = 13e3;
    s.cold = cold[i / 2];
    s.warm_up = 12e-3;
    assert_true (server_seconds_until (&s, good) < 0.5);
    assert_true (server_run (&s, 10) > 0.95 * 13e3);
  }
}

/* What gets less done costs little to look at, and ever less. */
static void
test_cost (void **state)
{
  static const double less[] = { 0.2, 0.3, 0.55, 0.7, 0.9 };

  for (unsigned i = 0; i < ARRAY_LEN (less) * ARRAY_LEN (less); i++) {
    const double near = less[i % ARRAY_LEN (less)];
    const double far = less[i / ARRAY_LEN (less)];
    struct server s;
    double r;

    server_init (&s, seed, near * 10e3, far * 10e3, 10e3);
    r = server_run (&s, 10);
    if (r < 0.97 * 10e3)
      fail_msg ("near %g, far %g: %.3f of it", near, far, r / 10e3);
    assert_int_equal (s.trial.best, USE_BOTH);
    assert_true (s.given[USE_NEAR] > 0 && s.given[USE_FAR] > 0);
  }
}

/* Another use becomes the best one, whatever was: by much, which is seen,
 * and by less, which is not.
 */
static void
test_changes (void **state)
{
  static const double before[] = { 10e3, 10.5e3, 3e3, 30e3 };

  for (unsigned i = 0; i < ARRAY_LEN (before) * 6; i++) {
    const enum auto_use was = uses[i % 3], is = uses[(i + 1 + i / 3 % 2) % 3];
    struct server s;
    double t;

    server_init (&s, seed, 8e3, 8e3, 8e3);
    s.rate[was] = before[i / 6];
    server_run (&s, 20);
    for (unsigned u = 0; u < NR_USES; u++)
      s.rate[u] = u == is ? 13e3 : 10e3;
    t = server_seconds_until (&s, is);
    print_message ("from %u at %g to %u: %.2f s\n", was, before[i / 6], is,
                   t);
    assert_true (t < 5);
    assert_true (server_run (&s, 5) > 0.97 * 13e3);
  }
}

/* ---- what is not -------------------------------------------------------- */

/* Jobs that take more or less time by chance do not make one use look like
 * the better one of two that are about as good.
 */
static void
test_noise (void **state)
{
  static const double near[] = { 9.5e3, 9.8e3, 10e3 };

  for (unsigned i = 0; i < ARRAY_LEN (near); i++) {
    struct server s;

    server_init (&s, seed, near[i], 9.7e3, 10e3);
    while (s.now < 1060) {
      server_step (&s);
      assert_int_equal (s.trial.best, USE_BOTH);
    }
  }
}

/* Nor do windows that hold different jobs. */
static void
test_mix (void **state)
{
  static const double near[] = { 40e3, 64e3, 72e3, 78e3, 80e3 };
  static const double large[] = { 4, 16, 64 };

  for (unsigned i = 0; i < ARRAY_LEN (near) * ARRAY_LEN (large); i++) {
    struct server s;

    server_init (&s, seed, near[i % ARRAY_LEN (near)], 72e3, 80e3);
    s.large = large[i / ARRAY_LEN (near)];
    assert_true (server_run (&s, 30) > 0.97 * 80e3);
  }
}

/* Nor does it look better if there is more and more, or less and less, to
 * do.
 */
static void
test_drift (void **state)
{
  struct server s;

  server_init (&s, seed, 10e3, 10e3, 10e3);
  while (s.now < 1060) {
    const double phase = fmod (s.now, 1);

    for (unsigned u = 0; u < NR_USES; u++)
      s.rate[u] = (u == USE_BOTH ? 10e3 : 9.9e3) *
        exp (3 * MIN (phase, 1 - phase));
    server_step (&s);
    assert_int_equal (s.trial.best, USE_BOTH);
  }
}

/* Nothing is tried while the coder has little to do. */
static void
test_light (void **state)
{
  struct server s;

  server_init (&s, seed, 20e3, 20e3, 10e3);
  s.nr_clients = 1;
  s.think = 3e-4;               /* busy for a quarter of the time */
  server_run (&s, 10);
  assert_true (s.given[USE_NEAR] + s.given[USE_FAR] == 0);

  /* A bit more, and it is. */
  s.think = 2e-4;
  server_run (&s, 10);
  assert_true (s.given[USE_NEAR] + s.given[USE_FAR] > 0);
}

/* Nor while so little is done that nothing could be compared. */
static void
test_rare (void **state)
{
  struct server s;

  server_init (&s, seed, 200, 200, 100);
  s.nr_clients = 4;
  server_run (&s, 20);
  assert_true (s.given[USE_NEAR] + s.given[USE_FAR] == 0);
}

/* Nor of jobs that come one at a time. */
static void
test_one_at_a_time (void **state)
{
  const double alone[2] = { 1e-5, 1e-5 };
  struct auto_trial t;
  double now = 1000;

  for (unsigned beside = 0; beside < 2; beside++) {
    unsigned nr_tried = 0;

    auto_trial_init (&t);
    for (unsigned i = 0; i < 20000; i++) {
      unsigned age;

      nr_tried += auto_trial_use (&t, now) != USE_BOTH;
      age = auto_trial_begin (&t, beside, now);
      now += 1e-4;
      auto_trial_done (&t, age, 1, alone, now);
    }
    assert_int_equal (nr_tried > 0, beside);
  }
}

/* What is known not to be able to do it is not tried, however good it would
 * be; near may be able to do five times as much, if a cache helps it.
 */
static void
test_cannot (void **state)
{
  for (unsigned i = 0; i < 2; i++) {
    struct server s;

    server_init (&s, seed, 15e3, 15e3, 10e3);
    s.alone_rate[i] = uses[i] == USE_NEAR ? 1.8e3 : 8e3;
    s.alone_rate[1 - i] = 12e3;
    server_run (&s, 10);
    assert_true (s.given[uses[i]] == 0);
    assert_int_equal (s.trial.best, uses[1 - i]);
    /* A bit more might be enough. */
    s.alone_rate[i] *= 2;
    s.rate[uses[i]] *= 1.5;
    assert_true (server_seconds_until (&s, uses[i]) < 6);
  }
}

/* ---- time --------------------------------------------------------------- */

/* After a second without a job all is open again. */
static void
test_idle (void **state)
{
  struct server s;

  server_init (&s, seed, 5e3, 15e3, 10e3);
  server_run (&s, 10);
  assert_int_equal (s.trial.best, USE_FAR);
  server_silence (&s, 0.7);
  server_run (&s, 0.75);
  assert_int_equal (s.trial.best, USE_FAR);

  server_silence (&s, 1.1);
  server_run (&s, 1.101);
  assert_int_equal (s.trial.best, USE_BOTH);
  assert_int_equal (s.trial.use, USE_BOTH);
  assert_true (server_seconds_until (&s, USE_FAR) < 0.5);
}

/* A second of hardly any is the same: by then both are what is quickest. */
static void
test_light_later (void **state)
{
  static const double think[] = { 1e-3, 50e-3, 0.3 };

  for (unsigned i = 0; i < ARRAY_LEN (think); i++) {
    struct server s;

    server_init (&s, seed, 5e3, 15e3, 10e3);
    server_run (&s, 10);
    server_silence (&s, 1e-3);
    s.nr_clients = 1;
    s.think = think[i];
    server_run (&s, 0.6);
    assert_int_equal (s.trial.best, USE_FAR);
    server_run (&s, 1.2);
    assert_int_equal (s.trial.use, USE_BOTH);
  }
}

/* But pauses are not, between times of much to do. */
static void
test_pauses (void **state)
{
  struct server s;

  server_init (&s, seed, 5e3, 15e3, 10e3);
  server_run (&s, 10);
  for (unsigned i = 0; i < 20; i++) {
    server_silence (&s, 0.6);
    server_run (&s, 0.7);
    assert_int_equal (s.trial.best, USE_FAR);
  }
}

/* What is best is found in times of much to do that are short, too. */
static void
test_bursts (void **state)
{
  struct server s;

  for (unsigned i = 0; i < 2; i++) {
    const enum auto_use good = uses[i];

    server_init (&s, seed, 8e3, 8e3, 10e3);
    s.rate[good] = 13e3;
    for (unsigned n = 0; n < 12; n++) {
      server_run (&s, 0.08);
      server_silence (&s, 0.12);
      server_run (&s, 0.1201);
    }
    assert_int_equal (s.trial.best, good);
  }
}

/* What there is to do may become less than a window at a time while one alone
 * is tried: that ends, too.
 */
static void
test_short_bursts (void **state)
{
  for (unsigned i = 0; i < 60; i++) {
    struct server s;
    unsigned tried = 0;

    server_init (&s, seed, 6.5e3, 6.5e3, 10e3);
    server_run (&s, 0.1 + i * 2e-3);
    for (unsigned n = 0; n < 100; n++) {
      server_run (&s, 0.011);
      server_silence (&s, 0.04);
      server_run (&s, 0.0401);
      tried += n >= 10 && server_tries (&s);
    }
    assert_true (tried < 10);
  }
}

/* Jobs that take that long are no idleness. */
static void
test_long_jobs (void **state)
{
  struct server s;

  server_init (&s, seed, 5e3, 15e3, 10e3);
  s.nr_clients = 1;
  server_run (&s, 10);
  assert_int_equal (s.trial.best, USE_FAR);
  for (unsigned u = 0; u < NR_USES; u++)
    s.rate[u] = 0.6;
  server_run (&s, 10);
  assert_int_equal (s.trial.best, USE_FAR);
}

/* A trial ends, also where hardly anything is done in it, or nothing more is
 * asked for.
 */
static void
test_trials_end (void **state)
{
  for (unsigned i = 0; i < 2; i++) {
    struct server s;

    server_init (&s, seed, 10, 10, 10e3);
    while (!server_tries (&s))
      server_step (&s);
    if (i)
      s.rate[USE_BOTH] = 10;
    while (server_tries (&s))
      server_step (&s);
    assert_int_equal (s.trial.use, USE_BOTH);
    /* Each of those that were given then takes 1.6 s. */
    assert_true (s.now < 1004);
  }
}

/* A part that hangs does not keep a trial from ending, nor a better use from
 * being found, and nothing is wrong when it is done after all.
 */
static void
test_hang (void **state)
{
  const double alone[2] = { 0 };

  for (unsigned i = 0; i < 3; i++) {
    struct server s;
    unsigned age[2];

    server_init (&s, seed, i == 0 ? 1e3 : 9e3, i == 1 ? 15e3 : 9e3, 10e3);
    server_run (&s, 0.05);
    age[0] = auto_trial_begin (&s.trial, true, s.now);
    server_run (&s, 0.07);
    age[1] = auto_trial_begin (&s.trial, true, s.now);
    assert_true (server_run (&s, 20) > 0.9 * s.rate[i == 1 ? FAR : USE_BOTH]);
    assert_int_equal (s.trial.best, i == 1 ? USE_FAR : USE_BOTH);
    if (i == 1) {
      /* Nor is it work. */
      server_silence (&s, 1.1);
      server_run (&s, 1.101);
      assert_int_equal (s.trial.best, USE_BOTH);
    }
    for (unsigned n = 0; n < 2; n++)
      auto_trial_done (&s.trial, age[n], 1, alone, s.now);
    assert_int_equal (s.trial.nr_stuck, 0);
    for (unsigned n = 0; n < 100; n++)
      server_step (&s);
    assert_true (s.trial.nr <= s.nr_clients);
    s.rate[USE_NEAR] = 20e3;
    assert_true (server_seconds_until (&s, USE_NEAR) < 10);
  }
}

/* What is under way is counted, whatever fails and is given again while the
 * use changes.
 */
static void
test_books (void **state)
{
  struct server s;
  unsigned nr = 0, nr_older = 0, nr_trials = 0;

  server_init (&s, seed, 9e3, 8e3, 10e3);
  s.fails = 5;
  for (unsigned n = 0; n < 100000; n++) {
    const bool trying = server_tries (&s);

    server_step (&s);
    nr = nr_older = 0;
    for (unsigned i = 0; i < s.nr_clients; i++) {
      nr += s.client[i].waits;
      nr_older += s.client[i].waits && s.client[i].age != s.trial.age;
    }
    assert_int_equal (s.trial.nr, nr);
    assert_int_equal (s.trial.nr_older, nr_older);
    nr_trials += server_tries (&s) && !trying;
    /* The other one is the best every now and then. */
    if (n % 10000 == 0)
      s.rate[n / 10000 % 3] *= 1.3;
  }
  assert_true (nr_trials > 3);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_found),
    cmocka_unit_test (test_a_little_more),
    cmocka_unit_test (test_cold),
    cmocka_unit_test (test_cost),
    cmocka_unit_test (test_changes),
    cmocka_unit_test (test_noise),
    cmocka_unit_test (test_mix),
    cmocka_unit_test (test_drift),
    cmocka_unit_test (test_light),
    cmocka_unit_test (test_rare),
    cmocka_unit_test (test_one_at_a_time),
    cmocka_unit_test (test_cannot),
    cmocka_unit_test (test_idle),
    cmocka_unit_test (test_light_later),
    cmocka_unit_test (test_pauses),
    cmocka_unit_test (test_bursts),
    cmocka_unit_test (test_short_bursts),
    cmocka_unit_test (test_long_jobs),
    cmocka_unit_test (test_trials_end),
    cmocka_unit_test (test_hang),
    cmocka_unit_test (test_books),
  };

  seed = ref_seed ();
  return cmocka_run_group_tests (tests, NULL, NULL);
}
