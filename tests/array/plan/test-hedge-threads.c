/* gpuraid: reads that are counted while another thread collects them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "array/plan/hedge.h"

/* A thread adds two reads in each round while this one collects: nothing is
 * left behind.
 */
#define NR_ROUNDS 100000u

struct adder {
  struct hedge_fast f;
  atomic_uint round;
};

/* The other thread may have no processor. */
static void
give_way (unsigned n)
{
  if (n % 1000 == 999)
    sched_yield ();
}

static void *
add_fast (void *opaque)
{
  struct adder *x = opaque;

  for (unsigned i = 0; i < NR_ROUNDS; i++) {
    for (unsigned n = 0; atomic_load (&x->round) != i; n++)
      give_way (n);
    hedge_add_fast (&x->f, 4096, 2000);
    hedge_add_fast (&x->f, 4096, 2000);
  }
  return NULL;
}

static void
test_collect (void **state)
{
  struct hedge_member m = { 0 };
  struct adder x = { 0 };
  unsigned bucket = 0, lost = 0;
  pthread_t thread;

  hedge_add_fast (&x.f, 4096, 2000);
  while (atomic_load (&x.f.count[0][bucket]) == 0)
    bucket++;
  hedge_collect (&m, &x.f);

  assert_int_equal (pthread_create (&thread, NULL, add_fast, &x), 0);
  for (unsigned i = 0; i < NR_ROUNDS; i++) {
    uint64_t bytes = 0;

    for (unsigned n = 0; bytes < 2 * 4096; n++) {
      bytes += hedge_collect (&m, &x.f);
      give_way (n);
    }
    /* One more of another length, so that it looks. */
    hedge_add_fast (&x.f, 1 << 20, 2000);
    hedge_collect (&m, &x.f);
    lost += atomic_exchange (&x.f.count[0][bucket], 0);
    atomic_store (&x.round, i + 1);
  }
  assert_int_equal (pthread_join (thread, NULL), 0);
  assert_int_equal (lost, 0);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_collect),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
