/* gpuraid: pages of the checksum table that can't be read, are rubbish, or were
 * torn, on some members.
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

/* Both places of the page of a row, on these members. */
static void
set_bad_pages (struct sim_array *sa, uint64_t row, uint64_t slots)
{
  FOR_EACH_BIT (slot, slots)
    for (unsigned i = 0; i < 2; i++)
      sim_disk_set_bad (sa->disk[slot], page_off (sa, row, i),
                        TABLE_PAGE_LEN);
}

static uint64_t always_bad;     /* slots */

static void
set_bad_again (void *opaque, struct sim_disk *d, enum io_kind kind,
               const uint8_t *bytes, uint64_t len, uint64_t off)
{
  set_bad_pages (opaque, 0, always_bad);
}

/* The page of row 0 stays so when it is written, until clear_bad. */
static void
set_always_bad (struct sim_array *sa, uint64_t slots)
{
  always_bad = slots;
  set_bad_pages (sa, 0, slots);
  sim_watch (sa->sim, set_bad_again, sa);
}

static void
clear_bad (struct sim_array *sa)
{
  sim_watch (sa->sim, NULL, NULL);
  for (unsigned i = 0; i < sa->nr_disks; i++)
    memset (sa->disk[i]->bad, 0, sa->disk_size / SIM_BLOCK);
}

/* No member's page can be read, longer than a write waits.  Other rows of the
 * page don't become zeroes, as if they had never been written.
 */
static void
test_unreadable_page_is_not_new (void **state)
{
  struct sim_array *sa = start_with_sums (2, 1);

  open_again (sa, ~0, true);
  set_bad_pages (sa, 0, 7);
  put (sa, 0, 2 * CHUNK, ARRAY_FUA);
  clear_bad (sa);
  check_range (sa, 0, 2 * CHUNK);
  assert_int_equal (sim_array_read (sa, back, 4096, 2 * CHUNK), EIO);
  open_again (sa, ~0, true);
  check_range (sa, 0, 2 * CHUNK);
  assert_int_equal (sim_array_read (sa, back, 4096, 2 * CHUNK), EIO);
  end_degraded (sa);
}

/* A page of one member can't be read.  That is one bad block, however often it
 * is needed: the member stays.  A write heals it.
 */
static void
test_unreadable_page_counts_once (void **state)
{
  struct sim_array *sa;

  sim_consistency = CONSISTENCY_JOURNAL;
  sim_checksum = CHECKSUM_CRC32C;
  sa = start_full (2, 1, CHUNK, 16);
  open_again (sa, ~0, true);
  set_bad_pages (sa, 0, 1);
  for (unsigned i = 0; i < 60; i++)
    check_range (sa, i % 20 * BLOCK_LEN, BLOCK_LEN);
  assert_int_equal (sa->a->lost_slots, 0);
  assert_int_equal (sa->a->seat[0]->read_errors, 1);
  put (sa, 0, 2 * CHUNK, ARRAY_FUA);
  open_again (sa, ~0, true);
  check_all (sa);
  assert_int_equal (sa->a->seat[0]->read_errors, 0);
  end_whole (sa);
}

/* A member is taken again, and missed nothing in the rows of a page of its
 * table, which can't be read for a moment.  It is not stored without its
 * entries.
 */
static void
test_page_of_a_target_is_unreadable (void **state)
{
  struct sim_array *sa;
  bool full;

  limits.region_min_len = CHUNK;
  limits.ahead_regions = 0;
  sa = start_with_sums (2, 1);
  open_again (sa, ~0, true);
  assert_int_equal (sim_array_fail (sa, 0), 0);
  put (sa, 0, 4096, ARRAY_FUA);
  open_again (sa, ~0, true);
  set_bad_pages (sa, NR_ROWS - 1, 1);
  assert_int_equal (sim_array_readd (sa, 0, &full), 0);
  assert_false (full);
  while (sa->a->at[0][1]->read_errors < 1)
    assert_true (sim_step (sa->sim));
  clear_bad (sa);
  assert_true (sim_array_settle (sa, 60 * SECOND));
  assert_int_equal (sa->a->irregular_slots, 0);
  open_again (sa, ~0, true);
  assert_int_equal (sim_array_fail (sa, 1), 0);
  assert_true (sim_array_settle (sa, 60 * SECOND));
  check_all (sa);
  end_degraded (sa);
}

/* A page was never written, as the others prove, and can't be read on the
 * member that is replaced: the new member gets none.  Else that one would be
 * the only one with the page, and the others would seem to have lost theirs.
 */
