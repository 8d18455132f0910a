/* gpuraid: slow and obvious arithmetic, to compare the methods with.
 *
 * Uses of gf/ only the struct of a matrix.  Pure, except for the
 * tables of a field, which the first call for it makes: one thread at a time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_MEASURE_REFERENCE_H
#define GPURAID_MEASURE_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

#include "gf/matrix/matrix.h"

/* GF(2^w). */
struct reference_field {
  uint8_t mul[256][256];
  uint8_t inv[256];             /* inv[0] is 0 */
};

/* w is 1 to 8; never NULL. */
extern const struct reference_field *reference_field (unsigned w);

/* The right bytes off to off+len of output row: dst has room for len.  in:
 * matrix->cols cells.  If the matrix has packets, off and len are multiples of
 * w * packet_len.
 */
extern void reference_row (const struct matrix *, unsigned row,
                           const uint8_t *const *in, size_t off, size_t len,
                           uint8_t *dst);

/* A generator of random numbers: splitmix64. */
extern uint64_t reference_random (uint64_t *state);
extern void reference_fill (uint64_t *state, void *buf, size_t len);

#endif
