/* gpuraid: an array that gets one more data member, and that has no space.
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

#include "array/engine/place.h"
#include "array/journal/internal.h"
#include "array/journal/txn.h"
#include "array/reshape/internal.h"
#include "common/bits.h"
#include "tests/array/reshape/widen-array.h"

#define K 3u                    /* before */
#define STRIPE (K * CHUNK)
#define CHUNK_ROWS (CHUNK / BLOCK_LEN)
#define NEW (K + 1)             /* disk */

static bool
is_written (const struct array *a, bool alone)
{
  const struct txn *t = a->journal->committing;

  return t && t->moves && a->moving.alone == alone && t->phase == TXN_WRITING;
}

/* The new member is full as rows are being written to it, from this one on at
 * the earliest, of which none had anything there.
 */
static struct sim_array *
start_short (bool alone, uint64_t row)
{
  struct sim_array *sa = start_widening (K, 1);
  struct sim_disk *d;

  widen (sa);
  move_to (sa, row);
  d = sa->disk[NEW];
  memset (d->used + sa->l.data_off / BLOCK_LEN, 0, sa->l.data_len / BLOCK_LEN);
  while (!is_written (sa->a, alone))
    assert_true (sim_step (sa->sim));
  d->full = true;
  return sa;
}

static struct sim_request *
write_to (struct sim_array *sa, uint64_t off)
{
  memset (data + off, 7, BLOCK_LEN);
  return start_request (sa, REQUEST_WRITE, data + off, off, BLOCK_LEN, 0);
}

static int
ended (struct sim_request *q)
{
  const int error = q->r.error;

  assert_int_equal (q->state, SIM_IDLE);
  free (q);
  return error;
}

/* A line that moves alone: reads go on, also of its own chunks, and a flush is
 * told.
 */
static void
alone (uint64_t row)
{
  struct sim_array *sa = start_short (true, row);
  struct sim_request *w = write_to (sa, 30 * STRIPE), *f, *r;

  check_all (sa);
  sim_array_pause (sa, SECOND);
  assert_int_equal (ended (w), 0);
  f = start_request (sa, REQUEST_FLUSH, NULL, 0, 0, 0);
  r = start_request (sa, REQUEST_READ, back, 20 * STRIPE, BLOCK_LEN, 0);
  sim_array_pause (sa, 60 * SECOND);
  assert_int_equal (ended (f), ENOSPC);
  assert_int_equal (ended (r), 0);
  assert_true (sa->a->ops_held);
  sa->disk[NEW]->full = false;
  move_all (sa);
  check_all (sa);
  end_whole (sa);
}

static void
test_alone (void **state)
{
  alone (0);
  alone (CHUNK_ROWS);
}

/* What is written over dead rows is taken back, and no client waits for it: a
 * trim may give it space.
 */
static void
direct (bool crash)
{
  struct sim_array *sa = start_short (false, CHUNK_ROWS);
  struct sim_request *w = write_to (sa, 30 * STRIPE), *f, *t;

  check_all (sa);
  sim_array_pause (sa, 5 * SECOND);
  assert_int_equal (ended (w), 0);
  f = start_request (sa, REQUEST_FLUSH, NULL, 0, 0, 0);
  memset (data + 34 * STRIPE, 0, 2 * STRIPE);
  t = start_request (sa, REQUEST_ZERO, NULL, 34 * STRIPE, 2 * STRIPE,
                     ARRAY_TRIM);
  sim_array_pause (sa, 30 * SECOND);
  assert_int_equal (ended (f), 0);
  assert_int_equal (ended (t), 0);
  assert_int_equal (sa->a->reshape->stopped, ENOSPC);
  check_all (sa);
  sim_array_pause (sa, 300 * SECOND);
  put (sa, line_stripe (sa->a, sa->a->reshape->bad_no) * (K + 1) * CHUNK,
       STRIPE, ARRAY_FUA);
  assert_int_equal (sa->a->reshape->stopped, ENOSPC);
  assert_int_equal (sa->a->g.frontier,
                    line_row (sa->a, sa->a->reshape->bad_no));
  sa->disk[NEW]->full = false;
  if (crash) {
    crash_array (sa);
    open_again (sa, ~BIT (1), false);
    check_all (sa);
    open_again (sa, ~0, true);
    check_all (sa);
  }
  move_all (sa);
  check_all (sa);
  end_whole (sa);
}

static void
test_direct (void **state)
{
  direct (false);
  direct (true);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_alone),
    cmocka_unit_test (test_direct),
  };

  widen_limits ();
  return cmocka_run_group_tests_name ("journal, checksums", tests, setup_both,
                                      free_data) +
    cmocka_run_group_tests_name ("journal", tests, setup_journal, free_data);
}
