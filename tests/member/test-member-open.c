/* gpuraid: opening files as members: what is refused, read-only ones, locks,
 * and paths.
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
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "member/file.h"
#include "tests/member/member-files.h"

/* In place of libc's. */
static int flush_error;

int
fdatasync (int fd)
{
  errno = flush_error;
  return flush_error ? -1 : 0;
}

static int
in_child (int (*fn) (void))
{
  int status;
  pid_t pid = fork ();

  if (pid == 0)
    _exit (fn ());
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_true (WIFEXITED (status));
  return WEXITSTATUS (status);
}

static int
child_opens (void)
{
  return member_open (path, 0, 0) == NULL && errno == EWOULDBLOCK;
}

static int
child_reads (void)
{
  return member_open (path, MEMBER_RDONLY, 0) == NULL;
}

static void
test_refused (void **state)
{
  char name[256];
  int fd;

  new_file (dirs[1]);
  open_fails ("", 0, 0, EINVAL, 1);
  open_fails (dirs[1], 0, 0, EISDIR, 1);
  open_fails ("/dev/null", 0, 0, EINVAL, 1);
  open_fails ("nbd+unix:///x?socket=/nowhere/y", 0, 0, ENOTCONN, 1);
  open_fails ("nbd+unix:///x?socket=/nowhere/y", MEMBER_LISTED, 0, ENXIO, 0);
  open_fails ("nbd+unix:///x?socket=/nowhere/y", MEMBER_CREATE, 65536, EINVAL,
              1);
  open_fails ("nbd+unix:///x", 0, 0, EINVAL, 1);
  open_fails ("nbd+unix:///x", MEMBER_LISTED, 0, EINVAL, 1);
  snprintf (name, sizeof name, "%s/pipe", dirs[1]);
  assert_int_equal (mkfifo (name, 0600), 0);
  open_fails (name, 0, 0, EINVAL, 1);
  open_fails (name, MEMBER_NOLOCK, 0, EINVAL, 1);
  snprintf (name, sizeof name, "%s/absent", dirs[1]);
  open_fails (name, 0, 0, ENOENT, 0);
  assert_int_equal (symlink ("absent", path2), 0);
  open_fails (path2, 0, 0, ENOENT, 0);
  unlink (path2);
  snprintf (name, sizeof name, "%s/absent/x", dirs[1]);
  open_fails (name, MEMBER_CREATE, SIZE, EINVAL, 1);
  open_fails (path, MEMBER_CREATE, SIZE, EEXIST, 1);
  open_fails (path2, MEMBER_CREATE, 1000, EINVAL, 1);
  assert_int_equal (access (path2, F_OK), -1);
  /* Made, and taken back when it can't have its size. */
  open_fails (path2, MEMBER_CREATE, INT64_MAX, EFBIG, 1);
  assert_int_equal (access (path2, F_OK), -1);

  fd = open (path2, O_RDWR | O_CREAT, 0600);
  open_fails (path2, 0, 0, EINVAL, 1);
  assert_int_equal (ftruncate (fd, 8192), 0);
  open_fails (path2, 0, 0, EINVAL, 1);
  close (fd);
}

static void
test_readonly (void **state)
{
  struct member *m, *m2;
  char buf[4096] __attribute__ ((aligned (4096))) = "";
  int err = EACCES;

  new_file (dirs[1]);
  m = open_ok (path, MEMBER_RDONLY, 0);
  assert_true (m->readonly);
  m2 = open_ok (path, MEMBER_RDONLY, 0);
  open_fails (path, 0, 0, EWOULDBLOCK, 1);
  assert_int_equal (m->ops->pwrite (m, buf, 4096, 0), EROFS);
  assert_int_equal (m->ops->discard (m, 0, 4096), EROFS);
  assert_int_equal (m->ops->pread (m, buf, 4096, 0), 0);
  assert_int_equal (m->ops->flush (m), 0);
  member_close (m);
  open_fails (path, 0, 0, EWOULDBLOCK, 1);
  member_close (m2);

  /* Root ignores the mode of a file but not its attributes. */
  if (geteuid () == 0) {
    char cmd[256];

    err = EPERM;
    snprintf (cmd, sizeof cmd, "chattr +i %s 2>/dev/null", path);
    if (system (cmd) != 0) {
      print_message ("no chattr +i here\n");
      return;
    }
  }
  else
    assert_int_equal (chmod (path, 0400), 0);
  open_fails (path, 0, 0, err, 1);
  member_close (open_ok (path, MEMBER_RDONLY, 0));
  if (geteuid () == 0) {
    char cmd[256];

    snprintf (cmd, sizeof cmd, "chattr -i %s", path);
    assert_int_equal (system (cmd), 0);
  }
}

