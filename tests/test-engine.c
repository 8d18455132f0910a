/* gpuraid: what the engine does, case by case, on simulated disks.
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

#include "array/cache.h"
#include "common/bits.h"
#include "tests/sim-array.h"

#define SECOND UINT64_C (1000000000)
#define CHUNK 16384u

static uint8_t *data, *back;    /* the whole array */

/* An array that is open for writing, full of data, flushed. */
static struct sim_array *
start (unsigned k, unsigned m, uint32_t chunk, uint64_t nr_stripes)
{
  const struct geometry g = { .k = k, .m = m, .chunk = chunk };
  struct sim_array *sa = sim_array_new (1, &g, nr_stripes, 0);

  free (data);
  free (back);
  data = malloc (sa->g.size);
  back = malloc (sa->g.size);
  assert_non_null (data);
  assert_non_null (back);
  for (uint64_t i = 0; i < sa->g.size; i++)
    data[i] = (i * 0x9e3779b97f4a7c15) >> 40;
  sa->cache_len = MAX (1 << 20, sa->cache_len);
  sim_array_create (sa);
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  assert_int_equal (sim_array_writable (sa), 0);
  assert_int_equal (sim_array_write (sa, data, sa->g.size, 0, ARRAY_FUA), 0);
  return sa;
}

/* Open it again, all disks or some: nothing is in the cache then. */
static void
again (struct sim_array *sa, uint64_t which, bool writable)
{
  if (sa->a)
    assert_true (sim_array_stop (sa));
  assert_int_equal (sim_array_open (sa, which, DEGRADED_ALLOW, false), 0);
  if (writable)
    assert_int_equal (sim_array_writable (sa), 0);
}

static void
crash (struct sim_array *sa)
{
  assert_true (sim_array_abandon (sa));
  sim_crash (sa->sim);
}

static void
check_range (struct sim_array *sa, uint64_t off, uint64_t len)
{
  memset (back, 0x55, len);
  assert_int_equal (sim_array_read (sa, back, len, off), 0);
  assert_memory_equal (back, data + off, len);
}

static void
check_all (struct sim_array *sa)
{
  check_range (sa, 0, sa->g.size);
}

static void
put (struct sim_array *sa, uint64_t off, uint64_t len, unsigned flags)
{
  for (uint64_t i = off; i < off + len; i++)
    data[i] += 1 + i % 5;
  assert_int_equal (sim_array_write (sa, data + off, len, off, flags), 0);
}

static void
end (struct sim_array *sa)
{
  char why[200];

  check_all (sa);
  assert_true (sim_array_stop (sa));
  if (!sim_array_parity_is_right (sa, why, sizeof why))
    fail_msg ("%s", why);
  sim_array_free (sa);
}

/* For arrays that are not whole at the end. */
static void
end_degraded (struct sim_array *sa)
{
  assert_true (sim_array_stop (sa));
  sim_array_free (sa);
}

/* ---- counting I/O -------------------------------------------------------- */

static void
count_from_here (struct sim_array *sa)
{
  for (unsigned i = 0; i < sa->nr_disks; i++) {
    memset (sa->disk[i]->nr_ios, 0, sizeof sa->disk[i]->nr_ios);
    memset (sa->disk[i]->nr_bytes, 0, sizeof sa->disk[i]->nr_bytes);
  }
}

static uint64_t
ios (const struct sim_array *sa, enum io_kind kind)
{
  uint64_t nr = 0;

  for (unsigned i = 0; i < sa->nr_disks; i++)
    nr += sa->disk[i]->nr_ios[kind];
  return nr;
}

static uint64_t
bytes (const struct sim_array *sa, enum io_kind kind)
{
  uint64_t nr = 0;

  for (unsigned i = 0; i < sa->nr_disks; i++)
    nr += sa->disk[i]->nr_bytes[kind];
  return nr;
}

/* A disk's block of a data role. */
static uint64_t
place (const struct sim_array *sa, uint64_t stripe, uint64_t chunk_off)
{
  return sa->l.data_off + stripe * sa->g.chunk + chunk_off;
}

static struct sim_disk *
disk_of_role (struct sim_array *sa, uint64_t stripe, unsigned role)
{
  return sim_array_disk_at (sa, layout_slot (&sa->g, stripe, role));
}

/* ---- writing ------------------------------------------------------------- */

