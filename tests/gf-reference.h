/* gpuraid: slow and obvious GF(2^8) for the tests of gf/, and the shipped
 * vectors.
 *
 * Nothing here uses gf/.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_GF_REFERENCE_H
#define GPURAID_GF_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

/* a * b modulo 0x11d, bit by bit. */
extern uint8_t ref_mul (uint8_t a, uint8_t b);
/* The same in GF(2^w) modulo poly. */
extern uint8_t ref_mul_w (unsigned w, unsigned poly, uint8_t a, uint8_t b);
/* 1 / a, by trying all; a is not 0. */
extern uint8_t ref_inv (uint8_t a);

/* The rank of nr vectors of len bytes each, len and nr up to 192. */
extern unsigned ref_rank (unsigned nr, unsigned len, const uint8_t *vectors);

/* A generator of its own for each thread. */
struct ref_random {
  uint64_t state;
};
extern uint64_t ref_random (struct ref_random *);
/* 0 to n-1 */
extern unsigned ref_below (struct ref_random *, unsigned n);
extern void ref_fill (struct ref_random *, void *buf, size_t len);
/* nr distinct ascending numbers below n */
extern void ref_choose (struct ref_random *, unsigned n, unsigned nr,
                        unsigned *chosen);
/* From $SEED or the clock; printed. */
extern uint64_t ref_seed (void);

/* Memory that fails the test when there is none.  64-byte aligned; len
 * may be 0.
 */
extern void *ref_alloc (size_t len);

/* One set of a file of vectors: rows parity cells from cols data cells. */
struct ref_vectors {
  const char *name;             /* of the set, or its file */
  unsigned rows, cols;
  size_t len;                   /* bytes a cell, a multiple of 64 */
  uint8_t *coef;                /* rows x cols */
  uint8_t **in;                 /* cols cells */
  uint8_t **parity;             /* rows cells */
};

/* Call check with each set of tests/vectors/NAME.  Returns how many; fails
 * the test where the file cannot be read.
 */
extern unsigned ref_each_vectors (const char *name,
                                  void (*check) (const struct ref_vectors *,
                                                 void *opaque),
                                  void *opaque);

#endif
