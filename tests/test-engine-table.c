/* gpuraid: entries of the checksum table: of a page that can't be read for a
 * moment, and of a block that was read badly first.
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

static struct sim_array *
start (unsigned k, unsigned m)
{
  struct sim_array *sa;

  sim_consistency = CONSISTENCY_JOURNAL;
  sim_checksum = CHECKSUM_CRC32C;
  sa = start_full (k, m, CHUNK, 16);
  open_again (sa, ~0, true);
  return sa;
}

/* The page has entries of many rows.  A write stores it, and waits until it can
 * be read.
 */
static void
test_write_waits_for_its_page (void **state)
{
  struct sim_array *sa = start (2, 1);
  struct sim_disk *d = disk_of_role (sa, 0, 0);
  const uint64_t before = d->nr_ios[IO_READ];
  struct sim_request *q;

  data[0]++;
  d->read_error_ppm = 1000000;
  q = start_request (sa, REQUEST_WRITE, data, 0, 4096, ARRAY_FUA);
  while (d->nr_ios[IO_READ] < before + 2)
    assert_true (sim_step (sa->sim));
  assert_true (sim_array_pause (sa, 1000000));
  d->read_error_ppm = 0;
  while (q->state != SIM_IDLE)
    assert_true (sim_step (sa->sim));
  assert_int_equal (q->r.error, 0);
  free (q);

  open_again (sa, ~0, true);
  assert_int_equal (sim_array_fail (sa, layout_slot (&sa->g, 0, 1)), 0);
  assert_true (sim_array_settle (sa, 60 * SECOND));
  check_all (sa);
  end_degraded (sa);
}

/* A rebuild reads a bad block, of which the cache has the content: the new
 * member's block gets the checksum of that, not of the bad one.
 */
static void
test_checksum_of_a_copied_block (void **state)
{
  struct sim_array *sa = start (1, 2);
  static uint8_t bad[BLOCK_LEN];
  uint64_t stripe = 0;
  unsigned new;

  assert_int_equal (sim_array_fail (sa, 1), 0);
  assert_int_equal (sim_array_fail (sa, 2), 0);
  while (layout_slot (&sa->g, stripe, 0) != 2)
    stripe++;
  put (sa, stripe * CHUNK + BLOCK_LEN, BLOCK_LEN, ARRAY_FUA);
  assert_true (sim_array_pause (sa, SECOND));
  memset (bad, 0xaa, sizeof bad);
  sim_disk_poke (sa->disk[0], bad, sizeof bad, place (sa, stripe, BLOCK_LEN));

  new = sim_array_add_disk (sa);
  assert_int_equal (sim_array_replace (sa, 2, new), 0);
  assert_true (sim_array_settle (sa, 600 * SECOND));
  assert_int_equal (sim_array_fail (sa, 0), 0);
  assert_true (sim_array_settle (sa, 60 * SECOND));
  open_again (sa, ~0, true);
  check_all (sa);
  end_degraded (sa);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown (test_write_waits_for_its_page, free_data),
    cmocka_unit_test_teardown (test_checksum_of_a_copied_block, free_data),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
