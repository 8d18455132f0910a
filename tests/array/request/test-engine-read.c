/* gpuraid: reads in the client's thread: cells that touch on a member are read
 * in one call, an error there costs only the blocks that have it, and which
 * reads are made there.
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
#include <string.h>
#include <cmocka.h>

#include "common/bits.h"
#include "tests/array/scrub/scrub-array.h"

#define K 4u
#define M 2u
#define NR_READ 8u              /* stripes, of which all cells are read */

/* Members in the page cache; the array has not read these stripes yet. */
static struct sim_array *
start (enum checksum checksum)
{
  struct sim_array *sa;

  sim_consistency = CONSISTENCY_NONE;
  sim_checksum = checksum;
  sa = start_full (K, M, CHUNK, 2 * NR_READ);
  for (unsigned i = 0; i < K + M; i++)
    sa->disk[i]->direct = false;
  open_again (sa, ~0, true);
  /* The table, in memory. */
  check_range (sa, NR_READ * K * CHUNK, NR_READ * K * CHUNK);
  count_from_here (sa);
  return sa;
}

/* Runs of data cells, on all members. */
static unsigned
nr_runs (struct sim_array *sa)
{
  const struct sim_disk *before[K], *now[K];
  unsigned n = 0;

  for (uint64_t stripe = 0; stripe < NR_READ; stripe++) {
    for (unsigned role = 0; role < K; role++) {
      bool goes_on = false;

      now[role] = disk_of_role (sa, stripe, role);
      for (unsigned i = 0; stripe > 0 && i < K; i++)
        goes_on |= before[i] == now[role];
      n += !goes_on;
    }
    memcpy (before, now, sizeof before);
  }
  return n;
}

static void
try_reads (enum checksum checksum)
{
  struct sim_array *sa = start (checksum);
  const uint64_t len = NR_READ * K * CHUNK;

  assert_true (nr_runs (sa) < NR_READ * K);
  check_range (sa, 0, len);
  assert_int_equal (ios (sa, IO_READ), nr_runs (sa));
  assert_int_equal (bytes (sa, IO_READ), len);

  /* Ends within a block. */
  check_range (sa, 100, len - 1000);
  end_whole (sa);
}

static void
test_one_call (void **state)
{
  try_reads (CHECKSUM_NONE);
}

static void
test_one_call_checked (void **state)
{
  try_reads (CHECKSUM_CRC32C);
}

/* One block is bad: all else is read as before. */
static void
test_bad_block (void **state)
{
  struct sim_array *sa = start (CHECKSUM_NONE);

  sim_disk_set_bad (disk_of_role (sa, 3, 1), place (sa, 3, 4096), 4096);
  check_range (sa, 0, NR_READ * K * CHUNK);
  check_range (sa, 0, NR_READ * K * CHUNK);
  end_whole (sa);
}

static void
test_wrong_block (void **state)
{
  struct sim_array *sa = start (CHECKSUM_CRC32C);
  struct sim_disk *d = disk_of_role (sa, 3, 1);

  d->visible[place (sa, 3, 4096)] ^= 1;
  check_range (sa, 0, NR_READ * K * CHUNK);
  assert_int_equal (sa->a->counters.corrupt_found, 1);
  check_range (sa, 0, NR_READ * K * CHUNK);
  assert_int_equal (sa->a->counters.corrupt_found, 1);
  end_whole (sa);
}

#define MS UINT64_C (1000000)

/* ns that it takes to read a block of a cell, which is compared. */
static uint64_t
read_block (struct sim_array *sa, unsigned cell, unsigned block)
{
  const uint64_t start = sim_now (sa->sim);

  check_range (sa, (uint64_t) cell * CHUNK + block * 4096, 4096);
  return sim_now (sa->sim) - start;
}

/* Reads that went through the loop took long; small ones do not go there for
 * that: here they take no time in the client's thread, and are counted.
 */
static void
test_stays (void **state)
{
  struct sim_array *sa = start (CHECKSUM_NONE);
  struct array_counters *c;

  for (unsigned i = 0; i < K + M; i++) {
    sa->disk[i]->direct = true;
    sa->disk[i]->min_delay_ns = sa->disk[i]->max_delay_ns = MS;
  }
  sa->max_pause_ns = 1000;
  limits.inline_max_len = 0;
  open_again (sa, ~0, true);
  for (unsigned i = 0; i < 4 * NR_READ * K; i++)
    assert_in_range (read_block (sa, i / 4, i % 4), MS, 4 * MS);
  limits.inline_max_len = default_limits.inline_max_len;
  count_from_here (sa);
  c = &sa->a->counters;
  c->member_read_ops = c->member_read_bytes = 0;
  assert_in_range (read_block (sa, 0, 5), 0, MS / 100);
  assert_int_equal (c->member_read_ops, 1);
  assert_int_equal (c->member_read_bytes, 4096);
  end_whole (sa);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_one_call),
    cmocka_unit_test (test_one_call_checked),
    cmocka_unit_test (test_bad_block),
    cmocka_unit_test (test_wrong_block),
    cmocka_unit_test (test_stays),
  };

  return cmocka_run_group_tests (tests, NULL, free_data);
}
