/* gpuraid: a simulated disk that crashes keeps exactly the promises of a real
 * one.
 *
 * A flush makes durable what had completed when it was submitted; a crash
 * removes whole writes or sectors of other data, and nothing else.
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

#include "tests/seed.h"
#include "tests/sim/sim-io.h"

#define SECTORS (SIZE / SIM_SECTOR)

static unsigned first_seed;

/* What each sector may hold: writes put their letter in. */
struct model {
  uint8_t durable[SECTORS];
  bool maybe[SECTORS][256];     /* since then */
};

static void
check_crashed (struct model *mo, const struct sim_disk *d, unsigned *torn)
{
  for (unsigned i = 0; i < SECTORS; ++i) {
    const uint8_t *p = d->image + i * SIM_SECTOR;

    for (unsigned j = 1; j < SIM_SECTOR; ++j)
      assert_int_equal (p[0], p[j]);
    if (p[0] != mo->durable[i] && !mo->maybe[i][p[0]])
      print_error ("sector %u: %u\n", i, p[0]);
    assert_true (p[0] == mo->durable[i] || mo->maybe[i][p[0]]);
    if (i % 8 && p[0] != p[-1])
      ++*torn;
    mo->durable[i] = p[0];
    memset (mo->maybe[i], 0, 256);
  }
}

/* A model without caches: only what completed before a flush was submitted that
 * completed.
 */
static void
crash_run (unsigned seed, unsigned *torn, unsigned *crashes)
{
  struct sim *sim = sim_new (seed);
  struct sim_disk *d = sim_disk_new (sim, "d", SIZE);
  struct member *m = sim_disk_open (d, 0);
  struct model mo;
  uint8_t now[NR_BLOCKS] = { 0 };
  uint8_t c = 0;

  memset (&mo, 0, sizeof mo);
  for (int round = 0; round < 8; ++round) {
    sim_crash_after (sim, 1 + sim_below (sim, 60));
    for (;;) {
      unsigned b = sim_below (sim, NR_BLOCKS - 3), n = 1 + sim_below (sim, 3);
      bool flush = sim_below (sim, 4) == 0;
      bool zero = sim_below (sim, 8) == 0;
      int err;

      if (++c == 0)
        ++c;
      if (flush) {
        err = sim_io_run (sim, m, IO_FLUSH, 0, 0, 0);
        if (err == -1)
          break;
        for (unsigned i = 0; i < SECTORS; ++i) {
          mo.durable[i] = now[i / 8];
          memset (mo.maybe[i], 0, 256);
        }
        continue;
      }
      for (unsigned i = b * 8; i < (b + n) * 8; ++i)
        mo.maybe[i][zero ? 0 : c] = true;
      err = sim_io_run (sim, m, zero ? IO_TRIM : IO_WRITE, b, n, c);
      if (err == -1)
        break;
      memset (now + b, zero ? 0 : c, n);
    }
    assert_true (sim_crashed (sim));
    assert_false (sim_step (sim));
    sim_crash (sim);
    ++*crashes;
    check_crashed (&mo, d, torn);
    member_close (m);
    m = sim_disk_open (d, 0);
    /* Settle torn blocks, so that the model can count in blocks. */
    for (unsigned b = 0; b < NR_BLOCKS; ++b) {
      now[b] = d->image[b * BLOCK];
      assert_int_equal (sim_io_run (sim, m, IO_WRITE, b, 1, now[b]), 0);
    }
    assert_int_equal (sim_io_run (sim, m, IO_FLUSH, 0, 0, 0), 0);
    for (unsigned i = 0; i < SECTORS; ++i)
      mo.durable[i] = now[i / 8];
  }
  member_close (m);
  sim_free (sim);
}

static void
test_crashes (void **state)
{
  unsigned torn = 0, crashes = 0;

  for (unsigned s = 0; s < 300; ++s)
    crash_run (first_seed + s, &torn, &crashes);
  print_message ("%u crashes, %u torn blocks\n", crashes, torn);
  assert_true (torn > crashes / 20);
}

/* A write that completes after the flush was submitted is not covered,
 * whether the flush completes before or after it; both fates come up.
 */
