/* gpuraid: the coder on GFNI.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "common/log.h"
#include "common/plant.h"
#include "gf/cpu/simd.h"
#include "gf/cpu/table.h"
#include "gf/matrix/affine.h"

static void
simd_make (unsigned rows, unsigned cols, const uint8_t *coef,
           uint64_t *table)
{
  for (unsigned i = 0; i < cols; i++)
    for (unsigned j = 0; j < rows; j++)
      *table++ = affine_matrix (coef[j * cols + i] ^ PLANTED ("simd-wrong"));
}

/* On one core of a Zen 5 pq_gen is 1.2 to 1.5 times as fast at 4+2 and 8+2,
 * since it writes past the cache; from 16+2 on GFNI is, 1.1 to 1.8 times.  With
 * CRCs, which read what was written, there is no difference up to 8+2.
 */
#define PQ_COLS 8

static const struct table_ops table_ops[] = {
  [SIMD_AVX2] = {
    .element_len = 8, .pq_cols = PQ_COLS,
    .make = simd_make, .product = simd_product_avx2,
  },
  [SIMD_AVX512] = {
    .element_len = 8, .pq_cols = PQ_COLS,
    .make = simd_make, .product = simd_product_avx512,
  },
};

static const struct coder_ops simd_ops = {
  .name = "simd",
  .start = cpu_coder_start,
  .submit = cpu_coder_submit,
  .shares = cpu_coder_shares,
  .free = table_coder_free,
};

int
coder_simd_check (enum simd_level level)
{
  if (level != SIMD_NONE && level <= simd_level ())
    return 0;
  log_error ("coder=simd: this processor has no GFNI with %s: use coder=auto "
             "or coder=isal", level == SIMD_AVX512 ? "AVX-512" : "AVX2");
  return -1;
}

struct coder *
coder_simd_new (enum simd_level level, int nr_threads)
{
  if (coder_simd_check (level) == -1)
    return NULL;
  log_debug ("coder=simd: GFNI with %s",
             level == SIMD_AVX512 ? "AVX-512" : "AVX2");
  return table_coder_new (&simd_ops, &table_ops[level], nr_threads);
}
