/* gpuraid: what the engine makes again: lost members, and parity after a crash.
 *
 * run-tests: no-thread
 * It has one thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "array/passes/pass.h"
#include "common/bits.h"
#include "raidmap/limits.h"
#include "tests/engine-array.h"

static void
test_fail_and_replace (void **state)
{
  struct sim_array *sa = start_full (3, 2, CHUNK, 32);

  assert_int_equal (sim_array_fail (sa, 1), 0);
  assert_int_equal (sim_array_fail (sa, 4), 0);
  /* Fewer than k would remain. */
  assert_int_equal (sim_array_fail (sa, 0), EINVAL);
  put (sa, 1000, 300000, 0);
  check_all (sa);
  assert_int_equal (sim_array_replace (sa, 1, sim_array_add_disk (sa)), 0);
  assert_int_equal (sim_array_replace (sa, 4, sim_array_add_disk (sa)), 0);
  put (sa, 100000, 200000, 0);
  assert_true (sim_array_settle (sa, 100 * SECOND));
  assert_int_equal (sa->a->irregular_slots, 0);
  end_whole (sa);
}

/* Two targets, each survivor is read once. */
static void
test_rebuild_two_in_one_pass (void **state)
{
  struct sim_array *sa = start_full (4, 2, CHUNK, 32);
  const uint64_t len = sa->l.data_len;

  open_again (sa, LOW_BITS (6) & ~BIT (0) & ~BIT (3), true);
  put (sa, 0, sa->g.size, ARRAY_FUA);
  open_again (sa, ~0, false);
  count_from_here (sa);
  assert_int_equal (sim_array_writable (sa), 0);
  assert_true (sim_array_settle (sa, 1000 * SECOND));
  assert_int_equal (sa->a->irregular_slots, 0);
  assert_int_equal (bytes (sa, IO_READ), 4 * len);
  assert_int_equal (sa->a->counters.rebuilt_bytes, 2 * len);
  end_whole (sa);
}

/* Zeroes are trimmed on a target, which was full of something else; fewer than
 * four blocks of them are written with those beside them.
 */
static void
test_zeroes_are_trimmed (void **state)
{
  struct sim_array *sa = start_full (3, 1, 64 * 1024, 8);
  const uint64_t chunk = sa->g.chunk;
  unsigned no;

  assert_int_equal (sim_array_zero (sa, sa->g.size, 0, ARRAY_TRIM), 0);
  memset (data, 0, sa->g.size);
  put (sa, 2 * 3 * chunk + 4 * 4096, 4096, 0);
  put (sa, 2 * 3 * chunk + 8 * 4096, 4096, 0);
  open_again (sa, ~0, true);
  no = sim_array_add_disk (sa);
  assert_int_equal (sim_array_replace (sa, layout_slot (&sa->g, 2, 0), no), 0);
  assert_true (sim_array_settle (sa, 100 * SECOND));
  assert_int_equal (sa->disk[no]->nr_bytes[IO_TRIM],
                    sa->l.data_len - (1 + 1 + 3) * 4096);
  end_whole (sa);
}

/* What no member has is not read; in parts, each of which is trimmed. */
static void
test_holes_are_not_read (void **state)
{
  struct sim_array *sa = start_full (3, 1, CHUNK, 64);
  const uint64_t len = sa->l.data_len, stripe_len = 3 * CHUNK;
  unsigned no;

  limits.rebuild_trim_len = 5 * CHUNK;
  sa->window_len = 4 * CHUNK;
  assert_int_equal (sim_array_zero (sa, sa->g.size, 0, ARRAY_TRIM), 0);
  memset (data, 0, sa->g.size);
  put (sa, 0, stripe_len, 0);
  put (sa, 50 * stripe_len, 4096, 0);
  open_again (sa, ~0, true);
  no = sim_array_add_disk (sa);
  count_from_here (sa);
  assert_int_equal (sim_array_replace (sa, 0, no), 0);
  assert_true (sim_array_settle (sa, 100 * SECOND));
  /* Two windows of four stripes have something. */
  assert_true (bytes (sa, IO_READ) < 3 * 2 * 4 * CHUNK);
  assert_true (sa->disk[no]->nr_bytes[IO_TRIM] <= len);
  assert_true (sa->disk[no]->nr_ios[IO_TRIM] >= 50 / 5);
  check_all (sa);
  limits = default_limits;
  end_whole (sa);
}

/* The most lines in flight, and the longest window, of a rebuild where each I/O
 * takes this long.
 */
static void
rebuild_of (uint64_t delay_ns, unsigned *most, uint64_t *window_len)
{
  struct sim_array *sa = start_full (2, 1, CHUNK, 600);
  const struct pass *p;

  limits.rebuild_in_flight_len = 2 * CHUNK;
  sa->window_len = 4 * CHUNK;
  sa->cache_len = 16 << 20;
  open_again (sa, ~0, true);
  assert_int_equal (sim_array_fail (sa, 0), 0);
  assert_int_equal (sim_array_replace (sa, 0, sim_array_add_disk (sa)), 0);
  for (unsigned i = 0; i < sa->nr_disks; i++)
    sa->disk[i]->min_delay_ns = sa->disk[i]->max_delay_ns = delay_ns;
  p = sa->a->pass;
  *most = *window_len = 0;
  do {
    *most = MAX (*most, p->in_flight);
    *window_len = MAX (*window_len, p->end - p->start);
    assert_true (sim_step (sa->sim));
  } while (sa->a->irregular_slots);
  limits = default_limits;
  end_whole (sa);
}

