/* gpuraid: a member that was out is taken again by the running array: by the
 * dirty bits or in full, and what is refused.
 *
 * run-tests: long no-thread
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

#include "common/bits.h"
#include "tests/engine-array.h"

#define REGION (1u << 20)
#define NR_REGIONS 16u

/* 3+2, each member 16 regions, none of them open. */
static struct sim_array *
start (void **state)
{
  const enum checksum *sums = *state;
  struct sim_array *sa;

  sim_consistency = sums ? CONSISTENCY_JOURNAL : CONSISTENCY_NONE;
  sim_checksum = sums ? *sums : CHECKSUM_NONE;
  limits.ring_min_len = 128 * 1024;
  limits.ahead_regions = 0;
  sa = start_full (3, 2, 128 * 1024, NR_REGIONS * REGION / (128 * 1024));
  assert_true (sim_array_pause (sa, 15 * SECOND));
  return sa;
}

static void
settle (struct sim_array *sa)
{
  assert_true (sim_array_settle (sa, 1000 * SECOND));
}

static void
readd (struct sim_array *sa, unsigned disk, bool want_full)
{
  bool full = !want_full;

  assert_int_equal (sim_array_readd (sa, disk, &full), 0);
  assert_int_equal (full, want_full);
  settle (sa);
  assert_int_equal (sa->a->irregular_slots, 0);
}

/* It has all data, without m others. */
static void
check_without_others (struct sim_array *sa)
{
  check_all (sa);
  assert_int_equal (sim_array_fail (sa, 0), 0);
  assert_int_equal (sim_array_fail (sa, 4), 0);
  settle (sa);
  check_all (sa);
  end_degraded (sa);
}

/* One region is read from each of k members, and no more is written. */
static void
test_changes_only (void **state)
{
  struct sim_array *sa = start (state);
  uint64_t least, most;

  assert_int_equal (sim_array_fail (sa, 2), 0);
  put (sa, 5 * 3 * REGION + 10000, 5000, ARRAY_FUA);
  assert_true (sim_array_pause (sa, 2 * SECOND));
  count_from_here (sa);
  readd (sa, 2, false);
  least = sa->checksum == CHECKSUM_NONE ? 3 * REGION : 3 * 12 * BLOCK_LEN;
  most = 3 * REGION + REGION / 2;
  assert_in_range (bytes (sa, IO_READ), least, most);
  assert_true (sa->disk[2]->nr_bytes[IO_WRITE] < 2 * REGION);
  assert_in_range (sa->a->counters.rebuilt_bytes, BLOCK_LEN, REGION);
  check_without_others (sa);
}

/* Written to meanwhile, and while it is brought up to date. */
static void
test_busy (void **state)
{
  struct sim_array *sa = start (state);
  struct sim_request *q;
  bool full;

  assert_int_equal (sim_array_fail (sa, 2), 0);
  for (unsigned i = 0; i < 12; i++)
    put (sa, i * 3 * REGION + i * 7777, 50000, 0);
  sa->disk[2]->min_delay_ns = sa->disk[2]->max_delay_ns = 3000000;
  assert_int_equal (sim_array_readd (sa, 2, &full), 0);
  assert_false (full);
  for (unsigned i = 1; i < 14; i++) {
    const uint64_t off = i * 3 * REGION - 10000;

    for (uint64_t j = off; j < off + 40000; j++)
      data[j]++;
    q = start_request (sa, REQUEST_WRITE, data + off, off, 40000, 0);
    while (q->state != SIM_IDLE)
      assert_true (sim_step (sa->sim));
    assert_int_equal (q->r.error, 0);
    free (q);
  }
  settle (sa);
  assert_int_equal (sa->a->irregular_slots, 0);
  check_without_others (sa);
}

/* The parity of a row comes from two sessions: one member has kept it, and the
 * other's is made anew from data of several ages.  Each counts beside the
 * other.
 */
