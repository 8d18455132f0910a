/* gpuraid: the simulated disks keep exactly the promises of real ones.
 *
 * The same seed gives the same run; a flush makes durable what had
 * completed when it was submitted; a crash takes whole writes or
 * sectors of what was not, and nothing else.
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
#include <time.h>
#include <cmocka.h>

#include "common/bits.h"
#include "common/log.h"
#include "member/io.h"
#include "member/sim.h"
#include "tests/seed.h"

#define BLOCK 4096u
#define NR_BLOCKS 16u
#define SIZE (NR_BLOCKS * BLOCK)
#define SECTORS (SIZE / SIM_SECTOR)

static unsigned first_seed;

static void
quiet (enum log_level level, const char *fmt, va_list args)
{
}

/* One I/O over [b, b+n) blocks, in memory of its own. */
struct test_io {
  struct io io;
  struct iovec iov;
  uint8_t *buf;
  bool done;
  uint64_t no;                  /* position among the completions */
};

static uint64_t nr_done;

static void
test_done (struct io *io)
{
  struct test_io *t = (struct test_io *) io;

  assert_false (t->done);
  t->done = true;
  t->no = ++nr_done;
}

static void
init_io (struct test_io *t, struct member *m, enum io_kind kind, unsigned b,
         unsigned n, uint8_t c)
{
  memset (t, 0, sizeof *t);
  if (kind == IO_READ || kind == IO_WRITE) {
    assert_int_equal (posix_memalign ((void **) &t->buf, BLOCK, n * BLOCK), 0);
    memset (t->buf, c, n * BLOCK);
  }
  t->iov = (struct iovec) { t->buf, n * BLOCK };
  t->io = (struct io) {
    .kind = kind, .member = m, .off = b * BLOCK, .len = n * BLOCK,
    .iov = &t->iov, .nr_iov = t->buf ? 1 : 0, .error = -1, .done = test_done,
  };
  if (kind == IO_FLUSH)
    t->io.off = t->io.len = 0;
}

static void
submit (struct sim *sim, struct test_io *t)
{
  struct io *io = &t->io;

  loop_submit (sim_loop (sim), &io, 1);
}

static int
run_one (struct sim *sim, struct member *m, enum io_kind kind, unsigned b,
         unsigned n, uint8_t c)
{
  struct test_io t;

  init_io (&t, m, kind, b, n, c);
  submit (sim, &t);
  while (!t.done && sim_step (sim))
    ;
  if (t.done && t.io.error == 0 && kind == IO_READ)
    for (unsigned i = 0; i < n * BLOCK; ++i)
      assert_int_equal (t.buf[i], c);
  free (t.buf);
  return t.done ? t.io.error : -1;
}

/* A run of random I/O, crash included: its trace. */
static uint64_t
random_run (uint64_t seed)
{
  struct sim *sim = sim_new (seed);
  struct sim_disk *d[3];
  struct member *m[3];
  uint64_t trace;

  for (int i = 0; i < 3; ++i) {
    d[i] = sim_disk_new (sim, "disk", SIZE);
    d[i]->read_error_ppm = d[i]->write_error_ppm = 20000;
    m[i] = sim_disk_open (d[i], 0);
  }
  for (int round = 0; round < 5; ++round) {
    struct test_io t[40];

    if (round == 3)
      sim_crash_after (sim, 1 + sim_below (sim, 60));
    for (int i = 0; i < 40; ++i) {
      init_io (&t[i], m[i % 3], sim_below (sim, 5),
               sim_below (sim, NR_BLOCKS - 1), 1 + sim_below (sim, 2), i);
      submit (sim, &t[i]);
    }
    while (sim_step (sim))
      ;
    if (sim_crashed (sim)) {
      sim_crash (sim);
      for (int i = 0; i < 3; ++i) {
        member_close (m[i]);
        m[i] = sim_disk_open (d[i], 0);
        assert_non_null (m[i]);
      }
    }
    for (int i = 0; i < 40; ++i)
      free (t[i].buf);
  }
  for (int i = 0; i < 3; ++i)
    member_close (m[i]);
  trace = sim_trace (sim);
  sim_free (sim);
  return trace;
}

static void
test_deterministic (void **state)
{
  uint64_t last = 0;

  for (unsigned s = 0; s < 200; ++s) {
    uint64_t trace = random_run (first_seed + s);

    assert_int_equal (trace, random_run (first_seed + s));
    assert_true (trace != last);
    last = trace;
  }
}

/* Reordered: of two I/Os submitted one after the other, each comes first
 * at times; and reads see only what has completed.
 */
static void
test_reorders (void **state)
{
  unsigned first = 0, saw_new = 0;

  for (unsigned s = 0; s < 200; ++s) {
    struct sim *sim = sim_new (first_seed + s);
    struct member *m = sim_disk_open (sim_disk_new (sim, "d", SIZE), 0);
    struct test_io w, r;

    init_io (&w, m, IO_WRITE, 3, 1, 'w');
    init_io (&r, m, IO_READ, 3, 1, 0);
    submit (sim, &w);
    submit (sim, &r);
    while (sim_step (sim))
      ;
    assert_true (w.done && r.done && !w.io.error && !r.io.error);
    assert_int_equal (r.buf[0], w.no < r.no ? 'w' : 0);
    first += w.no < r.no;
    saw_new += r.buf[0] == 'w';
    free (w.buf);
    free (r.buf);
    member_close (m);
    sim_free (sim);
  }
  assert_true (first > 50 && first < 150 && first == saw_new);
}

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

