/* gpuraid: the fields below GF(2^8), the generator of code crs, and bit
 * matrices, against Jerasure and by trying every minor.
 *
 * run-tests: no-thread
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/bits.h"
#include "gf/matrix/bit-matrix.h"
#include "gf/matrix/field.h"
#include "tests/gf-reference.h"

/* jerasure.h includes a galois.h that no pkg-config file tells the folder
 * of.
 */
extern int galois_single_multiply (int a, int b, int w);
extern int *jerasure_matrix_to_bitmatrix (int k, int m, int w, int *matrix);
extern int *cauchy_good_general_coding_matrix (int k, int m, int w);

static uint64_t seed;

static void
test_field (void **state)
{
  for (unsigned w = 1; w <= 8; w++) {
    const struct field *f = field_get (w);
    const unsigned size = 1u << w;
    unsigned power = 1, order = 0;

    assert_ptr_equal (f, field_get (w));
    assert_int_equal (f->inv[0], 0);
    for (unsigned a = 0; a < size; a++) {
      for (unsigned b = 0; b < size; b++)
        assert_int_equal (f->mul[a][b], w == 1 ? (a & b)
                          : (unsigned) galois_single_multiply (a, b, w));
      if (a > 0)
        assert_int_equal (f->mul[a][f->inv[a]], 1);
    }
    do {
      power = w == 1 ? 1 : f->mul[2][power];
      order++;
    } while (power != 1);
    assert_int_equal (order, size - 1);
  }
}

/* ---- the conditions of the proof in matrix-crs.c ---------------------- */

/* The x of a row s / (y_i + x), which must not be a y; columns 3 or more
 * tell it.
 */
static unsigned
find_x (const struct field *f, unsigned size, unsigned k, const uint8_t *e,
        const uint8_t *row)
{
  unsigned found = size, nr = 0;

  for (unsigned x = 0; x < size; x++) {
    uint8_t s = f->mul[row[0]][f->inv[e[0]] ^ x];
    bool same = s != 0;

    for (unsigned i = 1; i < k && same; i++)
      same = f->mul[row[i]][f->inv[e[i]] ^ x] == s;
    if (same) {
      found = x;
      nr++;
    }
  }
  assert_int_equal (nr, 1);
  return found;
}

static void
check_conditions (unsigned k, unsigned m, unsigned w)
{
  const struct field *f = field_get (w);
  const unsigned size = 1u << w;
  static uint8_t coef[MATRIX_MAX * MATRIX_MAX];
  bool used[256] = { true };    /* x_1 is 0 */
  const uint8_t *e = coef + k;

  matrix_crs_parity (k, m, w, coef);
  for (unsigned i = 0; i < k; i++)
    assert_int_equal (coef[i], 1);
  for (unsigned i = 0; m > 1 && i < k; i++) {
    assert_in_range (e[i], 1, size - 1);
    assert_false (used[f->inv[e[i]]]);
    used[f->inv[e[i]]] = true;
  }
  for (unsigned j = 2; k >= 3 && j < m; j++) {
    unsigned x = find_x (f, size, k, e, coef + j * k);

    assert_false (used[x]);
    used[x] = true;
  }
  if (m > 1)
    assert_int_equal (e[0], 1);
}

static void
test_conditions (void **state)
{
  for (unsigned w = 1; w <= 8; w++)
    for (unsigned k = 1; k < 1u << w && k <= MATRIX_MAX; k++)
      check_conditions (k, MIN ((1u << w) - k, MATRIX_MAX), w);
}

static void
test_prefix (void **state)
{
  static uint8_t big[64 * 64], small[64 * 64];

  for (unsigned w = 2; w <= 8; w++) {
    unsigned n = MIN (1u << w, 64);

    for (unsigned k = 1; k < n; k++) {
      matrix_crs_parity (k, n - k, w, big);
      for (unsigned m = 1; m < n - k; m += 1 + m / 3) {
        matrix_crs_parity (k, m, w, small);
        assert_memory_equal (small, big, k * m);
      }
    }
  }
}

/* ---- minors ----------------------------------------------------------- */

static bool
is_singular (const struct field *f, unsigned n, uint8_t a[][16])
{
  for (unsigned c = 0; c < n; c++) {
    unsigned p = c;
    uint8_t swap[16];

    while (p < n && a[p][c] == 0)
      p++;
    if (p == n)
      return true;
    memcpy (swap, a[p], n);
    memcpy (a[p], a[c], n);
    memcpy (a[c], swap, n);
    for (unsigned r = c + 1; r < n; r++) {
      uint8_t q = f->mul[a[r][c]][f->inv[a[c][c]]];

      for (unsigned i = c; q != 0 && i < n; i++)
        a[r][i] ^= f->mul[q][a[c][i]];
    }
  }
  return false;
}

/* All choices of as many rows as columns. */
static unsigned
nr_singular (unsigned k, unsigned m, unsigned w, const uint8_t *coef)
{
  const struct field *f = field_get (w);
  unsigned nr = 0;

  for (uint64_t rows = 1; rows < BIT (m); rows++)
    for (uint64_t cols = 1; cols < BIT (k); cols++) {
      uint8_t a[16][16];
      unsigned j = 0;

      if (nr_bits (rows) != nr_bits (cols))
        continue;
      FOR_EACH_BIT (r, rows) {
        unsigned i = 0;

        FOR_EACH_BIT (c, cols)
          a[j][i++] = coef[r * k + c];
        j++;
      }
      nr += is_singular (f, j, a);
    }
  return nr;
}

