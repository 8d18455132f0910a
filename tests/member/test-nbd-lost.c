/* gpuraid: a server that restarts loses what was not flushed, and the member
 * makes it again (R9).
 *
 * After each flush that succeeded the server is killed, and its disk must have
 * all that was written.
 * run-tests: long
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/bits.h"
#include "member/nbd/nbd.h"
#include "tests/member/nbd-lossy.h"
#include "tests/scratch.h"

#define NR_IOS 16u
#define MAX_IO (128u << 10)

/* A change that overlaps no other in flight, and what it leaves. */
static void
change (struct nbd_io *w, uint8_t *buf, unsigned i)
{
  const uint64_t lane = SIZE / NR_IOS;
  const uint64_t len = 16384 * (1 + draw_below (MAX_IO / 16384));
  const uint64_t off = i * lane + 4096 * draw_below ((lane - len) / 4096);
  const unsigned what = draw_below (8);
  const enum io_kind kind = what == 0 ? IO_ZERO : what == 1 ? IO_TRIM :
    IO_WRITE;

  for (uint64_t b = 0; b < len; b += 8)
    *(uint64_t *) (buf + b) = draw_below (UINT64_MAX);
  if (kind == IO_WRITE)
    memcpy (want + off, buf, len);
  else
    memset (want + off, 0, len);
  nbd_io_start (w, lossy_loop, m, kind, kind == IO_WRITE ? buf : NULL, len, off,
                draw_below (2) ? 4 : 1);
}

static void
test_random (void **state)
{
  static struct nbd_io w[NR_IOS];
  static uint8_t buf[NR_IOS][MAX_IO];
  static struct nbd_io f;
  unsigned nr_kills = 0, nr_flushes = 0;

  for (unsigned round = 0; round < 40; round++) {
    const unsigned nr = 1 + draw_below (NR_IOS);
    const bool during = draw_below (3) == 0, after = draw_below (3) == 0;
    const bool flush_too = draw_below (2);

    /* It does not cover what it overtakes. */
    if (flush_too)
      nbd_io_start (&f, lossy_loop, m, IO_FLUSH, NULL, 0, 0, 0);
    for (unsigned i = 0; i < nr; i++)
      change (&w[i], buf[i], i);
    if (during) {
      nanosleep (&(struct timespec) { .tv_nsec = draw_below (2000000) }, NULL);
      nbd_store_kill ();
      nbd_store_start ();
    }
    for (unsigned i = 0; i < nr; i++)
      assert_int_equal (nbd_io_wait (&w[i]), 0);
    if (flush_too)
      assert_int_equal (nbd_io_wait (&f), 0);
    if (after) {
      nbd_store_kill ();
      nbd_store_start ();
    }
    nr_kills += during + after;
    if (draw_below (4) > 0)
      continue;
    assert_int_equal (one (IO_FLUSH, NULL, 0, 0), 0);
    nr_flushes++;
    nbd_store_kill ();
    assert_on_disk ();
    nbd_store_start ();
  }
  print_message ("%u kills, %u flushes\n", nr_kills, nr_flushes);
  assert_true (nr_kills > 8 && nr_flushes > 4);
}

/* Many changes of one place: the newest is what counts. */
static void
test_order (void **state)
{
  static uint8_t buf[MAX_IO];

  for (unsigned i = 0; i < 200; i++) {
    const uint64_t len = i % 2 ? 4096 : MAX_IO;

    memset (buf, i, len);
    memset (want + MAX_IO, i, len);
    assert_int_equal (one (IO_WRITE, buf, len, MAX_IO), 0);
  }
  nbd_store_kill ();
  nbd_store_start ();
  assert_int_equal (one (IO_FLUSH, NULL, 0, 0), 0);
  nbd_store_kill ();
  assert_on_disk ();
  nbd_store_start ();
}

static void
test_reads_wait (void **state)
{
  uint8_t buf[4096], got[4096];
  struct nbd_io w;

  memset (buf, 'x', sizeof buf);
  assert_int_equal (one (IO_WRITE, buf, sizeof buf, 1 << 20), 0);
  nbd_store_kill ();
  nbd_io_start (&w, lossy_loop, m, IO_READ, got, sizeof got, 1 << 20, 1);
  nanosleep (&(struct timespec) { .tv_nsec = 200000000 }, NULL);
  assert_false (atomic_load (&w.ended));
  nbd_store_start ();
  assert_int_equal (nbd_io_wait (&w), 0);
  assert_memory_equal (buf, got, sizeof buf);
}

