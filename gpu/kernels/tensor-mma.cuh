/* gpuraid: the product of bits by one warp, with compute capability 8.x.
 *
 * Not for 10.0 and later, which have to do without the instruction.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TENSOR_MMA_CUH
#define GPURAID_TENSOR_MMA_CUH

#include "gpu/kernels/tensor.cuh"

/* Its address in shared memory. */
typedef u32 matrix_place;

INLINE matrix_place
place_matrix (u32 at)
{
  return at;
}

/* From one group to the next. */
template <int HALVES> INLINE matrix_place
group_stride (void)
{
  return HALVES * GROUP_LEN;
}

/* Once this thread has filled its part of the matrix: a barrier is enough. */
INLINE void
matrix_is_filled (void)
{
}

#define CONVERTED 0xff

/* This lane's words of 8 columns: column lane / 4, word lane % 4 of each
 * block.
 */
template <int HALVES> INLINE void
load_columns (matrix_place matrix, int n, u32 b[HALVES])
{
#pragma unroll
  for (int h = 0; h < HALVES; h++)
    b[h] = shared_load (matrix + h / 2 * (2 * GROUP_LEN) + n * 256 +
                        h % 2 * 128 + 4 * (threadIdx.x % 32));
}

template <int HALVES> INLINE void
product (u32 d[4][16], const u32 a[4][2 * HALVES],
         const u32 b[4][HALVES])
{
#pragma unroll
  for (int n = 0; n < 4; n++)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      mma<0> (d[j] + 4 * n, a[j], b[n]);
      if (HALVES == 4)
        mma<1> (d[j] + 4 * n, a[j] + HALVES, b[n] + 2);
    }
}

/* The 16 bytes of a group's output that are this lane's; its slot, and the
 * number of its cell.
 */
template <int HALVES, bool SAFE> INLINE void
multiply (const struct operands<HALVES> &f, matrix_place matrix, u32 r[4],
          u32 slot_at, u32 outputs_at, u32 slot[2], u32 &cell)
{
  u32 b[4][HALVES], d[4][16];

#pragma unroll
  for (int n = 0; n < 4; n++)
    load_columns<HALVES> (matrix, n, b[n]);
  shared_load2 (slot, slot_at);
  cell = shared_load (outputs_at + slot[0]);
#pragma unroll
  for (int half = 0; half < 2; half++) {
    product<HALVES> (d, f.a[half], b);
    r[2 * half] = gather<SAFE, CONVERTED> (d, 0);
    r[2 * half + 1] = gather<SAFE, CONVERTED> (d, 1);
  }
}

#endif
