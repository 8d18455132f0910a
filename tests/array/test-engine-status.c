/* gpuraid: what the status of an array says of it and of its members.
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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "array/scrub/scrub.h"
#include "common/bits.h"
#include "common/log.h"
#include "tests/engine-array.h"

static struct array_status st;

static const struct array_entry *
entry (struct sim_array *sa, unsigned slot)
{
  array_status_free (&st);
  array_get_status (sa->a, &st);
  return &st.entry[slot];
}

static const struct array_error *
last_error (struct sim_array *sa, unsigned slot)
{
  return &entry (sa, slot)->last_error;
}

static unsigned
slot_of (const struct sim_array *sa, const struct sim_disk *d)
{
  return sim_array_disk_no (sa, d);
}

static char noticed[2000];

static void
hear (enum log_level level, const char *fmt, va_list args)
{
  const size_t len = strlen (noticed);

  if (level == LOG_LEVEL_NOTICE)
    vsnprintf (noticed + len, sizeof noticed - len, fmt, args);
}

/* By a client's own read, and by one of the engine. */
static void
test_read_error (void **state)
{
  struct sim_array *sa = start_full (3, 2, CHUNK, 8);
  struct sim_disk *d = disk_of_role (sa, 2, 1);
  const unsigned slot = slot_of (sa, d);
  const uint64_t off = layout_address (&sa->g, 2, 1, 4096);
  const struct array_error *e;
  uint64_t before;

  open_again (sa, ~0, true);
  assert_int_equal (last_error (sa, slot)->error, 0);
  sim_disk_set_bad (d, place (sa, 2, 4096), 4096);
  check_range (sa, off, 4096);
  e = last_error (sa, slot);
  assert_int_equal (e->error, EIO);
  assert_string_equal (e->operation, "read");
  assert_true (e->has_off);
  assert_int_equal (e->off, place (sa, 2, 4096));
  assert_in_range (e->ago_ns, 0, 999999999);
  before = sim_now (sa->sim);
  assert_true (sim_array_pause (sa, 7 * SECOND));
  assert_in_range (last_error (sa, slot)->ago_ns, 4 * SECOND,
                   sim_now (sa->sim) - before + SECOND);
  for (unsigned i = 0; i < 5; i++)
    assert_int_equal (last_error (sa, i)->error, i == slot ? EIO : 0);

  /* A write reads the rest of the row. */
  sim_disk_set_bad (d, place (sa, 3, 8192), 4096);
  put (sa, layout_address (&sa->g, 3, 0, 8192), CHUNK, ARRAY_FUA);
  e = last_error (sa, slot);
  assert_int_equal (e->off, place (sa, 3, 8192));
  assert_in_range (e->ago_ns, 0, SECOND);
  end_whole (sa);
}

/* The first one that took it out stays, also once its file is closed. */
static void
test_write_error (void **state)
{
  struct sim_array *sa = start_full (3, 2, CHUNK, 8);
  const struct array_error *e;

  sa->disk[1]->write_error_ppm = 1000000;
  put (sa, 0, 3 * CHUNK, ARRAY_FUA);
  assert_true (sim_array_pause (sa, 20 * SECOND));
  assert_int_equal (entry (sa, 1)->state, ENTRY_FAILED);
  e = last_error (sa, 1);
  assert_int_equal (e->error, EIO);
  assert_string_equal (e->operation, "write");
  assert_true (e->has_off);
  assert_in_range (e->ago_ns, 5 * SECOND, 21 * SECOND);
  /* Its path is known. */
  assert_string_equal (entry (sa, 1)->path, "disk1");
  end_degraded (sa);
}

static void
test_flush_error (void **state)
{
  struct sim_array *sa = start_full (3, 2, CHUNK, 8);
  const struct array_error *e;

  sa->disk[3]->flush_error_ppm = 1000000;
  put (sa, 0, 3 * CHUNK, ARRAY_FUA);
  assert_true (sim_array_settle (sa, 10 * SECOND));
  e = last_error (sa, 3);
  assert_int_equal (e->error, EIO);
  assert_string_equal (e->operation, "flush");
  assert_false (e->has_off);
  end_degraded (sa);
}

