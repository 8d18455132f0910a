/* gpuraid test: recovery from a journal of which parts are lost.
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
#include "array/health/lost.h"
#include "array/replay/internal.h"
#include "array/replay/ring-read.h"
#include "array/scrub/scrub.h"
#include "common/bits.h"
#include "raidmap/table.h"
#include "tests/engine-array.h"

static struct sim_array *sa;
static struct superblock sb;    /* of the array that crashed */

/* An array full of data, with nothing in its journal. */
static void
begin (unsigned k, unsigned m)
{
  sim_consistency = CONSISTENCY_JOURNAL;
  limits.ring_min_len = 1 << 20;
  sa = start_full (k, m, CHUNK, 24);
  open_again (sa, ~0, true);
}

static void
crash (void)
{
  sb = sa->a->sb;
  crash_array (sa);
}

static void
end_recovery (void)
{
  assert_int_equal (sim_array_writable (sa), 0);
  while (sa->a->recovery && !sa->a->failed)
    assert_true (sim_array_pause (sa, SECOND / 100));
  assert_true (sim_array_settle (sa, 100 * SECOND));
}

static void
reopen (uint64_t which, enum degraded_policy policy)
{
  assert_int_equal (sim_array_open (sa, which, policy, false), 0);
  end_recovery ();
}

static uint64_t
row_of (uint64_t stripe, unsigned b)
{
  return stripe * (CHUNK / BLOCK_LEN) + b;
}

static unsigned
slot_of (uint64_t stripe, unsigned role)
{
  return layout_slot (&sa->g, stripe, role);
}

/* In a ring: the newest block of a row, or the header of the record that it is
 * in; of zeroes the header in any case.  The byte on the disk; 0: none.
 */
static uint64_t
find_record (unsigned slot, uint64_t row, bool header)
{
  struct member *m = sim_disk_open (sa->disk[slot], MEMBER_NOLOCK);
  struct ring_contents c;
  uint64_t found = 0;

  assert_non_null (m);
  assert_int_equal (ring_read (m, &sb, slot, &c), 0);
  for (unsigned i = c.nr_records; i > 0 && found == 0; i--) {
    const struct journal_record *r = &c.record[i - 1].r;
    uint32_t place = r->place + journal_header_blocks (r->nr_entries,
                                                       r->nr_crcs);

    for (uint32_t j = 0; j < r->nr_entries; j++) {
      const struct journal_entry *e = &r->entry[j];

      if (row >= e->first_block && row < e->first_block + e->nr_blocks)
        found = e->flags || header ? r->place :
          place + (row - e->first_block);
      place += e->flags ? 0 : e->nr_blocks;
    }
  }
  ring_contents_free (&c);
  member_close (m);
  return found ? sb.l.ring_off + found * BLOCK_LEN : 0;
}

/* Unreadable, or silently wrong. */
static void
spoil_record (unsigned slot, uint64_t row, bool unreadable)
{
  const uint64_t off = find_record (slot, row, false);

  assert_true (off > 0);
  if (unreadable)
    sim_disk_set_bad (sa->disk[slot], off, BLOCK_LEN);
  else
    sim_disk_poke (sa->disk[slot], "rot", 3, off);
}

static void
spoil_header (unsigned slot, uint64_t row)
{
  const uint64_t off = find_record (slot, row, true);

  if (off > 0)
    sim_disk_poke (sa->disk[slot], "rot", 3, off);
}

static void
spoil_in_place (unsigned slot, uint64_t row)
{
  sim_disk_poke (sa->disk[slot], "not this", 8,
                 sb.l.data_off + row * BLOCK_LEN);
}

/* Of a lost row what is known stands, in place, and the rest is an error,
 * now and after the next crash.
 */
