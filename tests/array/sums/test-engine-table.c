/* gpuraid: entries of the checksum table: of a page that can't be read for a
 * moment, of a block that was read badly first, and of one that is made of an
 * old one.
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

#include "array/sums/internal.h"
#include "common/bits.h"
#include "tests/array/scrub/scrub-array.h"

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

/* A request for the first block ends well, of which the first two reads of a
 * disk fail, and those of a moment after them.
 */
static void
ask_despite_errors (struct sim_array *sa, struct sim_disk *d,
               enum request_kind kind, void *buf, unsigned flags)
{
  const uint64_t before = d->nr_ios[IO_READ];
  struct sim_request *q;

  d->read_error_ppm = 1000000;
  q = start_request (sa, kind, buf, 0, 4096, flags);
  while (d->nr_ios[IO_READ] < before + 2)
    assert_true (sim_step (sa->sim));
  assert_true (sim_array_pause (sa, 1000000));
  d->read_error_ppm = 0;
  while (q->state != SIM_IDLE)
    assert_true (sim_step (sa->sim));
  assert_int_equal (q->r.error, 0);
  free (q);
}

/* The page has entries of many rows.  A write stores it, and waits until it can
 * be read.
 */
static void
test_write_waits_for_its_page (void **state)
{
  struct sim_array *sa = start (2, 1);
  struct sim_disk *d = disk_of_role (sa, 0, 0);

  data[0]++;
  ask_despite_errors (sa, d, REQUEST_WRITE, data, ARRAY_FUA);

  open_again (sa, ~0, true);
  assert_int_equal (sim_array_fail (sa, layout_slot (&sa->g, 0, 1)), 0);
  assert_true (sim_array_settle (sa, 60 * SECOND));
  check_all (sa);
  end_degraded (sa);
}

/* A member is lost, and the page of another one can't be read for a moment: a
 * reader waits, as it does for blocks.
 */
static void
test_read_waits_for_a_page (void **state)
{
  struct sim_array *sa = start (2, 1);
  struct sim_disk *d = disk_of_role (sa, 0, 1);

  assert_int_equal (sim_array_fail (sa, layout_slot (&sa->g, 0, 0)), 0);
  assert_true (sim_array_settle (sa, 60 * SECOND));
  ask_despite_errors (sa, d, REQUEST_READ, back, 0);
  assert_memory_equal (back, data, 4096);
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

/* ---- old blocks --------------------------------------------------------- */

/* A block of a row that was written as a whole is old together with its entry,
 * and another one can't be read.  What is decoded for that is not what was
 * written: it has another checksum.
 */
static void
test_decoded_from_an_old_block (void **state)
{
  struct sim_array *sa = start_with_sums (2, 1);
  const unsigned old = slot_of (sa, 0, 1), bad = slot_of (sa, 0, 0);
  struct copy c;

  open_again (sa, ~0, true);
  keep (sa, old, 0, &c);
  put (sa, 0, 2 * CHUNK, ARRAY_FUA);
  assert_true (sim_array_stop (sa));
  restore (sa, old, 0, &c, true);
  sim_disk_set_bad (sa->disk[bad], sa->l.data_off, BLOCK_LEN);
  open_again (sa, ~0, true);
  assert_int_equal (sim_array_read (sa, back, 4096,
                                    layout_address (&sa->g, 0, 0, 0)), EIO);
  end_degraded (sa);
}

/* Likewise, and the row was not written as a whole: by the generations it could
 * also be the entry of the block that can't be read which is old.
 */
static void
test_decoded_from_an_old_delta (void **state)
{
  struct sim_array *sa = start_with_sums (2, 1);
  const unsigned old = slot_of (sa, 0, 1), bad = slot_of (sa, 0, 0);
  struct copy c;

  open_again (sa, ~0, true);
  keep (sa, old, 0, &c);
  put (sa, layout_address (&sa->g, 0, 1, 0), 4096, ARRAY_FUA);
  assert_true (sim_array_stop (sa));
  restore (sa, old, 0, &c, true);
  sim_disk_set_bad (sa->disk[bad], sa->l.data_off, BLOCK_LEN);
  open_again (sa, ~0, true);
  assert_int_equal (sim_array_read (sa, back, 4096,
                                    layout_address (&sa->g, 0, 0, 0)), EIO);
  end_degraded (sa);
}

/* One parity block is old together with its entry, and the data that was
 * written with the other one is gone: the younger parity is the row's.
 */
static void
test_decoded_with_old_parity (void **state)
{
  struct sim_array *sa = start_with_sums (2, 2);
  const unsigned gone = slot_of (sa, 0, 0);

  for (unsigned role = 2; role < 4; role++) {
    const unsigned old = slot_of (sa, 0, role);
    struct copy c;

    open_again (sa, ~0, true);
    keep (sa, old, 0, &c);
    put (sa, layout_address (&sa->g, 0, 0, 0), 4096, ARRAY_FUA);
    assert_true (sim_array_stop (sa));
    restore (sa, old, 0, &c, true);
    open_again (sa, ~BIT (gone), false);
    check_all (sa);
    /* Ages count from here, also where nothing is written. */
    assert_true (sa->a->newest_seq > 0);
    open_again (sa, ~0, true);
    assert_true (sim_array_settle (sa, 600 * SECOND));
    /* Wrong parity is repaired. */
    put (sa, layout_address (&sa->g, 0, 0, 0), CHUNK, ARRAY_FUA);
  }
  end_whole (sa);
}

int
main (void)
{
#define TEST(name) cmocka_unit_test_teardown (name, scrub_usual_limits)
  const struct CMUnitTest tests[] = {
    TEST (test_write_waits_for_its_page),
    TEST (test_read_waits_for_a_page),
    TEST (test_checksum_of_a_copied_block),
    TEST (test_decoded_from_an_old_block),
    TEST (test_decoded_from_an_old_delta),
    TEST (test_decoded_with_old_parity),
  };

  return cmocka_run_group_tests (tests, NULL, free_data);
}
