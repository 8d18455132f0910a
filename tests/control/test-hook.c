/* gpuraid: the program that is run for events: what it gets, and one that
 * hangs, fails, or is not there.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/bits.h"
#include "common/log.h"
#include "control/hook.h"

#define HANG_MS 120000          /* without anything: a test fails */

static char dir[64], program[96], out[96];
static const uuid_bytes uuid = { { 0xf0, 0xf1 } };

/* ---- messages ------------------------------------------------------------ */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char said[4096];

static void
hear (enum log_level level, const char *fmt, va_list args)
{
  size_t len;

  if (level == LOG_LEVEL_DEBUG)
    return;
  pthread_mutex_lock (&lock);
  len = strlen (said);
  vsnprintf (said + len, sizeof said - len, fmt, args);
  strncat (said, "\n", sizeof said - strlen (said) - 1);
  pthread_mutex_unlock (&lock);
}

static unsigned
times_said (const char *part)
{
  unsigned nr = 0;

  pthread_mutex_lock (&lock);
  for (const char *p = said; (p = strstr (p, part)) != NULL; p++)
    nr++;
  pthread_mutex_unlock (&lock);
  return nr;
}

/* ---- the program --------------------------------------------------------- */

static void
write_program (const char *text)
{
  FILE *fp = fopen (program, "w");

  assert_non_null (fp);
  fprintf (fp, "#!/bin/sh\n%s\n", text);
  assert_int_equal (fchmod (fileno (fp), 0700), 0);
  assert_int_equal (fclose (fp), 0);
}

static char *
read_out (void)
{
  static char text[65536];
  FILE *fp = fopen (out, "r");
  size_t n = 0;

  if (fp) {
    n = fread (text, 1, sizeof text - 1, fp);
    fclose (fp);
  }
  text[n] = '\0';
  return text;
}

static unsigned
nr_lines (void)
{
  unsigned nr = 0;

  for (const char *p = read_out (); *p; p++)
    nr += *p == '\n';
  return nr;
}

