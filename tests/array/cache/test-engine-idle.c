/* gpuraid: an idle cache gives its memory back; one that is used, or whose
 * memory a device has, does not.
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
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "array/cache/cache.h"
#include "tests/engine-array.h"

/* Bytes of the arena that are in memory. */
static uint64_t
resident (const struct sim_array *sa)
{
  const size_t page = sysconf (_SC_PAGESIZE);
  const size_t nr = sa->a->arena_len / page;
  unsigned char *in = malloc (nr);
  uint64_t sum = 0;

  assert_non_null (in);
  assert_int_equal (mincore (sa->a->arena, sa->a->arena_len, in), 0);
  for (size_t i = 0; i < nr; i++)
    sum += (in[i] & 1) * page;
  free (in);
  return sum;
}

/* From when what is dirty was written out. */
static void
wait_idle (struct sim_array *sa)
{
  assert_true (sim_array_pause (sa, limits.idle_ns + 10 * SECOND));
}

static void
assert_given (struct sim_array *sa)
{
  struct array_status st;

  assert_int_equal (resident (sa), 0);
  assert_false (sa->a->tick_armed);
  array_get_status (sa->a, &st);
  assert_int_equal (st.cache_used, 0);
  array_status_free (&st);
}

static void
test_given_back (void **state)
{
  struct sim_array *sa = start_full (4, 2, CHUNK, 8);

  for (unsigned i = 0; i < 3; i++) {
    put (sa, i * 5000, 3 * CHUNK, i % 2 ? ARRAY_FUA : 0);
    assert_true (resident (sa) > 0);
    wait_idle (sa);
    assert_given (sa);
    check_all (sa);
  }
  end_whole (sa);
}

/* Nothing is read again before then, and what reads from the cache uses it. */
static void
test_used (void **state)
{
  struct sim_array *sa = start_full (4, 2, CHUNK, 8);

  put (sa, 0, 4 * CHUNK, ARRAY_FUA);
  for (unsigned i = 0; i < 5; i++) {
    assert_true (sim_array_pause (sa, limits.idle_ns / 2));
    count_from_here (sa);
    check_range (sa, 0, 4 * CHUNK);
    assert_int_equal (ios (sa, IO_READ), 0);
    assert_true (resident (sa) > 0);
  }
  wait_idle (sa);
  assert_given (sa);
  end_whole (sa);
}

/* What a member that hangs is to write stays, and so does all, as it can be
 * read.
 */
static void
test_held (void **state)
{
  struct sim_array *sa = start_full (4, 2, CHUNK, 8);
  struct sim_request *q;

  open_again (sa, ~0, true);
  sa->a->timeout_ns = UINT64_MAX / 4;
  put (sa, 0, 2 * 4 * CHUNK, ARRAY_FUA);
  sim_disk_hang (disk_of_role (sa, 0, 0), true);
  memset (data, 0x77, 4 * CHUNK);
  q = start_request (sa, REQUEST_WRITE, data, 0, 4 * CHUNK, ARRAY_FUA);
  wait_idle (sa);
  assert_int_not_equal (q->state, SIM_IDLE);
  assert_true (resident (sa) >= 6 * CHUNK);
  count_from_here (sa);
  check_range (sa, 4 * CHUNK, 4 * CHUNK);
  assert_int_equal (ios (sa, IO_READ), 0);
  sim_disk_hang (disk_of_role (sa, 0, 0), false);
  while (q->state != SIM_IDLE)
    assert_true (sim_step (sa->sim));
  assert_int_equal (q->r.error, 0);
  free (q);
  wait_idle (sa);
  assert_given (sa);
  check_all (sa);
  end_whole (sa);
}

/* The member was taken out, and still owes an answer. */
static void
test_abandoned (void **state)
{
  struct sim_array *sa = start_full (4, 2, CHUNK, 8);
  struct sim_disk *d;

  open_again (sa, ~0, true);
  put (sa, 0, 4 * CHUNK, ARRAY_FUA);
  d = disk_of_role (sa, 0, 0);
  sim_disk_hang (d, true);
  put (sa, 0, 4 * CHUNK, ARRAY_FUA);
  assert_true (sa->a->lost_slots != 0);
  wait_idle (sa);
  assert_true (resident (sa) >= CHUNK);
  check_all (sa);
  sim_disk_hang (d, false);
  wait_idle (sa);
  assert_given (sa);
  check_all (sa);
  end_degraded (sa);
}

