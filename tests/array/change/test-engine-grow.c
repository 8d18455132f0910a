/* gpuraid: an array that grows, on simulated members: what it has is kept, what
 * is added is zeroes and as safe as the rest, and a crash at any moment leaves
 * one of the two.
 *
 * run-tests: no-thread
 * It has one thread.
 *
 * It grows twice: one disk is shorter than the others, and is replaced before
 * the second time.  All disks begin full of rubbish.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "array/change/grow.h"
#include "array/io/xfer.h"
#include "array/watch/probe.h"
#include "common/bits.h"
#include "raidmap/limits.h"
#include "tests/engine-array.h"
#include "tests/sanitized.h"
#include "tests/seed.h"

#define K 2u
#define M 1u
#define N (K + M)
#define NONE_MISSING UINT_MAX
#define CHUNK_LEN 8192u
#define STRIPES 9u
#define SETTLE UINT64_C (600000000000)
#define MAX_SIZE (4 << 20)

static uint64_t seed;
static uint8_t want[MAX_SIZE], got[MAX_SIZE];
/* The part of it that is being written. */
static struct { uint64_t off, len; uint8_t *buf; } writing;

static void
fill (uint64_t off, uint64_t len, unsigned salt)
{
  for (uint64_t i = off; i < off + len; i++)
    want[i] = (i * UINT64_C (0x9e3779b97f4a7c15) >> 40) + salt;
}

static void
check (struct sim_array *sa)
{
  const unsigned unit = sim_consistency == CONSISTENCY_NONE ? SIM_SECTOR :
    BLOCK_LEN;

  assert_int_equal (sim_array_read (sa, got, sa->g.size, 0), 0);
  /* What was being written is old or new. */
  for (uint64_t off = writing.off; off < writing.off + writing.len;
       off += unit)
    if (memcmp (got + off, writing.buf + off - writing.off, unit) == 0)
      memcpy (want + off, got + off, unit);
  if (memcmp (got, want, sa->g.size) != 0)
    for (uint64_t i = 0; i < sa->g.size; i++)
      if (got[i] != want[i])
        fail_msg ("byte %#" PRIx64 " of %#" PRIx64 ": %#x, not %#x", i,
                  sa->g.size, got[i], want[i]);
}

static void
write_all (struct sim_array *sa, uint64_t off, unsigned salt)
{
  writing.len = 0;
  fill (off, sa->g.size - off, salt);
  assert_int_equal (sim_array_write (sa, want + off, sa->g.size - off, off,
                                     ARRAY_FUA), 0);
}

static void
open_all (struct sim_array *sa, uint64_t which)
{
  if (sim_array_open (sa, which, DEGRADED_ALLOW, false) == -1)
    fail_msg ("does not open: %s", sa->said);
  assert_true (sa->g.size <= MAX_SIZE);
}

static void
end_session (struct sim_array *sa)
{
  char why[256];

  assert_true (sim_array_settle (sa, SETTLE));
  check (sa);
  assert_true (sim_array_stop (sa));
  if (!sim_array_parity_is_right (sa, why, sizeof why))
    fail_msg ("%s", why);
}

/* Its disks are long, except number 0. */
static struct sim_array *
start (void)
{
  const struct geometry g = { .k = K, .m = M, .chunk = CHUNK_LEN };
  struct sim_array *sa;

  sim_spare_len = (2 << 20) + (1 << 17);
  sa = sim_array_new (seed, &g, STRIPES, 1);
  sa->cache_len = MAX (1 << 20, sa->cache_len);
  sim_disk_free (sa->disk[0]);
  sa->disk[0] = sim_disk_new (sa->sim, "disk0",
                              sa->disk_size - (1 << 20));
  for (unsigned i = 0; i < N; i++)
    sim_array_spoil (sa, i);
  memset (want, 0, sizeof want);
  writing.len = 0;
  sim_array_create (sa);
  open_all (sa, ~0);
  assert_int_equal (sim_array_writable (sa), 0);
  write_all (sa, 0, 0);
  return sa;
}

