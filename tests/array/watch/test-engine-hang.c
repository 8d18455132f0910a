/* gpuraid: members that do not answer.
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

#include "array/main-loop.h"
#include "common/bits.h"
#include "tests/engine-array.h"

#define SLOT 1u                 /* whose member hangs */

static void
pass (struct sim_array *sa, uint64_t ns)
{
  assert_true (sim_array_pause (sa, ns));
}

static void
expect_done (struct sim_request *q)
{
  assert_int_equal (q->state, SIM_IDLE);
  assert_int_equal (q->r.error, 0);
  free (q);
}

/* Address of a chunk that is data in a slot. */
static uint64_t
data_of_slot (struct sim_array *sa, uint64_t stripe, unsigned slot)
{
  while (layout_role (&sa->g, stripe, slot) >= sa->g.k)
    stripe++;
  return layout_address (&sa->g, stripe, layout_role (&sa->g, stripe, slot),
                         0);
}

static struct sim_array *
start_hung (bool marked)
{
  struct sim_array *sa = start_full (4, 2, CHUNK, 400);

  sa->cache_len = 4 << 20;
  open_again (sa, ~0, true);
  if (marked)
    put (sa, 0, 4096, ARRAY_FUA);
  sim_disk_hang (sim_array_disk_at (sa, SLOT), true);
  return sa;
}

static void
end_hung (struct sim_array *sa, unsigned disk)
{
  assert_int_equal (sa->a->lost_slots, BIT (SLOT));
  check_all (sa);
  sim_disk_hang (sa->disk[disk], false);
  pass (sa, SECOND);
  check_all (sa);
  end_degraded (sa);
}

/* As many writes as use every credit that they may. */
static void
start_writes (struct sim_array *sa, struct sim_request *w[64])
{
  for (unsigned i = 0; i < 64; i++)
    w[i] = start_request (sa, REQUEST_WRITE, data + i * 4 * CHUNK,
                          (uint64_t) i * 4 * CHUNK, 4 * CHUNK, 0);
  pass (sa, 3 * SECOND);
}

static void
end_writes (struct sim_request *w[64])
{
  for (unsigned i = 0; i < 64; i++)
    expect_done (w[i]);
}

/* Readers avoid it while writes wait for it. */
static void
test_reads_do_not_wait_for_writes (void **state)
{
  struct sim_array *sa = start_hung (true);
  const unsigned disk = SLOT;
  struct sim_request *w[64], *r[2], *stuck;
  uint8_t block[4096];

  start_writes (sa, w);
  /* A thread that is in a read of the member stays there; others avoid it once
   * that has taken long.
   */
  stuck = start_request (sa, REQUEST_READ, block,
                         data_of_slot (sa, 310, SLOT), 4096, 0);
  pass (sa, 3 * SECOND);
  assert_true (stuck->held);
  for (unsigned i = 0; i < 2; i++)
    r[i] = start_request (sa, REQUEST_READ, back + i * 4096,
                          data_of_slot (sa, 300, SLOT + i), 4096, 0);
  pass (sa, 3 * SECOND);
  assert_int_equal (sa->a->lost_slots, 0);
  for (unsigned i = 0; i < 2; i++) {
    assert_memory_equal (back + i * 4096,
                         data + data_of_slot (sa, 300, SLOT + i), 4096);
    expect_done (r[i]);
  }
  pass (sa, 40 * SECOND);
  end_writes (w);
  sim_disk_hang (sa->disk[disk], false);
  pass (sa, SECOND);
  expect_done (stuck);
  end_hung (sa, disk);
}

/* A write-out of a block takes a quarter of the credit of one of a stripe: then
 * the cells that it reads and makes are parts of a cell.
 */
static void
test_small_writes_take_less (void **state)
{
  struct sim_array *sa = start_hung (true);
  const unsigned disk = SLOT, all = 4 * MIB / CHUNK / 2;
  const unsigned most = (all - all / 4) / 8;
  struct sim_request *w[64];

  start_writes (sa, w);
  assert_int_equal (sa->a->nr_ops, most);
  pass (sa, 40 * SECOND);
  end_writes (w);
  end_hung (sa, disk);

  sa = start_hung (true);
  for (unsigned i = 0; i < 64; i++) {
    const uint64_t off = i * 4 * CHUNK + i % 4 * CHUNK + i % 3 * 4096;

    data[off] ^= 0xff;
    w[i] = start_request (sa, REQUEST_WRITE, data + off, off, 4096, 0);
  }
  pass (sa, 3 * SECOND);
  /* Not all of them write to that member. */
  assert_in_range (sa->a->nr_ops, 3 * most, 4 * most);
  assert_int_equal (sa->a->credit, 2 * sa->a->nr_ops);
  pass (sa, 40 * SECOND);
  end_writes (w);
  end_hung (sa, disk);
}