/* A model that knows nothing of caches: only what completed before a
 * flush was submitted that completed.
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
        err = run_one (sim, m, IO_FLUSH, 0, 0, 0);
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
      err = run_one (sim, m, zero ? IO_TRIM : IO_WRITE, b, n, c);
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
      assert_int_equal (run_one (sim, m, IO_WRITE, b, 1, now[b]), 0);
    }
    assert_int_equal (run_one (sim, m, IO_FLUSH, 0, 0, 0), 0);
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
    struct test_io w, f;

    init_io (&w, m, IO_WRITE, 0, 1, 'w');
    init_io (&f, m, IO_FLUSH, 0, 0, 0);
    submit (sim, &w);
    submit (sim, &f);
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

static void
test_bad_blocks (void **state)
{
  struct sim *sim = sim_new (first_seed);
  struct sim_disk *d = sim_disk_new (sim, "d", SIZE);
  struct member *m = sim_disk_open (d, 0);

  assert_int_equal (run_one (sim, m, IO_WRITE, 0, 4, 'a'), 0);
  sim_disk_set_bad (d, BLOCK, BLOCK);
  assert_int_equal (run_one (sim, m, IO_READ, 0, 2, 'a'), EIO);
  assert_int_equal (run_one (sim, m, IO_READ, 2, 2, 'a'), 0);
  assert_int_equal (run_one (sim, m, IO_WRITE, 1, 1, 'b'), 0);
  assert_int_equal (run_one (sim, m, IO_READ, 1, 1, 'b'), 0);
  assert_int_equal (run_one (sim, m, IO_READ, NR_BLOCKS - 1, 2, 0), EIO);
  assert_int_equal (run_one (sim, m, IO_ZERO, 1, 1, 0), 0);
  assert_int_equal (run_one (sim, m, IO_READ, 1, 1, 0), 0);
  member_close (m);
  sim_free (sim);
}

/* Hung: nothing completes, not even by the end of time. */
static void
test_hung (void **state)
{
  struct sim *sim = sim_new (first_seed);
  struct sim_disk *d = sim_disk_new (sim, "d", SIZE);
  struct member *m = sim_disk_open (d, 0);
  struct test_io t;

  sim_disk_hang (d, true);
  init_io (&t, m, IO_WRITE, 5, 1, 'h');
  submit (sim, &t);
  while (sim_step (sim))
    ;
  assert_false (t.done);
  assert_int_equal (d->image[5 * BLOCK], 0);
  sim_disk_hang (d, false);
  while (sim_step (sim))
    ;
  assert_true (t.done && t.io.error == 0);
  assert_int_equal (d->image[5 * BLOCK], 'h');
  /* Set free before it came due: still only once. */
  t.done = false;
  submit (sim, &t);
  sim_disk_hang (d, true);
  sim_disk_hang (d, false);
  while (sim_step (sim))
    ;
  assert_true (t.done);
  free (t.buf);
  member_close (m);
  sim_free (sim);
}

/* Locks, and what a crash does to them. */
static void
test_locks (void **state)
{
  struct sim *sim = sim_new (first_seed);
  struct sim_disk *d = sim_disk_new (sim, "d", SIZE);
  struct member *m = sim_disk_open (d, 0), *m2;

  log_set_sink (quiet);
  assert_null (sim_disk_open (d, 0));
  assert_int_equal (errno, EWOULDBLOCK);
  assert_null (sim_disk_open (d, MEMBER_RDONLY));
  m2 = sim_disk_open (d, MEMBER_NOLOCK);
  assert_non_null (m2);
  assert_true (m->ops->same (m, m2));
  member_close (m2);
  sim_crash (sim);
  m2 = sim_disk_open (d, MEMBER_RDONLY);
  member_close (m);             /* from before: drops no lock */
  assert_null (sim_disk_open (d, 0));
  member_close (m2);
  m = sim_disk_open (d, 0);
  assert_non_null (m);
  log_set_sink (NULL);
  member_close (m);
  sim_free (sim);
}

static void
test_lies_and_errors (void **state)
{
  struct sim *sim = sim_new (first_seed);
  struct sim_disk *d = sim_disk_new (sim, "d", SIZE);
  struct member *m = sim_disk_open (d, 0);

  d->lose_write_ppm = 1000000;
  assert_int_equal (run_one (sim, m, IO_WRITE, 7, 1, 'l'), 0);
  assert_int_equal (d->image[7 * BLOCK], 0);
  d->lose_write_ppm = 0;
  d->flush_error_ppm = 1000000;
  assert_int_equal (run_one (sim, m, IO_FLUSH, 0, 0, 0), EIO);
  d->flush_error_ppm = 0;
  member_close (m);
  sim_free (sim);
}

