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

#include "array/cache/cache.h"
#include "array/main-loop.h"
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

/* Zeroes of whole stripes, where nothing was written yet, need no space. */
static void
test_zeroes_of_stripes (void **state)
{
  struct sim_array *sa = start_half ();
  struct sim_request *q;

  memset (data + 19 * STRIPE, 0, 3 * STRIPE);
  q = start_request (sa, REQUEST_ZERO, NULL, 19 * STRIPE, 3 * STRIPE,
                     ARRAY_FUA);
  assert_true (sim_array_pause (sa, 3 * SECOND));
  assert_int_equal (q->state, SIM_IDLE);
  assert_int_equal (q->r.error, 0);
  free (q);
  assert_false (is_short (sa));
  check_all (sa);
  sim_array_disk_at (sa, 1)->full = false;
  end_whole (sa);
}

#define NR_WAITING 3u

/* A flush, a write and zeroes that wait for space. */
static void
start_waiting (struct sim_array *sa, struct sim_request *q[NR_WAITING])
{
  put (sa, 30 * STRIPE, STRIPE, 0);
  q[0] = start_request (sa, REQUEST_FLUSH, NULL, 0, 0, ARRAY_WAIT);
  for (unsigned i = 0; i < STRIPE; i++)
    data[31 * STRIPE + i] = 3 + i;
  q[1] = start_request (sa, REQUEST_WRITE, data + 31 * STRIPE, 31 * STRIPE,
                        STRIPE, ARRAY_FUA | ARRAY_WAIT);
  memset (data + 32 * STRIPE, 0, 4096);
  q[2] = start_request (sa, REQUEST_ZERO, NULL, 32 * STRIPE, 4096,
                        ARRAY_FUA | ARRAY_WAIT);
  assert_true (sim_array_pause (sa, 3 * SECOND));
  for (unsigned i = 0; i < NR_WAITING; i++)
    assert_int_equal (q[i]->state, SIM_WAITS);
}

static void
end_waiting (struct sim_request *q[NR_WAITING], int error)
{
  for (unsigned i = 0; i < NR_WAITING; i++) {
    assert_int_equal (q[i]->state, SIM_IDLE);
    assert_int_equal (q[i]->r.error, error);
    free (q[i]);
  }
}

/* Meanwhile reads go on, and others get ENOSPC. */
static void
test_wait (void **state)
{
  for (unsigned small = 0; small < 2; small++) {
    struct sim_array *sa = start_half ();
    struct sim_request *q[NR_WAITING];

    if (small) {
      sa->cache_len = cache_min_len (&sa->g) + 4 * sa->g.k * CHUNK;
      sim_array_disk_at (sa, 1)->full = false;
      open_again (sa, ~0, true);
      sim_array_disk_at (sa, 1)->full = true;
    }
    start_waiting (sa, q);
    assert_true (is_short (sa));
    check_range (sa, 0, 20 * STRIPE);
    assert_int_equal (sim_array_flush (sa), ENOSPC);
    for (unsigned i = 0; i < 2 * NR_WAITING; i++)
      check_range (sa, 30 * STRIPE + i * CHUNK, CHUNK);
    put (sa, 5 * STRIPE, 4096, 0);
    sim_array_disk_at (sa, 1)->full = false;
    assert_true (sim_array_pause (sa, 3 * SECOND));
    end_waiting (q, 0);
    assert_false (is_short (sa));
    crash_array (sa);
    assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
    check_range (sa, 30 * STRIPE, 3 * STRIPE);
    assert_int_equal (sim_array_writable (sa), 0);
    assert_true (sim_array_settle (sa, 100 * SECOND));
    check_range (sa, 30 * STRIPE, 3 * STRIPE);
    assert_int_equal (sim_array_read (sa, data, STRIPE * 40, 0), 0);
    end_whole (sa);
  }
}

/* The server is told to stop: nothing waits for space any more. */
static void
test_end_of_waits (void **state)
{
  struct sim_array *sa = start_half ();
  struct sim_request *q[NR_WAITING];

  start_waiting (sa, q);
  array_end_waits (sa->a, false);
  assert_true (sim_array_pause (sa, SECOND));
  end_waiting (q, ENOSPC);
  assert_false (sa->a->failed);
  q[0] = start_request (sa, REQUEST_FLUSH, NULL, 0, 0, ARRAY_WAIT);
  assert_true (sim_array_pause (sa, SECOND));
  assert_int_equal (q[0]->r.error, ENOSPC);
  free (q[0]);
  sim_array_disk_at (sa, 1)->full = false;
  assert_true (sim_array_pause (sa, SECOND));
  assert_int_equal (sim_array_flush (sa), 0);
  end_whole (sa);
}

