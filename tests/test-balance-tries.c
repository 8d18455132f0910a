/* gpuraid: where jobs go that come one at a time: what the balance of coder
 * auto learns of them, when it tries another way, and when it does not choose
 * anew.
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
#include "gf/balance.h"
#include "tests/auto-sim.h"
#include "tests/gf-reference.h"

/* What a job takes on each side.  Jobs of other kinds are not alike. */
#define NR_KINDS 12

struct alone {
  double seconds[2];
  double noise;                 /* so much more or less, as a part */
  unsigned kind;                /* below NR_KINDS */
};

static struct balance_job
job_of (const struct alone *a)
{
  return (struct balance_job) {
    .work = 1e6, .rows = 1u << a->kind / 2, .crc = a->kind % 2, .nr_units = 1
  };
}

/* As if start had measured that all take so many seconds. */
static void
init (struct balance *b, double near, double far)
{
  const double seconds[2] = { near, far };

  balance_init (b);
  for (unsigned i = 0; i < 2; i++) {
    struct balance_curve *c = &b->side[i].many;

    c->rate = 1e6 / seconds[i];
    for (unsigned n = 0; n < c->nr; n++) {
      c->point[n].work = 1e6 * n;
      c->point[n].seconds = n * seconds[i];
    }
  }
}

static struct ref_random rnd;

/* Where did it go? */
static unsigned
one (struct balance *b, double *now, const struct alone *a)
{
  const struct balance_job job = job_of (a);
  const double part = ref_below (&rnd, 2001) / 1000. - 1;
  struct balance_choice c;
  unsigned side;

  balance_choose (b, &job, *now, &c);
  side = c.far_units > 0;
  *now += a->seconds[side] * (1 + a->noise * part);
  balance_done (b, side, &c.part[side], *now, false);
  return side;
}

static unsigned
nr_far (struct balance *b, double *now, const struct alone *a, unsigned nr)
{
  unsigned n = 0;

  while (nr-- > 0)
    n += one (b, now, a) == FAR;
  return n;
}

/* A small one comes and goes meanwhile. */
static unsigned
big_and_small (struct balance *b, double *now, const struct alone *a,
               const struct balance_job *small)
{
  const struct balance_job job = job_of (a);
  struct balance_choice big, c;
  unsigned side, small_side;

  balance_choose (b, &job, *now, &big);
  side = big.far_units > 0;
  balance_choose (b, small, *now + 2 * US, &c);
  small_side = c.far_units > 0;
  balance_done (b, small_side, &c.part[small_side], *now + 7 * US, false);
  *now += a->seconds[side];
  balance_done (b, side, &big.part[side], *now, false);
  return side;
}

/* The other way is tried when the one in use is warm, not at the end of a
 * pause.
 */
static void
test_tried_when_warm (void **state)
{
  static const struct alone a = { .seconds = { 200 * US, 240 * US } };
  struct balance b;
  double now = 1000;
  unsigned nr = 0;

  init (&b, 200 * US, 240 * US);
  nr_far (&b, &now, &a, 100);
  for (unsigned i = 0; i < 40; i++) {
    unsigned nr_now;

    now += 0.9;
    assert_int_equal (nr_far (&b, &now, &a, 8), 0);
    nr_now = nr_far (&b, &now, &a, 60);
    assert_true (nr_now == 0 || nr_now >= 6);
    nr += nr_now;
  }
  /* Of what is worked, not of the time. */
  assert_in_range (nr, 20, 60);
}

/* One that is interrupted while it is cold does not rule a way out; if all
 * are far too slow, it is for a while.
 */
static void
test_too_slow (void **state)
{
  static const struct alone a = { .seconds = { 200 * US, 240 * US } };
  static const struct alone slow = { .seconds = { 1 * MS, 240 * US } };
  static const struct alone interrupted = { .seconds = { 4 * MS, 240 * US } };
  struct balance b;
  double now = 1000;

  for (unsigned i = 0; i < 2; i++) {
    init (&b, 200 * US, 240 * US);
    nr_far (&b, &now, &a, 100);
    now += 0.01;
    if (i == 0) {
      nr_far (&b, &now, &interrupted, 2);
      assert_int_equal (nr_far (&b, &now, &a, 8), 0);
    }
    else {
      nr_far (&b, &now, &slow, 3);
      assert_int_equal (nr_far (&b, &now, &slow, 50), 50);
    }
  }
}

