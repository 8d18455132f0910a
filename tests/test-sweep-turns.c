/* gpuraid: cases that are measured in turn: the order, which belong together,
 * and those that fail.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "bench/ceilings.h"
#include "bench/methods.h"
#include "bench/sweep.h"

/* The calls of each method: a letter for each, repeated ones once. */
static char calls[4000];
static unsigned nr_calls;

static void
note (char c)
{
  const size_t len = strlen (calls);

  nr_calls++;
  if (len == 0 || calls[len - 1] != c) {
    assert_true (len + 2 < sizeof calls);
    calls[len] = c;
    calls[len + 1] = '\0';
  }
}

/* The method isal under other names. */
static struct method_ops a, b, fails, breaks;

static struct method *
open_as (const struct method_ops *ops, const struct bench_case *bc, char *why)
{
  struct method *e = method_isal.open (bc, why);

  if (e)
    e->ops = ops;
  return e;
}

static struct method *
open_a (const struct bench_case *bc, char *why)
{
  return open_as (&a, bc, why);
}

static struct method *
open_b (const struct bench_case *bc, char *why)
{
  return open_as (&b, bc, why);
}

static struct method *
open_breaks (const struct bench_case *bc, char *why)
{
  return open_as (&breaks, bc, why);
}

static struct method *
open_fails (const struct bench_case *bc, char *why)
{
  snprintf (why, BENCH_WHY_LEN, "as asked");
  return NULL;
}

static int
raw_a (struct method *e, unsigned nr, double *seconds, char *why)
{
  note ('a');
  return method_isal.raw (e, nr, seconds, why);
}

static int
raw_b (struct method *e, unsigned nr, double *seconds, char *why)
{
  note ('b');
  return method_isal.raw (e, nr, seconds, why);
}

/* Not at the first calls: those that prove its bytes, and begin. */
static int
raw_breaks (struct method *e, unsigned nr, double *seconds, char *why)
{
  static unsigned n;

  note ('x');
  if (++n <= 3)
    return method_isal.raw (e, nr, seconds, why);
  snprintf (why, BENCH_WHY_LEN, "broken");
  return -1;
}

static struct sweep s;
static struct report report;
static FILE *null;

static int
begin (void **state)
{
  a = b = fails = breaks = method_isal;
  a.name = "a";
  a.open = open_a;
  a.raw = raw_a;
  b.name = "b";
  b.open = open_b;
  b.raw = raw_b;
  fails.name = "fails";
  fails.open = open_fails;
  breaks.name = "breaks";
  breaks.open = open_breaks;
  breaks.raw = raw_breaks;

  s = (struct sweep) {
    .choice = { { .ops = &a }, { .ops = &b } }, .nr_choices = 2,
    .pairs = "4+2", .m = { .nr = 1, .v = { 2 } }, .w = { .nr = 1 },
    .cell = { .nr = 1, .v = { 4096 } }, .batch = { .nr = 1, .v = { 2 } },
    .threads = { .nr = 1, .v = { 1 } }, .slices = { .nr = 1 },
    .raw = true, .overall = true, .nr_losses = 1,
    .effort = { .samples = 3, .seconds = 0 }, .in_turn = true, .seed = 1,
  };
  /* What memory could do is not the point. */
  ceilings_set (1 << 20, 1);
  calls[0] = '\0';
  nr_calls = 0;
  null = fopen ("/dev/null", "w");
  assert_non_null (null);
  return report_begin (&report, null, false, REPORT_RATES);
}

static int
end (void **state)
{
  report_free (&report);
  return fclose (null);
}

static void
expect_row (size_t i, const char *method, const char *op)
{
  assert_in_range (i, 0, report.nr_rows - 1);
  assert_string_equal (report.rows[i].method, method);
  assert_string_equal (report.rows[i].op, op);
}

static void
test_samples (void **state)
{
  assert_int_equal (sweep_run (&s, &report), 0);
  /* Made ready one after the other, and then three turns. */
  assert_string_equal (calls, "abababab");
  assert_int_equal (report.nr_rows, 2);
  expect_row (0, "a", "encode");
  expect_row (1, "b", "encode");
  for (unsigned i = 0; i < 2; i++) {
    const struct row *r = &report.rows[i];

    assert_true (0 < r->low && r->low <= r->seconds && r->seconds <= r->high);
  }
}

static void
test_one_after_the_other (void **state)
{
  s.in_turn = false;
  assert_int_equal (sweep_run (&s, &report), 0);
  assert_string_equal (calls, "ab");
}

/* Some of a turn's first ones are not counted. */
static void
test_latencies (void **state)
{
  s.nr_latencies = 100;
  assert_int_equal (sweep_run (&s, &report), 0);
  assert_int_equal (strlen (calls), 2 + 2 * 20);
  assert_in_range (nr_calls, 2 * (100 + 20), 2 * (100 + 20 * 10));
  assert_true (0 < report.rows[1].p50 &&
               report.rows[1].p50 <= report.rows[1].p99);
}

/* Only what differs in the method alone. */
static void
test_alike (void **state)
{
  s.nr_losses = 2;
  s.lose[1] = (struct lose) { .loss = LOSS_RANDOM };
  s.threads = (struct values) { .nr = 2, .v = { 1, 2 } };
  assert_int_equal (sweep_run (&s, &report), 0);
  assert_int_equal (report.nr_rows, 8);
  for (unsigned i = 0; i < 8; i += 2) {
    const unsigned threads = i < 4 ? 1 : 2;
    const char *op = i % 4 == 0 ? "encode" : "decode 2";

    expect_row (i, "a", op);
    expect_row (i + 1, "b", op);
    assert_int_equal (report.rows[i].threads, threads);
    assert_int_equal (report.rows[i + 1].threads, threads);
  }
  assert_int_equal (strlen (calls), 4 * 8);
}

/* The others go on, and its row says why. */
static void
test_failures (void **state)
{
  s.choice[2] = s.choice[1];
  s.choice[0].ops = &fails;
  s.choice[1].ops = &breaks;
  s.nr_choices = 3;
  assert_int_equal (sweep_run (&s, &report), 0);
  assert_int_equal (report.nr_rows, 3);
  expect_row (0, "fails", "encode");
  assert_string_equal (report.rows[0].why, "as asked");
  expect_row (1, "breaks", "encode");
  assert_string_equal (report.rows[1].why, "broken");
  expect_row (2, "b", "encode");
  assert_string_equal (report.rows[2].why, "");
  assert_true (report.rows[2].seconds > 0);
  assert_string_equal (calls, "xbxb");
}

static void
test_verify_only (void **state)
{
  s.verify_only = true;
  assert_int_equal (sweep_run (&s, &report), 0);
  assert_int_equal (report.nr_rows, 2);
  assert_string_equal (calls, "ab");
  assert_int_equal (nr_calls, 2);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown (test_samples, begin, end),
    cmocka_unit_test_setup_teardown (test_one_after_the_other, begin, end),
    cmocka_unit_test_setup_teardown (test_latencies, begin, end),
    cmocka_unit_test_setup_teardown (test_alike, begin, end),
    cmocka_unit_test_setup_teardown (test_failures, begin, end),
    cmocka_unit_test_setup_teardown (test_verify_only, begin, end),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
