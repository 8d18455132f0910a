/* gpuraid: the generator of code rs and matrix_express.
 *
 * Run from the root of the tree.
 *
 * run-tests: no-thread
 * It has one thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/bits.h"
#include "gf/matrix/field.h"
#include "gf/matrix/matrix.h"
#include "tests/gf-reference.h"

static uint64_t seed;

static void *
get_field (void *unused)
{
  return (void *) field_get (8);
}

static void
test_field (void **state)
{
  const struct field *f;
  pthread_t threads[4];
  void *got;

  for (unsigned i = 0; i < ARRAY_LEN (threads); i++)
    assert_int_equal (pthread_create (&threads[i], NULL, get_field, NULL), 0);
  f = field_get (8);
  for (unsigned i = 0; i < ARRAY_LEN (threads); i++) {
    pthread_join (threads[i], &got);
    assert_ptr_equal (got, f);
  }

  for (unsigned a = 0; a < 256; a++)
    for (unsigned b = 0; b < 256; b++)
      assert_int_equal (f->mul[a][b], ref_mul (a, b));
  assert_int_equal (f->inv[0], 0);
  for (unsigned a = 1; a < 256; a++)
    assert_int_equal (f->inv[a], ref_inv (a));
}

static void
test_field_region (void **state)
{
  struct ref_random rnd = { seed };
  uint8_t *src = ref_alloc (4096 + 64), *dst = ref_alloc (4096 + 64);
  uint8_t before[4096 + 64];

  for (unsigned c = 0; c < 256; c++) {
    for (unsigned add = 0; add < 2; add++) {
      size_t len = c % 2 ? 4096 : 64 * (1 + ref_below (&rnd, 8));

      ref_fill (&rnd, src, len);
      ref_fill (&rnd, dst, len + 64);
      memcpy (before, dst, len + 64);
      field_mul_region (dst, src, c, len, add);
      for (size_t i = 0; i < len; i++)
        assert_int_equal (dst[i], ref_mul (c, src[i]) ^ (add ? before[i] : 0));
      assert_memory_equal (dst + len, before + len, 64);
    }
  }
  free (src);
  free (dst);
}

static void
test_new (void **state)
{
  uint8_t coef[6] = { 1, 2, 3, 4, 5, 6 };
  struct matrix *a = matrix_new (2, 3, coef), *b = matrix_new (2, 3, coef);
  struct matrix *none = matrix_new (0, 3, NULL);

  assert_non_null (a);
  assert_non_null (b);
  assert_non_null (none);
  assert_int_not_equal (a->id, b->id);
  assert_int_equal (a->rows, 2);
  assert_int_equal (a->cols, 3);
  assert_memory_equal (a->coef, coef, 6);
  matrix_free (a);
  matrix_free (b);
  matrix_free (none);
  matrix_free (NULL);

  errno = 0;
  assert_null (matrix_new (MATRIX_MAX + 1, 0, NULL));
  assert_int_equal (errno, EINVAL);
  errno = 0;
  assert_null (matrix_new (0, MATRIX_MAX + 1, NULL));
  assert_int_equal (errno, EINVAL);
}

/* What docs/on-disk-format.md says, in slow arithmetic; and with it the
 * conditions of the proof in gf/matrix/matrix.c: y_j + x_i is 2^j ^ 2^-i.
 */
static void
test_rs_definition (void **state)
{
  uint8_t coef[64 * 64], power[64], x[64];

  power[0] = 1;
  for (unsigned i = 1; i < 64; i++)
    power[i] = ref_mul (power[i-1], 2);
  for (unsigned i = 0; i < 64; i++)
    x[i] = ref_inv (power[i]);

  for (unsigned i = 0; i < 63; i++) {
    assert_int_not_equal (x[i], 0);           /* y_1 */
    for (unsigned i2 = 0; i2 < i; i2++)
      assert_int_not_equal (x[i], x[i2]);
    for (unsigned j = 1; j < 63 - i; j++) {
      assert_int_not_equal (x[i], power[j]);
      assert_int_not_equal (power[j], 0);
      for (unsigned j2 = 1; j2 < j; j2++)
        assert_int_not_equal (power[j], power[j2]);
    }
  }

  for (unsigned k = 1; k < 64; k++) {
    unsigned m = 64 - k;

    matrix_rs_parity (k, m, coef);
    for (unsigned i = 0; i < k; i++) {
      assert_int_equal (coef[i], 1);
      if (m > 1)
        assert_int_equal (coef[k+i], power[i]);
      for (unsigned j = 1; j + 1 < m; j++)
        assert_int_equal (ref_mul (coef[(j + 1) * k + i], power[j] ^ x[i]),
                          power[j] ^ x[0]);
    }
  }
}

