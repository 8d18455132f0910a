/* gpuraid: scrub: all that is wrong on the members is found, counted and
 * stored anew, and nothing else; and what else must not believe a block.
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

#include "common/bits.h"
#include "tests/array/scrub/scrub-array.h"
#include "tests/sanitized.h"

static void
test_clean (void **state)
{
  struct sim_array *sa = start_with_sums (3, 2);

  check_clean (scrub (sa, true));
  open_again (sa, ~0, true);
  check_clean (scrub (sa, false));
  assert_int_equal (status (sa).counters.corrupt_found, 0);
  end_whole (sa);
}

/* Up to m blocks of a row, of data and parity. */
static void
test_wrong_blocks (void **state)
{
  struct sim_array *sa = start_with_sums (4, 3);
  uint8_t zeroes[BLOCK_LEN] = { 0 }, x[BLOCK_LEN], y[BLOCK_LEN];
  struct array_scrub_count c;
  struct array_status st;

  assert_true (sim_array_stop (sa));
  flip (sa, 2, 5, 12345);
  put_block (sa, 0, 11, zeroes);
  put_block (sa, 6, 11, zeroes);
  put_block (sa, 3, 11, zeroes);
  memcpy (x, block (sa, 1, 20), BLOCK_LEN);
  memcpy (y, block (sa, 1, 33), BLOCK_LEN);
  put_block (sa, 1, 33, x);
  put_block (sa, 1, 20, y);
  for (unsigned row = 40; row < 50; row++)
    flip (sa, slot_of (sa, row, 5), row, 7);
  open_again (sa, ~0, true);

  c = scrub (sa, false);                /* only counts */
  assert_int_equal (c.found, 1 + 3 + 2 + 10);
  assert_int_equal (c.repaired, 0);
  c = scrub (sa, true);
  assert_int_equal (c.found, 1 + 3 + 2 + 10);
  assert_int_equal (c.repaired, c.found);
  assert_int_equal (c.lost_rows + c.unlocated_rows, 0);
  st = status (sa);
  assert_int_equal (st.entry[1].scrub_repaired, 2 + (slot_of (sa, 40, 5) == 1 ?
                    4 : 0) + (slot_of (sa, 44, 5) == 1 ? 4 : 0) +
                    (slot_of (sa, 48, 5) == 1 ? 2 : 0));
  assert_int_equal (st.counters.corrupt_found, 2 * c.found);
  assert_int_equal (st.counters.corrupt_repaired, c.found);
  check_clean (scrub (sa, true));
  open_again (sa, ~0, true);
  check_clean (scrub (sa, true));
  end_whole (sa);
}

/* Pages of the table: in one place or both, of m members. */
static void
test_wrong_pages (void **state)
{
  for (unsigned places = 1; places <= 2; places++) {
    struct sim_array *sa = start_with_sums (3, 2);
    struct array_scrub_count c;

    assert_true (sim_array_stop (sa));
    spoil_page (sa, 1, 1, places);
    spoil_page (sa, 4, 1, places);
    spoil_page (sa, 0, 2, places);
    open_again (sa, ~0, true);
    c = scrub (sa, true);
    assert_true (c.found > 0);
    assert_int_equal (c.repaired, c.found);
    assert_int_equal (status (sa).counters.corrupt_table_pages, 3);
    check_clean (scrub (sa, true));
    open_again (sa, ~0, true);
    check_clean (scrub (sa, true));
    assert_int_equal (status (sa).counters.corrupt_table_pages, 0);
    end_whole (sa);
  }
}

/* The same while the array is running: what is in memory is right. */
static void
test_wrong_pages_online (void **state)
{
  struct sim_array *sa = start_with_sums (3, 2);
  struct copy old;

  check_clean (scrub (sa, true));
  assert_true (sim_array_pause (sa, 5 * SECOND));       /* all is stored */
  keep (sa, 4, 2 * 24, &old);
  put (sa, 2 * 24 / CHUNK_BLOCKS * 3 * CHUNK, 3 * CHUNK, ARRAY_FUA);
  assert_true (sim_array_pause (sa, 5 * SECOND));
  spoil_page (sa, 1, 1, 1);
  spoil_page (sa, 2, 1, 2);
  spoil_page (sa, 0, 1, 2);
  spoil_page (sa, 3, 1, 2);
  for (unsigned i = 0; i < 2; i++)      /* a write that was lost */
    put_bytes (sa, 4, page_off (sa, 2 * 24, i), old.page[i], TABLE_PAGE_LEN);
  check_clean (scrub (sa, true));
  assert_int_equal (status (sa).counters.corrupt_table_pages, 5);
  assert_int_equal (status (sa).entry[1].bad_sums, 1);
  check_clean (scrub (sa, true));
  assert_int_equal (status (sa).counters.corrupt_table_pages, 5);
  open_again (sa, ~0, true);
  check_clean (scrub (sa, true));
  assert_int_equal (status (sa).counters.corrupt_table_pages, 0);
  end_whole (sa);
}

