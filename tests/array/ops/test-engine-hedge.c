/* gpuraid: reads of members that are slow, or slow for once.
 *
 * run-tests: no-thread
 * It has one thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/bits.h"
#include "tests/array/ops/hedge-array.h"

/* For once: decoded after about the time that the others take. */
static void
test_late_read (void **state)
{
  for (unsigned k = 1; k <= 4; k += 3) {
    struct sim_array *sa = start_auto (k, 2);
    struct array_counters *c = &sa->a->counters;

    set_delay (sim_array_disk_at (sa, SLOT), 300 * MS);
    count_from_here (sa);
    assert_in_range (read_block (sa, fresh (sa, 0)), 2 * MS, 6 * MS);
    assert_int_equal (c->hedged_reads, 1);
    assert_int_equal (c->hedges_won, 1);
    assert_int_equal (c->hedge_bytes, k * 4096);
    assert_int_equal (ios (sa, IO_READ), k + 1);
    assert_int_equal (c->avoided_reads, 0);
    assert_false (sa->a->at[SLOT][0]->hedge.slow);
    end_even (sa);
  }
}

/* Of a whole stripe one parity block is read more. */
static void
test_late_stripe (void **state)
{
  struct sim_array *sa = start_auto (4, 2);
  const uint64_t stripe = stripe_of_slot (sa, STRIPES / 2, SLOT);
  const uint64_t begin = sim_now (sa->sim);

  /* The reads of a stripe are longer than what the array has seen. */
  for (unsigned i = 0; i < 60; i++)
    check_range (sa, (STRIPES / 2 + 100 + i) * 4 * CHUNK, 4 * CHUNK);
  assert_true (sim_now (sa->sim) - begin < 200 * MS);
  set_delay (sim_array_disk_at (sa, SLOT), 300 * MS);
  count_from_here (sa);
  check_range (sa, stripe * 4 * CHUNK, 4 * CHUNK);
  assert_true (sim_now (sa->sim) - begin < 300 * MS);
  assert_int_equal (bytes (sa, IO_READ), 5 * CHUNK);
  assert_int_equal (sa->a->counters.hedge_bytes, CHUNK);
  end_even (sa);
}

/* What comes first counts. */
static void
test_late_read_wins (void **state)
{
  struct sim_array *sa = start_auto (4, 2);
  struct array_counters *c = &sa->a->counters;

  for (unsigned i = 0; i < 6; i++)
    set_delay (sa->disk[i], 300 * MS);
  set_delay (sim_array_disk_at (sa, SLOT), 20 * MS);
  assert_in_range (read_block (sa, fresh (sa, 0)), 20 * MS, 22 * MS);
  assert_int_equal (c->hedged_reads, 1);
  assert_int_equal (c->hedges_won, 0);
  end_even (sa);
}

static void
test_slow_member (void **state)
{
  struct sim_array *sa = start_auto (4, 2);
  struct array_counters *c = &sa->a->counters;
  struct array_status st;
  uint64_t hedged;

  make_slow (sa, 50 * MS);
  hedged = c->hedged_reads;
  count_from_here (sa);
  for (unsigned i = 0; i < 10; i++)
    assert_in_range (read_block (sa, fresh (sa, i)), MS, 2 * MS);
  assert_int_equal (c->hedged_reads, hedged);
  assert_int_equal (c->avoided_reads, 10);
  assert_int_equal (reads_of (sa), 0);
  assert_int_equal (ios (sa, IO_READ), 10 * 4);

  /* Of a whole stripe no byte is read more. */
  count_from_here (sa);
  check_range (sa, stripe_of_slot (sa, 199, SLOT) * 4 * CHUNK, 4 * CHUNK);
  assert_int_equal (bytes (sa, IO_READ), 4 * CHUNK);

  array_get_status (sa->a, &st);
  assert_true (st.entry[SLOT].slow);
  assert_int_equal (st.entry[SLOT].state, ENTRY_ACTIVE);
  assert_int_equal (st.state, ARRAY_HEALTHY);
  assert_in_range (st.entry[SLOT].read_median_ns, 1, 60 * MS);
  assert_in_range (st.entry[SLOT].read_p95_ns, 30 * MS, 60 * MS);
  assert_false (st.entry[SLOT + 1].slow);
  assert_in_range (st.entry[SLOT + 1].read_p95_ns, MS / 2, 2 * MS);
  array_status_free (&st);

  /* It is written like any other. */
  put (sa, fresh (sa, 0), CHUNK, ARRAY_FUA);
  assert_true (sim_array_disk_at (sa, SLOT)->nr_ios[IO_WRITE] > 0);
  end_even (sa);
}

