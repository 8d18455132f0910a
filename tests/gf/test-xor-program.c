/* gpuraid: XOR programs: that they compute their matrix, and how many XORs
 * they take.
 *
 * run-tests: no-thread check=plain,address
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/bits.h"
#include "gf/matrix/bit-matrix.h"
#include "gf/matrix/field.h"
#include "gf/xor/program.h"
#include "tests/gf-reference.h"

static uint64_t seed;

static const enum xor_style styles[] = {
  XOR_DIRECT, XOR_ITERATIVE, XOR_GREEDY, XOR_BEST, XOR_LOADS,
};

/* ---- right? ----------------------------------------------------------- */

/* Each variable as a set of inputs. */
static void
check_program (const struct matrix *a, const struct xor_program *prog)
{
  struct bit_matrix *b = bit_matrix_new (a);
  const unsigned nr = prog->nr_in + prog->nr_temps + prog->nr_out;
  const size_t words = div_round_up (MAX (prog->nr_in, 1), 64);
  uint64_t *set = ref_alloc (8 * words * nr);
  bool *made = ref_alloc (nr);

  assert_int_equal (prog->nr_in, b->cols);
  assert_int_equal (prog->nr_out, b->rows);
  assert_int_equal (prog->nr_equations, prog->nr_temps + prog->nr_out);
  memset (set, 0, 8 * words * nr);
  memset (made, 0, nr);
  for (unsigned i = 0; i < prog->nr_in; i++) {
    set[i * words + i / 64] = BIT (i % 64);
    made[i] = true;
  }
  for (unsigned n = 0; n < prog->nr_equations; n++) {
    const struct xor_equation *e = &prog->equation[n];

    assert_in_range (e->target, prog->nr_in, nr - 1);
    assert_false (made[e->target]);
    made[e->target] = true;
    for (unsigned i = 0; i < e->nr_terms; i++) {
      const unsigned t = prog->term[e->first_term+i];

      assert_true (t < nr && t != e->target && made[t]);
      assert_true (i == 0 || t > prog->term[e->first_term+i-1]);
      for (size_t j = 0; j < words; j++)
        set[e->target * words + j] ^= set[t * words + j];
    }
  }
  for (unsigned r = 0; r < b->rows; r++) {
    assert_true (made[nr - b->rows + r]);
    for (unsigned c = 0; c < b->cols; c++)
      assert_int_equal (set[(nr - b->rows + r) * words + c / 64]
                        >> (c % 64) & 1, bit_matrix_get (b, r, c));
  }
  free (made);
  free (set);
  free (b);
}

static void
check_styles (unsigned w, unsigned rows, unsigned cols, const uint8_t *coef,
              size_t nr_xors[5])
{
  struct matrix *a = matrix_new_packets (w, 8, rows, cols, coef);

  for (unsigned s = 0; s < 5; s++) {
    struct xor_program *prog = xor_program_new (a, styles[s]);

    assert_non_null (prog);
    check_program (a, prog);
    if (styles[s] == XOR_LOADS || styles[s] == XOR_DIRECT)
      for (unsigned n = 0; n < prog->nr_equations; n++)
        for (unsigned i = 0; i < prog->equation[n].nr_terms; i++)
          assert_true (prog->term[prog->equation[n].first_term+i] <
                       prog->nr_in + prog->nr_temps);
    nr_xors[s] = xor_program_nr_xors (prog);
    xor_program_free (prog);
  }
  assert_true (nr_xors[4] <= nr_xors[0]);
  assert_true (nr_xors[3] <= nr_xors[0]);
  assert_true (nr_xors[2] <= nr_xors[0]);
  assert_true (nr_xors[1] <= nr_xors[0]);
  matrix_free (a);
}