/* Some jobs in a row are interrupted, again and again: still that is the
 * better way.
 */
static void
test_interrupted_in_a_row (void **state)
{
  static const struct alone a = { { 50 * US, 72 * US }, .noise = 0.1 };
  static const struct alone slow = { { 170 * US, 72 * US }, .noise = 0.5 };
  struct balance b;
  double now = 1000, began, part;
  unsigned nr = 0;

  init (&b, 71 * US, 72 * US);
  nr_far (&b, &now, &a, 500);
  began = now;
  for (unsigned i = 0; i < 200; i++) {
    nr += nr_far (&b, &now, &a, 50 + ref_below (&rnd, 20));
    nr += nr_far (&b, &now, &slow, 5);
  }
  part = 200 * (60 * 50 + 5 * 170) * US / (now - began);
  print_message ("%u went far; %.3f of near\n", nr, part);
  assert_true (part > 0.98);
}

/* Small jobs of another kind come and go while each one is under way. */
static void
test_with_small_ones (void **state)
{
  static const struct alone before = { .seconds = { 800 * US, 500 * US } };
  static const struct alone after = { .seconds = { 250 * US, 500 * US } };
  static const struct balance_job small = { .work = 1e4, .rows = 4,
                                            .nr_units = 1 };
  struct balance b;
  double now = 1000, changed;
  unsigned nr = 0;

  init (&b, 800 * US, 500 * US);
  while (now < 1002)
    big_and_small (&b, &now, &before, &small);
  changed = now;
  for (nr = 0; nr < 20 && now < changed + 10;)
    nr = big_and_small (&b, &now, &after, &small) == NEAR ? nr + 1 : 0;
  print_message ("seen after %.2f s\n", now - changed);
  assert_true (now < changed + 3);
}

/* What was the best way for long, and looked a bad one for a moment, is not
 * gone for long.
 */
static void
test_back_soon (void **state)
{
  static const struct alone a = { .seconds = { 50 * US, 72 * US } };
  static const struct alone slow = { .seconds = { 170 * US, 72 * US } };
  struct balance b;
  double now = 1000;

  init (&b, 50 * US, 72 * US);
  nr_far (&b, &now, &a, 1000);
  while (one (&b, &now, &slow) == NEAR)
    ;
  assert_true (nr_far (&b, &now, &slow, 10) >= 9);
  nr_far (&b, &now, &a, 60);
  assert_true (nr_far (&b, &now, &a, 50) <= 10);
}

/* Start may have found processors asleep, and measured far too much: it is
 * seen soon.  If it was right, little time is lost to see that.
 */
static void
test_measured_asleep (void **state)
{
  static const struct alone fast = { .seconds = { 60 * US, 100 * US } };
  static const struct alone slow = { .seconds = { 400 * US, 100 * US } };
  struct balance b;
  double now = 1000;

  init (&b, 400 * US, 100 * US);
  nr_far (&b, &now, &fast, 70);
  assert_int_equal (nr_far (&b, &now, &fast, 30), 0);
  init (&b, 400 * US, 100 * US);
  assert_in_range (nr_far (&b, &now, &slow, 1000), 990, 997);
}

/* The first jobs come by twos, so that near never gets warm: that was no try.
 */
static void
test_first_by_twos (void **state)
{
  static const struct alone cold = { .seconds = { 300 * US, 100 * US } };
  static const struct alone warm = { .seconds = { 60 * US, 100 * US } };
  struct balance b;
  double now = 1000;

  init (&b, 100 * US, 100 * US);
  for (unsigned i = 0; i < 10; i++) {
    nr_far (&b, &now, &cold, 2);
    now += 2 * MS;
  }
  assert_true (nr_far (&b, &now, &warm, 1) == 1);
  nr_far (&b, &now, &warm, 70);
  assert_int_equal (nr_far (&b, &now, &warm, 30), 0);
}

