/* gpuraid test: a journal, and a member whose store is full: trims are
 * answered, as they give space back, whatever waits in their lines.
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

#include "array/journal/internal.h"
#include "array/ops/internal.h"
#include "array/scrub/scrub.h"
#include "tests/array/journal/journal-full.h"

/* A trim is answered, although other writes wait for space. */
static void
trim_only (struct sim_array *sa, uint64_t off, uint64_t len)
{
  struct sim_request *q =
    start_request (sa, REQUEST_ZERO, NULL, off, len, ARRAY_FUA|ARRAY_TRIM);

  memset (data + off, 0, len);
  assert_true (sim_array_pause (sa, 5 * SECOND));
  assert_int_equal (q->state, SIM_IDLE);
  assert_int_equal (q->r.error, 0);
  free (q);
}

static void
trim (struct sim_array *sa, uint64_t off, uint64_t len)
{
  trim_only (sa, off, len);
  check_range (sa, off, len);
}

/* It is killed, and opened while it is full: what was flushed is there. */
static void
open_full (struct sim_array *sa, uint64_t unflushed)
{
  crash_array (sa);
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  assert_int_equal (sim_array_writable (sa), 0);
  assert_true (sim_array_pause (sa, 3 * SECOND));
  check_each (sa, 0, unflushed);
  check_each (sa, unflushed + STRIPE, sa->g.size);
}

/* What was to be written directly is withdrawn, and is written when there is
 * space: other trims are answered, and so is one of that itself.
 */
static void
test_trim_direct (void **state)
{
  for (unsigned i = 0; i < 3; i++) {
    struct sim_array *sa;

    sim_checksum = CHECKSUM_CRC32C;
    sa = start_half ();
    put (sa, 30 * STRIPE, STRIPE, 0);
    put (sa, 35 * STRIPE, STRIPE, 0);
    assert_int_equal (sim_array_flush (sa), ENOSPC);
    trim (sa, 3 * STRIPE, 4 * STRIPE);
    trim (sa, 9 * STRIPE, STRIPE);
    check_each (sa, 0, sa->g.size);
    if (i == 1)
      trim (sa, 30 * STRIPE, STRIPE);
    if (i == 2) {
      trim (sa, 30 * STRIPE, STRIPE);
      open_full (sa, 35 * STRIPE);
      sim_array_disk_at (sa, 1)->full = false;
      put (sa, 35 * STRIPE, STRIPE, 0);
    }
    make_space (sa);
    check_each (sa, 0, sa->g.size);
    assert_true (sim_array_pause (sa, 3 * SECOND));
    end_whole (sa);
    sim_checksum = CHECKSUM_NONE;
  }
}

/* Is something withdrawn?  Then the transaction in which it was to be direct is
 * not over.
 */
static bool
look_at_withdrawn (const struct journal *j, const struct list *ops)
{
  bool any = false;

  list_for_each (l, ops) {
    const struct logged *lo = list_item (l, struct logged, link);
    bool live = false;

    if (lo->withdrawn == NULL)
      continue;
    any = true;
    list_for_each (t, &j->live)
      live |= txn_at (t) == lo->withdrawn && txn_at (t)->phase < TXN_IN_PLACE;
    assert_true (live);
  }
  return any;
}

/* Not before the one that zeroes its rows is durable (R3). */
static void
test_withdrawn_is_live (void **state)
{
  const struct journal *j;
  struct sim_array *sa;
  struct sim_request *q;
  bool any = false;

  sim_checksum = CHECKSUM_CRC32C;
  sa = start_half ();
  put (sa, 30 * STRIPE, STRIPE, 0);
  assert_int_equal (sim_array_flush (sa), ENOSPC);
  j = sa->a->journal;
  q = start_request (sa, REQUEST_ZERO, NULL, 3 * STRIPE, STRIPE,
                     ARRAY_FUA|ARRAY_TRIM);
  memset (data + 3 * STRIPE, 0, STRIPE);
  while (q->state != SIM_IDLE) {
    assert_true (sim_step (sa->sim));
    any |= look_at_withdrawn (j, &j->gathered);
    if (j->committing)
      any |= look_at_withdrawn (j, &j->committing->ops);
  }
  assert_true (any);
  assert_int_equal (q->r.error, 0);
  free (q);
  make_space (sa);
  end_whole (sa);
  sim_checksum = CHECKSUM_NONE;
}