/* It is on its way out then: the command waits for the same record. */
static struct sim_request *
fail_again (const struct sim_request *f)
{
  struct sim_request *again = calloc (1, sizeof *again);

  assert_non_null (again);
  sim_command_init (again, f->sa, COMMAND_FAIL);
  again->r.command.seat = f->r.command.seat;
  again->r.command.why = f->r.command.why;
  again->done = ignore_end;
  sim_request_start (again);
  return again;
}

/* "fail" returns, and everything that waited for the member continues: pages of
 * dirty bits too.
 */
static void
fail_hung (bool marked, bool writes)
{
  struct sim_array *sa = start_hung (marked);
  struct sim_request *w[64], *f, *again, *flush, *fua;
  static char why[ARRAY_WHY_LEN];

  sa->a->timeout_ns = 10000 * SECOND;
  if (writes)
    start_writes (sa, w);
  f = calloc (1, sizeof *f);
  assert_non_null (f);
  sim_command_init (f, sa, COMMAND_FAIL);
  f->r.command.seat = sa->a->at[SLOT][0];
  f->r.command.why = why;
  f->done = ignore_end;
  sim_request_start (f);
  again = fail_again (f);
  pass (sa, 3 * SECOND);
  /* Whichever came first. */
  assert_true (f->r.command.already != again->r.command.already);
  expect_done (f);
  expect_done (again);
  flush = start_request (sa, REQUEST_FLUSH, NULL, 0, 0, 0);
  fua = start_request (sa, REQUEST_WRITE, data + 350 * 4 * CHUNK,
                       (uint64_t) 350 * 4 * CHUNK, 4096, ARRAY_FUA);
  pass (sa, 3 * SECOND);
  expect_done (flush);
  expect_done (fua);
  if (writes)
    end_writes (w);
  end_hung (sa, SLOT);
}

static void
test_fail (void **state)
{
  for (unsigned i = 0; i < 4; i++)
    fail_hung (i & 1, i & 2);
}

/* It hangs while a change is being written to it. */
static void
test_fail_in_a_change (void **state)
{
  struct sim_array *sa = start_hung (true);
  struct sim_request *f;
  const unsigned n = sim_array_add_disk (sa);
  struct sim_request *rep = calloc (1, sizeof *rep);

  assert_non_null (rep);
  sa->a->timeout_ns = 10000 * SECOND;
  sim_array_init_replace (rep, sa, 3, n);
  rep->done = ignore_end;
  sim_request_start (rep);
  pass (sa, SECOND);
  assert_non_null (sa->a->change);
  /* As the command does first, and a client that connects. */
  f = start_writable (sa);
  pass (sa, SECOND);
  expect_done (f);
  f = calloc (1, sizeof *f);
  assert_non_null (f);
  sim_command_init (f, sa, COMMAND_FAIL);
  f->r.command.seat = sa->a->at[SLOT][0];
  f->done = ignore_end;
  sim_request_start (f);
  pass (sa, 3 * SECOND);
  expect_done (f);
  expect_done (rep);
  assert_true (sim_array_settle (sa, 100 * SECOND));
  end_hung (sa, SLOT);
}

/* The timeout does it by itself, and no sooner. */
static void
test_timeout (void **state)
{
  struct sim_array *sa = start_hung (true);
  struct sim_request *w;

  sa->a->timeout_ns = 20 * SECOND;
  w = start_request (sa, REQUEST_WRITE, data, 0, 8 * CHUNK, ARRAY_FUA);
  pass (sa, 19 * SECOND);
  assert_int_equal (w->state, SIM_WAITS);
  assert_int_equal (sa->a->lost_slots, 0);
  pass (sa, 5 * SECOND);
  expect_done (w);
  end_hung (sa, SLOT);
}

static void
none_is_overdue (struct sim_array *sa, unsigned nr_steps)
{
  while (nr_steps-- > 0) {
    assert_true (sim_step (sa->sim));
    for (unsigned i = 0; i < sa->a->nr_seats; i++)
      assert_false (sa->a->seat[i]->overdue);
  }
  assert_int_equal (sa->a->lost_slots, 0);
}

