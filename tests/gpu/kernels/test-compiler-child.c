/* gpuraid: the process that compiles kernels: it shares no file with the
 * server, a wrong answer is refused in one line, and when it hangs it is
 * killed.
 *
 * The child is this program, or a shell that does something else.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/bits.h"
#include "gpu/compiler/child.h"
#include "gpu/compiler/compiler.h"
#include "tests/gpu/cuda-coder.h"
#include "tests/gpu/fake-cuda.h"

#define SOURCE "extern \"C\" __global__ void f (int *p) { *p = 1; }"

static const char *self[] = { "/proc/self/exe", NULL };

/* A child that is this script. */
static void
use_script (const char *script)
{
  static const char *argv[] = { "/bin/sh", "-c", NULL, NULL };

  argv[2] = script;
  compiler_use_child (argv);
}

static int
run (void **code, size_t *len)
{
  static const char *const options[] = { "-DX=1", NULL };

  return compiler_run (SOURCE, 90, options, code, len);
}

static void
test_compiles (void **state)
{
  void *code;
  size_t len;

  compiler_use_child (self);
  assert_int_equal (run (&code, &len), 0);
  assert_true (len > 1000);
  free (code);
  expect_messages (0);
  fake_cuda_set ("FAKE_NVRTC_FAIL", "1");
  assert_int_equal (run (&code, &len), -1);
  fake_cuda_set ("FAKE_NVRTC_FAIL", NULL);
  assert_null (code);
  assert_int_equal (nr_of ("failed (status"), 1);
  expect_messages (1);
}

/* Any other answer. */
static void
test_wrong_answers (void **state)
{
  static const struct {
    const char *script, *text;
  } cases[] = {
    { "cat >/dev/null; echo 'not what you think'",
      "19 bytes that are none of ours" },
    { "cat >/dev/null; echo short", "none of ours" },
    /* Something printed before the answer. */
    { "echo hello; exec \"$SELF\"", "none of ours" },
    { "exec \"$SELF\" | sed '1s/^gpuraidC/gpuraidD/'", "none of ours" },
    /* Truncated, and longer. */
    { "\"$SELF\" | head -c 1000", "960 bytes, not" },
    { "\"$SELF\"; echo", "bytes, not" },
    /* Another version, of the child and of the server. */
    { "\"$SELF\" | sed '1s/0[.]1[.]0/9.9.9/'", "version 9.9.9 (1), not" },
    { "sed '1s/0[.]1[.]0/9.9.9/' | \"$SELF\"", "failed (status" },
    { "head -c 60 | \"$SELF\"", "failed (status" },
    { "cat >/dev/null", "failed (status" },
    { "exit 3", "failed (status 0x300)" },
    { "kill -9 $$", "failed (status 0x9)" },
  };
  void *code;
  size_t len;

  for (size_t i = 0; i < ARRAY_LEN (cases); i++) {
    reset (NULL);
    use_script (cases[i].script);
    if (run (&code, &len) == 0)
      fail_msg ("%s: taken for code", cases[i].script);
    assert_null (code);
    if (nr_of (cases[i].text) != 1)
      print_message ("%s: not '%s'\n", cases[i].script, cases[i].text);
    expect_messages (nr_of (cases[i].text));
    expect_messages (1);
  }
}

/* A file that is open without O_CLOEXEC, as libraries have them. */
static void
test_files (void **state)
{
  char path[64], script[200], file[80], text[200] = "";
  int fd = open ("/dev/null", O_RDONLY);
  void *code;
  size_t len;
  FILE *f;

  own_dir (path);
  assert_true (fd > 2);
  snprintf (file, sizeof file, "%s/fds", path);
  snprintf (script, sizeof script,
            "for i in 3 4 5 6 7 8 9; do [ ! -e /proc/$$/fd/$i ] || "
            "readlink /proc/$$/fd/$i; done >%s", file);
  use_script (script);
  assert_int_equal (run (&code, &len), -1);
  close (fd);
  f = fopen (file, "r");
  assert_non_null (f);
  len = fread (text, 1, sizeof text - 1, f);
  fclose (f);
  if (len > 0)
    fail_msg ("the child has %s", text);
  remove_dir (path);
}

