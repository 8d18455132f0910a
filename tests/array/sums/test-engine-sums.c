/* gpuraid: checksums without a journal: in a region that a crash left open the
 * table is no evidence, in all others it is, in either place of a page.
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

#include "array/dirty/dirty.h"
#include "common/bits.h"
#include "common/bytes/crc32c.h"
#include "tests/array/scrub/scrub-array.h"

static struct sim_array *
start (void)
{
  sim_consistency = CONSISTENCY_NONE;
  sim_checksum = CHECKSUM_CRC32C;
  limits.table_page_entries = 24;
  limits.region_min_len = 2 * CHUNK;
  return start_full (3, 2, CHUNK, NR_STRIPES);
}

/* Likewise, but nothing was written. */
static struct sim_array *
start_new (uint64_t nr_stripes)
{
  const struct geometry g = { .k = 3, .m = 2, .chunk = CHUNK };
  struct sim_array *sa;

  sim_consistency = CONSISTENCY_NONE;
  sim_checksum = CHECKSUM_CRC32C;
  limits.table_page_entries = 24;
  limits.region_min_len = 2 * CHUNK;
  sa = sim_array_new (1, &g, nr_stripes, 0);
  free_data (NULL);
  data = calloc (1, sa->g.size);
  back = malloc (sa->g.size);
  assert_non_null (data);
  assert_non_null (back);
  sim_array_create (sa);
  open_again (sa, ~0, true);
  return sa;
}


/* No region is open any more, as far as the members know. */
static void
wait_until_closed (struct sim_array *sa)
{
  while (sa->a->any_open || sa->a->page[0]->writing || sa->a->page[0]->queued)
    assert_true (sim_array_pause (sa, SECOND));
}

static uint64_t
nr_wrong (const struct sim_array *sa)
{
  return sa->a->counters.corrupt_found + sa->a->counters.corrupt_table_pages;
}

/* The write is durable, but not its checksums.  Reads are right, whether it is
 * opened for writing or not, and the resync makes checksums that fit.
 */
static void
test_open_region_is_not_believed (void **state)
{
  struct sim_array *sa = start ();

  wait_until_closed (sa);
  put (sa, 0, 4096, ARRAY_FUA);
  put (sa, 7 * CHUNK, 3 * CHUNK, ARRAY_FUA);
  crash_array (sa);

  open_again (sa, ~0, false);
  assert_true (sa->a->nr_unsynced > 0);
  check_all (sa);
  assert_int_equal (nr_wrong (sa), 0);

  open_again (sa, ~0, true);
  put (sa, 8192, 4096, 0);
  check_all (sa);
  assert_true (sim_array_settle (sa, 60 * SECOND));
  assert_int_equal (sa->a->nr_unsynced, 0);
  open_again (sa, ~0, true);
  check_all (sa);
  assert_int_equal (nr_wrong (sa), 0);
  check_clean (scrub (sa, false));
  end_whole (sa);
}

/* A page that lost one of its places is right about regions that are not open:
 * with the other place bit rot is found.
 */
static void
test_closed_region_is_in_both_places (void **state)
{
  for (unsigned place = 0; place < 2; place++) {
    static const uint8_t bad[TABLE_PAGE_LEN] = { 0x5a };
    struct sim_array *sa = start ();

    wait_until_closed (sa);
    put (sa, 0, sa->g.size, ARRAY_FUA);
    wait_until_closed (sa);
    crash_array (sa);
    for (unsigned slot = 0; slot < 5; slot++)
      put_bytes (sa, slot, page_off (sa, 0, place), bad, sizeof bad);
    flip (sa, 1, 2, 77);
    open_again (sa, ~0, true);
    assert_int_equal (sa->a->nr_unsynced, 0);
    check_all (sa);
    assert_int_equal (sa->a->counters.corrupt_table_pages, 0);
    assert_true (scrub (sa, true).lost_rows == 0);
    assert_true (sa->a->counters.corrupt_found > 0);
    assert_int_equal (sa->a->counters.corrupt_repaired,
                      sa->a->counters.corrupt_found);
    check_clean (scrub (sa, false));
    end_whole (sa);
  }
}

/* What was never written or trimmed is zeroes on a new member too: after a
 * crash its blocks count as they are.
 */
