/* gpuraid: operations on an array in the middle of a widening: rows below the
 * frontier have k data cells, the others one less, and zeroes by rule in the
 * last slot.
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

#include "array/health/lost.h"
#include "array/reshape/internal.h"
#include "array/seats/seat.h"
#include "array/seats/unlocked.h"
#include "common/bits.h"
#include "raidmap/layout/reshape.h"
#include "tests/engine-array.h"

#define M 2u
#define N (K + M)
#define STRIPES 24u

static unsigned K = 3;          /* of new rows */
static uint64_t frontier, size;
static unsigned newest;         /* the disk of the last slot */
static unsigned random_state;

static unsigned
draw (unsigned n)
{
  random_state = random_state * 1103515245 + 12345;
  return (random_state >> 16) % n;
}

/* Before anything is read. */
static void
set_middle (struct sim_array *sa)
{
  sa->a->reshape->not_before = UINT64_MAX;      /* nothing moves */
  sa->a->g.widening = true;
  sa->a->g.frontier = frontier;
  unlocked_no_place (sa->a);
}

/* Old rows of the last slot, which nothing writes. */
static bool
is_rubbish (struct sim_array *sa, bool set)
{
  const uint64_t rows = sa->l.data_len / BLOCK_LEN;
  struct sim_disk *d = sa->disk[newest];

  for (uint64_t row = frontier; row < rows; row++) {
    const uint64_t off = layout_data_off (&sa->l, row * BLOCK_LEN);
    uint8_t rubbish[BLOCK_LEN];

    memset (rubbish, 0x80 | row, sizeof rubbish);
    if (set)
      sim_disk_poke (d, rubbish, sizeof rubbish, off);
    else if (memcmp (d->image + off, rubbish, sizeof rubbish) != 0)
      return false;
  }
  return true;
}

/* With as many chunks as there were before. */
static struct sim_array *
start_blank (uint32_t chunk, uint64_t row)
{
  struct sim_array *sa = start_empty (K, M, chunk, STRIPES);

  frontier = row;
  newest = N - 1;
  random_state = row + 1;
  size = (uint64_t) (K - 1) * chunk * STRIPES - 3 * BLOCK_LEN;
  is_rubbish (sa, true);
  set_middle (sa);
  return sa;
}

static struct sim_array *
start_middle (uint32_t chunk, uint64_t row)
{
  struct sim_array *sa = start_blank (chunk, row);

  put (sa, 0, size, 0);
  assert_int_equal (sim_array_flush (sa), 0);
  return sa;
}

static void
check (struct sim_array *sa)
{
  check_range (sa, 0, size);
}

static void
write_some (struct sim_array *sa)
{
  for (unsigned i = 0; i < 30; i++) {
    const uint64_t off = draw (size / 512) * 512;
    const uint64_t most = draw (8) ? 9000 : 150000;
    const uint64_t len = 1 + draw (MIN (size - off, most));

    put (sa, off, len, draw (4) ? 0 : ARRAY_FUA);
    if (draw (4) == 0)
      check_range (sa, off, len);
  }
  assert_int_equal (sim_array_flush (sa), 0);
}

static void
open_middle (struct sim_array *sa)
{
  open_again (sa, ~0, true);
  set_middle (sa);
}

static void
replace (struct sim_array *sa, unsigned slot)
{
  const unsigned disk = sim_array_add_disk (sa);

  assert_int_equal (sim_array_replace (sa, slot, disk), 0);
  if (slot == N - 1)
    newest = disk;
}

/* Whatever is lost, all can be read; and what is rebuilt is right, as it is
 * read when others are lost.
 */
static void
lose_all_pairs (uint32_t chunk, uint64_t row)
{
  struct sim_array *sa = start_middle (chunk, row);

  for (unsigned i = 0; i < N; i++)
    for (unsigned j = i + 1; j < N; j++) {
      open_middle (sa);
      check (sa);
      assert_int_equal (sim_array_fail (sa, i), 0);
      write_some (sa);
      assert_int_equal (sim_array_fail (sa, j), 0);
      check (sa);
      write_some (sa);
      open_middle (sa);
      check (sa);
      replace (sa, j);
      replace (sa, i);
      write_some (sa);
      assert_true (sim_array_settle (sa, 600 * SECOND));
      assert_int_equal (sa->a->lost_slots, 0);
      check (sa);
    }
  end_degraded (sa);
}

static const uint64_t rows[] = { 0, 4, 20, 32, 48, 60 };

static void
test_lost (void **state)
{
  for (K = 2; K <= 3; K++)
    for (unsigned i = 0; i < ARRAY_LEN (rows); i++)
      lose_all_pairs (CHUNK, rows[i]);
  K = 3;
}

/* A chunk of two cells: the frontier may lie in its middle. */
static void
test_bands (void **state)
{
  lose_all_pairs (2 * CELL_MAX_LEN, 0);
  lose_all_pairs (2 * CELL_MAX_LEN, 5 * CELL_MAX_LEN / BLOCK_LEN);
}

/* The new member is lost alone: then an old row lacks no data, and nothing is
 * written there when it is rebuilt.
 */
