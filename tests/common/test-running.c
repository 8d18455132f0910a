/* gpuraid test: the time in which a process ran leaves out its pauses, and
 * nothing else.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/threads/running.h"

#define SECOND UINT64_C (1000000000)
#define START (5 * SECOND)

static void
begin (struct running *r)
{
  running_init (r);
  assert_int_equal (running_at (r, START), START);
  running_beat (r, START);
}

/* With its beats it is the clock below. */
static void
test_runs (void **state)
{
  struct running r;
  uint64_t raw = START;

  begin (&r);
  for (unsigned i = 0; i < 100; i++) {
    raw += RUNNING_BEAT_NS - 100 + i;
    assert_int_equal (running_at (&r, raw), raw);
    running_beat (&r, raw);
    assert_int_equal (running_at (&r, raw), raw);
  }
  assert_int_equal (r.paused, 0);
}

/* It stands until there is a beat, and goes on from there. */
static void
test_pauses (void **state)
{
  struct running r;
  uint64_t raw = START, now = START;

  begin (&r);
  for (unsigned i = 1; i < 100; i++) {
    const uint64_t pause = i * i * SECOND;

    now += RUNNING_MAY_NS;
    assert_int_equal (running_at (&r, raw + RUNNING_MAY_NS - 1), now - 1);
    assert_int_equal (running_at (&r, raw + RUNNING_MAY_NS), now);
    raw += pause;
    assert_int_equal (running_at (&r, raw), now);
    running_beat (&r, raw);
    assert_int_equal (running_at (&r, raw), now);
    assert_int_equal (r.paused, now);
    assert_int_equal (running_at (&r, raw + 1), now + 1);
  }
}

/* A beat that is not too late changes nothing. */
static void
test_late_beat (void **state)
{
  struct running r;

  begin (&r);
  running_beat (&r, START + RUNNING_MAY_NS);
  assert_int_equal (r.paused, 0);
  assert_int_equal (running_at (&r, START + RUNNING_MAY_NS + 7),
                    START + RUNNING_MAY_NS + 7);
}

/* Without beats it never stands. */
static void
test_no_beats (void **state)
{
  struct running r;

  running_init (&r);
  assert_int_equal (running_at (&r, 1000000 * SECOND), 1000000 * SECOND);
}

/* ---- that of a process --------------------------------------------------- */

static uint64_t
clock_now (void)
{
  struct timespec ts;

  clock_gettime (CLOCK_MONOTONIC, &ts);
  return ts.tv_sec * SECOND + ts.tv_nsec;
}

static void
sleep_ns (uint64_t ns)
{
  const struct timespec ts = { ns / SECOND, ns % SECOND };

  nanosleep (&ts, NULL);
}

/* In the child: 0, or what is wrong. */
static int
be_stopped (int to, int from)
{
  uint64_t now, out;
  char c;

  if (running_start () != 0 || running_start () != 0)
    return 1;
  running_stop ();
  now = running_now ();
  /* Until it was stopped, and goes on. */
  if (write (to, "x", 1) != 1 || read (from, &c, 1) != 1)
    return 2;
  out = clock_now () - running_now ();
  if (running_now () < now)
    return 3;
  if (running_paused () < now || running_paused () > running_now ())
    return 4;
  if (out < 3 * SECOND - RUNNING_MAY_NS)
    return 5;
  if (running_wake (running_now ()) < clock_now () - SECOND)
    return 6;
  running_stop ();
  /* As before: it goes on. */
  now = running_now ();
  sleep_ns (SECOND);
  if (running_now () < now + SECOND)
    return 7;
  return 0;
}

static void
test_stopped (void **state)
{
  int up[2], down[2], status;
  pid_t pid;
  char c;

  assert_int_equal (pipe (up), 0);
  assert_int_equal (pipe (down), 0);
  pid = fork ();
  assert_true (pid >= 0);
  if (pid == 0)
    _exit (be_stopped (up[1], down[0]));
  assert_int_equal (read (up[0], &c, 1), 1);
  kill (pid, SIGSTOP);
  assert_int_equal (waitpid (pid, &status, WUNTRACED), pid);
  assert_true (WIFSTOPPED (status));
  sleep_ns (3 * SECOND);
  assert_int_equal (write (down[1], "x", 1), 1);
  kill (pid, SIGCONT);
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_true (WIFEXITED (status));
  assert_int_equal (WEXITSTATUS (status), 0);
  for (unsigned i = 0; i < 2; i++) {
    close (up[i]);
    close (down[i]);
  }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_runs),
    cmocka_unit_test (test_pauses),
    cmocka_unit_test (test_late_beat),
    cmocka_unit_test (test_no_beats),
    cmocka_unit_test (test_stopped),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
