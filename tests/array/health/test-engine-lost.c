/* gpuraid: rows of which too little can be read: what fails with them, and what
 * does not.
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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "array/health/lost.h"
#include "array/ops/repair.h"
#include "common/bits.h"
#include "common/log.h"
#include "raidmap/limits.h"
#include "tests/engine-array.h"

/* Reads of this disk fail from its next one on, for this time. */
static void
fail_reads (struct sim_array *sa, struct sim_disk *d, uint64_t ns)
{
  const uint64_t before = d->nr_ios[IO_READ];

  d->read_error_ppm = 1000000;
  while (d->nr_ios[IO_READ] == before)
    assert_true (sim_step (sa->sim));
  assert_true (sim_array_pause (sa, ns));
  d->read_error_ppm = 0;
}

/* A read of which the first I/O fails. */
static void
fail_one_read (struct sim_array *sa, struct sim_disk *d, uint64_t off)
{
  const uint64_t before = d->nr_ios[IO_READ];
  struct sim_request *q = start_request (sa, REQUEST_READ, back, off, 4096, 0);

  while (d->nr_ios[IO_READ] == before)
    assert_true (sim_step (sa->sim));
  d->read_error_ppm = 0;
  while (q->state != SIM_IDLE)
    assert_true (sim_step (sa->sim));
  assert_int_equal (q->r.error, 0);
  free (q);
}

/* ---- rows whose parity may be wrong ------------------------------------ */

/* A row was being written at a crash; during the resync a block of another
 * slot in that row, which was flushed long ago, can't be read.  False: the
 * crash did not come.
 */
static bool
crash_in_write (struct sim_array *sa, unsigned moment)
{
  const uint64_t off = layout_address (&sa->g, 3, 0, 0);
  struct sim_request *q;

  open_again (sa, ~0, true);
  put (sa, 0, 4096, ARRAY_FUA);         /* the region is marked */
  for (uint64_t i = off; i < off + CHUNK; i++)
    data[i] += 7;
  q = start_request (sa, REQUEST_WRITE, data + off, off, CHUNK, ARRAY_FUA);
  sim_crash_after (sa->sim, moment);
  while (q->state != SIM_IDLE && sim_step (sa->sim))
    ;
  if (!sim_crashed (sa->sim)) {
    assert_int_equal (q->state, SIM_IDLE);
    free (q);
    return false;
  }
  crash_array (sa);
  free (q);
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  return true;
}

static void
test_short_error_in_resync (void **state)
{
  for (unsigned moment = 1; ; moment++) {
    struct sim_array *sa = start_full (2, 1, CHUNK, 8);
    const uint64_t other = layout_address (&sa->g, 3, 1, 0);
    struct sim_request *q;

    if (!crash_in_write (sa, moment)) {
      assert_true (sim_array_abandon (sa));
      sim_array_free (sa);
      assert_true (moment > 5);
      return;
    }
    q = start_writable (sa);
    fail_reads (sa, disk_of_role (sa, 3, 1), 2000000);
    assert_true (sim_array_settle (sa, 100 * SECOND));
    check_range (sa, other, CHUNK);
    assert_int_equal (lost_rows_count (sa->a), 0);
    assert_int_equal (sim_array_read (sa, data + layout_address (&sa->g, 3, 0,
                                                                 0), CHUNK,
                                      layout_address (&sa->g, 3, 0, 0)), 0);
    end_whole (sa);
    free (q);
  }
}

/* The block stays bad: it is an error, now and after a restart, and parity does
 * not replace it, until it is written.
 */