/* Disk 0 is replaced by a long one, after the first growth. */
static void
replace_short (struct sim_array *sa)
{
  const unsigned disk = sim_array_add_disk (sa);

  assert_int_equal (sim_array_replace (sa, 0, disk), 0);
  check (sa);                           /* all pages are in memory */
  assert_true (sim_array_settle (sa, SETTLE));
  while (sa->a->irregular_slots)
    assert_true (sim_step (sa->sim));
  check (sa);
}

/* To where the growth of that number begins. */
static struct sim_array *
start_before (unsigned nr)
{
  struct sim_array *sa = start ();

  if (nr > 0) {
    assert_int_equal (sim_array_grow (sa), 0);
    write_all (sa, sa->g.size / 2, 5);
    replace_short (sa);
  }
  return sa;
}

static void
test_twice (void **state)
{
  struct sim_array *sa = start ();
  uint64_t size = sa->g.size;

  for (unsigned i = 0; i < 2; i++) {
    if (sim_array_grow (sa) != 0)
      fail_msg ("does not grow: %s", sa->said);
    assert_true (sa->g.size > size);
    assert_int_equal (sa->l.nr_grown, i + 1);
    check (sa);                         /* zeroes behind the old end */
    assert_int_equal (sim_array_grow (sa), EINVAL);
    assert_non_null (strstr (sa->said, i == 0 ? "disk0, the smallest" :
                             "nothing to gain"));
    /* Only some of what is new. */
    writing.len = 0;
    fill (size - 5000, 30000, i + 1);
    assert_int_equal (sim_array_write (sa, want + size - 5000, 30000,
                                       size - 5000, 0), 0);
    end_session (sa);
    open_all (sa, ~0);
    check (sa);
    assert_int_equal (sim_array_writable (sa), 0);
    assert_true (sim_array_settle (sa, SETTLE));
    write_all (sa, size, i + 7);
    /* A member that is replaced gets all of it. */
    replace_short (sa);
    end_session (sa);
    open_all (sa, ~0 & ~2);             /* and decodes it */
    check (sa);
    assert_int_equal (sim_array_writable (sa), 0);
    write_all (sa, size / 2, i + 9);
    assert_true (sim_array_stop (sa));
    open_all (sa, ~0);                  /* it comes back */
    assert_int_equal (sim_array_writable (sa), 0);
    end_session (sa);
    open_all (sa, ~0);
    assert_int_equal (sim_array_writable (sa), 0);
    assert_true (sim_array_settle (sa, SETTLE));
    size = sa->g.size;
  }
  end_session (sa);
  sim_array_free (sa);
}

/* A page of the table that the old data ends in was stored for a member that
 * was rebuilt: the rest of it says zeroes, too.
 */
static void
test_rebuilt (void **state)
{
  struct sim_array *sa = start ();

  end_session (sa);
  sa->window_len = 4 * CHUNK_LEN;
  open_all (sa, ~1);
  assert_int_equal (sim_array_writable (sa), 0);
  replace_short (sa);
  assert_int_equal (sim_array_grow (sa), 0);
  assert_int_equal (sim_array_fail (sa, 1), 0);
  check (sa);
  assert_true (sim_array_stop (sa));
  open_all (sa, ~2);
  check (sa);
  assert_true (sim_array_stop (sa));
  sim_array_free (sa);
}

/* Zeroes of a range in several parts. */
static void
test_zero (void **state)
{
  struct sim_array *sa = start_before (1);
  const uint64_t stripe = K * CHUNK_LEN;

  assert_int_equal (sim_array_grow (sa), 0);
  write_all (sa, 0, 3);
  memset (want + stripe, 0, sa->g.size - 2 * stripe);
  assert_int_equal (sim_array_zero (sa, sa->g.size - 2 * stripe, stripe,
                                    ARRAY_TRIM), 0);
  check (sa);
  end_session (sa);
  sim_array_free (sa);
}

