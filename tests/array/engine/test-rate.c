/* gpuraid: the rate of a long work and the time left, with a simulated clock.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "array/engine/rate.h"

#define MS UINT64_C (1000000)
#define SECOND (1000 * MS)
#define MIB (UINT64_C (1) << 20)

struct work {
  struct rate rate;
  uint64_t now, pos;
};

/* In steps of a tenth of a second. */
static void
run (struct work *w, unsigned seconds, uint64_t per_second)
{
  for (unsigned i = 0; i < 10 * seconds; i++) {
    w->now += 100 * MS;
    w->pos += per_second / 10;
    rate_note (&w->rate, w->now, w->pos);
  }
}

static uint64_t
eta (const struct work *w, uint64_t total)
{
  struct array_progress p;

  rate_fill (&w->rate, w->now, w->pos, total - w->pos, &p);
  return p.eta_seconds;
}

/* An hour at one rate, then ten times as fast: soon the time left is right to
 * within a tenth, where an average since the start would be wrong by nine
 * times.
 */
static void
change_rate (uint64_t from, uint64_t to)
{
  struct work w = { .now = 1234567 * SECOND };
  uint64_t total, want;

  rate_note (&w.rate, w.now, 0);
  run (&w, 3600, from);
  assert_in_range (rate_get (&w.rate, w.now, w.pos), from * 9 / 10,
                   from * 11 / 10);
  total = w.pos + 1000 * to;
  for (unsigned i = 0; i < 300; i++) {
    run (&w, 1, to);
    want = (total - w.pos) / to;
    if (i >= 10)
      assert_in_range (eta (&w, total), want * 9 / 10, want * 11 / 10);
  }
  /* On the way it is between the two. */
  run (&w, 3, from);
  assert_in_range (rate_get (&w.rate, w.now, w.pos), from < to ? from : to,
                   from < to ? to : from);
}

static void
test_faster (void **state)
{
  change_rate (20 * MIB, 200 * MIB);
}

static void
test_slower (void **state)
{
  change_rate (200 * MIB, 20 * MIB);
}

/* It stands still: the rate falls although nothing is noted. */
static void
test_stalled (void **state)
{
  struct work w = { .now = SECOND };

  rate_note (&w.rate, w.now, 0);
  run (&w, 60, 100 * MIB);
  w.now += 90 * SECOND;
  assert_in_range (rate_get (&w.rate, w.now, w.pos), 1, 11 * MIB);
}

/* Nothing is known yet; then soon something is. */
static void
test_start (void **state)
{
  struct work w = { .now = SECOND, .pos = 1000 * MIB };

  assert_int_equal (rate_get (&w.rate, w.now, w.pos), 0);
  assert_int_equal (eta (&w, 2000 * MIB), 0);
  rate_note (&w.rate, w.now, w.pos);
  assert_int_equal (rate_get (&w.rate, w.now, w.pos), 0);
  w.now += SECOND / 2;
  w.pos += 50 * MIB;
  assert_int_equal (rate_get (&w.rate, w.now, w.pos), 100 * MIB);
  assert_int_equal (eta (&w, 2050 * MIB), 10);
}

/* Another target starts from the beginning. */
static void
test_back (void **state)
{
  struct work w = { .now = SECOND };

  rate_note (&w.rate, w.now, 0);
  run (&w, 60, 100 * MIB);
  w.pos = 0;
  rate_note (&w.rate, w.now, w.pos);
  assert_int_equal (rate_get (&w.rate, w.now, w.pos), 0);
  run (&w, 2, 10 * MIB);
  assert_int_equal (rate_get (&w.rate, w.now, w.pos), 10 * MIB);
  rate_reset (&w.rate);
  assert_int_equal (rate_get (&w.rate, w.now, w.pos), 0);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_faster),
    cmocka_unit_test (test_slower),
    cmocka_unit_test (test_stalled),
    cmocka_unit_test (test_start),
    cmocka_unit_test (test_back),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
