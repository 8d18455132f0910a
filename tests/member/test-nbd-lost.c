/* gpuraid: a server that restarts loses what was not flushed, and the member
 * makes it again (R9).
 *
 * After each flush that succeeded the server is killed, and its disk must have
 * all that was written.
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
#include "common/cleanup.h"
#include "common/log.h"
#include "member/member.h"
#include "member/nbd/nbd.h"
#include "tests/member/nbd-store.h"
#include "tests/scratch.h"
#include "tests/seed.h"

#define SIZE (UINT64_C (24) << 20)
#define NR_IOS 16u
#define MAX_IO (128u << 10)

static struct loop *loop;
static struct member *m;
static uint8_t *want;           /* what was acknowledged */
static uint64_t random_state;

static uint64_t
draw (uint64_t n)
{
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state % n;
}

/* The member's thread writes messages too. */
static pthread_mutex_t said_lock = PTHREAD_MUTEX_INITIALIZER;
static char said[8192], details[8192];
static unsigned nr_tries;       /* to connect */
static uint64_t longest_pause;  /* ns, before the next one */

/* retry_at was set by this thread. */
static void
note_try (void)
{
  const uint64_t at = nbd_of (m)->retry_at, now = running_now ();

  nr_tries++;
  if (at > now)
    longest_pause = MAX (longest_pause, at - now);
}

static void
sink (enum log_level level, const char *fmt, va_list args)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&said_lock);
  char *to = level == LOG_LEVEL_DEBUG ? details : said;
  const size_t len = strlen (to);

  vsnprintf (to + len, sizeof said - len, fmt, args);
  if (strstr (to + len, "can't connect"))
    note_try ();
}

static bool
was_said (const char *text)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&said_lock);

  return strstr (said, text) != NULL;
}

static int
begin (void **state)
{
  scratch_start ();
  log_set_sink (sink);
  said[0] = details[0] = '\0';
  nr_tries = longest_pause = 0;
  loop = loop_threads_new ();
  want = calloc (1, SIZE);
  assert_non_null (loop);
  random_state = test_seed (NULL) * 2 + 1;
  nbd_store_new (SIZE);
  nbd_store_start ();
  m = member_open (nbd_store_uri, 0, 0);
  assert_non_null (m);
  return 0;
}

static int
finish (void **state)
{
  member_close (m);
  m = NULL;
  nbd_look_ns = UINT64_C (3000000000);
  nbd_silent_ns = UINT64_C (30000000000);
  loop_free (loop);
  nbd_store_end ();
  free (want);
  scratch_end ();
  return 0;
}

static int
one (enum io_kind kind, void *buf, uint64_t len, uint64_t off)
{
  struct nbd_io w;

  nbd_io_start (&w, loop, m, kind, buf, len, off, 1);
  return nbd_io_wait (&w);
}

/* The disk after a failure of its power. */
static void
assert_on_disk (void)
{
  uint8_t *got = malloc (SIZE);
  int fd = open ("disks/disk", O_RDONLY);

  assert_int_equal (read (fd, got, SIZE), SIZE);
  close (fd);
  for (uint64_t b = 0; b < SIZE; b += 4096)
    if (memcmp (got + b, want + b, 4096) != 0)
      fail_msg ("block %llu is not what was flushed",
                (unsigned long long) b / 4096);
  free (got);
}

/* A change that overlaps no other in flight, and what it leaves. */
static void
change (struct nbd_io *w, uint8_t *buf, unsigned i)
{
  const uint64_t lane = SIZE / NR_IOS;
  const uint64_t len = 16384 * (1 + draw (MAX_IO / 16384));
  const uint64_t off = i * lane + 4096 * draw ((lane - len) / 4096);
  const unsigned what = draw (8);
  const enum io_kind kind = what == 0 ? IO_ZERO : what == 1 ? IO_TRIM :
    IO_WRITE;

  for (uint64_t b = 0; b < len; b += 8)
    *(uint64_t *) (buf + b) = draw (UINT64_MAX);
  if (kind == IO_WRITE)
    memcpy (want + off, buf, len);
  else
    memset (want + off, 0, len);
  nbd_io_start (w, loop, m, kind, kind == IO_WRITE ? buf : NULL, len, off,
                draw (2) ? 4 : 1);
}