static void
check_minors (unsigned k, unsigned m, unsigned w)
{
  uint8_t coef[256];

  matrix_crs_parity (k, m, w, coef);
  assert_int_equal (nr_singular (k, m, w, coef), 0);
}

static void
test_minors (void **state)
{
  static const uint8_t powers[] = { 1, 1, 1, 1, 2, 3, 1, 4, 5, 1, 8, 15 };

  /* Would we see one?  GPU-RSCode's 3+4. */
  assert_int_equal (nr_singular (3, 4, 8, powers) > 0, 1);

  /* Every k + m that the field has. */
  for (unsigned w = 1; w <= 4; w++)
    for (unsigned k = 1; k < 1u << w; k++)
      check_minors (k, (1u << w) - k, w);
  for (unsigned w = 5; w <= 8; w++) {
    for (unsigned k = 1; k <= 10; k++)
      check_minors (k, 6, w);
    check_minors (8, 8, w);
    check_minors (13, 4, w);
    check_minors (15, 3, w);
  }
}

/* Random square parts of the widest ones. */
static void
test_random_minors (void **state)
{
  struct ref_random rnd = { seed };
  static uint8_t coef[MATRIX_MAX * MATRIX_MAX];

  for (unsigned n = 0; n < 200; n++) {
    unsigned w = 5 + ref_below (&rnd, 4), size = 1u << w;
    unsigned k = 1 + ref_below (&rnd, MIN (size - 1, MATRIX_MAX));
    unsigned m = MIN (size - k, MATRIX_MAX), row[16], col[16];

    matrix_crs_parity (k, m, w, coef);
    for (unsigned t = 0; t < 200; t++) {
      unsigned r = 1 + ref_below (&rnd, MIN (MIN (k, m), 16));
      uint8_t a[16][16];

      ref_choose (&rnd, m, r, row);
      ref_choose (&rnd, k, r, col);
      for (unsigned j = 0; j < r; j++)
        for (unsigned i = 0; i < r; i++)
          a[j][i] = coef[row[j] * k + col[i]];
      assert_false (is_singular (field_get (w), r, a));
    }
  }
}

/* ---- bits ------------------------------------------------------------- */

static void
check_bits (unsigned w, unsigned rows, unsigned cols, const uint8_t *coef)
{
  struct matrix *a = matrix_new_packets (w, 8, rows, cols, coef);
  struct bit_matrix *b = bit_matrix_new (a);
  int *matrix = ref_alloc (rows * cols * sizeof (int)), *expect;

  assert_non_null (b);
  assert_int_equal (b->rows, rows * w);
  assert_int_equal (b->cols, cols * w);
  for (unsigned i = 0; i < rows * cols; i++)
    matrix[i] = coef[i];
  expect = jerasure_matrix_to_bitmatrix (cols, rows, w, matrix);
  for (unsigned r = 0; r < rows * w; r++)
    for (unsigned c = 0; c < cols * w; c++)
      assert_int_equal (bit_matrix_get (b, r, c), expect[r * cols * w + c]);
  free (expect);
  free (matrix);
  free (b);
  matrix_free (a);
}

static void
test_bits (void **state)
{
  struct ref_random rnd = { seed };
  uint8_t coef[20 * 40];

  for (unsigned n = 0; n < 200; n++) {
    unsigned w = 2 + ref_below (&rnd, 7);
    unsigned rows = 1 + ref_below (&rnd, 20), cols = 1 + ref_below (&rnd, 40);

    for (unsigned i = 0; i < rows * cols; i++)
      coef[i] = ref_below (&rnd, 1u << w);
    check_bits (w, rows, cols, coef);
  }
}

static size_t
nr_ones (unsigned k, unsigned m, unsigned w, const uint8_t *coef)
{
  struct matrix *a = matrix_new_packets (w, 8, m, k, coef);
  struct bit_matrix *b = bit_matrix_new (a);
  size_t nr = 0;

  for (unsigned r = 0; r < b->rows; r++)
    for (unsigned c = 0; c < b->cols; c++)
      nr += bit_matrix_get (b, r, c);
  free (b);
  matrix_free (a);
  return nr;
}

/* Some are a few ones above Jerasure's: 12+3, w 4 has 235, not 234. */
static void
test_few_ones (void **state)
{
  uint8_t coef[256];

  for (unsigned w = 3; w <= 8; w++)
    for (unsigned k = 1; k <= 16; k++)
      for (unsigned m = 1; m <= 8 && k + m <= 1u << w; m++) {
        int *good = cauchy_good_general_coding_matrix (k, m, w);
        size_t ours;

        matrix_crs_parity (k, m, w, coef);
        ours = nr_ones (k, m, w, coef);
        for (unsigned i = 0; i < k * m; i++)
          coef[i] = good[i];
        if (ours > nr_ones (k, m, w, coef) * 102 / 100)
          fail_msg ("%u+%u, w %u: %zu ones, Jerasure %zu", k, m, w, ours,
                    nr_ones (k, m, w, coef));
        free (good);
      }
  matrix_crs_parity (10, 4, 8, coef);
  assert_int_equal (nr_ones (10, 4, 8, coef), 671);
}

int
main (void)
{
  static const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_field),
    cmocka_unit_test (test_conditions),
    cmocka_unit_test (test_prefix),
    cmocka_unit_test (test_minors),
    cmocka_unit_test (test_random_minors),
    cmocka_unit_test (test_bits),
    cmocka_unit_test (test_few_ones),
  };

  seed = ref_seed ();
  return cmocka_run_group_tests (tests, NULL, NULL);
}