static void
test_kept_parity (void **state)
{
  struct sim_array *sa = start (state);
  unsigned new;

  for (uint64_t off = 0; off < sa->a->g.size; off += 3 * 128 * 1024) {
    put (sa, off + 2 * 128 * 1024, 20000, ARRAY_FUA);
    put (sa, off, 30000, ARRAY_FUA);
  }
  assert_true (sim_array_pause (sa, 15 * SECOND));
  open_again (sa, ~BIT (1), true);
  assert_int_equal (sim_array_fail (sa, 2), 0);
  new = sim_array_add_disk (sa);
  assert_int_equal (sim_array_replace (sa, 2, new), 0);
  crash_array (sa);
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  assert_int_equal (sim_array_writable (sa), 0);
  settle (sa);
  assert_int_equal (sa->a->irregular_slots, 0);
  check_without_others (sa);
}

/* Its ring has headers of before it left: none of them counts after a crash,
 * also if a new one rots.
 */
static void
test_ring_begins (void **state)
{
  static const uint8_t zeroes[BLOCK_LEN];

  for (unsigned i = 0; i < 12; i++) {
    struct sim_array *sa = start (state);
    const uint64_t header = sa->l.ring_off + i % 2 * BLOCK_LEN;

    open_again (sa, ~0, true);
    for (unsigned n = 0; n < 1 + i % 3; n++) {
      put (sa, n * 10000, 5000, ARRAY_FUA);
      assert_true (sim_array_pause (sa, 15 * SECOND));
    }
    assert_int_equal (sim_array_fail (sa, 2), 0);
    readd (sa, 2, false);
    for (unsigned n = 0; n < 5; n++)
      put (sa, n * 128 * 1024 + i * 3000, 2000, ARRAY_FUA);
    crash_array (sa);
    if (i >= 4)
      sim_disk_poke (sa->disk[2], zeroes, BLOCK_LEN, header);
    assert_int_equal (sim_array_open (sa, BIT (1) | BIT (2) | BIT (3),
                                      DEGRADED_ALLOW, false), 0);
    check_all (sa);
    open_again (sa, ~0, true);
    end_whole (sa);
  }
}

/* Its path was lost, and comes back. */
static void
test_lost_path (void **state)
{
  struct sim_array *sa = start (state);

  sa->disk[1]->dead = true;
  put (sa, 0, 3 * REGION, ARRAY_FUA);
  settle (sa);
  assert_int_equal (sa->a->lost_slots, BIT (1));
  sa->disk[1]->dead = false;
  readd (sa, 1, false);
  end_whole (sa);
}

/* Taken out while it was rebuilt onto: it was never told what it missed then.
 */
static void
test_full (void **state)
{
  struct sim_array *sa = start (state);
  bool full;

  assert_int_equal (sim_array_fail (sa, 3), 0);
  put (sa, 0, 5000, ARRAY_FUA);
  sa->disk[3]->min_delay_ns = sa->disk[3]->max_delay_ns = 20000000;
  assert_int_equal (sim_array_readd (sa, 3, &full), 0);
  assert_false (full);
  assert_int_equal (sim_array_fail (sa, 3), 0);
  put (sa, 6 * 3 * REGION, 5000, ARRAY_FUA);
  assert_true (sim_array_pause (sa, SECOND));
  count_from_here (sa);
  readd (sa, 3, true);
  assert_true (sa->disk[3]->nr_bytes[IO_WRITE] >= NR_REGIONS * REGION);
  check_without_others (sa);
}

/* As a file that was truncated and made as long again. */
static void
test_lost_copy (void **state)
{
  struct sim_array *sa = start (state);
  static const uint8_t zero[SB_LEN];

  assert_int_equal (sim_array_fail (sa, 2), 0);
  assert_true (sim_array_pause (sa, SECOND));
  sim_disk_poke (sa->disk[2], zero, sizeof zero,
                 layout_sb_off (sa->disk[2]->size, SB_B1));
  readd (sa, 2, true);
  end_whole (sa);
}