static uint64_t
now_ms (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void
wait_lines (unsigned nr)
{
  const uint64_t end = now_ms () + HANG_MS;

  while (nr_lines () < nr) {
    if (now_ms () > end)
      fail_msg ("%u lines, not %u: %s%s", nr_lines (), nr, read_out (), said);
    usleep (2000);
  }
}

static int
setup (void **state)
{
  hook_run_ms = hook_stop_ms = HANG_MS;
  said[0] = '\0';
  unlink (out);
  assert_int_equal (setenv ("OUT", out, 1), 0);
  return 0;
}

static struct hook *
start (const char *label)
{
  struct hook *h = hook_start (program, label, &uuid);

  assert_non_null (h);
  return h;
}

static void
member_failed (struct hook *h, unsigned slot)
{
  struct array_event e = {
    .kind = ARRAY_EVENT_MEMBER_FAILED, .state = ARRAY_DEGRADED,
    .reasons = ARRAY_WHY_MEMBERS,
    .member = { .slot = slot, .path = (char *) "/d/\"1\"\n",
                .state = ENTRY_FAILED, .errors = 3,
                .last_error = { .error = EIO, .operation = "write",
                                .has_off = true, .off = 7 } },
  };

  hook_event (h, &e);
}

/* ---- tests --------------------------------------------------------------- */

static void
test_event (void **state)
{
  struct hook *h;

  write_program ("echo \"$# $1 $2\" >>$OUT; cat >>$OUT");
  h = start ("home");
  member_failed (h, 1);
  wait_lines (2);
  hook_stop (h);
  assert_ptr_equal (strstr (read_out (), "2 member-failed home\n"
                            "{\"event\":\"member-failed\",\"array\":\"home\","
                            "\"time\":"), read_out ());
  assert_non_null (strstr (read_out (), "\"state\":\"degraded\",\"reasons\":"
                           "[\"members lost\"],\"member\":{\"slot\":1,"
                           "\"path\":\"\\/d\\/\\\"1\\\"\\n\"") ?:
                   strstr (read_out (), "\"state\":\"degraded\",\"reasons\":"
                           "[\"members lost\"],\"member\":{\"slot\":1,"
                           "\"path\":\"/d/\\\"1\\\"\\n\""));
  assert_non_null (strstr (read_out (), "\"last_error\":{\"errno\":5,"));
  assert_string_equal (said, "");
}

/* Without a label; of no member; with a number. */
static void
test_names (void **state)
{
  static const char *const name[] = {
    "member-failed", "degraded", "array-failed", "spare-used", "rebuilt",
    "corruption", "no-space", "stalled", "change-failed",
  };
  struct array_event e = { .member.slot = SLOT_NONE, .number = 12 };
  struct hook *h;

  write_program ("echo \"$1 $2\" >>$OUT; cat >>$OUT");
  h = start ("");
  for (unsigned i = 0; i < ARRAY_LEN (name); i++) {
    e.kind = i;
    hook_event (h, &e);
  }
  hook_stop (h);                        /* it runs for those that wait */
  assert_int_equal (nr_lines (), 2 * ARRAY_LEN (name));
  for (unsigned i = 0; i < ARRAY_LEN (name); i++) {
    char want[100];

    snprintf (want, sizeof want,
              "%s f0f10000-0000-0000-0000-000000000000\n{", name[i]);
    assert_non_null (strstr (read_out (), want));
  }
  assert_non_null (strstr (read_out (), "\"member\":null,\"number\":12,"
                           "\"message\":null}"));
  assert_non_null (strstr (read_out (), "\"member\":null,\"number\":null,"
                           "\"message\":null}"));
}

/* How a change failed is told. */
static void
test_message (void **state)
{
  struct array_event e = {
    .kind = ARRAY_EVENT_CHANGE_FAILED, .message = "slot 1: \"x\": not rebuilt",
    .member.slot = SLOT_NONE,
  };
  struct hook *h;

  write_program ("cat >>$OUT");
  h = start ("x");
  hook_event (h, &e);
  hook_stop (h);
  assert_non_null (strstr (read_out (), "\"number\":null,\"message\":"
                           "\"slot 1: \\\"x\\\": not rebuilt\"}\n"));
}

/* It has three files, and no signal is blocked or ignored. */
static void
test_clean (void **state)
{
  const int leak = open ("/dev/null", O_RDONLY);        /* without O_CLOEXEC */
  sigset_t all, old;
  const char *ignored;
  struct hook *h;

  write_program ("(ls /proc/$$/fd | tr '\\n' ' '; echo;"
                 "grep -E 'Sig(Blk|Ign)' /proc/$$/status) >$OUT");
  sigfillset (&all);
  pthread_sigmask (SIG_SETMASK, &all, &old);
  signal (SIGPIPE, SIG_IGN);
  h = start ("x");
  member_failed (h, 1);
  wait_lines (3);
  hook_stop (h);
  pthread_sigmask (SIG_SETMASK, &old, NULL);
  close (leak);
  /* The shell has its script open, as 10 or so. */
  assert_ptr_equal (strstr (read_out (), "0 1 10 2 \n") ?:
                    strstr (read_out (), "0 1 2 "), read_out ());
  assert_null (strstr (read_out (), " 3 "));
  assert_non_null (strstr (read_out (), "SigBlk:\t0000000000000000\n"));
  /* glibc ignores its own two, 32 and 33. */
  ignored = strstr (read_out (), "SigIgn:");
  assert_non_null (ignored);
  assert_int_equal (strtoull (ignored + 7, NULL, 16) & ~UINT64_C (0x180000000),
                    0);
}

/* A dead one waits for its new parent. */
static bool
is_alive (int pid)
{
  char path[40], state_of = 'Z';
  FILE *fp;

  snprintf (path, sizeof path, "/proc/%d/stat", pid);
  fp = fopen (path, "r");
  if (fp == NULL)
    return false;
  if (fscanf (fp, "%*d %*s %c", &state_of) != 1)
    state_of = 'Z';
  fclose (fp);
  return state_of != 'Z';
}

/* It is killed with all that it has started, and the next event is told. */
static void
test_hangs (void **state)
{
  uint64_t before;
  struct hook *h;
  int child;

  write_program ("[ ! -e $OUT ] || { echo second >>$OUT; exit; }\n"
                 "sleep 1000 & echo $! >$OUT; wait");
  h = start ("x");
  before = now_ms ();
  member_failed (h, 1);
  member_failed (h, 2);
  wait_lines (1);
  /* Nothing waited for it; now it may be killed. */
  assert_int_equal (nr_lines (), 1);
  child = atoi (read_out ());
  assert_true (child > 1 && is_alive (child));
  hook_run_ms = 400;
  wait_lines (2);
  assert_true (now_ms () - before >= 390);
  hook_stop (h);
  assert_int_equal (times_said ("takes too long and is killed"), 1);
  for (before = now_ms (); is_alive (child); usleep (1000))
    assert_true (now_ms () - before < HANG_MS);
}

/* The oldest that wait are dropped, with one line, while the first one runs. */
static void
test_too_many (void **state)
{
  char go[120];
  struct hook *h;
  int fd;

  write_program ("echo >>$OUT; while [ ! -e $OUT.go ]; do sleep 0.02; done;"
                 "cat >>$OUT");
  h = start ("x");
  member_failed (h, 0);
  wait_lines (1);
  for (unsigned i = 1; i <= HOOK_MAX_QUEUED + 50; i++)
    member_failed (h, i);
  assert_int_equal (times_said ("does not keep up"), 1);
  snprintf (go, sizeof go, "%s.go", out);
  fd = open (go, O_CREAT|O_WRONLY|O_CLOEXEC, 0600);
  assert_true (fd != -1);
  close (fd);
  wait_lines (2 * (HOOK_MAX_QUEUED + 1));
  hook_stop (h);
  unlink (go);
  assert_int_equal (nr_lines (), 2 * (HOOK_MAX_QUEUED + 1));
  for (unsigned i = 0; i <= HOOK_MAX_QUEUED + 50; i++) {
    char slot[20];

    snprintf (slot, sizeof slot, "{\"slot\":%u,", i);
    assert_int_equal (strstr (read_out (), slot) != NULL, i == 0 || i > 50);
  }
  assert_int_equal (times_said ("\n"), 1);
}

/* The server ends, whatever it does. */
static void
test_stop (void **state)
{
  uint64_t before;
  struct hook *h;

  write_program ("echo >>$OUT; exec sleep 1000");
  hook_stop_ms = 200;
  h = start ("x");
  member_failed (h, 1);
  member_failed (h, 2);
  member_failed (h, 3);
  wait_lines (1);
  before = now_ms ();
  hook_stop (h);
  assert_true (now_ms () - before >= 150);
  assert_int_equal (nr_lines (), 1);
}

static void
test_fails (void **state)
{
  struct hook *h;

  write_program ("exit 3");
  h = start ("x");
  member_failed (h, 1);
  hook_stop (h);
  assert_int_equal (times_said ("exit status was 3"), 1);
  /* It has gone since the start. */
  h = start ("x");
  unlink (program);
  member_failed (h, 1);
  hook_stop (h);
  assert_int_equal (times_said ("No such file"), 1);
  hook_stop (NULL);
}

#define NO_PROGRAM "not a program that can be run (chmod +x makes a file one)\n"

static void
test_check (void **state)
{
  write_program ("");
  assert_int_equal (hook_check (program), 0);
  assert_string_equal (said, "");
  assert_int_equal (chmod (program, 0600), 0);
  assert_int_equal (hook_check (program), -1);
  assert_int_equal (times_said (NO_PROGRAM), 1);
  assert_int_equal (hook_check (dir), -1);
  assert_int_equal (times_said (NO_PROGRAM), 2);
  assert_int_equal (hook_check ("/nosuch"), -1);
  assert_int_equal (times_said ("hook=/nosuch: No such file"), 1);
  assert_int_equal (times_said ("\n"), 3);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup (test_event, setup),
    cmocka_unit_test_setup (test_names, setup),
    cmocka_unit_test_setup (test_message, setup),
    cmocka_unit_test_setup (test_clean, setup),
    cmocka_unit_test_setup (test_hangs, setup),
    cmocka_unit_test_setup (test_too_many, setup),
    cmocka_unit_test_setup (test_stop, setup),
    cmocka_unit_test_setup (test_fails, setup),
    cmocka_unit_test_setup (test_check, setup),
  };
  const char *tmp = getenv ("TMPDIR");
  int r;

  snprintf (dir, sizeof dir, "%s/gpuraid-XXXXXX", tmp ? tmp : "/tmp");
  if (mkdtemp (dir) == NULL) {
    perror ("mkdtemp");
    return 1;
  }
  snprintf (program, sizeof program, "%s/hook", dir);
  snprintf (out, sizeof out, "%s/out", dir);
  log_set_sink (hear);
  r = cmocka_run_group_tests (tests, NULL, NULL);
  unlink (program);
  unlink (out);
  rmdir (dir);
  return r;
}