/* Near takes so much longer from now on: how many jobs are still given there,
 * of eight times?
 */
static unsigned
nr_until_far (double seconds)
{
  static const struct alone a = { .seconds = { 60 * US, 80 * US } };
  const struct alone slow = { .seconds = { seconds, 80 * US } };
  struct balance b;
  double now = 1000;
  unsigned nr = 0;

  for (unsigned i = 0; i < 8; i++) {
    init (&b, 60 * US, 80 * US);
    nr_far (&b, &now, &a, 100 + i);
    while (one (&b, &now, &slow) == NEAR)
      nr++;
    /* A try: from the next ones on it is the best way. */
    nr_far (&b, &now, &slow, 200);
    assert_true (nr_far (&b, &now, &slow, 50) > 35);
  }
  print_message ("%.0f us: %u jobs\n", seconds / US, nr);
  return nr;
}

/* The choice is kept for most of those that come after it, until one takes
 * more than twice as long: so less than that is seen later.
 */
static void
test_slower (void **state)
{
  assert_in_range (nr_until_far (150 * US), 8, 200);
  assert_in_range (nr_until_far (108 * US), 8, 800);
}

/* What was learnt is forgotten in a pause: but for that a side which was slow
 * once would never be used again.
 */
static void
test_forgotten (void **state)
{
  const struct alone slow = { .seconds = { 600 * US, 800 * US } };
  struct balance b;
  double now = 1000, measured;
  const struct balance_job job = job_of (&slow);

  init (&b, 60 * US, 80 * US);
  measured = balance_rate (&b, NEAR, 1);
  nr_far (&b, &now, &slow, 500);
  assert_true (balance_rate (&b, NEAR, 1) < measured / 1.2);
  now += 200;
  for (unsigned i = 0; i < 2; i++) {
    struct balance_choice c;

    balance_choose (&b, &job, now, &c);
    balance_cancel (&b, c.far_units > 0, &c.part[c.far_units > 0]);
  }
  assert_true (balance_rate (&b, NEAR, 1) > measured / 1.01);
}

/* Most choices for jobs that are alike are those of the last one, until one
 * takes longer.
 */
static void
test_again (void **state)
{
  static const struct alone a = { .seconds = { 60 * US, 100 * US } };
  static const struct alone slow = { .seconds = { 150 * US, 100 * US } };
  const struct balance_job job = job_of (&a);
  struct balance_choice c;
  struct balance b;
  double now = 1000;
  unsigned nr = 0;

  init (&b, 60 * US, 100 * US);
  nr_far (&b, &now, &a, 40);
  for (unsigned i = 0; i < 80; i++) {
    balance_choose (&b, &job, now, &c);
    nr += c.part[NEAR].again;
    now += 60 * US;
    balance_done (&b, NEAR, &c.part[NEAR], now, false);
  }
  assert_in_range (nr, 60, 72);
  nr = 0;
  for (unsigned i = 0; i < 8; i++) {
    init (&b, 60 * US, 100 * US);
    nr_far (&b, &now, &a, 100 + i);
    while (one (&b, &now, &slow) == NEAR)
      nr++;
  }
  assert_in_range (nr, 8, 160);
  assert_true (nr_far (&b, &now, &slow, 50) > 25);
  assert_true (nr_far (&b, &now, &slow, 50) > 40);
  /* A long one has the time. */
  init (&b, 400 * US, 900 * US);
  for (unsigned i = 0; i < 100; i++) {
    balance_choose (&b, &job, now, &c);
    assert_false (c.part[NEAR].again);
    now += 400 * US;
    balance_done (&b, c.far_units > 0, &c.part[c.far_units > 0], now, false);
  }
}

