/* gpuraid: the spare that becomes one more data member: what it has before the
 * record names it, and what it is till then.
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

#include "array/reshape/internal.h"
#include "common/bits.h"
#include "raidmap/bitmap.h"
#include "tests/array/reshape/widen-array.h"

/* Nothing moves. */
static void
stay (struct sim_array *sa)
{
  sa->a->reshape->not_before = UINT64_MAX;
}

static bool
has_page (const struct sim_array *sa, unsigned slot, uint64_t page,
          unsigned place)
{
  static struct bitmap_page p;

  return bitmap_page_decode (sa->disk[slot]->image +
                             bitmap_page_off (&sa->l, page, place), &sa->uuid,
                             slot, page, &p);
}

static void
has_all_pages (const struct sim_array *sa, unsigned slot)
{
  for (uint64_t page = 0; page < bitmap_nr_pages (&sa->l); page++)
    for (unsigned place = 0; place < 2; place++)
      assert_true (has_page (sa, slot, page, place));
}

/* It has all pages of the bitmap, in both places: one that is bad says that all
 * of its regions may differ.
 */
static void
test_bitmap (void **state)
{
  struct sim_array *sa = start_widening (3, 2);

  stay (sa);
  widen (sa);
  has_all_pages (sa, 5);
  put (sa, 0, 9 * CHUNK, 0);
  crash_array (sa);
  open_again (sa, ~BIT (0), true);
  assert_int_equal (sa->a->nr_unsynced, 0);
  end_degraded (sa);
}

/* What is left of a time before is written over. */
static void
test_bitmap_again (void **state)
{
  static const uint8_t rubbish[BITMAP_PAGE_LEN] = { 0x5a };

  for (unsigned place = 0; place < 2; place++) {
    struct sim_array *sa = start_widening (2, 1);

    stay (sa);
    widen (sa);
    assert_int_equal (sim_array_cancel_widen (sa), 0);
    sim_disk_poke (sa->disk[3], rubbish, sizeof rubbish,
                   bitmap_page_off (&sa->l, 0, place));
    crash_array (sa);
    open_again (sa, LOW_BITS (3), true);
    stay (sa);
    if (sim_array_widen (sa, 3) != 0)
      fail_msg ("not widened: %s", sa->said);
    has_all_pages (sa, 3);
    end_degraded (sa);
  }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_bitmap),
    cmocka_unit_test (test_bitmap_again),
  };

  widen_limits ();
  return cmocka_run_group_tests_name ("journal, checksums", tests, setup_both,
                                      free_data) +
    cmocka_run_group_tests_name ("journal", tests, setup_journal, free_data);
}