static void
test_no_answer (void **state)
{
  struct sim_array *sa = start_full (3, 2, CHUNK, 8);
  const struct array_error *e;

  assert_true (sim_array_pause (sa, 20 * SECOND));
  sim_disk_hang (sa->disk[2], true);
  put (sa, 0, 3 * CHUNK, ARRAY_FUA);
  assert_true (sim_array_settle (sa, 10 * SECOND));
  e = last_error (sa, 2);
  assert_int_equal (e->error, ETIMEDOUT);
  assert_string_equal (e->operation, "write");
  end_degraded (sa);
}

/* Of its superblock, of which it has two copies to be written first. */
static void
test_store_error (void **state)
{
  struct sim_array *sa = start_full (3, 2, CHUNK, 8);
  const struct array_error *e;

  assert_true (sim_array_pause (sa, 20 * SECOND));
  sa->disk[4]->write_error_ppm = 1000000;
  assert_int_equal (sim_array_fail (sa, 0), 0);
  e = last_error (sa, 4);
  assert_int_equal (e->error, EIO);
  assert_string_equal (e->operation, "write");
  assert_int_equal (e->off, 0);
  end_degraded (sa);
}

/* A read that fails once, and not when it is repeated. */
static void
test_fails_once (void **state)
{
  struct sim_array *sa = start_full (3, 2, CHUNK, 8);
  unsigned nr = 0;

  for (unsigned i = 0; i < 200; i++) {
    const struct array_entry *e;

    open_again (sa, ~0, true);
    sa->disk[1]->read_error_ppm = 100000;
    check_range (sa, i % 24 * CHUNK, 4096);
    e = entry (sa, 1);
    assert_int_equal (e->errors > 0, e->last_error.error == EIO);
    nr += e->errors > 0;
    sa->disk[1]->read_error_ppm = 0;
  }
  assert_true (nr > 0);
  end_whole (sa);
}

/* Writes that wait for space are no errors. */
static void
test_no_space (void **state)
{
  struct sim_array *sa = start_full (3, 2, CHUNK, 8);
  struct sim_request *q;

  assert_int_equal (sim_array_zero (sa, 6 * CHUNK, 0, ARRAY_TRIM), 0);
  sa->disk[2]->full = true;
  q = start_request (sa, REQUEST_WRITE, data, 0, 6 * CHUNK, ARRAY_FUA);
  assert_true (sim_array_pause (sa, 10 * SECOND));
  assert_true (entry (sa, 2)->no_space);
  for (unsigned i = 0; i < 5; i++)
    assert_int_equal (last_error (sa, i)->error, 0);
  sa->disk[2]->full = false;
  assert_true (sim_array_pause (sa, 10 * SECOND));
  assert_int_equal (q->state, SIM_IDLE);
  free (q);
  end_whole (sa);
}

/* ---- deleted files ------------------------------------------------------- */

static void
expect_active (struct sim_array *sa, uint64_t slots)
{
  assert_int_equal (sa->a->lost_slots, ~slots & LOW_BITS (sa->a->n));
}

static void
test_deleted (void **state)
{
  struct sim_array *sa = start_full (2, 2, CHUNK, 8);
  const unsigned spare = sim_array_add_disk (sa);

  sa->watch_ns = 3 * SECOND;
  open_again (sa, 15, true);
  assert_true (sim_array_pause (sa, 100 * SECOND));
  expect_active (sa, 15);
  sa->disk[1]->deleted = true;
  assert_true (sim_array_pause (sa, 7 * SECOND));
  expect_active (sa, 13);
  assert_int_equal (last_error (sa, 1)->error, ENOENT);
  assert_string_equal (last_error (sa, 1)->operation, "check");
  assert_false (last_error (sa, 1)->has_off);
  assert_int_equal (entry (sa, 1)->state, ENTRY_FAILED);

  /* One of two at once; the other is only reported, once. */
  noticed[0] = '\0';
  log_set_sink (hear);
  sa->disk[0]->deleted = sa->disk[3]->deleted = true;
  assert_true (sim_array_pause (sa, 60 * SECOND));
  assert_int_equal (sa->a->lost_slots, BIT (0) | BIT (1));
  check_all (sa);
  assert_ptr_equal (strstr (noticed, "slot 0: disk0: its file was deleted"),
                    noticed);
  assert_non_null (strstr (noticed, "slot 3: disk3: its file was deleted; it "
                           "stays in use"));
  assert_null (strstr (strstr (noticed, "slot 3") + 1, "slot 3"));

  /* Until another can do without it. */
  assert_int_equal (sim_array_replace (sa, 0, spare), 0);
  assert_true (sim_array_settle (sa, 100 * SECOND));
  assert_true (sim_array_pause (sa, 10 * SECOND));
  expect_active (sa, 5);
  check_all (sa);
  end_degraded (sa);
}