static void
test_random (void **state)
{
  struct ref_random rnd = { seed };
  uint8_t coef[20 * 20];
  size_t nr_xors[5];

  for (unsigned n = 0; n < 60; n++) {
    unsigned w = 1 + ref_below (&rnd, 8);
    unsigned rows = 1 + ref_below (&rnd, n % 8 ? 5 : 20);
    unsigned cols = 1 + ref_below (&rnd, n % 8 ? 8 : 20);
    unsigned zeroes = ref_below (&rnd, 3);

    for (unsigned i = 0; i < rows * cols; i++)
      coef[i] = ref_below (&rnd, 4) < zeroes ? 0 : ref_below (&rnd, 1u << w);
    /* Rows that are equal, or zero. */
    if (ref_below (&rnd, 2))
      memcpy (coef + (rows - 1) * cols, coef, cols);
    if (ref_below (&rnd, 4) == 0)
      memset (coef, 0, cols);
    check_styles (w, rows, cols, coef, nr_xors);
  }
}

static void
test_shapes (void **state)
{
  static const unsigned shapes[][2] = {
    { 0, 0 }, { 0, 3 }, { 3, 0 }, { 1, 1 }, { MATRIX_MAX, 1 },
    { 1, MATRIX_MAX }, { 32, 32 },
  };
  struct ref_random rnd = { seed };
  static uint8_t coef[MATRIX_MAX * MATRIX_MAX];
  size_t nr_xors[5];

  ref_fill (&rnd, coef, sizeof coef);
  for (unsigned i = 0; i < ARRAY_LEN (shapes); i++)
    check_styles (8, shapes[i][0], shapes[i][1], coef, nr_xors);
}

/* As many variables as there can be. */
static void
test_biggest (void **state)
{
  struct ref_random rnd = { seed };
  uint8_t *coef = ref_alloc (MATRIX_MAX * MATRIX_MAX);
  struct matrix *a;

  ref_fill (&rnd, coef, MATRIX_MAX * MATRIX_MAX);
  a = matrix_new_packets (8, 8, MATRIX_MAX, MATRIX_MAX, coef);
  for (unsigned s = 2; s < 5; s += 2) {
    struct xor_program *prog = xor_program_new (a, styles[s]);

    assert_non_null (prog);
    assert_in_range (prog->nr_in + prog->nr_temps + prog->nr_out, 0, 65536);
    check_program (a, prog);
    xor_program_free (prog);
  }
  matrix_free (a);
  free (coef);
}

static void
test_same_again (void **state)
{
  uint8_t coef[40];
  struct matrix *a;
  struct xor_program *p, *q;

  matrix_crs_parity (10, 4, 4, coef);
  a = matrix_new_packets (4, 8, 4, 10, coef);
  p = xor_program_new (a, XOR_BEST);
  q = xor_program_new (a, XOR_BEST);
  assert_int_equal (p->nr_equations, q->nr_equations);
  assert_memory_equal (p->equation, q->equation,
                       p->nr_equations * sizeof p->equation[0]);
  for (unsigned n = 0; n < p->nr_equations; n++)
    assert_memory_equal (p->term + p->equation[n].first_term,
                         q->term + q->equation[n].first_term,
                         2 * p->equation[n].nr_terms);
  xor_program_free (p);
  xor_program_free (q);
  matrix_free (a);
}

/* ---- few? ------------------------------------------------------------- */

/* The matrix of Sobe's paper, w 3: 1 / ((k + p) ^ i). */
static void
sobe_matrix (unsigned k, unsigned m, uint8_t *coef)
{
  for (unsigned p = 0; p < m; p++)
    for (unsigned i = 0; i < k; i++)
      coef[p * k + i] = field_get (3)->inv[(k + p) ^ i];
}

static void
test_sobe_counts (void **state)
{
  uint8_t coef[10];
  size_t nr[5];

  sobe_matrix (5, 2, coef);
  check_styles (3, 2, 5, coef, nr);
  assert_int_equal (nr[0], 45);
  assert_int_equal (nr[1], 33);
  assert_in_range (nr[2], 27, 30);
  assert_in_range (nr[3], 1, 27);

  sobe_matrix (4, 2, coef);
  check_styles (3, 2, 4, coef, nr);
  assert_int_equal (nr[0], 38);
  assert_in_range (nr[3], 1, 22);

  sobe_matrix (3, 2, coef);
  check_styles (3, 2, 3, coef, nr);
  assert_int_equal (nr[0], 25);
  assert_in_range (nr[3], 1, 16);
}

