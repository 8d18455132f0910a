/* gpuraid: what the engine does about members with bad blocks, and members that
 * fail, hang, or are truncated.
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

#include "array/ops/internal.h"
#include "common/bits.h"
#include "tests/engine-array.h"

static void
test_bad_block_is_repaired (void **state)
{
  struct sim_array *sa = start_full (3, 2, CHUNK, 8);
  struct sim_disk *d = disk_of_role (sa, 2, 1);
  const uint64_t off = layout_address (&sa->g, 2, 1, 4096);

  open_again (sa, ~0, true);
  sim_disk_set_bad (d, place (sa, 2, 4096), 8192);
  check_range (sa, off, 8192);
  assert_true (sim_array_pause (sa, SECOND));
  /* It can be read now, on its own. */
  open_again (sa, ~0, true);
  count_from_here (sa);
  check_range (sa, off, 8192);
  assert_int_equal (ios (sa, IO_READ), d->nr_ios[IO_READ]);
  assert_int_equal (sa->a->counters.decoded_bytes, 0);
  end_whole (sa);
}

/* A block that a write needs, not a reader. */
static void
test_bad_block_under_a_write (void **state)
{
  struct sim_array *sa = start_full (3, 2, CHUNK, 8);

  open_again (sa, ~0, true);
  for (unsigned role = 0; role < 2; role++)
    sim_disk_set_bad (disk_of_role (sa, 1, role), place (sa, 1, 0), 4096);
  put (sa, layout_address (&sa->g, 1, 0, 100), 50, ARRAY_FUA);
  check_all (sa);
  end_whole (sa);
}

static void
assert_no_more_than_credit (struct array *a)
{
  list_for_each (l, &a->ops) {
    const struct op *op = list_item (l, struct op, link);
    unsigned nr = 0;

    for (unsigned r = 0; r < a->n; r++) {
      const struct op_role *o = &op->role[r];

      nr += (o->old != NULL) + (o->made && o->made != o->old);
    }
    assert_in_range (nr, 0, op->credit);
  }
}

/* With another bad block in each role all of them are read and made. */
static void
test_cells_for_bad_blocks (void **state)
{
  struct sim_array *sa = start_full (2, 1, CHUNK, 8);
  struct sim_request *q[3];
  bool over;

  for (unsigned i = 0; i < 3; i++)
    sa->disk[i]->min_delay_ns = sa->disk[i]->max_delay_ns = 1000000;
  open_again (sa, ~0, true);
  for (unsigned i = 0; i < 3; i++) {
    for (unsigned role = 0; role < 3; role++)
      sim_disk_set_bad (disk_of_role (sa, i, role),
                        place (sa, i, role * BLOCK_LEN), BLOCK_LEN);
    q[i] = start_request (sa, REQUEST_READ, back + i * 2 * CHUNK,
                          (uint64_t) i * 2 * CHUNK, 2 * CHUNK, 0);
  }
  do {
    assert_true (sim_step (sa->sim));
    assert_no_more_than_credit (sa->a);
    over = true;
    for (unsigned i = 0; i < 3; i++)
      over &= q[i]->state == SIM_IDLE;
  } while (!over);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal (q[i]->r.error, 0);
    free (q[i]);
  }
  assert_memory_equal (back, data, 3 * 2 * CHUNK);
  end_whole (sa);
}

static void
test_many_read_errors_eject (void **state)
{
  struct sim_array *sa = start_full (3, 2, CHUNK, 64);
  struct sim_disk *d = sa->disk[1];

  open_again (sa, ~0, true);
  d->read_error_ppm = 1000000;
  for (unsigned i = 0; i < 64; i++)
    check_range (sa, i * 3 * CHUNK, 3 * CHUNK);
  d->read_error_ppm = 0;
  assert_true (sim_array_pause (sa, SECOND));
  assert_int_equal (sa->a->lost_slots, BIT (1));
  end_degraded (sa);
}

/* Within a minute, or about one. */
static void
test_few_read_errors (void **state)
{
  struct sim_array *sa = start_full (3, 2, CHUNK, 64);
  struct sim_disk *d = sa->disk[1];

  open_again (sa, ~0, true);
  for (unsigned i = 0, n = 0; n < 4; n++) {
    const struct seat *s = sa->a->at[1][0];
    const uint64_t before = s->nr_errors;

    d->read_error_ppm = 1000000;
    while (s->nr_errors - before < 6) {
      assert_int_equal (sa->a->lost_slots, 0);
      check_range (sa, i++ % 64 * 3 * CHUNK, 4096);
    }
    d->read_error_ppm = 0;
    assert_true (sim_array_pause (sa, 100 * SECOND));
  }
  assert_int_equal (sa->a->lost_slots, 0);
  end_whole (sa);
}

