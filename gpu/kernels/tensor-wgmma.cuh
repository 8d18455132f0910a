/* gpuraid: the product of bits by four warps, with compute capability 9.0.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TENSOR_WGMMA_CUH
#define GPURAID_TENSOR_WGMMA_CUH

#include "gpu/kernels/tensor.cuh"

/* The matrix at an address in shared memory: bytes from one block to the next,
 * and from 8 columns to the next, in units of 16.
 */
typedef u64 matrix_place;

INLINE matrix_place
place_matrix (u32 at)
{
  return (u64) (at >> 4) | (u64) (128 >> 4) << 16 | (u64) (256 >> 4) << 32;
}

/* From one group to the next. */
template <int HALVES> INLINE matrix_place
group_stride (void)
{
  return HALVES * GROUP_LEN / 16;
}

/* Once this thread has filled its part of the matrix. */
INLINE void
matrix_is_filled (void)
{
  fence_shared ();
}

/* Conversions for all bits would be slower. */
#define CONVERTED 0x57

template <int HALVES> INLINE void
start_product (u32 d[4][16], const u32 a[4][2 * HALVES], matrix_place matrix)
{
  wgmma_begin ();
#pragma unroll
  for (int j = 0; j < 4; j++)
    wgmma<0> (d[j], a[j], matrix);
  if (HALVES == 4)
#pragma unroll
    for (int j = 0; j < 4; j++)
      wgmma<1> (d[j], a[j] + HALVES, matrix + 2 * GROUP_LEN / 16);
  wgmma_end ();
}

/* The 16 bytes of a group's output that are this lane's.  While the first half
 * is multiplied: its slot, and the number of its cell.
 */
template <int HALVES, bool SAFE> INLINE void
multiply (const struct operands<HALVES> &f, matrix_place matrix, u32 r[4],
          u32 slot_at, u32 outputs_at, u32 slot[2], u32 &cell)
{
  u32 d[4][16];

  start_product<HALVES> (d, f.a[0], matrix);
  shared_load2 (slot, slot_at);
  cell = shared_load (outputs_at + slot[0]);
  wgmma_wait (d);
  r[0] = gather<SAFE, CONVERTED> (d, 0);
  r[1] = gather<SAFE, CONVERTED> (d, 1);
  start_product<HALVES> (d, f.a[1], matrix);
  wgmma_wait (d);
  r[2] = gather<SAFE, CONVERTED> (d, 0);
  r[3] = gather<SAFE, CONVERTED> (d, 1);
}

#endif
