/* gpuraid: the beat that tells other hosts that this server is alive.
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

#include "array/io/superblock.h"
#include "array/main-loop.h"
#include "array/stores/copies.h"
#include "common/bits.h"
#include "tests/engine-array.h"

#define SLOT 1u                 /* whose member hangs */

/* live_check waits for longer. */
#define GAP (7 * SECOND)

static struct found found;

static uint32_t
read_beat (struct sim_array *sa, unsigned slot)
{
  assert_int_equal (copies_read (sa->a->at[slot][0]->m, &found, NULL), 0);
  assert_int_equal (found.result[SB_A2], SB_OK);
  return found.sb[SB_A2].beat;
}

static struct sim_array *
start_beating (void)
{
  struct sim_array *sa = start_full (2, 2, CHUNK, 100);

  sa->watch_ns = 3 * SECOND;
  open_again (sa, 15, false);
  sa->a->sb.incompat |= SB_INCOMPAT_MULTIHOST;
  sa->a->beat = 1;
  assert_int_equal (sim_array_writable (sa), 0);
  return sa;
}

/* It lives until the last save, and is cleared by that; also when a member is
 * taken out in a stop that takes long.
 */
static void
test_stop (void **state)
{
  struct sim_array *sa = start_beating ();
  uint64_t changed;
  uint32_t beat;

  put (sa, 0, 100 * CHUNK, 0);
  sim_disk_hang (sim_array_disk_at (sa, SLOT), true);
  beat = read_beat (sa, 0);
  changed = sim_now (sa->sim);
  while (!stop_step (sa->a)) {
    if (beat != read_beat (sa, 0))
      changed = sim_now (sa->sim);
    beat = read_beat (sa, 0);
    assert_true (beat != 0 || sa->a->ending);
    assert_true (sim_now (sa->sim) < changed + GAP);
    assert_true (sim_step (sa->sim));
  }
  assert_int_equal (sa->a->lost_slots, BIT (SLOT));
  assert_int_equal (read_beat (sa, 0), 0);
  sim_disk_hang (sa->disk[SLOT], false);
  assert_true (sim_array_pause (sa, SECOND));
  end_degraded (sa);
}

static uint64_t
read_epoch (struct sim_array *sa, unsigned disk)
{
  static struct superblock sb;
  uint64_t epoch = 0;

  for (enum sb_copy c = 0; c < SB_NR_COPIES; c++)
    if (superblock_decode (sa->disk[disk]->image +
                           layout_sb_off (sa->disk[disk]->size, c), c, &sb,
                           NULL) == SB_OK)
      epoch = MAX (epoch, sb.record.self.ballot.epoch);
  return epoch;
}

/* A member fails in the last save, when the others have a beat of 0: no record
 * follows, as another host may have made one by then.
 */
static void
test_fails_at_the_end (void **state)
{
  struct sim_array *sa = start_beating ();
  const uint64_t epoch = read_epoch (sa, 0);

  while (!stop_step (sa->a)) {
    sim_disk_hang (sim_array_disk_at (sa, SLOT), sa->a->ending);
    assert_true (sim_step (sa->sim));
  }
  assert_int_equal (read_epoch (sa, 0), epoch);
  assert_int_equal (read_beat (sa, 0), 0);
  sim_disk_hang (sa->disk[SLOT], false);
  assert_true (sim_array_pause (sa, SECOND));
  assert_int_equal (read_epoch (sa, 0), epoch);
  end_whole (sa);
}

/* Only a stop ends it, also when no member is remote any more. */
static void
test_kept (void **state)
{
  struct sim_array *sa = start_beating ();
  uint32_t beat;

  assert_true (sim_array_pause (sa, GAP));
  sa->a->sb.incompat &= ~SB_INCOMPAT_MULTIHOST;
  assert_true (sim_array_pause (sa, SECOND));
  beat = read_beat (sa, 0);
  assert_true (sim_array_pause (sa, GAP));
  assert_int_not_equal (read_beat (sa, 0), beat);
  end_whole (sa);
}

