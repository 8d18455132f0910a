/* gpuraid: expand the elements of a matrix into bits.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>

#include "common/bits.h"
#include "gf/matrix/bit-matrix.h"
#include "gf/matrix/field.h"

static void
set_bit (struct bit_matrix *b, unsigned row, unsigned col)
{
  b->word[(size_t) row * b->row_words + col / 64] |= BIT (col % 64);
}

struct bit_matrix *
bit_matrix_new (const struct matrix *a)
{
  const struct field *f = field_get (a->w);
  const unsigned w = a->w, row_words = div_round_up (a->cols * w, 64);
  struct bit_matrix *b;

  b = calloc (1, sizeof *b + (size_t) 8 * a->rows * w * row_words);
  if (b == NULL)
    return NULL;
  b->rows = a->rows * w;
  b->cols = a->cols * w;
  b->row_words = row_words;
  for (unsigned p = 0; p < a->rows; p++)
    for (unsigned i = 0; i < a->cols; i++)
      for (unsigned x = 0; x < w; x++) {
        const unsigned bits = f->mul[a->coef[p * a->cols + i]][1u << x];

        FOR_EACH_BIT (l, bits)
          set_bit (b, p * w + l, i * w + x);
      }
  return b;
}
