/* gpuraid: spares: when one is used, which one, and when not.
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

#include "array/seats/seat.h"
#include "common/bits.h"
#include "tests/engine-array.h"

#define HOUR (3600 * SECOND)

static struct sim_array *
start (void **state)
{
  const bool *journal = *state;

  sim_consistency = *journal ? CONSISTENCY_JOURNAL : CONSISTENCY_NONE;
  sim_checksum = *journal ? CHECKSUM_CRC32C : CHECKSUM_NONE;
  limits.ring_min_len = 128 * 1024;
  return start_full (2, 2, CHUNK, 32);
}

static unsigned
add_spare (struct sim_array *sa)
{
  const unsigned disk = sim_array_add_disk (sa);

  assert_int_equal (sim_array_spare (sa, disk), 0);
  return disk;
}

static void
settle (struct sim_array *sa)
{
  assert_true (sim_array_settle (sa, 1000 * SECOND));
}

static void
fail_slot (struct sim_array *sa, unsigned slot)
{
  assert_int_equal (sim_array_fail (sa, slot), 0);
}

static bool
is_at (struct sim_array *sa, unsigned slot, unsigned disk)
{
  return sim_array_disk_at (sa, slot) == sa->disk[disk];
}

static unsigned
entries_without_slot (struct sim_array *sa, enum entry_state state)
{
  static struct array_status st;
  unsigned nr = 0;

  array_get_status (sa->a, &st);
  for (unsigned i = 0; i < st.nr_entries; i++) {
    nr += st.entry[i].state == state && st.entry[i].slot == SLOT_NONE;
    assert_true (st.entry[i].state != ENTRY_SPARE ||
                 st.entry[i].slot == SLOT_NONE);
  }
  array_status_free (&st);
  return nr;
}

static unsigned
spares_in_status (struct sim_array *sa)
{
  return entries_without_slot (sa, ENTRY_SPARE);
}

static unsigned
missing_spares (struct sim_array *sa)
{
  return entries_without_slot (sa, ENTRY_MISSING);
}

/* Zeroes and flushes for the data do not reach a spare. */
static void
test_used (void **state)
{
  struct sim_array *sa = start (state);
  const unsigned disk = add_spare (sa);
  uint64_t writes;

  assert_int_equal (spares_in_status (sa), 1);
  writes = sa->disk[disk]->nr_ios[IO_WRITE];
  assert_int_equal (sim_array_zero (sa, 8 * CHUNK, 0, 0), 0);
  memset (data, 0, 8 * CHUNK);
  put (sa, 9 * CHUNK, 5000, ARRAY_FUA);
  assert_int_equal (sa->disk[disk]->nr_ios[IO_ZERO], 0);
  assert_int_equal (sa->disk[disk]->nr_ios[IO_WRITE], writes);

  fail_slot (sa, 1);
  settle (sa);
  assert_int_equal (sa->a->irregular_slots, 0);
  assert_true (is_at (sa, 1, disk));
  assert_int_equal (spares_in_status (sa), 0);
  open_again (sa, ~0, true);
  assert_int_equal (sa->a->irregular_slots, 0);
  end_whole (sa);
}

/* It is still a spare in the next session, also before that writes. */
static void
test_next_session (void **state)
{
  struct sim_array *sa = start (state);
  const unsigned disk = add_spare (sa);

  open_again (sa, ~0, false);
  assert_int_equal (spares_in_status (sa), 1);
  assert_int_equal (sim_array_writable (sa), 0);
  assert_int_equal (spares_in_status (sa), 1);
  sa->disk[3]->dead = true;
  put (sa, 0, 4 * CHUNK, ARRAY_FUA);
  settle (sa);
  assert_true (is_at (sa, 3, disk));
  end_whole (sa);
}

/* One that was not there for a session. */
static void
test_spare_comes_back (void **state)
{
  struct sim_array *sa = start (state);
  const unsigned disk = add_spare (sa);

  open_again (sa, ~BIT (disk), true);
  assert_int_equal (spares_in_status (sa), 0);
  assert_int_equal (missing_spares (sa), 1);
  open_again (sa, ~0, true);
  assert_int_equal (spares_in_status (sa), 1);
  assert_int_equal (missing_spares (sa), 0);
  fail_slot (sa, 0);
  settle (sa);
  assert_true (is_at (sa, 0, disk));
  end_whole (sa);
}

/* A member that was not there may still come. */
static void
test_missing_waits (void **state)
{
  struct sim_array *sa = start (state);
  const unsigned disk = add_spare (sa);

  open_again (sa, ~BIT (2), true);
  put (sa, 0, 5000, ARRAY_FUA);
  assert_true (sim_array_pause (sa, 290 * SECOND));
  assert_int_equal (sa->a->lost_slots, BIT (2));
  assert_null (sa->a->at[2][1]);
  assert_true (sim_array_pause (sa, 20 * SECOND));
  settle (sa);
  assert_true (is_at (sa, 2, disk));
  end_whole (sa);
}

