/* gpuraid: what clients do where rows are just being moved.
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

#include "array/engine/place.h"
#include "array/reshape/internal.h"
#include "common/bits.h"
#include "tests/array/reshape/widen-array.h"

/* Not for ever. */
static void
step (struct sim_array *sa)
{
  assert_true (sim_step (sa->sim) && sim_now (sa->sim) < 10000 * SECOND);
}

static void
end_request (struct sim_array *sa, struct sim_request *q)
{
  while (q->state != SIM_IDLE)
    step (sa);
  assert_int_equal (q->r.error, 0);
  free (q);
}

/* The next window, until it is in this phase or a later one, and none after it.
 * False: there is none.
 */
static bool
move_to_phase (struct sim_array *sa, int phase)
{
  struct reshape *r = sa->a->reshape;

  while (sa->a->g.widening && r->phase != WINDOW_NONE)
    step (sa);
  r->not_before = 0;
  while (sa->a->g.widening && (int) r->phase < phase)
    step (sa);
  r->not_before = UINT64_MAX;
  return sa->a->g.widening;
}

static void
move_rest (struct sim_array *sa)
{
  sa->a->reshape->not_before = 0;
  move_all (sa);
  end_whole (sa);
}

static struct sim_request *
start_change (struct sim_array *sa, enum request_kind kind, uint64_t off,
              uint64_t len)
{
  for (uint64_t i = off; i < off + len; i++)
    data[i] = kind == REQUEST_ZERO ? 0 : data[i] + 1 + i % 5;
  return start_request (sa, kind, kind == REQUEST_ZERO ? NULL : data + off,
                        off, len, 0);
}

/* In each window the chunks that it moves are changed; the change comes after
 * it.  Larger ones begin before it and end behind it.
 */
static void
change_in_windows (enum request_kind kind, int phase, unsigned more)
{
  struct sim_array *sa = start_widening (2, 1);
  const uint64_t size = sa->g.size;
  unsigned n = 0;

  widen (sa);
  while (move_to_phase (sa, phase)) {
    const struct reshape_window *w = &sa->a->reshape->window;
    const uint64_t from = w->first * BLOCK_LEN * 3;
    const uint64_t off = from > more * CHUNK ? from - more * CHUNK : 0;
    const uint64_t end = MIN (size, w->end * BLOCK_LEN * 3 + more * CHUNK);
    struct sim_request *q;

    if (off >= end)
      break;
    q = start_change (sa, kind, off, end - off);
    end_request (sa, q);
    check_all (sa);
    n++;
  }
  assert_true (n > 5);
  move_rest (sa);
}

static void
test_writes (void **state)
{
  for (unsigned more = 0; more <= 2; more += 2) {
    change_in_windows (REQUEST_WRITE, WINDOW_NONE + 1, more);
    change_in_windows (REQUEST_WRITE, WINDOW_MOVE, more);
    change_in_windows (REQUEST_WRITE, WINDOW_PLACED, more);
  }
}

static void
test_zeroes (void **state)
{
  for (unsigned more = 0; more <= 4; more += 4) {
    change_in_windows (REQUEST_ZERO, WINDOW_NONE + 1, more);
    change_in_windows (REQUEST_ZERO, WINDOW_MOVE, more);
    change_in_windows (REQUEST_ZERO, WINDOW_PLACED, more);
  }
}

/* A client copies into memory what it writes, for a long time: the window of
 * this chunk begins meanwhile, and waits for it.
 */
static void
test_slow_writes (void **state)
{
  struct sim_array *sa = start_widening (2, 1);
  unsigned n = 0;

  widen (sa);
  while (move_to_phase (sa, WINDOW_NONE)) {
    const uint64_t off = sa->a->g.frontier * BLOCK_LEN * sa->a->g.k;
    struct sim_request *q;

    if (off + CHUNK > sa->g.size)
      break;
    sa->max_pause_ns = SECOND;
    q = start_change (sa, REQUEST_WRITE, off, CHUNK);
    while (q->state == SIM_DECIDES)
      step (sa);
    sa->max_pause_ns = 0;
    (void) move_to_phase (sa, WINDOW_PLACED);
    end_request (sa, q);
    check_all (sa);
    n++;
  }
  assert_true (n > 5);
  move_rest (sa);
}

/* A block was decoded, and is to be stored anew; before that its row is dead:
 * nothing is read or written there.
 */
static void
test_repair (void **state)
{
  struct sim_array *sa = start_widening (2, 1);
  const uint64_t stripe = 17;
  struct sim_disk *d = disk_of_role (sa, stripe, 0);
  const uint64_t row = stripe * CHUNK / BLOCK_LEN;

  sim_disk_set_bad (d, place (sa, stripe, 0), BLOCK_LEN);
  sa->a->repairs_in_flight += 8;        /* others, which last */
  check_range (sa, stripe * 2 * CHUNK, BLOCK_LEN);
  assert_int_equal (sa->a->nr_repairs, 1);
  sa->a->reshape->not_before = UINT64_MAX;
  widen (sa);
  sa->a->reshape->not_before = 0;
  while (!line_is_dead (sa->a, line_of_row (sa->a, row)))
    step (sa);
  sa->a->reshape->not_before = UINT64_MAX;
  while (sa->a->reshape->phase != WINDOW_NONE)
    step (sa);
  assert_true (line_is_dead (sa->a, line_of_row (sa->a, row)));
  sa->a->repairs_in_flight -= 8;
  assert_true (sim_array_pause (sa, SECOND));
  assert_int_equal (sa->a->nr_repairs, 0);
  assert_int_equal (sa->a->counters.repaired_blocks, 0);
  assert_true (sim_disk_is_bad (d, place (sa, stripe, 0), BLOCK_LEN));
  move_rest (sa);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_writes),
    cmocka_unit_test (test_zeroes),
    cmocka_unit_test (test_slow_writes),
    cmocka_unit_test (test_repair),
  };

  widen_limits ();
  return cmocka_run_group_tests_name ("journal, checksums", tests, setup_both,
                                      free_data) +
    cmocka_run_group_tests_name ("journal", tests, setup_journal, free_data);
}