/* The process is stopped for longer than that while it writes: what was
 * answered meanwhile is read before anything is judged.
 */
static void
test_pause (void **state)
{
  for (unsigned i = 0; i < 20; i++) {
    struct sim_array *sa = start_full (4, 2, CHUNK, 40);
    struct sim_request *w;

    sa->a->timeout_ns = 2 * SECOND;
    sa->disk[0]->min_delay_ns = sa->disk[0]->max_delay_ns = 1800000000;
    sa->disk[1]->min_delay_ns = sa->disk[1]->max_delay_ns = 500000000;
    w = start_request (sa, REQUEST_WRITE, data, 0, 8 * CHUNK, ARRAY_FUA);
    while (w->state != SIM_IDLE) {
      pass (sa, i * SECOND / 10 + SECOND / 100);
      sim_pause (sa->sim, (1 + i) * SECOND);
      none_is_overdue (sa, 20);
    }
    expect_done (w);
    end_whole (sa);
  }
}

/* A member that hangs has as long as without the pause. */
static void
test_pause_and_hang (void **state)
{
  struct sim_array *sa = start_hung (true);
  struct sim_request *w;

  sa->a->timeout_ns = 20 * SECOND;
  w = start_request (sa, REQUEST_WRITE, data, 0, 8 * CHUNK, ARRAY_FUA);
  pass (sa, 10 * SECOND);
  sim_pause (sa->sim, 1000 * SECOND);
  pass (sa, 8 * SECOND);
  assert_int_equal (w->state, SIM_WAITS);
  assert_int_equal (sa->a->lost_slots, 0);
  pass (sa, 6 * SECOND);
  expect_done (w);
  end_hung (sa, SLOT);
}

/* All hang together, perhaps on one server: no member is taken out, and when it
 * answers again all continue.
 */
static void
test_all_hang (void **state)
{
  struct sim_array *sa = start_full (4, 2, CHUNK, 40);
  struct sim_request *w;

  for (unsigned i = 0; i < 6; i++)
    sim_disk_hang (sa->disk[i], true);
  w = start_request (sa, REQUEST_WRITE, data, 0, 8 * CHUNK, ARRAY_FUA);
  pass (sa, 100 * SECOND);
  assert_int_equal (w->state, SIM_WAITS);
  for (unsigned i = 0; i < 6; i++)
    sim_disk_hang (sa->disk[i], false);
  pass (sa, SECOND);
  expect_done (w);
  assert_int_equal (sa->a->lost_slots, 0);
  end_whole (sa);
}

/* More hang than may fail, and they come back one after another: that enough
 * are there again is no reason to take out the last of them at once.
 */
static void
test_come_back_in_turn (void **state)
{
  struct sim_array *sa = start_full (4, 2, CHUNK, 40);
  struct sim_request *w;

  sa->a->timeout_ns = 20 * SECOND;
  for (unsigned i = 0; i < 3; i++)
    sim_disk_hang (sa->disk[i], true);
  w = start_request (sa, REQUEST_WRITE, data, 0, 8 * CHUNK, ARRAY_FUA);
  pass (sa, 100 * SECOND);
  for (unsigned i = 0; i < 2; i++) {
    assert_int_equal (w->state, SIM_WAITS);
    sim_disk_hang (sa->disk[i], false);
    pass (sa, 8 * SECOND);
    assert_int_equal (sa->a->lost_slots, 0);
  }
  pass (sa, 10 * SECOND);
  expect_done (w);
  assert_int_equal (sa->a->lost_slots, 1 << sa->a->seat[2]->slot);
  sim_disk_hang (sa->disk[2], false);
  pass (sa, SECOND);
  end_degraded (sa);
}

/* One after another they lose their servers, of which the first is overdue
 * alone: it is not taken out, as the others are known to be away.
 */
static void
test_go_in_turn (void **state)
{
  struct sim_array *sa = start_full (4, 2, CHUNK, 40);
  struct sim_request *w;

  sa->a->timeout_ns = 20 * SECOND;
  sim_disk_hang (sa->disk[0], true);
  w = start_request (sa, REQUEST_WRITE, data, 0, 8 * CHUNK, ARRAY_FUA);
  pass (sa, 15 * SECOND);
  for (unsigned i = 0; i < 3; i++)
    atomic_store (&sa->a->seat[i]->m->away, true);
  pass (sa, 100 * SECOND);
  assert_int_equal (w->state, SIM_WAITS);
  assert_int_equal (sa->a->lost_slots, 0);
  for (unsigned i = 0; i < 3; i++)
    atomic_store (&sa->a->seat[i]->m->away, false);
  sim_disk_hang (sa->disk[0], false);
  pass (sa, SECOND);
  expect_done (w);
  end_whole (sa);
}

