/* gpuraid: reads, writes, flushes and zeroing of a whole array: how many I/Os
 * they take, what a crash leaves, and that only reading writes nothing.
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

#include "array/cache/cache.h"
#include "tests/engine-array.h"

static void
count_wake (struct request *r)
{
  ++*(unsigned *) r->opaque;
}

static void
test_full_stripe_reads_nothing (void **state)
{
  struct sim_array *sa = start_full (4, 2, CHUNK, 8);
  const uint64_t stripe = 4 * CHUNK;

  open_again (sa, ~0, true);
  /* The dirty bit is set. */
  put (sa, 0, 4096, ARRAY_FUA);
  count_from_here (sa);
  put (sa, 2 * stripe, 3 * stripe, ARRAY_FUA);
  assert_int_equal (ios (sa, IO_READ), 0);
  assert_int_equal (bytes (sa, IO_WRITE), 3 * 6 * CHUNK);
  /* Neighbours on a member go out as one. */
  assert_int_equal (ios (sa, IO_WRITE), 6);
  assert_int_equal (ios (sa, IO_FLUSH), 6);
  end_whole (sa);
}

/* How much does a write of some blocks of a stripe read? */
static uint64_t
read_by_write (struct sim_array *sa, uint64_t off, uint64_t len)
{
  open_again (sa, ~0, true);
  count_from_here (sa);
  put (sa, off, len, ARRAY_FUA);
  return bytes (sa, IO_READ) / BLOCK_LEN;
}

static void
test_small_write_reads_least (void **state)
{
  struct sim_array *sa = start_full (8, 2, 4096, 8);

  /* Delta: the block and both parities. */
  assert_int_equal (read_by_write (sa, 0, 4096), 3);
  assert_int_equal (read_by_write (sa, 0, 2 * 4096), 4);
  /* Of 3 either delta, 5, or the other 5. */
  assert_int_equal (read_by_write (sa, 0, 3 * 4096), 5);
  /* Reconstruction: the other data. */
  assert_int_equal (read_by_write (sa, 0, 4 * 4096), 4);
  assert_int_equal (read_by_write (sa, 4096, 7 * 4096), 1);
  assert_int_equal (read_by_write (sa, 0, 8 * 4096), 0);
  end_whole (sa);
}

static void
test_small_write_writes_least (void **state)
{
  struct sim_array *sa = start_full (4, 2, CHUNK, 8);

  open_again (sa, ~0, true);
  put (sa, 0, 4096, ARRAY_FUA);
  count_from_here (sa);
  put (sa, CHUNK + 4096, 4096, ARRAY_FUA);
  assert_int_equal (bytes (sa, IO_WRITE), 3 * 4096);
  end_whole (sa);
}

static void
test_unaligned_ends (void **state)
{
  static const uint64_t at[] = {
    0, 1, 511, 512, 4095, 4096, 4097, CHUNK - 1, CHUNK, CHUNK + 1,
    3 * CHUNK - 700,
  };
  struct sim_array *sa = start_full (3, 1, CHUNK, 8);

  for (unsigned i = 0; i < sizeof at / sizeof at[0]; i++)
    for (unsigned j = 0; j < sizeof at / sizeof at[0]; j++) {
      if (j % 4 == 0)
        open_again (sa, ~0, true);
      if (at[j] > 0)
        put (sa, at[i], at[j], i % 2 ? ARRAY_FUA : 0);
      check_range (sa, at[i] ? at[i] - 1 : 0, at[j] + 2);
    }
  end_whole (sa);
}

static void
test_fua_is_durable (void **state)
{
  struct sim_array *sa = start_full (3, 2, CHUNK, 8);

  for (unsigned i = 0; i < 10; i++) {
    put (sa, i * 5000, 3000 + i, ARRAY_FUA);
    crash_array (sa);
    open_again (sa, ~0, true);
    check_all (sa);
  }
  end_whole (sa);
}

static void
test_flush_is_durable (void **state)
{
  struct sim_array *sa = start_full (3, 2, CHUNK, 8);

  for (unsigned i = 0; i < 10; i++) {
    put (sa, i * 9000, 20000, 0);
    put (sa, i * 9000 + 1, 77, 0);
    assert_int_equal (sim_array_flush (sa), 0);
    crash_array (sa);
    open_again (sa, ~0, true);
    check_all (sa);
  }
  end_whole (sa);
}

