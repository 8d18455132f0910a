/* gpuraid: small reads in a client's thread, and which have to go through the
 * loop instead.
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
  sa->a->engine.now = 0;        /* as in the next turn */
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

static void
end (struct sim_array *sa)
{
  assert_int_equal (sa->a->lost_slots, 0);
  assert_int_equal (sa->a->counters.corrupt_found, 0);
  end_whole (sa);
}

/* Members whose reads take long, all alike, are read in the client's thread, as
 * with hedge=no.  One whose reads are late is not.
 */
static void
test_equal_members (void **state)
{
  const struct slow_read usual = { .len = 4096, .ns = MS, .pread = true };
  const struct slow_read late = { .len = 4096, .ns = 50 * MS, .pread = true };
  struct sim_array *sa;

  limits.hedge_loop_ns = default_limits.hedge_loop_ns;
  limits.inline_max_len = default_limits.inline_max_len;
  sa = start_full (4, 2, CHUNK, STRIPES);
  open_again (sa, ~0, true);
  for (unsigned i = 0; i < 600; i++) {
    slow_read_done (sa->a, sa->a->at[i % 6][0], &usual);
    pass (sa, MS / 5);
  }
  slow_compare (sa->a);
  for (unsigned slot = 0; slot < 6; slot++)
    for (unsigned i = 0; i < 20; i++)
      assert_false (slow_owes (sa->a, sa->a->at[slot][0], 4096));
  for (unsigned i = 0; i < 9; i++)
    slow_read_done (sa->a, sa->a->at[SLOT][0], &late);
  assert_false (slow_owes (sa->a, sa->a->at[SLOT][0], 4096));
  pass (sa, 50 * MS);
  slow_read_done (sa->a, sa->a->at[SLOT][0], &late);
  assert_true (slow_owes (sa->a, sa->a->at[SLOT][0], 4096));
  assert_false (slow_owes (sa->a, sa->a->at[SLOT + 1][0], 4096));
  end (sa);
}

/* A member that has not ended a read which is late: the next one of it can be
 * hedged.  Those of the others stay in the client's thread.
 */
static void
test_late_in_a_client (void **state)
{
  const struct slow_read usual = { .len = 4096, .ns = MS, .pread = true };
  struct step hangs = { .len = 4096 }, next = { .len = 4096 };
  struct sim_array *sa;
  struct seat *seat;

  sa = start_full (4, 2, CHUNK, STRIPES);
  open_again (sa, ~0, true);
  limits.hedge_loop_ns = default_limits.hedge_loop_ns;
  for (unsigned i = 0; i < 600; i++)
    slow_read_done (sa->a, sa->a->at[i % 6][0], &usual);
  slow_compare (sa->a);
  hangs.seat = next.seat = seat = sa->a->at[SLOT][0];
  assert_true (seat->m->direct);
  pread_begin (sa->a, &hangs);
  pread_begin (sa->a, &next);
  pread_end (&next, LANE_OF_LOCK);
  assert_false (slow_owes (sa->a, seat, 4096));
  pass (sa, 50 * MS);
  assert_true (slow_owes (sa->a, seat, 4096));
  assert_false (slow_owes (sa->a, sa->a->at[SLOT + 1][0], 4096));
  pread_end (&hangs, LANE_OF_LOCK);
  assert_false (slow_owes (sa->a, seat, 4096));
  end (sa);
}

/* Reads in a client's thread take this time on all members. */
static struct sim_array *timed_array;
static uint64_t timed_ns;
static const struct member_ops *plain_ops;

static int
timed_pread (struct member *m, void *buf, size_t len, uint64_t off)
{
  pass (timed_array, timed_ns);
  return plain_ops->pread (m, buf, len, off);
}

/* usual: how long they took before. */
static struct sim_array *
start_timed (struct hedge_policy policy, uint64_t usual_ns)
{
  static struct member_ops ops;
  const struct slow_read usual = { .len = 4096, .ns = usual_ns,
                                   .pread = true };
  struct sim_array *sa;

  sa = start_full (4, 2, CHUNK, STRIPES);
  sa->hedge = policy;
  open_again (sa, ~0, true);
  limits.hedge_loop_ns = default_limits.hedge_loop_ns;
  timed_array = sa;
  plain_ops = sa->a->at[0][0]->m->ops;
  ops = *plain_ops;
  ops.pread = timed_pread;
  for (unsigned i = 0; i < 6; i++)
    sa->a->at[i][0]->m->ops = &ops;
  for (unsigned i = 0; i < 600; i++)
    slow_read_done (sa->a, sa->a->at[i % 6][0], &usual);
  slow_compare (sa->a);
  return sa;
}

/* Does a read that takes ns end without a second look under the array lock? */
static bool
is_quick (struct sim_array *sa, uint64_t off, uint64_t ns)
{
  struct request *r = calloc (1, sizeof *r);
  bool quick;

  assert_non_null (r);
  timed_ns = ns;
  request_init (r, sa->a, REQUEST_READ);
  r->buf = back;
  r->off = off;
  r->len = 4096;
  assert_int_equal (request_decide (r), REQUEST_COPY);
  assert_int_equal (r->step[0].from, STEP_SEAT);
  quick = request_copy (r);
  assert_true (quick || request_go (r));
  assert_int_equal (r->error, 0);
  assert_memory_equal (back, data + off, 4096);
  assert_int_equal (seat_users (sa->a->at[SLOT][0]), 0);
  free (r);
  return quick;
}

/* A read that is not late takes the array lock once, however long that is. */
static void
test_quick_reads (void **state)
{
  struct sim_array *sa = start_timed ((struct hedge_policy) { 0 }, MS);
  const uint64_t off = data_of_slot (sa, 0, SLOT);

  assert_true (sa->a->at[SLOT][0]->m->direct);
  assert_true (is_quick (sa, off, MS / 100));
  assert_true (is_quick (sa, off, 2 * MS));
  assert_int_equal (sa->a->at[SLOT][0]->hedge.lateness, 0);
  assert_false (is_quick (sa, off, 6 * MS));
  assert_int_not_equal (sa->a->at[SLOT][0]->hedge.lateness, 0);
  end (sa);

  sa = start_timed ((struct hedge_policy) { .delay = 2 * MS }, MS / 20);
  assert_true (is_quick (sa, off, MS / 100));
  assert_false (is_quick (sa, off, 2 * MS));
  end (sa);

  sa = start_timed ((struct hedge_policy) { .off = true }, MS);
  assert_true (is_quick (sa, off, 6 * MS));
  end (sa);
}

/* When all reads become quicker, which all end so, it is known soon. */
static void
test_all_quicker (void **state)
{
  struct sim_array *sa = start_timed ((struct hedge_policy) { 0 }, 10 * MS);
  const struct hedge_member *m = &sa->a->at[SLOT][0]->hedge;

  assert_in_range (hedge_late (&sa->a->hedge, m, 4096), 25 * MS, 40 * MS);
  for (unsigned i = 0; i < 6000; i++)
    assert_true (is_quick (sa, data_of_slot (sa, i % 100, i % 6), MS));
  assert_in_range (hedge_late (&sa->a->hedge, m, 4096), 2 * MS, 4 * MS);
  end (sa);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_equal_members),
    cmocka_unit_test (test_late_in_a_client),
    cmocka_unit_test (test_quick_reads),
    cmocka_unit_test (test_all_quicker),
  };

  return cmocka_run_group_tests (tests, NULL, free_data);
}