/* Not chosen anew?  It is not given after all. */
static bool
is_again (struct balance *b, const struct balance_job *job, double now)
{
  struct balance_choice c;
  unsigned side;

  balance_choose (b, job, now, &c);
  side = c.far_units > 0;
  balance_cancel (b, side, &c.part[side]);
  return c.part[side].again;
}

/* None of them beside another job, for one of another size, or after a pause.
 */
static void
test_not_again (void **state)
{
  static const struct alone a = { .seconds = { 60 * US, 100 * US } };
  static const struct balance_job other = { .work = 2e6, .rows = 1,
                                            .nr_units = 1 };
  const struct balance_job job = job_of (&a);
  struct balance_choice c;
  struct balance b;
  double now = 1000;

  init (&b, 60 * US, 100 * US);
  nr_far (&b, &now, &a, 40);
  for (unsigned i = 0; i < 20; i++) {
    balance_choose (&b, &job, now, &c);
    assert_false (is_again (&b, &job, now));
    now += 60 * US;
    balance_done (&b, c.far_units > 0, &c.part[c.far_units > 0], now, false);
    nr_far (&b, &now, &a, 10);
    assert_false (is_again (&b, &other, now));
    nr_far (&b, &now, &a, 10);
    now += 0.01;
    assert_false (is_again (&b, &job, now));
    nr_far (&b, &now, &a, 10);
  }
}

/* The choice of the last job is not used after one that failed, nor after one
 * that was given without a choice.
 */
static void
test_again_ends (void **state)
{
  static const struct alone a = { .seconds = { 100 * US, 60 * US } };
  const struct balance_job job = job_of (&a);
  struct balance_choice c;
  struct balance_part part;

  for (unsigned i = 0; i < 2; i++) {
    struct balance b;
    double now = 1000;
    unsigned nr = 0;

    init (&b, 100 * US, 60 * US);
    nr_far (&b, &now, &a, 40);
    do {
      balance_choose (&b, &job, now, &c);
      now += 60 * US;
      balance_done (&b, FAR, &c.part[FAR], now, i == 0 && nr == 3);
      nr = c.part[FAR].again ? nr + 1 : 0;
    } while (nr < 4);
    if (i == 1) {
      balance_give (&b, NEAR, &job, now, &part);
      now += 100 * US;
      balance_done (&b, NEAR, &part, now, false);
    }
    balance_choose (&b, &job, now, &c);
    assert_false (c.part[c.far_units > 0].again);
  }
}

/* What is known of a side is not lost for what is learnt of one kind of
 * job, whatever comes of it by chance.
 */
static void
test_no_drift (void **state)
{
  static const double pause[] = { 0, 2 * MS };
  const struct alone a = { { 150 * US, 230 * US }, .noise = 0.2 };

  for (unsigned i = 0; i < ARRAY_LEN (pause); i++) {
    struct balance b;
    double now = 1000, first, last;

    init (&b, 170 * US, 200 * US);
    nr_far (&b, &now, &a, 100);
    first = balance_rate (&b, NEAR, 1);
    while (now < 1060) {
      one (&b, &now, &a);
      now += pause[i];
    }
    last = balance_rate (&b, NEAR, 1);
    print_message ("%.2f times what it was\n", last / first);
    assert_true (last < 1.3 * first && last > first / 1.3);
  }
}

/* At long intervals most go the better way, too. */
static void
test_long_intervals (void **state)
{
  static const struct alone kinds[] = {
    { { 240 * US, 100 * US }, .noise = 0.1 },
    { { 100 * US, 170 * US }, .noise = 0.1 },
  };
  /* What was learnt is forgotten after some times 10 seconds. */
  static const struct { double seconds, measured; } intervals[] = {
    { 0.1, 50 * US }, { 2.5, 150 * US }, { 5, 150 * US },
  };

  for (unsigned i = 0; i < 2 * ARRAY_LEN (intervals); i++) {
    const struct alone *a = &kinds[i % 2];
    const unsigned good = i % 2 ? NEAR : FAR;
    struct balance b;
    double now = 1000;
    unsigned nr = 0;

    init (&b, intervals[i / 2].measured, intervals[i / 2].measured);
    for (unsigned j = 0; j < 600; j++) {
      const unsigned side = one (&b, &now, a);

      nr += j >= 100 && side == good;
      now += intervals[i / 2].seconds;
    }
    print_message ("%g s: %u of 500\n", intervals[i / 2].seconds, nr);
    assert_true (nr >= 450);
  }
}

