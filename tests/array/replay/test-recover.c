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

#include "array/health/lost.h"
#include "array/replay/internal.h"
#include "common/bits.h"
#include "tests/array/replay/recover-array.h"

/* Of a lost row what is known stands, in place, and the rest is an error,
 * now and after the next crash.
 */
static void
test_lost_row (void **state)
{
  const uint64_t off0 = CHUNK * 2 * 3, off1 = off0 + CHUNK;

  begin_journal (2, 1);
  put (sa, off0, 4096, ARRAY_FUA);
  put (sa, off1, 4096, ARRAY_FUA);
  put (sa, 0, 4096, ARRAY_FUA);         /* the newest, of another row */
  crash_journal ();
  /* Both writes changed the parity; role 1 and the parity are lost. */
  spoil_record (slot_of_role (3, 1), row_of (3, 0), false);
  spoil_record (slot_of_role (3, 2), row_of (3, 0), false);
  for (unsigned role = 0; role < 3; role++)
    spoil_in_place (slot_of_role (3, role), row_of (3, 0));
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
    reopen_crashed (~0, DEGRADED_FORCE);
    check_range (sa, off0, CHUNK);
    assert_int_equal (sim_array_read (sa, back, 4096, off1), EIO);
    check_range (sa, off1 + 4096, CHUNK - 4096);
    if (i == 1)
      assert_true (sim_array_stop (sa));
    else if (i == 0)
      crash_journal ();
  }
  put (sa, off1, 4096, ARRAY_FUA);
  check_range (sa, 0, sa->g.size);
  assert_false (lost_any (sa->a));
  end_whole (sa);
}

/* The journal has all that was written to a row, but too much of what it did
 * not change can't be read: that row is lost, and no reason not to write.
 */
static void
unreadable_row (bool sums)
{
  const uint64_t off0 = CHUNK * 3 * 4, off1 = off0 + CHUNK;

  if (sums)
    begin_direct (3, 1);
  else
    begin_journal (3, 1);
  put (sa, 0, sa->g.size, ARRAY_FUA);
  assert_true (sim_array_stop (sa));
  open_again (sa, ~0, true);
  put (sa, off0, 4096, ARRAY_FUA);
  crash_journal ();
  for (unsigned role = 1; role < 3; role++)
    sim_disk_set_bad (sa->disk[slot_of_role (4, role)],
                      sb.l.data_off + row_of (4, 0) * BLOCK_LEN, BLOCK_LEN);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
    /* Before it is recovered: that is what decides again. */
    assert_int_equal (sim_array_read (sa, back, 4096, off1), EIO);
    end_recovery ();
    assert_false (sa->a->failed);
    assert_false (array_is_readonly (sa->a));
    check_range (sa, off0, CHUNK);
    assert_int_equal (sim_array_read (sa, back, 4096, off1), EIO);
    check_range (sa, off1 + 4096, CHUNK - 4096);
    put (sa, off1 + CHUNK + 4096, 4096, ARRAY_FUA);
    if (i == 1)
      assert_true (sim_array_stop (sa));
    else if (i == 0)
      crash_journal ();
  }
  put (sa, off1, 2 * CHUNK, ARRAY_FUA);
  check_range (sa, 0, sa->g.size);
  assert_false (lost_any (sa->a));
  end_whole (sa);
}

static void
test_unreadable_row (void **state)
{
  unreadable_row (false);
  unreadable_row (true);
  no_checksums (NULL);
}

/* Zeroes of many rows, of which two of three rings have nothing. */
static void
test_lost_zeroes (void **state)
{
  const uint64_t stripe_len = 2 * CHUNK, off = 4 * stripe_len;

  begin_journal (2, 1);
  memset (data + off, 0, 3 * stripe_len);
  assert_int_equal (sim_array_zero (sa, 3 * stripe_len, off, ARRAY_FUA), 0);
  put (sa, 0, 4096, ARRAY_FUA);
  crash_journal ();
  spoil_record (0, row_of (4, 0), false);
  spoil_record (1, row_of (4, 0), false);
  for (uint64_t row = row_of (4, 0); row < row_of (7, 0); row++)
    for (unsigned slot = 0; slot < 3; slot++)
      spoil_in_place (slot, row);
  reopen_crashed (~0, DEGRADED_FORCE);
  for (uint64_t stripe = 4; stripe < 7; stripe++)
    for (unsigned role = 0; role < 2; role++) {
      const uint64_t pos = layout_address (&sa->g, stripe, role, 0);

      if (slot_of_role (stripe, role) == 2)
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
    begin_journal (2, 1);
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
    crash_journal ();
    /* It was in flight. */
    for (unsigned i = 0; i < 3; i++) {
      sim_disk_poke (sa->disk[i], before[i], CHUNK, place (sa, 3, 0));
      free (before[i]);
    }
    memcpy (data + off, old, 4096);
    memcpy (data + off + CHUNK, old + CHUNK, 4096);
    free (old);
    spoil_record (slot_of_role (3, 2), row_of (3, 0), false);
    assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
    spoil_record (slot_of_role (3, 0), row_of (3, 0), true);
    spoil_record (slot_of_role (3, 1), row_of (3, 0), true);
    end_recovery ();
    assert_false (sa->a->failed);
    check_range (sa, off, len);
    assert_false (lost_any (sa->a));
    end_whole (sa);
  }
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

  begin_journal (2, 1);
  for (unsigned i = 0; i < 3; i++)
    before[i] = memcpy (malloc (CHUNK), sa->disk[i]->image + place (sa, 3, 0),
                        CHUNK);
  memcpy (back, data + off, 4096);
  put (sa, off, 8192, ARRAY_FUA);
  crash_journal ();
  for (unsigned i = 0; i < 3; i++) {
    sim_disk_poke (sa->disk[i], before[i], CHUNK, place (sa, 3, 0));
    free (before[i]);
  }
  memcpy (data + off, back, 4096);
  spoil_header (slot_of_role (3, 2), row_of (3, 0));
  bad = find_record (slot_of_role (3, 0), row_of (3, 0), false);
  sim_disk_set_bad (sa->disk[slot_of_role (3, 0)], bad, BLOCK_LEN);
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  recover_until (MARK);

  memset (sa->disk[slot_of_role (3, 0)]->bad, 0, sa->disk_size / SIM_BLOCK);
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  sim_disk_set_bad (sa->disk[slot_of_role (3, 0)], bad, BLOCK_LEN);
  end_recovery ();
  assert_false (sa->a->failed);
  check_all (sa);
  assert_false (lost_any (sa->a));
  end_whole (sa);
}