static void
test_bad_block_in_resync (void **state)
{
  struct sim_array *sa = start_full (2, 1, CHUNK, 8);
  const uint64_t other = layout_address (&sa->g, 3, 1, 4096);
  const uint64_t row = layout_address (&sa->g, 3, 0, 4096);

  assert_true (crash_in_write (sa, 9));
  sim_disk_set_bad (disk_of_role (sa, 3, 1), place (sa, 3, 4096), 4096);
  assert_int_equal (sim_array_writable (sa), 0);
  assert_true (sim_array_settle (sa, 100 * SECOND));
  for (unsigned i = 0; i < 2; i++) {
    assert_int_equal (sim_array_read (sa, back, 4096, other), EIO);
    check_range (sa, other - 4096, 4096);
    check_range (sa, other + 4096, 4096);
    open_again (sa, ~0, true);
  }
  /* It can be read after all, but parity was not made. */
  memset (disk_of_role (sa, 3, 1)->bad, 0, sa->disk_size / SIM_BLOCK);
  check_range (sa, other, 4096);
  sim_disk_set_bad (disk_of_role (sa, 3, 0), place (sa, 3, 4096), 4096);
  assert_int_equal (sim_array_read (sa, back, 4096, row), EIO);
  put (sa, row, 4096, ARRAY_FUA);
  put (sa, other, 4096, ARRAY_FUA);
  open_again (sa, ~0, true);
  /* And now it is right again. */
  sim_disk_set_bad (disk_of_role (sa, 3, 0), place (sa, 3, 4096), 4096);
  check_range (sa, row, 4096);
  assert_true (sim_array_pause (sa, SECOND));
  assert_int_equal (sim_array_read (sa, data + layout_address (&sa->g, 3, 0, 0),
                                    CHUNK, layout_address (&sa->g, 3, 0, 0)),
                    0);
  end_whole (sa);
}

/* A member is lost after one of its blocks was cached.  With the cached block
 * the parity of the row may be wrong still: it replaces no other block.
 */
static void
test_lost_member_is_cached (void **state)
{
  for (unsigned moment = 1; ; moment++) {
    struct sim_array *sa = start_full (2, 2, CHUNK, 8);
    const uint64_t row = layout_address (&sa->g, 3, 0, 4096);
    const uint64_t other = layout_address (&sa->g, 3, 1, 4096);
    struct sim_disk *d;
    int error;

    if (!crash_in_write (sa, moment)) {
      assert_true (sim_array_abandon (sa));
      sim_array_free (sa);
      return;
    }
    /* After an error it is read by an operation, and cached. */
    d = disk_of_role (sa, 3, 0);
    d->read_error_ppm = 1000000;
    fail_one_read (sa, d, row);
    d->dead = true;
    assert_int_equal (sim_array_read (sa, back, 4096, row - 4096), 0);
    assert_true (sim_array_pause (sa, SECOND));
    sim_disk_set_bad (disk_of_role (sa, 3, 1), place (sa, 3, 4096), 4096);
    error = sim_array_read (sa, back, 4096, other);
    if (error == 0)
      assert_memory_equal (back, data + other, 4096);
    else
      assert_int_equal (error, EIO);
    assert_true (sim_array_abandon (sa));
    sim_array_free (sa);
  }
}

/* ---- degraded, and a block more ---------------------------------------- */

static struct sim_array *
start_degraded (uint64_t nr_stripes)
{
  struct sim_array *sa = start_full (2, 1, CHUNK, nr_stripes);

  open_again (sa, ~0, true);
  assert_int_equal (sim_array_fail (sa, 0), 0);
  assert_true (sim_array_pause (sa, SECOND));
  open_again (sa, ~0, true);
  return sa;
}

static void
test_short_error_degraded (void **state)
{
  struct sim_array *sa = start_degraded (40);
  struct sim_request *q[4];

  for (uint64_t i = 0; i < 4; i++) {
    const uint64_t off = i * 2 * CHUNK;

    for (unsigned j = 0; j < 4096; j++)
      data[off + j] += 3;
    q[i] = start_request (sa, REQUEST_WRITE, data + off, off, 4096,
                          i == 0 ? ARRAY_FUA : 0);
  }
  fail_reads (sa, sim_array_disk_at (sa, 1), 2000000);
  while (q[0]->state != SIM_IDLE)
    assert_true (sim_step (sa->sim));
  assert_int_equal (q[0]->r.error, 0);
  assert_false (sa->a->failed);
  put (sa, 30 * 2 * CHUNK, 4096, ARRAY_FUA);
  assert_int_equal (sim_array_flush (sa), 0);
  check_all (sa);
  for (unsigned i = 0; i < 4; i++)
    free (q[i]);
  end_degraded (sa);
}