/* Nor does it wait for a block that is made anew, for which there is no space.
 */
static void
test_trim_repair (void **state)
{
  struct sim_array *sa = start_half ();
  uint64_t stripe = 25;

  while (layout_role (&sa->g, stripe, 1) == 2)
    stripe++;
  sim_disk_set_bad (sim_array_disk_at (sa, 1), place (sa, stripe, 0),
                    BLOCK_LEN);
  check_range (sa, stripe * STRIPE, STRIPE);
  assert_true (sim_array_pause (sa, 3 * SECOND));
  assert_true (sa->a->at[1][0]->no_space);
  trim (sa, stripe * STRIPE, STRIPE);
  make_space (sa);
  end_whole (sa);
}

/* In a row that may be torn, without a journal: parity is made anew later. */
static void
test_trim_resync (void **state)
{
  struct sim_array *sa;

  sim_consistency = CONSISTENCY_NONE;
  sa = start_full (2, 1, CHUNK, 40);
  put (sa, 0, sa->g.size, ARRAY_FUA);
  crash_array (sa);
  sa->disk[1]->full = true;
  memset (sa->disk[1]->used + place (sa, 0, 0) / SIM_BLOCK, 0,
          40 * CHUNK / SIM_BLOCK);
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  assert_int_equal (sim_array_writable (sa), 0);
  assert_true (sim_array_pause (sa, 3 * SECOND));
  assert_true (sa->a->at[1][0]->no_space);
  trim_only (sa, 0, sa->g.size - STRIPE);
  assert_int_not_equal (sa->a->nr_unsynced, 0);
  make_space (sa);
  assert_true (sim_array_settle (sa, 100 * SECOND));
  assert_int_equal (sa->a->nr_unsynced, 0);
  end_whole (sa);
}

/* One that repairs, until it waits. */
static void
start_scrub (struct sim_array *sa)
{
  char why[ARRAY_WHY_LEN] = "";

  engine_lock (sa->a);
  assert_int_equal (scrub_start (sa->a, true, why), 0);
  engine_unlock (sa->a);
  assert_true (sim_array_pause (sa, 3 * SECOND));
}

/* That is in the journal, and its line has no cells: when it is dropped, the
 * line is forgotten.  Only a sanitizer sees what is read of it then.
 */
static void
test_trim_logged_repair (void **state)
{
  struct sim_array *sa;
  struct sim_disk *d;

  sim_checksum = CHECKSUM_CRC32C;
  sa = start_half ();
  d = sim_array_disk_at (sa, 1);
  d->full = false;
  open_again (sa, ~0, true);
  d->full = true;
  sim_disk_poke (d, "rubbish", 7, place (sa, 3, 0));
  d->used[place (sa, 3, 0) / SIM_BLOCK] = 0;
  start_scrub (sa);
  assert_true (sa->a->at[1][0]->no_space);
  trim (sa, 3 * STRIPE, STRIPE);
  make_space (sa);
  end_whole (sa);
  sim_checksum = CHECKSUM_NONE;
}

/* The ring is full: a repair that waits for the journal gives way to a trim of
 * its line, and the scrub looks at that again.
 */
static void
test_trim_gathered_repair (void **state)
{
  struct array_status st;
  struct sim_array *sa;
  struct sim_disk *d;

  sim_checksum = CHECKSUM_CRC32C;
  sa = start_half ();
  d = sim_array_disk_at (sa, 1);
  d->full = false;
  put (sa, 20 * STRIPE, 20 * STRIPE, ARRAY_FUA);
  assert_true (sim_array_pause (sa, 3 * SECOND));
  d->full = true;
  memset (d->used + place (sa, 30, 0) / SIM_BLOCK, 0, CHUNK / SIM_BLOCK);
  sim_disk_poke (d, "rubbish", 7, place (sa, 23, 0));
  sim_disk_poke (d, "rubbish", 7, place (sa, 27, 0));
  fill_ring (sa);
  start_scrub (sa);
  assert_int_equal (list_empty (&sa->a->journal->gathered), false);
  trim (sa, 23 * STRIPE, STRIPE);
  make_space (sa);
  for (unsigned i = 0; i < 100; i++) {
    array_get_status (sa->a, &st);
    array_status_free (&st);
    if (!st.scrub.running)
      break;
    assert_true (sim_array_pause (sa, SECOND));
  }
  assert_false (st.scrub.running);
  assert_int_equal (st.last_scrub.found, 2);
  assert_int_equal (st.last_scrub.repaired, 2);
  end_whole (sa);
  sim_checksum = CHECKSUM_NONE;
}