/* It only seems so, as this process did not run. */
static void
test_pause (void **state)
{
  struct sim_array *sa = start_auto (4, 2);
  const struct hedge_member *m = &sa->a->at[SLOT][0]->hedge;
  static uint8_t blocks[24 * 4096];
  struct sim_request *r[24];

  for (unsigned round = 0; round < 4; round++) {
    for (unsigned i = 0; i < 24; i++)
      r[i] = start_request (sa, REQUEST_READ, blocks + i * 4096,
                            fresh (sa, round * 24 + i), 4096, 0);
    pass (sa, MS / 2);
    sim_pause (sa->sim, 100 * 1000 * MS);
    pass (sa, 400 * MS);
    for (unsigned i = 0; i < 24; i++) {
      assert_int_equal (r[i]->state, SIM_IDLE);
      free (r[i]);
    }
    assert_false (m->slow);
    assert_int_equal (m->lateness, 0);
    assert_in_range (hedge_percentile (m, 99), 1, 4 * MS);
  }
  end_even (sa);
}

/* Probes tell when it is as fast as the others. */
static void
test_recovers (void **state)
{
  struct sim_array *sa = start_auto (4, 2);
  uint64_t spent, then;
  unsigned nr = 0;

  make_slow (sa, 50 * MS);
  spent = sa->a->counters.hedge_bytes;
  then = sim_now (sa->sim);
  for (; nr < 20; nr++) {
    assert_in_range (read_block (sa, fresh (sa, nr)), MS, 2 * MS);
    pass (sa, 100 * MS);
  }
  assert_true (sa->a->at[SLOT][0]->hedge.slow);
  assert_in_range (sa->a->counters.hedge_bytes - spent, 3 * 4096,
                   4096 + (sim_now (sa->sim) - then) / (200 * MS) * 4096);
  set_delay (sim_array_disk_at (sa, SLOT), MS);
  for (; sa->a->at[SLOT][0]->hedge.slow; nr++) {
    read_block (sa, fresh (sa, nr));
    pass (sa, 100 * MS);
  }
  count_from_here (sa);
  assert_in_range (read_block (sa, fresh (sa, nr)), MS, 2 * MS);
  assert_int_equal (reads_of (sa), 1);
  assert_int_equal (ios (sa, IO_READ), 1);
  end_even (sa);
}

/* No client, no probe. */
static void
test_idle (void **state)
{
  struct sim_array *sa = start_auto (4, 2);

  make_slow (sa, 50 * MS);
  read_block (sa, fresh (sa, 0));
  pass (sa, 2 * SECOND);
  count_from_here (sa);
  pass (sa, 100 * SECOND);
  assert_int_equal (reads_of (sa), 0);
  end_even (sa);
}

/* Two slow members are avoided where m is 2, and a third one is not. */
static void
test_many_slow (void **state)
{
  struct sim_array *sa = start_auto (4, 2);
  unsigned slow = 0;

  for (unsigned slot = 0; slot < 3; slot++)
    set_delay (sim_array_disk_at (sa, slot), 50 * MS);
  for (unsigned i = 0; i < 240; i++) {
    read_block (sa, data_of_slot (sa, 20 + i, i % 3));
    pass (sa, 60 * MS);
  }
  for (unsigned slot = 0; slot < 6; slot++)
    slow |= sa->a->at[slot][0]->hedge.slow << slot;
  assert_int_equal (nr_bits (slow), 2);
  assert_int_equal (slow & ~7u, 0);
  check_all (sa);
  end_even (sa);
}

