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

#include "array/request-internal.h"
#include "array/slow.h"
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
end (struct sim_array *sa)
{
  assert_int_equal (sa->a->lost_slots, 0);
  assert_int_equal (sa->a->counters.bad_blocks, 0);
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
  for (unsigned i = 0; i < 600; i++)
    slow_read_done (sa->a, sa->a->at[i % 6][0], &usual);
  slow_compare (sa->a);
  for (unsigned slot = 0; slot < 6; slot++)
    for (unsigned i = 0; i < 20; i++)
      assert_false (slow_owes (sa->a, sa->a->at[slot][0], 4096));
  for (unsigned i = 0; i < 9; i++)
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
  pread_end (&next);
  assert_false (slow_owes (sa->a, seat, 4096));
  pass (sa, 50 * MS);
  assert_true (slow_owes (sa->a, seat, 4096));
  assert_false (slow_owes (sa->a, sa->a->at[SLOT + 1][0], 4096));
  pread_end (&hangs);
  assert_false (slow_owes (sa->a, seat, 4096));
  end (sa);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_equal_members),
    cmocka_unit_test (test_late_in_a_client),
  };

  return cmocka_run_group_tests (tests, NULL, free_data);
}
