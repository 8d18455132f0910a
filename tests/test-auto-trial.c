/* gpuraid: which use of two coders is kept, in a server that gets so much
 * done with each: how soon the best is found, and what looking for it costs.
 *
 * The server has a time of its own.  Its clients each ask for the next job
 * when the last one is done, or a moment after.
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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/bits.h"
#include "gf/auto-trial.h"
#include "tests/gf-reference.h"

enum { max_clients = 32 };

static uint64_t seed;

struct client {
  double at;                    /* when it does the next thing */
  bool waits;                   /* for a job, which has that age */
  unsigned age;
  double work;
};

struct server {
  double rate[NR_USES];         /* work a second */
  unsigned nr_clients;
  double think;                 /* seconds from a job to a client's next */
  double noise;                 /* jobs take up to so much more or less, as
                                 * a part of what they should */
  unsigned fails;               /* one in so many fails, and is given once
                                 * more; 0: none does */
  double large;                 /* one in two jobs is so many times as large
                                 * as the others; 0: none is */
  double alone_rate[2];         /* what is known of each side; 0: nothing */

  struct auto_trial trial;
  struct ref_random rnd;
  double now;
  struct client client[max_clients];
  double done;
  double given[NR_USES];        /* jobs by use */
};

static void
server_init (struct server *s, double near, double far, double both)
{
  *s = (struct server) {
    .rate = { [USE_NEAR] = near, [USE_FAR] = far, [USE_BOTH] = both },
    .nr_clients = 16, .noise = 0.1, .rnd = { seed }, .now = 1000,
  };
  auto_trial_init (&s->trial);
}

static double
noisy (struct server *s, double seconds)
{
  return seconds * (1 + s->noise * (ref_below (&s->rnd, 2001) / 1000. - 1));
}

static void
give (struct server *s, struct client *c)
{
  c->age = auto_trial_begin (&s->trial, s->now);
  c->waits = true;
  c->at = s->now + noisy (s, c->work * s->nr_clients /
                          s->rate[s->trial.use]);
}

static void
ask (struct server *s, struct client *c)
{
  s->given[auto_trial_use (&s->trial, s->now)]++;
  c->work = s->large > 0 && ref_below (&s->rnd, 2) ? s->large : 1;
  give (s, c);
}

static void
answer (struct server *s, struct client *c)
{
  const bool fails = s->fails && ref_below (&s->rnd, s->fails) == 0;
  double alone[2] = { 0 };

  for (unsigned i = 0; i < 2 && !fails; i++)
    if (s->alone_rate[i] > 0)
      alone[i] = c->work / s->alone_rate[i];
  auto_trial_done (&s->trial, c->age, fails ? 0 : c->work, alone, s->now);
  c->waits = false;
  if (fails) {
    give (s, c);
    return;
  }
  s->done += c->work;
  c->at = s->now + (s->think > 0 ? noisy (s, s->think) : 0);
}

/* One thing happens. */
static void
step (struct server *s)
{
  struct client *first = &s->client[0];

  for (unsigned i = 1; i < s->nr_clients; i++)
    if (s->client[i].at < first->at)
      first = &s->client[i];
  s->now = MAX (s->now, first->at);
  if (first->waits)
    answer (s, first);
  if (!first->waits && first->at <= s->now)
    ask (s, first);
}

/* Work a second for so long. */
static double
run (struct server *s, double seconds)
{
  const double began = s->now, before = s->done;

  while (s->now < began + seconds)
    step (s);
  return (s->done - before) / (s->now - began);
}

/* Until that use is the best one, and stays it for a while. */
static double
seconds_until (struct server *s, enum auto_use use)
{
  const double began = s->now;
  double other = s->now;

  while (s->now - other < 0.4 && s->now - began < 20) {
    step (s);
    if (s->trial.best != use)
      other = s->now;
  }
  return other - began;
}

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

      server_init (&s, 10e3, 10e3, 10e3);
      s.rate[good] = 15e3;
      /* The other one alone is worse, much worse, or as good as both. */
      s.rate[1 - good] = (double[]) { 8e3, 2e3, 10e3 }[j];
      t = seconds_until (&s, good);
      r = run (&s, 10);
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

  server_init (&s, 5e3, 11e3, 10e3);
  assert_true (seconds_until (&s, USE_FAR) < 3);
  assert_true (run (&s, 10) > 0.97 * 11e3);
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

    server_init (&s, near * 10e3, far * 10e3, 10e3);
    r = run (&s, 10);
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

    server_init (&s, 8e3, 8e3, 8e3);
    s.rate[was] = before[i / 6];
    run (&s, 20);
    for (unsigned u = 0; u < NR_USES; u++)
      s.rate[u] = u == is ? 13e3 : 10e3;
    t = seconds_until (&s, is);
    print_message ("from %u at %g to %u: %.2f s\n", was, before[i / 6], is,
                   t);
    assert_true (t < 5);
    assert_true (run (&s, 5) > 0.97 * 13e3);
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

    server_init (&s, near[i], 9.7e3, 10e3);
    while (s.now < 1060) {
      step (&s);
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

    server_init (&s, near[i % ARRAY_LEN (near)], 72e3, 80e3);
    s.large = large[i / ARRAY_LEN (near)];
    assert_true (run (&s, 30) > 0.97 * 80e3);
  }
}

/* Nor does it look better if there is more and more, or less and less, to
 * do.
 */
static void
test_drift (void **state)
{
  struct server s;

  server_init (&s, 10e3, 10e3, 10e3);
  while (s.now < 1060) {
    const double phase = fmod (s.now, 1);

    for (unsigned u = 0; u < NR_USES; u++)
      s.rate[u] = (u == USE_BOTH ? 10e3 : 9.9e3) *
        exp (3 * MIN (phase, 1 - phase));
    step (&s);
    assert_int_equal (s.trial.best, USE_BOTH);
  }
}

