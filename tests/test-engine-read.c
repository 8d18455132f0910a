/* gpuraid: reads in the client's thread: cells that touch on a member are read
 * in one call, and an error there costs only the blocks that have it.
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
#include "tests/scrub-array.h"

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
  assert_int_equal (sa->a->counters.bad_blocks, 1);
  check_range (sa, 0, NR_READ * K * CHUNK);
  assert_int_equal (sa->a->counters.bad_blocks, 1);
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
  };

  return cmocka_run_group_tests (tests, NULL, free_data);
}
