/* gpuraid-bench: tunings as text.
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

#include <cmocka.h>

#include "bench/tuning.h"
#include "common/bits.h"
#include "measure/method.h"

static void
check_same (const struct kernel_tuning *a, const struct kernel_tuning *b)
{
  assert_int_equal (a->bytes, b->bytes);
  assert_int_equal (a->block, b->block);
  assert_int_equal (a->min_blocks, b->min_blocks);
  assert_int_equal (a->signed_cells, b->signed_cells);
  assert_int_equal (a->group, b->group);
  assert_int_equal (a->share, b->share);
  assert_int_equal (a->multiply, b->multiply);
}

/* Every field from least to most, with every other. */
static void
test_round_trip (void **state)
{
  static const unsigned block[] = { 32, 96, 1024 }, min[] = { 0, 1, 32 };
  char name[TUNING_LEN], why[BENCH_WHY_LEN];
  struct kernel_tuning t, back;

  for (t.bytes = 4; t.bytes <= 16; t.bytes *= 2)
    for (unsigned i = 0; i < ARRAY_LEN (block) * ARRAY_LEN (min); i++)
      for (unsigned s = 0; s < 2; s++)
        for (t.group = 1; t.group <= 4; t.group++)
          for (t.share = KERNEL_SHARE_NONE; t.share <= KERNEL_SHARE_ODD;
               t.share++)
            for (t.multiply = 0; t.multiply <= 7; t.multiply++) {
              t.block = block[i % ARRAY_LEN (block)];
              t.min_blocks = min[i / ARRAY_LEN (block)];
              t.signed_cells = s;
              assert_true (strlen (tuning_print (&t, name)) < TUNING_LEN - 1);
              if (tuning_parse (name, &back, why) == -1)
                fail_msg ("%s", why);
              check_same (&t, &back);
            }
}

static void
test_text (void **state)
{
  static const struct kernel_tuning all = {
    .bytes = 8, .block = 128, .min_blocks = 4, .signed_cells = true,
    .group = 3, .share = KERNEL_SHARE_EVEN, .multiply = 2,
  };
  static const struct kernel_tuning plain = {
    .bytes = 16, .block = 64, .group = 1,
  };
  struct kernel_tuning t;
  char name[TUNING_LEN], why[BENCH_WHY_LEN];

  assert_string_equal (tuning_print (&all, name),
                       "8x128-min4-signed-g3-even-mul2");
  assert_string_equal (tuning_print (&plain, name), "16x64");
  /* In any order, and without defaults. */
  assert_int_equal (tuning_parse ("8x128-mul2-even-g3-signed-min4", &t, why),
                    0);
  check_same (&t, &all);
  assert_int_equal (tuning_parse ("16x64-g1", &t, why), 0);
  check_same (&t, &plain);
}

static void
test_refused (void **state)
{
  static const char *const bad[] = {
    "", "8", "x", "8x", "x128", "8x128x2", "8x0", "8x100", "8x1056",
    "8x00128", "2x128", "12x128", "32x128", "-8x128", " 8x128", "8x128 ",
    "8x128-", "8x128--g3", "8x128-g", "8x128-g0", "8x128-g5", "8x128-g03x",
    "8x128-min", "8x128-min0", "8x128-min33", "8x128-mul", "8x128-mul0",
    "8x128-mul8", "8x128-signe", "8x128-signedd", "8x128-evenodd",
    "8x128-even-odd", "8x128-g3-g3", "8x128-min4-min5", "8x128-signed-signed",
    "8x128-mul1-mul2", "8x128-EVEN", "8x128+g3", "8x4294967424",
    "8x128-g4294967297",
    "8x128-a-word-that-is-so-long-that-there-is-no-room-for-it-in-a-line-of-"
    "two-hundred-bytes-or-so-and-that-goes-on-and-on-until-it-is-longer-than-"
    "anything-that-anyone-would-ever-want-to-read-of-it-in-a-message-and-even-"
    "a-little-longer-than-that",
  };
  struct kernel_tuning t;
  char why[BENCH_WHY_LEN];

  for (size_t i = 0; i < ARRAY_LEN (bad); i++) {
    why[0] = '\0';
    if (tuning_parse (bad[i], &t, why) != -1)
      fail_msg ("%s is taken", bad[i]);
    assert_true (strlen (why) > 10);
    assert_null (strchr (why, '\n'));
    assert_true (strstr (why, "8x128") != NULL);
  }
}

static void
test_packets (void **state)
{
  static const char *const bad[] = {
    "16x64", "8x64-g2", "8x64-even", "4x64-mul1",
  };
  uint8_t coef[8];
  struct matrix *a;
  struct kernel_tuning t;
  char why[BENCH_WHY_LEN];

  matrix_crs_parity (4, 2, 4, coef);
  a = matrix_new_packets (4, 1024, 2, 4, coef);
  for (size_t i = 0; i < ARRAY_LEN (bad); i++) {
    assert_int_equal (tuning_parse (bad[i], &t, why), 0);
    assert_int_equal (tuning_check (&t, a, why), -1);
  }
  assert_int_equal (tuning_parse ("4x64-min4-signed", &t, why), 0);
  assert_int_equal (tuning_check (&t, a, why), 0);
  matrix_free (a);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_round_trip),
    cmocka_unit_test (test_text),
    cmocka_unit_test (test_refused),
    cmocka_unit_test (test_packets),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
