/* gpuraid: what a member on a server sees when it looks at its superblocks: its
 * own writes, another export, a smaller one, or nothing.
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

#include "member/nbd/nbd.h"
#include "tests/member/nbd-lossy.h"
#include "tests/scratch.h"

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
      nbd_io_start (&w[i], lossy_loop, m, IO_WRITE, buf[i], sizeof buf[i],
                    off[i], 1);
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
  nbd_io_start (&w, lossy_loop, m, IO_WRITE, buf, sizeof buf, 8 << 20, 1);
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
  nbd_io_start (&w, lossy_loop, m, IO_WRITE, buf, sizeof buf, 8 << 20, 1);
  nanosleep (&(struct timespec) { .tv_nsec = 500000000 }, NULL);
  nbd_silent_ns = 500000000;
  atomic_store (&m->hurry, true);
  assert_int_equal (nbd_io_wait (&w), ENODEV);
  assert_true (was_said ("the array stops"));
}

int
main (void)
{
#define TEST(f) cmocka_unit_test_setup_teardown (f, begin_lossy, finish_lossy)
  const struct CMUnitTest tests[] = {
    TEST (test_marks_lost),
    TEST (test_marks_often),
    TEST (test_marks_torn),
    TEST (test_other_export),
    TEST (test_smaller),
    TEST (test_unreadable_marks),
    TEST (test_silent_write),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
