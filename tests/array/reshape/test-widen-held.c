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

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_end_rests),
  };

  widen_limits ();
  return cmocka_run_group_tests (tests, setup_both, free_data);
}