/* What is read of it may be gone with the power. */
static void
test_unflushed_is_missing (void **state)
{
  struct sim_array *sa = start_full (3, 2, CHUNK, 16);

  assert_true (sim_array_stop (sa));
  sa->disk[1]->flush_error_ppm = 1000000;
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, true), 0);
  assert_int_equal (sa->a->lost_slots, BIT (1));
  check_all (sa);
  assert_true (sim_array_stop (sa));
  sa->disk[1]->flush_error_ppm = 0;
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  assert_int_equal (sim_array_writable (sa), 0);
  end_whole (sa);
}

/* A member that was found truncated is out with its first read, write or flush,
 * permanently, and nothing is repaired in it.
 */
static void
truncate_member (enum io_kind found_by)
{
  struct sim_array *sa = start_full (3, 2, CHUNK, 16);
  struct sim_disk *d = sa->disk[1];
  uint8_t *before = malloc (d->size);

  assert_non_null (before);
  open_again (sa, ~0, true);
  memcpy (before, d->image, d->size);
  if (found_by == IO_FLUSH)
    put (sa, 0, 3 * CHUNK, 0);
  atomic_store (&sa->a->at[1][0]->m->truncated, true);
  if (found_by == IO_READ)
    check_range (sa, 0, 5 * 3 * CHUNK);
  else if (found_by == IO_WRITE)
    put (sa, 0, 3 * CHUNK, ARRAY_FUA);
  else
    assert_int_equal (sim_array_flush (sa), 0);
  assert_true (sim_array_pause (sa, SECOND));
  assert_int_equal (sa->a->lost_slots, BIT (1));
  check_all (sa);
  put (sa, 100, sa->g.size - 200, ARRAY_FUA);
  check_all (sa);
  assert_int_equal (sa->a->counters.repaired_blocks, 0);
  assert_memory_equal (before, d->image, d->size);

  open_again (sa, ~0, true);
  assert_int_equal (sa->a->lost_slots, BIT (1));
  check_all (sa);
  assert_memory_equal (before, d->image, d->size);
  free (before);
  end_degraded (sa);
}

static void
test_truncated_member_is_out (void **state)
{
  truncate_member (IO_READ);
  truncate_member (IO_WRITE);
  truncate_member (IO_FLUSH);
}

/* Nothing is acknowledged before the record without a member that
 * missed the write is in force: at whatever moment it crashes.
 */
static void
fail_write_and_crash (unsigned moment, bool flush_error)
{
  struct sim_array *sa = start_full (2, 2, CHUNK, 8);
  struct sim_disk *d = sa->disk[2];
  bool acked;
  int err;

  if (flush_error)
    d->flush_error_ppm = 1000000;
  else
    d->write_error_ppm = 1000000;
  sim_crash_after (sa->sim, moment);
  for (uint64_t i = 0; i < 2 * CHUNK; i++)
    back[i] = data[i] ^ 0xff;
  err = sim_array_write (sa, back, 2 * CHUNK, 0, ARRAY_FUA);
  acked = err == 0;
  assert_true (err == 0 || err == -1);
  if (acked) {
    memcpy (data, back, 2 * CHUNK);
    assert_int_equal (sa->a->lost_slots, BIT (2));
  }
  crash_array (sa);
  d->flush_error_ppm = d->write_error_ppm = 0;
  if (sim_array_open (sa, ~0, DEGRADED_ALLOW, false) == -1)
    assert_int_equal (sim_array_open (sa, ~0, DEGRADED_FORCE, false), 0);
  assert_int_equal (sim_array_writable (sa), 0);
  if (acked)
    check_all (sa);
  else
    check_range (sa, 2 * CHUNK, sa->g.size - 2 * CHUNK);
  end_degraded (sa);
}

/* A write that fails once is tried again. */
static void
test_write_is_tried_again (void **state)
{
  struct sim_array *sa = start_full (3, 2, CHUNK, 64);
  struct sim_disk *d = sa->disk[1];

  put (sa, 0, 1, ARRAY_FUA);            /* marks the region */
  for (unsigned i = 0; i < 20; i++) {
    d->write_errors = 1;
    put (sa, i * 3 * CHUNK, 3 * CHUNK, ARRAY_FUA);
    assert_int_equal (d->write_errors, 0);
  }
  assert_int_equal (sa->a->lost_slots, 0);
  end_whole (sa);
}

static void
test_write_error_ejects (void **state)
{
  for (unsigned moment = 1; moment < 120; moment += 1 + moment / 30)
    fail_write_and_crash (moment, false);
}

