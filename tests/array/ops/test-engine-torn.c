/* gpuraid: what is acknowledged while a member goes, and rows of which some
 * members have new content and some have old.
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

#include "common/bits.h"
#include "tests/engine-array.h"

static const struct seat *
seat_of (struct sim_array *sa, unsigned disk)
{
  for (unsigned i = 0; i < sa->a->nr_seats; i++)
    if (sa->a->seat[i]->m &&
        sim_array_disk_of (sa->a->seat[i]) == sa->disk[disk])
      return sa->a->seat[i];
  return NULL;
}

/* A write that a member missed is acknowledged when the record without it
 * is in force.  With a journal it is what goes to the ring.
 */
static void
test_ack_after_the_record (void **state)
{
  for (unsigned i = 0; i < 4; i++) {
    const bool flush = i & 1;
    struct sim_array *sa;
    const struct seat *s;

    sim_consistency = i & 2 ? CONSISTENCY_JOURNAL : CONSISTENCY_NONE;
    sa = start_full (2, 2, CHUNK, 8);
    open_again (sa, ~0, true);
    put (sa, 0, 4096, ARRAY_FUA);
    if (flush)
      sa->disk[2]->flush_error_ppm = 1000000;
    else
      sa->disk[2]->write_error_ppm = 1000000;
    put (sa, 0, 2 * CHUNK, ARRAY_FUA);
    s = seat_of (sa, 2);
    assert_true (s == NULL || s->state != SEAT_ACTIVE);
    end_degraded (sa);
  }
}

static int
no_journal (void **state)
{
  sim_consistency = CONSISTENCY_NONE;
  return 0;
}

static uint64_t
roles_of_row (void *opaque, uint64_t row)
{
  return row == *(uint64_t *) opaque ? ~UINT64_C (0) : 0;
}

/* After a crash the parity of a row may be anything.  A small write to it,
 * before its turn in the resync, leaves parity that is right.
 */
static void
test_write_before_the_resync (void **state)
{
  struct sim_array *sa;
  uint64_t row = 60;
  uint8_t rubbish[4096];
  char why[200];

  limits.rebuild_in_flight_len = 4096;
  sa = start_full (8, 2, 4096, 64);
  open_again (sa, ~0, true);
  put (sa, 0, 4096, ARRAY_FUA);         /* the region is marked */
  for (unsigned i = 0; i < sa->g.k + sa->g.m; i++)
    sa->at[i] = sim_array_disk_at (sa, i);
  crash_array (sa);
  memset (rubbish, 0xa5, sizeof rubbish);
  for (unsigned role = 8; role < 10; role++)
    sim_disk_poke (sa->at[layout_slot (&sa->g, row, role)], rubbish,
                   sizeof rubbish, place (sa, row, 0));
  open_again (sa, ~0, true);
  put (sa, layout_address (&sa->g, row, 3, 0), 4096, ARRAY_FUA);
  assert_true (sa->a->nr_unsynced > 0);
  if (!sim_array_rows_are_right (sa, sa->at, roles_of_row, &row, why,
                                 sizeof why))
    fail_msg ("%s", why);
  assert_true (sim_array_settle (sa, 100 * SECOND));
  end_whole (sa);
  limits = default_limits;
}

/* The array fails while a row is written: the content of the lost slot there is
 * unknown.
 */
static void
test_torn_row_of_a_failed_array (void **state)
{
  struct sim_array *sa = start_full (3, 1, CHUNK, 8);
  const uint64_t stripe = 2;
  unsigned lost = 0, written;
  uint64_t off;

  open_again (sa, ~0, true);
  while (layout_role (&sa->g, stripe, lost) >= 3)
    lost++;
  assert_int_equal (sim_array_fail (sa, lost), 0);
  put (sa, 0, 4096, ARRAY_FUA);         /* the region is marked */
  assert_true (sim_array_pause (sa, SECOND));
  written = (layout_role (&sa->g, stripe, lost) + 1) % 3;
  disk_of_role (sa, stripe, written)->write_error_ppm = 1000000;
  memset (back, 0x77, CHUNK);
  off = layout_address (&sa->g, stripe, written, 0);
  assert_int_equal (sim_array_write (sa, back, CHUNK, off, ARRAY_FUA), EIO);
  assert_true (sa->a->failed);
  off = layout_address (&sa->g, stripe, layout_role (&sa->g, stripe, lost), 0);
  assert_int_equal (sim_array_read (sa, back, CHUNK, off), EIO);
  end_degraded (sa);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown (test_ack_after_the_record, no_journal),
    cmocka_unit_test (test_write_before_the_resync),
    cmocka_unit_test (test_torn_row_of_a_failed_array),
  };

  return cmocka_run_group_tests (tests, NULL, free_data);
}