static void
test_locks (void **state)
{
  struct member *m, *m2;

  for (size_t i = 0; i < ARRAY_LEN (dirs); ++i) {
    new_file (dirs[i]);
    m = open_ok (path, 0, 0);
    open_fails (path, 0, 0, EWOULDBLOCK, 1);
    open_fails (path, MEMBER_RDONLY, 0, EWOULDBLOCK, 1);
    assert_int_equal (in_child (child_opens), 1);
    assert_int_equal (link (path, path2), 0);
    open_fails (path2, 0, 0, EWOULDBLOCK, 1);

    m2 = open_ok (path2, MEMBER_NOLOCK, 0);
    assert_true (m2->readonly);
    assert_true (m->ops->same (m, m2));
    member_close (m2);
    open_fails (path, 0, 0, EWOULDBLOCK, 1);    /* still locked */
    unlink (path2);

    assert_int_equal (symlink ("a", path2), 0);
    m2 = open_ok (path2, MEMBER_NOLOCK, 0);
    assert_true (m->ops->same (m2, m));
    member_close (m2);
    unlink (path2);

    m2 = open_ok (path2, MEMBER_CREATE, SIZE);
    assert_false (m->ops->same (m, m2));
    member_close (m2);
    member_close (m);
    assert_int_equal (in_child (child_opens), 0);
    assert_int_equal (in_child (child_reads), 0);
  }
}

/* nbdkit opens, forks, and the child serves: the lock must be the
 * child's once the parent is gone, and end with the child.
 */
static void
test_lock_survives_fork (void **state)
{
  int fds[2], status;
  pid_t pid;

  new_file (dirs[1]);
  assert_int_equal (pipe (fds), 0);
  pid = fork ();
  if (pid == 0) {
    struct member *m = member_open (path, 0, 0);
    char c;

    close (fds[1]);
    if (m == NULL)
      _exit (1);
    if (fork () == 0) {
      const bool wrong = read (fds[0], &c, 1) != 0;

      usleep (100000);
      _exit (wrong);
    }
    _exit (0);
  }
  close (fds[0]);
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_int_equal (status, 0);
  open_fails (path, 0, 0, EWOULDBLOCK, 1);
  close (fds[1]);
  /* It waits until the child has ended, a moment later. */
  file_used_wait_ms = 60000;
  member_close (open_ok (path, 0, 0));
  file_used_wait_ms = 0;
}

static void
test_relative_path (void **state)
{
  char cwd[4096];
  struct member *m;

  new_file (dirs[0]);
  assert_non_null (getcwd (cwd, sizeof cwd));
  assert_int_equal (chdir (dirs[0]), 0);
  m = open_ok ("a", 0, 0);
  assert_string_equal (m->path, path);
  member_close (m);
  assert_int_equal (chdir (cwd), 0);
}

/* squashfs has no flush, and needs none.  A file that can be written does. */
static void
test_no_flush (void **state)
{
  struct member *m;

  new_file (dirs[0]);
  m = member_open (path, MEMBER_RDONLY, 0);
  assert_non_null (m);
  flush_error = EINVAL;
  assert_int_equal (m->ops->flush (m), 0);
  flush_error = EIO;
  assert_int_equal (m->ops->flush (m), EIO);
  member_close (m);
  m = member_open (path, 0, 0);
  assert_non_null (m);
  flush_error = EINVAL;
  assert_int_equal (m->ops->flush (m), EINVAL);
  flush_error = 0;
  member_close (m);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_refused),
    cmocka_unit_test (test_readonly),
    cmocka_unit_test (test_locks),
    cmocka_unit_test (test_lock_survives_fork),
    cmocka_unit_test (test_relative_path),
    cmocka_unit_test (test_no_flush),
  };

  file_used_wait_ms = 0;        /* what is refused is refused at once */
  return cmocka_run_group_tests (tests, make_dirs, remove_dirs);
}