/* A power failure before it is up to date.  Without a journal the array would
 * not open then.
 */
static void
test_crash (void **state)
{
  struct sim_array *sa = start (state);
  bool full;

  for (unsigned moment = 1; moment < 400; moment = moment * 3 / 2 + 1) {
    assert_int_equal (sim_array_fail (sa, 2), 0);
    put (sa, 3 * 3 * REGION, 90000, ARRAY_FUA);
    settle (sa);
    sim_crash_after (sa->sim, moment);
    if (sim_array_readd (sa, 2, &full) == 0)
      (void) sim_array_settle (sa, 1000 * SECOND);
    sim_crash_after (sa->sim, 0);
    crash_array (sa);
    open_again (sa, ~0, true);
    settle (sa);
    check_all (sa);
    if (sa->a->lost_slots)
      readd (sa, 2, false);
  }
  end_whole (sa);
}

/* ---- the checksum table of one that comes back --------------------------- */

static void
zero_page (struct sim_array *sa, unsigned disk, unsigned place)
{
  static const uint8_t zero[TABLE_PAGE_LEN];

  sim_disk_poke (sa->disk[disk], zero, sizeof zero,
                 table_page_off (&sa->l, 0, place));
}

/* A page that was damaged while it was out does not count, and all its
 * blocks are copied, also in the region that was not written to.
 */
static void
test_zeroed_page (void **state)
{
  struct sim_array *sa;

  for (unsigned places = 1; places <= 3; places++) {
    sa = start (state);
    open_again (sa, ~0, true);
    put (sa, 0, 3 * 128 * 1024, ARRAY_FUA);
    open_again (sa, ~0, true);
    assert_int_equal (sim_array_fail (sa, 2), 0);
    settle (sa);
    FOR_EACH_BIT (place, places)
      zero_page (sa, 2, place);
    put (sa, 0, 5000, ARRAY_FUA);
    readd (sa, 2, false);
    check_without_others (sa);
  }
}

static const struct seat *
target (const struct sim_array *sa)
{
  for (unsigned i = 0; i < sa->a->nr_seats; i++)
    if (sa->a->seat[i]->state == SEAT_TARGET)
      return sa->a->seat[i];
  fail_msg ("nothing is rebuilt");
  return NULL;
}

/* The table of one that is rebuilt in full becomes zeroes first.  That it is
 * rebuilt in full survives a crash from there on: else all that it did not miss
 * would have no entries.
 */
static void
test_crash_in_full (void **state)
{
  static uint8_t bad[TABLE_PAGE_LEN];
  struct sim_array *sa;
  bool full;

  limits.table_page_entries = 64;
  sa = start (state);
  open_again (sa, ~0, true);
  assert_int_equal (sim_array_fail (sa, 2), 0);
  put (sa, 0, 5000, ARRAY_FUA);
  settle (sa);
  memset (bad, 0xff, sizeof bad);
  for (unsigned place = 0; place < 2; place++)
    sim_disk_poke (sa->disk[2], bad, sizeof bad,
                   table_page_off (&sa->l, 0, place));
  assert_int_equal (sim_array_readd (sa, 2, &full), 0);
  assert_false (full);
  while (target (sa)->table_zeroed == 0)
    assert_true (sim_step (sa->sim));
  crash_array (sa);
  open_again (sa, ~0, true);
  assert_false (target (sa)->by_bitmap);
  settle (sa);
  check_without_others (sa);
  limits.table_page_entries = TABLE_PAGE_ENTRIES;
}

/* ---- refused ------------------------------------------------------------- */

static uint64_t
writes_to (const struct sim_array *sa, unsigned disk)
{
  const struct sim_disk *d = sa->disk[disk];

  return d->nr_ios[IO_WRITE] + d->nr_ios[IO_ZERO] + d->nr_ios[IO_TRIM];
}

