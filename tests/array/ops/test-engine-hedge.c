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

#include "array/request/internal.h"
#include "array/seats/slow.h"
#include "common/bits.h"
#include "tests/engine-array.h"

#define SLOT 1u                 /* whose member is slow */
#define MS UINT64_C (1000000)
#define STRIPES 400u

static void
nothing (void *arg)
{
}

/* Also where nothing else happens in that time. */
static void
pass (struct sim_array *sa, uint64_t ns)
{
  sim_at (sa->sim, ns, nothing, NULL);
  assert_true (sim_array_pause (sa, ns));
}

static void
set_delay (struct sim_disk *d, uint64_t ns)
{
  d->min_delay_ns = d->max_delay_ns = ns;
}

/* A stripe, from this one on, in which a slot has data. */
static uint64_t
stripe_of_slot (const struct sim_array *sa, uint64_t stripe, unsigned slot)
{
  while (layout_role (&sa->g, stripe, slot) >= sa->g.k)
    stripe++;
  return stripe;
}

static uint64_t
data_of_slot (const struct sim_array *sa, uint64_t stripe, unsigned slot)
{
  stripe = stripe_of_slot (sa, stripe, slot);
  return layout_address (&sa->g, stripe, layout_role (&sa->g, stripe, slot),
                         0);
}

/* ns that it takes to read a block, which is compared. */
static uint64_t
read_block (struct sim_array *sa, uint64_t off)
{
  const uint64_t start = sim_now (sa->sim);

  check_range (sa, off, 4096);
  return sim_now (sa->sim) - start;
}

/* Nothing is in the cache, all members take a millisecond, and the array has
 * seen that.
 */
static struct sim_array *
start (unsigned k, unsigned m, struct hedge_policy policy)
{
  struct sim_array *sa;

  /* Only reads that go through the loop take time here. */
  limits.hedge_loop_ns = 0;
  limits.inline_max_len = policy.off ? 0 : default_limits.inline_max_len;
  sa = start_full (k, m, CHUNK, STRIPES);
  sa->hedge = policy;
  sa->max_pause_ns = 1000;
  for (unsigned i = 0; i < k + m; i++)
    set_delay (sa->disk[i], MS);
  open_again (sa, ~0, true);
  for (unsigned i = 0; i < 40 * (k + m); i++)
    assert_in_range (read_block (sa, data_of_slot (sa, i, i % (k + m))), 0,
                     4 * MS);
  assert_int_equal (sa->a->counters.hedged_reads, 0);
  return sa;
}

static struct sim_array *
start_auto (unsigned k, unsigned m)
{
  return start (k, m, (struct hedge_policy) { 0 });
}

static void
end (struct sim_array *sa)
{
  for (unsigned i = 0; i < sa->g.k + sa->g.m; i++)
    set_delay (sa->disk[i], MS);
  assert_int_equal (sa->a->lost_slots, 0);
  assert_int_equal (sa->a->counters.bad_blocks, 0);
  end_whole (sa);
}

/* Of 120 blocks of the slot, in the half of the array that start has not read.
 */
static uint64_t
fresh (const struct sim_array *sa, unsigned i)
{
  assert_true (i < 120);
  return data_of_slot (sa, STRIPES / 2 + 20 + i % 30 * 6, SLOT) +
    i / 30 * 4096;
}

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
    end (sa);
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
  end (sa);
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
  end (sa);
}

/* Most reads are late: they are not made. */
static void
make_slow (struct sim_array *sa, uint64_t ns)
{
  unsigned nr = 0;

  set_delay (sim_array_disk_at (sa, SLOT), ns);
  while (!sa->a->at[SLOT][0]->hedge.slow) {
    assert_in_range (++nr, 1, 20);
    assert_in_range (read_block (sa, fresh (sa, 90 + nr)), 0, 6 * MS);
    pass (sa, 2 * ns);
  }
}

static uint64_t
reads_of (struct sim_array *sa)
{
  return sim_array_disk_at (sa, SLOT)->nr_ios[IO_READ];
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
  end (sa);
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
  end (sa);
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
  end (sa);
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
  end (sa);
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
  end (sa);
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
  end (sa);
}

static void
test_off (void **state)
{
  struct sim_array *sa = start (4, 2, (struct hedge_policy) { .off = true });

  set_delay (sim_array_disk_at (sa, SLOT), 50 * MS);
  for (unsigned i = 0; i < 40; i++)
    assert_in_range (read_block (sa, fresh (sa, i)), 50 * MS, 52 * MS);
  assert_int_equal (sa->a->counters.hedged_reads, 0);
  assert_int_equal (sa->a->counters.avoided_reads, 0);
  end (sa);
}