/* It comes, so the spare stays one. */
static void
test_missing_comes (void **state)
{
  struct sim_array *sa = start (state);
  bool full;

  (void) add_spare (sa);
  open_again (sa, ~BIT (2), true);
  put (sa, 0, 5000, ARRAY_FUA);
  assert_true (sim_array_pause (sa, 200 * SECOND));
  assert_int_equal (sim_array_readd (sa, 2, &full), 0);
  assert_true (sim_array_pause (sa, HOUR));
  assert_true (is_at (sa, 2, 2));
  assert_int_equal (spares_in_status (sa), 1);
  end_whole (sa);
}

/* It failed in the session before: there is nothing to wait for. */
static void
test_failed_before (void **state)
{
  struct sim_array *sa = start (state);
  unsigned disk;

  fail_slot (sa, 2);
  open_again (sa, ~0, true);
  disk = add_spare (sa);
  settle (sa);
  assert_true (is_at (sa, 2, disk));
  end_whole (sa);
}

static void
test_several (void **state)
{
  struct sim_array *sa = start (state);
  const unsigned first = add_spare (sa), second = add_spare (sa);

  (void) add_spare (sa);
  sa->disk[0]->dead = sa->disk[3]->dead = true;
  put (sa, 0, 8 * CHUNK, ARRAY_FUA);
  settle (sa);
  assert_int_equal (sa->a->irregular_slots, 0);
  assert_true ((is_at (sa, 0, first) && is_at (sa, 3, second)) ||
               (is_at (sa, 3, first) && is_at (sa, 0, second)));
  assert_int_equal (spares_in_status (sa), 1);
  end_whole (sa);
}

/* It fails while it is rebuilt onto: the next is taken. */
static void
test_next (void **state)
{
  struct sim_array *sa = start (state);
  const unsigned first = add_spare (sa), second = add_spare (sa);

  sa->disk[first]->min_delay_ns = sa->disk[first]->max_delay_ns = SECOND / 100;
  fail_slot (sa, 1);
  while (sa->a->at[1][1] == NULL || sa->a->at[1][1]->window_end == 0)
    assert_true (sim_step (sa->sim));
  sa->disk[first]->dead = true;
  settle (sa);
  assert_int_equal (sa->a->irregular_slots, 0);
  assert_true (is_at (sa, 1, second));
  end_whole (sa);
}

/* It can't even take the record in which it is the target. */
static void
test_dead_spare (void **state)
{
  struct sim_array *sa = start (state);
  const unsigned first = add_spare (sa), second = add_spare (sa);

  sa->disk[first]->dead = true;
  fail_slot (sa, 1);
  settle (sa);
  assert_true (is_at (sa, 1, second));
  assert_int_equal (spares_in_status (sa), 0);
  end_whole (sa);
}

/* It is taken out by command. */
static void
test_remove (void **state)
{
  struct sim_array *sa = start (state);
  const unsigned disk = add_spare (sa);
  struct sim_request q;

  sim_command_init (&q, sa, COMMAND_FAIL);
  for (unsigned i = 0; i < sa->a->nr_seats; i++)
    if (sim_array_disk_of (sa->a->seat[i]) == sa->disk[disk])
      q.r.command.seat = sa->a->seat[i];
  assert_non_null (q.r.command.seat);
  assert_int_equal (sim_array_run (&q), 0);
  assert_int_equal (spares_in_status (sa), 0);
  fail_slot (sa, 1);
  assert_true (sim_array_pause (sa, HOUR));
  assert_int_equal (sa->a->lost_slots, BIT (1));
  end_degraded (sa);
}

static uuid_bytes
uuid_of_missing (struct sim_array *sa)
{
  for (unsigned dev = 0; dev < SB_MAX_DEVICES; dev++)
    if (seat_spare_is_missing (sa->a, dev))
      return sa->a->membership.device[dev].uuid;
  fail ();
  return (uuid_bytes) { 0 };
}

/* It is not listed any more, and left alone when it comes back.  A crash at any
 * time, and then the command again.
 */