/* What is flushed is all that goes to the members with one flush each. */
static void
test_second_flush_does_nothing (void **state)
{
  struct sim_array *sa = start_full (3, 2, CHUNK, 8);

  put (sa, 0, 5000, 0);
  assert_int_equal (sim_array_flush (sa), 0);
  count_from_here (sa);
  assert_int_equal (sim_array_flush (sa), 0);
  assert_int_equal (ios (sa, IO_FLUSH) + ios (sa, IO_WRITE), 0);
  end_whole (sa);
}

static void
test_zero_whole_stripes (void **state)
{
  struct sim_array *sa = start_full (4, 2, CHUNK, 16);
  const uint64_t stripe = 4 * CHUNK;

  open_again (sa, ~0, true);
  put (sa, 0, 4096, ARRAY_FUA);
  for (unsigned trim = 0; trim < 2; trim++) {
    const enum io_kind kind = trim ? IO_TRIM : IO_ZERO;
    const uint64_t off = (2 + 5 * trim) * stripe;

    count_from_here (sa);
    memset (data + off, 0, 4 * stripe);
    assert_int_equal (sim_array_zero (sa, 4 * stripe, off, ARRAY_FUA |
                                      (trim ? ARRAY_TRIM : 0)), 0);
    assert_int_equal (ios (sa, kind), 6);
    assert_int_equal (bytes (sa, kind), 6 * 4 * CHUNK);
    assert_int_equal (ios (sa, IO_READ) + ios (sa, IO_WRITE), 0);
  }
  check_all (sa);
  crash_array (sa);
  open_again (sa, ~0, true);
  end_whole (sa);
}

static void
test_zero_unaligned (void **state)
{
  struct sim_array *sa = start_full (3, 2, CHUNK, 16);
  const uint64_t off = 3 * CHUNK - 1234, len = 4 * 3 * CHUNK + 2222;

  memset (data + off, 0, len);
  assert_int_equal (sim_array_zero (sa, len, off, ARRAY_TRIM), 0);
  check_all (sa);
  assert_int_equal (sim_array_flush (sa), 0);
  crash_array (sa);
  open_again (sa, ~0, true);
  end_whole (sa);
}

static void
test_minimal_cache (void **state)
{
  struct sim_array *sa = start_full (4, 2, 65536, 32);
  struct array_status st;

  sa->cache_len = cache_min_len (&sa->g);
  open_again (sa, ~0, true);
  for (unsigned i = 0; i < 60; i++)
    put (sa, i * 131071 % (sa->g.size - 300000), 1000 + i * 4567 % 290000, 0);
  array_get_status (sa->a, &st);
  assert_true (st.cache_len <= sa->cache_len);
  array_status_free (&st);
  check_all (sa);
  end_whole (sa);
}

static uint64_t
dirty_bytes (struct sim_array *sa)
{
  struct array_status st;
  uint64_t len;

  array_get_status (sa->a, &st);
  len = st.cache_dirty;
  array_status_free (&st);
  return len;
}

/* Blocks, in whichever cells and lines they are. */
static void
test_dirty_bytes (void **state)
{
  struct sim_array *sa = start_full (4, 2, CHUNK, 8);

  open_again (sa, ~0, true);
  assert_int_equal (dirty_bytes (sa), 0);
  put (sa, 0, 4096, 0);
  assert_int_equal (dirty_bytes (sa), 4096);
  put (sa, 0, 4096, 0);
  assert_int_equal (dirty_bytes (sa), 4096);
  put (sa, CHUNK - 4096, 3 * 4096, 0);
  assert_int_equal (dirty_bytes (sa), 4 * 4096);
  put (sa, 3 * 4 * CHUNK + 5 * 4096, 4096, 0);
  assert_int_equal (dirty_bytes (sa), 5 * 4096);
  assert_int_equal (sim_array_flush (sa), 0);
  assert_int_equal (dirty_bytes (sa), 0);
  end_whole (sa);
}

static void
note_run (struct array *a, struct waiter *w)
{
  fail_msg ("a waiter for cells is woken");
}

/* A write to a clean line gives up its content where lines hold too much.  What
 * waits for cells could have had these: woken now, it and the write would take
 * them from each other forever.
 */