/* Of a spare; and while it only reads. */
static void
test_deleted_spare (void **state)
{
  struct sim_array *sa = start_full (2, 2, CHUNK, 8);
  const unsigned spare = sim_array_add_disk (sa);

  sa->watch_ns = 3 * SECOND;
  open_again (sa, 15, true);
  assert_int_equal (sim_array_spare (sa, spare), 0);
  assert_int_equal (entry (sa, 0)->state, ENTRY_ACTIVE);
  assert_int_equal (st.nr_entries, 5);
  noticed[0] = '\0';
  log_set_sink (hear);
  open_again (sa, 31, true);
  assert_string_equal (noticed, "");
  open_again (sa, 15, false);
  assert_string_equal (noticed, "1 spare is not there: name it among the "
                       "members, or take it out with gpuraid fail");
  open_again (sa, 31, true);
  sa->disk[spare]->deleted = true;
  assert_true (sim_array_pause (sa, 7 * SECOND));
  (void) entry (sa, 0);
  assert_int_equal (st.nr_entries, 4);
  open_again (sa, 15, false);
  sa->disk[2]->deleted = true;
  assert_true (sim_array_pause (sa, 7 * SECOND));
  expect_active (sa, 11);
  check_all (sa);
  end_degraded (sa);
}

/* ---- a rebuild that waits ------------------------------------------------ */

static void
expect_target (struct sim_array *sa, unsigned i, const char *path)
{
  const struct array_entry *e = entry (sa, i);

  assert_true (st.nr_entries > i);
  assert_int_equal (e->slot, 1);
  assert_int_equal (e->state, ENTRY_REBUILDING);
  assert_string_equal (e->path, path);
  assert_int_equal (e->errors, 0);
}

/* The new member is listed before a client comes, also where the old one is
 * gone.
 */
static void
test_target_waits (void **state)
{
  struct sim_array *sa = start_full (2, 2, CHUNK, 32);
  const unsigned new = sim_array_add_disk (sa);

  array_set_rate (sa->a, CHUNK);
  assert_int_equal (sim_array_replace (sa, 1, new), 0);
  expect_target (sa, 4, "disk4");
  open_again (sa, ~0, false);
  assert_int_equal (entry (sa, 1)->state, ENTRY_ACTIVE);
  expect_target (sa, 4, "disk4");
  assert_int_equal (st.nr_entries, 5);
  assert_int_equal (st.state, ARRAY_HEALTHY);
  assert_true (st.waits_for_writer);
  open_again (sa, ~BIT (1), false);
  expect_target (sa, 1, "disk4");
  assert_int_equal (st.nr_entries, 4);
  assert_int_equal (st.state, ARRAY_DEGRADED);
  assert_int_equal (sim_array_writable (sa), 0);
  expect_target (sa, 1, "disk4");
  assert_int_equal (st.nr_entries, 4);
  assert_true (sim_array_settle (sa, 1000 * SECOND));
  assert_int_equal (entry (sa, 1)->state, ENTRY_ACTIVE);
  assert_int_equal (st.nr_entries, 4);
  end_whole (sa);
}

/* ---- the state ----------------------------------------------------------- */

static void
expect (struct sim_array *sa, enum array_state state, unsigned reasons)
{
  (void) entry (sa, 0);
  assert_int_equal (st.state, state);
  assert_int_equal (st.reasons, reasons);
}