/* Instead of a disk, an image of before it has grown, which is as short as it
 * may have been.
 */
static void
put_short (struct sim_array *sa, unsigned no, const uint8_t *image,
           uint64_t size, uint64_t end)
{
  struct sim_disk *d;

  sim_disk_free (sa->disk[no]);
  d = sa->disk[no] = sim_disk_new (sa->sim, "disk1", end);
  sim_disk_poke (d, image, end - 2 * SB_LEN, 0);
  sim_disk_poke (d, image + size - 2 * SB_LEN, 2 * SB_LEN, end - 2 * SB_LEN);
}

/* It is left out. */
static void
test_short (void **state)
{
  struct sim_array *sa = start ();
  const uint64_t size = sa->disk[1]->size, end = layout_end (&sa->l);
  uint8_t *image = malloc (size);

  assert_non_null (image);
  assert_true (sim_array_stop (sa));
  memcpy (image, sa->disk[1]->image, size);
  open_all (sa, ~0);
  assert_int_equal (sim_array_writable (sa), 0);
  assert_int_equal (sim_array_grow (sa), 0);
  write_all (sa, 0, 8);
  end_session (sa);
  put_short (sa, 1, image, size, end);
  open_all (sa, ~0);
  assert_int_equal (sa->a->lost_slots, BIT (1));
  assert_int_equal (sa->disk[1]->writers, 0);
  check (sa);
  assert_true (sim_array_stop (sa));
  put_short (sa, 1, image, size, layout_end (&sa->l));
  open_all (sa, ~0);                    /* this one is long enough */
  assert_int_equal (sa->disk[1]->writers, 1);
  check (sa);
  assert_int_equal (sim_array_writable (sa), 0);
  end_session (sa);
  open_all (sa, ~1);
  check (sa);
  assert_true (sim_array_stop (sa));
  free (image);
  sim_array_free (sa);
}

/* Clients write meanwhile. */
static struct sim_request *
start_write (struct sim_array *sa)
{
  static uint8_t buf[6 * BLOCK_LEN];
  struct sim_request *q = calloc (1, sizeof *q);

  assert_non_null (q);
  memset (buf, 0xa5, sizeof buf);
  writing.off = 3 * BLOCK_LEN;
  writing.len = sizeof buf;
  writing.buf = buf;
  sim_request_init (q, sa, REQUEST_WRITE);
  q->r.buf = buf;
  q->r.off = writing.off;
  q->r.len = writing.len;
  q->r.flags = ARRAY_FUA;
  q->done = ignore_end;
  sim_request_start (q);
  return q;
}

/* First without this disk, or NONE_MISSING.  Old or new, and all that was
 * acknowledged; it can be written, the disk comes back, and it can grow
 * (again).
 */
static void
go_on (struct sim_array *sa, uint64_t old, uint64_t new, unsigned missing)
{
  const uint64_t all = LOW_BITS (sa->nr_disks);
  const bool degraded = missing != NONE_MISSING;

  open_all (sa, degraded ? all & ~BIT (missing) : all);
  if (sa->g.size != new)
    assert_int_equal (sa->g.size, old);
  check (sa);
  assert_int_equal (sim_array_writable (sa), 0);
  write_all (sa, sa->g.size / 2, 11);
  if (degraded) {
    end_session (sa);
    open_all (sa, all);
    assert_int_equal (sim_array_writable (sa), 0);
  }
  assert_true (sim_array_settle (sa, SETTLE));
  if (sa->g.size != new)
    assert_int_equal (sim_array_grow (sa), 0);
  assert_int_equal (sa->g.size, new);
  check (sa);
  write_all (sa, old - 10000, 13);
  end_session (sa);
}