/* More than m: the row is reported, and only its bad blocks can't be read. */
static void
test_too_many (void **state)
{
  struct sim_array *sa = start_with_sums (3, 2);
  const uint64_t row = 2 * CHUNK_BLOCKS + 1;
  const uint64_t off = 2 * 3 * CHUNK + BLOCK_LEN;
  uint8_t buf[BLOCK_LEN];
  struct array_scrub_count c;

  assert_true (sim_array_stop (sa));
  flip (sa, slot_of (sa, row, 0), row, 1);
  flip (sa, slot_of (sa, row, 2), row, 1);
  flip (sa, slot_of (sa, row, 4), row, 1);
  flip (sa, slot_of (sa, row + 1, 4), row + 1, 1);
  open_again (sa, ~0, true);
  c = scrub (sa, true);
  assert_int_equal (c.found, 4);
  assert_int_equal (c.repaired, 1);
  assert_int_equal (c.lost_rows, 1);
  assert_int_equal (status (sa).lost_rows, 1);
  for (unsigned role = 0; role < 3; role++)
    assert_int_equal (sim_array_read (sa, buf, BLOCK_LEN, off + role * CHUNK),
                      role == 1 ? 0 : EIO);
  /* A write of what is bad makes it whole again. */
  assert_int_equal (sim_array_write (sa, data + off, BLOCK_LEN, off, 0), 0);
  assert_int_equal (sim_array_write (sa, data + off + 2 * CHUNK, BLOCK_LEN,
                                     off + 2 * CHUNK, ARRAY_FUA), 0);
  check_clean (scrub (sa, true));
  end_whole (sa);
}

/* An old copy of a block, alone: its checksum says so.  With its page, too:
 * only the rest of the row can say so.
 */
static void
old_copy (unsigned m, unsigned role, bool with_page, bool others,
          bool located)
{
  struct sim_array *sa = start_with_sums (3, m);
  const uint64_t row = 5 * CHUNK_BLOCKS + 2;
  const uint64_t off = 5 * 3 * CHUNK + 2 * BLOCK_LEN;
  const unsigned slot = slot_of (sa, row, role);
  struct copy old;
  struct array_scrub_count c;

  assert_true (sim_array_stop (sa));
  keep (sa, slot, row, &old);
  open_again (sa, ~0, true);
  put (sa, off, BLOCK_LEN, others ? 0 : ARRAY_FUA);
  if (others)                           /* in the same transaction */
    put (sa, off + CHUNK, BLOCK_LEN, ARRAY_FUA);
  assert_true (sim_array_stop (sa));
  restore (sa, slot, row, &old, with_page);
  open_again (sa, ~0, true);
  if (with_page)                /* it may be in the cache */
    assert_int_equal (sim_array_read (sa, back, sa->g.size, 0), 0);
  c = scrub (sa, true);
  assert_int_equal (c.lost_rows, 0);
  assert_int_equal (c.unlocated_rows, !located);
  assert_int_equal (c.found, located);
  assert_int_equal (c.repaired, located);
  if (located)
    check_all (sa);             /* of the cache, too */
  c = scrub (sa, true);
  assert_int_equal (c.unlocated_rows, !located);
  assert_int_equal (c.found, 0);
  if (located)
    end_whole (sa);
  else
    end_degraded (sa);
}

static void
test_old_copies (void **state)
{
  for (unsigned m = 1; m <= 3; m++)
    for (unsigned others = 0; others < 2; others++) {
      old_copy (m, 0, false, others, true);
      old_copy (m, 3, false, others, true);
      old_copy (m, 0, true, others, m >= 2);
      old_copy (m, 3, true, others, m >= 2);
    }
}