/* Two at once, again and again, of which the second finds the first under
 * way: that one is tried where it may be better, and then no more.
 */
static void
test_pairs (void **state)
{
  const struct alone a = { { 700 * US, 100 * US } };
  const struct balance_job job = job_of (&a);
  struct balance_choice c[2];
  struct balance b;
  double now = 1000;
  unsigned nr = 0;

  init (&b, 150 * US, 100 * US);
  for (unsigned i = 0; i < 1000; i++) {
    unsigned side[2];

    for (unsigned j = 0; j < 2; j++) {
      balance_choose (&b, &job, now, &c[j]);
      side[j] = c[j].far_units > 0;
      nr += i >= 100 && side[j] == NEAR;
    }
    for (unsigned j = 0; j < 2; j++) {
      now += a.seconds[side[j]];
      balance_done (&b, side[j], &c[j].part[side[j]], now, false);
    }
    now += 5 * MS;
  }
  print_message ("%u of 1800\n", nr);
  assert_true (nr < 180);
}

/* Tries of many kinds of job together cost no more than those of one, once
 * each is known; and not much until then.
 */
static void
test_many_kinds (void **state)
{
  const double seconds[2] = { 170 * US, 100 * US };
  static const struct { unsigned nr_jobs; double least; } spans[] = {
    { 10000, 0.97 }, { 60000, 0.99 }, { 70000, 0.995 },
  };
  struct balance b;
  double now = 1000;

  init (&b, 100 * US, 100 * US);
  for (unsigned n = 0; n < ARRAY_LEN (spans); n++) {
    const unsigned nr = spans[n].nr_jobs;
    const double began = now;
    double part;

    for (unsigned i = 0; i < nr; i++) {
      const struct alone a = {
        { seconds[NEAR], seconds[FAR] }, .kind = ref_below (&rnd, NR_KINDS),
      };

      one (&b, &now, &a);
    }
    part = nr * seconds[FAR] / (now - began);
    print_message ("%.4f of the best\n", part);
    assert_true (part > spans[n].least);
  }
}

/* One that is better now and then is tried for longer, but not more. */
static void
test_long_tries (void **state)
{
  const struct alone a = { { 170 * US, 100 * US }, .noise = 0.5 };
  struct balance b;
  double now = 1000, began;

  init (&b, 150 * US, 100 * US);
  nr_far (&b, &now, &a, 10000);
  began = now;
  nr_far (&b, &now, &a, 50000);
  print_message ("%.4f of the best\n", 50000 * 100 * US / (now - began));
  assert_true (50000 * 100 * US > 0.99 * (now - began));
}

static int
set_up (void **state)
{
  rnd.state = 1;
  return 0;
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_tried_when_warm),
    cmocka_unit_test (test_too_slow),
    cmocka_unit_test (test_interrupted_in_a_row),
    cmocka_unit_test (test_back_soon),
    cmocka_unit_test (test_with_small_ones),
    cmocka_unit_test (test_measured_asleep),
    cmocka_unit_test (test_first_by_twos),
    cmocka_unit_test (test_slower),
    cmocka_unit_test (test_forgotten),
    cmocka_unit_test (test_again),
    cmocka_unit_test (test_not_again),
    cmocka_unit_test (test_again_ends),
    cmocka_unit_test (test_no_drift),
    cmocka_unit_test (test_long_intervals),
    cmocka_unit_test (test_pairs),
    cmocka_unit_test (test_many_kinds),
    cmocka_unit_test (test_long_tries),
  };

  return cmocka_run_group_tests (tests, set_up, NULL);
}
