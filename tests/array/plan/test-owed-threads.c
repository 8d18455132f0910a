/* gpuraid: reads that begin and end in many threads at once, while one of them
 * hangs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "array/plan/owed.h"
#include "common/threads/clock.h"
#include "common/threads/memory.h"

#define NR_THREADS 3u
#define NR_READS 20000u

static struct owed *o;

static void *
read_many (void *opaque)
{
  for (unsigned i = 0; i < NR_READS; i++) {
    const unsigned group = owed_begin (o, monotonic_ns (), lane_here ());

    owed_is_late (o, monotonic_ns (), 1, 0);
    owed_end (o, group, lane_here ());
  }
  return NULL;
}

static void
run_threads (void)
{
  pthread_t thread[NR_THREADS];

  for (unsigned i = 0; i < NR_THREADS; i++)
    assert_int_equal (pthread_create (&thread[i], NULL, read_many, NULL), 0);
  for (unsigned i = 0; i < NR_THREADS; i++)
    pthread_join (thread[i], NULL);
}

/* What hangs is seen, however many others begin and end, and no read is counted
 * for ever.
 */
static void
test_one_hangs (void **state)
{
  uint64_t since, now;
  unsigned group;

  o = alloc_lines (sizeof *o);
  assert_non_null (o);
  run_threads ();
  for (unsigned i = 0; i < 2; i++)
    owed_end (o, owed_begin (o, monotonic_ns (), 0), 0);
  assert_int_equal (owed_age (o, monotonic_ns ()), 0);

  group = owed_begin (o, monotonic_ns (), 0);
  owed_end (o, owed_begin (o, monotonic_ns (), 1), 1);
  since = monotonic_ns ();
  run_threads ();
  now = monotonic_ns ();
  assert_true (owed_age (o, now) >= now - since);
  owed_end (o, group, 2);
  for (unsigned i = 0; i < 2; i++)
    owed_end (o, owed_begin (o, monotonic_ns (), 0), 0);
  assert_int_equal (owed_age (o, monotonic_ns ()), 0);
  free (o);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_one_hangs),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