/* A record of another server, in this copy. */
static void
another_writes (struct sim_disk *d, enum sb_copy c)
{
  const uint64_t off = layout_sb_off (d->size, c);
  static struct superblock sb;

  assert_int_equal (superblock_decode (d->visible + off, c, &sb, NULL), SB_OK);
  sb.record.self.ballot.epoch++;
  sb.record.self.ballot.session++;
  strcpy (sb.host, "other");
  superblock_encode (&sb, d->visible + off);
  memcpy (d->stable + off, d->visible + off, SB_LEN);
}

/* Its first record is on these disks. */
static void
another_opens (struct sim_array *sa, uint64_t which)
{
  FOR_EACH_BIT (slot, which)
    for (enum sb_copy c = 0; c < SB_NR_COPIES; c++)
      another_writes (sim_array_disk_at (sa, slot), c);
}

/* It stands still with something to write, for longer than its beat allows.  If
 * another server has its disks by then, on all of them or on as few as make
 * a record, nothing is written any more.
 */
static void
test_away (void **state)
{
  static const uint64_t which[] = { 15, 7, 14 };

  for (unsigned i = 0; i < ARRAY_LEN (which); i++) {
    struct sim_array *sa = start_beating ();
    struct sim_request *q;

    assert_true (sim_array_pause (sa, GAP));
    q = start_request (sa, REQUEST_WRITE, data, 0, 4 * CHUNK, ARRAY_FUA);
    sim_pause (sa->sim, 20 * SECOND);
    another_opens (sa, which[i]);
    count_from_here (sa);
    assert_true (sim_array_pause (sa, 10 * SECOND));
    assert_true (sa->a->failed);
    assert_non_null (strstr (sa->said, "another server, on host other"));
    assert_int_equal (ios (sa, IO_WRITE), 0);
    assert_int_equal (q->state, SIM_IDLE);
    assert_int_equal (q->r.error, EIO);
    free (q);
    assert_int_equal (sim_array_write (sa, data, CHUNK, 0, ARRAY_FUA), EIO);
    assert_int_equal (ios (sa, IO_WRITE), 0);
    crash_array (sa);
    sim_array_free (sa);
  }
}

static unsigned
nr_in_flight (const struct sim_disk *d)
{
  unsigned nr = 0;

  for (struct list *l = d->in_flight.next; l != &d->in_flight; l = l->next)
    nr++;
  return nr;
}

/* Each disk hangs when it has answered one of the reads, and then another
 * server writes its record.
 */
static void
hang_early (struct sim_array *sa)
{
  uint64_t hung = 0;

  while (hung != 15) {
    assert_true (sim_step (sa->sim));
    FOR_EACH_BIT (slot, 15 & ~hung) {
      struct sim_disk *d = sim_array_disk_at (sa, slot);

      if (sa->a->lease.looking && nr_in_flight (d) < SB_NR_COPIES) {
        another_opens (sa, BIT (slot));
        sim_disk_hang (d, true);
        hung |= BIT (slot);
      }
    }
  }
}

/* Nothing is written while a record may be in copies that can't be read, or
 * have not answered.
 */
static void
test_away_unseen (void **state)
{
  for (int slow = 0; slow < 2; slow++) {
    struct sim_array *sa = start_beating ();
    struct sim_request *q;

    assert_true (sim_array_pause (sa, GAP));
    q = start_request (sa, REQUEST_WRITE, data, 0, 4 * CHUNK, ARRAY_FUA);
    sim_pause (sa->sim, 20 * SECOND);
    count_from_here (sa);
    if (slow)
      hang_early (sa);
    else
      FOR_EACH_BIT (slot, 15u) {
        struct sim_disk *d = sim_array_disk_at (sa, slot);

        another_writes (d, SB_A1);
        another_writes (d, SB_B1);
        sim_disk_set_bad (d, layout_sb_off (d->size, SB_A1), SB_LEN);
        sim_disk_set_bad (d, layout_sb_off (d->size, SB_B1), SB_LEN);
      }
    assert_true (sim_array_pause (sa, 10 * SECOND));
    assert_int_equal (ios (sa, IO_WRITE), 0);
    assert_false (sa->a->failed);
    FOR_EACH_BIT (slot, 15u) {
      struct sim_disk *d = sim_array_disk_at (sa, slot);

      memset (d->bad, 0, d->size / SIM_BLOCK);
      sim_disk_hang (d, false);
    }
    assert_true (sim_array_pause (sa, 3 * SECOND));
    assert_true (sa->a->failed);
    assert_int_equal (ios (sa, IO_WRITE), 0);
    assert_int_equal (q->r.error, EIO);
    free (q);
    crash_array (sa);
    sim_array_free (sa);
  }
}

