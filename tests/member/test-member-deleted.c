/* gpuraid: a file that is deleted while it is a member: it says so when it is
 * asked.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/member/member-files.h"

/* All its names are gone, or another file has its name. */
static void
test_deleted (void **state)
{
  for (size_t i = 0; i < ARRAY_LEN (dirs); ++i) {
    struct member *m;
    int fd;

    new_file (dirs[i]);
    m = open_ok (path, 0, 0);
    assert_int_equal (m->ops->check (m), 0);
    assert_int_equal (link (path, path2), 0);
    assert_int_equal (unlink (path), 0);
    assert_int_equal (m->ops->check (m), 0);
    assert_int_equal (rename (path2, path), 0);
    assert_int_equal (m->ops->check (m), 0);
    assert_int_equal (unlink (path), 0);
    assert_int_equal (m->ops->check (m), ENOENT);
    assert_int_equal (m->ops->check (m), ENOENT);
    member_close (m);

    new_file (dirs[i]);
    m = open_ok (path, 0, 0);
    fd = open (path2, O_CREAT|O_WRONLY|O_CLOEXEC, 0600);
    assert_true (fd != -1);
    close (fd);
    assert_int_equal (m->ops->check (m), 0);
    assert_int_equal (rename (path2, path), 0);
    assert_int_equal (m->ops->check (m), ENOENT);
    assert_int_equal (unlink (path), 0);
    member_close (m);
  }
}

/* One that never had a name. */
static void
test_unnamed (void **state)
{
  char name[40];
  struct member *m;
  int fd = open (dirs[0], O_TMPFILE|O_RDWR|O_CLOEXEC, 0600);

  assert_true (fd != -1);
  assert_int_equal (ftruncate (fd, SIZE), 0);
  snprintf (name, sizeof name, "/proc/self/fd/%d", fd);
  m = open_ok (name, 0, 0);
  assert_int_equal (m->ops->check (m), 0);
  member_close (m);
  close (fd);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_deleted),
    cmocka_unit_test (test_unnamed),
  };

  return cmocka_run_group_tests (tests, make_dirs, remove_dirs);
}
