/* gpuraid: workers: each part is run once, by the right thread, and by as many
 * threads at once as allowed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/bits.h"
#include "gf/cpu/workers.h"

enum { nr_threads = 5, max_parts = 60 };

/* Seconds that a part waits for others, if it must. */
#define PATIENCE 20.0

/* Parts that wait until a number of them are under way at once. */
struct crowd {
  struct work work;             /* first */
  pthread_mutex_t lock;
  pthread_cond_t changed;

  /* lock */
  unsigned wanted;
  unsigned nr, most;            /* now, and of all times */
  unsigned nr_runs[max_parts];  /* of each part */
  unsigned nr_here;             /* by giver */
  pthread_t giver;
  bool done;
};

static void
wait_for_change (struct crowd *c, double seconds)
{
  struct timespec until;

  clock_gettime (CLOCK_REALTIME, &until);
  until.tv_nsec += seconds * 1e9;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  pthread_cond_timedwait (&c->changed, &c->lock, &until);
}

static double
now (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

static void
run_part (struct work *work, size_t part)
{
  struct crowd *c = (struct crowd *) work;
  const double until = now () + PATIENCE;

  pthread_mutex_lock (&c->lock);
  c->nr++;
  c->nr_runs[part]++;
  c->nr_here += pthread_equal (pthread_self (), c->giver) != 0;
  c->most = MAX (c->most, c->nr);
  pthread_cond_broadcast (&c->changed);
  while (c->most < c->wanted && now () < until)
    wait_for_change (c, 0.1);
  /* For more to come than should. */
  if (part % 10 == 0)
    wait_for_change (c, 0.002);
  c->nr--;
  pthread_mutex_unlock (&c->lock);
}

static void
crowd_done (struct work *work)
{
  struct crowd *c = (struct crowd *) work;

  pthread_mutex_lock (&c->lock);
  c->done = true;
  pthread_cond_broadcast (&c->changed);
  pthread_mutex_unlock (&c->lock);
}

static void
crowd_init (struct crowd *c, size_t nr_parts, unsigned wanted)
{
  *c = (struct crowd) {
    .work = { .nr_parts = nr_parts, .run = run_part, .done = crowd_done },
    .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER,
    .wanted = wanted, .giver = pthread_self (),
  };
}

static void
crowd_end (struct crowd *c)
{
  pthread_mutex_lock (&c->lock);
  while (!c->done)
    pthread_cond_wait (&c->changed, &c->lock);
  pthread_mutex_unlock (&c->lock);
  for (size_t i = 0; i < c->work.nr_parts; i++)
    assert_int_equal (c->nr_runs[i], 1);
  pthread_cond_destroy (&c->changed);
  pthread_mutex_destroy (&c->lock);
}

/* How many of its parts this thread ran. */
static unsigned
give_parts (struct workers *w, size_t nr_parts)
{
  struct crowd c;

  crowd_init (&c, nr_parts, 1);
  workers_give (w, &c.work);
  crowd_end (&c);
  return c.nr_here;
}

static void
test_give (void **state)
{
  for (unsigned nr = 0; nr < 4; nr++) {
    struct workers *w = workers_new (nr);

    assert_non_null (w);
    /* None runs yet. */
    assert_int_equal (give_parts (w, 3), 3);
    assert_int_equal (workers_start (w), 0);
    for (size_t n = 1; n <= max_parts; n++)
      assert_int_equal (give_parts (w, n), nr ? 0 : n);
    workers_free (w);
  }
}

/* All workers at once, and the giver where it takes part. */
static void
test_most (void **state)
{
  struct workers *w = workers_new (nr_threads);

  assert_non_null (w);
  assert_int_equal (workers_start (w), 0);
  for (unsigned give = 0; give < 2; give++) {
    const unsigned most = nr_threads + !give;
    struct crowd c;

    crowd_init (&c, max_parts, most);
    (give ? workers_give : workers_run) (w, &c.work);
    crowd_end (&c);
    assert_int_equal (c.most, most);
  }
  workers_free (w);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_give),
    cmocka_unit_test (test_most),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