static void
test_random (void **state)
{
  static struct nbd_io w[NR_IOS];
  static uint8_t buf[NR_IOS][MAX_IO];
  static struct nbd_io f;
  unsigned nr_kills = 0, nr_flushes = 0;

  for (unsigned round = 0; round < 40; round++) {
    const unsigned nr = 1 + draw (NR_IOS);
    const bool during = draw (3) == 0, after = draw (3) == 0;
    const bool flush_too = draw (2);

    /* It does not cover what it overtakes. */
    if (flush_too)
      nbd_io_start (&f, loop, m, IO_FLUSH, NULL, 0, 0, 0);
    for (unsigned i = 0; i < nr; i++)
      change (&w[i], buf[i], i);
    if (during) {
      nanosleep (&(struct timespec) { .tv_nsec = draw (2000000) }, NULL);
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
    if (draw (4) > 0)
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
  nbd_io_start (&w, loop, m, IO_READ, got, sizeof got, 1 << 20, 1);
  nanosleep (&(struct timespec) { .tv_nsec = 200000000 }, NULL);
  assert_false (atomic_load (&w.ended));
  nbd_store_start ();
  assert_int_equal (nbd_io_wait (&w), 0);
  assert_memory_equal (buf, got, sizeof buf);
}

static unsigned
tries (void)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&said_lock);

  return nr_tries;
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
  nbd_io_start (&w, loop, m, IO_WRITE, buf, sizeof buf, 8 << 20, 1);
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

/* Our own write to a superblock is no other server's. */
static void
test_marks_lost (void **state)
{
  memset (want, 'a', 4096);
  assert_int_equal (one (IO_WRITE, want, 4096, 0), 0);
  nbd_store_kill ();
  nbd_store_start ();
  memset (want + SIZE - 4096, 'b', 4096);
  assert_int_equal (one (IO_WRITE, want + SIZE - 4096, 4096, SIZE - 4096), 0);
  assert_int_equal (one (IO_FLUSH, NULL, 0, 0), 0);
  nbd_store_kill ();
  assert_on_disk ();
  nbd_store_start ();
  assert_int_equal (one (IO_READ, want, 4096, 0), 0);
}

/* Looks are answered together with writes of superblocks, and in between. */
static void
test_marks_often (void **state)
{
  static const uint64_t off[] = { 0, 4096, SIZE - 8192, SIZE - 4096 };
  static uint8_t buf[4][4096];
  static struct nbd_io w[4];

  for (unsigned round = 0; round < 400; round++) {
    for (unsigned i = 0; i < 4; i++) {
      memset (buf[i], round + i, sizeof buf[i]);
      nbd_io_start (&w[i], loop, m, IO_WRITE, buf[i], sizeof buf[i], off[i],
                    1);
    }
    if (round % 3 == 0)
      assert_int_equal (one (IO_FLUSH, NULL, 0, 0), 0);
    for (unsigned i = 0; i < 4; i++)
      assert_int_equal (nbd_io_wait (&w[i]), 0);
  }
}

/* A look beside a write of a superblock has a part of it as it was and another
 * as it is, down to the byte.
 */
static void
test_marks_torn (void **state)
{
  const uint64_t end = running_now () + UINT64_C (3000000000);
  uint8_t buf[4096] = { 0 };

  nbd_store_control ("tear 10000\n");
  nbd_store_control ("delay 5000\n");
  nbd_look_ns = 50000000;
  for (unsigned round = 1; running_now () < end; round++) {
    for (unsigned b = 0; b < sizeof buf; b++)
      buf[b] = round * 31 + b / 512;
    assert_int_equal (one (IO_WRITE, buf, sizeof buf, 0), 0);
    assert_int_equal (one (IO_FLUSH, NULL, 0, 0), 0);
  }
  assert_false (was_said ("other content"));
}

static void
poke (uint64_t off)
{
  int fd = open ("disks/disk", O_RDWR);

  assert_int_equal (pwrite (fd, "other", 5, off), 5);
  close (fd);
}

static uint64_t
sum_of_disk (void)
{
  return scratch_sum ("disks/disk");
}

static void
test_other_export (void **state)
{
  uint8_t buf[4096] = { 1 };
  uint64_t sum;

  assert_int_equal (one (IO_WRITE, buf, sizeof buf, 8 << 20), 0);
  nbd_store_kill ();
  poke (4096);
  sum = sum_of_disk ();
  nbd_store_start ();
  assert_int_equal (one (IO_WRITE, buf, sizeof buf, 1 << 20), ENODEV);
  assert_true (was_said ("other content than was written"));
  assert_int_equal (m->ops->check (m), ESTALE);
  assert_int_equal (one (IO_FLUSH, NULL, 0, 0), ENODEV);
  nbd_store_kill ();
  assert_true (sum_of_disk () == sum);
}

static void
test_smaller (void **state)
{
  uint8_t buf[4096] = { 1 };

  assert_int_equal (one (IO_WRITE, buf, sizeof buf, 8 << 20), 0);
  nbd_store_kill ();
  assert_int_equal (truncate ("disks/disk", SIZE - 4096), 0);
  nbd_store_start ();
  assert_int_equal (one (IO_WRITE, buf, sizeof buf, 1 << 20), ENODEV);
  assert_true (was_said ("smaller than it was"));
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

static bool
has_details (const char *text)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&said_lock);

  return strstr (details, text) != NULL;
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
  nbd_io_start (w, loop, m, IO_WRITE, buf, len, off, 1);
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
start_with (const char *filter, const char *param, const char *param2)
{
  member_close (m);
  nbd_store_kill ();
  nbd_store_filter[0] = filter;
  nbd_store_filter[1] = param;
  nbd_store_filter[2] = param2;
  nbd_store_start ();
  nbd_store_filter[0] = nbd_store_filter[1] = nbd_store_filter[2] = NULL;
  m = member_open (nbd_store_uri, 0, 0);
  assert_non_null (m);
}

/* Nothing may be written then, and a server that answers is not waited for. */
static void
test_unreadable_marks (void **state)
{
  uint8_t buf[4096] = { 1 };
  struct nbd_io w;

  nbd_look_ns = 200000000;
  start_with ("--filter=error", "error-pread-rate=100%",
              "error-pread-file=trigger");
  assert_int_equal (one (IO_WRITE, buf, sizeof buf, 8 << 20), 0);
  scratch_file ("trigger", 1);
  nanosleep (&(struct timespec) { .tv_sec = 1 }, NULL);
  nbd_io_start (&w, loop, m, IO_WRITE, buf, sizeof buf, 8 << 20, 1);
  assert_int_equal (nbd_io_wait (&w), ENODEV);
  assert_int_equal (m->ops->check (m), EIO);
  assert_true (was_said ("its superblock can't be read: "));
}

/* One that reads, and is silent about a write, when the array stops. */
static void
test_silent_write (void **state)
{
  uint8_t buf[4096] = { 1 };
  struct nbd_io w;

  nbd_look_ns = 200000000;
  start_with ("--filter=delay", "wdelay=300", NULL);
  nbd_io_start (&w, loop, m, IO_WRITE, buf, sizeof buf, 8 << 20, 1);
  nanosleep (&(struct timespec) { .tv_nsec = 500000000 }, NULL);
  nbd_silent_ns = 500000000;
  atomic_store (&m->hurry, true);
  assert_int_equal (nbd_io_wait (&w), ENODEV);
  assert_true (was_said ("the array stops"));
}

static void
test_unused (void **state)
{
  uint8_t buf[4096];
  struct nbd_io w;

  assert_int_equal (one (IO_READ, buf, sizeof buf, 0), 0);
  nbd_store_signal (SIGSTOP);
  nbd_io_start (&w, loop, m, IO_READ, buf, sizeof buf, 0, 1);
  nanosleep (&(struct timespec) { .tv_nsec = 100000000 }, NULL);
  assert_false (atomic_load (&w.ended));
  atomic_store (&m->unused, true);
  assert_int_equal (nbd_io_wait (&w), ENODEV);
  nbd_store_signal (SIGCONT);
}

int
main (void)
{
#define TEST(f) cmocka_unit_test_setup_teardown (f, begin, finish)
  const struct CMUnitTest tests[] = {
    TEST (test_random),
    TEST (test_order),
    TEST (test_reads_wait),
    TEST (test_tried_often),
    TEST (test_bound),
    TEST (test_flush_fails),
    TEST (test_opened_is_stable),
    TEST (test_marks_lost),
    TEST (test_marks_often),
    TEST (test_marks_torn),
    TEST (test_other_export),
    TEST (test_smaller),
    TEST (test_connections),
    TEST (test_never_sent),
    TEST (test_sent_later),
    TEST (test_unreadable_marks),
    TEST (test_silent_write),
    TEST (test_unused),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