/* The writes of a repair, which finds this number of wrong blocks. */
static uint64_t
written_by_repair (struct sim_array *sa, uint64_t found)
{
  struct array_scrub_count c;

  count_from_here (sa);
  c = scrub (sa, true);
  assert_int_equal (c.found, found);
  assert_int_equal (c.repaired, found);
  assert_int_equal (c.unlocated_rows, 0);
  return ios (sa, IO_WRITE);
}

/* The content is right, and the page of the table is older.  Parity that is
 * older than the other is wrong.  Where data is nothing is, but a repair gives
 * the parity its generation.
 */
static void
test_old_generation (void **state)
{
  for (unsigned role = 0; role <= 4; role += 4) {
    struct sim_array *sa = start_with_sums (3, 2);
    const uint64_t row = 5 * CHUNK_BLOCKS + 2;
    const uint64_t off = 5 * 3 * CHUNK + 2 * BLOCK_LEN;
    const unsigned slot = slot_of (sa, row, role);
    struct copy old;
    uint64_t first;

    assert_true (sim_array_stop (sa));
    keep (sa, slot, row, &old);
    open_again (sa, ~0, true);
    assert_int_equal (sim_array_write (sa, data + off, BLOCK_LEN, off,
                                       ARRAY_FUA), 0);
    assert_true (sim_array_stop (sa));
    restore (sa, slot, row, &old, true);
    open_again (sa, ~0, true);
    first = written_by_repair (sa, role == 4);
    assert_true (first > written_by_repair (sa, 0));
    end_whole (sa);
  }
}

/* Parity that can't be read is stored anew while the only data of its row is on
 * a rebuild's target, which has the row already: all of the row gets the new
 * generation.
 */
static void
test_repair_beside_a_target (void **state)
{
  struct sim_array *sa = start_with_sums (1, 2);
  const uint64_t row = CHUNK_BLOCKS * 3;
  const unsigned slot = slot_of (sa, row, 0);
  const unsigned new = sim_array_add_disk (sa);
  struct table_entry e;
  struct seat *t;

  sa->window_len = CHUNK;
  open_again (sa, ~0, true);
  assert_int_equal (sim_array_replace (sa, slot, new), 0);
  assert_int_equal (sim_array_fail (sa, slot), 0);
  t = sa->a->at[slot][1];
  while (t->cursor < 4 * CHUNK)
    assert_true (sim_step (sa->sim));
  assert_int_equal (t->state, SEAT_TARGET);
  sim_disk_set_bad (sa->disk[slot_of (sa, row, 1)],
                    sa->l.data_off + row * BLOCK_LEN, BLOCK_LEN);
  check_all (sa);
  assert_int_equal (t->state, SEAT_TARGET);
  assert_true (sim_array_settle (sa, 600 * SECOND));
  assert_true (sa->a->counters.repaired_blocks > 0);
  assert_true (sim_array_stop (sa));
  e = sim_array_entry (sa, sa->disk[new], slot, row);
  for (unsigned role = 1; role < 3; role++) {
    const unsigned other = slot_of (sa, row, role);

    assert_int_equal (sim_array_entry (sa, sa->disk[other], other,
                                       row).generation, e.generation);
  }
  open_again (sa, ~0, true);
  check_clean (scrub (sa, false));
  end_whole (sa);
}

/* A block that missed a write is written again: if its old content is used
 * to make the parity, that is wrong, and not the block.
 */
static void
test_written_again (void **state)
{
  struct sim_array *sa = start_with_sums (6, 2);
  const uint64_t row = 5 * CHUNK_BLOCKS + 2;
  const uint64_t off = 5 * 6 * CHUNK + 2 * BLOCK_LEN;
  const unsigned slot = slot_of (sa, row, 0);
  struct array_scrub_count c;
  struct copy old;

  assert_true (sim_array_stop (sa));
  keep (sa, slot, row, &old);
  open_again (sa, ~0, true);
  put (sa, off, BLOCK_LEN, ARRAY_FUA);
  assert_true (sim_array_stop (sa));
  restore (sa, slot, row, &old, true);
  open_again (sa, ~0, true);
  put (sa, off, BLOCK_LEN, ARRAY_FUA);
  c = scrub (sa, true);
  assert_int_equal (c.unlocated_rows, 1);
  assert_int_equal (c.found, 0);
  check_all (sa);
  open_again (sa, ~0, true);
  check_all (sa);
  end_degraded (sa);
}

