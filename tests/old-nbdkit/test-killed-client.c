/* gpuraid: which versions of nbdkit end when a client is killed, and how a
 * function of another program is made to return.
 *
 * run-tests: check=plain,address,thread
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "old-nbdkit/frames.h"
#include "old-nbdkit/killed-client.h"
#include "old-nbdkit/program.h"

static void
test_versions (void **state)
{
  static const char *ending[] = {
    "1.32.4", "1.32.5", "1.32.99", "1.33.0", "1.33.1", "1.33.11",
  };
  static const char *others[] = {
    "1.30.10", "1.31.15", "1.32.0", "1.32.3", "1.33.12", "1.34.0", "1.36.3",
    "1.42.3", "2.33.5", "1.33", "1.33.5-rc1", "1.33.5 ", "", "nbdkit 1.33.5",
  };

  for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
    assert_true (killed_client_ends (ending[i]));
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    assert_false (killed_client_ends (others[i]));
}

#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__

static bool
is_this (const char *version)
{
  return strcmp (version, "1.32.99") == 0;
}

static bool
is_no_version (const char *version)
{
  return false;
}

/* The program's own constants: see the Makefile for how it is linked.  The
 * address sanitizer does not let them be searched.
 */
static void
test_own_version (void **state)
{
  const char *version = program_version (is_this);

  assert_non_null (version);
  assert_string_equal (version, "1.32.99");
  assert_null (program_version (is_no_version));
}

/* As the function that sends, and the one that it calls when it fails. */
static __attribute__ ((noinline)) void
failed (int value)
{
  if (value < 0)
    frames_return_error (__builtin_return_address (0));
}

static __attribute__ ((noinline)) int
send_value (int value)
{
  volatile int sent = value * 2;

  failed (value);
  return sent;
}

/* It has values in every register that survives a call. */
static __attribute__ ((noinline)) long
send_values (const int *values, size_t nr)
{
  long a = nr, b = 2 * a, c = 3 * a, d = 5 * a, e = 7 * a, sum = 0;

  for (size_t i = 0; i < nr; i++) {
    sum += send_value (values[i]);
    a++; b += a; c += b; d += c; e += d;
  }
  return sum * 1000000 + a + b + c + d + e;
}

static void
test_return (void **state)
{
  static const int good[] = { 1, 2, 3, 4 }, some[] = { 1, -2, -3, 4 };

  if (!frames_known ())
    skip ();
  assert_int_equal (send_value (7), 14);
  assert_int_equal (send_value (-7), -1);
  /* 2 and 3 gave 10; now they give -2. */
  assert_int_equal (send_values (good, 4) - send_values (some, 4),
                    12 * 1000000);
}

#endif

/* No such call is on the stack: it comes back. */
static void
test_no_such_call (void **state)
{
  frames_return_error (test_no_such_call);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_versions),
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
    cmocka_unit_test (test_own_version),
    cmocka_unit_test (test_return),     /* they follow calls and returns */
#endif
    cmocka_unit_test (test_no_such_call),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
