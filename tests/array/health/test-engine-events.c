/* gpuraid: which events an array tells, in which order, and how often.
 *
 * run-tests: no-thread
 * Only one thread runs at a time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "array/watch/stalled.h"
#include "common/bits.h"
#include "tests/engine-array.h"

/* What was told: "member-failed 1 disk1 degraded; ...". */
static char told[4096];
static char message[ARRAY_WHY_LEN];     /* the last one */
static uint64_t corrupt;

static void
note (void *opaque, const struct array_event *e)
{
  static const char *const kind[] = {
    "failed", "degraded", "array-failed", "spare", "rebuilt", "corruption",
    "no-space", "stalled", "change-failed",
  };
  static const char *const state[] = { "healthy", "degraded", "failed" };
  const size_t len = strlen (told);

  corrupt += e->number;
  if (e->message[0])
    snprintf (message, sizeof message, "%s", e->message);
  if (e->member.slot == SLOT_NONE)
    snprintf (told + len, sizeof told - len, "%s - %s; ", kind[e->kind],
              state[e->state]);
  else
    snprintf (told + len, sizeof told - len, "%s %u %s %s; ", kind[e->kind],
              e->member.slot, e->member.path, state[e->state]);
}

static void
expect (const char *want)
{
  assert_string_equal (told, want);
  told[0] = '\0';
}

static struct sim_array *
start (unsigned k, unsigned m, bool sums)
{
  struct sim_array *sa;

  told[0] = '\0';
  corrupt = 0;
  sim_consistency = sums ? CONSISTENCY_JOURNAL : CONSISTENCY_NONE;
  sim_checksum = sums ? CHECKSUM_CRC32C : CHECKSUM_NONE;
  limits.ring_min_len = 128 * 1024;
  sa = start_full (k, m, CHUNK, 32);
  sa->event = note;
  open_again (sa, ~0, true);
  assert_true (sim_array_pause (sa, 20 * SECOND));
  expect ("");
  return sa;
}

static void
settle (struct sim_array *sa)
{
  assert_true (sim_array_settle (sa, 1000 * SECOND));
}

static void
test_spare (void **state)
{
  struct sim_array *sa = start (2, 2, false);

  assert_int_equal (sim_array_spare (sa, sim_array_add_disk (sa)), 0);
  expect ("");
  sa->disk[1]->dead = true;
  put (sa, 0, 4 * CHUNK, ARRAY_FUA);
  settle (sa);
  assert_true (sim_array_pause (sa, SECOND));
  expect ("failed 1 disk1 degraded; degraded - degraded; "
          "spare 1 disk4 degraded; rebuilt 1 disk4 healthy; ");
  end_whole (sa);
}

static void *
run_on (void *opaque)
{
  struct sim_array *sa = opaque;

  for (unsigned i = 0; i < 1000; i++)
    (void) sim_step (sa->sim);
  return NULL;
}

/* The first is told slowly: what happens meanwhile, by another thread, is told
 * after it.
 */
static void
note_slowly (void *opaque, const struct array_event *e)
{
  pthread_t thread;

  if (e->kind == ARRAY_EVENT_MEMBER_FAILED) {
    assert_int_equal (pthread_create (&thread, NULL, run_on, opaque), 0);
    assert_int_equal (pthread_join (thread, NULL), 0);
  }
  note (opaque, e);
}

static void
test_order (void **state)
{
  struct sim_array *sa = start (2, 2, false);

  assert_int_equal (sim_array_spare (sa, sim_array_add_disk (sa)), 0);
  sa->event = note_slowly;
  open_again (sa, ~0, true);
  sa->disk[1]->dead = true;
  put (sa, 0, 4 * CHUNK, ARRAY_FUA);
  settle (sa);
  expect ("failed 1 disk1 degraded; degraded - degraded; "
          "spare 1 disk4 degraded; rebuilt 1 disk4 healthy; ");
  end_whole (sa);
}

static void
test_failed (void **state)
{
  struct sim_array *sa = start (2, 1, false);

  assert_int_equal (sim_array_fail (sa, 0), 0);
  expect ("failed 0 disk0 degraded; degraded - degraded; ");
  sa->disk[2]->dead = true;
  assert_int_equal (sim_array_write (sa, data, 4 * CHUNK, 0, ARRAY_FUA), EIO);
  expect ("failed 2 disk2 failed; array-failed - failed; ");
  assert_true (sim_array_stop (sa));
  sim_array_free (sa);
}

/* At the start too, before anything is written. */
static void
test_degraded_at_start (void **state)
{
  struct sim_array *sa = start (2, 1, false);

  open_again (sa, 3, false);
  expect ("degraded - degraded; ");
  assert_int_equal (sim_array_writable (sa), 0);
  expect ("");
  end_degraded (sa);
}

