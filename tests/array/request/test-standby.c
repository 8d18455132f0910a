/* gpuraid: the look at members before the first client that may write.
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

#include "array/request/standby.h"
#include "array/seats/seat.h"
#include "tests/engine-array.h"

#define SLOT 2u

/* One that other hosts reach, and that no client has opened for writing. */
static struct sim_array *
start_standing_by (void)
{
  struct sim_array *sa = start_full (2, 2, CHUNK, 20);

  open_again (sa, 15, false);
  sa->a->was_multihost = true;
  return sa;
}

static void
test_nothing_changed (void **state)
{
  struct sim_array *sa = start_standing_by ();

  assert_int_equal (standby_check (sa->a), 0);
  end_whole (sa);
}

static void
test_another_wrote (void **state)
{
  struct sim_array *sa = start_standing_by ();

  sa->a->found[SLOT].sb[SB_A2].beat++;
  assert_int_equal (standby_check (sa->a), EBUSY);
  assert_non_null (strstr (sa->said, "another server"));
  end_whole (sa);
}

/* Only arrays that other hosts may reach are looked at. */
static void
test_one_host (void **state)
{
  struct sim_array *sa = start_standing_by ();

  sa->a->was_multihost = false;
  sa->a->found[SLOT].sb[SB_A2].beat++;
  assert_int_equal (standby_check (sa->a), 0);
  end_whole (sa);
}

/* A member that is not in use may hang, or be another's. */
static void
test_idle (void **state)
{
  struct sim_array *sa = start_standing_by ();

  sa->a->seat[SLOT]->state = SEAT_IDLE;
  sa->a->found[SLOT].sb[SB_A2].beat++;
  assert_int_equal (standby_check (sa->a), 0);
  sa->a->seat[SLOT]->state = SEAT_ACTIVE;
  end_whole (sa);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_nothing_changed),
    cmocka_unit_test (test_another_wrote),
    cmocka_unit_test (test_one_host),
    cmocka_unit_test (test_idle),
  };

  return cmocka_run_group_tests (tests, NULL, free_data);
}
