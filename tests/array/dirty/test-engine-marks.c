/* gpuraid: the dirty bits on the members at any moment.
 *
 * With regions as short as a chunk, and as few in a page as needed.
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

#include "common/bits.h"
#include "raidmap/bitmap.h"
#include "tests/engine-array.h"

#define NR_STRIPES 24u

static struct sim_array *
start_small (unsigned k, unsigned m)
{
  limits.region_min_len = CHUNK;
  limits.page_regions = 8;
  limits.ahead_regions = 0;
  limits.tick_ns = 20000000;
  return start_full (k, m, CHUNK, NR_STRIPES);
}

static int
usual_limits (void **state)
{
  limits = default_limits;
  return 0;
}

/* A place of a page as it could be there after a crash. */
static bool
read_place (struct sim_array *sa, unsigned slot, uint64_t no, unsigned place,
            struct bitmap_page *p)
{
  const struct sim_disk *d = sim_array_disk_at (sa, slot);

  return d && bitmap_page_decode (d->image +
                                  bitmap_page_off (&sa->l, no, place),
                                  &sa->a->sb.array_uuid, slot, no, p);
}

static struct bitmap_page
read_page (struct sim_array *sa, unsigned slot, uint64_t no)
{
  struct bitmap_page p[2];
  const bool there[2] = { read_place (sa, slot, no, 0, &p[0]),
                          read_place (sa, slot, no, 1, &p[1]) };

  assert_true (there[0] || there[1]);
  return there[0] && (!there[1] || p[0].counter > p[1].counter) ? p[0] : p[1];
}

static void
ignore (struct sim_request *q)
{
}

static bool
is_open (struct sim_array *sa, unsigned slot, uint64_t region)
{
  const struct bitmap_page p =
    read_page (sa, slot, region / limits.page_regions);

  return p.open[0] >> region % limits.page_regions & 1;
}

/* ---- setting ------------------------------------------------------------- */

/* A range of stripes is zeroed: all its regions are marked first. */
static void
test_all_regions_of_a_range (void **state)
{
  struct sim_array *sa = start_small (2, 1);
  struct sim_request q;

  open_again (sa, ~0, true);
  sim_request_init (&q, sa, REQUEST_ZERO);
  q.r.off = 4 * 2 * CHUNK;
  q.r.len = 15 * 2 * CHUNK;
  memset (data + q.r.off, 0, q.r.len);
  q.done = ignore;
  count_from_here (sa);
  sim_request_start (&q);
  while (ios (sa, IO_ZERO) == 0)
    assert_true (sim_step (sa->sim));
  for (unsigned slot = 0; slot < 3; slot++)
    for (unsigned region = 0; region < NR_STRIPES; region++)
      assert_int_equal (is_open (sa, slot, region),
                        region >= 4 && region < 19);
  crash_array (sa);
  sim_array_free (sa);
}

/* The newest copy of a page is never written over. */
static void
test_pages_have_two_places (void **state)
{
  struct sim_array *sa = start_small (2, 1);
  struct bitmap_page p[2];

  for (unsigned stripe = 0; stripe < 7; stripe++) {
    put (sa, stripe * 2 * CHUNK, 4096, ARRAY_FUA);
    for (unsigned slot = 0; slot < 3; slot++) {
      assert_true (read_place (sa, slot, 0, 0, &p[0]));
      assert_true (read_place (sa, slot, 0, 1, &p[1]));
      assert_true (p[0].counter + 1 == p[1].counter ||
                   p[1].counter + 1 == p[0].counter);
    }
  }
  end_whole (sa);
}

/* When a record without a slot is in force, what was open is missed. */
static void
test_missed_before_the_record (void **state)
{
  struct sim_array *sa = start_small (3, 2);

  put (sa, 0, sa->g.size, ARRAY_FUA);
  assert_int_equal (sim_array_fail (sa, 1), 0);
  for (unsigned slot = 0; slot < 5; slot++)
    for (uint64_t no = 0; slot != 1 && no < NR_STRIPES / 8; no++) {
      const struct bitmap_page p = read_page (sa, slot, no);

      assert_int_equal (p.open[0], 0xff);
      assert_int_equal (p.missed[0], 0xff);
    }
  end_degraded (sa);
}

/* Regions ahead of a write are missed only if the one before it was. */
static void
test_missed_ahead (void **state)
{
  const uint64_t stripe = 3 * CHUNK;
  struct sim_array *sa = start_small (3, 2);
  struct bitmap_page p;

  open_again (sa, ~0, true);
  limits.ahead_regions = 3;
  assert_int_equal (sim_array_fail (sa, 1), 0);
  put (sa, 8 * stripe, 4096, ARRAY_FUA);
  put (sa, 13 * stripe, 4096, ARRAY_FUA);
  p = read_page (sa, 0, 1);
  assert_int_equal (p.missed[0], 1 | 1 << 5);
  put (sa, 9 * stripe, 4096, ARRAY_FUA);
  p = read_page (sa, 0, 1);
  assert_int_equal (p.missed[0], 0x1f | 1 << 5);
  end_degraded (sa);
}

static void
set_bad_page (struct sim_array *sa, unsigned slot, bool bad)
{
  for (unsigned i = 0; i < 2; i++) {
    const uint64_t off = bitmap_page_off (&sa->l, 0, i);

    if (bad)
      sim_disk_set_bad (sa->disk[slot], off, BITMAP_PAGE_LEN);
    else
      memset (sa->disk[slot]->bad + off / SIM_BLOCK, 0,
              BITMAP_PAGE_LEN / SIM_BLOCK);
  }
}