/* However long a server was away, it is not away for a quarter of the shortest
 * timeout= more after it is back.
 */
static void
test_tried_often (void **state)
{
  uint8_t buf[4096] = { 1 };
  struct nbd_io w;

  assert_int_equal (one (IO_READ, buf, sizeof buf, 0), 0);
  nbd_store_kill ();
  nbd_io_start (&w, lossy_loop, m, IO_WRITE, buf, sizeof buf, 8 << 20, 1);
  while (tries () < 6)
    nanosleep (&(struct timespec) { .tv_nsec = 10000000 }, NULL);
  assert_in_range (longest_pause, 1, 250000000);
  nbd_store_start ();
  assert_int_equal (nbd_io_wait (&w), 0);
}

/* Without flushes the log stays bounded: the member flushes by itself, and
 * what is on the disk then needs no memory.
 */
static void
test_bound (void **state)
{
  const size_t len = 2 << 20;
  const uint64_t sum = scratch_sum ("disks/disk");
  uint8_t *buf = calloc (1, len);

  memset (buf, 1, len);
  for (unsigned i = 0; i < 40; i++)
    assert_int_equal (one (IO_WRITE, buf, len, (1 + i % 8) * len), 0);
  nbd_store_kill ();
  assert_true (scratch_sum ("disks/disk") != sum);
  free (buf);
}

/* Also if the flush that is to empty it fails: then nothing more is taken. */
static void
test_flush_fails (void **state)
{
  const size_t len = 2 << 20;
  uint8_t *buf = calloc (1, len);
  unsigned nr = 0;

  nbd_store_control ("flushes fail\n");
  while (nr < 40 && one (IO_WRITE, buf, len, (1 + nr % 8) * len) == 0)
    nr++;
  assert_in_range (nr, 16, 39);
  assert_int_equal (one (IO_FLUSH, NULL, 0, 0), EIO);
  nbd_store_control ("flushes work\n");
  assert_int_equal (one (IO_FLUSH, NULL, 0, 0), EIO);
  assert_int_equal (one (IO_READ, buf, len, 0), 0);
  free (buf);
}

/* What a process wrote that was killed, and is read when the export is opened,
 * stays.
 */
static void
test_opened_is_stable (void **state)
{
  uint8_t buf[4096];

  memset (want, 'a', 4096);
  memset (want + (1 << 20), 'b', 4096);
  assert_int_equal (one (IO_WRITE, want, 4096, 0), 0);
  assert_int_equal (one (IO_WRITE, want + (1 << 20), 4096, 1 << 20), 0);
  member_close (m);
  m = member_open (nbd_store_uri, 0, 0);
  assert_non_null (m);
  nbd_store_kill ();
  assert_on_disk ();
  nbd_store_start ();
  assert_int_equal (one (IO_WRITE, want, 4096, 4096 * 9), 0);
  assert_int_equal (one (IO_READ, buf, 4096, 0), 0);
  assert_memory_equal (buf, want, 4096);
}

/* The same server, but whether it is multi-conn. */
static void
exchange (bool multi_conn)
{
  member_close (m);
  nbd_store_kill ();
  nbd_store_multi_conn = multi_conn;
  nbd_store_start ();
  nbd_store_multi_conn = true;
  m = member_open (nbd_store_uri, 0, 0);
  assert_non_null (m);
}

static void
test_connections (void **state)
{
  uint8_t buf[4096];

  assert_int_equal (one (IO_READ, buf, sizeof buf, 0), 0);
  assert_true (has_details (": 4 connections"));
  assert_false (has_details (": 1 connections"));
  exchange (false);
  assert_int_equal (one (IO_READ, buf, sizeof buf, 0), 0);
  assert_true (has_details (": 1 connections"));
}

/* Between two looks; the write has to begin before the second. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define LOOK_NS UINT64_C (2000000000)
#else
#define LOOK_NS UINT64_C (400000000)
#endif

/* A large write to a server that is stopped, so that it is sent in part, and
 * the time for which it may be written without a look ends.
 */