/* If it is stopped by force, what waits for memory ends too. */
static void
test_forced_end (void **state)
{
  struct sim_array *sa = start_half ();
  struct sim_request *q;

  sa->cache_len = cache_min_len (&sa->g);
  sim_array_disk_at (sa, 1)->full = false;
  open_again (sa, ~0, true);
  sim_array_disk_at (sa, 1)->full = true;
  q = start_request (sa, REQUEST_WRITE, data, 20 * STRIPE, 20 * STRIPE, 0);
  for (unsigned forced = 0; forced < 2; forced++) {
    assert_true (sim_array_pause (sa, 3 * SECOND));
    assert_int_equal (q->state, SIM_WAITS);
    assert_false (sa->a->failed);
    array_end_waits (sa->a, forced);
  }
  assert_true (sim_array_pause (sa, 3 * SECOND));
  assert_int_equal (q->state, SIM_IDLE);
  assert_int_equal (q->r.error, EIO);
  free (q);
  assert_true (sim_array_stop (sa));
  sim_array_free (sa);
}

/* Likewise if the array fails, or stops all the same. */
static void
test_failed_while_waiting (void **state)
{
  for (unsigned stops = 0; stops < 2; stops++) {
    struct sim_array *sa = start_half ();
    struct sim_request *q[NR_WAITING];
    const uint64_t end = sim_now (sa->sim) + 60 * SECOND;

    start_waiting (sa, q);
    if (stops)
      while (!stop_step (sa->a)) {
        assert_true (sim_now (sa->sim) < end);
        sim_step (sa->sim);
      }
    else {
      sa->disk[0]->dead = sa->disk[2]->dead = true;
      assert_true (sim_array_pause (sa, 20 * SECOND));
    }
    assert_true (sa->a->failed);
    end_waiting (q, EIO);
    assert_true (sim_array_stop (sa));
    sim_array_free (sa);
  }
}

/* A line that a flush waits for gets no new readers; but it does while the
 * flush waits for space.
 */