static void
test_remove_missing (void **state)
{
  for (unsigned moment = 0; ; moment++) {
    struct sim_array *sa = start (state);
    const unsigned disk = add_spare (sa);
    struct sim_request q;
    bool crashed;
    int r;

    open_again (sa, ~BIT (disk), true);
    sim_command_init (&q, sa, COMMAND_FAIL);
    q.r.command.uuid = uuid_of_missing (sa);
    if (moment > 0)
      sim_crash_after (sa->sim, moment);
    r = sim_array_run (&q);
    sim_crash_after (sa->sim, 0);
    crashed = r == -1;
    if (crashed) {
      crash_array (sa);
      open_again (sa, ~BIT (disk), true);
      if (missing_spares (sa) == 1) {
        sim_command_init (&q, sa, COMMAND_FAIL);
        q.r.command.uuid = uuid_of_missing (sa);
        r = sim_array_run (&q);
      }
      else
        r = 0;
    }
    assert_int_equal (r, 0);
    assert_int_equal (missing_spares (sa), 0);
    /* Twice. */
    sim_command_init (&q, sa, COMMAND_FAIL);
    assert_int_equal (sim_array_run (&q), EINVAL);
    open_again (sa, ~0, true);
    assert_int_equal (spares_in_status (sa) + missing_spares (sa), 0);
    fail_slot (sa, 1);
    assert_true (sim_array_pause (sa, HOUR));
    assert_int_equal (sa->a->lost_slots, BIT (1));
    end_degraded (sa);
    if (moment > 0 && !crashed)
      break;
  }
}

/* Too many rows can't be read: the next spare would end likewise.  With
 * checksums the table has room for all of them.
 */
static void
test_hopeless (void **state)
{
  struct sim_array *sa;

  sim_consistency = CONSISTENCY_NONE;
  sim_checksum = CHECKSUM_NONE;
  sa = start_full (2, 2, CHUNK, 160);
  (void) add_spare (sa);
  (void) add_spare (sa);
  for (unsigned slot = 1; slot < 4; slot++)
    sim_disk_set_bad (sa->disk[slot], sa->l.data_off, sa->l.data_len);
  open_again (sa, ~0, true);
  fail_slot (sa, 0);
  assert_true (sim_array_pause (sa, HOUR));
  assert_int_equal (sa->a->lost_slots, BIT (0));
  assert_int_equal (spares_in_status (sa), 1);
  end_degraded (sa);
}

/* Power fails at any moment from the failure on.  Without a journal the array
 * would not open then.
 */
static void
test_crash (void **state)
{
  struct sim_array *sa = start (state);

  if (sa->consistency == CONSISTENCY_NONE) {
    end_whole (sa);
    return;
  }
  for (unsigned moment = 1; moment < 600; moment = moment * 4 / 3 + 1) {
    (void) add_spare (sa);
    sim_crash_after (sa->sim, moment);
    if (sim_array_fail (sa, 2) == 0)
      (void) sim_array_settle (sa, 1000 * SECOND);
    sim_crash_after (sa->sim, 0);
    crash_array (sa);
    sa->spare_delay_ns = 1;
    open_again (sa, ~0, true);
    settle (sa);
    assert_int_equal (sa->a->irregular_slots, 0);
    check_all (sa);
  }
  end_whole (sa);
}

#define NR_QUEUED 16u

static unsigned
nr_running (struct sim_request *const *q, unsigned nr)
{
  unsigned running = 0;

  for (unsigned i = 0; i < nr; i++)
    running += q[i]->state != SIM_IDLE;
  return running;
}

/* However many commands wait, each with a change of its own, a write goes on
 * between them.
 */
static void
test_writes_between_commands (void **state)
{
  struct sim_array *sa = start (state);
  struct sim_request *q[NR_QUEUED], *w;

  for (unsigned i = 0; i < NR_QUEUED; i++) {
    q[i] = calloc (1, sizeof *q[i]);
    assert_non_null (q[i]);
    sim_array_init_spare (q[i], sa, sim_array_add_disk (sa));
    q[i]->done = ignore_end;
    sim_request_start (q[i]);
  }
  memset (data, 7, 5000);
  w = start_request (sa, REQUEST_WRITE, data, 0, 5000, ARRAY_FUA);
  while (w->state != SIM_IDLE)
    assert_true (sim_step (sa->sim));
  assert_int_equal (w->r.error, 0);
  assert_true (nr_running (q, NR_QUEUED) > NR_QUEUED / 2);
  free (w);
  while (nr_running (q, NR_QUEUED) > 0)
    assert_true (sim_step (sa->sim));
  assert_int_equal (spares_in_status (sa), NR_QUEUED);
  for (unsigned i = 0; i < NR_QUEUED; i++)
    free (q[i]);
  end_whole (sa);
}

#define BOTH(test)                                                      \
  { #test, test, NULL, free_data, &without },                           \
  { #test " (journal)", test, NULL, free_data, &with }

int
main (void)
{
  static bool without = false, with = true;
  const struct CMUnitTest tests[] = {
    BOTH (test_used),
    BOTH (test_next_session),
    BOTH (test_spare_comes_back),
    BOTH (test_missing_waits),
    BOTH (test_missing_comes),
    BOTH (test_failed_before),
    BOTH (test_several),
    BOTH (test_next),
    BOTH (test_dead_spare),
    BOTH (test_remove),
    BOTH (test_remove_missing),
    cmocka_unit_test_teardown (test_hopeless, free_data),
    BOTH (test_crash),
    BOTH (test_writes_between_commands),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
