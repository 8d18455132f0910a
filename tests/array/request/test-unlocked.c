/* gpuraid: small reads without the array lock: which need none, and what closes
 * a seat to them.
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

#include "array/request/internal.h"
#include "array/seats/seat.h"
#include "array/seats/slow.h"
#include "array/seats/unlocked.h"
#include "common/bits.h"
#include "tests/array/ops/hedge-array.h"
#include "tests/array/scrub/scrub-array.h"

#define K 4u
#define M 2u
#define NR 16u
#define STRIPE 2u               /* the one that is looked at */
#define OFF ((uint64_t) STRIPE * K * CHUNK)
#define MS UINT64_C (1000000)

/* The table is in memory. */
static struct sim_array *
start_members (enum checksum checksum, bool direct)
{
  struct sim_array *sa;

  sim_consistency = CONSISTENCY_NONE;
  sim_checksum = checksum;
  sa = start_full (K, M, CHUNK, NR);
  for (unsigned i = 0; i < K + M; i++)
    sa->disk[i]->direct = direct;
  open_again (sa, ~0, true);
  check_range (sa, (uint64_t) 8 * K * CHUNK, (uint64_t) 8 * K * CHUNK);
  return sa;
}

/* Members in the page cache. */
static struct sim_array *
start (enum checksum checksum)
{
  return start_members (checksum, false);
}

static unsigned
slot_read (const struct sim_array *sa)
{
  return layout_slot (&sa->g, STRIPE, 0);
}

static struct seat *
seat_read (const struct sim_array *sa)
{
  return sa->a->at[slot_read (sa)][0];
}

static struct request *
new_read (struct sim_array *sa)
{
  struct request *r = calloc (1, sizeof *r);

  assert_non_null (r);
  request_init (r, sa->a, REQUEST_READ);
  r->buf = back;
  r->off = OFF;
  r->len = BLOCK_LEN;
  return r;
}

/* Does a read end although another thread has the array lock? */
static bool
needs_no_lock (struct sim_array *sa)
{
  struct request *r = new_read (sa);
  bool ends = false;

  engine_lock (sa->a);
  if (unlocked_is_open (sa->a, slot_read (sa)) && unlocked_start (r)) {
    ends = request_copy (r);
    assert_true (ends);
    assert_int_equal (r->error, 0);
    assert_memory_equal (back, data + OFF, BLOCK_LEN);
  }
  engine_unlock (sa->a);
  free (r);
  return ends;
}

static void
read_it (struct sim_array *sa)
{
  assert_int_equal (sim_array_read (sa, back, BLOCK_LEN, OFF), 0);
  assert_memory_equal (back, data + OFF, BLOCK_LEN);
}

/* The first read finds that the next ones need no lock; all of them count.
 * Here the first one may have been that of the table.
 */
static void
check_counts (enum checksum checksum)
{
  struct sim_array *sa = start (checksum);
  const struct array_status before = status (sa);
  struct array_status now;
  uint64_t first;

  read_it (sa);
  first = unlocked_reads (sa->a).ops;
  for (unsigned i = 0; i < 5; i++)
    assert_true (needs_no_lock (sa));
  now = status (sa);
  assert_int_equal (unlocked_reads (sa->a).ops, first + 5);
  assert_int_equal (now.counters.read_ops, before.counters.read_ops + 6);
  assert_int_equal (now.counters.read_bytes,
                    before.counters.read_bytes + 6 * BLOCK_LEN);
  assert_int_equal (now.counters.member_read_ops,
                    before.counters.member_read_ops + 6);
  assert_int_equal (seat_users (seat_read (sa)), 0);
  end_whole (sa);
}

static void
test_counts (void **state)
{
  check_counts (CHECKSUM_NONE);
  check_counts (CHECKSUM_CRC32C);
}

