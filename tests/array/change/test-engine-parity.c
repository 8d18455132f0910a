/* gpuraid: an array that gets one more parity member, on simulated members: it
 * is as safe as before until that is filled, then safer, and a crash at any
 * moment leaves one of the two.
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
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "array/cache/cache.h"
#include "array/health/health.h"
#include "array/health/lost.h"
#include "array/health/outcome.h"
#include "array/seats/seat.h"
#include "array/sums/sums.h"
#include "common/bits.h"
#include "raidmap/limits.h"
#include "tests/array/change/parity-array.h"
#include "tests/sanitized.h"

static enum array_state
state_of (struct sim_array *sa)
{
  unsigned reasons;

  return health (sa->a, &reasons);
}

/* Without each of some sets of as many disks as may be lost. */
static void
check_without (struct sim_array *sa, unsigned nr)
{
  const unsigned n = sa->g.k + sa->g.m;

  for (unsigned first = 0; first < n; first++) {
    uint64_t gone = 0;

    for (unsigned i = 0; i < nr; i++)
      gone |= BIT ((first + i * (1 + first % 2)) % n);
    open_again (sa, LOW_BITS (n) & ~gone, false);
    check_all (sa);
  }
}

static void
test_added (void **state)
{
  static const struct { unsigned k, m; } sizes[] = {
    { 1, 1 }, { 2, 1 }, { 3, 2 }, { 4, 2 },
  };

  for (unsigned i = 0; i < ARRAY_LEN (sizes); i++) {
    const unsigned k = sizes[i].k, m = sizes[i].m;
    struct sim_array *sa = start_full (k, m, CHUNK, STRIPES);

    check_all (sa);                     /* pages of the table are in memory */
    add (sa);
    assert_int_equal (sa->g.m, m + 1);
    assert_int_equal (sa->g.fixed, BIT (k + m));
    assert_int_equal (state_of (sa), ARRAY_HEALTHY);
    assert_int_equal (sa->a->lost_slots, BIT (k + m));
    put (sa, 3 * CHUNK + 100, 9000, 0);
    check_all (sa);
    settle_all (sa);
    assert_int_equal (sa->a->lost_slots, 0);
    assert_false (sa->a->sb.record.self.first);
    put (sa, 30 * CHUNK * k / 2, 3 * k * CHUNK, ARRAY_FUA);
    check_all (sa);
    check_without (sa, MIN (m + 1, k - 1));
    /* Once more, after a start; and members are replaced. */
    open_again (sa, ~0, true);
    settle_all (sa);
    add (sa);
    settle_all (sa);
    replace (sa, k + m);
    settle_all (sa);
    assert_int_equal (sim_array_fail (sa, 0), 0);
    put (sa, 5000, 3 * CHUNK, 0);
    check_all (sa);
    replace (sa, 0);
    settle_all (sa);
    open_again (sa, ~0, true);
    settle_all (sa);
    end_whole (sa);
  }
}

static void
test_taken_back (void **state)
{
  struct sim_array *sa = start_full (4, 2, CHUNK, STRIPES);

  assert_int_equal (sim_array_cancel_parity (sa), EINVAL);
  assert_non_null (strstr (sa->said, "no parity is being added"));
  for (unsigned i = 0; i < 3; i++) {
    sa->window_len = 4 * CHUNK;
    add (sa);
    put (sa, 7 * CHUNK + 300 * i, 20000, 0);
    for (unsigned j = 0; j < 40 * i; j++)
      sim_step (sa->sim);
    if (i == 1)
      open_again (sa, ~0, true);
    not_added (sa, "parity is being added");
    cancel (sa);
    assert_int_equal (sa->g.m, 2);
    assert_int_equal (sa->g.fixed, 0);
    assert_int_equal (sa->a->lost_slots, 0);
    check_all (sa);
    put (sa, 11 * CHUNK, 20000, ARRAY_FUA);
    open_again (sa, ~0, true);
    settle_all (sa);
    check_all (sa);
  }
  add (sa);
  settle_all (sa);
  assert_int_equal (sim_array_cancel_parity (sa), EINVAL);
  end_whole (sa);
}

/* The new member fails: its slot waits, and promises nothing. */
static void
test_new_fails (void **state)
{
  struct sim_array *sa = start_slow (2, 2);

  add (sa);
  assert_int_equal (sim_array_fail (sa, 4), 0);
  assert_int_equal (state_of (sa), ARRAY_HEALTHY);
  put (sa, 0, 10000, 0);
  assert_int_equal (sim_array_fail (sa, 1), 0);
  assert_int_equal (state_of (sa), ARRAY_DEGRADED);
  check_all (sa);
  replace (sa, 1);
  assert_int_equal (sim_array_cancel_parity (sa), EINVAL);
  assert_non_null (strstr (sa->said, "being rebuilt"));
  while (sa->a->irregular_slots != BIT (4))
    assert_true (sim_step (sa->sim));
  assert_int_equal (state_of (sa), ARRAY_HEALTHY);
  replace (sa, 4);
  settle_all (sa);
  assert_int_equal (sa->a->lost_slots, 0);
  put (sa, 9 * CHUNK, 10000, 0);
  end_whole (sa);
}

