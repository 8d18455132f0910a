/* gpuraid test: recovery of an array with checksums: of rows that were written
 * directly, and of torn pages of the table.
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

#include "array/engine/consistency.h"
#include "array/replay/internal.h"
#include "array/scrub/scrub.h"
#include "common/bits.h"
#include "raidmap/table.h"
#include "tests/array/replay/recover-array.h"

/* ---- direct rows --------------------------------------------------------- */

/* The newest transaction wrote a row directly, and pages of the checksum table
 * with its entries are durable: it was acknowledged.  When more than m of its
 * blocks are bad it is lost, not zeroes.
 */
static void
test_stored_row_is_not_dropped (void **state)
{
  begin_direct (2, 1);
  put (sa, 0, 2 * CHUNK, ARRAY_FUA);
  assert_int_equal (sa->a->counters.direct_writes, 1);
  /* Pages are stored a second time when the first stores are flushed. */
  while (sa->a->counters.table_bytes <= 3 * TABLE_PAGE_LEN)
    assert_true (sim_step (sa->sim));
  crash_journal ();
  spoil_in_place (slot_of_role (0, 0), row_of (0, 0));
  spoil_in_place (slot_of_role (0, 1), row_of (0, 0));
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  assert_non_null (strstr (sa->said, "lacks the content of 1 rows"));
  assert_int_equal (sim_array_read (sa, back, 4096, 0), EIO);
  assert_int_equal (sim_array_read (sa, back, 4096, CHUNK), EIO);
  check_range (sa, 4096, CHUNK - 4096);
  check_range (sa, CHUNK + 4096, CHUNK - 4096);
  end_degraded (sa);
}

/* What was written directly is in place: a recovery does not write it again. */
static void
test_direct_rows_stay (void **state)
{
  const uint64_t len = 12 * 2 * CHUNK;

  begin_direct (2, 1);
  put (sa, 0, len, ARRAY_FUA);
  assert_true (sa->a->counters.direct_writes > 0);
  crash_journal ();
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  count_from_here (sa);
  end_recovery ();
  assert_true (bytes (sa, IO_WRITE) < len / 2);
  end_whole (sa);
}

/* A record that is logged again says which transaction changed its page before.
 * If it said that none did, the next recovery would take this for the first
 * write to the page, and believe zeroes in place of a member's page.
 */
static void
test_page_of_a_record_made_anew (void **state)
{
  static const uint8_t zeroes[TABLE_PAGE_LEN];
  unsigned slot;

  begin_direct (2, 1);
  put (sa, 0, 2 * CHUNK, ARRAY_FUA);
  open_again (sa, ~0, true);            /* the journal is empty */
  put (sa, 0, 4096, ARRAY_FUA);
  crash_journal ();
  slot = slot_of_role (0, 0);
  spoil_header (slot, row_of (0, 0));
  assert_int_equal (find_record (slot, row_of (0, 0), true), 0);
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  recover_until (MARK);
  assert_true (find_record (slot, row_of (0, 0), true) > 0);

  slot = slot_of_role (0, 1);
  for (unsigned place = 0; place < 2; place++)
    sim_disk_poke (sa->disk[slot], zeroes, sizeof zeroes,
                   table_page_off (&sb.l, 0, place));
  reopen_crashed (~0, DEGRADED_ALLOW);
  check_all (sa);
  end_whole (sa);
}

/* What was written since member 0 left is lost with member 1.  Force goes back
 * to member 0, whose ring is old there, as its header says from before the
 * first record until it is begun anew.  A crash on the way: from then on the
 * header alone tells.  True if the array opened for writing first.
 */