/* The paper's listing for 5+2: its temporaries, t0 first, and outputs. */
static void
test_sobe_listing (void **state)
{
  enum { t0 = 15, u15 = 25 };
  static const unsigned listing[][7] = {
    { t0, 2, 3 }, { t0 + 1, 4, 5 }, { t0 + 2, 7, 9 }, { t0 + 3, 11, 12 },
    { t0 + 4, t0, t0 + 2 }, { t0 + 5, 0, 8 }, { t0 + 6, 10, 11 },
    { t0 + 7, 13, t0 + 5 }, { t0 + 8, 1, 6 }, { t0 + 9, 14, t0 + 8 },
    { u15, t0 + 1, t0 + 3, t0 + 4 }, { u15 + 1, t0 + 4, t0 + 6, t0 + 7 },
    { u15 + 2, 3, 4, 8, t0 + 6, t0 + 9 },
    { u15 + 3, 2, 4, 6, 7, t0 + 3, t0 + 7 },
    { u15 + 4, 0, 2, 9, 11, t0 + 1, t0 + 9 },
    { u15 + 5, 5, 7, 10, 12, t0, t0 + 8 },
  };
  uint8_t coef[10];
  struct matrix *a;
  struct xor_program *prog;

  sobe_matrix (5, 2, coef);
  a = matrix_new_packets (3, 8, 2, 5, coef);
  prog = xor_program_new (a, XOR_ITERATIVE);
  assert_int_equal (prog->nr_equations, ARRAY_LEN (listing));
  for (unsigned n = 0; n < prog->nr_equations; n++) {
    const struct xor_equation *e = &prog->equation[n];
    const unsigned *line = listing[e->target - t0];
    unsigned nr = 1;

    assert_int_equal (line[0], e->target);
    while (nr < 7 && (line[nr] != 0 || nr == 1))
      nr++;
    assert_int_equal (e->nr_terms, nr - 1);
    for (unsigned i = 0; i < e->nr_terms; i++)
      assert_int_equal (prog->term[e->first_term+i], line[1+i]);
  }
  xor_program_free (prog);
  matrix_free (a);
}

/* What was reached once stays reached. */
static void
test_ours (void **state)
{
  static const struct { unsigned k, m, w, greedy, best; } cases[] = {
    { 5, 2, 3, 24, 24 },
    { 10, 4, 4, 141, 134 },
    { 8, 8, 4, 218, 208 },
    { 10, 2, 8, 158, 155 },
    { 10, 4, 8, 383, 370 },
    { 20, 8, 8, 1575, 1560 },
    { 32, 16, 8, 4960, 4930 },
  };
  uint8_t coef[32 * 16];
  size_t nr[5];

  for (unsigned i = 0; i < ARRAY_LEN (cases); i++) {
    matrix_crs_parity (cases[i].k, cases[i].m, cases[i].w, coef);
    check_styles (cases[i].w, cases[i].m, cases[i].k, coef, nr);
    print_message ("%u+%u, w %u: %zu direct, %zu iterative, %zu greedy, "
                   "%zu best\n", cases[i].k, cases[i].m, cases[i].w, nr[0],
                   nr[1], nr[2], nr[3]);
    assert_in_range (nr[2], 1, cases[i].greedy);
    assert_in_range (nr[3], 1, cases[i].best);
  }
}

int
main (void)
{
  static const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_random),
    cmocka_unit_test (test_shapes),
    cmocka_unit_test (test_biggest),
    cmocka_unit_test (test_same_again),
    cmocka_unit_test (test_sobe_counts),
    cmocka_unit_test (test_sobe_listing),
    cmocka_unit_test (test_ours),
  };

  seed = ref_seed ();
  return cmocka_run_group_tests (tests, NULL, NULL);
}
