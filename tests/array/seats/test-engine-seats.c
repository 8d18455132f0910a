/* gpuraid: members that are present but in no record any more.
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
#include <cmocka.h>

#include "array/seats/seat.h"
#include "tests/engine-array.h"

/* Adds seats up to this number: members that were replaced long ago. */
static void
add_unlisted (struct sim_array *sa, unsigned nr)
{
  const unsigned no = sim_array_add_disk (sa);

  while (sa->a->nr_seats < nr)
    assert_non_null (seat_new (sa->a,
                               sim_disk_open (sa->disk[no], MEMBER_RDONLY),
                               SB_MAX_DEVICES, SLOT_NONE, SEAT_IDLE));
  seats_changed (sa->a);
}

/* The maximum number of members of a server leaves room for a new one. */
static void
test_room_for_another (void **state)
{
  struct sim_array *sa = start_full (2, 1, CHUNK, 8);

  add_unlisted (sa, CONFIG_MAX_MEMBERS);
  for (unsigned slot = 0; slot < 3; slot++) {
    const unsigned new = sim_array_add_disk (sa);

    assert_int_equal (sim_array_replace (sa, slot, new), 0);
    assert_true (sim_array_settle (sa, 100 * SECOND));
    assert_ptr_equal (sim_array_disk_at (sa, slot), sa->disk[new]);
  }
  end_whole (sa);
}

/* No seat is free: a replace is refused, and all else goes on. */
static void
test_no_room (void **state)
{
  struct sim_array *sa = start_full (2, 1, CHUNK, 8);
  const unsigned new = sim_array_add_disk (sa);
  struct sim_request q;
  char why[ARRAY_WHY_LEN] = "";
  uint64_t epoch;

  add_unlisted (sa, MAX_SEATS);
  epoch = sa->a->membership.cur.self.ballot.epoch;
  sim_array_init_replace (&q, sa, 1, new);
  q.r.command.why = why;
  assert_int_equal (sim_array_run (&q), EINVAL);
  assert_string_equal (why, "no room for another member: too many are open; "
                       "start the server again");
  assert_int_equal (sa->a->membership.cur.self.ballot.epoch, epoch);
  member_close (q.r.command.target);

  put (sa, 0, sa->g.size, ARRAY_FUA);
  assert_int_equal (sa->a->irregular_slots, 0);
  end_whole (sa);
}

/* A refused record leaves the seat to the next one. */
static void
test_refused (void **state)
{
  struct sim_array *sa = start_full (2, 1, CHUNK, 8);
  unsigned new = sim_array_add_disk (sa);
  struct sim_request q;

  add_unlisted (sa, MAX_SEATS - 1);
  for (unsigned i = 0; i < 3; i++) {
    sim_array_init_replace (&q, sa, 1, new);
    /* "in use already" */
    q.r.command.uuid = sa->a->membership.device[0].uuid;
    assert_int_equal (sim_array_run (&q), EINVAL);
    member_close (q.r.command.target);
  }
  assert_int_equal (sim_array_replace (sa, 1, new), 0);
  assert_true (sim_array_settle (sa, 100 * SECOND));
  end_whole (sa);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_room_for_another),
    cmocka_unit_test (test_no_room),
    cmocka_unit_test (test_refused),
  };

  return cmocka_run_group_tests (tests, NULL, free_data);
}