/* One row can't be written: its flush fails, others go on, and a write that
 * covers the bad block heals it.
 */
static void
test_row_that_cant_be_written (void **state)
{
  struct sim_array *sa = start_degraded (40);
  const unsigned role = layout_role (&sa->g, 9, 1);
  const unsigned gone = layout_role (&sa->g, 9, 0);
  uint64_t off;

  /* Both are data: the row's parity is needed, and so is the bad one. */
  assert_true (role < 2 && gone < 2);
  off = layout_address (&sa->g, 9, gone, 0);
  sim_disk_set_bad (sim_array_disk_at (sa, 1), place (sa, 9, 0), 4096);
  for (unsigned j = 0; j < 4096; j++)
    data[off + j] += 3;
  assert_int_equal (sim_array_write (sa, data + off, 4096, off, ARRAY_FUA),
                    EIO);
  assert_false (sa->a->failed);
  assert_int_equal (lost_rows_count (sa->a), 1);
  /* It is still there to be read, and no other write is in its way. */
  check_range (sa, off, 4096);
  put (sa, 4 * CHUNK, 2 * CHUNK, ARRAY_FUA);
  put (sa, off + 4096, 8192, ARRAY_FUA);
  assert_int_equal (sim_array_flush (sa), EIO);
  put (sa, layout_address (&sa->g, 9, role, 0), 4096, 0);
  assert_int_equal (sim_array_flush (sa), 0);
  assert_int_equal (lost_rows_count (sa->a), 0);
  check_all (sa);
  open_again (sa, ~0, true);
  check_all (sa);
  end_degraded (sa);
}

/* A block could not be written out, and a client is just writing to some of it:
 * a reader does not get what is on the member, which is older than what was
 * read before, and another flush fails too.
 */
static void
reader_of_an_unwritten_block (struct sim_array *sa)
{
  const uint64_t off = layout_address (&sa->g, 9, 0, 4096);
  struct sim_disk *d = disk_of_role (sa, 9, 0);
  struct sim_request *flush, *again, *w, *r;

  open_again (sa, ~0, true);
  for (unsigned role = 1; role < 3; role++)
    sim_disk_set_bad (disk_of_role (sa, 9, role), place (sa, 9, 4096), 4096);
  put (sa, off, 4096, 0);
  flush = start_request (sa, REQUEST_FLUSH, NULL, 0, 0, 0);
  assert_true (sim_array_pause (sa, 100000));
  d->min_delay_ns = d->max_delay_ns = 5 * SECOND;
  /* It waits for the end of the block before. */
  for (uint64_t i = off - 100; i < off + 100; i++)
    data[i] ^= 1;
  w = start_request (sa, REQUEST_WRITE, data + off - 100, off - 100, 200, 0);
  while (flush->state != SIM_IDLE)
    assert_true (sim_step (sa->sim));
  assert_int_equal (flush->r.error, EIO);
  assert_true (w->state != SIM_IDLE);

  r = start_request (sa, REQUEST_READ, back, off, 4096, 0);
  again = start_request (sa, REQUEST_FLUSH, NULL, 0, 0, 0);
  while (r->state != SIM_IDLE || w->state != SIM_IDLE ||
         again->state != SIM_IDLE)
    assert_true (sim_step (sa->sim));
  assert_int_equal (again->r.error, EIO);
  assert_int_equal (r->r.error, 0);
  assert_memory_equal (back + 100, data + off + 100, 4096 - 100);
  free (flush);
  free (again);
  free (w);
  free (r);
  d->min_delay_ns = d->max_delay_ns = 0;
  assert_true (sim_array_abandon (sa));
  sim_array_free (sa);
}

static void
test_reader_of_an_unwritten_block (void **state)
{
  reader_of_an_unwritten_block (start_full (2, 1, CHUNK, 40));
}