/* A request that comes while memory is given back. */
static int nr_releases;
static struct sim_request *meanwhile;
static struct sim_array *the_array;

static int
release_and_write (struct loop *l, void *p, size_t len)
{
  nr_releases++;
  /* The loop comes first. */
  assert_true (resident (the_array) > 0);
  memset (data, 0x33, 2 * CHUNK);
  meanwhile = start_request (the_array, REQUEST_WRITE, data, 0, 2 * CHUNK, 0);
  while (meanwhile->state == SIM_DECIDES || meanwhile->state == SIM_COPIES)
    assert_true (sim_step (the_array->sim));
  assert_int_equal (meanwhile->state, SIM_WAITS);
  /* What was given back would come to be zeroes. */
  memset (p, 0x44, len);
  return 0;
}

static void
test_meanwhile (void **state)
{
  struct sim_array *sa = start_full (4, 2, CHUNK, 8);
  struct loop_ops ops = *sa->loop.ops;

  ops.release_buffer = release_and_write;
  the_array = sa;
  sa->loop.ops = &ops;
  nr_releases = 0;
  while (nr_releases == 0)
    assert_true (sim_step (sa->sim));
  while (meanwhile->state != SIM_IDLE)
    assert_true (sim_step (sa->sim));
  assert_int_equal (meanwhile->r.error, 0);
  free (meanwhile);
  ops.release_buffer = NULL;
  check_all (sa);
  wait_idle (sa);
  assert_given (sa);
  end_whole (sa);
}

/* ---- it can't be given back ---------------------------------------------- */

static int
refuse_release (struct loop *l, void *p, size_t len)
{
  nr_releases++;
  return ENOMEM;
}

static void
test_registered (void **state)
{
  struct sim_array *sa = start_full (4, 2, CHUNK, 8);
  struct loop_ops ops = *sa->loop.ops;
  const uint64_t before = resident (sa);

  ops.release_buffer = refuse_release;
  sa->loop.ops = &ops;
  nr_releases = 0;
  for (unsigned i = 0; i < 2; i++) {
    wait_idle (sa);
    assert_int_equal (resident (sa), before);
    assert_int_equal (nr_releases, 1);
    put (sa, 5000, 3 * CHUNK, 0);
    check_all (sa);
  }
  end_whole (sa);
}

static void
test_locked (void **state)
{
  struct sim_array *sa = start_full (4, 2, CHUNK, 8);

  /* A sanitizer's mlock does nothing. */
  if (syscall (SYS_mlock, sa->a->arena, sa->a->arena_len) == -1) {
    print_message ("memory can't be locked: %s\n", strerror (errno));
    end_whole (sa);
    skip ();
  }
  wait_idle (sa);
  assert_int_equal (resident (sa), sa->a->arena_len);
  assert_false (sa->a->tick_armed);
  assert_true (sa->a->idle.keeps);
  check_all (sa);
  end_whole (sa);
}

static void
test_device (void **state)
{
  struct sim_array *sa = start_full (4, 2, CHUNK, 8);
  const uint64_t before = resident (sa);

  sa->coder.coder.keeps_arena = true;
  wait_idle (sa);
  assert_int_equal (resident (sa), before);
  count_from_here (sa);
  check_range (sa, sa->g.size - 4 * CHUNK, 4 * CHUNK);
  assert_int_equal (ios (sa, IO_READ), 0);
  sa->coder.coder.keeps_arena = false;
  end_whole (sa);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_given_back),
    cmocka_unit_test (test_used),
    cmocka_unit_test (test_held),
    cmocka_unit_test (test_abandoned),
    cmocka_unit_test (test_meanwhile),
    cmocka_unit_test (test_registered),
    cmocka_unit_test (test_locked),
    cmocka_unit_test (test_device),
  };

  return cmocka_run_group_tests (tests, NULL, free_data);
}