static void
test_readers_of_waiting_line (void **state)
{
  struct sim_array *sa = start_half ();
  struct sim_request *q;
  struct line *line;

  put (sa, 30 * STRIPE, STRIPE, 0);
  assert_int_equal (sim_array_flush (sa), ENOSPC);
  put (sa, 30 * STRIPE, 4096, 0);
  q = start_request (sa, REQUEST_FLUSH, NULL, 0, 0, ARRAY_WAIT);
  assert_true (sim_array_pause (sa, 3 * SECOND));
  assert_int_equal (sa->a->nr_dirty, 1);
  line = list_item (sa->a->dirty.next, struct line, link);
  assert_false (list_empty (&line->tickets));
  assert_false (line->want_out);
  sim_disk_hang (sim_array_disk_at (sa, 1), true);
  assert_true (sim_array_pause (sa, SECOND));
  assert_true (line->want_out);
  sim_disk_hang (sim_array_disk_at (sa, 1), false);
  sim_array_disk_at (sa, 1)->full = false;
  assert_true (sim_array_pause (sa, SECOND));
  assert_int_equal (q->state, SIM_IDLE);
  assert_int_equal (q->r.error, 0);
  free (q);
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

/* When the cache is full of them, the next waits as long as a member may take
 * to answer, and is not written; one that waits for space goes on.
 */
static void
test_writes_that_do_not_begin (void **state)
{
  struct sim_array *sa = start_half ();
  struct sim_request *q[2];
  uint8_t block[BLOCK_LEN];
  unsigned nr = 20;

  sa->cache_len = cache_min_len (&sa->g);
  sim_array_disk_at (sa, 1)->full = false;
  open_again (sa, ~0, true);
  sim_array_disk_at (sa, 1)->full = true;
  memset (block, 7, sizeof block);
  do {
    assert_true (nr < 38);
    q[0] = start_request (sa, REQUEST_WRITE, block, nr * STRIPE, BLOCK_LEN,
                          0);
    assert_true (sim_array_pause (sa, SECOND));
    if (q[0]->state == SIM_IDLE) {
      assert_int_equal (q[0]->r.error, 0);
      memcpy (data + nr++ * STRIPE, block, BLOCK_LEN);
      free (q[0]);
      q[0] = NULL;
    }
  } while (q[0] == NULL);
  q[1] = start_request (sa, REQUEST_WRITE, block, 39 * STRIPE, BLOCK_LEN,
                        ARRAY_WAIT);
  memcpy (data + 39 * STRIPE, block, BLOCK_LEN);
  assert_true (sim_array_pause (sa, sa->a->timeout_ns - 2 * SECOND));
  assert_int_equal (q[0]->state, SIM_WAITS);
  assert_true (sim_array_pause (sa, 3 * SECOND));
  assert_int_equal (q[0]->state, SIM_IDLE);
  assert_int_equal (q[0]->r.error, ENOSPC);
  assert_true (sim_array_pause (sa, 2 * sa->a->timeout_ns));
  assert_int_equal (q[1]->state, SIM_WAITS);
  sim_array_disk_at (sa, 1)->full = false;
  assert_true (sim_array_pause (sa, SECOND));
  assert_int_equal (q[1]->state, SIM_IDLE);
  assert_int_equal (q[1]->r.error, 0);
  for (unsigned i = 0; i < 2; i++)
    free (q[i]);
  assert_int_equal (sim_array_flush (sa), 0);
  check_all (sa);
  end_whole (sa);
}

/* A flush and one that waits for space, while a record waits for it. */
static void
flush_in_change (struct sim_array *sa)
{
  struct sim_request *q[2];

  q[0] = start_request (sa, REQUEST_FLUSH, NULL, 0, 0, 0);
  q[1] = start_request (sa, REQUEST_FLUSH, NULL, 0, 0, ARRAY_WAIT);
  assert_true (sim_array_pause (sa, 3 * SECOND));
  assert_non_null (sa->a->change);
  assert_true (sa->a->at[1][0]->no_space);
  assert_int_equal (q[0]->state, SIM_IDLE);
  assert_int_equal (q[0]->r.error, ENOSPC);
  assert_int_equal (q[1]->state, SIM_WAITS);
  assert_int_equal (sim_array_flush (sa), ENOSPC);
  sa->disk[1]->full = false;
  assert_true (sim_array_pause (sa, 3 * SECOND));
  assert_null (sa->a->change);
  assert_int_equal (q[1]->state, SIM_IDLE);
  assert_int_equal (q[1]->r.error, 0);
  free (q[0]);
  free (q[1]);
}

/* There is no space for the first record of a session, although superblocks are
 * written over.
 */
static void
test_flush_in_opening (void **state)
{
  struct sim_array *sa = start_half ();

  sim_array_disk_at (sa, 1)->full = false;
  open_again (sa, ~0, false);
  sa->disk[1]->full = sa->disk[1]->cow = true;
  assert_int_equal (serve (sa), 0);
  assert_false (sa->a->writable);
  flush_in_change (sa);
  assert_true (sa->a->writable);
  check_all (sa);
  end_whole (sa);
}

/* Nor for a record without a member that fails in the round of flushes. */
static void
test_flush_in_change (void **state)
{
  struct sim_array *sa = start_half ();

  sim_array_disk_at (sa, 1)->full = false;
  put (sa, 0, STRIPE, 0);
  assert_true (sim_array_pause (sa, 3 * SECOND));
  sa->disk[0]->flush_error_ppm = 1000000;
  sa->disk[1]->full = sa->disk[1]->cow = true;
  flush_in_change (sa);
  assert_int_equal (sa->a->lost_slots, BIT (0));
  check_all (sa);
  end_degraded (sa);
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
    cmocka_unit_test (test_zeroes_of_stripes),
    cmocka_unit_test (test_wait),
    cmocka_unit_test (test_end_of_waits),
    cmocka_unit_test (test_forced_end),
    cmocka_unit_test (test_failed_while_waiting),
    cmocka_unit_test (test_readers_of_waiting_line),
    cmocka_unit_test (test_many_writes_are_held),
    cmocka_unit_test (test_writes_that_do_not_begin),
    cmocka_unit_test (test_flush_in_opening),
    cmocka_unit_test (test_flush_in_change),
    cmocka_unit_test (test_full_member_is_taken_out),
    cmocka_unit_test (test_target_without_space),
    cmocka_unit_test (test_stop_without_space),
  };

  return cmocka_run_group_tests (tests, NULL, free_data);
}