/* Each k + m is a corner of the biggest ones. */
static void
test_rs_prefix (void **state)
{
  uint8_t big[64 * 64], coef[64 * 64];

  for (unsigned k = 1; k < 64; k++) {
    matrix_rs_parity (k, 64 - k, big);
    for (unsigned m = 1; m < 64 - k; m++) {
      memset (coef, 0xee, sizeof coef);
      matrix_rs_parity (k, m, coef);
      assert_memory_equal (coef, big, k * m);
      assert_int_equal (coef[k * m], 0xee);   /* no more is written */
    }
    if (k == 1)
      continue;
    matrix_rs_parity (k - 1, 64 - k, coef);
    for (unsigned j = 0; j < 64 - k; j++)
      assert_memory_equal (coef + j * (k - 1), big + j * k, k - 1);
  }
}

static void
check_rs_vectors (const struct ref_vectors *v, void *opaque)
{
  uint8_t coef[64 * 64];

  matrix_rs_parity (v->cols, v->rows, coef);
  assert_memory_equal (coef, v->coef, v->rows * v->cols);
}

static void
check_md_vectors (const struct ref_vectors *v, void *opaque)
{
  if (strcmp (v->name, "linux_md_pq_8") == 0) {
    check_rs_vectors (v, NULL);
    ++*(unsigned *) opaque;
  }
}

static void
test_vectors (void **state)
{
  unsigned nr = 0;

  assert_int_equal (ref_each_vectors ("rs.json", check_rs_vectors, NULL), 9);
  ref_each_vectors ("other-matrices.json", check_md_vectors, &nr);
  assert_int_equal (nr, 1);
}

/* Are all minors of these rows not 0?  Columns are added one by one in
 * ascending order, each reduced by those before it, so that choices that
 * begin alike share their work.  A column that is reduced to nothing
 * depends on those before it, and some minor of the rows is 0.
 */
struct minors {
  unsigned k, nr_rows;
  uint8_t col[64][16];          /* by column: the chosen rows' values */
  uint8_t reduced[16][16];
  unsigned pivot[16];           /* where reduced is 1 and later ones 0 */
  uint64_t nr_minors;
};

/* One thread, tens of millions of calls: the thread sanitizer would find
 * nothing and take minutes.
 */
__attribute__ ((no_sanitize ("thread")))
static bool
reduce (struct minors *a, unsigned level, unsigned c)
{
  const struct field *f = field_get (8);
  uint8_t *v = a->reduced[level];
  unsigned p = 0;

  for (unsigned r = 0; r < a->nr_rows; r++)
    v[r] = a->col[c][r];
  for (unsigned l = 0; l < level; l++) {
    const uint8_t *mul = f->mul[v[a->pivot[l]]];

    for (unsigned r = 0; r < a->nr_rows; r++)
      v[r] ^= mul[a->reduced[l][r]];
  }
  while (p < a->nr_rows && v[p] == 0)
    p++;
  if (p == a->nr_rows)
    return false;
  a->pivot[level] = p;
  if (level + 1 < a->nr_rows) {
    const uint8_t *mul = f->mul[f->inv[v[p]]];

    for (unsigned r = 0; r < a->nr_rows; r++)
      v[r] = mul[v[r]];
  }
  return true;
}

static bool
add_columns (struct minors *a, unsigned level, unsigned from)
{
  if (level == a->nr_rows) {
    a->nr_minors++;
    return true;
  }
  for (unsigned c = from; c + (a->nr_rows - level) <= a->k; c++)
    if (!reduce (a, level, c) || !add_columns (a, level + 1, c + 1))
      return false;
  return true;
}