static void
test_full_stripe_reads_nothing (void **state)
{
  struct sim_array *sa = start (4, 2, CHUNK, 8);
  const uint64_t stripe = 4 * CHUNK;

  again (sa, ~0, true);
  /* The dirty bit is set. */
  put (sa, 0, 4096, ARRAY_FUA);
  count_from_here (sa);
  put (sa, 2 * stripe, 3 * stripe, ARRAY_FUA);
  assert_int_equal (ios (sa, IO_READ), 0);
  assert_int_equal (bytes (sa, IO_WRITE), 3 * 6 * CHUNK);
  /* Neighbours on a member go out as one. */
  assert_int_equal (ios (sa, IO_WRITE), 6);
  assert_int_equal (ios (sa, IO_FLUSH), 6);
  end (sa);
}

/* How much does a write of some blocks of a stripe read? */
static uint64_t
read_by_write (struct sim_array *sa, uint64_t off, uint64_t len)
{
  again (sa, ~0, true);
  count_from_here (sa);
  put (sa, off, len, ARRAY_FUA);
  return bytes (sa, IO_READ) / BLOCK_LEN;
}

static void
test_small_write_reads_least (void **state)
{
  struct sim_array *sa = start (8, 2, 4096, 8);

  /* Delta: the block and both parities. */
  assert_int_equal (read_by_write (sa, 0, 4096), 3);
  assert_int_equal (read_by_write (sa, 0, 2 * 4096), 4);
  /* Of 3 either delta, 5, or the other 5. */
  assert_int_equal (read_by_write (sa, 0, 3 * 4096), 5);
  /* Reconstruction: the other data. */
  assert_int_equal (read_by_write (sa, 0, 4 * 4096), 4);
  assert_int_equal (read_by_write (sa, 4096, 7 * 4096), 1);
  assert_int_equal (read_by_write (sa, 0, 8 * 4096), 0);
  end (sa);
}

static void
test_small_write_writes_least (void **state)
{
  struct sim_array *sa = start (4, 2, CHUNK, 8);

  again (sa, ~0, true);
  put (sa, 0, 4096, ARRAY_FUA);
  count_from_here (sa);
  put (sa, CHUNK + 4096, 4096, ARRAY_FUA);
  assert_int_equal (bytes (sa, IO_WRITE), 3 * 4096);
  end (sa);
}

static void
test_unaligned_ends (void **state)
{
  static const uint64_t at[] = {
    0, 1, 511, 512, 4095, 4096, 4097, CHUNK - 1, CHUNK, CHUNK + 1,
    3 * CHUNK - 700,
  };
  struct sim_array *sa = start (3, 1, CHUNK, 8);

  for (unsigned i = 0; i < sizeof at / sizeof at[0]; i++)
    for (unsigned j = 0; j < sizeof at / sizeof at[0]; j++) {
      if (j % 4 == 0)
        again (sa, ~0, true);
      if (at[j] > 0)
        put (sa, at[i], at[j], i % 2 ? ARRAY_FUA : 0);
      check_range (sa, at[i] ? at[i] - 1 : 0, at[j] + 2);
    }
  end (sa);
}

static void
test_fua_is_durable (void **state)
{
  struct sim_array *sa = start (3, 2, CHUNK, 8);

  for (unsigned i = 0; i < 10; i++) {
    put (sa, i * 5000, 3000 + i, ARRAY_FUA);
    crash (sa);
    again (sa, ~0, true);
    check_all (sa);
  }
  end (sa);
}

static void
test_flush_is_durable (void **state)
{
  struct sim_array *sa = start (3, 2, CHUNK, 8);

  for (unsigned i = 0; i < 10; i++) {
    put (sa, i * 9000, 20000, 0);
    put (sa, i * 9000 + 1, 77, 0);
    assert_int_equal (sim_array_flush (sa), 0);
    crash (sa);
    again (sa, ~0, true);
    check_all (sa);
  }
  end (sa);
}

/* What is flushed is all that goes to the members with one flush each. */
static void
test_second_flush_does_nothing (void **state)
{
  struct sim_array *sa = start (3, 2, CHUNK, 8);

  put (sa, 0, 5000, 0);
  assert_int_equal (sim_array_flush (sa), 0);
  count_from_here (sa);
  assert_int_equal (sim_array_flush (sa), 0);
  assert_int_equal (ios (sa, IO_FLUSH) + ios (sa, IO_WRITE), 0);
  end (sa);
}