/* A block in place can't be read, and the newest transaction is dropped in its
 * row, while a read of a ring is under way: what that gets does not count any
 * more.  New parity is not made of it.
 */
static void
test_decided_in_a_read (void **state)
{
  const uint64_t off0 = CHUNK * 2 * 3, off1 = off0 + CHUNK;
  struct sim_request *ring, *bad;
  uint8_t old[BLOCK_LEN], parity[BLOCK_LEN], got[BLOCK_LEN];
  struct sim_disk *disk[3];

  limits.tick_ns = SECOND / 50; /* the bad block is read at some of them */
  begin_journal (2, 1);
  for (unsigned role = 0; role < 3; role++)
    disk[role] = sa->disk[slot_of_role (3, role)];
  memcpy (old, data + off1, BLOCK_LEN);
  memcpy (parity, disk[2]->image + place (sa, 3, 0), BLOCK_LEN);
  put (sa, off1, BLOCK_LEN, ARRAY_FUA);
  crash_journal ();
  /* It was in flight. */
  memcpy (data + off1, old, BLOCK_LEN);
  sim_disk_poke (disk[1], old, BLOCK_LEN, place (sa, 3, 0));
  sim_disk_poke (disk[2], parity, BLOCK_LEN, place (sa, 3, 0));
  spoil_record (slot_of_role (3, 2), row_of (3, 0), false);
  sim_disk_set_bad (disk[0], place (sa, 3, 0), BLOCK_LEN);

  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  disk[1]->min_delay_ns = disk[1]->max_delay_ns = SECOND;
  ring = start_request (sa, REQUEST_READ, got, off1, BLOCK_LEN, 0);
  bad = start_request (sa, REQUEST_READ, back, off0, BLOCK_LEN, 0);
  while (sa->a->recovery->nr_decisions < 2)
    assert_true (sim_step (sa->sim));
  assert_int_not_equal (ring->state, SIM_IDLE);
  while (ring->state != SIM_IDLE || bad->state != SIM_IDLE)
    assert_true (sim_step (sa->sim));
  assert_int_equal (ring->r.error, 0);
  assert_int_equal (bad->r.error, 0);
  assert_memory_equal (back, data + off0, BLOCK_LEN);
  end_recovery ();
  check_range (sa, off1, BLOCK_LEN);
  put (sa, off0, BLOCK_LEN, ARRAY_FUA);
  end_whole (sa);
  free (ring);
  free (bad);
  limits.tick_ns = default_limits.tick_ns;
}

/* A transaction that no ring has: what is there can be read. */
static void
test_hole (void **state)
{
  begin_journal (2, 1);
  put (sa, 0, 4096, ARRAY_FUA);
  put (sa, 3 * CHUNK, 4096, ARRAY_FUA);
  put (sa, 6 * CHUNK, 4096, ARRAY_FUA);
  crash_journal ();
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
  reopen_crashed (~0, DEGRADED_FORCE);
  put (sa, 3 * CHUNK, 4096, ARRAY_FUA);
  end_degraded (sa);
}

/* In a ring, of a transaction that the others have: what is spoilt. */
enum part { HEADERS, RECORDS, BLOCKS };

static void
spoil_ring (unsigned slot, enum part part)
{
  if (part == HEADERS)
    for (unsigned which = 0; which < 2; which++)
      sim_disk_poke (sa->disk[slot], "rot", 3,
                     sb.l.ring_off + which * BLOCK_LEN);
  else
    spoil_header (slot, row_of (1, 0));
  if (part == RECORDS)
    spoil_header (slot, row_of (0, 0));
  if (part == BLOCKS)
    spoil_record (slot, row_of (0, 0), false);
}