/* A replaced member has not failed. */
static void
test_replaced (void **state)
{
  struct sim_array *sa = start (2, 1, false);

  assert_int_equal (sim_array_replace (sa, 1, sim_array_add_disk (sa)), 0);
  settle (sa);
  expect ("rebuilt 1 disk3 healthy; ");
  end_whole (sa);
}

/* A new member fails, or is taken out: that is told once.  The array is as
 * healthy as before.
 */
static void
test_change_failed (void **state)
{
  struct sim_array *sa = start (2, 2, false);
  unsigned new = sim_array_add_disk (sa);

  array_set_rate (sa->a, CHUNK);
  assert_int_equal (sim_array_replace (sa, 1, new), 0);
  sa->disk[new]->dead = true;
  assert_true (sim_array_pause (sa, 100 * SECOND));
  expect ("failed 1 disk4 healthy; change-failed 1 disk4 healthy; ");
  assert_string_equal (message, "slot 1: disk4: not rebuilt: write: "
                       "No such device");

  assert_int_equal (sim_array_fail (sa, 0), 0);
  expect ("failed 0 disk0 degraded; degraded - degraded; ");
  new = sim_array_add_disk (sa);
  assert_int_equal (sim_array_replace (sa, 0, new), 0);
  assert_int_equal (sim_array_fail (sa, 0), 0);
  assert_true (sim_array_pause (sa, 100 * SECOND));
  expect ("failed 0 disk5 degraded; change-failed 0 disk5 degraded; ");
  assert_string_equal (message, "slot 0: disk5: not rebuilt: taken out by "
                       "command");
  end_degraded (sa);
}

/* After a restart the new member of an active one is not there.  It is not
 * waited for, and that is told when the array is opened for writing.
 */
static void
test_change_dropped (void **state)
{
  struct sim_array *sa = start (2, 2, false);
  const unsigned new = sim_array_add_disk (sa);
  struct array_status st;

  array_set_rate (sa->a, CHUNK);
  assert_int_equal (sim_array_replace (sa, 1, new), 0);
  open_again (sa, ~BIT (new), false);
  expect ("");
  assert_int_equal (sim_array_writable (sa), 0);
  assert_true (sim_array_pause (sa, 100 * SECOND));
  expect ("change-failed - healthy; ");
  assert_string_equal (message, "slot 1: not rebuilt: the new member was not "
                       "found, or has failed");
  array_get_status (sa->a, &st);
  assert_string_equal (st.failed_change, message);
  array_status_free (&st);
  open_again (sa, ~0, true);
  expect ("");
  end_whole (sa);
}

/* The first at once, the others in one a minute later. */
static void
test_corruption (void **state)
{
  struct sim_array *sa = start (2, 2, true);
  static uint8_t bad[BLOCK_LEN];

  open_again (sa, ~0, true);
  for (unsigned s = 0; s < 6; s++) {
    struct sim_disk *d = disk_of_role (sa, s, 0);

    sim_disk_poke (d, bad, sizeof bad, place (sa, s, 0));
    check_range (sa, s * 2 * CHUNK, 100);
  }
  told[strcspn (told, " ")] = '\0';
  expect ("corruption");
  assert_true (sim_array_pause (sa, 50 * SECOND));
  expect ("");
  assert_int_equal (corrupt, 1);
  assert_true (sim_array_pause (sa, 20 * SECOND));
  told[strcspn (told, " ")] = '\0';
  expect ("corruption");
  assert_int_equal (corrupt, 6);
  assert_true (sim_array_pause (sa, 200 * SECOND));
  expect ("");
  end_whole (sa);
}

/* Once a minute, however often there is space in between. */
static void
test_no_space (void **state)
{
  struct sim_array *sa = start (2, 1, false);

  for (unsigned i = 0; i < 5; i++) {
    struct sim_request *q;

    assert_int_equal (sim_array_zero (sa, 4 * CHUNK, 0, ARRAY_TRIM), 0);
    sa->disk[2]->full = true;
    q = start_request (sa, REQUEST_WRITE, data, 0, 4 * CHUNK, 0);
    while (q->state != SIM_IDLE)
      assert_true (sim_step (sa->sim));
    free (q);
    assert_int_equal (sim_array_flush (sa), ENOSPC);
    sa->disk[2]->full = false;
    assert_true (sim_array_pause (sa, SECOND));
    assert_int_equal (sim_array_flush (sa), 0);
  }
  expect ("no-space 2 disk2 degraded; ");
  end_whole (sa);
}

