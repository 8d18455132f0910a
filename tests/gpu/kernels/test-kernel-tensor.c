/* gpuraid: the tables of the kernels on tensor cores give the products over
 * GF(2^8), for every size; and which kernels are used for which matrix.
 *
 * The product of bits is made here as the kernels make it, one byte of each
 * cell and chunk at a time.
 *
 * run-tests: no-thread check=plain,address
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gf/matrix/field.h"
#include "gpu/text/tensor.h"
#include "tests/gf-reference.h"

#define MAX_CHUNKS 8

struct tables {
  struct matrix *a;
  uint32_t *word;
  size_t len;
  struct kernel_shape shape[KERNEL_TENSOR_KINDS];
  unsigned blocks, nr_chunks;
};

static void
init (struct tables *t, unsigned rows, unsigned cols, const uint8_t *coef)
{
  t->a = matrix_new (rows, cols, coef);
  assert_non_null (t->a);
  t->word = kernel_tensor (t->a, &t->len, t->shape);
  t->blocks = cols > 32 ? 4 : 2;
  t->nr_chunks = t->shape[0].block_chunks << t->shape[0].lane_chunks_log;
}

static void
destroy (struct tables *t)
{
  matrix_free (t->a);
  free (t->word);
}

/* What lane q of a quad has of a block: bytes of 4 cells of a chunk. */
static uint32_t
operand (const struct tables *t, uint8_t data[MAX_CHUNKS][64], unsigned block,
         unsigned q)
{
  const unsigned log = t->shape[0].lane_chunks_log;
  const bool by_block = t->shape[0].block_chunks == 2;
  const unsigned chunk = (by_block ? block << log : 0) + (q >> (2 - log));
  const unsigned cell = (by_block ? 0 : block * (16 >> log)) +
    4 * (q & (3 >> log));
  uint32_t r = 0;

  for (unsigned i = 0; i < 4; i++)
    if (cell + i < 64)
      r |= (uint32_t) data[chunk][cell + i] << 8 * i;
  return r;
}

/* Column n of a group. */
static unsigned
count (const struct tables *t, uint8_t data[MAX_CHUNKS][64], unsigned group,
       unsigned n)
{
  unsigned nr = 0;

  for (unsigned block = 0; block < t->blocks; block++)
    for (unsigned q = 0; q < 4; q++) {
      const size_t i = (group * t->blocks / 2 + block / 2) * 256 +
        n / 8 * 64 + block % 2 * 32 + n % 8 * 4 + q;

      nr += __builtin_popcount (t->word[i] & operand (t, data, block, q));
    }
  return nr;
}

/* Returns the largest count. */
static unsigned
check_products (const struct tables *t, uint8_t data[MAX_CHUNKS][64])
{
  const struct field *f = field_get (8);
  const struct matrix *a = t->a;
  const unsigned nr = t->nr_chunks * a->rows;
  unsigned most = 0;

  assert_int_equal (t->len, (nr + 3) / 4 * t->blocks * 512);
  for (unsigned slot = 0; slot < nr; slot++) {
    unsigned got = 0, want = 0;

    for (unsigned bit = 0; bit < 8; bit++) {
      const unsigned n = bit / 2 * 8 + slot % 4 * 2 + bit % 2;
      const unsigned c = count (t, data, slot / 4, n);

      got |= (c & 1) << bit;
      if (c > most)
        most = c;
    }
    for (unsigned i = 0; i < a->cols; i++)
      want ^= f->mul[a->coef[slot % a->rows * a->cols + i]]
        [data[slot / a->rows][i]];
    assert_int_equal (got, want);
  }
  return most;
}

/* What is not there may be anything. */
static void
fill (struct ref_random *rnd, uint8_t data[MAX_CHUNKS][64])
{
  for (unsigned c = 0; c < MAX_CHUNKS; c++)
    for (unsigned i = 0; i < 64; i++)
      data[c][i] = ref_below (rnd, 256);
}

static void
check_shapes (const struct tables *t)
{
  for (unsigned kind = 0; kind < KERNEL_TENSOR_KINDS; kind++) {
    const struct kernel_shape *s = &t->shape[kind];

    if (s->name == NULL) {
      assert_int_equal (kind, KERNEL_TENSOR_SYNC);
      assert_true (t->len > kernel_tensor_max_shared[kind]);
      continue;
    }
    assert_true (s->shared_len >= t->len);
    assert_true (s->shared_len <= kernel_tensor_max_shared[kind]);
    assert_int_equal (s->block * s->bytes,
                      t->nr_chunks * 128 * s->block / 32);
    assert_null (s->image->source);
  }
}

static void
test_products (void **state)
{
  struct ref_random rnd = { ref_seed () };
  uint8_t coef[24 * 64], data[MAX_CHUNKS][64];
  struct tables t;

  for (unsigned cols = 1; cols <= 64; cols++)
    for (unsigned rows = 1; rows <= 24; rows += 1 + ref_below (&rnd, 5)) {
      for (unsigned i = 0; i < rows * cols; i++)
        coef[i] = ref_below (&rnd, 256);
      init (&t, rows, cols, coef);
      assert_non_null (t.word);
      check_shapes (&t);
      fill (&rnd, data);
      check_products (&t, data);
      destroy (&t);
    }
}

/* An element times all bytes of only ones: a count is that of its row's ones.
 */