/* Nothing is tried while the coder has little to do. */
static void
test_light (void **state)
{
  struct server s;

  server_init (&s, 20e3, 20e3, 10e3);
  s.nr_clients = 1;
  s.think = 3e-4;               /* busy for a quarter of the time */
  run (&s, 10);
  assert_true (s.given[USE_NEAR] + s.given[USE_FAR] == 0);

  /* A bit more, and it is. */
  s.think = 2e-4;
  run (&s, 10);
  assert_true (s.given[USE_NEAR] + s.given[USE_FAR] > 0);
}

/* Nor while so little is done that nothing could be compared. */
static void
test_rare (void **state)
{
  struct server s;

  server_init (&s, 200, 200, 100);
  s.nr_clients = 4;
  run (&s, 20);
  assert_true (s.given[USE_NEAR] + s.given[USE_FAR] == 0);
}

/* What is known not to be able to do it is not tried, however good it would
 * be.
 */
static void
test_cannot (void **state)
{
  for (unsigned i = 0; i < 2; i++) {
    struct server s;

    server_init (&s, 15e3, 15e3, 10e3);
    s.alone_rate[i] = 8e3;
    s.alone_rate[1 - i] = 12e3;
    run (&s, 10);
    assert_true (s.given[uses[i]] == 0);
    assert_int_equal (s.trial.best, uses[1 - i]);
  }
}

/* ---- time --------------------------------------------------------------- */

/* All clients are silent for so long. */
static void
silence (struct server *s, double seconds)
{
  double last = s->now;

  for (unsigned i = 0; i < s->nr_clients; i++)
    last = MAX (last, s->client[i].at);
  for (unsigned i = 0; i < s->nr_clients; i++) {
    struct client *c = &s->client[i];

    if (c->waits)
      answer (s, c);
    c->at = last + seconds;
  }
}

/* After a second without a job all is open again. */
static void
test_idle (void **state)
{
  struct server s;

  server_init (&s, 5e3, 15e3, 10e3);
  run (&s, 10);
  assert_int_equal (s.trial.best, USE_FAR);
  silence (&s, 0.7);
  run (&s, 0.75);
  assert_int_equal (s.trial.best, USE_FAR);

  silence (&s, 1.1);
  run (&s, 1.101);
  assert_int_equal (s.trial.best, USE_BOTH);
  assert_int_equal (s.trial.use, USE_BOTH);
  assert_true (seconds_until (&s, USE_FAR) < 0.5);
}

/* A second of hardly any is the same: by then both are what is quickest. */
static void
test_light_later (void **state)
{
  static const double think[] = { 1e-3, 50e-3, 0.3 };

  for (unsigned i = 0; i < ARRAY_LEN (think); i++) {
    struct server s;

    server_init (&s, 5e3, 15e3, 10e3);
    run (&s, 10);
    silence (&s, 1e-3);
    s.nr_clients = 1;
    s.think = think[i];
    run (&s, 0.6);
    assert_int_equal (s.trial.best, USE_FAR);
    run (&s, 1.2);
    assert_int_equal (s.trial.use, USE_BOTH);
  }
}

/* But pauses are not, between times of much to do. */
static void
test_pauses (void **state)
{
  struct server s;

  server_init (&s, 5e3, 15e3, 10e3);
  run (&s, 10);
  for (unsigned i = 0; i < 20; i++) {
    silence (&s, 0.6);
    run (&s, 0.7);
    assert_int_equal (s.trial.best, USE_FAR);
  }
}

/* Jobs that take that long are no idleness. */
static void
test_long_jobs (void **state)
{
  struct server s;

  server_init (&s, 5e3, 15e3, 10e3);
  s.nr_clients = 1;
  run (&s, 10);
  assert_int_equal (s.trial.best, USE_FAR);
  for (unsigned u = 0; u < NR_USES; u++)
    s.rate[u] = 0.6;
  run (&s, 10);
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

    server_init (&s, 10, 10, 10e3);
    while (!s.trial.trying)
      step (&s);
    if (i)
      s.rate[USE_BOTH] = 10;
    while (s.trial.trying)
      step (&s);
    assert_int_equal (s.trial.use, USE_BOTH);
    /* Each of those that were given then takes 1.6 s. */
    assert_true (s.now < 1004);
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

  server_init (&s, 9e3, 8e3, 10e3);
  s.fails = 5;
  for (unsigned n = 0; n < 100000; n++) {
    const bool trying = s.trial.trying;

    step (&s);
    nr = nr_older = 0;
    for (unsigned i = 0; i < s.nr_clients; i++) {
      nr += s.client[i].waits;
      nr_older += s.client[i].waits && s.client[i].age != s.trial.age;
    }
    assert_int_equal (s.trial.nr, nr);
    assert_int_equal (s.trial.nr_older, nr_older);
    nr_trials += s.trial.trying && !trying;
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
    cmocka_unit_test (test_cost),
    cmocka_unit_test (test_changes),
    cmocka_unit_test (test_noise),
    cmocka_unit_test (test_mix),
    cmocka_unit_test (test_drift),
    cmocka_unit_test (test_light),
    cmocka_unit_test (test_rare),
    cmocka_unit_test (test_cannot),
    cmocka_unit_test (test_idle),
    cmocka_unit_test (test_light_later),
    cmocka_unit_test (test_pauses),
    cmocka_unit_test (test_long_jobs),
    cmocka_unit_test (test_trials_end),
    cmocka_unit_test (test_books),
  };

  seed = ref_seed ();
  return cmocka_run_group_tests (tests, NULL, NULL);
}
