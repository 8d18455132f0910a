/* gpuraid: two active members in one slot, and a crash: from the record in
 * which a new member becomes active to the one that is without the old
 * one.  Every session reads from the new one, and keeps it.
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

#include "tests/engine-array.h"

#define STRIPE 6u               /* that is being written at the crash */

static bool
has_two (const struct sim_array *sa, unsigned slot)
{
  struct seat *const *at = sa->a->at[slot];

  return at[0] && at[1] && at[0]->state == SEAT_ACTIVE &&
    at[1]->state == SEAT_ACTIVE;
}

static void
step (struct sim_array *sa)
{
  assert_true (sim_step (sa->sim));
}

static void
done (struct sim_request *q)
{
}

/* ---- blocks in flight at the crash -------------------------------------- */

static struct sim_request zeroing;

/* Both members of slot 0 are about to write a stripe of zeroes. */
static unsigned
crash_while_zeroing (struct sim_array *sa)
{
  uint64_t at_old, at_new;
  unsigned new;

  open_again (sa, ~0, true);
  put (sa, 0, 4096, ARRAY_FUA);         /* the region is marked */
  new = sim_array_add_disk (sa);
  assert_int_equal (sim_array_replace (sa, 0, new), 0);
  while (!(sa->a->change && sa->a->at[0][1] && sa->a->at[0][1]->complete))
    step (sa);

  sim_request_init (&zeroing, sa, REQUEST_ZERO);
  zeroing.r.len = sa->g.k * sa->g.chunk;
  zeroing.r.off = layout_address (&sa->g, STRIPE, 0, 0);
  zeroing.r.flags = ARRAY_TRIM;
  zeroing.done = done;
  sim_request_start (&zeroing);
  at_old = sa->disk[0]->nr_ios[IO_TRIM];
  at_new = sa->disk[new]->nr_ios[IO_TRIM];
  while (sa->disk[0]->nr_ios[IO_TRIM] == at_old ||
         sa->disk[new]->nr_ios[IO_TRIM] == at_new)
    step (sa);
  assert_int_equal (sa->a->at[0][0]->state, SEAT_ACTIVE);
  assert_int_equal (sa->a->at[0][1]->state, SEAT_ACTIVE);
  crash_array (sa);
  return new;
}

/* A disk holds this at the stripe now. */
static void
poke_stripe (struct sim_array *sa, unsigned no, const uint8_t *chunk)
{
  sim_disk_poke (sa->disk[no], chunk, sa->g.chunk, place (sa, STRIPE, 0));
}

/* What a crash may leave: the old member and the parity have zeroes, the
 * new one and the other data what was there before.
 */
static void
make_them_differ (struct sim_array *sa, unsigned new)
{
  uint8_t *zero = calloc (1, sa->g.chunk);
  unsigned role = layout_role (&sa->g, STRIPE, 0);

  assert_non_null (zero);
  assert_true (role < sa->g.k);
  poke_stripe (sa, 0, zero);
  poke_stripe (sa, new, data + layout_address (&sa->g, STRIPE, role, 0));
  for (unsigned slot = 1; slot < sa->g.k + sa->g.m; slot++) {
    role = layout_role (&sa->g, STRIPE, slot);
    poke_stripe (sa, slot, role < sa->g.k ?
                 data + layout_address (&sa->g, STRIPE, role, 0) : zero);
  }
  free (zero);
}

enum reader {
  READ_LARGE,                   /* all, before it is writable */
  READ_SMALL,                   /* likewise, but nothing stays in the cache */
  READ_DURING,                  /* all, while parity is made anew */
};

static void
read_all (struct sim_array *sa, uint8_t *buf, uint64_t len)
{
  for (uint64_t off = 0; off < sa->g.size; off += len)
    assert_int_equal (sim_array_read (sa, buf + off, len, off), 0);
}

/* What was read once stays what is read, and parity fits it. */
static void
check_reader (enum reader reader)
{
  struct sim_array *sa = start_full (2, 1, CHUNK, 16);
  uint8_t *first = malloc (sa->g.size);
  const unsigned new = crash_while_zeroing (sa);

  assert_non_null (first);
  make_them_differ (sa, new);
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  if (reader != READ_DURING)
    read_all (sa, first, reader == READ_LARGE ? sa->g.size : 4096);
  assert_int_equal (sim_array_writable (sa), 0);
  if (reader == READ_DURING)
    read_all (sa, first, sa->g.size);
  assert_true (sim_array_settle (sa, 100 * SECOND));
  assert_int_equal (sa->a->nr_unsynced, 0);
  assert_ptr_equal (sim_array_disk_at (sa, 0), sa->disk[new]);

  memcpy (data, first, sa->g.size);
  check_all (sa);
  open_again (sa, ~0, false);
  end_whole (sa);
  free (first);
}

static void
test_reads_agree (void **state)
{
  check_reader (READ_LARGE);
  check_reader (READ_SMALL);
  check_reader (READ_DURING);
}

/* The new member is read from, and then can't be written: the old one is
 * used again, and what the cache has of the new one is not.
 */