/* One line says what is in the way, and nothing is changed. */
static void
test_refused (void **state)
{
  struct sim_array *sa = start_full (2, 1, CHUNK, STRIPES);
  const uint64_t epoch = sa->a->membership.cur.self.ballot.epoch;
  unsigned nr_cells;

  sa->a->sb.scrub.state = SB_SCRUB_PAUSED;
  not_added (sa, "scrub");
  sa->a->sb.scrub.state = SB_SCRUB_NONE;
  nr_cells = sa->a->nr_cells;
  sa->a->nr_cells = 12;
  not_added (sa, "cache");
  sa->a->nr_cells = nr_cells;
  assert_int_equal (sa->a->membership.cur.self.ballot.epoch, epoch);
  assert_int_equal (sim_array_fail (sa, 1), 0);
  not_added (sa, "no active member");
  replace (sa, 1);
  settle_all (sa);
  replace (sa, 1);
  not_added (sa, "being rebuilt");
  settle_all (sa);
  end_whole (sa);
}

/* The table of checksums needs more memory, too, and the next start has it or
 * is refused.
 */
static void
test_cache (void **state)
{
  const unsigned min_pages = limits.sums_min_pages;
  struct sim_array *sa;
  struct geometry more;

  if (sim_checksum == CHECKSUM_NONE)
    return;
  sa = start_full (2, 1, CHUNK, STRIPES);
  more = sa->g;
  more.m++;
  /* The table is to have the least that it needs. */
  while (sums_memory (&sa->g, 0) < cache_min_len (&more))
    limits.sums_min_pages *= 2;
  sa->cache_len = cache_min_len (&more) + sums_memory (&more, 0) - 1;
  open_again (sa, 7, true);
  not_added (sa, "the cache is too small");
  sa->cache_len++;
  open_again (sa, 7, true);
  add (sa);
  settle_all (sa);
  open_again (sa, 31, true);
  end_whole (sa);
  limits.sums_min_pages = min_pages;
}

/* A command waits while its slot is taken back. */
static void
test_no_slot (void **state)
{
  struct sim_array *sa = start_slow (2, 1);
  struct sim_request *q = calloc (1, sizeof *q);

  assert_non_null (q);
  add (sa);
  assert_int_equal (sim_array_fail (sa, 3), 0);
  sim_command_init (q, sa, COMMAND_PARITY_CANCEL);
  q->done = ignore_end;
  sim_request_start (q);
  while (sa->a->change == NULL)
    assert_true (sim_step (sa->sim));
  assert_int_equal (sim_array_replace (sa, 3, sim_array_add_disk (sa)),
                    EINVAL);
  wait_for (sa, q);
  assert_int_equal (q->r.error, 0);
  free (q);
  sim_array_note_shape (sa);
  assert_int_equal (sa->g.m, 1);
  put (sa, 3 * CHUNK, 70000, 0);
  open_again (sa, ~0, true);
  add (sa);
  settle_all (sa);
  end_whole (sa);
}

/* What is known of a slot goes with it, and with one that never came. */
static void
test_forgotten (void **state)
{
  struct sim_array *sa = start_slow (2, 1);
  unsigned disk;

  add (sa);
  assert_int_equal (sim_array_fail (sa, 3), 0);
  assert_non_null (outcome_last (sa->a));
  cancel (sa);
  assert_null (outcome_last (sa->a));
  disk = sim_array_add_disk (sa);
  sa->disk[disk]->write_errors = 100;
  (void) sim_array_add_parity (sa, disk);
  if (sa->a->g.m == 1)
    assert_null (outcome_last (sa->a));
  settle_but (sa, sa->a->g.m == 1 ? 0 : BIT (3));
  end_degraded (sa);
}

/* A row can't be read, so a block of the new member is listed as lost: not any
 * more when its slot is taken back.
 */