/* They follow from how long it takes. */
static void
test_more_at_once (void **state)
{
  uint64_t window_len;
  unsigned most;

  rebuild_of (50000, &most, &window_len);
  assert_in_range (most, 16, 256);
  assert_int_equal (window_len, 8 * 4 * CHUNK);
  rebuild_of (300000000, &most, &window_len);
  assert_int_equal (most, 2);
  assert_int_equal (window_len, 4 * CHUNK);
}

static void
test_cursor_survives (void **state)
{
  struct sim_array *sa = start_full (2, 1, CHUNK, 64);
  unsigned no;

  sa->window_len = 4 * CHUNK;
  sa->save_ns = 1;
  open_again (sa, ~0, true);
  assert_int_equal (sim_array_fail (sa, 0), 0);
  no = sim_array_add_disk (sa);
  sa->disk[no]->min_delay_ns = sa->disk[no]->max_delay_ns = 20000000;
  assert_int_equal (sim_array_replace (sa, 0, no), 0);
  while (sa->a->at[0][1]->cursor < 32 * CHUNK)
    assert_true (sim_step (sa->sim));
  open_again (sa, ~0, false);
  count_from_here (sa);
  assert_int_equal (sim_array_writable (sa), 0);
  assert_true (sa->a->at[0][1]->cursor >= 28 * CHUNK);
  assert_true (sim_array_settle (sa, 1000 * SECOND));
  assert_true (sa->disk[no]->nr_bytes[IO_WRITE] < 50 * CHUNK);
  assert_int_equal (sa->a->irregular_slots, 0);
  end_whole (sa);
}

static int
pause_rebuild (struct sim_array *sa, bool pause)
{
  char why[ARRAY_WHY_LEN];
  int err;

  engine_lock (sa->a);
  err = pass_pause (sa->a, pause, why);
  engine_unlock (sa->a);
  return err;
}

/* In a window and between two; clients write meanwhile, and another slot is
 * lost.  It stops while it is paused.
 */
static void
test_rebuild_pauses (void **state)
{
  limits.rebuild_in_flight_len = 2 * CHUNK;
  for (unsigned steps = 1; steps < 400; steps += 7) {
    struct sim_array *sa = start_full (2, 2, CHUNK, 64);
    uint64_t rebuilt;
    unsigned i;

    sa->window_len = 16 * CHUNK;
    open_again (sa, ~0, true);
    assert_int_equal (pause_rebuild (sa, true), EINVAL);
    assert_int_equal (sim_array_fail (sa, 0), 0);
    assert_int_equal (sim_array_replace (sa, 0, sim_array_add_disk (sa)), 0);
    for (i = 0; i < steps && pass_is_wanted (sa->a); i++)
      assert_true (sim_step (sa->sim));
    if (i < steps) {
      limits = default_limits;
      end_whole (sa);
      return;
    }
    assert_int_equal (pause_rebuild (sa, true), 0);
    rebuilt = sa->a->counters.rebuilt_bytes;
    sim_array_pause (sa, SECOND);
    assert_int_equal (sa->a->pass->in_flight, 0);
    put (sa, 1000, 300000, 0);
    assert_int_equal (sim_array_fail (sa, 1), 0);
    check_all (sa);
    sim_array_pause (sa, 10 * SECOND);
    assert_int_equal (sa->a->counters.rebuilt_bytes, rebuilt);
    assert_true (pass_is_paused (sa->a) || !pass_is_wanted (sa->a));
    if (steps % 2)
      open_again (sa, ~0, true);
    else if (pass_is_wanted (sa->a))
      assert_int_equal (pause_rebuild (sa, false), 0);
    assert_true (sim_array_settle (sa, 100 * SECOND));
    assert_int_equal (sim_array_replace (sa, 1, sim_array_add_disk (sa)), 0);
    assert_false (pass_is_paused (sa->a));
    assert_true (sim_array_settle (sa, 100 * SECOND));
    assert_int_equal (sa->a->irregular_slots, 0);
    end_whole (sa);
  }
  fail ();                      /* it was over before that */
}

/* A member joins when another is half done, a new one or one that is back and
 * needs little: what the status says is done does not go back to nothing, and
 * goes up from there.
 */