/* What was written, and is in the cache alone, is what is read. */
static void
test_newer_content (void **state)
{
  struct sim_array *sa = start (CHECKSUM_CRC32C);
  struct request *r;

  read_it (sa);
  memset (data + OFF, 0x5a, BLOCK_LEN);
  assert_int_equal (sim_array_write (sa, data + OFF, BLOCK_LEN, OFF, 0), 0);
  r = new_read (sa);
  assert_int_equal (request_decide (r), REQUEST_COPY);
  assert_int_not_equal (r->step[0].from, STEP_SEAT);
  assert_true (request_copy (r) || request_go (r));
  assert_memory_equal (back, data + OFF, BLOCK_LEN);
  free (r);
  end_whole (sa);
}

/* A block with another checksum is found, and what is read is right. */
static void
test_wrong_block (void **state)
{
  struct sim_array *sa = start (CHECKSUM_CRC32C);

  read_it (sa);
  assert_true (needs_no_lock (sa));
  flip (sa, slot_read (sa), STRIPE * CHUNK / BLOCK_LEN, 77);
  read_it (sa);
  assert_int_equal (sa->a->counters.corrupt_found, 1);
  end_whole (sa);
}

/* A member that fails is not closed under a read, and not read again. */
static void
test_failed_member (void **state)
{
  struct sim_array *sa = start (CHECKSUM_CRC32C);
  struct seat *s = seat_read (sa);
  unsigned bucket;

  read_it (sa);
  assert_ptr_equal (unlocked_enter (sa->a, s->slot, &bucket, 0), s);
  assert_int_equal (sim_array_fail (sa, s->slot), 0);
  assert_false (unlocked_is_open (sa->a, s->slot));
  assert_null (unlocked_enter (sa->a, s->slot, &bucket, 0));
  pass (sa, SECOND);
  assert_non_null (s->m);
  assert_int_equal (seat_users (s), 1);
  read_it (sa);
  seat_pread_ended (s, bucket, 0);
  pass (sa, SECOND);
  assert_null (s->m);
  end_degraded (sa);
}

/* One that hangs is noticed, although nothing else happens. */
static void
test_hangs (void **state)
{
  struct sim_array *sa = start (CHECKSUM_NONE);
  struct seat *s = seat_read (sa);
  unsigned bucket;

  read_it (sa);
  assert_ptr_equal (unlocked_enter (sa->a, s->slot, &bucket, 0), s);
  pass (sa, 3 * SECOND);
  assert_true (s->suspect);
  assert_false (unlocked_is_open (sa->a, s->slot));
  seat_pread_ended (s, bucket, 0);
  pass (sa, 3 * SECOND);
  assert_false (s->suspect);
  /* Without reads the ticks end, and nothing is open any more. */
  read_it (sa);
  assert_true (needs_no_lock (sa));
  pass (sa, 3 * SECOND);
  assert_false (unlocked_is_open (sa->a, s->slot));
  end_whole (sa);
}

/* While whole stripes become zeroes each read looks at them, with the lock. */
static void
test_zeroing (void **state)
{
  struct sim_array *sa = start (CHECKSUM_CRC32C);
  const uint64_t other = (uint64_t) 4 * K * CHUNK;

  read_it (sa);
  assert_true (needs_no_lock (sa));
  memset (data + other, 0, (size_t) K * CHUNK);
  assert_int_equal (sim_array_zero (sa, K * CHUNK, other, 0), 0);
  assert_false (needs_no_lock (sa));
  read_it (sa);
  assert_true (needs_no_lock (sa));
  end_whole (sa);
}

/* Another thread, with the lock, is about to add a part. */
static void
test_growing (void **state)
{
  struct sim_array *sa = start (CHECKSUM_NONE);
  struct member_layout *l = &sa->a->sb.l;
  const struct member_layout before = *l;

  read_it (sa);
  l->nr_grown = 1;
  l->grown[0] = CHUNK;
  assert_true (needs_no_lock (sa));
  *l = before;
  assert_true (needs_no_lock (sa));
  /* What is in a part after the first is looked for with the lock. */
  sa->a->first_len = STRIPE * CHUNK;
  assert_false (needs_no_lock (sa));
  end_whole (sa);
}

