/* gpuraid: scrub: after a stop or crash it goes on from about where it was,
 * unless the user stopped or paused it.
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
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "array/scrub/internal.h"
#include "common/bits.h"
#include "tests/array/scrub/scrub-array.h"
#include "tests/sanitized.h"

#define MANY 320u                       /* stripes, of a line each */
#define ROWS (MANY * CHUNK_BLOCKS)

/* Some bad blocks everywhere, open and not scrubbed yet. */
static struct sim_array *
start_spoilt (unsigned *nr)
{
  struct sim_array *sa = start_many_with_sums (3, 2, MANY);

  assert_true (sim_array_stop (sa));
  *nr = 0;
  for (unsigned row = 3; row < ROWS; row += 50, ++*nr)
    flip (sa, row % 5, row, row);
  open_again (sa, ~0, true);
  return sa;
}

/* Each save is of this session's scrub alone: it may be soon. */
static void
save_after (struct sim_array *sa, uint64_t ns)
{
  sa->a->save_ns = ns;
}

static const struct sb_scrub *
saved (struct sim_array *sa)
{
  return &sa->a->sb.scrub;
}

static void
run_to (struct sim_array *sa, uint64_t len)
{
  while (status (sa).scrub.done < len) {
    assert_true (status (sa).scrub.running);
    assert_true (sim_step (sa->sim));
  }
}

static struct array_status
run_to_end (struct sim_array *sa)
{
  while (status (sa).scrub.running)
    assert_true (sim_step (sa->sim));
  assert_true (status (sa).last_scrub_complete);
  return status (sa);
}

/* What is looked at from here on, in bytes of a member, at most. */
static uint64_t
bytes_looked_at (struct sim_array *sa)
{
  return bytes (sa, IO_READ) / sa->nr_disks;
}

/* It is open again: what is left is looked at, and not more. */
static struct array_status
check_goes_on (struct sim_array *sa, uint64_t from)
{
  struct array_status st;

  assert_true (status (sa).scrub.running);
  assert_true (status (sa).scrub.done >= from);
  count_from_here (sa);
  st = run_to_end (sa);
  /* Some of the table, and what is repaired is looked at again. */
  assert_true (bytes_looked_at (sa) <
               (sa->l.data_len - from) * 3 / 2 + MIB);
  return st;
}

static void
test_stop (void **state)
{
  unsigned nr;
  struct sim_array *sa = start_spoilt (&nr);
  struct array_status st;
  uint64_t pos;

  begin (sa, true);
  run_to (sa, sa->l.data_len / 2);
  assert_true (sim_array_stop (sa));

  /* Nothing happens before the array is written to. */
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  pos = saved (sa)->pos;
  assert_true (pos >= sa->l.data_len / 2 && pos < sa->l.data_len);
  st = status (sa);
  assert_true (st.scrub.running && st.scrub_interrupted && st.scrub_repair);
  assert_int_equal (st.scrub.done, pos);
  assert_true (st.scrub_count.found > 0 && st.scrub_count.found < nr);
  count_from_here (sa);
  assert_true (sim_array_pause (sa, SECOND));
  assert_int_equal (sim_array_read (sa, back, BLOCK_LEN, 0), 0);
  assert_true (sim_array_pause (sa, SECOND));
  assert_true (bytes (sa, IO_READ) < 16 * BLOCK_LEN);
  assert_int_equal (ios (sa, IO_WRITE), 0);
  assert_true (status (sa).scrub_interrupted);

  assert_int_equal (sim_array_writable (sa), 0);
  assert_false (status (sa).scrub_interrupted);
  st = check_goes_on (sa, pos);
  assert_true (st.last_scrub_repair);
  assert_int_equal (st.last_scrub.found, nr);
  assert_int_equal (st.last_scrub.repaired, nr);
  check_clean (scrub (sa, true));

  /* It has ended: nothing is left to go on. */
  wait_for_save (sa);
  crash_array (sa);
  open_again (sa, ~0, true);
  assert_false (status (sa).scrub.running);
  end_whole (sa);
}

