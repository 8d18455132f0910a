/* gpuraid: coders on the CPU that make tables of a matrix.
 *
 * The tables are kept for the next job with the same matrix, as are the XOR
 * programs of a matrix with packets.  A kind of coder only makes tables and
 * multiplies by them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CODER_TABLE_H
#define GPURAID_CODER_TABLE_H

#include "gf/cpu/cpu.h"

/* Any thread for both.  rows and cols are 1 to MATRIX_MAX. */
struct table_ops {
  size_t element_len;           /* bytes of tables for each element */
  unsigned pq_cols;             /* P and Q of at most this many columns are
                                 * made by ISA-L's pq_gen, not product */

  /* From coef, rows x cols. */
  void (*make) (unsigned rows, unsigned cols, const uint8_t *coef,
                uint64_t *table);
  /* dst[j] = sum over i of coef[j*cols + i] * src[i]: len bytes each, a
   * multiple of 64, all 64-byte aligned.
   */
  void (*product) (unsigned rows, unsigned cols, const uint64_t *table,
                   const uint8_t *const *src, uint8_t *const *dst,
                   size_t len);
};

/* nr_threads as for coder_isal_new.  NULL: reported. */
extern struct coder *table_coder_new (const struct coder_ops *,
                                      const struct table_ops *,
                                      int nr_threads);
/* For struct coder_ops. */
extern void table_coder_free (struct coder *);

#endif