static void
test_lost_block (void **state)
{
  struct sim_array *sa = start_slow (2, 1);

  add (sa);
  for (unsigned role = 0; role < 2; role++)
    sim_disk_set_bad (disk_of_role (sa, 3, role), place (sa, 3, 0), BLOCK_LEN);
  while (sa->a->lost->nr_blocks == 0 && sa->a->at[3][1]->cursor < 8 * CHUNK)
    assert_true (sim_step (sa->sim));
  /* With checksums the table lists it. */
  assert_true (sa->a->lost->nr_blocks > 0 || sa->a->sums != NULL);
  cancel (sa);
  assert_int_equal (sa->a->lost->nr_blocks, 0);
  crash_array (sa);
  open_again (sa, ~0, true);
  put (sa, 6 * CHUNK, 2 * CHUNK, 0);
  check_all (sa);
  end_degraded (sa);
}

/* As many as a page of the table has room for, from the fewest on. */
static void
test_many (void **state)
{
  struct sim_array *sa = start_full (2, 1, CHUNK, STRIPES);
  unsigned nr = 0;

  sa->window_len = 4 * CHUNK;
  sa->cache_len = MAX (8 << 20, sa->cache_len);
  open_again (sa, ~0, true);
  add (sa);
  open_again (sa, ~0, true);
  cancel (sa);
  check_all (sa);                       /* pages for three slots */
  while (sim_array_add_parity (sa, sim_array_add_disk (sa)) == 0) {
    settle_all (sa);
    put (sa, 0, 9 * CHUNK, ARRAY_FUA);
    check_all (sa);
    nr++;
  }
  assert_non_null (strstr (sa->said, "start the server again"));
  assert_int_equal (nr, 8);
  end_whole (sa);
}

/* The old members without this one open, as before; once the new one may have
 * been active, with that.
 */
static void
open_without (struct sim_array *sa, unsigned disk)
{
  const uint64_t which = 7 & ~BIT (disk);

  /* Without a journal it would need degraded=force. */
  if (disk == 3 || sim_consistency == CONSISTENCY_NONE) {
    open_again (sa, 15, false);
    return;
  }
  if (sa->a)
    assert_true (sim_array_stop (sa));
  if (sim_array_open (sa, which, DEGRADED_ALLOW, false) == 0)
    return;
  open_again (sa, which | BIT (3), false);
  assert_int_equal (sa->g.m, 2);
  assert_false (sa->a->sb.record.self.first);
}

static void
go_on (struct sim_array *sa, uint64_t moment)
{
  assert_true (sa->a->sb.record.self.first);
  if (moment / 4 % 2)
    cancel (sa);
  else
    replace (sa, 3);
}

/* All moments of adding, filling and taking back.  What opens afterwards has
 * all, and goes on.  False: it was over before that moment.
 */
static bool
crash_at (uint64_t moment, bool taken)
{
  struct sim_array *sa = start_full (2, 1, CHUNK, STRIPES);
  const unsigned disk = sim_array_add_disk (sa);
  bool crashed;

  put (sa, CHUNK, 50000, ARRAY_FUA);
  if (taken) {
    sa->window_len = 4 * CHUNK;
    open_again (sa, 7, true);
    assert_int_equal (sim_array_add_parity (sa, disk), 0);
    put (sa, 2 * CHUNK + 500, 40000, ARRAY_FUA);        /* live records */
  }
  sim_crash_after (sa->sim, moment);
  if (taken)
    (void) sim_array_cancel_parity (sa);
  else if (sim_array_add_parity (sa, disk) == 0)
    (void) sim_array_settle (sa, SETTLE);
  crashed = sim_crashed (sa->sim);
  sim_crash_after (sa->sim, 0);
  if (crashed || taken)         /* also just after it has ended */
    crash_array (sa);
  open_without (sa, crashed || taken ? moment % 4 : 3);
  check_all (sa);
  open_again (sa, 15, true);
  assert_true (sim_array_settle (sa, SETTLE));
  check_all (sa);
  if (sa->a->lost_slots)                /* the new one was not told of it */
    go_on (sa, moment);
  settle_all (sa);
  if (sa->g.m == 1 && !taken)
    add (sa);
  settle_all (sa);
  put (sa, 3 * CHUNK, 70000, 0);
  end_whole (sa);
  return crashed;
}

static void
test_crashes (void **state)
{
  for (unsigned taken = 0; taken < 2; taken++) {
    uint64_t moment = 1;

    while (crash_at (moment, taken))
      moment += 3 * CASE_STEP;
    assert_true (moment > 20);
    print_message ("%" PRIu64 " moments\n", moment);
  }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_added),
    cmocka_unit_test (test_taken_back),
    cmocka_unit_test (test_new_fails),
    cmocka_unit_test (test_refused),
    cmocka_unit_test (test_cache),
    cmocka_unit_test (test_no_slot),
    cmocka_unit_test (test_forgotten),
    cmocka_unit_test (test_lost_block),
    cmocka_unit_test (test_many),
    cmocka_unit_test (test_crashes),
  };

  return RUN_ALL (tests);
}
