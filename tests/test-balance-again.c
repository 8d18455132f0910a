/* gpuraid: when the balance of coder auto does not choose anew for jobs that
 * come one at a time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "gf/balance.h"
#include "tests/balance-lone.h"

/* Most choices for jobs that are alike are those of the last one. */
static void
test_again (void **state)
{
  static const struct lone a = { .seconds = { 60 * US, 100 * US } };
  const struct balance_job job = lone_job (&a);
  struct balance_choice c;
  struct balance b;
  double now = 1000;
  unsigned nr = 0;

  lone_init (&b, 60 * US, 100 * US);
  lone_far (&b, &now, &a, 40);
  for (unsigned i = 0; i < 80; i++) {
    balance_choose (&b, &job, now, &c);
    nr += c.part[NEAR].again;
    now += 60 * US;
    balance_done (&b, NEAR, &c.part[NEAR], now, false);
  }
  assert_in_range (nr, 60, 72);
  /* A long one has the time. */
  lone_init (&b, 400 * US, 900 * US);
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
  static const struct lone a = { .seconds = { 60 * US, 100 * US } };
  static const struct balance_job other = { .work = 2e6, .rows = 1,
                                            .nr_units = 1 };
  const struct balance_job job = lone_job (&a);
  struct balance_choice c;
  struct balance b;
  double now = 1000;

  lone_init (&b, 60 * US, 100 * US);
  lone_far (&b, &now, &a, 40);
  for (unsigned i = 0; i < 20; i++) {
    balance_choose (&b, &job, now, &c);
    assert_false (is_again (&b, &job, now));
    now += 60 * US;
    balance_done (&b, c.far_units > 0, &c.part[c.far_units > 0], now, false);
    lone_far (&b, &now, &a, 10);
    assert_false (is_again (&b, &other, now));
    lone_far (&b, &now, &a, 10);
    now += 0.01;
    assert_false (is_again (&b, &job, now));
    lone_far (&b, &now, &a, 10);
  }
}

/* The choice of the last job is not used after one that failed, nor after one
 * that was given without a choice.
 */
static void
test_again_ends (void **state)
{
  static const struct lone a = { .seconds = { 100 * US, 60 * US } };
  const struct balance_job job = lone_job (&a);
  struct balance_choice c;
  struct balance_part part;

  for (unsigned i = 0; i < 2; i++) {
    struct balance b;
    double now = 1000;
    unsigned nr = 0;

    lone_init (&b, 100 * US, 60 * US);
    lone_far (&b, &now, &a, 40);
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

/* Near takes so much longer from now on: how many jobs are still given there,
 * of eight times?
 */
static unsigned
nr_until_far (double seconds)
{
  static const struct lone a = { .seconds = { 60 * US, 80 * US } };
  const struct lone slow = { .seconds = { seconds, 80 * US } };
  struct balance b;
  double now = 1000;
  unsigned nr = 0;

  for (unsigned i = 0; i < 8; i++) {
    lone_init (&b, 60 * US, 80 * US);
    lone_far (&b, &now, &a, 100 + i);
    while (lone_one (&b, &now, &slow) == NEAR)
      nr++;
    /* A try: from the next ones on it is the best way. */
    lone_far (&b, &now, &slow, 200);
    assert_true (lone_far (&b, &now, &slow, 50) > 35);
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
  assert_in_range (nr_until_far (150 * US), 8, 85);
  assert_in_range (nr_until_far (108 * US), 8, 650);
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
    cmocka_unit_test (test_again),
    cmocka_unit_test (test_not_again),
    cmocka_unit_test (test_again_ends),
    cmocka_unit_test (test_slower),
  };

  return cmocka_run_group_tests (tests, set_up, NULL);
}
