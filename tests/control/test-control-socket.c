/* gpuraid: the control socket's path: what is found there when a server
 * starts, and what is left when it ends.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/control/control-fake.h"

static void
test_mode (void **state)
{
  mode_t old = umask (0);
  struct control *c = control_bind (control_path);
  struct stat st;

  umask (old);
  assert_non_null (c);
  assert_int_equal (stat (control_path, &st), 0);
  assert_true (S_ISSOCK (st.st_mode));
  assert_int_equal (st.st_mode & 07777, 0600);
  control_stop (c);             /* never started */
  assert_int_equal (access (control_path, F_OK), -1);
  control_stop (NULL);
}

static void
test_live_refused (void **state)
{
  struct control *c = start_control ();

  assert_null (control_bind (control_path));
  assert_error ("another server uses that socket");
  assert_ok ("{\"command\":\"status\"}");
  control_stop (c);

  /* One that is bound and not started yet is alive as well. */
  c = control_bind (control_path);
  assert_null (control_bind (control_path));
  assert_error ("another server uses that socket");
  control_stop (c);
}

static void
test_dead_replaced (void **state)
{
  struct sockaddr_un addr = { .sun_family = AF_UNIX };
  int fd = socket (AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0);
  struct control *c;

  strcpy (addr.sun_path, control_path);
  assert_int_equal (bind (fd, (struct sockaddr *) &addr, sizeof addr), 0);
  close (fd);
  assert_int_equal (access (control_path, F_OK), 0);
  c = start_control ();
  assert_ok ("{\"command\":\"status\"}");
  control_stop (c);
  assert_int_equal (control_errors, 0);
}

static void
test_other_things_refused (void **state)
{
  char long_path[200];
  struct stat st;
  int fd = open (control_path, O_CREAT|O_WRONLY|O_CLOEXEC, 0644);

  assert_int_equal (write (fd, "precious", 8), 8);
  close (fd);
  assert_null (control_bind (control_path));
  assert_error ("no socket");
  assert_int_equal (stat (control_path, &st), 0);
  assert_int_equal (st.st_size, 8);
  unlink (control_path);

  assert_null (control_bind (control_dir));
  assert_error ("no socket");
  assert_null (control_bind ("/nonexistent/control.sock"));
  assert_error ("/nonexistent/control.sock");
  memset (long_path, 'a', sizeof long_path - 1);
  long_path[0] = '/';
  long_path[sizeof long_path - 1] = '\0';
  assert_null (control_bind (long_path));
  assert_error ("at most 107 bytes");
}

/* The file of a server that took our place is not ours to remove. */
static void
test_not_ours (void **state)
{
  struct control *first = start_control (), *second;

  unlink (control_path);
  second = start_control ();
  control_stop (first);
  assert_ok ("{\"command\":\"status\"}");
  control_stop (second);
  assert_int_equal (access (control_path, F_OK), -1);
}

int
main (void)
{
#define TEST(f) cmocka_unit_test_setup (f, reset_fake)
  const struct CMUnitTest tests[] = {
    TEST (test_mode),
    TEST (test_live_refused),
    TEST (test_dead_replaced),
    TEST (test_other_things_refused),
    TEST (test_not_ours),
  };

  return cmocka_run_group_tests (tests, make_control_dir,
                                 remove_control_dir);
}
