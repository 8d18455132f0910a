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

/* ---- till then it is no spare for others --------------------------------- */

static struct seat *
spare_of (const struct sim_array *sa)
{
  for (unsigned i = 0; i < sa->a->nr_seats; i++)
    if (sa->a->seat[i]->state == SEAT_SPARE)
      return sa->a->seat[i];
  return NULL;
}

/* Until its table is being zeroed, which takes as long as this. */
static struct sim_request *
prepare (struct sim_array *sa, unsigned disk, uint64_t ns)
{
  struct sim_request *q = calloc (1, sizeof *q);
  struct sim_disk *d = sa->disk[disk];
  const uint64_t min = d->min_delay_ns, max = d->max_delay_ns;
  const unsigned nr = d->nr_ios[IO_ZERO];

  sim_command_init (q, sa, COMMAND_WIDEN);
  q->r.command.uuid = spare_of (sa)->uuid;
  q->done = ignore_end;
  d->min_delay_ns = d->max_delay_ns = ns;
  sim_request_start (q);
  while (d->nr_ios[IO_ZERO] == nr)
    assert_true (sim_step (sa->sim));
  d->min_delay_ns = min;
  d->max_delay_ns = max;
  return q;
}

/* A slot is lost meanwhile: the widening is refused, and the spare takes the
 * slot when what it got before is there.
 */
static void
test_slot_lost (void **state)
{
  struct sim_array *sa = start_widening (3, 1);
  const unsigned disk = sim_array_add_disk (sa);
  struct sim_request *q;
  struct seat *s;

  assert_int_equal (sim_array_spare (sa, disk), 0);
  s = spare_of (sa);
  q = prepare (sa, disk, 8 * SECOND);
  assert_int_equal (sim_array_fail (sa, 0), 0);
  sim_array_pause (sa, SECOND);
  assert_int_equal (q->state, SIM_IDLE);
  assert_int_equal (q->r.error, EINVAL);
  assert_int_equal (s->state, SEAT_SPARE);
  assert_int_equal (s->slot, SLOT_NONE);
  assert_true (sim_array_settle (sa, 600 * SECOND));
  assert_int_equal (s->state, SEAT_ACTIVE);
  assert_int_equal (s->slot, 0);
  open_again (sa, ~(BIT (0) | BIT (1)), false);
  check_all (sa);
  free (q);
  end_degraded (sa);
}

/* Likewise one more widening waits for that. */
static void
test_prepared_again (void **state)
{
  struct sim_array *sa = start_widening (3, 1);
  const unsigned disk = sim_array_add_disk (sa);
  struct sim_request *q, *again;
  bool full;

  assert_int_equal (sim_array_spare (sa, disk), 0);
  q = prepare (sa, disk, 8 * SECOND);
  assert_int_equal (sim_array_fail (sa, 0), 0);
  assert_int_equal (sim_array_readd (sa, 0, &full), 0);
  assert_int_equal (q->r.error, EINVAL);
  assert_true (sim_array_settle (sa, SECOND));
  assert_int_equal (sa->a->lost_slots, 0);
  again = calloc (1, sizeof *again);
  sim_command_init (again, sa, COMMAND_WIDEN);
  again->r.command.uuid = spare_of (sa)->uuid;
  again->done = ignore_end;
  sim_request_start (again);
  sim_array_pause (sa, SECOND);
  assert_int_equal (sa->a->g.k, 3);
  while (again->state != SIM_IDLE)
    assert_true (sim_step (sa->sim));
  assert_int_equal (again->r.error, 0);
  free (q);
  free (again);
  sim_array_note_shape (sa);
  move_all (sa);
  end_whole (sa);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_bitmap),
    cmocka_unit_test (test_bitmap_again),
  };

  const struct CMUnitTest of_sums[] = {
    cmocka_unit_test (test_slot_lost),
    cmocka_unit_test (test_prepared_again),
  };

  widen_limits ();
  return cmocka_run_group_tests_name ("journal, checksums", tests, setup_both,
                                      free_data) +
    cmocka_run_group_tests_name ("journal", tests, setup_journal, free_data) +
    cmocka_run_group_tests (of_sums, setup_both, free_data);
}
