/* gpuraid: matrices over GF(2^8), polynomial 0x11d, and solving.
 *
 * Pure.  All matrices are bytes, row major.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_MATRIX_H
#define GPURAID_MATRIX_H

#include <stdint.h>

/* What a coder multiplies by.  Immutable once made; shared by jobs in
 * many threads; freed with matrix_free when no job uses it any more.
 */
struct matrix {
  uint64_t id;                  /* never used twice in a process: names
                                 * what coders derive from it */
  unsigned rows, cols;
  uint8_t coef[];               /* rows * cols */
};

/* A copy of coef with a new id; NULL with errno. */
extern struct matrix *matrix_new (unsigned rows, unsigned cols,
                                  const uint8_t *coef);
extern void matrix_free (struct matrix *);

/* The m x k parity rows of code rs, DESIGN.md section 5: row 0 all
 * ones; row 1 is 2^i; row j+1 (j >= 1) is inv (2^-i ^ 2^j) divided by
 * its first element.  k, m >= 1, k + m <= 64.
 */
extern void matrix_rs_parity (unsigned k, unsigned m, uint8_t *coef);

/* Express targets by sources.  All are vectors of the same nr_vars
 * unknowns.  Find coef so that for each t: target[t] = sum over s of
 * coef[t*nr_src + s] * source[s].
 *
 *   source   nr_src x nr_vars bytes; may be linearly dependent (the
 *            earlier ones are preferred, the others get 0)
 *   target   nr_tgt x nr_vars
 *   coef     nr_tgt x nr_src, out
 *
 * Returns 0, or -1 if some target is not in the span of the sources.
 * nr_vars, nr_src, nr_tgt <= 192.  Source: Gauss-Jordan elimination.
 */
extern int matrix_express (unsigned nr_vars,
                           unsigned nr_src, const uint8_t *source,
                           unsigned nr_tgt, const uint8_t *target,
                           uint8_t *coef);

#endif