/* Healthy only when the parity is right, and not before. */
static void
test_resync (void **state)
{
  struct sim_array *sa;
  bool ran = false;

  sim_consistency = CONSISTENCY_NONE;
  sim_checksum = CHECKSUM_NONE;
  sa = start_full (3, 2, CHUNK, 64);
  expect (sa, ARRAY_HEALTHY, 0);
  put (sa, 0, 1000, ARRAY_FUA);
  crash_array (sa);
  noticed[0] = '\0';
  log_set_sink (hear);
  open_again (sa, ~0, false);
  assert_non_null (strstr (noticed, "resync pending"));
  expect (sa, ARRAY_DEGRADED, ARRAY_WHY_RESYNC_PENDING);
  assert_true (sim_array_pause (sa, 100 * SECOND));
  expect (sa, ARRAY_DEGRADED, ARRAY_WHY_RESYNC_PENDING);
  assert_int_equal (sim_array_writable (sa), 0);
  while (sa->a->nr_unsynced > 0) {
    expect (sa, ARRAY_DEGRADED, ARRAY_WHY_RESYNC);
    ran = true;
    assert_true (sim_step (sa->sim));
  }
  assert_true (ran);
  expect (sa, ARRAY_HEALTHY, 0);

  noticed[0] = '\0';
  open_again (sa, ~0, true);
  assert_string_equal (noticed, "");
  expect (sa, ARRAY_HEALTHY, 0);
  end_whole (sa);
}

static void
test_members (void **state)
{
  struct sim_array *sa = start_full (3, 2, CHUNK, 8);

  assert_int_equal (sim_array_fail (sa, 1), 0);
  expect (sa, ARRAY_DEGRADED, ARRAY_WHY_MEMBERS);
  assert_int_equal (sim_array_replace (sa, 1, sim_array_add_disk (sa)), 0);
  expect (sa, ARRAY_DEGRADED, ARRAY_WHY_MEMBERS);
  assert_true (sim_array_settle (sa, 1000 * SECOND));
  expect (sa, ARRAY_HEALTHY, 0);
  end_whole (sa);
}

/* All slots are active, but a rebuild could not make some blocks; then they are
 * written.
 */
static void
test_lost_blocks (void **state)
{
  struct sim_array *sa = start_full (2, 1, CHUNK, 8);

  open_again (sa, ~0, true);    /* with an empty cache */
  assert_int_equal (sim_array_fail (sa, 0), 0);
  sim_disk_set_bad (sa->disk[1], place (sa, 2, 0), 4096);
  sim_disk_set_bad (sa->disk[2], place (sa, 2, 0), 4096);
  assert_int_equal (sim_array_replace (sa, 0, sim_array_add_disk (sa)), 0);
  assert_true (sim_array_settle (sa, 1000 * SECOND));
  assert_int_equal (sa->a->irregular_slots, 0);
  expect (sa, ARRAY_DEGRADED, ARRAY_WHY_BLOCKS);
  noticed[0] = '\0';
  log_set_sink (hear);
  open_again (sa, ~0, true);
  assert_non_null (strstr (noticed, "blocks lost"));
  expect (sa, ARRAY_DEGRADED, ARRAY_WHY_BLOCKS);
  put (sa, 4 * CHUNK, 2 * CHUNK, ARRAY_FUA);
  assert_true (sim_array_pause (sa, 10 * SECOND));
  expect (sa, ARRAY_HEALTHY, 0);
  end_whole (sa);
}

/* ---- the time left ------------------------------------------------------- */

static uint64_t
seconds_left (struct sim_array *sa, bool scrub)
{
  (void) entry (sa, 0);
  return scrub ? st.scrub.eta_seconds : st.rebuild.eta_seconds;
}

static bool
is_over (struct sim_array *sa, bool scrub)
{
  (void) entry (sa, 0);
  return scrub ? !st.scrub.running : !st.rebuild.running;
}

static void
set_delay (struct sim_array *sa, uint64_t ns)
{
  for (unsigned i = 0; i < sa->nr_disks; i++)
    sa->disk[i]->min_delay_ns = sa->disk[i]->max_delay_ns = ns;
}

/* After a while the disks become ten times as fast: soon the time left is right
 * to within a third.
 */
static void
follow (struct sim_array *sa, bool scrub)
{
  uint64_t eta, then;

  set_delay (sa, SECOND / 2);
  assert_true (sim_array_pause (sa, 60 * SECOND));
  assert_false (is_over (sa, scrub));
  set_delay (sa, SECOND / 20);
  assert_true (sim_array_pause (sa, 12 * SECOND));
  eta = seconds_left (sa, scrub);
  then = sim_now (sa->sim);
  while (!is_over (sa, scrub))
    assert_true (sim_step (sa->sim));
  then = (sim_now (sa->sim) - then) / SECOND;
  assert_in_range (then, 10, 1000);
  assert_in_range (eta, then * 2 / 3, then * 4 / 3);
}