static void
test_target_has_zeroes (void **state)
{
  struct sim_array *sa = start ();
  const uint64_t stripe_len = 3 * CHUNK;

  assert_int_equal (sim_array_zero (sa, 4 * stripe_len, 2 * stripe_len,
                                    ARRAY_TRIM), 0);
  memset (data + 2 * stripe_len, 0, 4 * stripe_len);
  assert_int_equal (sim_array_replace (sa, 2, sim_array_add_disk (sa)), 0);
  assert_true (sim_array_settle (sa, 60 * SECOND));
  wait_until_closed (sa);
  put (sa, 2 * stripe_len, 4096, ARRAY_FUA);
  crash_array (sa);
  open_again (sa, ~0, true);
  check_all (sa);
  assert_true (sim_array_settle (sa, 60 * SECOND));
  assert_int_equal (nr_wrong (sa), 0);
  end_whole (sa);
}

/* The first row of a page is written, a rebuild stores the page on its target,
 * and it crashes before the others store it.  The block is zeroes, so the
 * resync stores nothing either.  The rebuild goes on from before the page.  It
 * must not leave the page on the target: the others would seem to have lost
 * theirs.
 */
static void
test_target_has_no_page_alone (void **state)
{
  const uint64_t page_len = 24 * BLOCK_LEN;
  struct sim_array *sa = start_new (48);
  const uint64_t off = 2 * page_len * 3;        /* page 2 begins there */
  unsigned no;

  assert_true (sa->l.region_len == 2 * CHUNK);
  assert_true (off % (3 * CHUNK) == 0);
  sa->window_len = 2 * CHUNK;
  sa->save_ns = 1;
  open_again (sa, ~0, true);
  put (sa, 0, CHUNK, ARRAY_FUA);
  wait_until_closed (sa);
  assert_int_equal (sim_array_write (sa, data + off, BLOCK_LEN, off,
                                     ARRAY_FUA), 0);
  no = sim_array_add_disk (sa);
  assert_int_equal (sim_array_replace (sa, 2, no), 0);
  while (sa->a->at[2][1]->cursor < 3 * page_len)
    assert_true (sim_step (sa->sim));
  crash_array (sa);

  open_again (sa, ~0, true);
  assert_true (sa->a->at[2][1]->cursor > 0);
  assert_true (sa->a->at[2][1]->cursor <= 2 * page_len);
  assert_true (sim_array_settle (sa, 600 * SECOND));
  open_again (sa, ~0, true);
  assert_ptr_equal (sim_array_disk_at (sa, 2), sa->disk[no]);
  check_all (sa);
  assert_int_equal (nr_wrong (sa), 0);
  check_clean (scrub (sa, false));
  end_whole (sa);
}

/* Likewise where the page begins below the first row that a crash left open,
 * and has nothing else.  A scrub that follows, or the next opening, sees it.
 */
static void
target_has_no_part_of_a_page_alone (bool again)
{
  const uint64_t page_len = 24 * BLOCK_LEN;
  struct sim_array *sa = start_new (48);
  const uint64_t row = 2 * page_len + sa->l.region_len;
  unsigned no;

  assert_true (row % sa->l.region_len == 0 && row < 3 * page_len);
  sa->window_len = 2 * CHUNK;
  sa->save_ns = 1;
  open_again (sa, ~0, true);
  put (sa, 3 * page_len * 3, 4 * page_len * 3, ARRAY_FUA);
  wait_until_closed (sa);
  memset (data + row * 3, 0, BLOCK_LEN);
  assert_int_equal (sim_array_write (sa, data + row * 3, BLOCK_LEN, row * 3,
                                     ARRAY_FUA), 0);
  no = sim_array_add_disk (sa);
  assert_int_equal (sim_array_replace (sa, 2, no), 0);
  while (sa->a->at[2][1]->cursor < 6 * page_len)
    assert_true (sim_step (sa->sim));
  crash_array (sa);

  open_again (sa, ~0, true);
  assert_int_equal (sa->a->at[2][1]->cursor, 2 * page_len);
  assert_true (sim_array_settle (sa, 600 * SECOND));
  assert_ptr_equal (sim_array_disk_at (sa, 2), sa->disk[no]);
  if (again)
    open_again (sa, ~0, true);
  check_all (sa);
  check_clean (scrub (sa, false));
  assert_int_equal (nr_wrong (sa), 0);
  end_whole (sa);
}

static void
test_target_has_no_part_of_a_page_alone (void **state)
{
  target_has_no_part_of_a_page_alone (false);
}