static void
test_unreadable_page_never_written (void **state)
{
  for (unsigned slot = 0; slot < 3; slot++) {
    struct sim_array *sa;
    unsigned no;

    sim_consistency = CONSISTENCY_JOURNAL;
    sim_checksum = CHECKSUM_CRC32C;
    limits.table_page_entries = 24;
    limits.tick_ns = 20000000;
    sa = start_empty (2, 1, CHUNK, NR_STRIPES);
    put (sa, sa->g.size - 4096, 4096, ARRAY_FUA);
    open_again (sa, ~0, true);
    set_always_bad (sa, BIT (slot));
    no = sim_array_add_disk (sa);
    assert_int_equal (sim_array_replace (sa, slot, no), 0);
    assert_true (sim_array_settle (sa, 600 * SECOND));
    clear_bad (sa);
    open_again (sa, ~0, true);
    check_all (sa);
    check_clean (scrub (sa, false));
    assert_int_equal (sa->a->counters.corrupt_table_pages, 0);
    end_whole (sa);
  }
}

/* A page became zeroes on one member, another member's can't be read for a
 * moment, and the third is away: that proves nothing.  Its rows are no zeroes,
 * then or when the third is back.
 */
static void
test_blank_page_without_proof (void **state)
{
  static const uint8_t zeroes[TABLE_PAGE_LEN];
  struct sim_array *sa = start_with_sums (2, 1);
  const unsigned away = slot_of (sa, 0, 0), blank = slot_of (sa, 0, 1);
  bool full;

  open_again (sa, ~0, true);
  assert_int_equal (sim_array_fail (sa, away), 0);
  assert_true (sim_array_stop (sa));
  for (unsigned i = 0; i < 2; i++)
    put_bytes (sa, blank, page_off (sa, 0, i), zeroes, sizeof zeroes);
  set_bad_pages (sa, 0, BIT (slot_of (sa, 0, 2)));
  open_again (sa, ~0, true);
  assert_int_equal (sim_array_read (sa, back, CHUNK, CHUNK), EIO);
  clear_bad (sa);
  assert_int_equal (sim_array_readd (sa, away, &full), 0);
  assert_true (sim_array_settle (sa, 60 * SECOND));
  check_all (sa);
  open_again (sa, ~0, true);
  check_all (sa);
  end_whole (sa);
}

/* The first write to a page, while a member's can't be read for a moment: its
 * record too says that it is the first.  So after a crash in the store of the
 * page all other rows are zeroes, also without the other member that has a
 * record.
 */
static void
test_first_write_to_an_unreadable_page (void **state)
{
  static const uint8_t torn[TABLE_PAGE_LEN] = { 0x5a };
  struct sim_array *sa;
  unsigned other, bad;

  sim_consistency = CONSISTENCY_JOURNAL;
  sim_checksum = CHECKSUM_CRC32C;
  limits.table_page_entries = 24;
  limits.tick_ns = 20000000;
  sa = start_empty (2, 1, CHUNK, NR_STRIPES);
  other = slot_of (sa, 0, 0);
  bad = slot_of (sa, 0, 2);
  set_always_bad (sa, BIT (bad));
  put (sa, 0, 4096, ARRAY_FUA);
  assert_int_equal (sa->a->counters.table_bytes, 0);
  crash_array (sa);
  clear_bad (sa);
  put_bytes (sa, bad, page_off (sa, 0, 0), torn, sizeof torn);
  for (unsigned i = 0; i < 2; i++) {
    open_again (sa, 7 & ~BIT (other), true);
    check_all (sa);
    assert_int_equal (sa->a->counters.corrupt_table_pages, 0);
  }
  end_degraded (sa);
}

/* A page that was never written is rubbish on one member, as the others prove.
 * Once too few of them are there nothing would tell it from one that is
 * damaged, and its rows would be lost: so it is made zeroes while they are.
 */
static void
test_rubbish_in_a_page_never_written (void **state)
{
  static const uint8_t rubbish[TABLE_PAGE_LEN] = { 0x3c },
    zeroes[TABLE_PAGE_LEN];

  for (unsigned known = 0; known < 2; known++) {
    struct sim_array *sa;
    unsigned bad;

    sim_consistency = CONSISTENCY_JOURNAL;
    sim_checksum = CHECKSUM_CRC32C;
    limits.table_page_entries = 24;
    sa = start_empty (2, 1, CHUNK, NR_STRIPES);
    bad = slot_of (sa, 0, 2);
    open_again (sa, ~0, true);
    if (known)
      check_all (sa);
    put_bytes (sa, bad, page_off (sa, 0, 0), rubbish, sizeof rubbish);
    (void) scrub (sa, false);
    assert_int_equal (sa->a->counters.corrupt_table_pages, 1);
    assert_true (sim_array_settle (sa, 60 * SECOND));
    (void) scrub (sa, false);
    assert_int_equal (sa->a->counters.corrupt_table_pages, 1);
    for (unsigned i = 0; i < 2; i++)
      assert_memory_equal (sa->disk[bad]->visible + page_off (sa, 0, i),
                           zeroes, sizeof zeroes);
    open_again (sa, 7 & ~BIT (slot_of (sa, 0, 0)), true);
    check_all (sa);
    end_degraded (sa);
  }
}

