/* gpuraid: what both loops refuse: I/O past the end, writes to read-only
 * members, truncated members; and io_uring where it is forbidden.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <string.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/bits.h"
#include "tests/member/loop-both.h"

static void
test_refused (void **state)
{
  struct member *m = members[0], *ro;

  assert_int_equal (run_io (m, IO_READ, SIZE, buffer, BLOCK), EIO);
  assert_int_equal (run_io (m, IO_WRITE, SIZE - BLOCK, buffer, 2 * BLOCK),
                    EIO);
  assert_int_equal (run_io (m, IO_ZERO, SIZE - BLOCK, NULL, 2 * BLOCK), EIO);
  assert_int_equal (run_io (m, IO_READ, 0, NULL, 0), 0);
  ro = member_open (m->path, MEMBER_NOLOCK, 0);
  assert_non_null (ro);
  assert_int_equal (run_io (ro, IO_READ, 0, buffer, BLOCK), 0);
  assert_int_equal (run_io (ro, IO_WRITE, 0, buffer, BLOCK), EROFS);
  assert_int_equal (run_io (ro, IO_TRIM, 0, buffer, BLOCK), EROFS);
  member_close (ro);
}

/* Truncated by another program: every kind of I/O refuses it. */
static void
test_truncated (void **state)
{
  for (unsigned mi = 0; mi < NR_MEMBERS; ++mi)
    for (int i = 0; i < 6; ++i) {
      struct member *m;
      const uint64_t len = SIZE - 8 * BLOCK - 100 * (i % 2);
      struct stat st;

      member_close (members[mi]);
      m = members[mi] = open_member (mi);
      assert_non_null (m);
      assert_int_equal (truncate (m->path, len), 0);
      switch (i / 2) {
      case 0:
        assert_int_equal (run_io (m, IO_READ, SIZE - 12 * BLOCK, buffer,
                                  8 * BLOCK), ENXIO);
        break;
      case 1:
        /* Longer again: what is below reads as zeroes. */
        assert_int_equal (run_io (m, IO_WRITE, SIZE - 2 * BLOCK, buffer,
                                  BLOCK), 0);
        assert_int_equal (run_io (m, IO_READ, SIZE - 4 * BLOCK, buffer,
                                  BLOCK), ENXIO);
        break;
      case 2:
        /* This would make it as long as it was. */
        assert_int_equal (run_io (m, IO_WRITE, SIZE - BLOCK, buffer, BLOCK),
                          ENXIO);
        assert_int_equal (stat (m->path, &st), 0);
        assert_int_equal (st.st_size, len);
        break;
      }
      assert_int_equal (run_io (m, IO_FLUSH, 0, NULL, 0), ENXIO);
      assert_int_equal (run_io (m, IO_READ, 0, buffer, BLOCK), ENXIO);
      assert_int_equal (run_io (m, IO_WRITE, 0, buffer, BLOCK), ENXIO);
      assert_int_equal (run_io (m, IO_TRIM, 0, NULL, BLOCK), ENXIO);
    }
  for (unsigned mi = 0; mi < NR_MEMBERS; ++mi) {
    member_close (members[mi]);
    members[mi] = open_member (mi);
    assert_non_null (members[mi]);
    assert_int_equal (truncate (members[mi]->path, SIZE - 4 * BLOCK), 0);
    assert_int_equal (run_io (members[mi], IO_FLUSH, 0, NULL, 0), ENXIO);
    member_close (members[mi]);
    members[mi] = open_member (mi);
    assert_non_null (members[mi]);
  }
}

/* Containers forbid io_uring like this. */
static int
forbidden (void)
{
  struct sock_filter code[] = {
    BPF_STMT (BPF_LD | BPF_W | BPF_ABS, offsetof (struct seccomp_data, nr)),
    BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
    BPF_STMT (BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    BPF_STMT (BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog prog = { ARRAY_LEN (code), code };

  if (prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1 ||
      prctl (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) == -1)
    return 77;
  if (loop_uring_works ())
    return 1;
  errno = 0;
  return loop_uring_new () != NULL || errno != EPERM;
}

static void
test_forbidden (void **state)
{
  int status;
  pid_t pid = fork ();

  if (pid == 0)
    _exit (forbidden ());
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_true (WIFEXITED (status));
  if (WEXITSTATUS (status) == 77)
    print_message ("no seccomp here\n");
  else
    assert_int_equal (WEXITSTATUS (status), 0);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_refused),
    cmocka_unit_test (test_truncated),
  };
  const struct CMUnitTest none[] = {
    cmocka_unit_test (test_forbidden),
  };
  int failed = run_on_both (tests);

  failed += cmocka_run_group_tests_name ("forbidden", none, NULL, NULL);
  return failed != 0;
}