static void
test_zero_whole_stripes (void **state)
{
  struct sim_array *sa = start (4, 2, CHUNK, 16);
  const uint64_t stripe = 4 * CHUNK;

  again (sa, ~0, true);
  put (sa, 0, 4096, ARRAY_FUA);
  for (unsigned trim = 0; trim < 2; trim++) {
    const enum io_kind kind = trim ? IO_TRIM : IO_ZERO;
    const uint64_t off = (2 + 5 * trim) * stripe;

    count_from_here (sa);
    memset (data + off, 0, 4 * stripe);
    assert_int_equal (sim_array_zero (sa, 4 * stripe, off, ARRAY_FUA |
                                      (trim ? ARRAY_TRIM : 0)), 0);
    assert_int_equal (ios (sa, kind), 6);
    assert_int_equal (bytes (sa, kind), 6 * 4 * CHUNK);
    assert_int_equal (ios (sa, IO_READ) + ios (sa, IO_WRITE), 0);
  }
  check_all (sa);
  crash (sa);
  again (sa, ~0, true);
  end (sa);
}

static void
test_zero_unaligned (void **state)
{
  struct sim_array *sa = start (3, 2, CHUNK, 16);
  const uint64_t off = 3 * CHUNK - 1234, len = 4 * 3 * CHUNK + 2222;

  memset (data + off, 0, len);
  assert_int_equal (sim_array_zero (sa, len, off, ARRAY_TRIM), 0);
  check_all (sa);
  assert_int_equal (sim_array_flush (sa), 0);
  crash (sa);
  again (sa, ~0, true);
  end (sa);
}

static void
test_minimal_cache (void **state)
{
  struct sim_array *sa = start (4, 2, 65536, 32);
  struct array_status st;

  sa->cache_len = cache_min_len (&sa->g);
  again (sa, ~0, true);
  for (unsigned i = 0; i < 60; i++)
    put (sa, i * 131071 % (sa->g.size - 300000), 1000 + i * 4567 % 290000, 0);
  array_get_status (sa->a, &st);
  assert_true (st.cache_len <= sa->cache_len);
  array_status_free (&st);
  check_all (sa);
  end (sa);
}

/* ---- only looking -------------------------------------------------------- */

static void
test_reading_writes_nothing (void **state)
{
  struct sim_array *sa = start (3, 2, CHUNK, 8);

  assert_true (sim_array_stop (sa));
  for (unsigned readonly = 0; readonly < 2; readonly++) {
    count_from_here (sa);
    assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, readonly), 0);
    check_all (sa);
    if (readonly)
      assert_int_equal (sim_array_writable (sa), EROFS);
    assert_true (sim_array_stop (sa));
    assert_int_equal (ios (sa, IO_WRITE) + ios (sa, IO_ZERO) +
                      ios (sa, IO_TRIM) + ios (sa, IO_FLUSH), 0);
  }
  /* An unclean one, with a member missing. */
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_ALLOW, false), 0);
  assert_int_equal (sim_array_writable (sa), 0);
  put (sa, 0, 5000, ARRAY_FUA);
  crash (sa);
  count_from_here (sa);
  assert_int_equal (sim_array_open (sa, ~1, DEGRADED_ALLOW, true), -1);
  assert_int_equal (sim_array_open (sa, ~1, DEGRADED_FORCE, true), 0);
  check_all (sa);
  assert_true (sim_array_stop (sa));
  assert_int_equal (ios (sa, IO_WRITE) + ios (sa, IO_FLUSH), 0);
  sim_array_free (sa);
}

/* ---- errors -------------------------------------------------------------- */

static void
test_bad_block_is_repaired (void **state)
{
  struct sim_array *sa = start (3, 2, CHUNK, 8);
  struct sim_disk *d = disk_of_role (sa, 2, 1);
  const uint64_t off = layout_address (&sa->g, 2, 1, 4096);

  again (sa, ~0, true);
  sim_disk_set_bad (d, place (sa, 2, 4096), 8192);
  check_range (sa, off, 8192);
  assert_true (sim_array_pause (sa, SECOND));
  /* It can be read now, on its own. */
  again (sa, ~0, true);
  count_from_here (sa);
  check_range (sa, off, 8192);
  assert_int_equal (ios (sa, IO_READ), d->nr_ios[IO_READ]);
  assert_int_equal (sa->a->counters.decoded_bytes, 0);
  end (sa);
}