static void
test_counts (void **state)
{
  uint8_t data[MAX_CHUNKS][64], coef[64];
  struct tables t;

  memset (data, 255, sizeof data);
  for (unsigned cols = 1; cols <= 64; cols++)
    for (unsigned c = 1; c < 256; c++) {
      const char *name;
      bool safe;

      memset (coef, c, sizeof coef);
      init (&t, 1, cols, coef);
      assert_non_null (t.word);
      name = t.shape[0].name;
      safe = strlen (name) > 5 &&
        strcmp (name + strlen (name) - 5, "_safe") == 0;
      assert_int_equal (safe, check_products (&t, data) > 255);
      assert_int_equal (strncmp (name, cols > 32 ? "gpuraid_host64"
                                 : "gpuraid_host32", 14), 0);
      destroy (&t);
    }
}

static bool
is_taken (unsigned rows, unsigned cols)
{
  static uint8_t coef[MATRIX_MAX * MATRIX_MAX];
  struct tables t;
  bool taken;

  errno = 0;
  init (&t, rows, cols, coef);
  taken = t.word != NULL;
  if (taken)
    check_shapes (&t);
  else
    assert_int_equal (errno, ENOTSUP);
  destroy (&t);
  return taken;
}

static void
test_refused (void **state)
{
  struct matrix *a;
  struct kernel_shape s[KERNEL_TENSOR_KINDS];
  static const uint8_t one = 1;
  size_t len;

  assert_true (is_taken (100, 32));
  assert_false (is_taken (1, 65));
  assert_false (is_taken (MATRIX_MAX, 64));
  for (unsigned cols = 1; cols <= 64; cols++)
    for (unsigned rows = 1; rows <= 32; rows++)
      assert_true (is_taken (rows, cols));
  for (unsigned rows = 33; rows <= MATRIX_MAX; rows += 7)
    for (unsigned cols = 1; cols <= 64; cols++)
      is_taken (rows, cols);
  a = matrix_new_packets (8, 64, 1, 1, &one);
  errno = 0;
  assert_null (kernel_tensor (a, &len, s));
  assert_int_equal (errno, ENOTSUP);
  matrix_free (a);
}

static void
test_is_best (void **state)
{
  static const struct { unsigned rows, cols; bool best; } cases[] = {
    { 2, 4, false }, { 4, 10, false }, { 8, 20, false }, { 8, 31, false },
    { 3, 32, false }, { 4, 32, true }, { 8, 32, true }, { 11, 31, false },
    { 12, 24, true }, { 16, 32, true }, { 12, 1, true }, { 1, 64, false },
  };

  for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++)
    for (unsigned kind = 0; kind < KERNEL_TENSOR_KINDS; kind++)
      assert_int_equal (kernel_tensor_is_best (kind, cases[i].rows,
                                               cases[i].cols),
                        cases[i].best && kind != KERNEL_TENSOR_SYNC);
}

/* Of what this build has. */
static void
test_kinds (void **state)
{
  static const int none[] = { 75, 100, 103, 120 }, some[] = { 80, 86, 87, 89 };
  const int host = kernel_tensor_kind (90, KERNEL_ON_HOST);
  const int device = kernel_tensor_kind (90, KERNEL_ON_DEVICE);
  const int older = kernel_tensor_kind (80, KERNEL_ON_HOST);

  assert_true (older == -1 || older == KERNEL_TENSOR_SYNC);
  assert_true (host == older || host == KERNEL_TENSOR_HOST);
  assert_true (device == older || device == KERNEL_TENSOR_DEVICE);
  for (unsigned place = 0; place < KERNEL_NR_PLACES; place++) {
    for (unsigned i = 0; i < sizeof none / sizeof none[0]; i++)
      assert_int_equal (kernel_tensor_kind (none[i], place), -1);
    for (unsigned i = 0; i < sizeof some / sizeof some[0]; i++)
      assert_int_equal (kernel_tensor_kind (some[i], place), older);
  }
}

/* Blocks are enough, and not more than is useful. */
static void
test_grid (void **state)
{
  const struct kernel_shape plain = { .block = 256, .bytes = 16 };
  const struct kernel_shape line = { .block = 128, .bytes = 4, .per_sm = 3 };
  struct kernel_params p = { .cell_len = 64 << 10, .nr_rects = 5 };
  unsigned x, y;

  kernel_shape_params (&plain, &p);
  assert_int_equal (p.nr_tiles, 16);
  kernel_grid (&plain, &p, 10, KERNEL_ANY_BLOCKS, &x, &y);
  assert_int_equal (x, 16);
  assert_int_equal (y, 5);
  kernel_grid (&plain, &p, 10, 32, &x, &y);
  assert_int_equal (x, 16);
  assert_int_equal (y, 2);
  kernel_grid (&plain, &p, 10, 3, &x, &y);
  assert_int_equal (x, 3);
  assert_int_equal (y, 1);
  kernel_shape_params (&line, &p);
  assert_int_equal (p.nr_tiles, 128);
  kernel_grid (&line, &p, 10, KERNEL_ANY_BLOCKS, &x, &y);
  assert_int_equal (x, 30);
  assert_int_equal (y, 1);
  kernel_grid (&line, &p, 10, 7, &x, &y);
  assert_int_equal (x, 7);
  kernel_grid (&line, &p, 10000, KERNEL_ANY_BLOCKS, &x, &y);
  assert_int_equal (x, 640);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_products),
    cmocka_unit_test (test_counts),
    cmocka_unit_test (test_refused),
    cmocka_unit_test (test_is_best),
    cmocka_unit_test (test_kinds),
    cmocka_unit_test (test_grid),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
