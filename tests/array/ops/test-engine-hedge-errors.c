/* gpuraid: reads of slow members, with errors and wrong blocks meanwhile.
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
#include "tests/array/ops/hedge-array.h"

/* A late read that fails is repaired, if it fails before the others end. */
static void
test_late_error (void **state)
{
  struct sim_array *sa = start_auto (4, 2);
  struct array_counters *c = &sa->a->counters;
  const uint64_t stripe = STRIPES / 2 + 20;
  const unsigned role = layout_role (&sa->g, stripe_of_slot (sa, stripe, SLOT),
                                     SLOT);

  for (unsigned i = 0; i < 6; i++)
    set_delay (sa->disk[i], 100 * MS);
  set_delay (sim_array_disk_at (sa, SLOT), 20 * MS);
  sim_disk_set_bad (sim_array_disk_at (sa, SLOT),
                    place (sa, stripe_of_slot (sa, stripe, SLOT), 0), 4096);
  assert_true (role < 4);
  assert_in_range (read_block (sa, fresh (sa, 0)), 100 * MS, 110 * MS);
  assert_int_equal (c->hedged_reads, 1);
  assert_true (sim_array_settle (sa, 10 * SECOND));
  pass (sa, 10 * SECOND);
  assert_int_equal (c->repaired_blocks, 1);
  end_even (sa);
}

/* Another member has an error while a read is late: with m = 1 only the late
 * one can help.
 */
static void
test_other_error (void **state)
{
  for (unsigned m = 1; m <= 2; m++) {
    struct sim_array *sa = start_auto (4, m);
    const uint64_t stripe = stripe_of_slot (sa, STRIPES / 2 + 20, SLOT);
    unsigned other = layout_role (&sa->g, stripe, SLOT) ? 0 : 1;

    set_delay (sim_array_disk_at (sa, SLOT), 100 * MS);
    sim_disk_set_bad (disk_of_role (sa, stripe, other),
                      place (sa, stripe, 0), 4096);
    assert_in_range (read_block (sa, fresh (sa, 0)), 2 * MS,
                     m == 1 ? 210 * MS : 10 * MS);
    assert_int_equal (sa->a->counters.hedged_reads, 1);
    pass (sa, 10 * SECOND);
    end_even (sa);
  }
}

/* What is decoded is compared with the checksums of all that it comes from:
 * with m = 1 only the late read can help.
 */
static void
test_wrong_source (void **state)
{
  sim_checksum = CHECKSUM_CRC32C;
  for (unsigned m = 1; m <= 2; m++) {
    struct sim_array *sa = start_auto (4, m);
    const uint64_t stripe = stripe_of_slot (sa, STRIPES / 2 + 20, SLOT);
    const unsigned other = layout_role (&sa->g, stripe, SLOT) ? 0 : 1;

    read_block (sa, fresh (sa, 30));    /* the table is in memory */
    set_delay (sim_array_disk_at (sa, SLOT), 100 * MS);
    sim_disk_poke (disk_of_role (sa, stripe, other), "wrong", 5,
                   place (sa, stripe, 0));
    read_block (sa, fresh (sa, 0));
    assert_int_equal (sa->a->counters.hedged_reads, 1);
    assert_int_equal (sa->a->counters.corrupt_found, 1);
    pass (sa, 10 * SECOND);
    assert_int_equal (sa->a->counters.corrupt_repaired, 1);
    sa->a->counters.corrupt_found = 0;
    end_even (sa);
  }
  sim_checksum = CHECKSUM_NONE;
}

/* Nor is the checksum table of a slow member read for clients, unless a block
 * of another member is wrong.
 */