/* ---- one that does not end ------------------------------------------- */

#define HANG_S 120              /* without anything: a test fails */

/* Scripts make this file when they run, and are killed then. */
static char runs[80], runs_dir[64];

static int
own_runs (void **state)
{
  own_dir (runs_dir);
  snprintf (runs, sizeof runs, "%s/runs", runs_dir);
  setenv ("RUNS", runs, 1);
  return reset (state);
}

static int
remove_runs (void **state)
{
  remove_dir (runs_dir);
  return 0;
}

static bool
does_run (void)
{
  for (unsigned i = 0; i < HANG_S * 1000; i++) {
    if (access (runs, F_OK) == 0)
      return true;
    usleep (1000);
  }
  return false;
}

static void *
kill_it (void *arg)
{
  if (does_run ())
    compiler_child_kill ();
  return NULL;
}

/* One that reads nothing, one that answers nothing, and one whose child has
 * the pipe.
 */
static void
test_killed (void **state)
{
  static const char *const scripts[] = {
    "touch $RUNS; exec sleep 1000",
    "cat >/dev/null; touch $RUNS; exec sleep 1000",
    "touch $RUNS; sleep 1000; true",
  };
  char *large = malloc (1 << 20);
  pthread_t thread;
  void *code;
  size_t len;

  assert_non_null (large);
  memset (large, ' ', 1 << 20);
  large[(1 << 20) - 1] = '\0';
  for (size_t i = 0; i < ARRAY_LEN (scripts); i++) {
    reset (NULL);
    use_script (scripts[i]);
    unlink (runs);
    assert_int_equal (pthread_create (&thread, NULL, kill_it, NULL), 0);
    alarm (2 * HANG_S);
    assert_int_equal (compiler_run (large, 90, NULL, &code, &len), -1);
    pthread_join (thread, NULL);
    assert_int_equal (nr_of ("it was killed"), 1);
    /* And no other. */
    assert_int_equal (run (&code, &len), -1);
    alarm (0);
    expect_messages (1);
    compiler_child_allow ();
  }
  free (large);
  compiler_use_child (self);
  reset (NULL);
  assert_int_equal (run (&code, &len), 0);
  free (code);
  expect_messages (0);
}

/* A coder that is stopped meanwhile. */
static void
test_stop (void **state)
{
  struct ref_random rnd = { seed };
  struct cuda_options options = plain_options ();
  struct matrix *a = random_matrix (&rnd, 2, 2);
  struct coder *c;

  compiler_use_child (self);
  coder_free (start_coder (&options));  /* has the generic kernels kept */
  options.encode = a;
  use_script ("cat >/dev/null; touch $RUNS; exec sleep 1000");
  c = start_coder (&options);
  assert_true (does_run ());
  alarm (HANG_S);
  coder_free (c);
  alarm (0);
  assert_int_equal (nr_of ("it was killed"), 1);
  expect_messages (1);
  matrix_free (a);
}

static int
start (void **state)
{
  signal (SIGPIPE, SIG_IGN);
  return start_tests (state);
}

int
main (void)
{
#define TEST(f) cmocka_unit_test_setup (f, reset)
#define TEST_RUNS(f) \
  cmocka_unit_test_setup_teardown (f, own_runs, remove_runs)
  const struct CMUnitTest tests[] = {
    TEST (test_compiles),
    TEST (test_wrong_answers),
    TEST (test_files),
    TEST_RUNS (test_killed),
    TEST_RUNS (test_stop),
  };
  char path[4096];
  ssize_t n;

  if (getenv (COMPILER_CHILD_ENV)) {
    use_fake_cuda ();
    compiler_child_main ();
  }
  n = readlink ("/proc/self/exe", path, sizeof path - 1);
  if (n == -1)
    return EXIT_FAILURE;
  path[n] = '\0';
  setenv ("SELF", path, 1);
  seed = ref_seed ();
  return cmocka_run_group_tests (tests, start, stop_tests);
}