static void
test_lost_row (void **state)
{
  const uint64_t off0 = CHUNK * 2 * 3, off1 = off0 + CHUNK;

  begin (2, 1);
  put (sa, off0, 4096, ARRAY_FUA);
  put (sa, off1, 4096, ARRAY_FUA);
  put (sa, 0, 4096, ARRAY_FUA);         /* the newest, of another row */
  crash ();
  /* Both writes changed the parity; role 1 and the parity are lost. */
  spoil_record (slot_of (3, 1), row_of (3, 0), false);
  spoil_record (slot_of (3, 2), row_of (3, 0), false);
  for (unsigned role = 0; role < 3; role++)
    spoil_in_place (slot_of (3, role), row_of (3, 0));
  for (unsigned i = 0; i < 2; i++) {
    assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, i == 1), 0);
    assert_non_null (strstr (sa->said, "lacks the content of 1 rows"));
    assert_true (array_is_readonly (sa->a));
    check_range (sa, off0, CHUNK);
    assert_int_equal (sim_array_read (sa, back, 4096, off1), EIO);
    assert_int_equal (sim_array_writable (sa), EROFS);
    assert_true (sim_array_stop (sa));
  }
  for (unsigned i = 0; i < 3; i++) {
    reopen (~0, DEGRADED_FORCE);
    check_range (sa, off0, CHUNK);
    assert_int_equal (sim_array_read (sa, back, 4096, off1), EIO);
    check_range (sa, off1 + 4096, CHUNK - 4096);
    if (i == 1)
      assert_true (sim_array_stop (sa));
    else if (i == 0)
      crash ();
  }
  put (sa, off1, 4096, ARRAY_FUA);
  check_range (sa, 0, sa->g.size);
  assert_false (lost_any (sa->a));
  end_whole (sa);
}

/* Zeroes of many rows, of which two of three rings have nothing. */
static void
test_lost_zeroes (void **state)
{
  const uint64_t stripe_len = 2 * CHUNK, off = 4 * stripe_len;

  begin (2, 1);
  memset (data + off, 0, 3 * stripe_len);
  assert_int_equal (sim_array_zero (sa, 3 * stripe_len, off, ARRAY_FUA), 0);
  put (sa, 0, 4096, ARRAY_FUA);
  crash ();
  spoil_record (0, row_of (4, 0), false);
  spoil_record (1, row_of (4, 0), false);
  for (uint64_t row = row_of (4, 0); row < row_of (7, 0); row++)
    for (unsigned slot = 0; slot < 3; slot++)
      spoil_in_place (slot, row);
  reopen (~0, DEGRADED_FORCE);
  for (uint64_t stripe = 4; stripe < 7; stripe++)
    for (unsigned role = 0; role < 2; role++) {
      const uint64_t pos = layout_address (&sa->g, stripe, role, 0);

      if (slot_of (stripe, role) == 2)
        check_range (sa, pos, CHUNK);
      else
        for (unsigned b = 0; b < CHUNK / BLOCK_LEN; b++)
          assert_int_equal (sim_array_read (sa, back, 4096,
                                            pos + b * BLOCK_LEN), EIO);
    }
  put (sa, off, 3 * stripe_len, ARRAY_FUA);
  assert_false (lost_any (sa->a));
  end_whole (sa);
}

/* Blocks of the newest transaction can't be read any more when it is logged
 * again: it is dropped, and what was there before them counts.
 */
static void
test_bad_in_ring (void **state)
{
  const uint64_t off = CHUNK * 2 * 3, len = 2 * CHUNK;
  uint8_t *before[3], *old;

  for (unsigned twice = 0; twice < 2; twice++) {
    begin (2, 1);
    /* One before it is in the journal, or none. */
    if (twice) {
      put (sa, off, len, ARRAY_FUA);
      assert_true (sim_array_pause (sa, SECOND / 10));
    }
    old = memcpy (malloc (len), data + off, len);
    for (unsigned i = 0; i < 3; i++)
      before[i] = memcpy (malloc (CHUNK), sa->disk[i]->image + place (sa, 3, 0),
                          CHUNK);
    put (sa, off, len, ARRAY_FUA);
    crash ();
    /* It was in flight. */
    for (unsigned i = 0; i < 3; i++) {
      sim_disk_poke (sa->disk[i], before[i], CHUNK, place (sa, 3, 0));
      free (before[i]);
    }
    memcpy (data + off, old, 4096);
    memcpy (data + off + CHUNK, old + CHUNK, 4096);
    free (old);
    spoil_record (slot_of (3, 2), row_of (3, 0), false);
    assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
    spoil_record (slot_of (3, 0), row_of (3, 0), true);
    spoil_record (slot_of (3, 1), row_of (3, 0), true);
    end_recovery ();
    assert_false (sa->a->failed);
    check_range (sa, off, len);
    assert_false (lost_any (sa->a));
    end_whole (sa);
  }
}