/* Each time further, and never past what was not looked at. */
static void
test_crashes (void **state)
{
  unsigned nr, nr_crashes = 0;
  struct sim_array *sa = start_spoilt (&nr);
  uint64_t pos = 0;

  begin (sa, true);
  wait_for_save (sa);
  save_after (sa, 1000000);
  for (;;) {
    uint64_t reached;

    if (!sim_array_pause (sa, 1 + nr_crashes * 12345679 % 60000000) ||
        !status (sa).scrub.running)
      break;
    reached = status (sa).scrub.done;
    assert_true (nr_crashes < 1000);
    crash_array (sa);
    nr_crashes++;
    open_again (sa, ~0, true);
    if (!status (sa).scrub.running)
      break;
    assert_true (saved (sa)->repair);
    assert_true (saved (sa)->pos >= pos);
    assert_true (saved (sa)->pos <= reached);
    pos = saved (sa)->pos;
    save_after (sa, 1000000);
  }
  assert_true (pos > 0);
  assert_true (nr_crashes > 3);
  check_clean (scrub (sa, true));
  end_whole (sa);
}

/* What was saved is at most save_ns old, and it is not saved more often. */
static void
test_interval (void **state)
{
  unsigned nr;
  struct sim_array *sa = start_spoilt (&nr);
  uint64_t began, reached = 0, saves;

  save_after (sa, 10000000);
  begin (sa, false);
  wait_for_save (sa);
  began = sim_now (sa->sim);
  saves = sa->a->saves_begun;
  while (status (sa).scrub.running &&
         status (sa).scrub.done < sa->l.data_len * 3 / 4)
    assert_true (sim_step (sa->sim));
  saves = sa->a->saves_begun - saves;
  assert_true (saves > 0);
  assert_true (saves <= (sim_now (sa->sim) - began) / 10000000 + 1);
  reached = saved (sa)->pos;
  assert_true (reached > 0);
  crash_array (sa);
  open_again (sa, ~0, true);
  assert_true (saved (sa)->pos <= reached);
  (void) run_to_end (sa);
  end_degraded (sa);
}

static void
test_paused (void **state)
{
  for (unsigned crash = 0; crash < 2; crash++) {
    unsigned nr;
    struct sim_array *sa = start_spoilt (&nr);
    struct array_status st;
    uint64_t pos;

    begin (sa, true);
    run_to (sa, sa->l.data_len / 4);
    assert_int_equal (control (sa, ARRAY_SCRUB_PAUSE), 0);
    assert_true (sim_array_pause (sa, SECOND));
    pos = status (sa).scrub.done;
    if (crash)
      crash_array (sa);
    open_again (sa, ~0, true);
    assert_true (sim_array_pause (sa, 10 * SECOND));
    st = status (sa);
    assert_true (st.scrub.running && st.scrub_paused);
    assert_false (st.scrub_interrupted);
    assert_int_equal (st.scrub.done, pos);
    assert_int_equal (control (sa, ARRAY_SCRUB_RESUME), 0);
    st = check_goes_on (sa, pos);
    assert_int_equal (st.last_scrub.repaired, nr);
    end_whole (sa);
  }
}

static void
test_stopped_by_user (void **state)
{
  unsigned nr;
  struct sim_array *sa = start_spoilt (&nr);

  save_after (sa, 1000000);
  begin (sa, true);
  run_to (sa, sa->l.data_len / 4);
  assert_int_equal (control (sa, ARRAY_SCRUB_STOP), 0);
  crash_array (sa);
  open_again (sa, ~0, true);
  assert_false (status (sa).scrub.running);

  /* While it is interrupted, too. */
  begin (sa, true);
  run_to (sa, sa->l.data_len / 4);
  assert_true (sim_array_stop (sa));
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  assert_int_equal (control (sa, ARRAY_SCRUB_STOP), 0);
  assert_true (sim_array_pause (sa, SECOND));
  assert_false (status (sa).scrub.running);
  open_again (sa, ~0, true);            /* was not written: it goes on */
  assert_true (status (sa).scrub.running);
  assert_int_equal (control (sa, ARRAY_SCRUB_STOP), 0);
  open_again (sa, ~0, true);
  assert_false (status (sa).scrub.running);
  end_degraded (sa);
}

