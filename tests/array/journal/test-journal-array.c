/* gpuraid test: an array with a journal, without a crash.
 *
 * run-tests: no-thread
 * It has one thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "common/bits.h"
#include "tests/seed.h"
#include "tests/sim/sim-array.h"

static struct sim_array *sa;
static uint8_t *want, *got;
static uint64_t seed;

static struct sim_array *
start (unsigned k, unsigned m, unsigned nr_stripes)
{
  const struct geometry g = { .k = k, .m = m, .chunk = 16384 };

  sim_consistency = CONSISTENCY_JOURNAL;
  sa = sim_array_new (seed, &g, nr_stripes, 0);
  sim_array_create (sa);
  assert_int_equal (sim_array_open (sa, ~UINT64_C (0), DEGRADED_ALLOW, false),
                    0);
  assert_int_equal (sim_array_writable (sa), 0);
  want = calloc (1, sa->g.size);
  got = malloc (sa->g.size);
  assert_true (want && got);
  return sa;
}

static void
end (void)
{
  assert_true (sim_array_stop (sa));
  sim_array_free (sa);
  free (want);
  free (got);
}

static void
write_some (unsigned nr)
{
  for (unsigned i = 0; i < nr; i++) {
    const uint64_t off = sim_below (sa->sim, sa->g.size - 1);
    const uint64_t len =
      1 + sim_below (sa->sim, MIN (sa->g.size - off, 200000));

    for (uint64_t j = 0; j < len; j++)
      want[off + j] = sim_random (sa->sim);
    assert_int_equal (sim_array_write (sa, want + off, len, off,
                                       i % 3 == 0 ? ARRAY_FUA : 0), 0);
  }
}

static void
check_all (void)
{
  assert_int_equal (sim_array_read (sa, got, sa->g.size, 0), 0);
  assert_memory_equal (want, got, sa->g.size);
}

static void
reopen (uint64_t which)
{
  assert_true (sim_array_stop (sa));
  assert_int_equal (sim_array_open (sa, which, DEGRADED_ALLOW, false), 0);
  assert_int_equal (sim_array_writable (sa), 0);
}

static void
test_write_and_read (void **state)
{
  limits.ring_min_len = 65536;
  start (4, 2, 24);
  write_some (60);
  check_all ();
  assert_true (sa->a->counters.journal_commits > 10);
  reopen (~UINT64_C (0));
  check_all ();
  write_some (20);
  reopen (~UINT64_C (0) & ~UINT64_C (9));
  check_all ();
  write_some (20);
  check_all ();
  end ();
}

/* What is written directly takes no space in a ring, but a recovery looks at
 * all of it: transactions are freed by that, too.
 */
static void
test_direct_is_freed (void **state)
{
  const struct seat *s;

  limits.ring_min_len = 64 * BLOCK_LEN;
  sim_checksum = CHECKSUM_CRC32C;
  start (4, 2, 50);
  assert_int_equal (sim_array_write (sa, want, sa->g.size, 0, 0), 0);
  assert_int_equal (sim_array_flush (sa), 0);
  s = sa->a->seat[0];
  assert_true (sa->a->counters.direct_writes >= 50);
  assert_true (s->ring.head < s->ring.nr_blocks / 2);
  assert_true (s->ring.tail > 0);
  check_all ();
  end ();
  sim_checksum = CHECKSUM_NONE;
}

/* One stripe, all of it; the number of direct writes that it took. */
static uint64_t
write_stripe (uint64_t no)
{
  const uint64_t len = sa->g.k * sa->g.chunk;
  const uint64_t before = sa->a->counters.direct_writes;

  memset (want + no * len, 1 + no, len);
  assert_int_equal (sim_array_write (sa, want + no * len, len, no * len,
                                     ARRAY_FUA), 0);
  return sa->a->counters.direct_writes - before;
}

/* Rows that were written and then zeroed are like new, but not before their
 * zeroes are in the stored table: until then a recovery would take the old
 * entries for those of what is written directly.
 */
static void
test_zeroed_rows (void **state)
{
  uint64_t len;

  limits.ring_min_len = 2048 * BLOCK_LEN;
  sim_checksum = CHECKSUM_CRC32C;
  start (4, 2, 600);
  len = sa->g.k * sa->g.chunk;
  assert_true (write_stripe (0) > 0);
  assert_int_equal (write_stripe (0), 0);
  assert_int_equal (sim_array_zero (sa, len, 0, ARRAY_TRIM | ARRAY_FUA), 0);
  memset (want, 0, len);
  assert_int_equal (write_stripe (0), 0);
  assert_true (write_stripe (599) > 0); /* on another page of the table */

  assert_int_equal (sim_array_zero (sa, len, 0, ARRAY_TRIM | ARRAY_FUA), 0);
  assert_true (sim_array_pause (sa, 10000000000)); /* freed */
  assert_true (write_stripe (0) > 0);
  check_all ();
  end ();
  sim_checksum = CHECKSUM_NONE;
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_write_and_read),
    cmocka_unit_test (test_direct_is_freed),
    cmocka_unit_test (test_zeroed_rows),
  };

  seed = test_seed (NULL);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