static void
test_late_write (void **state)
{
  unsigned kept[2] = { 0, 0 }, gone[2] = { 0, 0 };

  for (unsigned s = 0; s < 400; ++s) {
    struct sim *sim = sim_new (first_seed + s);
    struct sim_disk *d = sim_disk_new (sim, "d", SIZE);
    struct member *m = sim_disk_open (d, 0);
    struct sim_io w, f;

    sim_io_init (&w, m, IO_WRITE, 0, 1, 'w');
    sim_io_init (&f, m, IO_FLUSH, 0, 0, 0);
    sim_io_submit (sim, &w);
    sim_io_submit (sim, &f);
    while (sim_step (sim))
      ;
    assert_int_equal (d->image[0], 'w');
    sim_crash (sim);
    kept[w.no < f.no] += d->image[0] == 'w';
    gone[w.no < f.no] += d->image[0] == 0;
    free (w.buf);
    member_close (m);
    sim_free (sim);
  }
  assert_true (kept[0] > 25 && gone[0] > 25);
  assert_true (kept[1] > 25 && gone[1] > 25);
}

/* After a flush that failed, a successful one does not make earlier data
 * durable; a later write over it is not undone by it.
 */
static void
test_failed_flush (void **state)
{
  unsigned gone = 0;

  for (unsigned s = 0; s < 200; ++s) {
    struct sim *sim = sim_new (first_seed + s);
    struct sim_disk *d = sim_disk_new (sim, "d", SIZE);
    struct member *m = sim_disk_open (d, 0);

    assert_int_equal (sim_io_run (sim, m, IO_WRITE, 0, 2, 'a'), 0);
    d->flush_error_ppm = 1000000;
    assert_int_equal (sim_io_run (sim, m, IO_FLUSH, 0, 0, 0), EIO);
    d->flush_error_ppm = 0;
    assert_int_equal (sim_io_run (sim, m, IO_WRITE, 1, 1, 'b'), 0);
    assert_int_equal (sim_io_run (sim, m, IO_READ, 0, 1, 'a'), 0);
    assert_int_equal (sim_io_run (sim, m, IO_FLUSH, 0, 0, 0), 0);
    sim_crash (sim);
    gone += d->image[0] == 0;
    assert_int_equal (d->image[BLOCK], 'b');
    assert_int_equal (d->image[2 * BLOCK - 1], 'b');
    member_close (m);
    sim_free (sim);
  }
  assert_true (gone > 20 && gone < 180);
}

static void
test_synchronous (void **state)
{
  unsigned kept = 0;

  for (unsigned s = 0; s < 200; ++s) {
    struct sim *sim = sim_new (first_seed + s);
    struct sim_disk *d = sim_disk_new (sim, "d", SIZE);
    struct member *m = sim_disk_open (d, 0);
    static uint8_t buf[BLOCK] __attribute__ ((aligned (4096)));
    bool hole;
    uint64_t end;

    memset (buf, 's', BLOCK);
    assert_int_equal (m->ops->pwrite (m, buf, BLOCK, 2 * BLOCK), 0);
    assert_int_equal (m->ops->flush (m), 0);
    assert_int_equal (m->ops->extent (m, 0, SIZE, &hole, &end), 0);
    assert_true (hole && end == 2 * BLOCK);
    assert_int_equal (m->ops->extent (m, 2 * BLOCK, SIZE - 2 * BLOCK, &hole,
                                      &end), 0);
    assert_true (!hole && end == 3 * BLOCK);
    assert_int_equal (m->ops->discard (m, 2 * BLOCK, BLOCK), 0);
    assert_int_equal (m->ops->pread (m, buf, BLOCK, 2 * BLOCK), 0);
    assert_int_equal (buf[0], 0);
    assert_int_equal (d->nr_ios[IO_READ], 1);
    assert_int_equal (d->nr_bytes[IO_WRITE], BLOCK);
    assert_int_equal (sim_moments (sim), 3);

    /* The second of these never gets that far. */
    memset (buf, 't', BLOCK);
    sim_crash_after (sim, 2);
    assert_int_equal (m->ops->pwrite (m, buf, BLOCK, 4 * BLOCK), 0);
    assert_int_equal (m->ops->flush (m), EIO);
    assert_int_equal (m->ops->pwrite (m, buf, BLOCK, 5 * BLOCK), EIO);
    assert_int_equal (m->ops->pread (m, buf, BLOCK, 5 * BLOCK), EIO);
    sim_crash (sim);
    kept += d->image[4 * BLOCK] == 't';
    assert_int_equal (d->image[5 * BLOCK], 0);
    member_close (m);
    sim_free (sim);
  }
  assert_true (kept > 40 && kept < 160);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_crashes),
    cmocka_unit_test (test_late_write),
    cmocka_unit_test (test_failed_flush),
    cmocka_unit_test (test_synchronous),
  };

  first_seed = test_seed (argc > 1 ? argv[1] : NULL);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