static void
test_fixed_delay (void **state)
{
  struct sim_array *sa =
    start (4, 2, (struct hedge_policy) { .delay = 10 * MS });

  set_delay (sim_array_disk_at (sa, SLOT), 300 * MS);
  assert_in_range (read_block (sa, fresh (sa, 0)), 11 * MS, 12 * MS);
  assert_int_equal (sa->a->counters.hedges_won, 1);
  end (sa);
}

/* A late read that fails is repaired, if it fails before the others end. */
static void
test_late_error (void **state)
{
  struct sim_array *sa = start_auto (4, 2);
  struct array_counters *c = &sa->a->counters;
  const uint64_t stripe = STRIPES / 2 + 20;
  const unsigned role = layout_role (&sa->g, stripe_of_slot (sa, stripe, SLOT),
                                     SLOT);

  for (unsigned i = 0; i < 6; i++)
    set_delay (sa->disk[i], 100 * MS);
  set_delay (sim_array_disk_at (sa, SLOT), 20 * MS);
  sim_disk_set_bad (sim_array_disk_at (sa, SLOT),
                    place (sa, stripe_of_slot (sa, stripe, SLOT), 0), 4096);
  assert_true (role < 4);
  assert_in_range (read_block (sa, fresh (sa, 0)), 100 * MS, 110 * MS);
  assert_int_equal (c->hedged_reads, 1);
  assert_true (sim_array_settle (sa, 10 * SECOND));
  pass (sa, 10 * SECOND);
  assert_int_equal (c->repaired_blocks, 1);
  end (sa);
}

/* Another member has an error while a read is late: with m = 1 only the late
 * one can help.
 */
static void
test_other_error (void **state)
{
  for (unsigned m = 1; m <= 2; m++) {
    struct sim_array *sa = start_auto (4, m);
    const uint64_t stripe = stripe_of_slot (sa, STRIPES / 2 + 20, SLOT);
    unsigned other = layout_role (&sa->g, stripe, SLOT) ? 0 : 1;

    set_delay (sim_array_disk_at (sa, SLOT), 100 * MS);
    sim_disk_set_bad (disk_of_role (sa, stripe, other),
                      place (sa, stripe, 0), 4096);
    assert_in_range (read_block (sa, fresh (sa, 0)), 2 * MS,
                     m == 1 ? 210 * MS : 10 * MS);
    assert_int_equal (sa->a->counters.hedged_reads, 1);
    pass (sa, 10 * SECOND);
    end (sa);
  }
}

/* What is decoded is compared with the checksums of all that it comes from:
 * with m = 1 only the late read can help.
 */
static void
test_wrong_source (void **state)
{
  sim_checksum = CHECKSUM_CRC32C;
  for (unsigned m = 1; m <= 2; m++) {
    struct sim_array *sa = start_auto (4, m);
    const uint64_t stripe = stripe_of_slot (sa, STRIPES / 2 + 20, SLOT);
    const unsigned other = layout_role (&sa->g, stripe, SLOT) ? 0 : 1;

    read_block (sa, fresh (sa, 30));    /* the table is in memory */
    set_delay (sim_array_disk_at (sa, SLOT), 100 * MS);
    sim_disk_poke (disk_of_role (sa, stripe, other), "wrong", 5,
                   place (sa, stripe, 0));
    read_block (sa, fresh (sa, 0));
    assert_int_equal (sa->a->counters.hedged_reads, 1);
    assert_int_equal (sa->a->counters.bad_blocks, 1);
    pass (sa, 10 * SECOND);
    assert_int_equal (sa->a->counters.bad_blocks_repaired, 1);
    sa->a->counters.bad_blocks = 0;
    end (sa);
  }
  sim_checksum = CHECKSUM_NONE;
}

/* Nor is the checksum table of a slow member read for clients, unless a block
 * of another member is wrong.
 */
