/* gpuraid: the coder on ISA-L.
 *
 * ISA-L works from tables in a layout of its own: 2.31 packs them differently
 * if the CPU has GFNI.  So they are made for exactly the rows and columns of
 * one call, have the size that its documentation asks for, and are never read
 * here.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <isa-l/erasure_code.h>

#include "common/plant.h"
#include "gf/cpu/table.h"

static void
isal_make (unsigned rows, unsigned cols, const uint8_t *coef,
           uint64_t *table)
{
  ec_init_tables (cols, rows, (uint8_t *) coef, (uint8_t *) table);
}

static void
isal_product (unsigned rows, unsigned cols, const uint64_t *table,
              const uint8_t *const *src, uint8_t *const *dst, size_t len)
{
  ec_encode_data (len, cols, rows, (uint8_t *) table, (uint8_t **) src,
                  (uint8_t **) dst);
  if (PLANTED ("isal-wrong"))
    dst[rows - 1][len - 1] ^= 1;
}

static const struct table_ops isal_table_ops = {
  .element_len = 32,
  .pq_cols = MATRIX_MAX,
  .make = isal_make,
  .product = isal_product,
};

static const struct coder_ops isal_ops = {
  .name = "isal",
  .start = cpu_coder_start,
  .submit = cpu_coder_submit,
  .shares = cpu_coder_shares,
  .free = table_coder_free,
};

struct coder *
coder_isal_new (int nr_threads)
{
  return table_coder_new (&isal_ops, &isal_table_ops, nr_threads);
}
