/* gpuraid: the order of columns for a kernel: all that matter and no other,
 * never worse than that of the matrix, and the best where that is known.
 *
 * run-tests: no-thread check=plain,address
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/bits.h"
#include "gpu/text/columns.h"
#include "tests/gf-reference.h"

static uint64_t seed;

static bool
is_used (const struct matrix *a, unsigned col)
{
  for (unsigned j = 0; j < a->rows; j++)
    if (a->coef[j * a->cols + col])
      return true;
  return false;
}

/* Over all groups, the bits of rows that need it. */
static unsigned
cost (const struct matrix *a, unsigned group, const unsigned *col,
      unsigned nr_cols)
{
  unsigned nr = 0;

  for (unsigned first = 0; first < nr_cols; first += group)
    for (unsigned j = 0; j < a->rows; j++)
      for (unsigned bit = 0; bit < 8; bit++) {
        bool needs = false;

        for (unsigned i = first; i < MIN (first + group, nr_cols); i++)
          needs |= a->coef[j * a->cols + col[i]] >> bit & 1;
        nr += needs;
      }
  return nr;
}

static unsigned
cost_in_order (const struct matrix *a, unsigned group)
{
  unsigned col[MATRIX_MAX], nr = 0;

  for (unsigned i = 0; i < a->cols; i++)
    if (is_used (a, i))
      col[nr++] = i;
  return cost (a, group, col, nr);
}

/* The cost of what was found; it is a permutation. */
static unsigned
found_cost (const struct matrix *a, unsigned group)
{
  unsigned col[MATRIX_MAX], nr = kernel_columns (a, group, col);
  bool seen[MATRIX_MAX] = { false };

  for (unsigned n = 0; n < nr; n++) {
    assert_true (col[n] < a->cols);
    assert_false (seen[col[n]]);
    seen[col[n]] = true;
  }
  for (unsigned i = 0; i < a->cols; i++)
    assert_int_equal (seen[i], is_used (a, i));
  return cost (a, group, col, nr);
}

/* Elements are 0 with such a chance out of 4, and whole columns are. */
static struct matrix *
random_matrix (struct ref_random *rnd, unsigned rows, unsigned cols,
               unsigned zeroes)
{
  static uint8_t coef[MATRIX_MAX * MATRIX_MAX];
  struct matrix *a;

  for (unsigned i = 0; i < cols; i++) {
    const bool none = ref_below (rnd, 8) == 0;

    for (unsigned j = 0; j < rows; j++)
      coef[j * cols + i] = none || ref_below (rnd, 4) < zeroes ? 0 :
        ref_random (rnd) >> 16;
  }
  a = matrix_new (rows, cols, coef);
  assert_non_null (a);
  return a;
}

static void
test_random (void **state)
{
  struct ref_random rnd = { seed };
  unsigned nr_better = 0;

  for (unsigned n = 0; n < 400; n++) {
    const unsigned most = n % 100 == 0 ? MATRIX_MAX : 24;
    struct matrix *a = random_matrix (&rnd, ref_below (&rnd, most + 1),
                                      ref_below (&rnd, most + 1), n % 5);

    for (unsigned group = 1; group <= 4; group++) {
      const unsigned before = cost_in_order (a, group);
      const unsigned after = found_cost (a, group);

      assert_true (after <= before);
      nr_better += after < before;
    }
    matrix_free (a);
  }
  assert_true (nr_better > 100);
}

/* All of them used, and no other: what fits is the whole of col. */
static void
test_most (void **state)
{
  static uint8_t coef[MATRIX_MAX * MATRIX_MAX];
  struct matrix *a;
  unsigned col[MATRIX_MAX];

  memset (coef, 0xff, sizeof coef);
  a = matrix_new (MATRIX_MAX, MATRIX_MAX, coef);
  assert_non_null (a);
  assert_int_equal (kernel_columns (a, 3, col), MATRIX_MAX);
  assert_int_equal (found_cost (a, 3), cost_in_order (a, 3));
  matrix_free (a);
}

/* Columns of nr_kinds kinds, in random order; each kind has rows, or bits of
 * all rows, of its own.  So groups of one kind cost nothing in those of the
 * others.  In pairs, and of two kinds in threes too, some exchange of two
 * columns helps until all are so.
 */
static void
test_kinds (void **state)
{
  enum { rows = 8 };
  struct ref_random rnd = { seed };

  for (unsigned n = 0; n < 200; n++) {
    const bool by_bit = n % 2;
    const unsigned group = 2 + ref_below (&rnd, 2);
    const unsigned nr_kinds = group == 2 ? 2 + ref_below (&rnd, 6) : 2;
    const unsigned cols = group * nr_kinds * (1 + ref_below (&rnd, 5));
    uint8_t coef[rows * MATRIX_MAX] = { 0 };
    unsigned kind[MATRIX_MAX], least = 0;
    struct matrix *a;

    for (unsigned i = 0; i < cols; i++) {
      const unsigned other = ref_below (&rnd, i + 1);

      kind[i] = kind[other];
      kind[other] = i % nr_kinds;
    }
    for (unsigned i = 0; i < cols; i++)
      for (unsigned j = 0; j < rows; j++)
        if (by_bit)
          coef[j * cols + i] = 1 << kind[i];
        else if (j % nr_kinds == kind[i])
          coef[j * cols + i] = 0xff;
    for (unsigned x = 0; x < nr_kinds; x++)
      for (unsigned j = 0; j < rows; j++)
        least += by_bit ? 1 : j % nr_kinds == x ? 8 : 0;
    a = matrix_new (rows, cols, coef);
    assert_non_null (a);
    assert_int_equal (found_cost (a, group),
                      least * (cols / group / nr_kinds));
    matrix_free (a);
  }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_random),
    cmocka_unit_test (test_most),
    cmocka_unit_test (test_kinds),
  };

  seed = ref_seed ();
  return cmocka_run_group_tests (tests, NULL, NULL);
}
