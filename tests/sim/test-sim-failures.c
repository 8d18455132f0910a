/* gpuraid: simulated disks that fail, hang, lie, and are locked, on request.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "common/log.h"
#include "tests/seed.h"
#include "tests/sim/sim-io.h"

static unsigned first_seed;

static void
test_bad_blocks (void **state)
{
  struct sim *sim = sim_new (first_seed);
  struct sim_disk *d = sim_disk_new (sim, "d", SIZE);
  struct member *m = sim_disk_open (d, 0);

  assert_int_equal (sim_io_run (sim, m, IO_WRITE, 0, 4, 'a'), 0);
  sim_disk_set_bad (d, BLOCK, BLOCK);
  assert_int_equal (sim_io_run (sim, m, IO_READ, 0, 2, 'a'), EIO);
  assert_int_equal (sim_io_run (sim, m, IO_READ, 2, 2, 'a'), 0);
  assert_int_equal (sim_io_run (sim, m, IO_WRITE, 1, 1, 'b'), 0);
  assert_int_equal (sim_io_run (sim, m, IO_READ, 1, 1, 'b'), 0);
  assert_int_equal (sim_io_run (sim, m, IO_READ, NR_BLOCKS - 1, 2, 0), EIO);
  assert_int_equal (sim_io_run (sim, m, IO_ZERO, 1, 1, 0), 0);
  assert_int_equal (sim_io_run (sim, m, IO_READ, 1, 1, 0), 0);
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
  struct sim_io t;

  sim_disk_hang (d, true);
  sim_io_init (&t, m, IO_WRITE, 5, 1, 'h');
  sim_io_submit (sim, &t);
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
  sim_io_submit (sim, &t);
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

  log_set_sink (log_nowhere);
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
  assert_int_equal (sim_io_run (sim, m, IO_WRITE, 7, 1, 'l'), 0);
  assert_int_equal (d->image[7 * BLOCK], 0);
  d->lose_write_ppm = 0;
  d->flush_error_ppm = 1000000;
  assert_int_equal (sim_io_run (sim, m, IO_FLUSH, 0, 0, 0), EIO);
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

  log_set_sink (log_nowhere);
  assert_int_equal (sim_io_run (sim, m, IO_WRITE, 0, 4, 'a'), 0);
  d->dead = true;
  assert_int_equal (sim_io_run (sim, m, IO_READ, 0, 1, 'a'), ENODEV);
  assert_int_equal (sim_io_run (sim, m, IO_WRITE, 0, 1, 'a'), ENODEV);
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

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_bad_blocks),
    cmocka_unit_test (test_hung),
    cmocka_unit_test (test_locks),
    cmocka_unit_test (test_lies_and_errors),
    cmocka_unit_test (test_dead_and_absent),
  };

  first_seed = test_seed (argc > 1 ? argv[1] : NULL);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