/* The same while it is repaired. */
static void
test_written_meanwhile (void **state)
{
  for (unsigned i = 0; i < 150; i += CASE_STEP) {
    struct sim_array *sa = start_with_sums (6, 2);
    const uint64_t row = 1;
    const unsigned slot = slot_of (sa, row, 0);
    struct sim_request *q;
    struct copy old;

    assert_true (sim_array_stop (sa));
    keep (sa, slot, row, &old);
    open_again (sa, ~0, true);
    put (sa, BLOCK_LEN, BLOCK_LEN, ARRAY_FUA);
    assert_true (sim_array_stop (sa));
    restore (sa, slot, row, &old, true);
    open_again (sa, ~0, true);
    begin (sa, true);
    assert_true (sim_array_pause (sa, 2000000 + i * 40000));
    memset (data + BLOCK_LEN, i, BLOCK_LEN);
    q = start_request (sa, REQUEST_WRITE, data + BLOCK_LEN, BLOCK_LEN,
                       BLOCK_LEN, ARRAY_FUA);
    while (status (sa).scrub.running || q->state != SIM_IDLE)
      assert_true (sim_step (sa->sim));
    free (q);
    check_all (sa);
    open_again (sa, ~0, true);
    check_all (sa);
    end_degraded (sa);
  }
}

/* A client writes or reads what was found, between the look and the repair: it
 * is stored anew by what comes first.
 */
static void
test_repaired_by_another (void **state)
{
  for (unsigned i = 0; i < 150; i += CASE_STEP) {
    struct sim_array *sa = start_with_sums (3, 2);
    const enum request_kind kind = i % 2 ? REQUEST_READ : REQUEST_WRITE;
    const uint64_t off = CHUNK + 2 * BLOCK_LEN;         /* role 1, row 2 */
    uint8_t buf[BLOCK_LEN];
    struct sim_request *q;
    struct array_status st;

    assert_true (sim_array_stop (sa));
    flip (sa, slot_of (sa, 1, 0), 1, 7);
    flip (sa, slot_of (sa, 2, 1), 2, 7);
    open_again (sa, ~0, true);
    begin (sa, true);
    assert_true (sim_array_pause (sa, 2000000 + i * 40000));
    if (kind == REQUEST_WRITE)
      memset (data + off, i, BLOCK_LEN);
    memcpy (buf, data + off, BLOCK_LEN);
    q = start_request (sa, kind, buf, off, BLOCK_LEN, 0);
    while (status (sa).scrub.running || q->state != SIM_IDLE)
      assert_true (sim_step (sa->sim));
    free (q);
    st = status (sa);
    assert_int_equal (st.last_scrub.repaired, st.last_scrub.found);
    assert_int_equal (st.reasons, 0);
    check_all (sa);
    end_whole (sa);
  }
}

/* A member that is not there is no fault; what is wrong on the others is
 * repaired as long as k are good.
 */
static void
test_degraded (void **state)
{
  struct sim_array *sa = start_with_sums (3, 2);
  struct array_scrub_count c;

  assert_true (sim_array_stop (sa));
  flip (sa, 3, 6, 99);
  open_again (sa, ~(uint64_t) BIT (1), true);
  c = scrub (sa, true);
  assert_int_equal (c.found, 1);
  assert_int_equal (c.repaired, 1);
  check_clean (scrub (sa, true));
  check_all (sa);
  end_degraded (sa);
}

/* A block that can't be read. */
static void
test_read_errors (void **state)
{
  struct sim_array *sa = start_with_sums (3, 2);
  struct array_scrub_count c;

  assert_true (sim_array_stop (sa));
  sim_disk_set_bad (sa->disk[2], sa->l.data_off + 9 * BLOCK_LEN, BLOCK_LEN);
  open_again (sa, ~0, true);
  c = scrub (sa, true);
  assert_int_equal (c.found, 1);
  assert_int_equal (c.repaired, 1);
  assert_int_equal (status (sa).counters.corrupt_found, 0);
  check_clean (scrub (sa, true));
  end_whole (sa);
}