/* A block that a write needs, not a reader. */
static void
test_bad_block_under_a_write (void **state)
{
  struct sim_array *sa = start (3, 2, CHUNK, 8);

  again (sa, ~0, true);
  for (unsigned role = 0; role < 2; role++)
    sim_disk_set_bad (disk_of_role (sa, 1, role), place (sa, 1, 0), 4096);
  put (sa, layout_address (&sa->g, 1, 0, 100), 50, ARRAY_FUA);
  check_all (sa);
  end (sa);
}

static void
test_many_read_errors_eject (void **state)
{
  struct sim_array *sa = start (3, 2, CHUNK, 64);
  struct sim_disk *d = sa->disk[1];

  again (sa, ~0, true);
  d->read_error_ppm = 1000000;
  for (unsigned i = 0; i < 64; i++)
    check_range (sa, i * 3 * CHUNK, 3 * CHUNK);
  d->read_error_ppm = 0;
  assert_true (sim_array_pause (sa, SECOND));
  assert_int_equal (sa->a->lost_slots, BIT (1));
  end_degraded (sa);
}

/* A member that was found cut short is out with its first read, write or
 * flush, for good, and nothing is repaired in it.
 */
static void
cut_member (enum io_kind found_by)
{
  struct sim_array *sa = start (3, 2, CHUNK, 16);
  struct sim_disk *d = sa->disk[1];
  uint8_t *before = malloc (d->size);

  assert_non_null (before);
  again (sa, ~0, true);
  memcpy (before, d->image, d->size);
  if (found_by == IO_FLUSH)
    put (sa, 0, 3 * CHUNK, 0);
  atomic_store (&sa->a->at[1][0]->m->cut, true);
  if (found_by == IO_READ)
    check_range (sa, 0, 5 * 3 * CHUNK);
  else if (found_by == IO_WRITE)
    put (sa, 0, 3 * CHUNK, ARRAY_FUA);
  else
    assert_int_equal (sim_array_flush (sa), 0);
  assert_true (sim_array_pause (sa, SECOND));
  assert_int_equal (sa->a->lost_slots, BIT (1));
  check_all (sa);
  put (sa, 100, sa->g.size - 200, ARRAY_FUA);
  check_all (sa);
  assert_int_equal (sa->a->counters.repaired_blocks, 0);
  assert_memory_equal (before, d->image, d->size);

  again (sa, ~0, true);
  assert_int_equal (sa->a->lost_slots, BIT (1));
  check_all (sa);
  assert_memory_equal (before, d->image, d->size);
  free (before);
  end_degraded (sa);
}

static void
test_cut_member_is_out (void **state)
{
  cut_member (IO_READ);
  cut_member (IO_WRITE);
  cut_member (IO_FLUSH);
}

/* Nothing is acknowledged before the record without a member that
 * missed the write is in force: at whatever moment it crashes.
 */
static void
fail_write_and_crash (unsigned moment, bool flush_error)
{
  struct sim_array *sa = start (2, 2, CHUNK, 8);
  struct sim_disk *d = sa->disk[2];
  bool acked;
  int err;

  if (flush_error)
    d->flush_error_ppm = 1000000;
  else
    d->write_error_ppm = 1000000;
  sim_crash_after (sa->sim, moment);
  for (uint64_t i = 0; i < 2 * CHUNK; i++)
    back[i] = data[i] ^ 0xff;
  err = sim_array_write (sa, back, 2 * CHUNK, 0, ARRAY_FUA);
  acked = err == 0;
  assert_true (err == 0 || err == -1);
  if (acked) {
    memcpy (data, back, 2 * CHUNK);
    assert_int_equal (sa->a->lost_slots, BIT (2));
  }
  crash (sa);
  d->flush_error_ppm = d->write_error_ppm = 0;
  if (sim_array_open (sa, ~0, DEGRADED_ALLOW, false) == -1)
    assert_int_equal (sim_array_open (sa, ~0, DEGRADED_FORCE, false), 0);
  assert_int_equal (sim_array_writable (sa), 0);
  if (acked)
    check_all (sa);
  else
    check_range (sa, 2 * CHUNK, sa->g.size - 2 * CHUNK);
  end_degraded (sa);
}

static void
test_write_error_ejects (void **state)
{
  for (unsigned moment = 1; moment < 120; moment += 1 + moment / 30)
    fail_write_and_crash (moment, false);
}