/* The table says that it was never written, so its member is not asked. */
static void
test_reader_of_a_new_block (void **state)
{
  struct sim_array *sa = start_empty (2, 1, CHUNK, 40);

  put (sa, layout_address (&sa->g, 9, 1, 4096), 4096, ARRAY_FUA);
  put (sa, layout_address (&sa->g, 9, 0, 0), 4096, ARRAY_FUA);
  reader_of_an_unwritten_block (sa);
}

/* A rebuild passes it; what it could not make stays an error, until it is
 * written, also over a restart.
 */
static void
test_rebuild_passes_lost_rows (void **state)
{
  struct sim_array *sa = start_degraded (64);
  const uint64_t stripe = 33;
  const unsigned gone = layout_role (&sa->g, stripe, 0);
  const unsigned role = layout_role (&sa->g, stripe, 1);
  uint64_t off, bad;

  assert_true (gone < 2 && role < 2);
  off = layout_address (&sa->g, stripe, gone, 4096);
  bad = layout_address (&sa->g, stripe, role, 4096);
  sim_disk_set_bad (sim_array_disk_at (sa, 1), place (sa, stripe, 4096), 4096);
  assert_int_equal (sim_array_replace (sa, 0, sim_array_add_disk (sa)), 0);
  assert_true (sim_array_settle (sa, 100 * SECOND));
  assert_int_equal (sa->a->lost_slots, 0);
  for (unsigned i = 0; i < 2; i++) {
    assert_int_equal (sim_array_read (sa, back, 4096, off), EIO);
    assert_int_equal (sim_array_read (sa, back, 4096, bad), EIO);
    check_range (sa, 0, off - 4096);
    check_range (sa, off - 4096, 4096);
    check_range (sa, off + 4096, 4096);
    open_again (sa, ~0, true);
  }
  /* A write heals it when it covers both. */
  put (sa, bad, 4096, 0);
  assert_int_equal (sim_array_flush (sa), EIO);
  assert_int_equal (sim_array_read (sa, back, 4096, off), EIO);
  put (sa, off, 4096, ARRAY_FUA);
  check_all (sa);
  open_again (sa, ~0, true);
  end_whole (sa);
}

/* Slot 0 is rebuilt, and in one row it can't be; in the same pass the member of
 * slot 1 is replaced.  What that has is copied, in this row too.
 */
static void
rebuild_two (enum consistency consistency, enum checksum checksum)
{
  const uint64_t stripe = 60;
  struct sim_array *sa;
  unsigned gone, copied;
  uint64_t off, bad;

  sim_consistency = consistency;
  sim_checksum = checksum;
  sa = start_full (3, 1, CHUNK, 64);
  sim_consistency = CONSISTENCY_NONE;
  sim_checksum = CHECKSUM_NONE;
  gone = layout_role (&sa->g, stripe, 0);
  copied = layout_role (&sa->g, stripe, 1);
  assert_true (gone < 3 && copied < 3);
  assert_int_equal (sim_array_fail (sa, 0), 0);
  assert_true (sim_array_pause (sa, SECOND));
  open_again (sa, ~0, true);
  bad = layout_address (&sa->g, stripe, gone, 4096);
  off = layout_address (&sa->g, stripe, copied, 4096);
  sim_disk_set_bad (sim_array_disk_at (sa, 2), place (sa, stripe, 4096), 4096);
  sa->a->window_len = CHUNK;
  assert_int_equal (sim_array_replace (sa, 0, sim_array_add_disk (sa)), 0);
  assert_int_equal (sim_array_replace (sa, 1, sim_array_add_disk (sa)), 0);
  assert_non_null (sa->a->at[0][1]);
  assert_true (sim_array_settle (sa, 1000 * SECOND));
  assert_int_equal (sa->a->irregular_slots, 0);
  for (unsigned i = 0; i < 2; i++) {
    assert_int_equal (sim_array_read (sa, back, 4096, bad), EIO);
    check_range (sa, off, 4096);
    open_again (sa, ~0, true);
  }
  end_degraded (sa);
}

