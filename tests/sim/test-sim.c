/* gpuraid: the simulated disks and their clock: the same seed gives the same
 * run, and another one another order.
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
#include <time.h>
#include <cmocka.h>

#include "tests/seed.h"
#include "tests/sim/sim-io.h"

static unsigned first_seed;

/* A run of random I/O, crash included: its trace. */
static uint64_t
random_run (uint64_t seed)
{
  struct sim *sim = sim_new (seed);
  struct sim_disk *d[3];
  struct member *m[3];
  uint64_t trace;

  for (int i = 0; i < 3; ++i) {
    d[i] = sim_disk_new (sim, "disk", SIZE);
    d[i]->read_error_ppm = d[i]->write_error_ppm = 20000;
    m[i] = sim_disk_open (d[i], 0);
  }
  for (int round = 0; round < 5; ++round) {
    struct sim_io t[40];

    if (round == 3)
      sim_crash_after (sim, 1 + sim_below (sim, 60));
    for (int i = 0; i < 40; ++i) {
      sim_io_init (&t[i], m[i % 3], sim_below (sim, 5),
                   sim_below (sim, NR_BLOCKS - 1), 1 + sim_below (sim, 2), i);
      sim_io_submit (sim, &t[i]);
    }
    while (sim_step (sim))
      ;
    if (sim_crashed (sim)) {
      sim_crash (sim);
      for (int i = 0; i < 3; ++i) {
        member_close (m[i]);
        m[i] = sim_disk_open (d[i], 0);
        assert_non_null (m[i]);
      }
    }
    for (int i = 0; i < 40; ++i)
      free (t[i].buf);
  }
  for (int i = 0; i < 3; ++i)
    member_close (m[i]);
  trace = sim_trace (sim);
  sim_free (sim);
  return trace;
}

static void
test_deterministic (void **state)
{
  uint64_t last = 0;

  for (unsigned s = 0; s < 200; ++s) {
    uint64_t trace = random_run (first_seed + s);

    assert_int_equal (trace, random_run (first_seed + s));
    assert_true (trace != last);
    last = trace;
  }
}

/* Reordered: of two I/Os submitted one after the other, each comes first
 * at times; and reads see only what has completed.
 */
static void
test_reorders (void **state)
{
  unsigned first = 0, saw_new = 0;

  for (unsigned s = 0; s < 200; ++s) {
    struct sim *sim = sim_new (first_seed + s);
    struct member *m = sim_disk_open (sim_disk_new (sim, "d", SIZE), 0);
    struct sim_io w, r;

    sim_io_init (&w, m, IO_WRITE, 3, 1, 'w');
    sim_io_init (&r, m, IO_READ, 3, 1, 0);
    sim_io_submit (sim, &w);
    sim_io_submit (sim, &r);
    while (sim_step (sim))
      ;
    assert_true (w.done && r.done && !w.io.error && !r.io.error);
    assert_int_equal (r.buf[0], w.no < r.no ? 'w' : 0);
    first += w.no < r.no;
    saw_new += r.buf[0] == 'w';
    free (w.buf);
    free (r.buf);
    member_close (m);
    sim_free (sim);
  }
  assert_true (first > 50 && first < 150 && first == saw_new);
}

static unsigned nr_fired;
static struct sim *the_sim;
static uint64_t fired_at[8];

static void
fire (struct timer *t)
{
  fired_at[nr_fired++] = sim_now (the_sim);
}

static void
again (void *arg)
{
  fired_at[nr_fired++] = sim_now (the_sim);
  if (nr_fired < 6)
    sim_at (the_sim, 100, again, arg);
}

static void
test_clock (void **state)
{
  struct timer a = { .fire = fire }, b = { .fire = fire };
  struct loop *l;
  uint64_t t0;

  the_sim = sim_new (first_seed);
  l = sim_loop (the_sim);
  t0 = loop_now (l);
  nr_fired = 0;
  loop_timer (l, &a, t0 + 500);
  loop_timer (l, &b, t0 + 300);
  loop_timer (l, &a, t0 + 200);
  sim_at (the_sim, 250, again, NULL);
  while (sim_step (the_sim))
    ;
  assert_int_equal (nr_fired, 6);
  assert_int_equal (fired_at[0], t0 + 200);
  assert_int_equal (fired_at[1], t0 + 250);
  assert_int_equal (fired_at[2], t0 + 300);
  assert_int_equal (fired_at[5], t0 + 550);
  loop_timer (l, &a, t0 + 1000);
  loop_timer (l, &b, t0 + 1000);
  loop_timer (l, &a, 0);
  sim_crash (the_sim);
  assert_false (sim_step (the_sim));
  sim_free (the_sim);
}

/* Fast enough to simulate whole arrays: a stated floor, far below the real
 * speed, so that only a gross mistake fails it.
 */
static void
test_speed (void **state)
{
  clock_t start = clock ();
  unsigned runs = 0;

  while (clock () - start < CLOCKS_PER_SEC / 4) {
    random_run (first_seed + runs);
    ++runs;
  }
  print_message ("%u runs of 200 I/Os in 1/4 s\n", runs);
  assert_true (runs > 25);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_deterministic),
    cmocka_unit_test (test_reorders),
    cmocka_unit_test (test_clock),
    cmocka_unit_test (test_speed),
  };

  first_seed = test_seed (argc > 1 ? argv[1] : NULL);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