static void
set_rows (struct minors *a, unsigned k, const uint8_t *coef, uint64_t rows)
{
  memset (a, 0, sizeof *a);
  a->k = k;
  FOR_EACH_BIT (r, rows) {
    for (unsigned c = 0; c < k; c++)
      a->col[c][a->nr_rows] = coef[r * k + c];
    a->nr_rows++;
  }
}

/* Returns how many minors there are, or 0 if one is 0. */
static uint64_t
count_minors (unsigned k, unsigned m, const uint8_t *coef)
{
  struct minors a;
  uint64_t nr = 0;

  for (uint64_t rows = 1; rows < BIT (m); rows++) {
    set_rows (&a, k, coef, rows);
    if (!add_columns (&a, 0, 0))
      return 0;
    nr += a.nr_minors;
  }
  return nr;
}

static uint64_t
choose (unsigned n, unsigned nr)
{
  uint64_t c = 1;

  for (unsigned i = 1; i <= nr; i++)
    c = c * (n - nr + i) / i;
  return c;
}

/* Smaller k and m are corners of these.  The table in gf/matrix/matrix.h names
 * the same sizes.
 */
static void
test_minors (void **state)
{
  static const struct { unsigned k, m; } sizes[] = {
    { 1, 1 }, { 8, 4 }, { 10, 4 }, { 16, 8 },
    { 63, 1 }, { 62, 2 }, { 61, 3 }, { 60, 4 }, { 59, 5 },
    { 10, 10 }, { 24, 8 }, { 32, 6 },
  };
  uint8_t coef[64 * 64];

  for (unsigned i = 0; i < ARRAY_LEN (sizes); i++) {
    unsigned k = sizes[i].k, m = sizes[i].m;

    matrix_rs_parity (k, m, coef);
    assert_int_equal (count_minors (k, m, coef), choose (k + m, m) - 1);
  }

  /* A minor that is 0 is seen: of one element, of two by two, and among
   * the powers of 1, 2, 4 and 8 at 22+4.
   */
  matrix_rs_parity (16, 8, coef);
  coef[7 * 16 + 15] = 0;
  assert_int_equal (count_minors (16, 8, coef), 0);
  matrix_rs_parity (16, 8, coef);
  coef[7 * 16 + 15] = ref_mul (ref_mul (coef[6 * 16 + 15], coef[7 * 16 + 3]),
                               ref_inv (coef[6 * 16 + 3]));
  assert_int_equal (count_minors (16, 8, coef), 0);
  for (unsigned j = 0; j < 4; j++)
    for (unsigned i = 0; i < 22; i++)
      coef[j * 22 + i] = i == 0 ? 1 : ref_mul (coef[j * 22 + i - 1], 1 << j);
  assert_int_not_equal (count_minors (22, 3, coef), 0);
  assert_int_equal (count_minors (22, 4, coef), 0);
}

/* Random minors of up to 16 x 16 in the biggest generators. */
static void
test_minors_sampled (void **state)
{
  struct ref_random rnd = { seed };
  uint8_t coef[64 * 64];
  unsigned cols[16], rows[16];
  struct minors a;

  for (unsigned n = 0; n < 20000; n++) {
    unsigned k = 1 + ref_below (&rnd, 63), m = 64 - k;
    unsigned nr = 1 + ref_below (&rnd, MIN (16, MIN (k, m)));
    uint64_t mask = 0;

    matrix_rs_parity (k, m, coef);
    ref_choose (&rnd, m, nr, rows);
    ref_choose (&rnd, k, nr, cols);
    for (unsigned i = 0; i < nr; i++)
      mask |= BIT (rows[i]);
    set_rows (&a, k, coef, mask);
    for (unsigned i = 0; i < nr; i++)
      assert_true (reduce (&a, i, cols[i]));
  }
}

/* The rows of all k + m roles by data: k x k identity, then parity. */
static void
make_roles (unsigned k, unsigned m, uint8_t *role)
{
  memset (role, 0, k * k);
  for (unsigned i = 0; i < k; i++)
    role[i * k + i] = 1;
  matrix_rs_parity (k, m, role + k * k);
}

