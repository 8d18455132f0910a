/* gpuraid: a scope's place at a shutdown, from lists of units of any length.
 *
 * A systemctl and a systemd-run of its own, in PATH, give the lists and keep
 * the options.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

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

#include "attach/ask/scope.h"
#include "attach/request.h"

static char dir[] = "/tmp/gpuraid-scope-XXXXXX";

static void
make_program (const char *name, const char *text)
{
  char path[64];
  FILE *fp;

  snprintf (path, sizeof path, "%s/%s", dir, name);
  fp = fopen (path, "w");
  assert_non_null (fp);
  fprintf (fp, "#!/bin/sh\n%s\n", text);
  assert_int_equal (fclose (fp), 0);
  assert_int_equal (chmod (path, 0755), 0);
}

static int
setup (void **state)
{
  char path[4096];

  assert_non_null (mkdtemp (dir));
  snprintf (path, sizeof path, "%s:%s", dir, getenv ("PATH"));
  assert_int_equal (setenv ("PATH", path, 1), 0);
  assert_int_equal (chdir (dir), 0);
  make_program ("systemd-run", "printf '%s\\n' \"$@\" >options");
  return 0;
}

static int
teardown (void **state)
{
  char command[64];

  snprintf (command, sizeof command, "rm -rf %s", dir);
  return system (command);
}

/* With nr others in each list before what counts. */
static bool
is_before_network (unsigned nr, const char *after)
{
  static const struct attach_request r = {
    .uri = "nbd+unix:///?socket=/run/gpuraid/tank.sock",
  };
  char *command[] = { (char *) "true", NULL }, text[512];
  int status;
  pid_t pid;

  snprintf (text, sizeof text,
            "p=b last=mnt-nas.mount\n"
            "case $* in *After*) p=a last=%s;; esac\n"
            "i=0; while [ $i -lt %u ]; do printf \"$p-$i.mount \"; "
            "i=$((i + 1)); done\n"
            "echo $last", after, nr);
  make_program ("systemctl", text);
  pid = fork ();
  assert_true (pid >= 0);
  if (pid == 0) {
    scope_run (&r, command);
    _exit (1);
  }
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_int_equal (status, 0);
  assert_int_equal (system ("grep -q After=gpuraid@tank.service options"), 0);
  return system ("grep -q Before=remote-fs-pre.target options") == 0;
}

static void
test_lists (void **state)
{
  for (unsigned nr = 0; nr <= 10000; nr += 5000) {
    assert_false (is_before_network (nr, "mnt-nas.mount"));
    assert_true (is_before_network (nr, "basic.target"));
  }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_lists),
  };

  return cmocka_run_group_tests (tests, setup, teardown);
}
