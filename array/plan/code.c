/* gpuraid: the matrix of each code.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "array/plan/code.h"
#include "common/bytes/crc32c.h"

const char *
code_name (enum code code)
{
  return code == CODE_CRS ? "crs" : "rs";
}

unsigned
code_default_w (enum code code, unsigned k, unsigned m)
{
  return code == CODE_CRS && k + m <= 16 ? 4 : 8;
}

void
code_parity (enum code code, unsigned w, unsigned k, unsigned m,
             uint8_t *coef)
{
  if (code == CODE_CRS)
    matrix_crs_parity (k, m, w, coef);
  else
    matrix_rs_parity (k, m, coef);
}

uint32_t
code_parity_crc (enum code code, unsigned w, unsigned k, unsigned m)
{
  uint8_t coef[MAX_SLOTS * MAX_SLOTS / 4];

  code_parity (code, w, k, m, coef);
  return crc32c (coef, k * m);
}

struct matrix *
code_matrix (enum code code, unsigned w, unsigned rows, unsigned cols,
             const uint8_t *coef)
{
  if (code == CODE_CRS)
    return matrix_new_packets (w, BLOCK_LEN / w, rows, cols, coef);
  return matrix_new (rows, cols, coef);
}