static void
test_time_left (void **state)
{
  const uint64_t in_flight = limits.rebuild_in_flight_len;
  struct sim_array *sa;

  sim_consistency = CONSISTENCY_NONE;
  sim_checksum = CHECKSUM_NONE;
  limits.rebuild_in_flight_len = CHUNK;
  sa = start_full (2, 1, CHUNK, 700);
  sa->window_len = 64 * CHUNK;
  open_again (sa, ~0, true);
  assert_int_equal (sim_array_replace (sa, 1, sim_array_add_disk (sa)), 0);
  follow (sa, false);
  set_delay (sa, 100000);
  assert_true (sim_array_settle (sa, 100 * SECOND));
  end_whole (sa);
  limits.rebuild_in_flight_len = in_flight;
}

static void
test_time_left_of_scrub (void **state)
{
  struct sim_array *sa;
  char why[ARRAY_WHY_LEN];

  sa = start_full (2, 1, CHUNK, 8000);
  engine_lock (sa->a);
  assert_int_equal (scrub_start (sa->a, false, why), 0);
  engine_unlock (sa->a);
  follow (sa, true);
  end_whole (sa);
}

/* ---- stages of a write-out ----------------------------------------------- */

/* Write each stripe's first bytes, durably: the stages that time was spent in,
 * and check that all of it was.  A single one of them may take no time.
 */
static struct array_stages
stages_of (struct sim_array *sa, uint64_t len)
{
  struct array_stages before, s;
  uint64_t began, all, sum;

  entry (sa, 0);
  before = st.stages;
  all = st.lock.taken;
  began = sim_now (sa->sim);
  for (unsigned i = 0; i < 8; i++)
    put (sa, i * 3 * CHUNK, len, ARRAY_FUA);
  entry (sa, 0);
  assert_true (st.lock.taken > all);
#define SINCE(key) s.key = st.stages.key - before.key;
  ARRAY_STAGES (SINCE)
#undef SINCE
  all = sim_now (sa->sim) - began;
  sum = s.asked + s.begun + s.read + s.coded + s.gathered + s.records +
    s.flushed;
  assert_in_range (sum, all / 2, all);
  return s;
}

static void
test_stages (void **state)
{
  struct sim_array *sa;
  struct array_stages s;

  sim_consistency = CONSISTENCY_JOURNAL;
  sa = start_full (3, 2, CHUNK, 8);
  open_again (sa, ~0, true);
  s = stages_of (sa, 4096);
  assert_true (s.read > 0 && s.coded > 0 && s.records > 0 && s.flushed > 0);
  s = stages_of (sa, 3 * CHUNK);
  assert_true (s.read == 0 && s.coded > 0 && s.records > 0 && s.flushed > 0);
  assert_true (sim_array_pause (sa, 10 * SECOND));
  entry (sa, 0);
  assert_true (st.stages.placed > 0 && st.stages.freed > 0);
  end_whole (sa);
  sim_consistency = CONSISTENCY_NONE;
}

static int
free_all (void **state)
{
  array_status_free (&st);
  return free_data (state);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown (test_read_error, free_all),
    cmocka_unit_test_teardown (test_write_error, free_all),
    cmocka_unit_test_teardown (test_flush_error, free_all),
    cmocka_unit_test_teardown (test_no_answer, free_all),
    cmocka_unit_test_teardown (test_store_error, free_all),
    cmocka_unit_test_teardown (test_fails_once, free_all),
    cmocka_unit_test_teardown (test_no_space, free_all),
    cmocka_unit_test_teardown (test_deleted, free_all),
    cmocka_unit_test_teardown (test_deleted_spare, free_all),
    cmocka_unit_test_teardown (test_target_waits, free_all),
    cmocka_unit_test_teardown (test_resync, free_all),
    cmocka_unit_test_teardown (test_members, free_all),
    cmocka_unit_test_teardown (test_lost_blocks, free_all),
    cmocka_unit_test_teardown (test_time_left, free_all),
    cmocka_unit_test_teardown (test_time_left_of_scrub, free_all),
    cmocka_unit_test_teardown (test_stages, free_all),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
