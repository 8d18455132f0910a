/* gpuraid: a file that is truncated while it is a member: the first check
 * detects it, and it is refused from then on.
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
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/member/member-files.h"

/* Full of ones, and then truncated in its middle. */
static struct member *
new_truncated (const char *dir, uint8_t *buf)
{
  struct member *m;

  new_file (dir);
  m = open_ok (path, 0, 0);
  memset (buf, 1, MIB);
  for (uint64_t off = 0; off < SIZE; off += MIB)
    assert_int_equal (m->ops->pwrite (m, buf, MIB, off), 0);
  assert_int_equal (m->ops->pread (m, buf, MIB, 0), 0);
  assert_int_equal (m->ops->flush (m), 0);
  file_notices = 0;
  assert_int_equal (truncate (path, SIZE / 2 - 100), 0);
  return m;
}

/* Found truncated: refuses all I/O, reports it once, and does not change. */
static void
end_truncated (struct member *m, uint8_t *buf, off_t size)
{
  struct iovec iov = { buf, 4096 };
  struct stat st;
  bool hole;
  uint64_t end;

  for (int as_long = 0; as_long < 2; ++as_long) {
    assert_int_equal (m->ops->pread (m, buf, 4096, 0), ENXIO);
    assert_int_equal (m->ops->pread (m, buf, 4096, SIZE / 2), ENXIO);
    assert_int_equal (m->ops->pwrite (m, buf, 4096, 0), ENXIO);
    assert_int_equal (m->ops->pwrite (m, buf, 4096, SIZE - 4096), ENXIO);
    assert_int_equal (m->ops->flush (m), ENXIO);
    assert_int_equal (m->ops->discard (m, 0, 4096), ENXIO);
    assert_int_equal (m->ops->extent (m, 0, 4096, &hole, &end), ENXIO);
    assert_int_equal (submit_io (m, IO_READ, 0, &iov, 1, 4096), ENXIO);
    assert_int_equal (submit_io (m, IO_WRITE, 0, &iov, 1, 4096), ENXIO);
    assert_int_equal (submit_io (m, IO_ZERO, 0, &iov, 0, 4096), ENXIO);
    assert_int_equal (submit_io (m, IO_FLUSH, 0, &iov, 0, 0), ENXIO);
    assert_int_equal (m->ops->intact (m, false), ENXIO);
    assert_int_equal (stat (path, &st), 0);
    assert_int_equal (st.st_size, size);
    assert_int_equal (file_notices, 1);
    size = SIZE;
    assert_int_equal (truncate (path, size), 0);
  }
  member_close (m);
}

/* Every kind of I/O detects it. */
static void
check_truncated (const char *dir, uint8_t *buf)
{
  const uint64_t above = SIZE - MIB;
  struct iovec iov = { buf, 8192 };
  struct member *m;
  bool hole;
  uint64_t end;

  m = new_truncated (dir, buf);
  assert_int_equal (m->ops->pread (m, buf, 8192, SIZE / 2 - 4096), ENXIO);
  end_truncated (m, buf, SIZE / 2 - 100);
  m = new_truncated (dir, buf);
  assert_int_equal (m->ops->pread (m, buf, 8192, 0), ENXIO);
  end_truncated (m, buf, SIZE / 2 - 100);

  /* A write above it makes it longer again: the rest reads as zeroes. */
  m = new_truncated (dir, buf);
  assert_int_equal (m->ops->pwrite (m, buf, 4096, above), 0);
  assert_int_equal (m->ops->pread (m, buf, 8192, SIZE / 2), ENXIO);
  end_truncated (m, buf, above + 4096);
  m = new_truncated (dir, buf);
  assert_int_equal (submit_io (m, IO_WRITE, above, &iov, 1, 8192), 0);
  assert_int_equal (submit_io (m, IO_READ, SIZE / 2, &iov, 1, 8192), ENXIO);
  end_truncated (m, buf, above + 8192);
  m = new_truncated (dir, buf);
  assert_int_equal (m->ops->pwrite (m, buf, 4096, above), 0);
  assert_int_equal (m->ops->flush (m), ENXIO);
  end_truncated (m, buf, above + 4096);
  m = new_truncated (dir, buf);
  assert_int_equal (m->ops->pwrite (m, buf, 4096, above), 0);
  assert_int_equal (m->ops->extent (m, SIZE / 2, 4096, &hole, &end), ENXIO);
  end_truncated (m, buf, above + 4096);

  /* A write that would restore its length is not done at all. */
  m = new_truncated (dir, buf);
  assert_int_equal (m->ops->pwrite (m, buf, 4096, SIZE - 4096), ENXIO);
  end_truncated (m, buf, SIZE / 2 - 100);
  m = new_truncated (dir, buf);
  assert_int_equal (submit_io (m, IO_WRITE, SIZE - 8192, &iov, 1, 8192), ENXIO);
  end_truncated (m, buf, SIZE / 2 - 100);

  /* A read that met the end, though it is as long again. */
  m = new_truncated (dir, buf);
  assert_int_equal (truncate (path, SIZE), 0);
  assert_int_equal (m->ops->intact (m, false), 0);
  assert_int_equal (m->ops->intact (m, true), ENXIO);
  end_truncated (m, buf, SIZE);
}

static void
test_truncated (void **state)
{
  void *buf = NULL;
  struct member *m;

  assert_int_equal (posix_memalign (&buf, 4096, MIB), 0);
  for (size_t i = 0; i < ARRAY_LEN (dirs); ++i)
    check_truncated (dirs[i], buf);

  /* A longer file is no error. */
  new_file (dirs[0]);
  m = open_ok (path, 0, 0);
  assert_int_equal (truncate (path, 2 * SIZE), 0);
  assert_int_equal (m->ops->pread (m, buf, 4096, SIZE - 4096), 0);
  assert_int_equal (m->ops->flush (m), 0);
  assert_int_equal (m->ops->size (m), SIZE);
  member_close (m);
  free (buf);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_truncated),
  };

  return cmocka_run_group_tests (tests, make_dirs, remove_dirs);
}