/* False: it was over before that moment. */
static bool
crash_at (unsigned nr, uint64_t moment, uint64_t *old, uint64_t *new)
{
  struct sim_array *sa = start_before (nr);
  struct sim_request *q = start_write (sa);
  const unsigned slot = moment % (N + 1);
  unsigned missing = slot == 0 && nr > 0 ? N : slot;
  bool crashed;
  int err;

  *old = sa->g.size;
  sim_crash_after (sa->sim, moment);
  err = sim_array_grow (sa);
  crashed = sim_crashed (sa->sim);
  if (crashed) {
    if (err == 0)
      assert_int_equal (sa->g.size, *new);
    crash_array (sa);
    /* A second crash soon after. */
    if (moment % 5 == 4) {
      open_all (sa, ~0);
      sim_crash_after (sa->sim, 1 + moment / 5 % 40);
      (void) sim_array_writable (sa);
      (void) sim_array_pause (sa, 20000000);
      sim_crash_after (sa->sim, 0);
      crash_array (sa);
    }
    if (slot == N || sim_consistency == CONSISTENCY_NONE)
      missing = NONE_MISSING;   /* it would need degraded=force */
    go_on (sa, *old, *new, missing);
  }
  else {
    sim_crash_after (sa->sim, 0);
    assert_int_equal (err, 0);
    *new = sa->g.size;
    while (q->state != SIM_IDLE)
      assert_true (sim_step (sa->sim));
    end_session (sa);
  }
  free (q);
  sim_array_free (sa);
  return crashed;
}

static void
test_crashes (void **state)
{
  for (unsigned nr = 0; nr < 2; nr++) {
    uint64_t old, new = 0, moment = 1;

    crash_at (nr, 100000, &old, &new);          /* how large it becomes */
    while (crash_at (nr, moment, &old, &new))
      moment += CASE_STEP;
    assert_true (moment > 50);
    print_message ("%u: %" PRIu64 " moments, %" PRIu64 " to %" PRIu64 "\n",
                   nr, moment, old, new);
  }
}

static void
begin (struct sim_array *sa)
{
  char why[ARRAY_WHY_LEN];

  engine_lock (sa->a);
  if (grow_start (sa->a, why) != 0)
    fail_msg ("%s", why);
  assert_int_not_equal (grow_start (sa->a, why), 0);
  assert_non_null (strstr (why, "is growing already"));
  engine_unlock (sa->a);
}

/* Given up, by command or by a stop, after a part of it. */
static void
test_given_up (void **state)
{
  for (unsigned i = 0; i < 24; i++) {
    struct sim_array *sa = start ();
    const uint64_t old = sa->g.size;

    begin (sa);
    assert_true (sim_array_pause (sa, i / 2 * 200000));
    if (i % 2) {
      engine_lock (sa->a);
      grow_cancel (sa->a);
      engine_unlock (sa->a);
      while (grow_is_running (sa->a))
        assert_true (sim_step (sa->sim));
      sim_array_note_shape (sa);
      check (sa);
    }
    assert_true (sim_array_stop (sa));
    open_all (sa, ~0);
    check (sa);
    assert_int_equal (sim_array_writable (sa), 0);
    if (sa->g.size == old)
      assert_int_equal (sim_array_grow (sa), 0);
    assert_true (sa->g.size > old);
    end_session (sa);
    sim_array_free (sa);
  }
}

/* A member without space is not taken out, and clients do not wait for it. */
static void
test_no_space (void **state)
{
  struct sim_array *sa = start ();
  const uint64_t old = sa->g.size;

  /* With a journal what was answered goes in place later. */
  assert_true (sim_array_pause (sa, UINT64_C (10000000000)));
  for (unsigned i = 0; i < N; i++) {
    struct sim_disk *d = sa->disk[i];

    /* What is spare was never written. */
    memset (d->used + (layout_end (&sa->l) - 2 * SB_LEN) / SIM_BLOCK, 0,
            (d->size - layout_end (&sa->l)) / SIM_BLOCK);
  }
  sa->disk[1]->full = true;
  assert_int_equal (sim_array_grow (sa), ENOSPC);
  assert_non_null (strstr (sa->said, "disk1: what was to be added can't be "
                           "written"));
  assert_int_equal (sa->g.size, old);
  write_all (sa, 0, 3);
  check (sa);
  assert_int_equal (sa->a->lost_slots, 0);
  sa->disk[1]->full = false;
  assert_int_equal (sim_array_grow (sa), 0);
  write_all (sa, 0, 4);
  end_session (sa);
  sim_array_free (sa);
}