static void
test_slow_table (void **state)
{
  struct sim_array *sa;
  uint64_t stripe, avoided;

  sim_checksum = CHECKSUM_CRC32C;
  limits.table_page_entries = 4;        /* a chunk */
  sa = start_auto (4, 2);
  set_delay (sim_array_disk_at (sa, SLOT), 50 * MS);
  for (unsigned i = 0; !sa->a->at[SLOT][0]->hedge.slow; i++) {
    assert_in_range (read_block (sa, data_of_slot (sa, 20 + 6 * i, SLOT)), 0,
                     110 * MS);
    pass (sa, 100 * MS);
  }
  avoided = sa->a->counters.avoided_reads;
  for (unsigned i = 0; i < 10; i++)
    assert_in_range (read_block (sa, fresh (sa, i)), 2 * MS, 5 * MS);
  assert_int_equal (sa->a->counters.avoided_reads, avoided + 10);
  stripe = stripe_of_slot (sa, STRIPES / 2 + 20 + 15 * 6, SLOT);
  sim_disk_poke (disk_of_role (sa, stripe,
                               layout_role (&sa->g, stripe, SLOT) ? 0 : 1),
                 "wrong", 5, place (sa, stripe, 0));
  assert_in_range (read_block (sa, fresh (sa, 15)), 50 * MS, 60 * MS);
  assert_int_equal (sa->a->counters.bad_blocks, 1);
  pass (sa, 10 * SECOND);
  sa->a->counters.bad_blocks = 0;
  end (sa);
  sim_checksum = CHECKSUM_NONE;
  limits = default_limits;
}

/* A member that hangs is avoided, as ever, and the array can be stopped when it
 * answers.
 */
static void
test_hang (void **state)
{
  struct sim_array *sa = start_auto (4, 2);

  sim_disk_hang (sim_array_disk_at (sa, SLOT), true);
  assert_in_range (read_block (sa, fresh (sa, 0)), 2 * MS, 6 * MS);
  pass (sa, 200 * MS);
  assert_false (sa->a->at[SLOT][0]->suspect);
  assert_in_range (read_block (sa, fresh (sa, 1)), 2 * MS, 6 * MS);
  pass (sa, 3 * SECOND);
  read_block (sa, fresh (sa, 2));
  pass (sa, 3 * SECOND);
  assert_true (sa->a->at[SLOT][0]->suspect);
  assert_in_range (read_block (sa, fresh (sa, 3)), MS, 2 * MS);
  sim_disk_hang (sim_array_disk_at (sa, SLOT), false);
  pass (sa, SECOND);
  end (sa);
}

/* Taken out while a read of it is late. */
static void
test_fails_when_late (void **state)
{
  struct sim_array *sa = start_auto (4, 2);
  struct sim_request *q;
  const uint64_t off = fresh (sa, 0);

  for (unsigned i = 0; i < 6; i++)
    set_delay (sa->disk[i], 20 * MS);
  sim_disk_hang (sim_array_disk_at (sa, SLOT), true);
  q = start_request (sa, REQUEST_READ, back, off, 4096, 0);
  pass (sa, 10 * MS);
  assert_int_equal (sa->a->counters.hedged_reads, 1);
  assert_int_equal (sim_array_fail (sa, SLOT), 0);
  pass (sa, SECOND);
  assert_int_equal (q->state, SIM_IDLE);
  assert_int_equal (q->r.error, 0);
  assert_memory_equal (back, data + off, 4096);
  free (q);
  sim_disk_hang (sa->disk[SLOT], false);
  check_all (sa);
  end_degraded (sa);
}

/* Two reads are late: it goes on without the others when both have ended. */
static void
test_late_parts (void **state)
{
  struct sim_array *sa = start_auto (4, 2);
  struct sim_request *q[8];

  for (unsigned turn = 0; turn < 16; turn++) {
    for (unsigned i = 0; turn == 8 && i < 6; i++)
      sa->disk[i]->max_delay_ns = i < 2 ? 20 * MS : 40 * MS;
    for (unsigned i = 0; i < 8; i++)
      q[i] = start_request (sa, REQUEST_READ, back + i * 3 * CHUNK,
                            (uint64_t) (turn * 8 + i) * 3 * CHUNK + 4096,
                            3 * CHUNK - 8192, 0);
    pass (sa, 10 * SECOND);
    for (unsigned i = 0; i < 8; i++) {
      assert_int_equal (q[i]->state, SIM_IDLE);
      assert_memory_equal (q[i]->r.buf, data + q[i]->r.off, q[i]->r.len);
      free (q[i]);
    }
  }
  assert_true (sa->a->counters.hedged_reads > 0);
  end (sa);
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
    cmocka_unit_test (test_late_error),
    cmocka_unit_test (test_other_error),
    cmocka_unit_test (test_wrong_source),
    cmocka_unit_test (test_slow_table),
    cmocka_unit_test (test_hang),
    cmocka_unit_test (test_fails_when_late),
    cmocka_unit_test (test_late_parts),
  };

  return cmocka_run_group_tests (tests, NULL, free_data);
}