/* They stop together, and only one of them is owed an answer, to a flush: the
 * others have nothing to write.
 */
static void
test_idle_hang_too (void **state)
{
  struct sim_array *sa = start_full (4, 2, CHUNK, 40);
  struct sim_request *f;
  unsigned nr = 0;

  sa->a->timeout_ns = 2 * SECOND;
  put (sa, 3 * 4 * CHUNK, 4096, 0);
  pass (sa, 2 * SECOND);
  for (unsigned role = 1; role < 5; role++)
    sim_disk_hang (disk_of_role (sa, 3, role), true);
  f = start_request (sa, REQUEST_FLUSH, NULL, 0, 0, 0);
  pass (sa, 5 * SECOND);
  for (unsigned i = 0; i < sa->a->nr_seats; i++)
    nr += sa->a->seat[i]->overdue;
  assert_int_equal (nr, 1);
  pass (sa, 100 * SECOND);
  assert_int_equal (f->state, SIM_WAITS);
  assert_int_equal (sa->a->lost_slots, 0);
  for (unsigned i = 0; i < 6; i++)
    sim_disk_hang (sa->disk[i], false);
  pass (sa, SECOND);
  expect_done (f);
  assert_int_equal (sa->a->lost_slots, 0);
  end_whole (sa);
}

/* Members that are slow answer all the time. */
static void
test_slow_is_not_overdue (void **state)
{
  struct sim_array *sa = start_full (4, 2, CHUNK, 400);

  sa->a->timeout_ns = 2 * SECOND;
  for (unsigned i = 0; i < 2; i++)
    sa->disk[i]->min_delay_ns = sa->disk[i]->max_delay_ns = SECOND;
  put (sa, 0, sa->g.size, 0);
  assert_int_equal (sim_array_flush (sa), 0);
  assert_int_equal (sa->a->lost_slots, 0);
  end_whole (sa);
}

/* Where no redundancy would remain it is waited for. */
static void
test_timeout_needs_redundancy (void **state)
{
  struct sim_array *sa = start_full (2, 1, CHUNK, 40);
  struct sim_request *w;

  assert_int_equal (sim_array_fail (sa, 0), 0);
  sim_disk_hang (sim_array_disk_at (sa, SLOT), true);
  w = start_request (sa, REQUEST_WRITE, data, 0, 8 * CHUNK, ARRAY_FUA);
  pass (sa, 100 * SECOND);
  assert_int_equal (w->state, SIM_WAITS);
  assert_false (sa->a->failed);
  sim_disk_hang (sim_array_disk_at (sa, SLOT), false);
  pass (sa, SECOND);
  expect_done (w);
  check_all (sa);
  end_degraded (sa);
}

/* A stop does not wait for a member that is out. */
static void
test_stop (void **state)
{
  struct sim_array *sa = start_hung (true);
  uint64_t end;

  put (sa, 0, 100 * CHUNK, 0);
  assert_int_equal (sim_array_fail (sa, SLOT), 0);
  assert_int_equal (sim_array_flush (sa), 0);
  end = sim_now (sa->sim) + 10 * SECOND;
  while (!stop_step (sa->a)) {
    assert_true (sim_now (sa->sim) < end);
    assert_true (sim_step (sa->sim));
  }
  assert_true (atomic_load (&sa->a->seat[SLOT]->users) > 0);
  sim_disk_hang (sa->disk[SLOT], false);
  pass (sa, SECOND);
  end_degraded (sa);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_reads_do_not_wait_for_writes),
    cmocka_unit_test (test_small_writes_take_less),
    cmocka_unit_test (test_fail),
    cmocka_unit_test (test_fail_in_a_change),
    cmocka_unit_test (test_timeout),
    cmocka_unit_test (test_pause),
    cmocka_unit_test (test_pause_and_hang),
    cmocka_unit_test (test_all_hang),
    cmocka_unit_test (test_come_back_in_turn),
    cmocka_unit_test (test_go_in_turn),
    cmocka_unit_test (test_idle_hang_too),
    cmocka_unit_test (test_slow_is_not_overdue),
    cmocka_unit_test (test_timeout_needs_redundancy),
    cmocka_unit_test (test_stop),
  };

  return cmocka_run_group_tests (tests, NULL, free_data);
}