static void
test_clean_cells_wake_nothing (void **state)
{
  struct sim_array *sa = start_full (4, 2, CHUNK, 8);
  struct waiter w = { .run = note_run };
  struct line *line;
  unsigned max_held;

  open_again (sa, ~0, true);
  put (sa, 0, 4096, ARRAY_FUA);
  line = line_find (sa->a, 0);
  assert_non_null (line);
  assert_true (line->is_clean && line->nr_cells > 0);
  list_append (&sa->a->cell_waiters, &w.link);
  max_held = sa->a->max_held;
  sa->a->max_held = 0;
  line_hold (sa->a, line);
  assert_int_equal (line->nr_cells, 0);
  assert_true (list_empty (&sa->a->engine.ready));
  list_remove (&w.link);
  sa->a->max_held = max_held;
  line_settle (sa->a, line);
  end_whole (sa);
}

static void
test_reading_writes_nothing (void **state)
{
  struct sim_array *sa = start_full (3, 2, CHUNK, 8);

  assert_true (sim_array_stop (sa));
  for (unsigned readonly = 0; readonly < 2; readonly++) {
    count_from_here (sa);
    assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, readonly), 0);
    check_all (sa);
    if (readonly)
      assert_int_equal (sim_array_writable (sa), EROFS);
    assert_true (sim_array_stop (sa));
    assert_int_equal (ios (sa, IO_WRITE) + ios (sa, IO_ZERO) +
                      ios (sa, IO_TRIM), 0);
    /* What is found is made durable before it is believed. */
    assert_int_equal (ios (sa, IO_FLUSH), 5);
  }
  /* An unclean one, with a member missing. */
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  assert_int_equal (sim_array_writable (sa), 0);
  put (sa, 0, 5000, ARRAY_FUA);
  crash_array (sa);
  count_from_here (sa);
  assert_int_equal (sim_array_open (sa, ~1, DEGRADED_ALLOW, true), -1);
  assert_int_equal (sim_array_open (sa, ~1, DEGRADED_FORCE, true), 0);
  check_all (sa);
  assert_true (sim_array_stop (sa));
  assert_int_equal (ios (sa, IO_WRITE), 0);
  sim_array_free (sa);
}

/* A client that finds the array lock taken does not wait for it: the thread
 * that has it decides, and wakes the client; for a small write only when that
 * has ended.
 */
static void
write_by_another (uint32_t len, unsigned nr_wakes)
{
  struct sim_array *sa = start_full (3, 2, CHUNK, 4);
  struct array *a;
  struct request r;
  unsigned nr_woken = 0;

  open_again (sa, ~0, true);
  a = sa->a;
  memset (data + 4096, 7, len);
  request_init (&r, a, REQUEST_WRITE);
  r.buf = data + 4096;
  r.off = 4096;
  r.len = len;
  r.opaque = &nr_woken;
  r.wake = count_wake;
  for (unsigned i = 1; i <= nr_wakes; i++) {
    engine_lock (a);
    assert_int_equal (request_decide (&r), REQUEST_WAIT);
    assert_int_equal (nr_woken, i - 1);
    engine_unlock (a);
    assert_int_equal (nr_woken, i);
    if (i == nr_wakes)
      break;
    assert_int_equal (request_decide (&r), REQUEST_COPY);
    assert_false (request_copy (&r));
  }
  assert_int_equal (request_decide (&r), REQUEST_END);
  assert_int_equal (r.error, 0);
  end_whole (sa);
}

static void
test_decided_by_another (void **state)
{
  write_by_another (8192, 1);
  /* To copy, and to end. */
  write_by_another (5 * 4096, 2);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_full_stripe_reads_nothing),
    cmocka_unit_test (test_small_write_reads_least),
    cmocka_unit_test (test_small_write_writes_least),
    cmocka_unit_test (test_unaligned_ends),
    cmocka_unit_test (test_fua_is_durable),
    cmocka_unit_test (test_flush_is_durable),
    cmocka_unit_test (test_second_flush_does_nothing),
    cmocka_unit_test (test_zero_whole_stripes),
    cmocka_unit_test (test_zero_unaligned),
    cmocka_unit_test (test_minimal_cache),
    cmocka_unit_test (test_dirty_bytes),
    cmocka_unit_test (test_decided_by_another),
    cmocka_unit_test (test_clean_cells_wake_nothing),
    cmocka_unit_test (test_reading_writes_nothing),
  };

  return cmocka_run_group_tests (tests, NULL, free_data);
}
