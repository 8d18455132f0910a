/* gpuraid: shared by the founding systems that are Cauchy Reed-Solomon: their
 * matrices, and the forms of bit matrices.
 *
 * Pure.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_SEEDS_CAUCHY_H
#define GPURAID_SEEDS_CAUCHY_H

#include <stdint.h>

#include "gf/matrix/bit-matrix.h"
#include "measure/method.h"

/* The m x k parity rows, for method_ops.parity: 0, or -1 with errno ERANGE if k
 * + m > 2^w, or w is not 1 to 8.
 *
 * low: 1 / (p ^ (m+i)), Jerasure's original, of G-CRS.  good: the same with
 * fewer ones, as Jerasure improves it: row 0 all ones,
 *   then each row divided by the element that leaves the fewest ones.
 *   For PErasure, which has its matrices of Jerasure but does not say which.
 * high: 1 / ((k+p) ^ i), of Sobe.
 */
extern int cauchy_low (unsigned k, unsigned m, unsigned w, uint8_t *coef);
extern int cauchy_good (unsigned k, unsigned m, unsigned w, uint8_t *coef);
extern int cauchy_high (unsigned k, unsigned m, unsigned w, uint8_t *coef);

/* bit_matrix_new, and why. */
extern struct bit_matrix *cauchy_bits (const struct matrix *a, char *why);
/* Its elements, row major, freed by the caller; NULL: why. */
extern int *cauchy_ints (const struct bit_matrix *, char *why);

/* Can the kernels of these methods do the case?  0; -1: why not. */
extern int cauchy_check (const struct bench_case *, size_t packet_len,
                         char *why);

#endif