static void
test_rebuild_copies_what_it_can (void **state)
{
  rebuild_two (CONSISTENCY_NONE, CHECKSUM_NONE);
  rebuild_two (CONSISTENCY_NONE, CHECKSUM_CRC32C);
  rebuild_two (CONSISTENCY_JOURNAL, CHECKSUM_NONE);
  rebuild_two (CONSISTENCY_JOURNAL, CHECKSUM_CRC32C);
}

/* A row has lost more than parity can make up for, and then another member is
 * replaced: copying its block says nothing about the others.
 */
static void
test_copy_forgets_no_lost_row (void **state)
{
  struct sim_array *sa = start_full (2, 1, CHUNK, 40);
  const unsigned slot = layout_slot (&sa->g, 9, 0);
  const uint64_t off = layout_address (&sa->g, 9, 1, 4096);

  open_again (sa, ~0, true);
  for (unsigned role = 1; role < 3; role++)
    sim_disk_set_bad (disk_of_role (sa, 9, role), place (sa, 9, 4096), 4096);
  assert_int_equal (sim_array_read (sa, back, 4096, off), EIO);
  assert_int_equal (lost_rows_count (sa->a), 1);
  assert_int_equal (sim_array_replace (sa, slot, sim_array_add_disk (sa)), 0);
  assert_true (sim_array_settle (sa, 100 * SECOND));
  assert_int_equal (sa->a->irregular_slots, 0);
  assert_int_equal (lost_rows_count (sa->a), 1);
  assert_true (lost_any (sa->a));
  put (sa, off, 4096, ARRAY_FUA);
  assert_int_equal (lost_rows_count (sa->a), 0);
  end_whole (sa);
}

static unsigned said_rows, said_more;

static void
count_said (enum log_level level, const char *fmt, va_list args)
{
  char text[500];

  vsnprintf (text, sizeof text, fmt, args);
  said_rows += strstr (text, "too little of this row") != NULL;
  said_more += strstr (text, "more rows of which") != NULL;
}

/* Each lost row has a message, and where in the array it is; but not
 * thousands.
 */
static void
test_messages_have_a_limit (void **state)
{
  struct sim_array *sa = start_full (2, 1, CHUNK, 40);

  open_again (sa, ~0, true);
  for (unsigned slot = 0; slot < 2; slot++)
    sim_disk_set_bad (sim_array_disk_at (sa, slot), place (sa, 2, 0),
                      30 * CHUNK);
  said_rows = said_more = 0;
  log_set_sink (count_said);
  for (uint64_t off = 4 * CHUNK; off < 60 * CHUNK; off += 2 * CHUNK)
    sim_array_read (sa, back, 2 * CHUNK, off);
  assert_true (lost_rows_count (sa->a) > 64);
  assert_int_equal (said_rows, 64);
  assert_int_equal (said_more, 1);
  log_set_sink (NULL);
  assert_true (sim_array_abandon (sa));
  sim_array_free (sa);
}

/* A member that is being replaced has a lost block, and so has the new one,
 * below its cursor: a repair stores it on both.
 */
static void
test_repair_while_it_is_replaced (void **state)
{
  struct sim_array *sa = start_full (2, 2, CHUNK, 64);
  const unsigned role = layout_role (&sa->g, 0, 0);
  uint8_t garbage[4096];
  unsigned n;

  open_again (sa, ~0, true);
  sa->a->window_len = CHUNK;
  n = sim_array_add_disk (sa);
  sa->disk[n]->max_delay_ns = 50000000;
  assert_int_equal (sim_array_replace (sa, 0, n), 0);
  while (sa->a->at[0][1]->cursor < 4 * CHUNK)
    assert_true (sim_step (sa->sim));
  assert_int_equal (sa->a->at[0][1]->state, SEAT_TARGET);
  memset (garbage, 0x99, sizeof garbage);
  sim_disk_poke (sa->disk[n], garbage, sizeof garbage, place (sa, 0, 0));
  engine_lock (sa->a);
  assert_true (lost_add (sa->a, 0, BIT (role), 1));
  repair_add (sa->a, 0, BIT (role), 0, 1, 0);
  engine_unlock (sa->a);
  assert_true (sim_array_settle (sa, 1000 * SECOND));
  assert_ptr_equal (sim_array_disk_at (sa, 0), sa->disk[n]);
  assert_false (lost_any (sa->a));
  open_again (sa, ~0, true);
  end_whole (sa);
}

