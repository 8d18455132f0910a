/* gpuraid test: a journal, and a member whose store is full: where writes in
 * place are held, flush and FUA get ENOSPC and do not hang.
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

#include "tests/array/journal/journal-full.h"

static void
test_full_ring (void **state)
{
  struct sim_array *sa = start_half ();

  fill_ring (sa);
  assert_int_equal (sim_array_flush (sa), ENOSPC);
  put_short (sa, 3 * STRIPE + CHUNK);
  check_each (sa, 0, sa->g.size);
  make_space (sa);
  end_whole (sa);
}

/* New content for a line of which older content is held. */
static void
test_same_line (void **state)
{
  for (unsigned i = 0; i < 2; i++) {
    struct sim_array *sa = start_half ();

    if (i == 1) {
      sim_array_disk_at (sa, 1)->full = false;
      assert_true (sim_array_stop (sa));
      sim_array_free (sa);
      sim_consistency = CONSISTENCY_NONE;
      sa = start_full (2, 1, CHUNK, 8);
      sim_array_disk_at (sa, 1)->full = true;
      memset (sim_array_disk_at (sa, 1)->used, 0, sa->disk_size / SIM_BLOCK);
    }
    put (sa, 5 * STRIPE, STRIPE, i == 0 ? ARRAY_FUA : 0);
    if (i == 0)
      put (sa, 30 * STRIPE, STRIPE, ARRAY_FUA);
    else
      assert_int_equal (sim_array_flush (sa), ENOSPC);
    put_short (sa, i == 0 ? 30 * STRIPE + 4096 : 5 * STRIPE + 4096);
    assert_int_equal (sim_array_flush (sa), ENOSPC);
    make_space (sa);
    end_whole (sa);
  }
}

/* A target waits until the journal is empty, and the writers for the target. */
static void
test_held (void **state)
{
  struct sim_array *sa = start_half ();
  const unsigned n = sim_array_add_disk (sa);
  struct sim_disk *full = sim_array_disk_at (sa, 1);
  const struct seat *s;

  sa->a->window_len = CHUNK;
  full->full = false;
  put (sa, 0, sa->g.size, ARRAY_FUA);
  assert_true (sim_array_pause (sa, 3 * SECOND));
  sim_array_disk_at (sa, 2)->max_delay_ns = 4000000;
  assert_int_equal (sim_array_replace (sa, 0, n), 0);
  do {
    assert_true (sim_array_pause (sa, SECOND / 1000));
    s = sa->a->at[0][1];
    assert_true (s && s->state == SEAT_TARGET && !s->complete);
  } while (s->cursor < 5 * CHUNK);
  full->full = true;
  memset (full->used + place (sa, 2, 0) / SIM_BLOCK, 0, CHUNK / SIM_BLOCK);
  put (sa, 2 * STRIPE, STRIPE, ARRAY_FUA);
  while (!s->complete)
    assert_true (sim_array_pause (sa, SECOND / 1000));
  assert_int_equal (s->state, SEAT_TARGET);
  put_short (sa, 7 * STRIPE);
  assert_int_equal (sim_array_flush (sa), ENOSPC);
  make_space (sa);
  assert_true (sim_array_settle (sa, 100 * SECOND));
  assert_ptr_equal (sim_array_disk_at (sa, 0), sa->disk[n]);
  end_whole (sa);
}

/* A recovery can't be carried out: what it has not written in place is read
 * from the rings.
 */
static void
test_not_ready (void **state)
{
  struct sim_array *sa = start_half ();
  struct sim_request *q;

  put (sa, 30 * STRIPE, STRIPE, ARRAY_FUA);
  crash_array (sa);
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  assert_int_equal (sim_array_writable (sa), 0);
  assert_true (sim_array_pause (sa, 3 * SECOND));
  assert_true (sa->a->at[1][0]->no_space);
  check_each (sa, 0, sa->g.size);
  check_range (sa, 29 * STRIPE, 2 * STRIPE);
  put_short (sa, 3 * STRIPE);
  assert_int_equal (sim_array_flush (sa), ENOSPC);
  q = start_request (sa, REQUEST_ZERO, NULL, 4 * STRIPE, STRIPE, ARRAY_FUA);
  memset (data + 4 * STRIPE, 0, STRIPE);
  assert_true (sim_array_pause (sa, SECOND));
  make_space (sa);
  assert_int_equal (q->state, SIM_IDLE);
  assert_int_equal (q->r.error, 0);
  free (q);
  end_whole (sa);
}

/* Not even superblocks can be written over: clients connect, and read; what
 * they write waits.
 */
static void
test_not_open (void **state)
{
  for (unsigned i = 0; i < 3; i++) {
    struct sim_array *sa = start_half ();
    struct sim_request *q[2];

    if (i == 1) {
      sim_array_disk_at (sa, 1)->full = false;
      put (sa, 30 * STRIPE, STRIPE, ARRAY_FUA);
    }
    put (sa, 10 * STRIPE, STRIPE, ARRAY_FUA);
    crash_array (sa);
    for (unsigned d = 0; d < sa->nr_disks; d++)
      sa->disk[d]->full = sa->disk[d]->cow = i == 2 || d == 1;
    assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
    assert_int_equal (serve (sa), 0);
    assert_int_equal (serve (sa), 0);
    assert_true (sa->a->at[1][0]->no_space);
    assert_false (sa->a->writable);
    check_each (sa, 0, sa->g.size);
    q[0] = start_request (sa, REQUEST_ZERO, NULL, 4 * STRIPE, STRIPE,
                          ARRAY_FUA);
    memset (data + 4 * STRIPE, 0, STRIPE);
    q[1] = start_request (sa, REQUEST_WRITE, data + STRIPE, 7 * STRIPE, STRIPE,
                          ARRAY_FUA);
    memcpy (data + 7 * STRIPE, data + STRIPE, STRIPE);
    assert_true (sim_array_pause (sa, 3 * SECOND));
    assert_false (sa->a->writable);
    check_each (sa, 8 * STRIPE, sa->g.size);
    make_space (sa);
    assert_true (sa->a->writable);
    for (unsigned j = 0; j < 2; j++) {
      assert_int_equal (q[j]->state, SIM_IDLE);
      assert_int_equal (q[j]->r.error, 0);
      free (q[j]);
    }
    assert_int_equal (sim_array_writable (sa), 0);
    end_whole (sa);
  }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_full_ring),
    cmocka_unit_test (test_same_line),
    cmocka_unit_test (test_held),
    cmocka_unit_test (test_not_ready),
    cmocka_unit_test (test_not_open),
  };

  return cmocka_run_group_tests (tests, NULL, free_data);
}