static bool
go_back_and_crash (unsigned moment)
{
  bool done;

  begin_direct (2, 1);
  put (sa, 0, 4 * CHUNK, ARRAY_FUA);
  put (sa, 0, 2 * CHUNK, ARRAY_FUA);
  assert_int_equal (sim_array_fail (sa, 0), 0);
  put (sa, 0, 2 * CHUNK, ARRAY_FUA);
  crash_journal ();
  assert_int_equal (sim_array_open (sa, 5, DEGRADED_FORCE, false), 0);
  assert_true (sa->a->seat[0]->behind);
  sim_crash_after (sa->sim, moment);
  if (sim_array_writable (sa) == 0 && !sim_crashed (sa->sim))
    while (sa->a->recovery && !sim_crashed (sa->sim) &&
           sim_array_pause (sa, SECOND / 100))
      ;
  done = !sim_crashed (sa->sim);
  sim_crash_after (sa->sim, 0);
  crash_journal ();
  if (sim_array_open (sa, 5, DEGRADED_ALLOW, false) == 0) {
    const struct seat *s = sa->a->seat[0];
    const bool begun = sa->a->recovery->ring[0].header.session ==
      sa->a->sb.record.self.ballot.session;

    assert_false (s->behind);
    assert_int_equal (s->ring_behind, !begun);
    assert_true (sim_array_stop (sa));
  }
  reopen_crashed (5, DEGRADED_FORCE);
  while (!sa->a->consistency->is_ready (sa->a))
    assert_true (sim_array_pause (sa, SECOND / 100));
  assert_false (sa->a->seat[0]->ring_behind);
  assert_true (sim_array_stop (sa));
  sim_array_free (sa);
  return done;
}

static void
test_ring_of_a_member_that_was_behind (void **state)
{
  unsigned moment = 1;

  while (!go_back_and_crash (moment))
    moment++;
  assert_true (moment > 20);
}

/* A row that was withdrawn, as a member had no space for it, is zeroes by the
 * next transaction.  All of that which a crash leaves is in the ring of one
 * member, which is lost before another has it.
 */
static void
test_withdrawn_row (void **state)
{
  const uint64_t off = 20 * 2 * CHUNK;
  struct sim_request *q;
  uint64_t commits;

  begin_direct (2, 1);
  put (sa, 0, 12 * 2 * CHUNK, ARRAY_FUA);
  assert_true (sim_array_pause (sa, 3 * SECOND));
  sa->disk[1]->full = true;
  put (sa, off, 2 * CHUNK, 0);
  assert_int_equal (sim_array_flush (sa), ENOSPC);
  q = start_request (sa, REQUEST_ZERO, NULL, 3 * 2 * CHUNK, 2 * CHUNK,
                     ARRAY_FUA|ARRAY_TRIM);
  memset (data + 3 * 2 * CHUNK, 0, 2 * CHUNK);
  commits = sa->a->counters.journal_commits;
  while (sa->a->counters.journal_commits < commits + 2)
    assert_true (sim_step (sa->sim));
  crash_journal ();
  free (q);
  sa->disk[1]->full = false;
  spoil_header (1, row_of (20, 0));
  spoil_header (2, row_of (20, 0));
  memset (data + off, 0, 2 * CHUNK);
  memset (data + 3 * 2 * CHUNK, 0, 2 * CHUNK);

  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  check_range (sa, off, 2 * CHUNK);
  sa->disk[0]->write_error_ppm = sa->disk[0]->flush_error_ppm = 1000000;
  end_recovery ();
  assert_false (sa->a->failed);
  assert_int_equal (sa->a->lost_slots, 1);
  check_all (sa);
  end_degraded (sa);
}

/* ---- torn pages ---------------------------------------------------------- */

static bool
is_newest (unsigned slot, unsigned place)
{
  const struct sim_disk *d = sa->disk[slot];
  struct table_page p[2];

  for (unsigned i = 0; i < 2; i++)
    assert_true (table_page_decode (d->image + table_page_off (&sb.l, 0, i),
                                    &sb.array_uuid, slot, 0, &p[i]));
  return p[place].counter > p[!place].counter;
}

/* The other place was about to be stored when the power failed. */
static void
tear_page (unsigned slot)
{
  const unsigned place = is_newest (slot, 0);

  sim_disk_poke (sa->disk[slot], "torn", 4, table_page_off (&sb.l, 0, place));
}

static int
read_without (uint64_t slots)
{
  assert_true (sim_array_stop (sa));
  assert_int_equal (sim_array_open (sa, ~slots, DEGRADED_ALLOW, true), 0);
  memset (back, 0x55, sa->g.size);
  return sim_array_read (sa, back, sa->g.size, 0);
}

/* With one or two others left out: is all data there, or an error? */
static void
leave_out (unsigned slot, unsigned nr, int error)
{
  for (uint64_t slots = 0; slots < BIT (sa->nr_disks); slots++)
    if (nr_bits (slots) == nr && (slots >> slot & 1) == 0) {
      assert_int_equal (read_without (slots), error);
      if (error == 0)
        assert_memory_equal (back, data, sa->g.size);
    }
}