static void
test_next_opening_has_no_part_of_a_page_alone (void **state)
{
  target_has_no_part_of_a_page_alone (true);
}

/* A page as a member stores it when its first row is written, of zeroes. */
static void
put_first_page (struct sim_array *sa, unsigned slot, uint64_t page_no)
{
  static const uint8_t zeroes[BLOCK_LEN];
  static struct table_page page;
  uint8_t buf[TABLE_PAGE_LEN];

  memset (&page, 0, sizeof page);
  page.page_no = page_no;
  page.counter = table_next_counter (0, 1);
  page.entry[0].sum = table_sum (crc32c (zeroes, BLOCK_LEN),
                                 table_seed (&sa->uuid, slot),
                                 page_no * limits.table_page_entries);
  page.entry[0].generation = 1;
  table_page_encode (&page, &sa->uuid, slot, buf);
  put_bytes (sa, slot, table_page_off
             (&sa->l, page_no, table_counter_place (page.counter)), buf,
             sizeof buf);
}

/* As disks, which can't say where they have holes. */
static int
no_extent (struct member *m, uint64_t off, uint64_t len, bool *hole,
           uint64_t *end)
{
  return EOPNOTSUPP;
}

static void
hide_holes (struct sim_array *sa)
{
  static struct member_ops ops;

  ops = *sa->a->at[0][0]->m->ops;
  ops.extent = no_extent;
  for (unsigned i = 0; i < sa->a->nr_seats; i++)
    if (sa->a->seat[i]->m)
      sa->a->seat[i]->m->ops = &ops;
}

/* Likewise, and the member on which it was stored is not there until the array
 * was resynced without it.
 */
static void
returning_member_has_a_page_alone (bool beside_new)
{
  const uint64_t page_len = 24 * BLOCK_LEN;
  struct sim_array *sa = start_new (48);
  const uint64_t off = 2 * page_len * 3;
  unsigned slot, other;

  sa->window_len = 2 * CHUNK;
  open_again (sa, ~0, true);
  put (sa, 0, CHUNK, ARRAY_FUA);
  wait_until_closed (sa);
  assert_int_equal (sim_array_write (sa, data + off, BLOCK_LEN, off,
                                     ARRAY_FUA), 0);
  crash_array (sa);
  slot = slot_of (sa, 2 * 24, 0);
  other = slot == 2 ? 3 : 2;
  put_first_page (sa, slot, 2);

  assert_int_equal (sim_array_open (sa, ~BIT (slot), DEGRADED_FORCE, false),
                    0);
  assert_int_equal (sim_array_writable (sa), 0);
  assert_true (sim_array_settle (sa, 60 * SECOND));
  wait_until_closed (sa);
  open_again (sa, ~(beside_new ? BIT (other) : 0), false);
  hide_holes (sa);
  assert_int_equal (sim_array_writable (sa), 0);
  if (beside_new)
    assert_int_equal (sim_array_replace (sa, other, sim_array_add_disk (sa)),
                      0);
  assert_true (sim_array_settle (sa, 600 * SECOND));
  assert_int_equal (sa->a->lost_slots, 0);
  assert_int_equal (sa->a->counters.corrupt_table_pages, 0);
  check_all (sa);
  assert_int_equal (nr_wrong (sa), 0);
  check_clean (scrub (sa, false));
  open_again (sa, ~0, true);
  check_all (sa);
  assert_int_equal (nr_wrong (sa), 0);
  end_whole (sa);
}

static void
test_returning_member_has_a_page_alone (void **state)
{
  returning_member_has_a_page_alone (false);
}

/* The page of a new member, which is empty, says nothing. */
static void
test_returning_member_beside_a_new_one (void **state)
{
  returning_member_has_a_page_alone (true);
}

int
main (void)
{
#define TEST(name) cmocka_unit_test_teardown (name, scrub_usual_limits)
  const struct CMUnitTest tests[] = {
    TEST (test_open_region_is_not_believed),
    TEST (test_closed_region_is_in_both_places),
    TEST (test_target_has_zeroes),
    TEST (test_target_has_no_page_alone),
    TEST (test_target_has_no_part_of_a_page_alone),
    TEST (test_next_opening_has_no_part_of_a_page_alone),
    TEST (test_returning_member_has_a_page_alone),
    TEST (test_returning_member_beside_a_new_one),
  };

  return cmocka_run_group_tests (tests, NULL, free_data);
}