static void
progress_of_two (bool new)
{
  struct array_progress now = { 0 }, last, resync;
  struct sim_array *sa = start_full (2, 2, CHUNK, 256);
  bool behind = false, full;

  limits.rebuild_in_flight_len = 2 * CHUNK;
  sa->window_len = 4 * CHUNK;
  open_again (sa, ~0, true);
  assert_int_equal (sim_array_fail (sa, 0), 0);
  assert_int_equal (sim_array_fail (sa, 1), 0);
  put (sa, 1000, 300000, 0);
  assert_int_equal (sim_array_replace (sa, 0, sim_array_add_disk (sa)), 0);
  while (now.done < sa->l.data_len / 2) {
    assert_true (sim_step (sa->sim));
    pass_progress (sa->a, &now, &resync);
  }
  last = now;
  assert_int_equal (new ? sim_array_replace (sa, 1, sim_array_add_disk (sa)) :
                    sim_array_readd (sa, 1, &full), 0);
  pass_progress (sa->a, &now, &resync);
  assert_true (now.running);
  assert_int_equal (now.total, last.total);
  assert_in_range (now.done, last.done / 2, last.done);
  while (now.running) {
    last = now;
    assert_true (sim_step (sa->sim));
    pass_progress (sa->a, &now, &resync);
    assert_true (!now.running || now.done >= last.done);
    behind |= sa->a->at[1][1] && sa->a->at[0][1] &&
      sa->a->at[1][1]->cursor < sa->a->at[0][1]->cursor;
  }
  assert_true (behind);
  assert_int_equal (last.done, last.total);
  limits = default_limits;
  end_whole (sa);
}

static void
test_progress_of_two (void **state)
{
  progress_of_two (true);
  progress_of_two (false);
}

static void
test_resync_pauses (void **state)
{
  struct sim_array *sa = start_full (3, 2, CHUNK, 8);
  uint64_t before;

  put (sa, 0, 3 * CHUNK, ARRAY_FUA);
  crash_array (sa);
  open_again (sa, ~0, false);
  before = sa->a->nr_unsynced;
  assert_true (before > 0);
  assert_int_equal (pause_rebuild (sa, true), 0);
  assert_int_equal (sim_array_writable (sa), 0);
  put (sa, 100, 5000, ARRAY_FUA);
  sim_array_pause (sa, 10 * SECOND);
  assert_int_equal (sa->a->nr_unsynced, before);
  assert_int_equal (pause_rebuild (sa, false), 0);
  assert_true (sim_array_settle (sa, 100 * SECOND));
  assert_int_equal (sa->a->nr_unsynced, 0);
  end_whole (sa);
}

/* A member that was away comes back by the bitmap. */
static void
test_missing_comes_back (void **state)
{
  struct sim_array *sa = start_full (2, 2, 128 * 1024, 64);
  uint64_t len;

  open_again (sa, ~BIT (2), true);
  put (sa, 0, 5000, 0);
  put (sa, 3000000, 5000, 0);
  assert_int_equal (sa->a->lost_slots, BIT (2));
  open_again (sa, ~0, false);
  count_from_here (sa);
  assert_int_equal (sim_array_writable (sa), 0);
  assert_true (sim_array_settle (sa, 1000 * SECOND));
  assert_int_equal (sa->a->irregular_slots, 0);
  len = sa->disk[2]->nr_bytes[IO_WRITE];
  assert_true (len >= 2 * 1024 * 1024);
  assert_true (len < sa->l.data_len * 3 / 4);
  end_whole (sa);
}

static void
test_resync (void **state)
{
  struct sim_array *sa = start_full (3, 2, CHUNK, 8);

  for (unsigned moment = 1; moment < 60; moment += 3) {
    sim_crash_after (sa->sim, moment);
    for (uint64_t i = 0; i < 3 * CHUNK; i++)
      data[i]++;
    (void) sim_array_write (sa, data, 3 * CHUNK, 0, ARRAY_FUA);
    crash_array (sa);
    open_again (sa, ~0, true);
    assert_true (sim_array_settle (sa, 100 * SECOND));
    put (sa, 0, 3 * CHUNK, ARRAY_FUA);
  }
  end_whole (sa);
}

/* Unclean, and a slot is missing: only by force. */
static void
test_unclean_and_degraded (void **state)
{
  struct sim_array *sa = start_full (3, 2, CHUNK, 8);

  put (sa, 0, 4096, ARRAY_FUA);
  crash_array (sa);
  assert_int_equal (sim_array_open (sa, ~1, DEGRADED_ALLOW, false), -1);
  assert_non_null (strstr (sa->said, "not shut down cleanly"));
  assert_int_equal (sim_array_open (sa, ~1, DEGRADED_FORCE, false), 0);
  assert_int_equal (sim_array_writable (sa), 0);
  check_all (sa);
  end_degraded (sa);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_fail_and_replace),
    cmocka_unit_test (test_rebuild_two_in_one_pass),
    cmocka_unit_test (test_zeroes_are_trimmed),
    cmocka_unit_test (test_holes_are_not_read),
    cmocka_unit_test (test_more_at_once),
    cmocka_unit_test (test_cursor_survives),
    cmocka_unit_test (test_rebuild_pauses),
    cmocka_unit_test (test_progress_of_two),
    cmocka_unit_test (test_resync_pauses),
    cmocka_unit_test (test_missing_comes_back),
    cmocka_unit_test (test_resync),
    cmocka_unit_test (test_unclean_and_degraded),
  };

  return cmocka_run_group_tests (tests, NULL, free_data);
}
