/* gpuraid: scrub: what it reads, its commands, and what it does beside clients.
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
#include "common/bits.h"
#include "tests/array/scrub/scrub-array.h"

/* What was never written is not read. */
static void
test_never_written (void **state)
{
  const struct geometry g = { .k = 3, .m = 2, .chunk = CHUNK };
  struct sim_array *sa;
  uint8_t buf[BLOCK_LEN] = { 1 };

  sim_consistency = CONSISTENCY_JOURNAL;
  sim_checksum = CHECKSUM_CRC32C;
  limits.table_page_entries = 24;
  sa = sim_array_new (1, &g, 600, 0);
  sim_array_create (sa);
  open_again (sa, ~0, true);
  assert_int_equal (sim_array_write (sa, buf, BLOCK_LEN, 300 * 3 * CHUNK,
                                     ARRAY_FUA), 0);
  open_again (sa, ~0, true);
  count_from_here (sa);
  check_clean (scrub (sa, true));
  /* The others are holes: both places of as many pages as one pin may have, of
   * 5 members, data and its parity.
   */
  assert_int_equal (bytes (sa, IO_READ), 5 * (limits.sums_min_pages / 4) * 2 *
                    TABLE_PAGE_LEN + 3 * BLOCK_LEN);
  end_degraded (sa);
}

/* Without checksums what is a hole on all members is not read.  What one of
 * them has there, and what is lost, is found all the same.
 */
static void
test_holes (void **state)
{
  static const uint8_t stray[BLOCK_LEN] = { 1 };

  for (unsigned journal = 0; journal < 2; journal++) {
    struct sim_array *sa;
    struct array_scrub_count c;

    sim_consistency = journal ? CONSISTENCY_JOURNAL : CONSISTENCY_NONE;
    sim_checksum = CHECKSUM_NONE;
    sa = start_empty (3, 1, CHUNK, 600);
    sa->window_len = CHUNK;
    put (sa, 0, 3 * CHUNK, 0);
    open_again (sa, ~0, true);
    count_from_here (sa);
    check_clean (scrub (sa, false));
    assert_true (bytes (sa, IO_READ) <= 4 * 2 * CHUNK);

    put_block (sa, 2, 100 * CHUNK_BLOCKS, stray);
    engine_lock (sa->a);
    assert_true (lost_add (sa->a, 200, 3, 1));
    engine_unlock (sa->a);
    c = scrub (sa, false);
    assert_int_equal (c.unlocated_rows, 1);
    assert_int_equal (c.lost_rows, 1);
    end_degraded (sa);
  }
}

/* It pauses, goes on, stops; and ends with the array. */
static void
test_commands (void **state)
{
  struct sim_array *sa = start_with_sums (3, 2);
  char why[ARRAY_WHY_LEN];
  uint64_t done;

  assert_int_equal (control (sa, ARRAY_SCRUB_STOP),
                    EINVAL);
  begin (sa, true);
  assert_int_equal (array_scrub_start (sa->a, true, why), EINVAL);
  while (status (sa).scrub.done == 0)
    assert_true (sim_step (sa->sim));
  assert_int_equal (control (sa, ARRAY_SCRUB_PAUSE), 0);
  assert_true (sim_array_pause (sa, SECOND));
  done = status (sa).scrub.done;
  assert_true (status (sa).scrub_paused);
  assert_true (done < status (sa).scrub.total);
  assert_true (sim_array_pause (sa, SECOND));
  assert_int_equal (status (sa).scrub.done, done);
  assert_int_equal (control (sa, ARRAY_SCRUB_RESUME), 0);
  while (status (sa).scrub.running)
    assert_true (sim_step (sa->sim));
  assert_true (status (sa).last_scrub_complete);

  begin (sa, false);
  assert_int_equal (control (sa, ARRAY_SCRUB_STOP), 0);
  while (status (sa).scrub.running)
    assert_true (sim_step (sa->sim));
  assert_false (status (sa).last_scrub_complete);
  begin (sa, true);
  end_whole (sa);
}

/* Opened for reading only, also before a journal's recovery. */
static void
test_read_only (void **state)
{
  struct sim_array *sa = start_with_sums (3, 2);
  struct array_scrub_count c;
  char why[ARRAY_WHY_LEN];

  assert_true (sim_array_stop (sa));
  flip (sa, 2, 5, 12345);
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, true), 0);
  count_from_here (sa);
  c = scrub (sa, false);
  assert_int_equal (c.found, 1);
  assert_int_equal (ios (sa, IO_WRITE), 0);
  assert_true (sim_array_stop (sa));

  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  assert_int_equal (sim_array_writable (sa), 0);
  put (sa, 0, 40 * BLOCK_LEN, ARRAY_FUA);
  crash_array (sa);
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, true), 0);
  c = scrub (sa, false);
  assert_true (c.skipped_rows > 0);
  assert_int_equal (c.unlocated_rows + c.lost_rows, 0);
  assert_int_not_equal (array_scrub_start (sa->a, true, why), 0);
  open_again (sa, ~0, true);
  assert_int_equal (scrub (sa, true).repaired, c.found);
  end_whole (sa);
}

/* Clients write all the time while it repairs. */
static void
test_with_clients (void **state)
{
  struct sim_array *sa = start_with_sums (4, 2);
  unsigned nr = 0;

  assert_true (sim_array_stop (sa));
  for (unsigned row = 0; row < NR_ROWS; row++) {
    flip (sa, row % 6, row, row);
    if (row % 3 == 0)
      flip (sa, (row + 3) % 6, row, row);
  }
  sa->cache_len = 16 << 20;
  open_again (sa, ~0, true);
  begin (sa, true);
  for (uint64_t i = 1; status (sa).scrub.running; i++) {
    put (sa, i * 7919 * BLOCK_LEN % (sa->g.size - 3 * BLOCK_LEN) & ~511,
         1 + i * 131 % (2 * BLOCK_LEN), i % 4 ? 0 : ARRAY_FUA);
    assert_true (nr++ < 20000);
  }
  check_clean (scrub (sa, true));
  end_whole (sa);
}

int
main (void)
{
#define TEST(name) cmocka_unit_test_teardown (name, scrub_usual_limits)
  const struct CMUnitTest tests[] = {
    TEST (test_never_written),
    TEST (test_holes),
    TEST (test_commands),
    TEST (test_read_only),
    TEST (test_with_clients),
  };

  return cmocka_run_group_tests (tests, NULL, free_data);
}
