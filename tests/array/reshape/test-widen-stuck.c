/* gpuraid: what clients wrote to rows of which too little can be read stays in
 * memory, and moves from there while an array gets one more data member.
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

#include "array/cache/cache.h"
#include "array/engine/place.h"
#include "array/request/request.h"
#include "array/reshape/internal.h"
#include "tests/array/reshape/widen-array.h"

#define NO 1u                   /* the old row that can't be written */

static struct sim_array *sa;
static bool woken;

static void
woke (struct request *r)
{
  woken = true;
}

static void
write_block (uint64_t off)
{
  memset (data + off, 0xa5, BLOCK_LEN);
  assert_int_equal (sim_array_write (sa, data + off, BLOCK_LEN, off, 0), 0);
}

/* The first block of the row's second chunk and of its parity can't be read.
 * The first and the third are written, and nothing moves yet.
 */
static void
begin_stuck (void)
{
  struct geometry old;

  sa = start_widening (3, 1);
  widen (sa);
  sa->a->sb.paused = true;
  assert_int_equal (sa->a->g.frontier, 0);
  reshape_old (&sa->a->g, &old);
  for (unsigned role = 1; role <= 3; role += 2)
    sim_disk_set_bad (sa->disk[layout_slot (&old, NO, role)],
                      sa->l.data_off + NO * CHUNK, BLOCK_LEN);
  write_block (3 * NO * CHUNK);
  write_block ((3 * NO + 2) * CHUNK);
  assert_int_equal (sim_array_flush (sa), EIO);
  sim_array_pause (sa, SECOND / 10);
  assert_true (line_find (sa->a, NO)->stuck);
}

static enum request_next
decide (struct request *r)
{
  enum request_next n;

  while ((n = request_decide (r)) == REQUEST_WAIT)
    for (woken = false; !woken; )
      assert_true (sim_step (sa->sim));
  return n;
}

/* A client copies to memory while its chunk would move. */
static void
test_copying (void **state)
{
  static uint8_t block[BLOCK_LEN];
  const uint64_t off = 3 * NO * CHUNK;
  struct request r;

  begin_stuck ();
  request_init (&r, sa->a, REQUEST_WRITE);
  memset (block, 0x77, sizeof block);
  memcpy (data + off, block, sizeof block);
  r.buf = block;
  r.off = off;
  r.len = sizeof block;
  r.wake = woke;
  assert_int_equal (decide (&r), REQUEST_COPY);
  sa->a->sb.paused = false;
  sim_array_pause (sa, SECOND);
  (void) request_copy (&r);
  assert_int_equal (decide (&r), REQUEST_END);
  assert_int_equal (r.error, 0);
  assert_int_equal (sim_array_read (sa, back, BLOCK_LEN, off), 0);
  assert_memory_equal (back, block, BLOCK_LEN);
  assert_true (sim_array_abandon (sa));
  sim_array_free (sa);
}

/* One of its chunks has moved: a flush is not told that all is written. */
static void
test_flush (void **state)
{
  struct sim_request *q;

  begin_stuck ();
  sa->a->sb.paused = false;
  while (sa->a->reshape->phase != WINDOW_MOVE || !sa->a->moving.alone)
    assert_true (sim_step (sa->sim));
  q = start_request (sa, REQUEST_FLUSH, NULL, 0, 0, 0);
  while (sa->a->g.frontier == 0)
    assert_true (sim_step (sa->sim));
  sa->a->sb.paused = true;
  while (q->state != SIM_IDLE)
    assert_true (sim_step (sa->sim));
  assert_int_equal (q->r.error, EIO);
  free (q);
  sa->a->sb.paused = false;
  write_block ((3 * NO + 1) * CHUNK);
  move_to (sa, 3 * CHUNK / BLOCK_LEN);
  assert_int_equal (sim_array_flush (sa), 0);
  crash_array (sa);
  open_again (sa, ~0, true);
  assert_int_equal (sim_array_read (sa, back, BLOCK_LEN, (3 * NO + 2) * CHUNK),
                    0);
  assert_memory_equal (back, data + (3 * NO + 2) * CHUNK, BLOCK_LEN);
  assert_true (sim_array_abandon (sa));
  sim_array_free (sa);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_copying),
    cmocka_unit_test (test_flush),
  };

  widen_limits ();
  return cmocka_run_group_tests_name ("journal, checksums", tests, setup_both,
                                      free_data) +
    cmocka_run_group_tests_name ("journal", tests, setup_journal, free_data);
}