/* One place of a page has a bad block on one member.  Whether the page was
 * never written, or was: a scrub has the place written again.  Then the rows
 * can be read without a second member, too.
 */
static void
test_bad_block_in_a_page (void **state)
{
  for (unsigned i = 0; i < 8; i++) {
    const bool known = i & 1, born = i & 2;
    struct sim_array *sa;
    unsigned bad;
    uint64_t off;

    sim_consistency = CONSISTENCY_JOURNAL;
    sim_checksum = CHECKSUM_CRC32C;
    limits.table_page_entries = 24;
    limits.tick_ns = 20000000;
    sa = start_empty (2, 1, CHUNK, NR_STRIPES);
    bad = slot_of (sa, 0, 2);
    if (born)
      put (sa, 0, CHUNK, ARRAY_FUA);
    open_again (sa, ~0, true);
    if (known)
      check_all (sa);
    off = page_off (sa, 0, i >> 2);
    sim_disk_set_bad (sa->disk[bad], off, TABLE_PAGE_LEN);
    (void) scrub (sa, true);
    open_again (sa, 7 & ~BIT (slot_of (sa, 0, 0)), true);
    assert_false (sa->disk[bad]->bad[off / SIM_BLOCK]);
    check_all (sa);
    end_degraded (sa);
  }
}

/* A page of no entries, as the slots have it of which the first write to it
 * changes no block.
 */
static void
put_page (struct sim_array *sa, unsigned disk, unsigned slot, unsigned place)
{
  static struct table_page page;
  uint8_t buf[TABLE_PAGE_LEN];

  memset (&page, 0, sizeof page);
  page.counter = table_next_counter (0, 1);
  if (table_counter_place (page.counter) != place)
    page.counter = table_next_counter (page.counter, 1);
  table_page_encode (&page, &sa->uuid, slot, buf);
  put_bytes (sa, disk, page_off (sa, 0, place), buf, sizeof buf);
}

/* The first write to a page is of two slots.  It crashes when the third slot's
 * member has the page, and the one that replaces it has it in one place, and
 * the other place is torn.  The recovery must store it there too: later nothing
 * says any more that the one place is right.
 */
static void
test_page_of_a_target_is_whole (void **state)
{
  static const uint8_t torn[TABLE_PAGE_LEN] = { 0x77 };
  struct sim_array *sa;
  unsigned other, no;

  sim_consistency = CONSISTENCY_JOURNAL;
  sim_checksum = CHECKSUM_CRC32C;
  limits.table_page_entries = 24;
  sa = start_empty (2, 1, CHUNK, 64);
  other = slot_of (sa, 0, 1);
  assert_true (sim_array_stop (sa));
  sa->window_len = CHUNK;
  sa->save_ns = 1;
  open_again (sa, ~0, true);
  put (sa, sa->g.size / 2, sa->g.size / 2, ARRAY_FUA);
  no = sim_array_add_disk (sa);
  assert_int_equal (sim_array_replace (sa, other, no), 0);
  while (sa->a->at[other][1]->cursor < 40 * CHUNK)
    assert_true (sim_step (sa->sim));
  wait_for_save (sa);
  put (sa, 0, 4096, ARRAY_FUA);
  crash_array (sa);

  put_page (sa, other, other, 0);
  put_page (sa, other, other, 1);
  put_page (sa, no, other, 1);
  put_bytes (sa, no, page_off (sa, 0, 0), torn, sizeof torn);
  open_again (sa, ~0, true);
  assert_non_null (sa->a->at[other][1]);
  assert_true (sa->a->at[other][1]->cursor > 0);
  assert_true (sim_array_settle (sa, 600 * SECOND));
  assert_int_equal (sim_array_fail (sa, slot_of (sa, 0, 0)), 0);
  assert_true (sim_array_settle (sa, 60 * SECOND));
  open_again (sa, ~0, true);
  check_all (sa);
  assert_int_equal (sa->a->counters.corrupt_table_pages, 0);
  end_degraded (sa);
}

static void
get_pages (struct sim_array *sa, unsigned disk,
           uint8_t page[2][TABLE_PAGE_LEN])
{
  for (unsigned place = 0; place < 2; place++)
    memcpy (page[place], sa->disk[disk]->image + page_off (sa, 0, place),
            TABLE_PAGE_LEN);
}

/* A lost slot is being rebuilt.  A row was written directly, and of the pages
 * with its entries only that of the target was stored.  So the write met R1:
 * where one of its blocks is bad it is lost, not zeroes.
 */
