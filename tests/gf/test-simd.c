/* gpuraid: products by GFNI, at each level that this processor has, with their
 * bit matrices; and which coder is chosen where there is none.
 *
 * run-tests: check=plain,address,thread
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/bits.h"
#include "common/log.h"
#include "gf/cpu/simd.h"
#include "gf/matrix/affine.h"
#include "gf/matrix/matrix.h"
#include "gpu/coder-choose.h"
#include "tests/gf-reference.h"

#define MAX_CELLS 64
#define MAX_LEN 4096
#define GUARD 64                /* bytes behind each cell that must stay */

static uint64_t seed;

/* What the instruction does with one byte, as its manual says. */
static uint8_t
gf2p8affineqb (uint64_t a, uint8_t x)
{
  uint8_t r = 0;

  for (unsigned i = 0; i < 8; i++)
    r |= (nr_bits (a >> (8 * (7 - i)) & x & 0xff) & 1) << i;
  return r;
}

static void
test_matrices (void **state)
{
  for (unsigned c = 0; c < 256; c++)
    for (unsigned x = 0; x < 256; x++)
      assert_int_equal (gf2p8affineqb (affine_matrix (c), x), ref_mul (c, x));
}

/* ---- products ------------------------------------------------------------ */

typedef void product_fn (unsigned rows, unsigned cols, const uint64_t *a,
                         const uint8_t *const *src, uint8_t *const *dst,
                         size_t len);

static const struct {
  enum simd_level level;
  product_fn *fn;
} products[] = {
  { SIMD_AVX2, simd_product_avx2 },
  { SIMD_AVX512, simd_product_avx512 },
};

/* Cells of random bytes, each with its guard, and what they were. */
static uint8_t *mem, *before;

static uint8_t *
cell (uint8_t *base, unsigned i)
{
  return base + i * (MAX_LEN + GUARD);
}

static void
fill (struct ref_random *rnd)
{
  ref_fill (rnd, mem, MAX_CELLS * (MAX_LEN + GUARD));
  memcpy (before, mem, MAX_CELLS * (MAX_LEN + GUARD));
}

/* From cells src[0..cols-1] to cells dst[0..rows-1], by their numbers. */
static void
run (product_fn *fn, unsigned rows, unsigned cols, const uint8_t *coef,
     const unsigned *src, const unsigned *dst, size_t len)
{
  uint64_t a[MAX_CELLS * MAX_CELLS];
  const uint8_t *in[MAX_CELLS];
  uint8_t *out[MAX_CELLS];

  for (unsigned i = 0; i < cols; i++)
    in[i] = cell (mem, src[i]);
  for (unsigned j = 0; j < rows; j++)
    out[j] = cell (mem, dst[j]);
  for (unsigned i = 0; i < cols; i++)
    for (unsigned j = 0; j < rows; j++)
      a[i * rows + j] = affine_matrix (coef[j * cols + i]);
  fn (rows, cols, a, in, out, len);
}

static void
check_product (product_fn *fn, struct ref_random *rnd, unsigned rows,
               unsigned cols, size_t len)
{
  uint8_t coef[MAX_CELLS * MAX_CELLS];
  unsigned number[MAX_CELLS];

  for (unsigned i = 0; i < MAX_CELLS; i++)
    number[i] = i;
  fill (rnd);
  ref_fill (rnd, coef, rows * cols);
  run (fn, rows, cols, coef, number, number + cols, len);
  for (unsigned j = 0; j < rows; j++) {
    for (size_t b = 0; b < len; b++) {
      uint8_t sum = 0;

      for (unsigned i = 0; i < cols; i++)
        sum ^= ref_mul (coef[j * cols + i], cell (before, i)[b]);
      cell (before, cols + j)[b] = sum;
    }
  }
  assert_memory_equal (mem, before, MAX_CELLS * (MAX_LEN + GUARD));
}

/* Every length to beyond two quads, and every way to divide rows into passes.
 */
static void
test_products (void **state)
{
  struct ref_random rnd = { seed };

  for (unsigned n = 0; n < ARRAY_LEN (products); n++) {
    if (products[n].level > simd_level ())
      continue;
    for (size_t len = 0; len <= 1088; len += 64)
      check_product (products[n].fn, &rnd, 1 + ref_below (&rnd, 9),
                     1 + ref_below (&rnd, 5), len);
    for (unsigned rows = 1; rows <= 13; rows++)
      check_product (products[n].fn, &rnd, rows, 1 + ref_below (&rnd, 5),
                     64 * (1 + ref_below (&rnd, 20)));
    check_product (products[n].fn, &rnd, 16, 32, MAX_LEN);
    check_product (products[n].fn, &rnd, 63, 1, 448);
    check_product (products[n].fn, &rnd, 1, 63, 448);
  }
}

/* ---- loss ---------------------------------------------------------------- */

static void
parity_row (unsigned k, unsigned r, const uint8_t *parity, uint8_t *row)
{
  memset (row, 0, k);
  if (r < k)
    row[r] = 1;
  else
    memcpy (row, parity + (r - k) * k, k);
}