/* coef times source is target? */
static void
check_product (unsigned nr_vars, unsigned nr_src, const uint8_t *source,
               unsigned nr_tgt, const uint8_t *target, const uint8_t *coef)
{
  for (unsigned t = 0; t < nr_tgt; t++) {
    for (unsigned v = 0; v < nr_vars; v++) {
      uint8_t sum = 0;

      for (unsigned s = 0; s < nr_src; s++)
        if (coef[t * nr_src + s] && source[s * nr_vars + v])
          sum ^= ref_mul (coef[t * nr_src + s], source[s * nr_vars + v]);
      assert_int_equal (sum, target[t * nr_vars + v]);
    }
  }
}

/* Lost roles by the k survivors in mask. */
static void
check_survivors (unsigned k, unsigned m, const uint8_t *role, uint64_t mask)
{
  uint8_t source[64 * 64], target[64 * 64], coef[64 * 64];
  unsigned nr_src = 0, nr_tgt = 0;

  for (unsigned r = 0; r < k + m; r++) {
    if (mask & BIT (r))
      memcpy (source + k * nr_src++, role + k * r, k);
    else
      memcpy (target + k * nr_tgt++, role + k * r, k);
  }
  assert_int_equal (matrix_express (8, k, nr_src, source, nr_tgt, target, coef),
                    0);
  check_product (k, nr_src, source, nr_tgt, target, coef);
}

static void
test_survivors (void **state)
{
  struct ref_random rnd = { seed };
  uint8_t role[64 * 64];
  unsigned chosen[64];

  for (unsigned k = 1; k <= 8; k++) {
    for (unsigned m = 1; m <= 4; m++) {
      make_roles (k, m, role);
      for (uint64_t mask = 0; mask < BIT (k + m); mask++)
        if (nr_bits (mask) == k)
          check_survivors (k, m, role, mask);
    }
  }

  for (unsigned n = 0; n < 300; n++) {
    unsigned all = n % 3 ? 64 : 2 + ref_below (&rnd, 63);
    unsigned k = 1 + ref_below (&rnd, all - 1);
    uint64_t mask = 0;

    make_roles (k, all - k, role);
    ref_choose (&rnd, all, k, chosen);
    for (unsigned i = 0; i < k; i++)
      mask |= BIT (chosen[i]);
    check_survivors (k, all - k, role, mask);
  }
}

/* Against what defines the answer: a source that depends on earlier ones
 * gets 0, so that the rest are independent and the answer is the only
 * one; there is one if and only if the targets do not add to the rank.
 */
static void
check_express (unsigned nr_vars, unsigned nr_src, const uint8_t *source,
               unsigned nr_tgt, const uint8_t *target)
{
  uint8_t *both = ref_alloc ((nr_src + nr_tgt) * nr_vars);
  uint8_t *coef = ref_alloc (nr_src * nr_tgt);
  unsigned rank = 0;
  int r = matrix_express (8, nr_vars, nr_src, source, nr_tgt, target, coef);

  memcpy (both, source, nr_src * nr_vars);
  memcpy (both + nr_src * nr_vars, target, nr_tgt * nr_vars);
  if (ref_rank (nr_src + nr_tgt, nr_vars, both) !=
      ref_rank (nr_src, nr_vars, source))
    assert_int_equal (r, -1);
  else {
    assert_int_equal (r, 0);
    check_product (nr_vars, nr_src, source, nr_tgt, target, coef);
    for (unsigned s = 0; s < nr_src; s++) {
      unsigned next = ref_rank (s + 1, nr_vars, source);

      if (next == rank)
        for (unsigned t = 0; t < nr_tgt; t++)
          assert_int_equal (coef[t * nr_src + s], 0);
      rank = next;
    }
  }
  free (both);
  free (coef);
}