static void
test_flush_error_ejects (void **state)
{
  for (unsigned moment = 1; moment < 120; moment += 1 + moment / 30)
    fail_write_and_crash (moment, true);
}

static void
test_too_many_losses (void **state)
{
  struct sim_array *sa = start (3, 1, CHUNK, 8);

  again (sa, ~0, true);
  sa->disk[0]->dead = true;
  put (sa, 0, 3 * CHUNK, ARRAY_FUA);
  check_all (sa);
  sa->disk[2]->dead = true;
  assert_int_equal (sim_array_write (sa, data, 3 * CHUNK, 3 * CHUNK,
                                     ARRAY_FUA), EIO);
  assert_int_equal (sim_array_write (sa, data, 100, 0, 0), EIO);
  assert_int_equal (sim_array_flush (sa), EIO);
  assert_int_equal (sim_array_zero (sa, 3 * CHUNK, 0, 0), EIO);
  assert_true (sim_array_stop (sa));
  /* They were only out of reach: what was acknowledged is there. */
  sa->disk[0]->dead = sa->disk[2]->dead = false;
  assert_int_equal (sim_array_open (sa, ~0, DEGRADED_FORCE, false), 0);
  assert_int_equal (sim_array_writable (sa), 0);
  check_range (sa, 0, 3 * CHUNK);
  check_range (sa, 2 * 3 * CHUNK, 6 * 3 * CHUNK);
  end_degraded (sa);
}

static void
test_hang_is_worked_around (void **state)
{
  struct sim_array *sa = start (3, 2, CHUNK, 8);
  uint64_t before;

  again (sa, ~0, true);
  sim_disk_hang (sa->disk[1], true);
  sim_disk_hang (sa->disk[3], true);
  before = sim_now (sa->sim);
  check_all (sa);
  assert_true (sim_now (sa->sim) - before < 20 * SECOND);
  assert_int_equal (sa->a->lost_slots, 0);
  sim_disk_hang (sa->disk[1], false);
  sim_disk_hang (sa->disk[3], false);
  assert_true (sim_array_pause (sa, SECOND));
  end (sa);
}

/* ---- rebuilding ---------------------------------------------------------- */

static void
test_fail_and_replace (void **state)
{
  struct sim_array *sa = start (3, 2, CHUNK, 32);

  assert_int_equal (sim_array_fail (sa, 1), 0);
  assert_int_equal (sim_array_fail (sa, 4), 0);
  /* Fewer than k would remain. */
  assert_int_equal (sim_array_fail (sa, 0), EINVAL);
  put (sa, 1000, 300000, 0);
  check_all (sa);
  assert_int_equal (sim_array_replace (sa, 1, sim_array_add_disk (sa)), 0);
  assert_int_equal (sim_array_replace (sa, 4, sim_array_add_disk (sa)), 0);
  put (sa, 100000, 200000, 0);
  assert_true (sim_array_settle (sa, 100 * SECOND));
  assert_int_equal (sa->a->odd_slots, 0);
  end (sa);
}

/* Two targets, each survivor is read once. */
static void
test_rebuild_two_in_one_pass (void **state)
{
  struct sim_array *sa = start (4, 2, CHUNK, 32);
  const uint64_t len = sa->l.data_len;

  again (sa, LOW_BITS (6) & ~BIT (0) & ~BIT (3), true);
  put (sa, 0, sa->g.size, ARRAY_FUA);
  again (sa, ~0, false);
  count_from_here (sa);
  assert_int_equal (sim_array_writable (sa), 0);
  assert_true (sim_array_settle (sa, 1000 * SECOND));
  assert_int_equal (sa->a->odd_slots, 0);
  assert_int_equal (bytes (sa, IO_READ), 4 * len);
  assert_int_equal (sa->a->counters.rebuilt_bytes, 2 * len);
  end (sa);
}