/* If there was none, it goes on; also where not all disks answer. */
static void
test_away_alone (void **state)
{
  for (unsigned i = 0; i < 3; i++) {
    struct sim_array *sa = start_beating ();
    uint32_t beat;

    assert_true (sim_array_pause (sa, GAP));
    beat = read_beat (sa, 0);
    sim_pause (sa->sim, 20 * SECOND);
    if (i > 0)
      sim_disk_hang (sim_array_disk_at (sa, SLOT), true);
    if (i == 2) {
      struct sim_request *q =
        start_request (sa, REQUEST_WRITE, data, 0, CHUNK, ARRAY_FUA);

      assert_true (sim_array_pause (sa, 3 * SECOND));
      assert_true (ios (sa, IO_WRITE) > 0);
      sim_disk_hang (sim_array_disk_at (sa, SLOT), false);
      assert_true (sim_array_pause (sa, 3 * SECOND));
      assert_int_equal (q->r.error, 0);
      free (q);
    }
    else if (i == 1) {
      assert_true (sim_array_pause (sa, 3 * SECOND));
      sim_disk_hang (sim_array_disk_at (sa, SLOT), false);
    }
    put (sa, 0, 100 * CHUNK, ARRAY_FUA);
    assert_true (sim_array_pause (sa, GAP));
    assert_int_not_equal (read_beat (sa, 0), beat);
    assert_int_equal (sa->a->lost_slots, 0);
    end_whole (sa);
  }
}

static void *
longer (void *p, uint64_t len, uint64_t more)
{
  p = realloc (p, len + more);
  assert_non_null (p);
  memset ((uint8_t *) p + len, 0, more);
  return p;
}

/* A disk becomes longer: its copies at the end are not there any more, so they
 * are written first.
 */
static void
test_longer (void **state)
{
  const uint64_t more = 1 << 20;
  struct sim_array *sa = start_beating ();
  struct sim_disk *d = sim_array_disk_at (sa, SLOT);
  static struct superblock sb;
  uint8_t before[SB_LEN];

  do
    assert_true (sim_array_pause (sa, SECOND / 10));
  while (sa->a->beat < 3 || save_is_busy (sa->a));
  d->image = d->visible = longer (d->visible, d->size, more);
  d->stable = longer (d->stable, d->size, more);
  d->bad = longer (d->bad, d->size / SIM_BLOCK, more / SIM_BLOCK);
  d->lied = longer (d->lied, d->size / SIM_BLOCK, more / SIM_BLOCK);
  d->used = longer (d->used, d->size / SIM_BLOCK, more / SIM_BLOCK);
  d->size += more;
  memcpy (before, d->visible + layout_sb_off (d->size, SB_A2), SB_LEN);
  while (memcmp (before, d->visible + layout_sb_off (d->size, SB_A2),
                 SB_LEN) == 0)
    assert_true (sim_step (sa->sim));
  assert_int_equal (superblock_decode (d->stable +
                                       layout_sb_off (d->size, SB_B2), SB_B2,
                                       &sb, NULL), SB_OK);
  assert_true (sim_array_pause (sa, GAP));
  end_whole (sa);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_stop),
    cmocka_unit_test (test_fails_at_the_end),
    cmocka_unit_test (test_kept),
    cmocka_unit_test (test_longer),
    cmocka_unit_test (test_away),
    cmocka_unit_test (test_away_unseen),
    cmocka_unit_test (test_away_alone),
  };

  return cmocka_run_group_tests (tests, NULL, free_data);
}