/* Vectors that are zero, equal, sums of others, units, or anything. */
static void
random_vectors (struct ref_random *rnd, unsigned nr, unsigned len,
                uint8_t *v, const uint8_t *other, unsigned nr_other)
{
  memset (v, 0, nr * len);
  for (unsigned i = 0; i < nr; i++) {
    uint8_t *to = v + i * len;

    switch (ref_below (rnd, 6)) {
    case 0:
      break;
    case 1:
      to[ref_below (rnd, len)] = 1 + ref_below (rnd, 255);
      break;
    case 2:
      ref_fill (rnd, to, len);
      break;
    default:
      for (unsigned n = ref_below (rnd, 4); n > 0 && nr_other; n--) {
        const uint8_t *from = other + ref_below (rnd, nr_other) * len;
        uint8_t c = ref_random (rnd);

        for (unsigned b = 0; b < len; b++)
          to[b] ^= ref_mul (c, from[b]);
      }
      break;
    }
    if (other == v)
      nr_other = i + 1;
  }
}

static void
test_express_degenerate (void **state)
{
  struct ref_random rnd = { seed };
  uint8_t source[12 * 12], target[12 * 12];
  unsigned nr_ok = 0;

  for (unsigned n = 0; n < 4000; n++) {
    unsigned nr_vars = 1 + ref_below (&rnd, 12);
    unsigned nr_src = ref_below (&rnd, 13);
    unsigned nr_tgt = 1 + ref_below (&rnd, 4);
    uint8_t coef[12 * 12];

    random_vectors (&rnd, nr_src, nr_vars, source, source, 0);
    random_vectors (&rnd, nr_tgt, nr_vars, target, source, nr_src);
    check_express (nr_vars, nr_src, source, nr_tgt, target);
    nr_ok += matrix_express (8, nr_vars, nr_src, source, nr_tgt, target,
                             coef) == 0;
  }
  /* Both outcomes were tried. */
  assert_in_range (nr_ok, 200, 3800);
}

static void
test_express_biggest (void **state)
{
  struct ref_random rnd = { seed };
  size_t len = MATRIX_MAX * MATRIX_MAX;
  uint8_t *source = ref_alloc (len), *target = ref_alloc (len);
  uint8_t *coef = ref_alloc (len);

  do
    ref_fill (&rnd, source, len);
  while (ref_rank (MATRIX_MAX, MATRIX_MAX, source) < MATRIX_MAX);
  ref_fill (&rnd, target, len);
  assert_int_equal (matrix_express (8, MATRIX_MAX, MATRIX_MAX, source,
                                    MATRIX_MAX, target, coef), 0);
  check_product (MATRIX_MAX, MATRIX_MAX, source, 4, target, coef);
  /* One source less spans less. */
  assert_int_equal (matrix_express (8, MATRIX_MAX, MATRIX_MAX - 1, source,
                                    MATRIX_MAX, target, coef), -1);
  free (source);
  free (target);
  free (coef);
}

/* No sources, no targets. */
static void
test_express_nothing (void **state)
{
  uint8_t zero[4] = { 0 }, one[4] = { 0, 1, 0, 0 }, coef[4];

  assert_int_equal (matrix_express (8, 4, 0, one, 1, zero, coef), 0);
  assert_int_equal (matrix_express (8, 4, 0, one, 1, one, coef), -1);
  assert_int_equal (matrix_express (8, 4, 1, one, 0, one, coef), 0);
  assert_int_equal (matrix_express (8, 4, 1, zero, 1, one, coef), -1);
  assert_int_equal (matrix_express (8, 4, 1, one, 1, zero, coef), 0);
  assert_int_equal (coef[0], 0);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_field),
    cmocka_unit_test (test_field_region),
    cmocka_unit_test (test_new),
    cmocka_unit_test (test_rs_definition),
    cmocka_unit_test (test_rs_prefix),
    cmocka_unit_test (test_vectors),
    cmocka_unit_test (test_minors),
    cmocka_unit_test (test_minors_sampled),
    cmocka_unit_test (test_survivors),
    cmocka_unit_test (test_express_degenerate),
    cmocka_unit_test (test_express_biggest),
    cmocka_unit_test (test_express_nothing),
  };

  seed = ref_seed ();
  return cmocka_run_group_tests (tests, NULL, NULL);
}