static void
fail_writes (unsigned slot)
{
  sa->disk[slot]->write_error_ppm = 1000000;
  sa->disk[slot]->flush_error_ppm = 1000000;
}

/* One after the other, each before all is logged again. */
static void
lose_members (bool two)
{
  struct sim_request *q;

  fail_writes (2);
  q = start_writable (sa);
  while (two && !sa->a->failed && sa->a->recovery->nr_decisions < 2)
    assert_true (sim_step (sa->sim));
  if (two)
    fail_writes (1);
  while (q->state != SIM_IDLE)
    assert_true (sim_step (sa->sim));
  assert_int_not_equal (q->r.error, 0);
  free (q);
}

/* What only some rings have is lost with their members, before it was logged
 * again: nothing older is read in its place.  The first transaction of two was
 * durable, as the second one was there.
 */
static void
forget (enum part part, bool two)
{
  uint8_t old[BLOCK_LEN];

  begin_journal (1, 2);
  memcpy (old, data, sizeof old);
  put (sa, 0, BLOCK_LEN, ARRAY_FUA);
  put (sa, CHUNK, BLOCK_LEN, ARRAY_FUA);
  crash_journal ();
  for (unsigned slot = 0; slot < 3; slot++)
    sim_disk_poke (sa->disk[slot], old, sizeof old, place (sa, 0, 0));
  for (unsigned slot = 0; slot < 2; slot++)
    if (two && slot == 1)
      spoil_header (slot, row_of (1, 0));
    else
      spoil_ring (slot, part);
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  assert_false (array_is_readonly (sa->a));
  check_range (sa, 0, 2 * CHUNK);
  lose_members (two);
  assert_true (sa->a->failed);
  assert_non_null (strstr (sa->said, "can't be recovered"));
  assert_int_equal (sim_array_read (sa, back, BLOCK_LEN, 0), EIO);
  check_range (sa, BLOCK_LEN, CHUNK - BLOCK_LEN);
  check_range (sa, 2 * CHUNK, CHUNK);
  assert_true (sim_array_stop (sa));
  sim_array_free (sa);
}

/* So it is where another transaction is in no ring, as force was told. */
static void
test_forgets_more (void **state)
{
  uint8_t old[BLOCK_LEN];

  begin_journal (1, 2);
  memcpy (old, data + 2 * CHUNK, sizeof old);
  for (unsigned i = 0; i < 4; i++)
    put (sa, i * CHUNK, BLOCK_LEN, ARRAY_FUA);
  crash_journal ();
  for (unsigned slot = 0; slot < 3; slot++) {
    sim_disk_poke (sa->disk[slot], old, sizeof old, place (sa, 2, 0));
    spoil_header (slot, row_of (1, 0));
    if (slot < 2)
      spoil_header (slot, row_of (2, 0));
  }
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_FORCE, false), 0);
  assert_true (sa->a->recovery->replay.hole);
  check_range (sa, 2 * CHUNK, CHUNK);
  lose_members (false);
  assert_true (sa->a->failed);
  assert_int_equal (sim_array_read (sa, back, BLOCK_LEN, 2 * CHUNK), EIO);
  check_range (sa, 3 * CHUNK, CHUNK);
  assert_true (sim_array_stop (sa));
  sim_array_free (sa);
}

static void
test_forgets (void **state)
{
  forget (HEADERS, false);
  forget (RECORDS, false);
  forget (BLOCKS, false);
  forget (RECORDS, true);
}

/* A member lacks all of the newest transaction, of which the blocks of many
 * lines are read at once.
 */
static void
test_relog_many (void **state)
{
  const unsigned nr = 24;
  uint64_t began;

  begin_journal (2, 1);
  sa->cache_len = 4 << 20;
  open_again (sa, ~0, true);
  for (unsigned i = 0; i < 3; i++)
    sa->disk[i]->min_delay_ns = sa->disk[i]->max_delay_ns = SECOND / 10;
  for (unsigned i = 0; i < nr; i++)
    put (sa, 2 * CHUNK * i, 4096, 0);
  assert_int_equal (sim_array_flush (sa), 0);
  /* One alone, and the others, which have gathered meanwhile. */
  assert_in_range (sa->a->counters.journal_commits, 1, 3);
  crash_journal ();
  spoil_header (0, row_of (nr - 1, 0));
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  began = sim_now (sa->sim);
  end_recovery ();
  assert_true (sim_now (sa->sim) - began < 2 * SECOND);
  end_whole (sa);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_lost_row),
    cmocka_unit_test (test_unreadable_row),
    cmocka_unit_test (test_lost_zeroes),
    cmocka_unit_test (test_bad_in_ring),
    cmocka_unit_test (test_bad_after_a_dropped_row),
    cmocka_unit_test (test_decided_in_a_read),
    cmocka_unit_test (test_hole),
    cmocka_unit_test (test_forgets),
    cmocka_unit_test (test_forgets_more),
    cmocka_unit_test (test_relog_many),
  };

  return cmocka_run_group_tests (tests, NULL, free_data);
}