static void
refused (struct sim_array *sa, unsigned disk, const char *part)
{
  const uint64_t epoch = sa->a->membership.cur.self.ballot.epoch;
  const uint64_t before = writes_to (sa, disk);
  bool full;

  sa->said[0] = '\0';
  assert_int_equal (sim_array_readd (sa, disk, &full), EINVAL);
  if (strstr (sa->said, part) == NULL)
    fail_msg ("no \"%s\" in: %s", part, sa->said);
  assert_int_equal (writes_to (sa, disk), before);
  assert_int_equal (sa->a->membership.cur.self.ballot.epoch, epoch);
}

static void
test_refused (void **state)
{
  struct sim_array *sa = start (state);
  const unsigned new = sim_array_add_disk (sa);

  refused (sa, 1, "");          /* active: the disk is locked */
  refused (sa, sim_array_add_disk (sa), "superblock");
  assert_int_equal (sim_array_fail (sa, 1), 0);
  sa->disk[new]->min_delay_ns = sa->disk[new]->max_delay_ns = 3000000;
  assert_int_equal (sim_array_replace (sa, 1, new), 0);
  refused (sa, 1, "being rebuilt already");
  settle (sa);
  refused (sa, 1, "no longer listed");
  assert_int_equal (sim_array_fail (sa, 2), 0);
  sim_array_spoil (sa, 2);
  refused (sa, 2, "superblock");
  check_all (sa);
  end_degraded (sa);
}

static void
forced (struct sim_array *sa, uint64_t which)
{
  assert_int_equal (sim_array_open (sa, which, DEGRADED_FORCE, false), 0);
  assert_int_equal (sim_array_writable (sa), 0);
  put (sa, 0, 5000, ARRAY_FUA);
}

static void
test_branch (void **state)
{
  struct sim_array *sa;

  sim_consistency = CONSISTENCY_NONE;
  sim_checksum = CHECKSUM_NONE;
  sa = start_full (2, 2, CHUNK, 32);
  assert_true (sim_array_stop (sa));
  forced (sa, 3);
  assert_true (sim_array_stop (sa));
  forced (sa, 12);
  refused (sa, 0, "written in two ways");
  end_degraded (sa);
}

/* While the old member of its slot is still in the table. */
static void
test_replaced (void **state)
{
  struct sim_array *sa = start (state);
  const unsigned new = sim_array_add_disk (sa);

  assert_int_equal (sim_array_replace (sa, 1, new), 0);
  settle (sa);
  refused (sa, 1, "");
  end_whole (sa);
}

#define ALL(state)                                                      \
  { "changes only", test_changes_only, NULL, free_data, state },        \
  { "busy", test_busy, NULL, free_data, state },                        \
  { "lost path", test_lost_path, NULL, free_data, state },              \
  { "full", test_full, NULL, free_data, state },                        \
  { "lost copy", test_lost_copy, NULL, free_data, state },              \
  { "refused", test_refused, NULL, free_data, state },                  \
  { "kept parity", test_kept_parity, NULL, free_data, state },          \
  { "replaced", test_replaced, NULL, free_data, state }

int
main (void)
{
  static enum checksum none = CHECKSUM_NONE, crc32c = CHECKSUM_CRC32C;
  const struct CMUnitTest tests[] = {
    ALL (NULL), ALL (&none), ALL (&crc32c),
    { "crash", test_crash, NULL, free_data, &none },
    { "crash", test_crash, NULL, free_data, &crc32c },
    { "ring begins", test_ring_begins, NULL, free_data, &none },
    { "ring begins", test_ring_begins, NULL, free_data, &crc32c },
    { "zeroed page", test_zeroed_page, NULL, free_data, &crc32c },
    { "crash in full", test_crash_in_full, NULL, free_data, &crc32c },
    cmocka_unit_test_teardown (test_branch, free_data),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
