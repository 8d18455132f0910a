/* gpuraid: kernels tuned in several ways, compiled together and tried one
 * after the other on the same cells, on the fake driver.
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

#include "bench/gpu.h"
#include "bench/method-kernel.h"
#include "bench/variants.h"
#include "tests/fake-cuda.h"

static struct variants all;
static unsigned last_done;

static void
note_done (void *opaque, unsigned done)
{
  assert_int_equal (done, last_done + 1);
  last_done = done;
}

static struct variant *
add (const char *text)
{
  struct kernel_tuning t;
  char why[BENCH_WHY_LEN];

  if (tuning_parse (text, &t, why) == -1)
    fail_msg ("%s", why);
  return variants_add (&all, &t);
}

static struct run *
start (enum code code, unsigned m)
{
  const struct run_request q = {
    .ops = &method_kernel_any, .code = code, .k = 4, .m = m,
    .cell_len = 4096, .nr_rects = 3, .seed = 1,
  };
  char why[BENCH_WHY_LEN];
  struct run *run = run_open (&q, why);

  if (run == NULL)
    fail_msg ("%s", why);
  return run;
}

static void
compile (struct run *run, unsigned first)
{
  char why[BENCH_WHY_LEN];

  last_done = 0;
  variants_compile (&all, first, run->matrix, bench_gpu_get (why)->arch, 2,
                    note_done, NULL);
  assert_int_equal (last_done, all.nr - first);
}

static int
try (struct run *run, struct variant *v)
{
  if (v->code == NULL ||
      kernel_method_use (run->method, &v->shape, v->code, &v->nr_registers,
                         &v->local_len, v->why) == -1)
    fail_msg ("%s: %s", v->name, v->why);
  assert_true (v->nr_registers > 0);
  return run_verify (run, METRIC_RAW, 0, v->why);
}

static void
test_add (void **state)
{
  struct variant *v = add ("8x64-g2");

  assert_int_equal (all.nr, 1);
  assert_ptr_equal (add ("8x64-g2"), v);
  assert_int_equal (all.nr, 1);
  assert_ptr_not_equal (add ("8x64-g3"), v);
  assert_int_equal (all.nr, 2);
  variants_close (&all);
}

static void
test_all_right (void **state)
{
  struct run *run = start (CODE_RS, 2);

  add ("8x64-g2");
  add ("16x32-min2-signed-even-mul3");
  compile (run, 0);
  add ("4x256-g4-odd");
  compile (run, 2);
  for (unsigned i = 0; i < all.nr; i++)
    if (try (run, &all.v[i]) == -1)
      fail_msg ("%s: %s", all.v[i].name, all.v[i].why);
  variants_close (&all);
  run_close (run);
}

/* One that leaves out half of each cell, after one that was right. */
static void
test_wrong (void **state)
{
  struct run *run = start (CODE_RS, 2);
  struct variant *right = add ("8x64-g2"), *wrong = add ("16x64");

  compile (run, 0);
  assert_int_equal (try (run, right), 0);
  wrong->shape.bytes *= 2;
  assert_int_equal (try (run, wrong), -1);
  assert_non_null (strstr (wrong->why, "is 5a"));
  assert_int_equal (try (run, right), 0);
  variants_close (&all);
  run_close (run);
}

/* The others are compiled. */
static void
test_can_not_be_had (void **state)
{
  struct run *run = start (CODE_CRS, 2);
  struct variant *no = add ("8x64-g2"), *yes = add ("8x64-min2");

  compile (run, 0);
  assert_null (no->code);
  assert_non_null (strstr (no->why, "packets"));
  assert_int_equal (try (run, yes), 0);
  variants_close (&all);
  run_close (run);
}

/* A row of ones has no doublings. */
static void
test_same_text (void **state)
{
  struct run *run = start (CODE_RS, 1);
  struct variant *one = add ("8x64"), *same = add ("8x64-mul7");
  struct variant *other = add ("8x64-min2");

  compile (run, 0);
  assert_null (same->code);
  assert_string_equal (same->why, "the same text as 8x64");
  assert_int_equal (try (run, one), 0);
  assert_int_equal (try (run, other), 0);
  variants_close (&all);
  run_close (run);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_add),
    cmocka_unit_test (test_all_right),
    cmocka_unit_test (test_wrong),
    cmocka_unit_test (test_can_not_be_had),
    cmocka_unit_test (test_same_text),
  };

  use_fake_cuda ();
  return cmocka_run_group_tests (tests, NULL, NULL);
}
