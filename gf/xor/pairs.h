/* gpuraid: rows of variables, and the pairs that they have in common.
 *
 * Decides which pairs become temporaries; gf/xor/program.c makes a program
 * of the result.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_XOR_PAIRS_H
#define GPURAID_XOR_PAIRS_H

#include <stdbool.h>

#include "gf/matrix/bit-matrix.h"

/* The most variables: what a term can name. */
#define XOR_MAX_VARS 65536u

/* A sum of variables, ascending. */
struct xor_row {
  unsigned nr;
  uint16_t *var;
};

/* Variables are the inputs, then the outputs, then the temporaries. */
struct xor_pairs {
  unsigned nr_in, nr_out;
  unsigned nr_vars;             /* so far */
  struct xor_row *row;          /* nr_out */
  uint16_t (*pair)[2];          /* of a temporary, by its variable less
                                 * nr_in + nr_out */

  /* Private to pairs.c. */
  unsigned max_vars;            /* room */
  unsigned set_words;           /* of a set of rows */
  uint64_t *rows_of;            /* by variable: the rows that have it */
  uint32_t *seen;               /* by variable: scratch */
  uint16_t *row_room;
  struct xor_bucket *bucket;    /* by count, nr_out + 1 */
  uint64_t random;
  uint64_t work;                /* steps so far */
};

/* NULL with errno. */
extern struct xor_pairs *xor_pairs_new (const struct bit_matrix *b);
extern void xor_pairs_free (struct xor_pairs *);

/* Begin anew: the rows are those of b, or, where percent > 0, another
 * output and the difference to it, wherever that has at most percent of
 * the terms.  0, or -1 with errno.
 */
extern int xor_pairs_load (struct xor_pairs *, const struct bit_matrix *b,
                           unsigned percent, uint64_t seed);

/* Take pairs out of the rows until each is in at most one row, or for greedy in
 * fewer than min_rows (2 or more), or until work exceeds max_work.  0, or -1
 * with errno.
 */
extern int xor_pairs_iterative (struct xor_pairs *, uint64_t max_work);
extern int xor_pairs_greedy (struct xor_pairs *, unsigned min_rows,
                             uint64_t max_work);

extern unsigned xor_pairs_nr_xors (const struct xor_pairs *);

#endif
