/* gpuraid: tunings as text, and the grids of them.
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

#include "bench/method.h"
#include "bench/tuning-grid.h"
#include "bench/tuning.h"
#include "common/bits.h"

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
test_list (void **state)
{
  struct kernel_tuning t[TUNING_MAX_LIST];
  char why[BENCH_WHY_LEN], list[6 * TUNING_MAX_LIST + 16] = "8x64";

  assert_int_equal (tuning_parse_list ("8x128-g3,16x64", t, why), 2);
  assert_int_equal (t[0].group, 3);
  assert_int_equal (t[1].bytes, 16);
  assert_int_equal (tuning_parse_list ("8x128-g3,", t, why), -1);
  assert_int_equal (tuning_parse_list (",8x128", t, why), -1);
  assert_int_equal (tuning_parse_list ("8x128,8x127", t, why), -1);
  assert_non_null (strstr (why, "8x127"));
  for (unsigned i = 1; i < TUNING_MAX_LIST; i++)
    strcat (list, ",8x64");
  assert_int_equal (tuning_parse_list (list, t, why), TUNING_MAX_LIST);
  strcat (list, ",8x64");
  assert_int_equal (tuning_parse_list (list, t, why), -1);
}

/* The tunings of a grid are different, possible, and have a text. */
static void
check_grid (const struct matrix *a, const struct kernel_tuning *base,
            const struct kernel_tuning *t, unsigned nr)
{
  char name[GRID_MAX][TUNING_LEN], why[BENCH_WHY_LEN];
  struct kernel_tuning back;
  struct kernel_shape shape;
  char *text;

  assert_true (nr <= GRID_MAX);
  for (unsigned i = 0; i < nr; i++) {
    tuning_print (&t[i], name[i]);
    for (unsigned j = 0; j < i; j++)
      if (strcmp (name[i], name[j]) == 0)
        fail_msg ("%s is there twice", name[i]);
    assert_int_equal (tuning_parse (name[i], &back, why), 0);
    assert_int_equal (tuning_check (&t[i], a, why), 0);
    text = kernel_source (a, false, &back, &shape);
    assert_non_null (text);
    assert_int_equal (shape.block, t[i].block);
    free (text);
  }
}

static void
check_matrix (struct matrix *a)
{
  struct kernel_tuning base, t[GRID_MAX];
  unsigned nr, all = 1;

  assert_non_null (a);
  kernel_tune (a, &base);
  for (unsigned step = 0; step < GRID_NR_STEPS; step++) {
    nr = grid_fill (step, a, &base, t);
    check_grid (a, &base, t, nr);
    all += nr;
    base = t[nr / 2];
  }
  /* A few minutes of a device: docs/gpuraid.pod says how many. */
  if (a->packet_len == 0 && (all < 40 || all > 80))
    fail_msg ("%u+%u: %u", a->cols, a->rows, all);
  matrix_free (a);
}

static void
test_grid (void **state)
{
  static const unsigned shape[][2] = {
    { 1, 1 }, { 4, 2 }, { 10, 4 }, { 20, 8 }, { 32, 8 }, { 24, 12 },
    { 32, 16 }, { 48, 16 },
  };
  uint8_t coef[64 * 64];

  for (size_t i = 0; i < ARRAY_LEN (shape); i++) {
    const unsigned k = shape[i][0], m = shape[i][1];

    matrix_rs_parity (k, m, coef);
    check_matrix (matrix_new (m, k, coef));
  }
  matrix_crs_parity (4, 2, 4, coef);
  check_matrix (matrix_new_packets (4, 1024, 2, 4, coef));
  matrix_crs_parity (20, 8, 8, coef);
  check_matrix (matrix_new_packets (8, 512, 8, 20, coef));
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
    cmocka_unit_test (test_list),
    cmocka_unit_test (test_grid),
    cmocka_unit_test (test_packets),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