static void
test_new_member (void **state)
{
  for (unsigned i = 0; i < ARRAY_LEN (rows); i++) {
    struct sim_array *sa = start_middle (CHUNK, rows[i]);
    const uint64_t moved = MIN (size, K * frontier * BLOCK_LEN);
    uint64_t noread, nowrite;

    write_some (sa);
    assert_true (is_rubbish (sa, false));
    open_middle (sa);
    assert_int_equal (sim_array_fail (sa, N - 1), 0);
    check_range (sa, moved, size - moved);
    assert_int_equal (sa->a->counters.decoded_bytes, 0);
    line_masks (sa->a, STRIPES - 1, &noread, &nowrite);
    assert_true (noread == 0 && nowrite == 0);
    check (sa);
    write_some (sa);
    replace (sa, N - 1);
    is_rubbish (sa, true);
    write_some (sa);
    assert_true (sim_array_settle (sa, 600 * SECOND));
    check (sa);
    assert_true (is_rubbish (sa, false));
    end_degraded (sa);
  }
}

/* What was never written: a first write of a row goes in place at once, and a
 * rebuild leaves the rest as it is.
 */
static void
test_first_writes (void **state)
{
  struct sim_array *sa = start_blank (CHUNK, 0);
  const uint64_t stripe = (K - 1) * CHUNK;

  put (sa, 0, BLOCK_LEN, 0);
  assert_int_equal (sim_array_flush (sa), 0);
  count_from_here (sa);
  put (sa, 10 * stripe, 8 * stripe, 0);
  assert_int_equal (sim_array_flush (sa), 0);
  if (sa->a->sums)
    assert_true (bytes (sa, IO_WRITE) < 8 * (K - 1 + M) * CHUNK * 3 / 2);
  open_middle (sa);
  assert_int_equal (sim_array_fail (sa, 1), 0);
  replace (sa, 1);
  count_from_here (sa);
  assert_true (sim_array_settle (sa, 600 * SECOND));
  if (sa->a->sums)
    assert_true (bytes (sa, IO_READ) < 10 * (K - 1) * CHUNK);
  check (sa);
  end_degraded (sa);
}

static int
note_extent (void *opaque, uint64_t off, uint64_t len, bool hole)
{
  uint64_t *end = opaque;

  assert_false (hole);
  assert_int_equal (off, *end);
  *end += len;
  return 0;
}

static void
test_extents (void **state)
{
  struct sim_array *sa = start_blank (CHUNK, 0);
  uint64_t end = 0;

  assert_int_equal (array_extents (sa->a, size, 0, note_extent, &end), 0);
  assert_int_equal (end, size);
  end_degraded (sa);
}

/* Nothing reads a dead row. */
static void
test_dead (void **state)
{
  struct sim_array *sa = start_middle (CHUNK, 32);
  uint64_t nr = 0;

  for (uint64_t row = 0; row < sa->l.data_len / BLOCK_LEN; row++) {
    if (!reshape_is_dead (&sa->a->g, row))
      continue;
    for (unsigned i = 0; i < N; i++)
      sim_disk_set_bad (sa->disk[i],
                        layout_data_off (&sa->l, row * BLOCK_LEN), BLOCK_LEN);
    nr++;
  }
  assert_int_equal (nr, 16);
  open_middle (sa);
  assert_int_equal (sim_array_fail (sa, 2), 0);
  replace (sa, 2);
  assert_true (sim_array_settle (sa, 600 * SECOND));
  assert_int_equal (sa->a->lost_slots, 0);
  assert_int_equal (lost_rows_count (sa->a), 0);
  check (sa);
  end_degraded (sa);
}

/* The only data of a row is lost, and parity has a bad block: it is made from
 * other parity, and nothing is written in the last slot.
 */
static void
test_repair (void **state)
{
  struct sim_array *sa;
  uint64_t off;

  K = 2;
  sa = start_middle (CHUNK, 0);
  for (unsigned stripe = 4; stripe < 8; stripe++) {
    const uint64_t row = stripe * CHUNK / BLOCK_LEN + 1;
    const unsigned lost = reshape_slot (&sa->a->g, row, 0);
    struct sim_disk *d =
      sim_array_disk_at (sa, reshape_slot (&sa->a->g, row, K));

    open_middle (sa);
    if (stripe == 4)
      assert_int_equal (sim_array_fail (sa, lost), 0);
    else if (sa->a->lost_slots != BIT (lost))
      continue;
    off = layout_data_off (&sa->l, row * BLOCK_LEN);
    sim_disk_set_bad (d, off, BLOCK_LEN);
    check_range (sa, stripe * CHUNK, CHUNK);
    assert_true (sim_array_pause (sa, 3 * SECOND));
    assert_int_equal (sim_array_flush (sa), 0);
    assert_false (sim_disk_is_bad (d, off, BLOCK_LEN));
  }
  assert_true (is_rubbish (sa, false));
  check (sa);
  end_degraded (sa);
  K = 3;
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_lost),
    cmocka_unit_test (test_bands),
    cmocka_unit_test (test_new_member),
    cmocka_unit_test (test_first_writes),
    cmocka_unit_test (test_extents),
    cmocka_unit_test (test_dead),
    cmocka_unit_test (test_repair),
  };

  return cmocka_run_group_tests_name ("journal, checksums", tests, setup_both,
                                      free_data) +
    cmocka_run_group_tests_name ("journal", tests, setup_journal, free_data);
}