/* Until a phase of the recovery, which begins to write. */
static void
recover_until (int phase)
{
  struct sim_request *q = start_writable (sa);

  while (sa->a->recovery && (int) sa->a->recovery->phase < phase)
    assert_true (sim_step (sa->sim));
  assert_non_null (sa->a->recovery);
  crash ();
  free (q);
}

/* A recovery dropped the newest transaction in a row, since a block in a ring
 * could not be read, made the record of a member without that row, and crashed.
 * In the next one the block can be read, at first: when it can't be any more,
 * the transaction is dropped there again.
 */
static void
test_bad_after_a_dropped_row (void **state)
{
  const uint64_t off = CHUNK * 2 * 3;
  uint8_t *before[3];
  uint64_t bad;

  begin (2, 1);
  for (unsigned i = 0; i < 3; i++)
    before[i] = memcpy (malloc (CHUNK), sa->disk[i]->image + place (sa, 3, 0),
                        CHUNK);
  memcpy (back, data + off, 4096);
  put (sa, off, 8192, ARRAY_FUA);
  crash ();
  for (unsigned i = 0; i < 3; i++) {
    sim_disk_poke (sa->disk[i], before[i], CHUNK, place (sa, 3, 0));
    free (before[i]);
  }
  memcpy (data + off, back, 4096);
  spoil_header (slot_of (3, 2), row_of (3, 0));
  bad = find_record (slot_of (3, 0), row_of (3, 0), false);
  sim_disk_set_bad (sa->disk[slot_of (3, 0)], bad, BLOCK_LEN);
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  recover_until (MARK);

  memset (sa->disk[slot_of (3, 0)]->bad, 0, sa->disk_size / SIM_BLOCK);
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  sim_disk_set_bad (sa->disk[slot_of (3, 0)], bad, BLOCK_LEN);
  end_recovery ();
  assert_false (sa->a->failed);
  check_all (sa);
  assert_false (lost_any (sa->a));
  end_whole (sa);
}

/* A transaction that no ring has: what is there can be read. */
static void
test_hole (void **state)
{
  begin (2, 1);
  put (sa, 0, 4096, ARRAY_FUA);
  put (sa, 3 * CHUNK, 4096, ARRAY_FUA);
  put (sa, 6 * CHUNK, 4096, ARRAY_FUA);
  crash ();
  for (unsigned slot = 0; slot < 3; slot++)
    spoil_header (slot, row_of (1, 0));
  for (unsigned i = 0; i < 2; i++) {
    assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, i == 1), 0);
    assert_non_null (strstr (sa->said, "lacks transactions"));
    assert_non_null (strstr (sa->said, "degraded=force"));
    assert_int_equal (sim_array_writable (sa), EROFS);
    check_range (sa, 0, 4096);
    check_range (sa, 6 * CHUNK, 4096);
    assert_true (sim_array_stop (sa));
  }
  reopen (~0, DEGRADED_FORCE);
  put (sa, 3 * CHUNK, 4096, ARRAY_FUA);
  end_degraded (sa);
}

/* A member lacks all of the newest transaction, of which the blocks of many
 * lines are read at once.
 */
