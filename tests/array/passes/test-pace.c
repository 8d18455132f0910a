/* gpuraid: how fast a scrub and a rebuild go: the limit, and clients first.
 *
 * run-tests: no-thread check=plain,address
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

#include "array/passes/pace.h"
#include "array/passes/pass.h"
#include "array/scrub/internal.h"
#include "common/bits.h"
#include "tests/array/scrub/scrub-array.h"

#define MANY 320u                       /* stripes, of a line each */
#define LIMIT (4u << 20)

static void
set_limit (struct sim_array *sa, uint64_t limit)
{
  array_set_rate (sa->a, limit);
  assert_int_equal (status (sa).rate_limit, limit);
}

static bool
is_running (struct sim_array *sa, bool rebuild)
{
  return rebuild ? sa->a->irregular_slots != 0 : status (sa).scrub.running;
}

static unsigned
in_flight (struct sim_array *sa)
{
  return sa->a->scrub->nr_lines + sa->a->pass->in_flight;
}

static void
start (struct sim_array *sa, bool rebuild)
{
  if (rebuild)
    assert_int_equal (sim_array_replace (sa, 1, sim_array_add_disk (sa)), 0);
  else
    begin (sa, false);
}

static void
run_to_end (struct sim_array *sa, bool rebuild)
{
  while (is_running (sa, rebuild))
    assert_true (sim_step (sa->sim));
}

/* Without clients, ns. */
static uint64_t
time_of (struct sim_array *sa, bool rebuild)
{
  const uint64_t began = sim_now (sa->sim);

  start (sa, rebuild);
  run_to_end (sa, rebuild);
  return sim_now (sa->sim) - began;
}

static void
test_limit (void **state)
{
  for (unsigned rebuild = 0; rebuild < 2; rebuild++) {
    struct sim_array *sa = start_many_with_sums (3, 2, MANY);
    const uint64_t least = sa->l.data_len * SECOND / LIMIT;
    uint64_t ns;

    assert_true (time_of (sa, rebuild) < least / 2);
    set_limit (sa, LIMIT);
    ns = time_of (sa, rebuild);
    assert_true (ns > least * 9 / 10);
    assert_true (ns < least * 12 / 10);
    set_limit (sa, 0);
    assert_true (time_of (sa, rebuild) < least / 2);
    end_whole (sa);
  }
}

/* It counts at once, also if the old one would have waited for long. */
static void
test_limit_changes (void **state)
{
  for (unsigned rebuild = 0; rebuild < 2; rebuild++) {
    struct sim_array *sa = start_many_with_sums (3, 2, MANY);
    uint64_t began, done;

    set_limit (sa, 1);
    start (sa, rebuild);
    assert_true (sim_array_pause (sa, 5 * SECOND));
    assert_true (is_running (sa, rebuild));
    done = sa->a->scrub->done_len + sa->a->pass->done;
    assert_true (done > 0 && done <= 2 * sa->a->cell_len);
    set_limit (sa, LIMIT);
    assert_true (sim_array_pause (sa, SECOND / 2));
    done = sa->a->scrub->done_len + sa->a->pass->done;
    assert_true (done > LIMIT / 3 && done < LIMIT);
    set_limit (sa, 0);
    began = sim_now (sa->sim);
    run_to_end (sa, rebuild);
    assert_true (sim_now (sa->sim) - began < SECOND / 2);
    end_whole (sa);
  }
}

/* A client that reads all the time, a block at a time. */
struct client {
  struct sim_request *q;
  uint64_t busy_ns, all_ns;     /* with lines in flight; all */
};

static void
step (struct sim_array *sa, struct client *c)
{
  const uint64_t before = sim_now (sa->sim);
  const bool busy = in_flight (sa) > 0;

  if (c->q && c->q->state == SIM_IDLE) {
    free (c->q);
    c->q = NULL;
  }
  if (c->q == NULL)
    c->q = start_request (sa, REQUEST_READ, back, before * 4096 %
                          (sa->g.size / 4096 * 4096), 4096, 0);
  assert_true (sim_step (sa->sim));
  c->all_ns += sim_now (sa->sim) - before;
  if (busy)
    c->busy_ns += sim_now (sa->sim) - before;
}

/* They keep 80 %; a burst has some lines. */
static void
test_clients_first (void **state)
{
  for (unsigned rebuild = 0; rebuild < 2; rebuild++) {
    struct sim_array *sa = start_many_with_sums (3, 2, MANY);
    struct client c = { 0 };
    unsigned most = 0;

    sa->cache_len = 16 << 20;
    open_again (sa, ~0, true);
    for (unsigned i = 0; i < 100; i++)
      step (sa, &c);
    c.busy_ns = c.all_ns = 0;
    start (sa, rebuild);
    while (is_running (sa, rebuild)) {
      step (sa, &c);
      most = MAX (most, in_flight (sa));
    }
    assert_true (c.busy_ns < c.all_ns * 22 / 100);
    assert_true (c.busy_ns > c.all_ns * 10 / 100);
    assert_true (most > 8);
    while (c.q->state != SIM_IDLE)
      assert_true (sim_step (sa->sim));
    free (c.q);
    end_whole (sa);
  }
}

/* When they have gone it goes on as before. */
static void
test_clients_gone (void **state)
{
  struct sim_array *sa = start_many_with_sums (3, 2, MANY);
  const uint64_t alone = time_of (sa, false);
  struct client c = { 0 };
  uint64_t began;

  begin (sa, false);
  while (status (sa).scrub.done < sa->l.data_len / 4)
    step (sa, &c);
  while (c.q->state != SIM_IDLE)
    assert_true (sim_step (sa->sim));
  free (c.q);
  began = sim_now (sa->sim);
  run_to_end (sa, false);
  assert_true (sim_now (sa->sim) - began < alone + SECOND / 5);
  end_whole (sa);
}

int
main (void)
{
#define TEST(name) cmocka_unit_test_teardown (name, scrub_usual_limits)
  const struct CMUnitTest tests[] = {
    TEST (test_limit),
    TEST (test_limit_changes),
    TEST (test_clients_first),
    TEST (test_clients_gone),
  };

  return cmocka_run_group_tests (tests, NULL, free_data);
}