static void
start_in_part (struct nbd_io *w, uint8_t *buf, uint64_t len, uint64_t off)
{
  uint8_t got[4096];

  memset (buf, 'x', len);
  nbd_look_ns = LOOK_NS;
  assert_int_equal (one (IO_READ, got, sizeof got, off), 0);
  nbd_store_signal (SIGSTOP);
  nbd_io_start (w, lossy_loop, m, IO_WRITE, buf, len, off, 1);
  nanosleep (&(struct timespec) { .tv_sec = 4 * LOOK_NS / 1000000000,
                                  .tv_nsec = 4 * LOOK_NS % 1000000000 }, NULL);
  assert_false (atomic_load (&w->ended));
}

/* Another server may have taken over: the rest is never sent. */
static void
test_never_sent (void **state)
{
  static uint8_t buf[8 << 20], got[4096];
  const uint64_t off = 8 << 20;
  struct member *reader;
  struct nbd_io w;

  exchange (false);
  start_in_part (&w, buf, sizeof buf, off);
  for (unsigned i = 0; !was_said ("connection lost"); i++) {
    assert_true (i < 600);
    nanosleep (&(struct timespec) { .tv_nsec = 100000000 }, NULL);
  }
  atomic_store (&m->unused, true);
  assert_int_equal (nbd_io_wait (&w), ENODEV);
  nbd_store_signal (SIGCONT);

  reader = member_open (nbd_store_uri, MEMBER_RDONLY, 0);
  assert_non_null (reader);
  assert_int_equal (reader->ops->pread (reader, got, sizeof got, off), 0);
  assert_true (got[0] == 0 && memcmp (got, got + 1, sizeof got - 1) == 0);
  member_close (reader);
}

/* With several connections a look can tell, and it goes on. */
static void
test_sent_later (void **state)
{
  static uint8_t buf[8 << 20];
  struct nbd_io w;

  start_in_part (&w, buf, sizeof buf, 8 << 20);
  nbd_store_signal (SIGCONT);
  assert_int_equal (nbd_io_wait (&w), 0);
  assert_false (was_said ("connection lost"));
  memcpy (want + (8 << 20), buf, sizeof buf);
  assert_int_equal (one (IO_FLUSH, NULL, 0, 0), 0);
  nbd_store_kill ();
  assert_on_disk ();
}

static void
test_unused (void **state)
{
  uint8_t buf[4096];
  struct nbd_io w;

  assert_int_equal (one (IO_READ, buf, sizeof buf, 0), 0);
  nbd_store_signal (SIGSTOP);
  nbd_io_start (&w, lossy_loop, m, IO_READ, buf, sizeof buf, 0, 1);
  nanosleep (&(struct timespec) { .tv_nsec = 100000000 }, NULL);
  assert_false (atomic_load (&w.ended));
  atomic_store (&m->unused, true);
  assert_int_equal (nbd_io_wait (&w), ENODEV);
  nbd_store_signal (SIGCONT);
}

/* A server is lost that has answered none of as many writes as have room. */
static void
test_full (void **state)
{
  static struct nbd_io w[20];
  static uint8_t buf[4 << 20];

  member_close (m);
  nbd_store_kill ();
  nbd_store_filter[0] = "--filter=delay";
  nbd_store_filter[1] = "wdelay=3";
  nbd_store_start ();
  nbd_store_filter[0] = nbd_store_filter[1] = NULL;
  m = member_open (nbd_store_uri, 0, 0);
  assert_non_null (m);
  memset (buf, 'x', sizeof buf);
  memcpy (want + sizeof buf, buf, sizeof buf);
  for (unsigned i = 0; i < 20; i++)
    nbd_io_start (&w[i], lossy_loop, m, IO_WRITE, buf, sizeof buf, sizeof buf,
                  1);
  nanosleep (&(struct timespec) { .tv_sec = 2 }, NULL);
  nbd_store_kill ();
  nbd_store_start ();
  for (unsigned i = 0; i < 20; i++)
    assert_int_equal (nbd_io_wait (&w[i]), 0);
  assert_int_equal (one (IO_FLUSH, NULL, 0, 0), 0);
  nbd_store_kill ();
  assert_on_disk ();
}

int
main (void)
{
#define TEST(f) cmocka_unit_test_setup_teardown (f, begin_lossy, finish_lossy)
  const struct CMUnitTest tests[] = {
    TEST (test_random),
    TEST (test_order),
    TEST (test_reads_wait),
    TEST (test_tried_often),
    TEST (test_bound),
    TEST (test_flush_fails),
    TEST (test_opened_is_stable),
    TEST (test_connections),
    TEST (test_never_sent),
    TEST (test_sent_later),
    TEST (test_unused),
    TEST (test_full),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
