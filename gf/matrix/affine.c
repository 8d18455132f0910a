/* gpuraid: multiplication by a constant as an 8x8 bit matrix.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "gf/matrix/affine.h"
#include "gf/matrix/field.h"

uint64_t
affine_matrix (uint8_t c)
{
  const struct field *f = field_get (8);
  uint64_t a = 0;

  for (unsigned from = 0; from < 8; from++) {
    const uint8_t product = f->mul[c][1u << from];

    for (unsigned to = 0; to < 8; to++)
      if (product & (1u << to))
        a |= UINT64_C (1) << (8 * (7 - to) + from);
  }
  return a;
}