static void
test_relog_many (void **state)
{
  const unsigned nr = 24;
  uint64_t began;

  begin (2, 1);
  sa->cache_len = 4 << 20;
  open_again (sa, ~0, true);
  for (unsigned i = 0; i < 3; i++)
    sa->disk[i]->min_delay_ns = sa->disk[i]->max_delay_ns = SECOND / 10;
  for (unsigned i = 0; i < nr; i++)
    put (sa, 2 * CHUNK * i, 4096, 0);
  assert_int_equal (sim_array_flush (sa), 0);
  /* One alone, and the others, which have gathered meanwhile. */
  assert_in_range (sa->a->counters.journal_commits, 1, 3);
  crash ();
  spoil_header (0, row_of (nr - 1, 0));
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  began = sim_now (sa->sim);
  end_recovery ();
  assert_true (sim_now (sa->sim) - began < 2 * SECOND);
  end_whole (sa);
}

/* ---- direct rows --------------------------------------------------------- */

static void
begin_direct (unsigned k, unsigned m)
{
  sim_consistency = CONSISTENCY_JOURNAL;
  sim_checksum = CHECKSUM_CRC32C;
  limits.ring_min_len = 1 << 20;
  sa = start_empty (k, m, CHUNK, 24);
}

static int
no_checksums (void **state)
{
  sim_checksum = CHECKSUM_NONE;
  return 0;
}

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
  crash ();
  spoil_in_place (slot_of (0, 0), row_of (0, 0));
  spoil_in_place (slot_of (0, 1), row_of (0, 0));
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
  crash ();
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
  crash ();
  slot = slot_of (0, 0);
  spoil_header (slot, row_of (0, 0));
  assert_int_equal (find_record (slot, row_of (0, 0), true), 0);
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  recover_until (MARK);
  assert_true (find_record (slot, row_of (0, 0), true) > 0);

  slot = slot_of (0, 1);
  for (unsigned place = 0; place < 2; place++)
    sim_disk_poke (sa->disk[slot], zeroes, sizeof zeroes,
                   table_page_off (&sb.l, 0, place));
  reopen (~0, DEGRADED_ALLOW);
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
  crash ();
  assert_int_equal (sim_array_open (sa, 5, DEGRADED_FORCE, false), 0);
  assert_true (sa->a->seat[0]->behind);
  sim_crash_after (sa->sim, moment);
  if (sim_array_writable (sa) == 0 && !sim_crashed (sa->sim))
    while (sa->a->recovery && !sim_crashed (sa->sim) &&
           sim_array_pause (sa, SECOND / 100))
      ;
  done = !sim_crashed (sa->sim);
  sim_crash_after (sa->sim, 0);
  crash ();
  if (sim_array_open (sa, 5, DEGRADED_ALLOW, false) == 0) {
    const struct seat *s = sa->a->seat[0];
    const bool begun = sa->a->recovery->ring[0].header.session ==
      sa->a->sb.record.self.ballot.session;

    assert_false (s->behind);
    assert_int_equal (s->ring_behind, !begun);
    assert_true (sim_array_stop (sa));
  }
  reopen (5, DEGRADED_FORCE);
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
  crash ();
  slot = slot_of (0, 0);
  assert_true (find_record (slot, row_of (0, 0), true) > 0);
  tear_page (slot);
  FOR_EACH_BIT (i, rotted)
    sim_disk_poke (sa->disk[slot], "rot", 3, sb.l.ring_off + i * BLOCK_LEN);

  reopen (~0, DEGRADED_ALLOW);
  assert_int_equal (sa->a->counters.bad_table_pages, rotted == 3);
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

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_lost_row),
    cmocka_unit_test (test_lost_zeroes),
    cmocka_unit_test (test_bad_in_ring),
    cmocka_unit_test (test_bad_after_a_dropped_row),
    cmocka_unit_test (test_hole),
    cmocka_unit_test (test_relog_many),
    cmocka_unit_test_teardown (test_stored_row_is_not_dropped, no_checksums),
    cmocka_unit_test_teardown (test_direct_rows_stay, no_checksums),
    cmocka_unit_test_teardown (test_page_of_a_record_made_anew, no_checksums),
    cmocka_unit_test_teardown (test_ring_of_a_member_that_was_behind,
                               no_checksums),
    cmocka_unit_test_teardown (test_torn_page, no_checksums),
  };

  return cmocka_run_group_tests (tests, NULL, free_data);
}