static void
test_flush_error_ejects (void **state)
{
  for (unsigned moment = 1; moment < 120; moment += 1 + moment / 30)
    fail_write_and_crash (moment, true);
}

static void
test_too_many_losses (void **state)
{
  struct sim_array *sa = start_full (3, 1, CHUNK, 8);

  open_again (sa, ~0, true);
  sa->disk[0]->dead = true;
  put (sa, 0, 3 * CHUNK, ARRAY_FUA);
  check_all (sa);
  sa->disk[2]->dead = true;
  assert_int_equal (sim_array_write (sa, data, 3 * CHUNK, 3 * CHUNK,
                                     ARRAY_FUA), EIO);
  assert_int_equal (sim_array_write (sa, data, 100, 0, 0), EIO);
  assert_int_equal (sim_array_flush (sa), EIO);
  assert_int_equal (sim_array_zero (sa, 3 * CHUNK, 0, 0), EIO);
  assert_true (sim_array_stop (sa));
  /* They were only out of reach: what was acknowledged is there. */
  sa->disk[0]->dead = sa->disk[2]->dead = false;
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_FORCE, false), 0);
  assert_int_equal (sim_array_writable (sa), 0);
  check_range (sa, 0, 3 * CHUNK);
  check_range (sa, 2 * 3 * CHUNK, 6 * 3 * CHUNK);
  end_degraded (sa);
}

/* Members that can't be read are not taken out where too few would remain. */
static void
test_reads_fail_without_redundancy (void **state)
{
  struct sim_array *sa = start_full (3, 1, CHUNK, 8);

  open_again (sa, ~0, true);
  assert_int_equal (sim_array_fail (sa, 0), 0);
  assert_true (sim_array_pause (sa, 10 * SECOND));
  sa->disk[2]->dead = true;
  assert_int_equal (sim_array_read (sa, back, 3 * CHUNK, 0), EIO);
  sa->disk[2]->dead = false;
  assert_int_equal (sa->a->lost_slots, BIT (0));
  assert_false (sa->a->failed);
  end_degraded (sa);
}

static void
test_hang_is_worked_around (void **state)
{
  struct sim_array *sa = start_full (3, 2, CHUNK, 8);
  uint64_t before;

  open_again (sa, ~0, true);
  sim_disk_hang (sa->disk[1], true);
  sim_disk_hang (sa->disk[3], true);
  before = sim_now (sa->sim);
  check_all (sa);
  assert_true (sim_now (sa->sim) - before < 20 * SECOND);
  assert_int_equal (sa->a->lost_slots, 0);
  sim_disk_hang (sa->disk[1], false);
  sim_disk_hang (sa->disk[3], false);
  assert_true (sim_array_pause (sa, SECOND));
  end_whole (sa);
}

/* What was under way when a member was taken out is no error of it. */
static void
test_only_before_it_is_out (void **state)
{
  struct sim_array *sa = start_full (3, 2, CHUNK, 8);
  const struct seat *s = sa->a->at[1][0];
  struct sim_request *q;
  struct array_status st;

  q = start_request (sa, REQUEST_WRITE, data, 0, 3 * CHUNK, ARRAY_FUA);
  sa->disk[1]->write_error_ppm = 1000000;
  sim_disk_hang (sa->disk[1], true);
  assert_true (sim_array_pause (sa, SECOND / 10));
  assert_int_not_equal (atomic_load (&s->users), 0);
  assert_int_equal (sim_array_fail (sa, 1), 0);
  sim_disk_hang (sa->disk[1], false);
  assert_true (sim_array_pause (sa, 10 * SECOND));
  assert_int_equal (q->state, SIM_IDLE);
  assert_int_equal (q->r.error, 0);
  free (q);
  array_get_status (sa->a, &st);
  assert_int_equal (st.entry[1].errors, 0);
  array_status_free (&st);
  end_degraded (sa);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_bad_block_is_repaired),
    cmocka_unit_test (test_bad_block_under_a_write),
    cmocka_unit_test (test_cells_for_bad_blocks),
    cmocka_unit_test (test_many_read_errors_eject),
    cmocka_unit_test (test_few_read_errors),
    cmocka_unit_test (test_unflushed_is_missing),
    cmocka_unit_test (test_truncated_member_is_out),
    cmocka_unit_test (test_write_is_tried_again),
    cmocka_unit_test (test_write_error_ejects),
    cmocka_unit_test (test_flush_error_ejects),
    cmocka_unit_test (test_too_many_losses),
    cmocka_unit_test (test_reads_fail_without_redundancy),
    cmocka_unit_test (test_hang_is_worked_around),
    cmocka_unit_test (test_only_before_it_is_out),
  };

  return cmocka_run_group_tests (tests, NULL, free_data);
}