static void
test_page_of_a_target_proves (void **state)
{
  struct sim_array *sa;
  unsigned other, no;
  uint8_t page[2][TABLE_PAGE_LEN], before[2][TABLE_PAGE_LEN];

  sim_consistency = CONSISTENCY_JOURNAL;
  sim_checksum = CHECKSUM_CRC32C;
  limits.table_page_entries = 24;
  sa = start_empty (2, 1, CHUNK, 64);
  other = slot_of (sa, 0, 2);
  assert_true (sim_array_stop (sa));
  sa->window_len = CHUNK;
  sa->save_ns = 1;
  open_again (sa, ~0, true);
  put (sa, sa->g.size / 2, sa->g.size / 2, ARRAY_FUA);
  assert_int_equal (sim_array_fail (sa, other), 0);
  no = sim_array_add_disk (sa);
  assert_int_equal (sim_array_replace (sa, other, no), 0);
  while (sa->a->at[other][1]->cursor < 40 * CHUNK)
    assert_true (sim_step (sa->sim));
  wait_for_save (sa);
  get_pages (sa, no, before);
  put (sa, 0, 2 * CHUNK, ARRAY_FUA);
  do {
    assert_true (sim_step (sa->sim));
    get_pages (sa, no, page);
  } while (memcmp (page, before, sizeof page) == 0);
  crash_array (sa);

  for (unsigned place = 0; place < 2; place++)
    put_bytes (sa, no, page_off (sa, 0, place), page[place], TABLE_PAGE_LEN);
  for (unsigned slot = 0; slot < 3; slot++)
    for (unsigned place = 0; place < 2 && slot != other; place++)
      put_page (sa, slot, slot, place);
  sim_disk_set_bad (sa->disk[slot_of (sa, 0, 0)], sa->l.data_off, BLOCK_LEN);
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  assert_non_null (strstr (sa->said, "lacks the content of 1 rows"));
  assert_int_equal (sim_array_read (sa, back, 4096, 0), EIO);
  check_range (sa, 4096, 2 * CHUNK - 4096);
  end_degraded (sa);
}

/* That of the first rows, which nothing uses now. */
static struct sums_page *
first_page (struct sim_array *sa)
{
  list_for_each (l, &sa->a->sums->unused) {
    struct sums_page *p = list_item (l, struct sums_page, link);

    if (p->no == 0)
      return p;
  }
  fail_msg ("the page is not there, or in use");
  return NULL;
}

/* A crash tore a place of a page, as the journal explained: it is to be stored
 * again, which waits for a flush, as it was stored since the last one.  A scrub
 * that looks at it meanwhile does not count it as damaged, and finds both
 * places right afterwards.
 */
static void
test_scrub_of_a_torn_page (void **state)
{
  static const uint8_t torn[BLOCK_LEN / 8] = { 0x3c };
  struct sim_array *sa = start_with_sums (2, 1);
  struct sums_page *p;
  unsigned slot, place;

  open_again (sa, ~0, true);
  check_all (sa);
  slot = slot_of (sa, 0, 0);
  p = first_page (sa);
  place = !table_counter_place (p->counter[slot]);
  put_bytes (sa, slot, page_off (sa, 0, place), torn, sizeof torn);
  for (unsigned i = 0; i < sa->nr_disks; i++)
    sa->disk[i]->min_delay_ns = sa->disk[i]->max_delay_ns = SECOND;
  engine_lock (sa->a);
  p->stored_gen = sa->a->flush_gen + 1;
  sums_add_doubtful (sa->a, p, slot);
  engine_unlock (sa->a);
  assert_true (p->dirty >> slot & 1 && !p->is_storing);

  check_clean (scrub (sa, false));
  assert_int_equal (sa->a->counters.corrupt_table_pages, 0);
  assert_true (sim_array_pause (sa, 10 * SECOND));
  check_clean (scrub (sa, false));
  assert_int_equal (sa->a->counters.corrupt_table_pages, 0);
  end_whole (sa);
}

int
main (void)
{
#define TEST(name) cmocka_unit_test_teardown (name, scrub_usual_limits)
  const struct CMUnitTest tests[] = {
    TEST (test_unreadable_page_is_not_new),
    TEST (test_unreadable_page_counts_once),
    TEST (test_page_of_a_target_is_unreadable),
    TEST (test_unreadable_page_never_written),
    TEST (test_blank_page_without_proof),
    TEST (test_first_write_to_an_unreadable_page),
    TEST (test_rubbish_in_a_page_never_written),
    TEST (test_bad_block_in_a_page),
    TEST (test_page_of_a_target_is_whole),
    TEST (test_page_of_a_target_proves),
    TEST (test_scrub_of_a_torn_page),
  };

  return cmocka_run_group_tests (tests, NULL, free_data);
}