static void
test_new_one_fails (void **state)
{
  struct sim_array *sa = start_full (2, 1, CHUNK, 16);
  const unsigned new = crash_while_zeroing (sa);

  make_them_differ (sa, new);
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  check_all (sa);
  sa->disk[new]->write_error_ppm = 1000000;
  assert_int_equal (sim_array_writable (sa), 0);
  assert_true (sim_array_settle (sa, 100 * SECOND));
  assert_ptr_equal (sim_array_disk_at (sa, 0), sa->disk[0]);
  assert_int_equal (sa->a->irregular_slots, 0);
  read_all (sa, data, sa->g.size);
  sa->disk[new]->write_error_ppm = 0;
  open_again (sa, ~0, true);
  assert_ptr_equal (sim_array_disk_at (sa, 0), sa->disk[0]);
  end_whole (sa);
}

/* ---- which one stays ---------------------------------------------------- */

/* Two members are replaced at once; it crashes when these slots have two
 * active ones, if that ever comes.
 */
static void
crash_with_two (uint64_t delay, unsigned slots)
{
  struct sim_array *sa = start_full (2, 2, CHUNK, 16);
  unsigned new[2];
  bool wait = true;

  sa->window_len = CHUNK;
  open_again (sa, ~0, true);
  put (sa, 0, 4096, ARRAY_FUA);
  for (unsigned slot = 0; slot < 2; slot++)
    new[slot] = sim_array_add_disk (sa);
  assert_int_equal (sim_array_replace (sa, 0, new[0]), 0);
  sa->disk[new[0]]->max_delay_ns = delay;
  assert_int_equal (sim_array_replace (sa, 1, new[1]), 0);
  while (wait && (sa->a->irregular_slots || sa->a->change)) {
    step (sa);
    wait = (slots & 1 && !has_two (sa, 0)) || (slots & 2 && !has_two (sa, 1));
  }
  crash_array (sa);
  open_again (sa, ~0, true);
  assert_true (sim_array_settle (sa, 100 * SECOND));
  for (unsigned slot = 0; slot < 2; slot++)
    if (!wait && slots >> slot & 1)
      assert_ptr_equal (sim_array_disk_at (sa, slot), sa->disk[new[slot]]);
  end_whole (sa);
}

static void
test_two_slots (void **state)
{
  for (uint64_t delay = 100000; delay < 10000000; delay = delay * 4 / 3)
    for (unsigned slots = 1; slots < 4; slots++)
      crash_with_two (delay, slots);
}

/* Replace slot 0 and crash as soon as it has two active members; then crash
 * the next session at a moment, so that a record with both may have both
 * in its parent as well.  twice: the one replaced has been a new one
 * before, and the first disk comes back as the new one, so that it is
 * listed first.
 */
static bool
crash_again (uint64_t moment, bool twice)
{
  struct sim_array *sa = start_full (2, 1, CHUNK, 4);
  unsigned new;
  bool crashed;

  open_again (sa, ~0, true);
  new = sim_array_add_disk (sa);
  assert_int_equal (sim_array_replace (sa, 0, new), 0);
  if (twice) {
    new = 0;
    assert_true (sim_array_settle (sa, 100 * SECOND));
    open_again (sa, ~UINT64_C (1), true);
    assert_int_equal (sim_array_replace (sa, 0, new), 0);
  }
  while (!has_two (sa, 0))
    step (sa);
  crash_array (sa);

  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  assert_ptr_equal (sim_array_disk_at (sa, 0), sa->disk[new]);
  sim_crash_after (sa->sim, moment);
  if (sim_array_writable (sa) == 0)
    (void) sim_array_settle (sa, 100 * SECOND);
  crashed = sim_crashed (sa->sim);
  sim_crash_after (sa->sim, 0);
  crash_array (sa);

  open_again (sa, ~0, true);
  assert_true (sim_array_settle (sa, 100 * SECOND));
  assert_ptr_equal (sim_array_disk_at (sa, 0), sa->disk[new]);
  end_whole (sa);
  return crashed;
}

/* The record that has new members is followed by one that says it was in force:
 * then any m members may be lost, also those that are not new.
 */
static void
test_confirmed (void **state)
{
  for (unsigned lost = 0; lost < 2; lost++) {
    struct sim_array *sa = start_full (4, 2, CHUNK, 4);
    const unsigned one = sim_array_add_disk (sa);
    const unsigned two = sim_array_add_disk (sa);
    const uint64_t new = BIT (one) | BIT (two), old = BIT (2) | BIT (3);

    assert_int_equal (sim_array_fail (sa, 0), 0);
    assert_int_equal (sim_array_fail (sa, 1), 0);
    assert_int_equal (sim_array_replace (sa, 0, one), 0);
    assert_int_equal (sim_array_replace (sa, 1, two), 0);
    assert_true (sim_array_settle (sa, 100 * SECOND));
    open_again (sa, ~((lost ? old : new) | 3), true);
    check_all (sa);
    end_degraded (sa);
  }
}

static void
test_later_sessions (void **state)
{
  for (unsigned twice = 0; twice < 2; twice++)
    for (uint64_t moment = 1; crash_again (moment, twice); moment++)
      assert_true (moment < 500);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_reads_agree),
    cmocka_unit_test (test_new_one_fails),
    cmocka_unit_test (test_two_slots),
    cmocka_unit_test (test_confirmed),
    cmocka_unit_test (test_later_sessions),
  };

  return cmocka_run_group_tests (tests, NULL, free_data);
}