/* Without checksums nothing is overwritten. */
static void
test_without_sums (void **state)
{
  for (unsigned journal = 0; journal < 2; journal++) {
    struct sim_array *sa;
    struct array_scrub_count c;
    uint8_t before[BLOCK_LEN];

    sim_consistency = journal ? CONSISTENCY_JOURNAL : CONSISTENCY_NONE;
    sim_checksum = CHECKSUM_NONE;
    sa = start_full (3, 3, CHUNK, NR_STRIPES);
    check_clean (scrub (sa, true));
    assert_true (sim_array_stop (sa));
    flip (sa, 1, 7, 77);
    memcpy (before, block (sa, 1, 7), BLOCK_LEN);
    open_again (sa, ~0, true);
    c = scrub (sa, true);
    assert_int_equal (c.unlocated_rows, 1);
    assert_int_equal (c.found, 0);
    assert_memory_equal (before, block (sa, 1, 7), BLOCK_LEN);
    end_degraded (sa);
  }
}

/* ---- what else must not believe a block --------------------------------- */

static uint64_t
address (struct sim_array *sa, uint64_t stripe, unsigned role, unsigned b)
{
  return layout_address (&sa->g, stripe, role, b * BLOCK_LEN);
}

/* A block that can't be read, beside one that is wrong: what was read before
 * the error is compared too.
 */
static void
test_error_beside_a_wrong_block (void **state)
{
  struct sim_array *sa = start_with_sums (3, 2);
  const uint64_t stripe = 5, row = stripe * CHUNK_BLOCKS;

  open_again (sa, ~0, true);
  flip (sa, layout_slot (&sa->g, stripe, 0), row, 77);
  sim_disk_set_bad (disk_of_role (sa, stripe, 1), place (sa, stripe, 0),
                    BLOCK_LEN);
  check_range (sa, address (sa, stripe, 0, 0), 3 * CHUNK);
  assert_int_equal (sa->a->counters.corrupt_found, 1);
  end_whole (sa);
}

/* The same under a write that needs the rest of the row. */
static void
test_error_beside_a_wrong_block_written (void **state)
{
  struct sim_array *sa = start_with_sums (4, 2);
  const uint64_t stripe = 5, row = stripe * CHUNK_BLOCKS;

  open_again (sa, ~0, true);
  flip (sa, layout_slot (&sa->g, stripe, 0), row, 77);
  sim_disk_set_bad (disk_of_role (sa, stripe, 1), place (sa, stripe, 0),
                    BLOCK_LEN);
  put (sa, address (sa, stripe, 2, 0), 2 * CHUNK, ARRAY_FUA);
  check_all (sa);
  end_whole (sa);
}

static int
no_hole (void *opaque, uint64_t off, uint64_t len, bool hole)
{
  assert_false (hole);
  return 0;
}

/* A write that was lost leaves a hole on a member. */
static void
test_hole_of_a_member (void **state)
{
  struct sim_array *sa = start_with_sums (3, 2);
  struct sim_disk *d = disk_of_role (sa, 2, 1);

  open_again (sa, ~0, true);
  memset (d->visible + place (sa, 2, 0), 0, CHUNK);
  memset (d->stable + place (sa, 2, 0), 0, CHUNK);
  memset (d->used + place (sa, 2, 0) / SIM_BLOCK, 0, CHUNK / SIM_BLOCK);
  assert_int_equal (array_extents (sa->a, CHUNK, address (sa, 2, 1, 0),
                                   no_hole, NULL), 0);
  check_all (sa);
  assert_int_equal (array_extents (sa->a, CHUNK, address (sa, 2, 1, 0),
                                   no_hole, NULL), 0);
  assert_true (sim_array_pause (sa, SECOND));
  end_whole (sa);
}

int
main (void)
{
#define TEST(name) cmocka_unit_test_teardown (name, scrub_usual_limits)
  const struct CMUnitTest tests[] = {
    TEST (test_clean),
    TEST (test_wrong_blocks),
    TEST (test_wrong_pages),
    TEST (test_wrong_pages_online),
    TEST (test_too_many),
    TEST (test_old_copies),
    TEST (test_old_generation),
    TEST (test_repair_beside_a_target),
    TEST (test_written_again),
    TEST (test_written_meanwhile),
    TEST (test_repaired_by_another),
    TEST (test_degraded),
    TEST (test_read_errors),
    TEST (test_without_sums),
    TEST (test_error_beside_a_wrong_block),
    TEST (test_error_beside_a_wrong_block_written),
    TEST (test_hole_of_a_member),
  };

  return cmocka_run_group_tests (tests, NULL, free_data);
}