static void
test_cursor_survives (void **state)
{
  struct sim_array *sa = start (2, 1, CHUNK, 64);
  unsigned no;

  sa->window_len = 4 * CHUNK;
  sa->save_ns = 1;
  again (sa, ~0, true);
  assert_int_equal (sim_array_fail (sa, 0), 0);
  no = sim_array_add_disk (sa);
  sa->disk[no]->min_delay_ns = sa->disk[no]->max_delay_ns = 20000000;
  assert_int_equal (sim_array_replace (sa, 0, no), 0);
  while (sa->a->at[0][1]->cursor < 32 * CHUNK)
    assert_true (sim_step (sa->sim));
  again (sa, ~0, false);
  count_from_here (sa);
  assert_int_equal (sim_array_writable (sa), 0);
  assert_true (sa->a->at[0][1]->cursor >= 28 * CHUNK);
  assert_true (sim_array_settle (sa, 1000 * SECOND));
  assert_true (sa->disk[no]->nr_bytes[IO_WRITE] < 50 * CHUNK);
  assert_int_equal (sa->a->odd_slots, 0);
  end (sa);
}

/* A member that was away comes back by the bitmap. */
static void
test_missing_comes_back (void **state)
{
  struct sim_array *sa = start (2, 2, 128 * 1024, 64);
  uint64_t len;

  again (sa, ~BIT (2), true);
  put (sa, 0, 5000, 0);
  put (sa, 3000000, 5000, 0);
  assert_int_equal (sa->a->lost_slots, BIT (2));
  again (sa, ~0, false);
  count_from_here (sa);
  assert_int_equal (sim_array_writable (sa), 0);
  assert_true (sim_array_settle (sa, 1000 * SECOND));
  assert_int_equal (sa->a->odd_slots, 0);
  len = sa->disk[2]->nr_bytes[IO_WRITE];
  assert_true (len >= 2 * 1024 * 1024);
  assert_true (len < sa->l.data_len * 3 / 4);
  end (sa);
}

static void
test_resync (void **state)
{
  struct sim_array *sa = start (3, 2, CHUNK, 8);

  for (unsigned moment = 1; moment < 60; moment += 3) {
    sim_crash_after (sa->sim, moment);
    for (uint64_t i = 0; i < 3 * CHUNK; i++)
      data[i]++;
    (void) sim_array_write (sa, data, 3 * CHUNK, 0, ARRAY_FUA);
    crash (sa);
    again (sa, ~0, true);
    assert_true (sim_array_settle (sa, 100 * SECOND));
    put (sa, 0, 3 * CHUNK, ARRAY_FUA);
  }
  end (sa);
}

/* Unclean, and a slot is missing: only by force. */
static void
test_unclean_and_degraded (void **state)
{
  struct sim_array *sa = start (3, 2, CHUNK, 8);

  put (sa, 0, 4096, ARRAY_FUA);
  crash (sa);
  assert_int_equal (sim_array_open (sa, ~1, DEGRADED_ALLOW, false), -1);
  assert_non_null (strstr (sa->said, "not shut down cleanly"));
  assert_int_equal (sim_array_open (sa, ~1, DEGRADED_FORCE, false), 0);
  assert_int_equal (sim_array_writable (sa), 0);
  check_all (sa);
  end_degraded (sa);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_full_stripe_reads_nothing),
    cmocka_unit_test (test_small_write_reads_least),
    cmocka_unit_test (test_small_write_writes_least),
    cmocka_unit_test (test_unaligned_ends),
    cmocka_unit_test (test_fua_is_durable),
    cmocka_unit_test (test_flush_is_durable),
    cmocka_unit_test (test_second_flush_does_nothing),
    cmocka_unit_test (test_zero_whole_stripes),
    cmocka_unit_test (test_zero_unaligned),
    cmocka_unit_test (test_minimal_cache),
    cmocka_unit_test (test_reading_writes_nothing),
    cmocka_unit_test (test_bad_block_is_repaired),
    cmocka_unit_test (test_bad_block_under_a_write),
    cmocka_unit_test (test_many_read_errors_eject),
    cmocka_unit_test (test_cut_member_is_out),
    cmocka_unit_test (test_write_error_ejects),
    cmocka_unit_test (test_flush_error_ejects),
    cmocka_unit_test (test_too_many_losses),
    cmocka_unit_test (test_hang_is_worked_around),
    cmocka_unit_test (test_fail_and_replace),
    cmocka_unit_test (test_rebuild_two_in_one_pass),
    cmocka_unit_test (test_cursor_survives),
    cmocka_unit_test (test_missing_comes_back),
    cmocka_unit_test (test_resync),
    cmocka_unit_test (test_unclean_and_degraded),
  };
  const int r = cmocka_run_group_tests (tests, NULL, NULL);

  free (data);
  free (back);
  return r;
}
