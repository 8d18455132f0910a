/* gpuraid: products of cells by GFNI, an extension of x86 processors.
 *
 * Where there is none, on other architectures too, the level is SIMD_NONE.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_SIMD_H
#define GPURAID_SIMD_H

#include <stddef.h>
#include <stdint.h>

/* GFNI, with the vectors of one of these.  Ordered: the later the faster. */
enum simd_level { SIMD_NONE, SIMD_AVX2, SIMD_AVX512 };

/* What processor and system support.  Any thread. */
extern enum simd_level simd_level (void);

/* For tests: simd_level never returns more than this.  Not while another
 * thread may ask for the level.
 */
extern void simd_limit (enum simd_level most);

/* dst[j] = sum over i of coef[j*cols + i] * src[i], in GF(2^8).  Any thread.
 *
 *   a      cols x rows: a[i*rows + j] = affine_matrix (coef[j*cols + i])
 *   src    cols cells, len bytes each, 64-byte aligned, only read
 *   dst    rows cells, likewise; none may overlap a src
 *   len    bytes, a multiple of 64
 *
 * rows and cols are at least 1.  Only where the level is this or more.
 */
extern void simd_product_avx2 (unsigned rows, unsigned cols, const uint64_t *a,
                               const uint8_t *const *src, uint8_t *const *dst,
                               size_t len);
extern void simd_product_avx512 (unsigned rows, unsigned cols,
                                 const uint64_t *a, const uint8_t *const *src,
                                 uint8_t *const *dst, size_t len);

#endif
