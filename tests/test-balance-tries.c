/* gpuraid: where jobs go that come one at a time: what the balance of coder
 * auto learns of them, and when it tries another way.
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
#include "tests/balance-lone.h"

/* A small one comes and goes meanwhile. */
static unsigned
big_and_small (struct balance *b, double *now, const struct lone *a,
               const struct balance_job *small)
{
  const struct balance_job job = lone_job (a);
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
  static const struct lone a = { .seconds = { 200 * US, 240 * US } };
  struct balance b;
  double now = 1000;
  unsigned nr = 0;

  lone_init (&b, 200 * US, 240 * US);
  lone_far (&b, &now, &a, 100);
  for (unsigned i = 0; i < 40; i++) {
    unsigned nr_now;

    now += 0.9;
    assert_int_equal (lone_far (&b, &now, &a, 8), 0);
    nr_now = lone_far (&b, &now, &a, 60);
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
  static const struct lone a = { .seconds = { 200 * US, 240 * US } };
  static const struct lone slow = { .seconds = { 1 * MS, 240 * US } };
  static const struct lone interrupted = { .seconds = { 4 * MS, 240 * US } };
  struct balance b;
  double now = 1000;

  for (unsigned i = 0; i < 2; i++) {
    lone_init (&b, 200 * US, 240 * US);
    lone_far (&b, &now, &a, 100);
    now += 0.01;
    if (i == 0) {
      lone_far (&b, &now, &interrupted, 2);
      assert_int_equal (lone_far (&b, &now, &a, 8), 0);
    }
    else {
      lone_far (&b, &now, &slow, 3);
      assert_int_equal (lone_far (&b, &now, &slow, 50), 50);
    }
  }
}

/* Some jobs in a row are interrupted, again and again: still that is the
 * better way.
 */
static void
test_interrupted_in_a_row (void **state)
{
  static const struct lone a = { { 50 * US, 72 * US }, .noise = 0.1 };
  static const struct lone slow = { { 170 * US, 72 * US }, .noise = 0.5 };
  struct balance b;
  double now = 1000, began, part;
  unsigned nr = 0;

  lone_init (&b, 71 * US, 72 * US);
  lone_far (&b, &now, &a, 500);
  began = now;
  for (unsigned i = 0; i < 200; i++) {
    nr += lone_far (&b, &now, &a, 50 + ref_below (&lone_random, 20));
    nr += lone_far (&b, &now, &slow, 5);
  }
  part = 200 * (60 * 50 + 5 * 170) * US / (now - began);
  print_message ("%u went far; %.3f of near\n", nr, part);
  assert_true (part > 0.98);
}

/* Small jobs of another kind come and go while each one is under way. */
static void
test_with_small_ones (void **state)
{
  static const struct lone before = { .seconds = { 800 * US, 500 * US } };
  static const struct lone after = { .seconds = { 250 * US, 500 * US } };
  static const struct balance_job small = { .work = 1e4, .rows = 4,
                                            .nr_units = 1 };
  struct balance b;
  double now = 1000, changed;
  unsigned nr = 0;

  lone_init (&b, 800 * US, 500 * US);
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
  static const struct lone a = { .seconds = { 50 * US, 72 * US } };
  static const struct lone slow = { .seconds = { 170 * US, 72 * US } };
  struct balance b;
  double now = 1000;

  lone_init (&b, 50 * US, 72 * US);
  lone_far (&b, &now, &a, 1000);
  while (lone_one (&b, &now, &slow) == NEAR)
    ;
  assert_true (lone_far (&b, &now, &slow, 10) >= 9);
  lone_far (&b, &now, &a, 60);
  assert_true (lone_far (&b, &now, &a, 50) <= 10);
}

/* Start may have found processors asleep, and measured far too much: it is
 * seen soon.  If it was right, little time is lost to see that.
 */
static void
test_measured_asleep (void **state)
{
  static const struct lone fast = { .seconds = { 60 * US, 100 * US } };
  static const struct lone slow = { .seconds = { 400 * US, 100 * US } };
  struct balance b;
  double now = 1000;

  lone_init (&b, 400 * US, 100 * US);
  lone_far (&b, &now, &fast, 70);
  assert_int_equal (lone_far (&b, &now, &fast, 30), 0);
  lone_init (&b, 400 * US, 100 * US);
  assert_in_range (lone_far (&b, &now, &slow, 1000), 990, 997);
}

/* The first jobs come by twos, so that near never gets warm: that was no try.
 */
static void
test_first_by_twos (void **state)
{
  static const struct lone cold = { .seconds = { 300 * US, 100 * US } };
  static const struct lone warm = { .seconds = { 60 * US, 100 * US } };
  struct balance b;
  double now = 1000;

  lone_init (&b, 100 * US, 100 * US);
  for (unsigned i = 0; i < 10; i++) {
    lone_far (&b, &now, &cold, 2);
    now += 2 * MS;
  }
  assert_true (lone_far (&b, &now, &warm, 1) == 1);
  lone_far (&b, &now, &warm, 70);
  assert_int_equal (lone_far (&b, &now, &warm, 30), 0);
}

/* What was learnt is forgotten in a pause: but for that a side which was slow
 * once would never be used again.
 */
static void
test_forgotten (void **state)
{
  const struct lone slow = { .seconds = { 600 * US, 800 * US } };
  struct balance b;
  double now = 1000, measured;
  const struct balance_job job = lone_job (&slow);

  lone_init (&b, 60 * US, 80 * US);
  measured = balance_rate (&b, NEAR, 1);
  lone_far (&b, &now, &slow, 500);
  assert_true (balance_rate (&b, NEAR, 1) < measured / 1.2);
  now += 200;
  for (unsigned i = 0; i < 2; i++) {
    struct balance_choice c;

    balance_choose (&b, &job, now, &c);
    balance_cancel (&b, c.far_units > 0, &c.part[c.far_units > 0]);
  }
  assert_true (balance_rate (&b, NEAR, 1) > measured / 1.01);
}

/* What is known of a side is not lost for what is learnt of one kind of
 * job, whatever comes of it by chance.
 */
static void
test_no_drift (void **state)
{
  static const double pause[] = { 0, 2 * MS };
  const struct lone a = { { 150 * US, 230 * US }, .noise = 0.2 };

  for (unsigned i = 0; i < ARRAY_LEN (pause); i++) {
    struct balance b;
    double now = 1000, first, last;

    lone_init (&b, 170 * US, 200 * US);
    lone_far (&b, &now, &a, 100);
    first = balance_rate (&b, NEAR, 1);
    while (now < 1060) {
      lone_one (&b, &now, &a);
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
  static const struct lone kinds[] = {
    { { 240 * US, 100 * US }, .noise = 0.1 },
    { { 100 * US, 170 * US }, .noise = 0.1 },
  };
  /* What was learnt is forgotten after some times 10 seconds. */
  static const struct { double seconds, measured; } intervals[] = {
    { 0.1, 50 * US }, { 2.5, 150 * US }, { 5, 150 * US },
  };

  for (unsigned i = 0; i < 2 * ARRAY_LEN (intervals); i++) {
    const struct lone *a = &kinds[i % 2];
    const unsigned good = i % 2 ? NEAR : FAR;
    struct balance b;
    double now = 1000;
    unsigned nr = 0;

    lone_init (&b, intervals[i / 2].measured, intervals[i / 2].measured);
    for (unsigned j = 0; j < 600; j++) {
      const unsigned side = lone_one (&b, &now, a);

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
  const struct lone a = { { 700 * US, 100 * US } };
  const struct balance_job job = lone_job (&a);
  struct balance_choice c[2];
  struct balance b;
  double now = 1000;
  unsigned nr = 0;

  lone_init (&b, 150 * US, 100 * US);
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

  lone_init (&b, 100 * US, 100 * US);
  for (unsigned n = 0; n < ARRAY_LEN (spans); n++) {
    const unsigned nr = spans[n].nr_jobs;
    const double began = now;
    double part;

    for (unsigned i = 0; i < nr; i++) {
      const struct lone a = {
        .seconds = { seconds[NEAR], seconds[FAR] },
        .kind = ref_below (&lone_random, LONE_KINDS),
      };

      lone_one (&b, &now, &a);
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
  const struct lone a = { { 170 * US, 100 * US }, .noise = 0.5 };
  struct balance b;
  double now = 1000, began;

  lone_init (&b, 150 * US, 100 * US);
  lone_far (&b, &now, &a, 10000);
  began = now;
  lone_far (&b, &now, &a, 50000);
  print_message ("%.4f of the best\n", 50000 * 100 * US / (now - began));
  assert_true (50000 * 100 * US > 0.99 * (now - began));
}

static int
set_up (void **state)
{
  lone_random.state = 1;
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
    cmocka_unit_test (test_forgotten),
    cmocka_unit_test (test_no_drift),
    cmocka_unit_test (test_long_intervals),
    cmocka_unit_test (test_pairs),
    cmocka_unit_test (test_many_kinds),
    cmocka_unit_test (test_long_tries),
  };

  return cmocka_run_group_tests (tests, set_up, NULL);
}
