/* gpuraid: reads without the array lock, while another thread closes the seat.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "array/seats/seat.h"
#include "array/seats/unlocked.h"
#include "common/threads/memory.h"

#define NR_ROUNDS 20000u
#define NR_READERS 2u
#define LEN 4096u

static struct array *a;
static struct seat *seat;
static atomic_bool closed;      /* what is read: no read may be under way */
static atomic_bool over;
static atomic_uint nr_wrong, nr_reads;

static void *
read_it (void *opaque)
{
  unsigned bucket;

  while (!atomic_load (&over)) {
    struct seat *s = unlocked_enter (a, 0, &bucket, lane_here ());

    if (s == NULL) {
      sched_yield ();
      continue;
    }
    for (unsigned i = 0; i < 10; i++)
      if (s != seat || atomic_load (&closed))
        atomic_fetch_add (&nr_wrong, 1);
    atomic_fetch_add (&nr_reads, 1);
    unlocked_count (a, LEN, lane_here ());
    seat_pread_ended (s, bucket, lane_here ());
  }
  return NULL;
}

/* As the array does: closed, then without users, then without its member; then
 * it has another one.
 */
static void
close_and_open (unsigned round)
{
  unlocked_close (a, seat);
  while (seat_users (seat) > 0)
    sched_yield ();
  atomic_store (&closed, true);
  if (round % 16 == 0)
    sched_yield ();
  atomic_store (&closed, false);
  unlocked_open (a, 0);
  if (round % 4 == 0)
    sched_yield ();
}

static void
test_close (void **state)
{
  pthread_t thread[NR_READERS];

  a = alloc_lines (sizeof *a);
  seat = alloc_lines (sizeof *seat);
  assert_non_null (a);
  assert_non_null (seat);
  a->n = 1;
  a->at[0][0] = seat;
  unlocked_open (a, 0);
  for (unsigned i = 0; i < NR_READERS; i++)
    assert_int_equal (pthread_create (&thread[i], NULL, read_it, NULL), 0);
  for (unsigned i = 0; i < NR_ROUNDS || atomic_load (&nr_reads) < 100; i++)
    close_and_open (i);
  atomic_store (&over, true);
  for (unsigned i = 0; i < NR_READERS; i++)
    pthread_join (thread[i], NULL);
  assert_int_equal (nr_wrong, 0);
  assert_int_equal (seat_users (seat), 0);
  assert_int_equal (unlocked_reads (a).ops, nr_reads);
  assert_int_equal (unlocked_reads (a).bytes, (uint64_t) nr_reads * LEN);
  free (seat);
  free (a);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_close),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