/* A member that was away has an older state, and a spoilt one has none. */
static void
test_members_differ (void **state)
{
  unsigned nr;
  struct sim_array *sa = start_spoilt (&nr);
  uint8_t zero[SB_LEN] = { 0 };
  uint64_t pos;

  begin (sa, true);
  run_to (sa, sa->l.data_len / 4);
  open_again (sa, ~(uint64_t) BIT (0), true);
  assert_true (status (sa).scrub.running);
  assert_int_equal (control (sa, ARRAY_SCRUB_STOP), 0);
  open_again (sa, ~0, false);
  assert_false (status (sa).scrub.running);
  assert_int_equal (sim_array_writable (sa), 0);
  while (sa->a->irregular_slots)
    assert_true (sim_step (sa->sim));

  begin (sa, true);
  run_to (sa, sa->l.data_len / 4);
  assert_true (sim_array_stop (sa));
  put_bytes (sa, 0, layout_sb_off (sa->disk[0]->size, SB_A2), zero, SB_LEN);
  put_bytes (sa, 1, layout_sb_off (sa->disk[1]->size, SB_B2), zero, SB_LEN);
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  pos = saved (sa)->pos;
  assert_true (pos >= sa->l.data_len / 4);
  assert_int_equal (sim_array_writable (sa), 0);
  (void) check_goes_on (sa, pos);
  end_whole (sa);
}

/* A crash some moments after a position is to be saved: what was repaired
 * below the one that is found was durable.
 */
static void
crash_beside_save (enum consistency consistency, unsigned moments)
{
  const unsigned first = moments * 7 % 50;
  static uint8_t right[MANY][BLOCK_LEN];
  struct sim_array *sa;
  uint64_t pos;

  sim_consistency = consistency;
  limits.tick_ns = 20000000;
  sa = start_full (3, 2, CHUNK, MANY);
  assert_true (sim_array_stop (sa));
  for (unsigned i = 0, row = first; row < ROWS; i++, row += 50) {
    memcpy (right[i], block (sa, row % 5, row), BLOCK_LEN);
    flip (sa, row % 5, row, row);
    sim_disk_set_bad (sa->disk[row % 5], sa->l.data_off + row * BLOCK_LEN,
                      BLOCK_LEN);
  }
  open_again (sa, ~0, true);
  begin (sa, true);
  save_after (sa, 10000000);
  while (saved (sa)->pos < sa->l.data_len / 3) {
    assert_true (status (sa).scrub.running);
    assert_true (sim_step (sa->sim));
  }
  while (moments-- > 0)
    assert_true (sim_step (sa->sim));
  crash_array (sa);
  open_again (sa, ~0, false);
  pos = saved (sa)->pos;
  assert_true (pos > 0);
  for (unsigned i = 0, row = first; row < pos / BLOCK_LEN; i++, row += 50)
    assert_memory_equal (right[i], block (sa, row % 5, row), BLOCK_LEN);
  assert_int_equal (sim_array_writable (sa), 0);
  (void) run_to_end (sa);
  end_degraded (sa);
}

static void
test_without_sums (void **state)
{
  for (unsigned moments = 0; moments < 30; moments += CASE_STEP) {
    crash_beside_save (CONSISTENCY_NONE, moments);
    crash_beside_save (CONSISTENCY_JOURNAL, moments);
  }
}

int
main (void)
{
#define TEST(name) cmocka_unit_test_teardown (name, scrub_usual_limits)
  const struct CMUnitTest tests[] = {
    TEST (test_stop),
    TEST (test_crashes),
    TEST (test_interval),
    TEST (test_paused),
    TEST (test_stopped_by_user),
    TEST (test_members_differ),
    TEST (test_without_sums),
  };

  return cmocka_run_group_tests (tests, NULL, free_data);
}