static void
expect_reasons (struct sim_array *sa, unsigned reasons, unsigned nr_silent)
{
  struct array_status st;
  unsigned nr = 0;

  array_get_status (sa->a, &st);
  assert_int_equal (st.reasons, reasons);
  for (unsigned i = 0; i < st.nr_entries; i++) {
    assert_int_equal (st.entry[i].no_answer, st.entry[i].no_answer_ns > 0);
    nr += st.entry[i].no_answer;
  }
  assert_int_equal (nr, nr_silent);
  array_status_free (&st);
}

/* More members hang than may fail: that is told after some seconds, and is over
 * with the answers.  A read in the client's thread waits likewise.
 */
static void
test_stalled (void **state)
{
  struct sim_array *sa = start (2, 1, true);
  struct sim_request *q;

  for (unsigned i = 0; i < 2; i++)
    sim_disk_hang (sa->disk[i], true);
  q = start_request (sa, REQUEST_WRITE, data, 0, 4 * CHUNK, ARRAY_FUA);
  assert_true (sim_array_pause (sa, 4 * SECOND));
  expect_reasons (sa, 0, 0);
  expect ("");
  assert_true (sim_array_pause (sa, 100 * SECOND));
  expect_reasons (sa, ARRAY_WHY_STALLED, 2);
  expect ("stalled 0 disk0 degraded; ");
  for (unsigned i = 0; i < 2; i++)
    sim_disk_hang (sa->disk[i], false);
  while (q->state != SIM_IDLE)
    assert_true (sim_step (sa->sim));
  assert_int_equal (q->r.error, 0);
  free (q);
  assert_true (sim_array_pause (sa, SECOND));
  expect_reasons (sa, 0, 0);
  expect ("");
  end_whole (sa);
}

/* A read that began before the last write that was answered. */
static void
test_stalled_read (void **state)
{
  struct sim_array *sa = start (2, 1, true);
  struct sim_request *q;

  open_again (sa, ~0, true);
  put (sa, 2 * CHUNK, 2 * CHUNK, ARRAY_FUA);
  for (unsigned i = 0; i < 2; i++)
    sa->disk[i]->min_delay_ns = sa->disk[i]->max_delay_ns = SECOND;
  q = start_request (sa, REQUEST_READ, back, 4 * CHUNK, 40 * CHUNK, 0);
  assert_true (sim_array_pause (sa, SECOND / 1000));
  for (unsigned i = 0; i < 2; i++)
    sa->disk[i]->min_delay_ns = sa->disk[i]->max_delay_ns = 1000;
  put (sa, 2 * CHUNK, 2 * CHUNK, ARRAY_FUA);
  for (unsigned i = 0; i < 2; i++)
    sim_disk_hang (sa->disk[i], true);
  assert_true (sim_array_pause (sa, 20 * SECOND));
  expect_reasons (sa, ARRAY_WHY_STALLED, 2);
  for (unsigned i = 0; i < 2; i++)
    sim_disk_hang (sa->disk[i], false);
  assert_true (sim_array_pause (sa, SECOND));
  assert_int_equal (q->state, SIM_IDLE);
  assert_int_equal (q->r.error, 0);
  free (q);
  expect_reasons (sa, 0, 0);
  expect ("stalled 1 disk1 degraded; ");
  end_whole (sa);
}

/* Reads in clients' threads are counted in turns.  One that is late, and
 * answered before its count is used again, does not stand for those that come
 * then.
 */
static void
test_late_again (void **state)
{
  struct seat *s = calloc (1, sizeof *s);

  assert_non_null (s);
  atomic_store (&s->lane[0].begun[0], 1);
  stalled_note_preads (s, 3, 0, SECOND);
  assert_int_equal (s->pread_late[0], SECOND);
  atomic_store (&s->lane[0].ended[0], 1);
  stalled_note_preads (s, 0, 1, 2 * SECOND);
  atomic_store (&s->lane[0].begun[0], 2);
  stalled_note_preads (s, 3, 0, 3 * SECOND);
  assert_int_equal (s->pread_late[0], 3 * SECOND);
  stalled_note_preads (s, 0, 1, 4 * SECOND);
  stalled_note_preads (s, 3, 0, 5 * SECOND);
  assert_int_equal (s->pread_late[0], 3 * SECOND);
  free (s);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown (test_spare, free_data),
    cmocka_unit_test_teardown (test_order, free_data),
    cmocka_unit_test_teardown (test_failed, free_data),
    cmocka_unit_test_teardown (test_degraded_at_start, free_data),
    cmocka_unit_test_teardown (test_replaced, free_data),
    cmocka_unit_test_teardown (test_change_failed, free_data),
    cmocka_unit_test_teardown (test_change_dropped, free_data),
    cmocka_unit_test_teardown (test_corruption, free_data),
    cmocka_unit_test_teardown (test_no_space, free_data),
    cmocka_unit_test_teardown (test_stalled, free_data),
    cmocka_unit_test_teardown (test_stalled_read, free_data),
    cmocka_unit_test (test_late_again),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
