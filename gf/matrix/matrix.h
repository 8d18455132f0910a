/* gpuraid: matrices over GF(2^w), and solving.
 *
 * Pure.  An element of a matrix is a byte, whatever its w; row major.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_MATRIX_H
#define GPURAID_MATRIX_H

#include <stddef.h>
#include <stdint.h>

/* The most rows, columns, unknowns, sources or targets. */
#define MATRIX_MAX 256

/* The matrix of a coder's job.  Immutable once made; shared by jobs in many
 * threads; freed with matrix_free when no job uses it any more.
 */
struct matrix {
  uint64_t id;                  /* unique in the process: key of what coders
                                 * derive from the matrix */
  unsigned rows, cols;
  unsigned w;                   /* bits of an element */
  size_t packet_len;            /* 0: a symbol is a byte of a cell (w is 8);
                                 * else bytes: a cell is a row of blocks of
                                 * w packets, and bit b of packet l of a
                                 * block is bit l of its symbol b.  A
                                 * multiple of 8. */
  uint8_t coef[];               /* rows * cols, each below 2^w */
};

/* A copy of coef with a new id; NULL with errno.  rows and cols are 0 to
 * MATRIX_MAX; coef may be NULL where there is none.
 */
extern struct matrix *matrix_new (unsigned rows, unsigned cols,
                                  const uint8_t *coef);
/* The same for packets: code crs, or any other bit matrix code. */
extern struct matrix *matrix_new_packets (unsigned w, size_t packet_len,
                                          unsigned rows, unsigned cols,
                                          const uint8_t *coef);
/* Another matrix with the same coefficients. */
extern struct matrix *matrix_copy (const struct matrix *);
extern void matrix_free (struct matrix *);

/* The m x k parity rows of code rs: row 0 all ones; row 1 is 2^i; row
 * j+1 (j >= 1) is inv (2^-i ^ 2^j) divided by its first element.  k, m >=
 * 1, k + m <= 64.
 *
 * The rows for m are the first rows for m + 1, the columns for k the
 * first for k + 1.  Any k of the k data and m parity cells give all
 * others, for every k and m, because no square minor is 0.  How we know:
 *
 *   k + m <= 64            the algebra at the top of matrix.c, and a test
 *                          of the three conditions that it needs
 *   k <= 24 and m <= 8     a test of every minor
 *   k <= 32 and m <= 6     the same
 *   k + m <= 64, m <= 5    the same
 *   k <= 10 and m <= 10    the same
 *   k <= 8 and m <= 4      a test that solves and compares for every
 *                          choice of k cells
 *   k + m <= 64            random minors, and random choices solved
 *
 * The tests are in tests/gf/test-matrix.c.
 */
extern void matrix_rs_parity (unsigned k, unsigned m, uint8_t *coef);

/* The m x k parity rows of code crs over GF(2^w): a Cauchy matrix whose
 * columns, and then rows, are multiplied by what leaves few ones in the
 * bit matrix.  k, m >= 1, k + m <= 2^w, both at most MATRIX_MAX.
 *
 *   row 0   all ones
 *   row 1   the k elements e with the fewest ones in their w x w bits, of
 *           equal ones the smaller first: so the first is 1
 *   row 2.. for each x other than 0 that is no 1 / e: s / (1/e ^ x), where
 *           s (of equals the smallest) leaves the fewest ones in the row;
 *           the rows with the fewest ones first, of equals the smaller x
 *
 * The rows for m are the first rows for m + 1.  The columns for k are not
 * the first for k + 1, beyond row 1: that cost 12 % more ones at 10+4, w 8,
 * and a stripe of another k is laid out anew anyway.  At 10+4, w 8 there
 * are 671 ones; Jerasure's "good" matrix has 888.
 *
 * Any k of the k data and m parity cells give all others: the algebra is at
 * the top of matrix-crs.c.  tests/gf/test-matrix-crs.c checks the conditions
 * that it needs for every k, m and w, and tries every minor for w <= 4, and
 * for w 5 to 8 those of 10+6, 8+8, 13+4 and 15+3, and random ones.
 */
extern void matrix_crs_parity (unsigned k, unsigned m, unsigned w,
                               uint8_t *coef);

/* Express targets by sources.  All are vectors of the same nr_vars
 * unknowns over GF(2^w).  Find coef so that for each t: target[t] = sum over
 * s of coef[t*nr_src + s] * source[s].
 *
 *   source   nr_src x nr_vars bytes; may be linearly dependent (the
 *            earlier ones are preferred, the others get 0)
 *   target   nr_tgt x nr_vars
 *   coef     nr_tgt x nr_src, out
 *
 * Returns 0, or -1 if some target is not in the span of the sources.
 * nr_vars, nr_src, nr_tgt <= MATRIX_MAX.  Gauss-Jordan elimination.
 * Needs 140 KB of stack.
 */
extern int matrix_express (unsigned w, unsigned nr_vars,
                           unsigned nr_src, const uint8_t *source,
                           unsigned nr_tgt, const uint8_t *target,
                           uint8_t *coef);

#endif