static void
kill_disk (void *opaque)
{
  struct sim_disk *d = opaque;

  d->dead = true;
}

/* A member fails at some moment of it: it grows, or says why not. */
static void
test_failures (void **state)
{
  unsigned nr_grown = 0, nr_not = 0;
  uint64_t large, old_size;

  crash_at (0, 100000, &old_size, &large);      /* how large it becomes */
  for (unsigned i = 0; i < 90; i += CASE_STEP) {
    struct sim_array *sa = start_before (0);
    const uint64_t old = sa->g.size;
    struct sim_disk *d = sa->disk[i % N];
    bool full;
    int err;

    sim_at (sa->sim, i * 150000, kill_disk, d);
    err = sim_array_grow (sa);
    if (err)
      assert_true (sa->said[0] && sa->g.size == old);
    else {
      assert_true (sa->g.size > old);
      large = sa->g.size;
    }
    nr_grown += err == 0;
    nr_not += err != 0;
    while (!d->dead)
      assert_true (sim_step (sa->sim));
    write_all (sa, sa->g.size / 3, 4);
    assert_true (sim_array_settle (sa, SETTLE));
    check (sa);
    if (err == 0)
      assert_int_equal (sim_array_grow (sa), EINVAL);
    assert_true (sim_array_stop (sa));
    /* It comes back, with what may be of before. */
    d->dead = false;
    open_all (sa, ~0);
    check (sa);
    assert_int_equal (sim_array_writable (sa), 0);
    if (sa->a->lost_slots && sim_array_readd (sa, i % N, &full) != 0)
      fail_msg ("readd: %s", sa->said);
    end_session (sa);
    go_on (sa, sa->g.size, large, NONE_MISSING);
    sim_array_free (sa);
  }
  assert_true (nr_grown * CASE_STEP > 5 && nr_not * CASE_STEP > 5);
}

/* Where a slow member is looked at again: what was added is elsewhere. */
static void
test_probe (void **state)
{
  struct sim_array *sa = start_before (1);
  struct array *a = sa->a;
  struct seat *s = a->at[1][0];
  const uint64_t off = a->sb.l.grown[0];

  engine_lock (a);
  s->hedge.slow = true;
  s->probe_off = off;
  s->probe_len = BLOCK_LEN;
  a->hedge.saved = HEDGE_SAVED;
  probe_tick (a, loop_now (a->loop));
  assert_false (list_empty (&s->xfers));
  assert_int_equal (list_item (s->xfers.prev, struct xfer, seat_link)->off,
                    layout_data_off (&a->sb.l, off));
  engine_unlock (a);
  end_session (sa);
  sim_array_free (sa);
}

#define TEST(f, kind) { #f "_" #kind, f, setup_##kind, NULL, NULL }
#define TESTS(f)                                                \
  TEST (f, bare), TEST (f, sums), TEST (f, journal), TEST (f, both)

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    TESTS (test_twice),
    TESTS (test_rebuilt),
    TESTS (test_given_up),
    TESTS (test_no_space),
    TESTS (test_zero),
    TESTS (test_short),
    TESTS (test_probe),
    TESTS (test_failures),
    TESTS (test_crashes),
  };

  seed = test_seed (argc > 1 ? argv[1] : NULL);
  limits.region_min_len = 16384;
  limits.grow_min_len = 1;
  limits.page_regions = 5;
  limits.table_page_entries = 7;
  limits.ring_min_len = 1 << 16;
  return cmocka_run_group_tests (tests, NULL, NULL);
}