/* Data moves: its place is not known, until it is somewhere else. */
static void
test_moving (void **state)
{
  struct sim_array *sa = start (CHECKSUM_NONE);
  struct seat *s = seat_read (sa);
  const struct geometry *before = unlocked_place (sa->a);

  read_it (sa);
  assert_true (needs_no_lock (sa));
  unlocked_no_place (sa->a);
  assert_false (unlocked_is_open (sa->a, s->slot));
  assert_false (needs_no_lock (sa));
  read_it (sa);
  assert_false (unlocked_is_open (sa->a, s->slot));
  unlocked_set_place (sa->a);
  assert_ptr_not_equal (unlocked_place (sa->a), before);
  assert_memory_equal (unlocked_place (sa->a), before, sizeof *before);
  read_it (sa);
  assert_true (needs_no_lock (sa));
  end_whole (sa);
}

/* What is asked without the lock is what the last comparison has found; also by
 * a thread that has read the clock before it.
 */
static void
check_published (struct sim_array *sa)
{
  const uint64_t now = sa->a->compared;

  for (unsigned i = 0; i < K + M; i++) {
    struct seat *s = sa->a->at[i][0];

    for (uint64_t len = BLOCK_LEN; len <= 4 * MIB; len *= 2)
      assert_int_equal (s->late[hedge_class (len)],
                        hedge_late (&sa->a->hedge, &s->hedge, len));
    assert_true (s->late[hedge_class (BLOCK_LEN)] > 0);
    assert_int_equal (s->others_owed, s->hedge.others_owed);
    assert_true (slow_passes (sa->a, s, BLOCK_LEN, now - 1));
    assert_true (slow_passes (sa->a, s, BLOCK_LEN, now));
  }
}

/* Members opened with O_DIRECT: a read that is late and has not ended is seen
 * by the next one, without the lock, and that one takes it.  So do some now and
 * then, by which the members are compared.
 */
static void
test_watched (void **state)
{
  const struct slow_read usual = { .len = BLOCK_LEN, .ns = MS, .pread = true };
  struct sim_array *sa = start_members (CHECKSUM_CRC32C, true);
  struct request *hangs;

  limits.hedge_loop_ns = default_limits.hedge_loop_ns;
  for (unsigned i = 0; i < 600; i++)
    slow_read_done (sa->a, sa->a->at[i % (K + M)][0], &usual);
  slow_compare (sa->a);
  read_it (sa);
  assert_true (seat_read (sa)->m->direct);
  assert_true (needs_no_lock (sa));
  check_published (sa);

  hangs = new_read (sa);
  assert_true (unlocked_start (hangs));
  assert_true (needs_no_lock (sa));
  pass (sa, 2 * MS);
  assert_true (needs_no_lock (sa));     /* that is not late yet */
  pass (sa, 3 * MS);
  assert_false (needs_no_lock (sa));
  assert_true (slow_owes (sa->a, seat_read (sa), BLOCK_LEN));
  assert_true (request_copy (hangs));
  assert_true (needs_no_lock (sa));
  free (hangs);

  pass (sa, 10 * MS);
  for (unsigned i = 0; i < 32 && !needs_no_lock (sa); i++)
    read_it (sa);
  assert_true (needs_no_lock (sa));
  assert_in_range (sim_now (sa->sim) - sa->a->compared, 0, MS);
  assert_int_equal (seat_users (seat_read (sa)), 0);
  end_whole (sa);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown (test_counts, scrub_usual_limits),
    cmocka_unit_test_teardown (test_newer_content, scrub_usual_limits),
    cmocka_unit_test_teardown (test_wrong_block, scrub_usual_limits),
    cmocka_unit_test_teardown (test_failed_member, scrub_usual_limits),
    cmocka_unit_test_teardown (test_hangs, scrub_usual_limits),
    cmocka_unit_test_teardown (test_zeroing, scrub_usual_limits),
    cmocka_unit_test_teardown (test_growing, scrub_usual_limits),
    cmocka_unit_test_teardown (test_moving, scrub_usual_limits),
    cmocka_unit_test_teardown (test_watched, scrub_usual_limits),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
