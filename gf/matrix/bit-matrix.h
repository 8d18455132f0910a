/* gpuraid: a matrix over GF(2^w) as a matrix of bits.
 *
 * Pure.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_BIT_MATRIX_H
#define GPURAID_BIT_MATRIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gf/matrix/matrix.h"

/* Row p*w + l is packet l of output p, column i*w + x packet x of input i.  An
 * output's packet is the XOR of the packets whose columns have a 1.
 */
struct bit_matrix {
  unsigned rows, cols;          /* w times those of the matrix */
  unsigned row_words;
  uint64_t word[];              /* rows * row_words; column c of a row is bit
                                 * c % 64 of its word c / 64 */
};

/* Bit (p*w + l, i*w + x) is bit l of a[p][i] * 2^x, as in Jerasure.  NULL
 * with errno; freed with free.
 */
extern struct bit_matrix *bit_matrix_new (const struct matrix *a);

static inline bool
bit_matrix_get (const struct bit_matrix *b, unsigned row, unsigned col)
{
  return b->word[(size_t) row * b->row_words + col / 64] >> (col % 64) & 1;
}

#endif
