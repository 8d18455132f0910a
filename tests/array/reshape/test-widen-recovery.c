/* gpuraid: a crash while an array gets one more data member, in the first
 * window, whose rows went through the journal: what a recovery decides about
 * them, and decides again.
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

#include "array/replay/internal.h"
#include "array/reshape/internal.h"
#include "common/bits.h"
#include "tests/array/replay/recover-array.h"
#include "tests/array/reshape/widen-array.h"

#define ROWS (CHUNK / BLOCK_LEN)        /* of a stripe */

/* It crashes when all of the window is in the journal.  None of it is in
 * place: of each disk what the window's rows had before is there.
 */
static void
crash_in_window (unsigned k, unsigned m)
{
  uint8_t *before[MAX_SLOTS];

  sa = start_widening (k, m);
  for (unsigned i = 0; i < k + m; i++)
    before[i] = memcpy (malloc (CHUNK), sa->disk[i]->image + place (sa, 0, 0),
                        CHUNK);
  widen (sa);
  move_to_logged (sa);
  crash_journal ();
  for (unsigned i = 0; i < k + m; i++) {
    sim_disk_poke (sa->disk[i], before[i], CHUNK, place (sa, 0, 0));
    free (before[i]);
  }
  assert_true (find_record (k + m, 0, true) > 0);
}

static void
open_crashed (void)
{
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  sa->a->reshape->not_before = UINT64_MAX;
}

static void
go_on (void)
{
  sa->a->reshape->not_before = 0;
  move_all (sa);
  end_whole (sa);
}

/* The rows of the window are kept, and moved. */
static void
test_kept (void **state)
{
  crash_in_window (1, 1);
  open_crashed ();
  assert_int_equal (sa->a->g.frontier, ROWS);
  check_all (sa);
  end_recovery ();
  assert_int_equal (sa->a->g.frontier, ROWS);
  check_all (sa);
  go_on ();
}

/* Two of the three records are lost: all of it is dropped. */
static void
test_dropped (void **state)
{
  crash_in_window (1, 1);
  spoil_header (0, 0);
  spoil_header (1, 0);
  open_crashed ();
  assert_int_equal (sa->a->g.frontier, 0);
  check_all (sa);
  end_recovery ();
  check_all (sa);
  go_on ();
}

/* One block of the window's is spoilt in a ring, and that does no harm; then
 * another one of the same row can't be read any more: all is dropped, while a
 * read is under way where the second chunk would be now.  That gets it where
 * it is.  So does a write, which waits.
 */
static void
test_decided_in_a_read (void **state)
{
  const uint64_t at = CHUNK + BLOCK_LEN;
  struct sim_request *q, *c, *w;
  uint8_t got[BLOCK_LEN];
  struct sim_disk *d;

  limits.tick_ns = SECOND / 50;
  crash_in_window (1, 1);
  spoil_record (slot_of_role (0, 2), row_of (0, 0), false);
  open_crashed ();
  assert_int_equal (sa->a->g.frontier, ROWS);
  sim_disk_set_bad (sa->disk[slot_of_role (0, 0)],
                    find_record (slot_of_role (0, 0), row_of (0, 0), false),
                    BLOCK_LEN);
  d = sa->disk[slot_of_role (0, 1)];
  d->min_delay_ns = d->max_delay_ns = SECOND;
  w = start_writable (sa);
  while (sa->a->recovery->phase != RELOG || list_empty (&d->in_flight))
    assert_true (sim_step (sa->sim));
  d->min_delay_ns = d->max_delay_ns = 2 * SECOND;
  q = start_request (sa, REQUEST_READ, got, CHUNK, BLOCK_LEN, 0);
  memset (data + at, 0xa5, BLOCK_LEN);
  c = start_request (sa, REQUEST_WRITE, data + at, at, BLOCK_LEN, 0);
  while (sa->a->g.frontier > 0)
    assert_true (sim_step (sa->sim));
  assert_int_not_equal (q->state, SIM_IDLE);
  while (q->state != SIM_IDLE)
    assert_true (sim_step (sa->sim));
  assert_int_equal (q->r.error, 0);
  assert_memory_equal (got, data + CHUNK, BLOCK_LEN);
  free (q);
  free (w);
  end_recovery ();
  while (c->state != SIM_IDLE)
    assert_true (sim_step (sa->sim));
  assert_int_equal (c->r.error, 0);
  free (c);
  check_all (sa);
  go_on ();
  limits.tick_ns = default_limits.tick_ns;
}

/* Two members lack the records of the window, which are logged again.  Then
 * it crashes, and these are all that is left of it.
 */
static void
test_logged_again (void **state)
{
  crash_in_window (1, 2);
  spoil_header (0, 0);
  spoil_header (1, 0);
  open_crashed ();
  assert_int_equal (sa->a->g.frontier, ROWS);
  recover_until (MARK);
  spoil_header (2, 0);
  spoil_header (3, 0);
  open_crashed ();
  assert_int_equal (sa->a->g.frontier, ROWS);
  check_all (sa);
  end_recovery ();
  check_all (sa);
  go_on ();
}

/* It crashes as soon as rows have moved: they, and their pages of the checksum
 * table, are there.
 */
static void
test_moved (void **state)
{
  unsigned n = 0;

  sa = start_widening (2, 1);
  widen (sa);
  while (sa->a->g.widening) {
    const uint64_t row = sa->a->g.frontier;

    move_to (sa, row + 1);
    note_size (sa);
    crash_journal ();
    open_crashed ();
    check_all (sa);
    end_recovery ();
    sa->a->reshape->not_before = 0;
    n++;
  }
  assert_true (n > 5);
  move_all (sa);
  end_whole (sa);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_kept),
    cmocka_unit_test (test_dropped),
    cmocka_unit_test (test_decided_in_a_read),
    cmocka_unit_test (test_logged_again),
    cmocka_unit_test (test_moved),
  };

  widen_limits ();
  return cmocka_run_group_tests_name ("journal, checksums", tests, setup_both,
                                      free_data) +
    cmocka_run_group_tests_name ("journal", tests, setup_journal, free_data);
}
