/* gpuraid: products of cells by GFNI.
 *
 * Two loops from one text, simd-loop.h: with vectors of 64 bytes for AVX-512,
 * and of 32 for AVX2.  Only functions with the attribute are compiled for
 * these; they are called only where simd_level says so.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdbool.h>
#include <stdlib.h>

#include "common/bits.h"
#include "gf/cpu/simd-product.h"

static enum simd_level limit = SIMD_AVX512;

void
simd_limit (enum simd_level most)
{
  limit = most;
}

#ifdef __x86_64__

#include <immintrin.h>

/* Bytes.  From memory 10+4 is 1.3 times as fast as without, 20+8 1.2 times;
 * from 512 on any distance is as good.
 */
#define FETCH_AHEAD 1024

/* These functions ask the system too: it must save the registers. */
static enum simd_level
find_level (void)
{
  if (!__builtin_cpu_supports ("gfni") || !__builtin_cpu_supports ("avx2"))
    return SIMD_NONE;
  return __builtin_cpu_supports ("avx512f") &&
    __builtin_cpu_supports ("avx512bw") ? SIMD_AVX512 : SIMD_AVX2;
}

/* avx512bw: clang's header asks for it. */
#define NAME(name) name##_avx512
#define TARGET __attribute__ ((target ("gfni,avx512f,avx512bw")))
#define VECTOR_LEN 64
#define MAX_ROWS 4
#define MULTIPLY(x, a)                                          \
  ((vector) _mm512_gf2p8affine_epi64_epi8 ((__m512i) (x), (__m512i) (a), 0))
#include "gf/cpu/simd-loop.h"

/* With 4 rows there are more sums than registers. */
#define NAME(name) name##_avx2
#define TARGET __attribute__ ((target ("gfni,avx2")))
#define VECTOR_LEN 32
#define MAX_ROWS 3
#define MULTIPLY(x, a)                                          \
  ((vector) _mm256_gf2p8affine_epi64_epi8 ((__m256i) (x), (__m256i) (a), 0))
#include "gf/cpu/simd-loop.h"

#else /* !__x86_64__ */

static enum simd_level
find_level (void)
{
  return SIMD_NONE;
}

void
simd_product_avx2 (unsigned rows, unsigned cols, const uint64_t *a,
                   const uint8_t *const *src, uint8_t *const *dst, size_t len)
{
  abort ();
}

void
simd_product_avx512 (unsigned rows, unsigned cols, const uint64_t *a,
                     const uint8_t *const *src, uint8_t *const *dst,
                     size_t len)
{
  abort ();
}

#endif

enum simd_level
simd_level (void)
{
  return MIN (find_level (), limit);
}
