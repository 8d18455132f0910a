/* gpuraid: pages of the checksum table while an array gets one more data
 * member, which a power failure tears, or which rot.
 *
 * tests/model/reshape/widen_pages.c has the traces.
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

#include "array/reshape/internal.h"
#include "array/sums/internal.h"
#include "common/bits.h"
#include "raidmap/table.h"
#include "tests/array/reshape/widen-array.h"

#define PAGE_ROWS WIDEN_PAGE_ENTRIES
#define PAGE_CHUNKS (PAGE_ROWS * BLOCK_LEN / CHUNK)

static const uint8_t rubbish[TABLE_PAGE_LEN] = { 0x5a };

static uint64_t
off_of (const struct sim_array *sa, uint64_t page, unsigned place)
{
  return table_page_off (&sa->l, page, place);
}

static bool
get_page (const struct sim_array *sa, unsigned slot, uint64_t page,
          unsigned place, struct table_page *p)
{
  return table_page_decode (sa->disk[slot]->image + off_of (sa, page, place),
                            &sa->uuid, slot, page, p);
}

/* The place that was stored last; 2: it was never stored. */
static unsigned
newest_place (const struct sim_array *sa, unsigned slot, uint64_t page)
{
  static struct table_page p[2];
  const bool good[2] = { get_page (sa, slot, page, 0, &p[0]),
    get_page (sa, slot, page, 1, &p[1]) };

  if (!good[0] || !good[1])
    return good[0] ? 0 : good[1] ? 1 : 2;
  return p[1].counter > p[0].counter;
}

static void
spoil (struct sim_array *sa, unsigned slot, uint64_t page, unsigned place)
{
  sim_disk_poke (sa->disk[slot], rubbish, sizeof rubbish,
                 off_of (sa, page, place));
}

static void
open_crashed (struct sim_array *sa)
{
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  sa->a->reshape->not_before = UINT64_MAX;
}

/* The last chunk of a page was written for the first time, and is in place.
 * The record of the first window is in the journal; then the newest place of
 * the page rots on one member.  That record is the new member's first one of
 * the page: it does not say that nothing was written there before.
 */
static void
test_new_members_page (void **state)
{
  const uint64_t last = (PAGE_CHUNKS - 1) * CHUNK;

  for (unsigned slot = 0; slot < 2; slot++) {
    struct sim_array *sa = start_empty (1, 1, CHUNK, STRIPES);
    struct table_page older;
    unsigned place;

    put (sa, 0, last, ARRAY_FUA);
    open_again (sa, ~0, true);
    put (sa, last, CHUNK, ARRAY_FUA);
    open_again (sa, ~0, true);
    widen (sa);
    move_to_logged (sa);
    crash_array (sa);
    place = newest_place (sa, slot, 0);
    assert_true (get_page (sa, slot, 0, !place, &older));
    assert_int_equal (table_kind (older.entry[PAGE_ROWS - 1]), TABLE_ZERO);
    spoil (sa, slot, 0, place);
    open_crashed (sa);
    check_all (sa);
    end_degraded (sa);
  }
}

/* The power fails while the pages of a direct window are stored: on all
 * members one place is torn.  The window's records alone say that the other
 * one lacks nothing else; its rows are dropped.  When it crashes again these
 * records do not count any more.
 */
static void
test_torn_pages (void **state)
{
  struct sim_array *sa = start_widening (1, 1);

  widen (sa);
  while (sa->a->reshape->window.kind != RESHAPE_DIRECT ||
         sa->a->reshape->phase != WINDOW_PLACED)
    assert_true (sim_step (sa->sim));
  assert_int_equal (sa->a->reshape->window.first / PAGE_ROWS, 0);
  crash_array (sa);
  for (unsigned slot = 0; slot < 3; slot++)
    spoil (sa, slot, 0, !newest_place (sa, slot, 0));
  for (unsigned i = 0; i < 3; i++) {
    open_crashed (sa);
    assert_int_equal (sim_array_writable (sa), 0);
    while (sa->a->recovery)
      assert_true (sim_step (sa->sim));
    if (i > 0)
      check_all (sa);
    crash_array (sa);
  }
  open_again (sa, ~0, true);
  move_all (sa);
  end_whole (sa);
}

/* A block of an old row was written, and its entry is older.  As it is what is
 * decoded, the entry is outdated.  That of the new member does not count: the
 * row has zeroes in its place.
 */
static void
test_outdated_entry (void **state)
{
  const unsigned stripe = 2;

  for (unsigned role = 0; role < 2; role++) {
    struct sim_array *sa = start_widening (2, 1);
    const uint64_t off = layout_address (&sa->g, stripe, role, 0);
    const unsigned slot = layout_slot (&sa->g, stripe, role);
    uint8_t before[2][TABLE_PAGE_LEN];

    sa->a->reshape->not_before = UINT64_MAX;
    widen (sa);
    open_again (sa, ~0, false);
    for (unsigned i = 0; i < 2; i++)
      memcpy (before[i], sa->disk[slot]->image + off_of (sa, 0, i),
              TABLE_PAGE_LEN);
    sa->a->reshape->not_before = UINT64_MAX;
    assert_int_equal (sim_array_writable (sa), 0);
    put (sa, off, BLOCK_LEN, ARRAY_FUA);
    assert_true (sim_array_stop (sa));
    for (unsigned i = 0; i < 2; i++)
      sim_disk_poke (sa->disk[slot], before[i], TABLE_PAGE_LEN,
                     off_of (sa, 0, i));
    open_again (sa, ~0, false);
    assert_int_equal (sa->a->g.frontier, 0);
    check_all (sa);
    assert_int_equal (sa->a->counters.corrupt_found, 1);
    assert_int_equal (sim_array_writable (sa), 0);
    move_all (sa);
    end_whole (sa);
  }
}

/* A page begins in the rows of a window that are in place already. */
static bool
is_placed_page (const struct array *a, uint64_t *no)
{
  *no = div_round_up (a->g.frontier, PAGE_ROWS);
  return a->reshape->phase == WINDOW_PLACED && a->g.frontier < a->moving.end &&
    *no > 0 && *no * PAGE_ROWS < a->moving.end;
}

/* In old rows. */
static uint64_t
end_of_page (uint64_t no)
{
  return (no * PAGE_CHUNKS + PAGE_CHUNKS - 1) * 3 * CHUNK;
}

/* It leaves the memory, and one place of the new member's rots before the
 * header says that its rows have moved.
 */
static void
test_page_comes_back (void **state)
{
  struct sim_array *sa = start_widening (3, 1);
  uint64_t no;

  widen (sa);
  sa->a->sums->max = 3;
  while (!is_placed_page (sa->a, &no))
    assert_true (sim_step (sa->sim));
  sa->disk[0]->min_delay_ns = sa->disk[0]->max_delay_ns = SECOND;
  for (uint64_t i = no + 1; i < no + 4; i++)
    assert_int_equal (sim_array_read (sa, back, BLOCK_LEN, end_of_page (i)), 0);
  spoil (sa, 4, no, 0);
  put (sa, end_of_page (no), BLOCK_LEN, ARRAY_FUA);
  sa->disk[0]->min_delay_ns = sa->disk[0]->max_delay_ns = SECOND / 1000;
  move_all (sa);
  check_all (sa);
  end_whole (sa);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_new_members_page),
    cmocka_unit_test (test_torn_pages),
    cmocka_unit_test (test_outdated_entry),
    cmocka_unit_test (test_page_comes_back),
  };

  widen_limits ();
  return cmocka_run_group_tests (tests, setup_both, free_data);
}
