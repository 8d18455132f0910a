/* gpuraid: what an array that is widened holds while a member does not answer.
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
#include "array/seats/seat.h"
#include "tests/array/reshape/widen-array.h"

static void
answer_in (struct sim_disk *d, uint64_t ns)
{
  d->min_delay_ns = d->max_delay_ns = ns;
}

static void
step_until_held (struct sim_array *sa, bool held, const struct sim_request *q)
{
  while (sa->a->ops_held != held) {
    assert_true (sim_step (sa->sim));
    assert_int_not_equal (q->state, SIM_IDLE);
  }
}

/* All rows move, and then it waits. */
static void
move_to_last (struct sim_array *sa)
{
  const uint64_t rows = sa->l.data_len / BLOCK_LEN;

  while (sa->a->reshape->window.end < rows)
    assert_true (sim_step (sa->sim));
  sa->a->reshape->not_before = UINT64_MAX;
  move_to (sa, rows);
  assert_true (sa->a->g.widening);
}

/* All rows have moved, and the record that says so waits for a write that does
 * not end: not all the time, as clients wait meanwhile.
 */
static void
test_end_rests (void **state)
{
  struct sim_array *sa = start_widening (2, 1);
  struct sim_request *q;
  uint64_t since;

  widen (sa);
  move_to_last (sa);
  sim_array_pause (sa, 3 * SECOND);
  for (unsigned i = 0; i < 4; i++)
    answer_in (sa->disk[i], 28 * SECOND);
  q = start_request (sa, REQUEST_WRITE, data, 0, CHUNK, ARRAY_FUA);
  sim_array_pause (sa, SECOND);
  sa->a->reshape->not_before = 0;
  step_until_held (sa, true, q);
  step_until_held (sa, false, q);
  since = sim_now (sa->sim);
  step_until_held (sa, true, q);
  assert_true (sim_now (sa->sim) - since >= SECOND / 2);
  for (unsigned i = 0; i < 4; i++)
    answer_in (sa->disk[i], 10000);
  while (q->state != SIM_IDLE)
    assert_true (sim_step (sa->sim));
  assert_int_equal (q->r.error, 0);
  free (q);
  move_all (sa);
  end_whole (sa);
}

/* In the next step the rings begin anew on all members. */
static struct sim_request *
step_to_rings (struct sim_array *sa, unsigned steps)
{
  struct sim_request *q = calloc (1, sizeof *q);
  unsigned i;

  assert_int_equal (sim_array_spare (sa, sim_array_add_disk (sa)), 0);
  sim_command_init (q, sa, COMMAND_WIDEN);
  q->r.command.uuid = sa->a->seat[3]->uuid;
  q->done = ignore_end;
  sim_request_start (q);
  for (i = 0; i < steps && !sa->a->seat[0]->ring_storing; i++)
    assert_true (sim_step (sa->sim));
  assert_int_equal (i, steps);
  return q;
}

static unsigned
count_steps (void)
{
  struct sim_array *sa = start_widening (2, 1);
  struct sim_request *q = step_to_rings (sa, 0);
  unsigned n = 0;

  for (; !sa->a->seat[0]->ring_storing; n++)
    assert_true (sim_step (sa->sim));
  sim_array_abandon (sa);
  sim_array_free (sa);
  free (q);
  return n;
}

/* A header does not come, and the widening is refused: no write ends before it
 * is there, as its record would be missed in a recovery.
 */
static void
test_ring_waits (void **state)
{
  const unsigned steps = count_steps ();
  struct sim_array *sa = start_widening (2, 1);
  struct sim_request *q = step_to_rings (sa, steps - 1), *writes;
  struct sim_disk *d = sa->disk[0];
  const uint64_t min = d->min_delay_ns, max = d->max_delay_ns;

  answer_in (d, 20 * SECOND);
  assert_true (sim_step (sa->sim));
  d->min_delay_ns = min;
  d->max_delay_ns = max;
  while (q->state != SIM_IDLE)
    assert_true (sim_step (sa->sim));
  assert_int_equal (q->r.error, EBUSY);
  assert_true (sa->a->seat[0]->ring_storing);
  memset (data, 0x5a, CHUNK);
  writes = start_request (sa, REQUEST_WRITE, data, 0, CHUNK, ARRAY_FUA);
  while (sa->a->seat[0]->ring_storing) {
    assert_true (sim_step (sa->sim));
    assert_int_not_equal (writes->state, SIM_IDLE);
  }
  while (writes->state != SIM_IDLE)
    assert_true (sim_step (sa->sim));
  assert_int_equal (writes->r.error, 0);
  crash_array (sa);
  open_again (sa, ~0, true);
  check_all (sa);
  free (q);
  free (writes);
  end_whole (sa);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_end_rests),
    cmocka_unit_test (test_ring_waits),
  };

  widen_limits ();
  return cmocka_run_group_tests (tests, setup_both, free_data);
}
