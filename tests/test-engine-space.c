/* gpuraid: members whose store is full.
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

#include "array/cache.h"
#include "array/stop.h"
#include "common/bits.h"
#include "tests/engine-array.h"

#define STRIPE (2 * CHUNK)

/* Half of it was written; slot 1's store has no room for the rest. */
static struct sim_array *
start_half (void)
{
  const struct geometry g = { .k = 2, .m = 1, .chunk = CHUNK };
  struct sim_array *sa = sim_array_new (1, &g, 40, 0);

  free_data (NULL);
  data = calloc (1, sa->g.size);
  back = malloc (sa->g.size);
  assert_non_null (data);
  assert_non_null (back);
  sa->cache_len = MAX (4 << 20, sa->cache_len);
  sim_array_create (sa);
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  assert_int_equal (sim_array_writable (sa), 0);
  put (sa, 0, 20 * STRIPE, ARRAY_FUA);
  sim_array_disk_at (sa, 1)->full = true;
  return sa;
}

static bool
is_short (struct sim_array *sa)
{
  struct array_status st;
  bool no_space;

  array_get_status (sa->a, &st);
  no_space = st.entry[1].no_space;
  assert_int_equal (st.state, no_space ? ARRAY_DEGRADED : ARRAY_HEALTHY);
  assert_int_equal (st.reasons, no_space ? ARRAY_WHY_NO_SPACE : 0);
  assert_false (st.entry[0].no_space || st.entry[2].no_space);
  array_status_free (&st);
  return no_space;
}

/* Writes are held; flush and FUA report it; written data stays readable;
 * everything continues when there is space.
 */
static void
test_writes_are_held (void **state)
{
  struct sim_array *sa = start_half ();

  put (sa, 30 * STRIPE, STRIPE, 0);
  assert_int_equal (sim_array_flush (sa), ENOSPC);
  assert_true (is_short (sa));
  for (unsigned i = 0; i < STRIPE; i++)
    data[31 * STRIPE + i] = 3 + i;
  assert_int_equal (sim_array_write (sa, data + 31 * STRIPE, STRIPE,
                                     31 * STRIPE, ARRAY_FUA), ENOSPC);
  check_all (sa);
  /* What needs no new blocks is written as ever. */
  put (sa, 5 * STRIPE, STRIPE, 0);
  assert_true (sim_array_pause (sa, 3 * SECOND));
  assert_int_equal (sa->a->lost_slots, 0);
  assert_false (sa->a->failed);
  sim_array_disk_at (sa, 1)->full = false;
  assert_true (sim_array_pause (sa, SECOND));
  assert_int_equal (sim_array_flush (sa), 0);
  assert_false (is_short (sa));
  end_whole (sa);
}

/* While a retry is under way it is not known whether there is space. */
static void
test_slow_retry (void **state)
{
  struct sim_array *sa = start_half ();

  put (sa, 30 * STRIPE, STRIPE, 0);
  assert_int_equal (sim_array_flush (sa), ENOSPC);
  sim_disk_hang (sim_array_disk_at (sa, 1), true);
  assert_true (sim_array_pause (sa, 3 * SECOND));
  assert_true (is_short (sa));
  sim_disk_hang (sim_array_disk_at (sa, 1), false);
  assert_true (sim_array_pause (sa, SECOND));
  assert_true (is_short (sa));
  sim_array_disk_at (sa, 1)->full = false;
  assert_true (sim_array_pause (sa, SECOND));
  assert_int_equal (sim_array_flush (sa), 0);
  assert_false (is_short (sa));
  end_whole (sa);
}

/* More than there are credits for: a flush gets an error all the same, and
 * overwrites and reads continue when there is space.
 */
static void
test_many_writes_are_held (void **state)
{
  struct sim_array *sa = start_half ();

  sa->cache_len = cache_min_len (&sa->g);
  sim_array_disk_at (sa, 1)->full = false;
  open_again (sa, ~0, true);
  sim_array_disk_at (sa, 1)->full = true;
  for (unsigned i = 0; i < 2; i++)
    put (sa, (30 + i) * STRIPE, 4096, 0);
  assert_int_equal (sim_array_flush (sa), ENOSPC);
  check_range (sa, 0, 20 * STRIPE);
  assert_int_equal (sim_array_flush (sa), ENOSPC);
  sim_array_disk_at (sa, 1)->full = false;
  assert_true (sim_array_pause (sa, SECOND));
  assert_int_equal (sim_array_flush (sa), 0);
  end_whole (sa);
}

/* A member that is taken out needs no space any more. */
static void
test_full_member_is_taken_out (void **state)
{
  struct sim_array *sa = start_half ();

  put (sa, 30 * STRIPE, STRIPE, 0);
  assert_int_equal (sim_array_flush (sa), ENOSPC);
  assert_int_equal (sim_array_fail (sa, 1), 0);
  assert_int_equal (sim_array_flush (sa), 0);
  check_all (sa);
  end_degraded (sa);
}

/* A new member without space fails; nothing waits for it. */
static void
test_target_without_space (void **state)
{
  for (unsigned i = 0; i < 2; i++) {
    struct sim_array *sa = start_half ();
    const unsigned n = sim_array_add_disk (sa);
    struct sim_disk *d = sa->disk[n];

    sim_array_disk_at (sa, 1)->full = false;
    /* Not even the superblock; or that, and none of the data. */
    memset (d->used + (i ? sa->l.data_off / SIM_BLOCK : 0), 0,
            (i ? sa->l.data_len : d->size) / SIM_BLOCK);
    d->full = true;
    assert_int_equal (sim_array_replace (sa, 0, n), i ? 0 : EIO);
    put (sa, 0, 4 * STRIPE, ARRAY_FUA);
    assert_int_equal (sim_array_flush (sa), 0);
    assert_true (sim_array_settle (sa, 100 * SECOND));
    assert_int_equal (sa->a->lost_slots, 0);
    assert_null (sa->a->at[0][1]);
    end_whole (sa);
  }
}

/* It can be stopped, as by a crash, and opens again without force. */
static void
test_stop_without_space (void **state)
{
  struct sim_array *sa = start_half ();
  const uint64_t end = sim_now (sa->sim) + 20 * SECOND;

  put (sa, 30 * STRIPE, STRIPE, 0);
  assert_int_equal (sim_array_flush (sa), ENOSPC);
  while (!stop_step (sa->a)) {
    assert_true (sim_now (sa->sim) < end);
    sim_step (sa->sim);
  }
  assert_true (sim_array_stop (sa));
  sa->disk[1]->full = false;
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  assert_int_equal (sim_array_writable (sa), 0);
  assert_true (sim_array_settle (sa, 100 * SECOND));
  check_range (sa, 0, 20 * STRIPE);
  assert_int_equal (sim_array_read (sa, data + 20 * STRIPE, 20 * STRIPE,
                                    20 * STRIPE), 0);
  end_whole (sa);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_writes_are_held),
    cmocka_unit_test (test_slow_retry),
    cmocka_unit_test (test_many_writes_are_held),
    cmocka_unit_test (test_full_member_is_taken_out),
    cmocka_unit_test (test_target_without_space),
    cmocka_unit_test (test_stop_without_space),
  };

  return cmocka_run_group_tests (tests, NULL, free_data);
}
