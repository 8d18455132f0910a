/* gpuraid: multiplication by a constant as an 8x8 bit matrix.
 *
 * Pure.  GFNI's own multiplication has another polynomial, 0x11b.  But a
 * product by a constant is linear in the bits of the other factor, whatever
 * the polynomial is, and GF2P8AFFINEQB multiplies bytes by any bit matrix.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_AFFINE_H
#define GPURAID_AFFINE_H

#include <stdint.h>

/* The matrix of x -> c * x in GF(2^8), for GF2P8AFFINEQB: bit i of the product
 * is the parity of x & byte 7 - i, where byte 0 is the lowest.  Any thread.
 */
extern uint64_t affine_matrix (uint8_t c);

#endif