/* Dead while it is open; and then there is none, until it is made. */
static void
test_dead_and_absent (void **state)
{
  struct sim *sim = sim_new (first_seed);
  struct sim_disk *d = sim_disk_new (sim, "d", SIZE);
  struct member *m = sim_disk_open (d, 0);
  uint8_t *buf = NULL;

  log_set_sink (quiet);
  assert_int_equal (run_one (sim, m, IO_WRITE, 0, 4, 'a'), 0);
  d->dead = true;
  assert_int_equal (run_one (sim, m, IO_READ, 0, 1, 'a'), ENODEV);
  assert_int_equal (run_one (sim, m, IO_WRITE, 0, 1, 'a'), ENODEV);
  assert_int_equal (posix_memalign ((void **) &buf, BLOCK, BLOCK), 0);
  assert_int_equal (m->ops->pread (m, buf, BLOCK, 0), ENODEV);
  assert_null (sim_disk_open (d, MEMBER_NOLOCK));
  assert_int_equal (errno, ENXIO);
  d->dead = false;
  member_close (m);
  d->absent = true;
  assert_null (sim_disk_open (d, 0));
  assert_int_equal (errno, ENOENT);
  m = sim_disk_open (d, MEMBER_CREATE);
  assert_non_null (m);
  assert_int_equal (m->ops->pread (m, buf, BLOCK, 0), 0);
  assert_int_equal (buf[0], 0);
  member_close (m);
  log_set_sink (NULL);
  free (buf);
  sim_free (sim);
}

/* After a flush that failed, another that does not makes nothing of
 * before durable; a later write over it is not undone by it.
 */
static void
test_failed_flush (void **state)
{
  unsigned gone = 0;

  for (unsigned s = 0; s < 200; ++s) {
    struct sim *sim = sim_new (first_seed + s);
    struct sim_disk *d = sim_disk_new (sim, "d", SIZE);
    struct member *m = sim_disk_open (d, 0);

    assert_int_equal (run_one (sim, m, IO_WRITE, 0, 2, 'a'), 0);
    d->flush_error_ppm = 1000000;
    assert_int_equal (run_one (sim, m, IO_FLUSH, 0, 0, 0), EIO);
    d->flush_error_ppm = 0;
    assert_int_equal (run_one (sim, m, IO_WRITE, 1, 1, 'b'), 0);
    assert_int_equal (run_one (sim, m, IO_READ, 0, 1, 'a'), 0);
    assert_int_equal (run_one (sim, m, IO_FLUSH, 0, 0, 0), 0);
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

static unsigned nr_fired;
static struct sim *the_sim;
static uint64_t fired_at[8];

static void
fire (struct timer *t)
{
  fired_at[nr_fired++] = sim_now (the_sim);
}

static void
again (void *arg)
{
  fired_at[nr_fired++] = sim_now (the_sim);
  if (nr_fired < 6)
    sim_at (the_sim, 100, again, arg);
}

static void
test_clock (void **state)
{
  struct timer a = { .fire = fire }, b = { .fire = fire };
  struct loop *l;
  uint64_t t0;

  the_sim = sim_new (first_seed);
  l = sim_loop (the_sim);
  t0 = loop_now (l);
  nr_fired = 0;
  loop_timer (l, &a, t0 + 500);
  loop_timer (l, &b, t0 + 300);
  loop_timer (l, &a, t0 + 200);
  sim_at (the_sim, 250, again, NULL);
  while (sim_step (the_sim))
    ;
  assert_int_equal (nr_fired, 6);
  assert_int_equal (fired_at[0], t0 + 200);
  assert_int_equal (fired_at[1], t0 + 250);
  assert_int_equal (fired_at[2], t0 + 300);
  assert_int_equal (fired_at[5], t0 + 550);
  loop_timer (l, &a, t0 + 1000);
  loop_timer (l, &b, t0 + 1000);
  loop_timer (l, &a, 0);
  sim_crash (the_sim);
  assert_false (sim_step (the_sim));
  sim_free (the_sim);
}

/* Fast enough to simulate whole arrays: a stated floor, far below what
 * it does, so that only a blunder fails it.
 */
static void
test_speed (void **state)
{
  clock_t start = clock ();
  unsigned runs = 0;

  while (clock () - start < CLOCKS_PER_SEC / 4) {
    random_run (first_seed + runs);
    ++runs;
  }
  print_message ("%u runs of 200 I/Os in 1/4 s\n", runs);
  assert_true (runs > 25);
}

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_deterministic),
    cmocka_unit_test (test_reorders),
    cmocka_unit_test (test_crashes),
    cmocka_unit_test (test_late_write),
    cmocka_unit_test (test_bad_blocks),
    cmocka_unit_test (test_hung),
    cmocka_unit_test (test_locks),
    cmocka_unit_test (test_lies_and_errors),
    cmocka_unit_test (test_dead_and_absent),
    cmocka_unit_test (test_failed_flush),
    cmocka_unit_test (test_synchronous),
    cmocka_unit_test (test_clock),
    cmocka_unit_test (test_speed),
  };

  first_seed = test_seed (argc > 1 ? argv[1] : NULL);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