/* What is in the journal and waits in place need not be written any more. */
static void
test_trim_held (void **state)
{
  for (unsigned i = 0; i < 2; i++) {
    struct sim_array *sa = start_half ();

    put (sa, 30 * STRIPE, STRIPE, ARRAY_FUA);
    assert_true (sim_array_pause (sa, 3 * SECOND));
    trim (sa, 29 * STRIPE, 3 * STRIPE);
    if (i == 1)
      open_full (sa, 39 * STRIPE);
    make_space (sa);
    end_whole (sa);
  }
}

/* The ring is full of what waits: some of it is kept for trims. */
static void
test_trim_full_ring (void **state)
{
  struct sim_array *sa = start_half ();

  fill_ring (sa);
  trim (sa, 0, 40 * STRIPE);
  make_space (sa);
  end_whole (sa);
}

/* Many trims that give nothing back use up what is kept for them, as the oldest
 * transaction waits for space: then they wait too, and go on when there is
 * some.
 */
static void
test_many_trims (void **state)
{
  struct sim_array *sa = start_half ();
  struct sim_request *q;
  unsigned nr = 0;

  fill_ring (sa);
  memset (data + 3 * STRIPE, 0, STRIPE);
  for (;; nr++) {
    q = start_request (sa, REQUEST_ZERO, NULL, 3 * STRIPE, STRIPE,
                       ARRAY_FUA|ARRAY_TRIM);
    assert_true (sim_array_pause (sa, 5 * SECOND));
    if (q->state != SIM_IDLE || nr == 100)
      break;
    assert_int_equal (q->r.error, 0);
    free (q);
  }
  assert_true (nr > 0);
  check_each (sa, 4 * STRIPE, 20 * STRIPE);
  make_space (sa);
  assert_int_equal (q->state, SIM_IDLE);
  assert_int_equal (q->r.error, 0);
  free (q);
  end_whole (sa);
}

static void
trim_now (struct sim_array *sa, uint64_t off, uint64_t len)
{
  struct sim_request q;

  memset (data + off, 0, len);
  sim_request_init (&q, sa, REQUEST_ZERO);
  q.r.off = off;
  q.r.len = len;
  q.r.flags = ARRAY_FUA|ARRAY_TRIM;
  assert_int_equal (sim_array_run (&q), 0);
}

/* A flush after a trim that gave space back is not told of the lack before it.
 */
static void
test_trim_told (void **state)
{
  struct sim_array *sa = start_half ();

  put (sa, 30 * STRIPE, STRIPE, ARRAY_FUA);
  put_short (sa, 30 * STRIPE);
  trim_now (sa, 3 * STRIPE, STRIPE);
  sim_array_disk_at (sa, 1)->full = false;
  trim_now (sa, 5 * STRIPE, STRIPE);
  put (sa, 30 * STRIPE, STRIPE, 0);
  assert_int_equal (sim_array_flush (sa), 0);
  make_space (sa);
  end_whole (sa);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_trim_direct),
    cmocka_unit_test (test_withdrawn_is_live),
    cmocka_unit_test (test_trim_repair),
    cmocka_unit_test (test_trim_resync),
    cmocka_unit_test (test_trim_logged_repair),
    cmocka_unit_test (test_trim_gathered_repair),
    cmocka_unit_test (test_trim_held),
    cmocka_unit_test (test_trim_full_ring),
    cmocka_unit_test (test_many_trims),
    cmocka_unit_test (test_trim_told),
  };

  return cmocka_run_group_tests (tests, NULL, free_data);
}