/* A page can't be read when the array is opened with a member less, so it is
 * written anew, in one place.  Then the other place, an older page, can be read
 * again.  It is not taken for the newer one: it does not say what the member
 * that was away has missed.
 */
static void
test_old_page_is_back (void **state)
{
  struct sim_array *sa = start_small (2, 1);
  bool full;

  open_again (sa, 7, true);
  assert_int_equal (sim_array_fail (sa, 2), 0);
  for (unsigned region = 0; region < 5; region++)
    put (sa, region * 2 * CHUNK, 4096, ARRAY_FUA);
  assert_int_equal (sim_array_readd (sa, 2, &full), 0);
  assert_true (sim_array_settle (sa, 60 * SECOND));
  assert_int_equal (sa->a->lost_slots, 0);
  assert_true (sim_array_stop (sa));
  for (unsigned slot = 0; slot < 2; slot++)
    set_bad_page (sa, slot, true);
  assert_int_equal (sim_array_open (sa, 3, DEGRADED_FORCE, false), 0);
  sa->a->clear_ns = UINT64_MAX;
  assert_int_equal (sim_array_writable (sa), 0);
  put (sa, 10 * CHUNK, 2 * CHUNK, ARRAY_FUA);
  sim_crash_after (sa->sim, 1);
  crash_array (sa);
  for (unsigned slot = 0; slot < 2; slot++)
    set_bad_page (sa, slot, false);
  assert_int_equal (sim_array_open (sa, 3, DEGRADED_FORCE, false), 0);
  assert_int_equal (sim_array_writable (sa), 0);
  assert_int_equal (sim_array_readd (sa, 2, &full), 0);
  assert_false (full);
  assert_true (sim_array_settle (sa, 60 * SECOND));
  assert_int_equal (sa->a->lost_slots, 0);
  end_whole (sa);
}

/* ---- clearing ------------------------------------------------------------ */

/* A region that is closed everywhere, perhaps after a crash, has nothing
 * that a crash could take away.
 */
static void
check_closed_regions (struct sim_array *sa)
{
  const uint64_t len = sa->l.region_len;

  for (uint64_t region = 0; region < NR_STRIPES; region++) {
    const uint64_t off = sa->l.data_off + region * len;
    bool open = false;

    for (unsigned slot = 0; slot < sa->a->n && !open; slot++)
      open = is_open (sa, slot, region);
    for (unsigned slot = 0; slot < sa->a->n && !open; slot++) {
      const struct sim_disk *d = sim_array_disk_at (sa, slot);

      assert_memory_equal (d->visible + off, d->stable + off, len);
    }
  }
}

static void
set_delay (struct sim_disk *d, uint64_t ns)
{
  d->min_delay_ns = d->max_delay_ns = ns;
}

/* A whole stripe, which goes out at once. */
static struct sim_request *
write_stripe (struct sim_array *sa, uint64_t stripe)
{
  const uint64_t len = sa->g.k * CHUNK, off = stripe * len;
  const uint64_t before = sa->disk[1]->nr_ios[IO_WRITE];
  struct sim_request *q = calloc (1, sizeof *q);

  assert_non_null (q);
  for (uint64_t i = off; i < off + len; i++)
    data[i] += 3;
  sim_request_init (q, sa, REQUEST_WRITE);
  q->r.buf = data + off;
  q->r.off = off;
  q->r.len = len;
  q->done = ignore;
  sim_request_start (q);
  while (sa->disk[1]->nr_ios[IO_WRITE] == before)
    assert_true (sim_step (sa->sim));
  return q;
}

/* At the next tick the members are flushed, and then bits are cleared. */
static void
start_clearing (struct sim_array *sa)
{
  sa->a->clear_ns = 1;
  while (!sa->a->flushing)
    assert_true (sim_step (sa->sim));
  sa->a->clear_ns = UINT64_MAX;
}

/* What is written to a member while that is being flushed is not flushed,
 * however long ago the write began.
 */
static void
test_closed_is_flushed (void **state)
{
  struct sim_array *sa = start_small (2, 1);
  struct sim_disk *d = sa->disk[1];
  struct sim_request *long_ago, *before;
  uint64_t end;

  sa->clear_ns = UINT64_MAX;
  open_again (sa, ~0, true);
  put (sa, 2 * 2 * CHUNK, 4096, ARRAY_FUA);     /* they are marked */
  put (sa, 5 * 2 * CHUNK, 4096, ARRAY_FUA);
  set_delay (d, SECOND);
  long_ago = write_stripe (sa, 5);
  start_clearing (sa);
  set_delay (d, 100000);
  before = write_stripe (sa, 2);
  assert_true (sim_array_pause (sa, SECOND / 4));
  set_delay (d, 2 * SECOND);
  start_clearing (sa);
  assert_true (sim_array_pause (sa, SECOND / 10));
  set_delay (d, 5000000);
  for (end = sim_now (sa->sim) + 4 * SECOND; sim_now (sa->sim) < end; ) {
    assert_true (sim_step (sa->sim));
    check_closed_regions (sa);
  }
  free (long_ago);
  free (before);
  end_whole (sa);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown (test_all_regions_of_a_range, usual_limits),
    cmocka_unit_test_teardown (test_pages_have_two_places, usual_limits),
    cmocka_unit_test_teardown (test_missed_before_the_record, usual_limits),
    cmocka_unit_test_teardown (test_missed_ahead, usual_limits),
    cmocka_unit_test_teardown (test_old_page_is_back, usual_limits),
    cmocka_unit_test_teardown (test_closed_is_flushed, usual_limits),
  };

  return cmocka_run_group_tests (tests, NULL, free_data);
}