static void
test_slow_table (void **state)
{
  struct sim_array *sa;
  uint64_t stripe, avoided;

  sim_checksum = CHECKSUM_CRC32C;
  limits.table_page_entries = 4;        /* a chunk */
  sa = start_auto (4, 2);
  set_delay (sim_array_disk_at (sa, SLOT), 50 * MS);
  for (unsigned i = 0; !sa->a->at[SLOT][0]->hedge.slow; i++) {
    assert_in_range (read_block (sa, data_of_slot (sa, 20 + 6 * i, SLOT)), 0,
                     110 * MS);
    pass (sa, 100 * MS);
  }
  avoided = sa->a->counters.avoided_reads;
  for (unsigned i = 0; i < 10; i++)
    assert_in_range (read_block (sa, fresh (sa, i)), 2 * MS, 5 * MS);
  assert_int_equal (sa->a->counters.avoided_reads, avoided + 10);
  stripe = stripe_of_slot (sa, STRIPES / 2 + 20 + 15 * 6, SLOT);
  sim_disk_poke (disk_of_role (sa, stripe,
                               layout_role (&sa->g, stripe, SLOT) ? 0 : 1),
                 "wrong", 5, place (sa, stripe, 0));
  assert_in_range (read_block (sa, fresh (sa, 15)), 50 * MS, 60 * MS);
  assert_int_equal (sa->a->counters.corrupt_found, 1);
  pass (sa, 10 * SECOND);
  sa->a->counters.corrupt_found = 0;
  end_even (sa);
  sim_checksum = CHECKSUM_NONE;
  limits = default_limits;
}

/* A member that hangs is avoided, as ever, and the array can be stopped when it
 * answers.
 */
static void
test_hang (void **state)
{
  struct sim_array *sa = start_auto (4, 2);

  sim_disk_hang (sim_array_disk_at (sa, SLOT), true);
  assert_in_range (read_block (sa, fresh (sa, 0)), 2 * MS, 6 * MS);
  pass (sa, 200 * MS);
  assert_false (sa->a->at[SLOT][0]->suspect);
  assert_in_range (read_block (sa, fresh (sa, 1)), 2 * MS, 6 * MS);
  pass (sa, 3 * SECOND);
  read_block (sa, fresh (sa, 2));
  pass (sa, 3 * SECOND);
  assert_true (sa->a->at[SLOT][0]->suspect);
  assert_in_range (read_block (sa, fresh (sa, 3)), MS, 2 * MS);
  sim_disk_hang (sim_array_disk_at (sa, SLOT), false);
  pass (sa, SECOND);
  end_even (sa);
}

/* Taken out while a read of it is late. */
static void
test_fails_when_late (void **state)
{
  struct sim_array *sa = start_auto (4, 2);
  struct sim_request *q;
  const uint64_t off = fresh (sa, 0);

  for (unsigned i = 0; i < 6; i++)
    set_delay (sa->disk[i], 20 * MS);
  sim_disk_hang (sim_array_disk_at (sa, SLOT), true);
  q = start_request (sa, REQUEST_READ, back, off, 4096, 0);
  pass (sa, 10 * MS);
  assert_int_equal (sa->a->counters.hedged_reads, 1);
  assert_int_equal (sim_array_fail (sa, SLOT), 0);
  pass (sa, SECOND);
  assert_int_equal (q->state, SIM_IDLE);
  assert_int_equal (q->r.error, 0);
  assert_memory_equal (back, data + off, 4096);
  free (q);
  sim_disk_hang (sa->disk[SLOT], false);
  check_all (sa);
  end_degraded (sa);
}

/* Two reads are late: it goes on without the others when both have ended. */
static void
test_late_parts (void **state)
{
  struct sim_array *sa = start_auto (4, 2);
  struct sim_request *q[8];

  for (unsigned turn = 0; turn < 16; turn++) {
    for (unsigned i = 0; turn == 8 && i < 6; i++)
      sa->disk[i]->max_delay_ns = i < 2 ? 20 * MS : 40 * MS;
    for (unsigned i = 0; i < 8; i++)
      q[i] = start_request (sa, REQUEST_READ, back + i * 3 * CHUNK,
                            (uint64_t) (turn * 8 + i) * 3 * CHUNK + 4096,
                            3 * CHUNK - 8192, 0);
    pass (sa, 10 * SECOND);
    for (unsigned i = 0; i < 8; i++) {
      assert_int_equal (q[i]->state, SIM_IDLE);
      assert_memory_equal (q[i]->r.buf, data + q[i]->r.off, q[i]->r.len);
      free (q[i]);
    }
  }
  assert_true (sa->a->counters.hedged_reads > 0);
  end_even (sa);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_late_error),
    cmocka_unit_test (test_other_error),
    cmocka_unit_test (test_wrong_source),
    cmocka_unit_test (test_slow_table),
    cmocka_unit_test (test_hang),
    cmocka_unit_test (test_fails_when_late),
    cmocka_unit_test (test_late_parts),
  };

  return cmocka_run_group_tests (tests, NULL, free_data);
}