static void
repair_all (void)
{
  char why[ARRAY_WHY_LEN];

  engine_lock (sa->a);
  assert_int_equal (scrub_start (sa->a, true, why), 0);
  engine_unlock (sa->a);
  while (scrub_is_running (sa->a))
    assert_true (sim_array_pause (sa, SECOND / 100));
}

/* A page of which one place is torn: the other one counts if the ring of the
 * member says that all changes since are in the journal.  With one good header
 * it does.  Without any the ring is gone, and the blocks of the page are lost
 * there, which takes one of m until they are repaired.
 */
static void
recover_torn_page (unsigned rotted)
{
  unsigned slot;

  begin_direct (3, 2);
  put (sa, 0, sa->g.size, ARRAY_FUA);
  open_again (sa, ~0, true);            /* the journal is empty */
  put (sa, 0, 4096, ARRAY_FUA);
  crash_journal ();
  slot = slot_of_role (0, 0);
  assert_true (find_record (slot, row_of (0, 0), true) > 0);
  tear_page (slot);
  FOR_EACH_BIT (i, rotted)
    sim_disk_poke (sa->disk[slot], "rot", 3, sb.l.ring_off + i * BLOCK_LEN);

  reopen_crashed (~0, DEGRADED_ALLOW);
  assert_int_equal (sa->a->counters.corrupt_table_pages, rotted == 3);
  leave_out (slot, 1, 0);
  leave_out (slot, 2, rotted == 3 ? EIO : 0);
  open_again (sa, ~0, true);
  repair_all ();
  leave_out (slot, 2, 0);
  open_again (sa, ~0, true);
  end_whole (sa);
}

static void
test_torn_page (void **state)
{
  for (unsigned rotted = 0; rotted < 4; rotted++)
    recover_torn_page (rotted);
}

/* ---- reads meanwhile ----------------------------------------------------- */

static unsigned nr_left;

static void
read_ended (struct sim_request *q)
{
  assert_int_equal (q->r.error, 0);
  nr_left--;
}

/* Rows became zeroes, not by the newest transaction, and the ring of a member
 * lacks that; another member is lost.  Some reads of them begin before all is
 * in place, and end later, while others still read a ring.
 */
static void
test_read_at_the_end (void **state)
{
  const uint64_t off = 3 * 2 * CHUNK;
  struct sim_request q[32], *w;

  begin_direct (2, 2);
  assert_int_equal (sim_array_fail (sa, slot_of_role (3, 1)), 0);
  put (sa, off, 2 * CHUNK, ARRAY_FUA);
  memset (data + off, 0, 2 * CHUNK);
  assert_int_equal (sim_array_zero (sa, 2 * CHUNK, off, ARRAY_FUA), 0);
  put (sa, 0, 4096, ARRAY_FUA);
  crash_journal ();
  spoil_header (slot_of_role (3, 0), row_of (3, 0));
  sa->cache_len = 16 << 20;             /* all at once */
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  for (unsigned i = 0; i < sa->nr_disks; i++)
    sa->disk[i]->min_delay_ns = sa->disk[i]->max_delay_ns = SECOND / 100;
  w = start_writable (sa);
  while (sa->a->recovery->phase < PLACE_FLUSH)
    assert_true (sim_step (sa->sim));
  sa->max_pause_ns = SECOND / 2;
  for (nr_left = 0; nr_left < 32; nr_left++) {
    sim_request_init (&q[nr_left], sa, REQUEST_READ);
    q[nr_left].r.buf = back;
    q[nr_left].r.len = 2 * CHUNK;
    q[nr_left].r.off = nr_left % 4 ? off : 0;
    q[nr_left].done = read_ended;
    sim_request_start (&q[nr_left]);
  }
  while (nr_left > 0)
    assert_true (sim_step (sa->sim));
  end_recovery ();
  check_range (sa, off, 2 * CHUNK);
  free (w);
  end_degraded (sa);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown (test_stored_row_is_not_dropped, no_checksums),
    cmocka_unit_test_teardown (test_direct_rows_stay, no_checksums),
    cmocka_unit_test_teardown (test_page_of_a_record_made_anew, no_checksums),
    cmocka_unit_test_teardown (test_ring_of_a_member_that_was_behind,
                               no_checksums),
    cmocka_unit_test_teardown (test_withdrawn_row, no_checksums),
    cmocka_unit_test_teardown (test_torn_page, no_checksums),
    cmocka_unit_test_teardown (test_read_at_the_end, no_checksums),
  };

  return cmocka_run_group_tests (tests, NULL, free_data);
}