/* Without redundancy all of it is waited for. */
static void
test_degraded (void **state)
{
  struct sim_array *sa = start_auto (4, 1);
  const uint64_t hedged = sa->a->counters.hedged_reads;

  assert_int_equal (sim_array_fail (sa, 0), 0);
  set_delay (sim_array_disk_at (sa, SLOT), 50 * MS);
  for (unsigned i = 0; i < 30; i++)
    assert_in_range (read_block (sa, fresh (sa, i)), 50 * MS, 60 * MS);
  assert_int_equal (sa->a->counters.hedged_reads, hedged);
  assert_false (sa->a->at[SLOT][0]->hedge.slow);
  set_delay (sim_array_disk_at (sa, SLOT), MS);
  end_degraded (sa);
}

/* A member that was avoided is needed when another one is lost. */
static void
test_degraded_later (void **state)
{
  struct sim_array *sa = start_auto (4, 1);

  make_slow (sa, 50 * MS);
  assert_int_equal (sim_array_fail (sa, 0), 0);
  count_from_here (sa);
  assert_in_range (read_block (sa, fresh (sa, 0)), 50 * MS, 60 * MS);
  assert_int_equal (reads_of (sa), 1);
  assert_int_equal (ios (sa, IO_READ), 1);
  check_all (sa);
  set_delay (sim_array_disk_at (sa, SLOT), MS);
  end_degraded (sa);
}

/* What may be spent is spent. */
static void
test_budget (void **state)
{
  struct sim_array *sa = start_auto (4, 2);

  hedge_spend (&sa->a->hedge, 10 * HEDGE_SAVED);
  set_delay (sim_array_disk_at (sa, SLOT), 50 * MS);
  assert_in_range (read_block (sa, fresh (sa, 0)), 50 * MS, 52 * MS);
  assert_int_equal (sa->a->counters.hedged_reads, 0);
  end_even (sa);
}

static void
test_off (void **state)
{
  struct sim_array *sa = start_even (4, 2,
                                     (struct hedge_policy) { .off = true });

  set_delay (sim_array_disk_at (sa, SLOT), 50 * MS);
  for (unsigned i = 0; i < 40; i++)
    assert_in_range (read_block (sa, fresh (sa, i)), 50 * MS, 52 * MS);
  assert_int_equal (sa->a->counters.hedged_reads, 0);
  assert_int_equal (sa->a->counters.avoided_reads, 0);
  end_even (sa);
}

static void
test_fixed_delay (void **state)
{
  struct sim_array *sa =
    start_even (4, 2, (struct hedge_policy) { .delay = 10 * MS });

  set_delay (sim_array_disk_at (sa, SLOT), 300 * MS);
  assert_in_range (read_block (sa, fresh (sa, 0)), 11 * MS, 12 * MS);
  assert_int_equal (sa->a->counters.hedges_won, 1);
  end_even (sa);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_late_read),
    cmocka_unit_test (test_late_stripe),
    cmocka_unit_test (test_late_read_wins),
    cmocka_unit_test (test_slow_member),
    cmocka_unit_test (test_pause),
    cmocka_unit_test (test_recovers),
    cmocka_unit_test (test_idle),
    cmocka_unit_test (test_many_slow),
    cmocka_unit_test (test_degraded),
    cmocka_unit_test (test_degraded_later),
    cmocka_unit_test (test_budget),
    cmocka_unit_test (test_off),
    cmocka_unit_test (test_fixed_delay),
  };

  return cmocka_run_group_tests (tests, NULL, free_data);
}