/* The lost cells from the first k others, beside the old ones. */
static void
check_loss (product_fn *fn, unsigned k, unsigned m, const uint8_t *parity,
            uint64_t lost, size_t len)
{
  uint8_t source[32 * 32], target[16 * 32], coef[16 * 32];
  unsigned src[32], dst[16], nr_src = 0, nr_lost = 0;

  for (unsigned r = 0; r < k + m; r++) {
    if (lost & BIT (r)) {
      parity_row (k, r, parity, target + nr_lost * k);
      dst[nr_lost++] = r;
    }
    else if (nr_src < k) {
      parity_row (k, r, parity, source + nr_src * k);
      src[nr_src++] = r;
    }
  }
  assert_int_equal (matrix_express (8, k, k, source, nr_lost, target, coef),
                    0);
  for (unsigned j = 0; j < nr_lost; j++)
    memset (cell (mem, dst[j]), 0xee, len);
  run (fn, nr_lost, k, coef, src, dst, len);
  assert_memory_equal (mem, before, MAX_CELLS * (MAX_LEN + GUARD));
}

/* All patterns of loss, or if that is too many nr random ones. */
static void
check_losses (product_fn *fn, unsigned k, unsigned m, unsigned nr)
{
  struct ref_random rnd = { seed };
  unsigned number[48], chosen[16];
  uint8_t parity[16 * 32];
  const size_t len = 64 * (1 + ref_below (&rnd, 9));
  uint64_t lost;

  for (unsigned i = 0; i < k + m; i++)
    number[i] = i;
  fill (&rnd);
  matrix_rs_parity (k, m, parity);
  run (fn, m, k, parity, number, number + k, len);
  memcpy (before, mem, MAX_CELLS * (MAX_LEN + GUARD));
  for (lost = 1; nr == 0 && lost < BIT (k + m); lost++)
    if (nr_bits (lost) <= m)
      check_loss (fn, k, m, parity, lost, len);
  for (unsigned n = 0; n < nr; n++) {
    const unsigned nr_lost = 1 + ref_below (&rnd, m);

    ref_choose (&rnd, k + m, nr_lost, chosen);
    lost = 0;
    for (unsigned j = 0; j < nr_lost; j++)
      lost |= BIT (chosen[j]);
    check_loss (fn, k, m, parity, lost, len);
  }
}

static void
test_losses (void **state)
{
  for (unsigned n = 0; n < ARRAY_LEN (products); n++) {
    if (products[n].level > simd_level ())
      continue;
    check_losses (products[n].fn, 1, 1, 0);
    check_losses (products[n].fn, 4, 2, 0);
    check_losses (products[n].fn, 10, 4, 0);
    check_losses (products[n].fn, 20, 8, 100);
    check_losses (products[n].fn, 32, 16, 100);
  }
}

/* ---- the choice ---------------------------------------------------------- */

static char message[256];
static unsigned nr_messages;

static void
keep_message (enum log_level level, const char *fmt, va_list args)
{
  if (level == LOG_LEVEL_ERROR) {
    vsnprintf (message, sizeof message, fmt, args);
    nr_messages++;
  }
}

static void
check_refused (struct coder *c)
{
  assert_null (c);
  assert_int_equal (nr_messages, 1);
  assert_string_equal (message, "coder=simd: this processor has no GFNI with "
                       "AVX2: use coder=auto or coder=isal");
  nr_messages = 0;
}

static void
check_name (struct coder *c, const char *name)
{
  assert_non_null (c);
  assert_string_equal (c->ops->name, name);
  coder_free (c);
}

/* What coder=NAME gives without a device. */
static struct coder *
choose (const char *name)
{
  struct coder_choice choice = {
    .name = name, .checked = strcmp (name, "auto") == 0,
  };

  return coder_choose (&choice);
}

static void
test_without (void **state)
{
  struct coder_choice choice = { .name = "simd" };

  simd_limit (SIMD_NONE);
  assert_int_equal (simd_level (), SIMD_NONE);
  check_name (coder_fastest_new (0), "isal");
  check_name (choose ("auto"), "isal");
  check_name (choose ("isal"), "isal");

  log_set_sink (keep_message);
  check_refused (coder_new ("simd", 0));
  check_refused (choose ("simd"));
  assert_int_equal (coder_choice_check (&choice), -1);
  check_refused (NULL);
  log_set_sink (NULL);
}

static void
test_with (void **state)
{
  struct coder_choice choice = { .name = "simd" };

  if (simd_level () == SIMD_NONE)
    return;
  check_name (coder_fastest_new (0), "simd");
  check_name (coder_new ("simd", 0), "simd");
  check_name (choose ("auto"), "simd");
  check_name (choose ("simd"), "simd");
  assert_int_equal (coder_choice_check (&choice), 0);

  simd_limit (SIMD_AVX2);
  assert_int_equal (simd_level (), SIMD_AVX2);
  check_name (coder_fastest_new (0), "simd");
  log_set_sink (keep_message);
  assert_null (coder_simd_new (SIMD_AVX512, 0));
  assert_non_null (strstr (message, "AVX-512"));
  log_set_sink (NULL);
}

static int
teardown (void **state)
{
  simd_limit (SIMD_AVX512);
  nr_messages = 0;
  return 0;
}

int
main (void)
{
  static const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_matrices),
    cmocka_unit_test (test_products),
    cmocka_unit_test (test_losses),
    cmocka_unit_test_teardown (test_without, teardown),
    cmocka_unit_test_teardown (test_with, teardown),
  };
  int r;

  seed = ref_seed ();
  printf ("level %d\n", simd_level ());
  mem = ref_alloc (MAX_CELLS * (MAX_LEN + GUARD));
  before = ref_alloc (MAX_CELLS * (MAX_LEN + GUARD));
  r = cmocka_run_group_tests (tests, NULL, NULL);
  free (mem);
  free (before);
  return r;
}