/* At whatever moment it stops: data written over a lost block is not lost
 * again, and an unwritten lost block is never read as content.
 */
static void
test_crash_when_a_lost_block_is_written (void **state)
{
  for (unsigned moment = 1; moment < 60; moment += 1 + moment / 12) {
    struct sim_array *sa = start_degraded (16);
    const uint64_t stripe = 9;
    const unsigned gone = layout_role (&sa->g, stripe, 0);
    const uint64_t row = layout_address (&sa->g, stripe, 0, 0);
    int err;

    assert_true (gone < 2);
    sim_disk_set_bad (sim_array_disk_at (sa, 1), place (sa, stripe, 0), 4096);
    assert_int_equal (sim_array_replace (sa, 0, sim_array_add_disk (sa)), 0);
    assert_true (sim_array_settle (sa, 100 * SECOND));
    memcpy (back, data + row, 2 * CHUNK);
    for (unsigned i = 0; i < 2 * CHUNK; i++)
      data[row + i] += 9;
    sim_crash_after (sa->sim, moment);
    err = sim_array_write (sa, data + row, 2 * CHUNK, row, ARRAY_FUA);
    assert_true (err == 0 || err == -1);
    crash_array (sa);
    assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
    assert_int_equal (sim_array_writable (sa), 0);
    if (err == 0)
      check_all (sa);
    else if (sim_array_read (sa, back + 2 * CHUNK, 2 * CHUNK, row) == 0)
      for (unsigned i = 0; i < 2 * CHUNK; i++)
        assert_true (back[2 * CHUNK + i] == data[row + i] ||
                     back[2 * CHUNK + i] == back[i]);
    assert_true (sim_array_abandon (sa));
    sim_crash (sa->sim);
    sim_array_free (sa);
  }
}

/* It is full before the superblock has no room for more, which is earlier in
 * an array that has grown.
 */
static void
test_list_is_full (void **state)
{
  limits.grow_min_len = 1;
  sim_spare_len = MIB;
  for (unsigned grown = 0; grown < 2; grown++) {
    struct sim_array *sa = start_full (2, 2, CHUNK, 100);
    struct array *a = sa->a;
    uint64_t no = 0;

    if (grown)
      assert_int_equal (sim_array_grow (sa), 0);
    engine_lock (a);
    while (lost_add (a, no, LOW_BITS (4), 1))
      no++;
    assert_in_range (no, 1, a->sb.l.data_len / a->cell_len - 1);
    assert_null (superblock_check (&a->sb));
    while (no-- > 0)
      lost_remove (a, no, LOW_BITS (4), 1);
    engine_unlock (a);
    end_degraded (sa);
  }
  sim_spare_len = 0;
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_short_error_in_resync),
    cmocka_unit_test (test_bad_block_in_resync),
    cmocka_unit_test (test_lost_member_is_cached),
    cmocka_unit_test (test_short_error_degraded),
    cmocka_unit_test (test_row_that_cant_be_written),
    cmocka_unit_test (test_reader_of_an_unwritten_block),
    cmocka_unit_test (test_rebuild_passes_lost_rows),
    cmocka_unit_test (test_rebuild_copies_what_it_can),
    cmocka_unit_test (test_copy_forgets_no_lost_row),
    cmocka_unit_test (test_messages_have_a_limit),
    cmocka_unit_test (test_repair_while_it_is_replaced),
    cmocka_unit_test (test_crash_when_a_lost_block_is_written),
    cmocka_unit_test (test_list_is_full),
  };

  const struct CMUnitTest checked[] = {
    cmocka_unit_test (test_reader_of_a_new_block),
  };

  return cmocka_run_group_tests (tests, NULL, free_data) +
    cmocka_run_group_tests_name ("none, checksums", checked, setup_sums,
                                 free_data);
}
