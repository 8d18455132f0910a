/* gpuraid: kernels on tensor cores whose lanes load their own words.
 *
 * Each does so one step ahead.  The product is that of the header which is
 * included before.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TENSOR_LOADS_CUH
#define GPURAID_TENSOR_LOADS_CUH

#include "gpu/kernels/tensor.cuh"

/* As in gpu/text/tensor.c. */
#define THREADS 128

/* A lane's part of 16 cells for each block. */
template <int HALVES> INLINE void
load (const struct kernel_params &p, const struct division &v,
      const u32 *cells, const struct walk &w, u32 at, u32 q,
      u32 words[4 * HALVES][4])
{
  const u32 pos = w.tile * (v.span * (THREADS / 32)) + at;
  const u32 *cell = cells + w.rect * (p.cols + p.rows);

  if (w.rect >= p.nr_rects)
    return;
#pragma unroll
  for (int h = 0; h < HALVES; h++)
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const u32 n = 4 * (lane_cells (v, q) + h * block_cells (v)) + i;
      const u32 here = pos + h * block_bytes (v);

      load16_if (n < p.cols && here < p.cell_len, words[4 * h + i],
                 p.in_base + here + (u64) cell[n] * 64);
    }
}

template <int HALVES, bool SAFE> INLINE void
run (const struct kernel_params &p)
{
  extern __shared__ __align__ (128) u32 dynamic[];      /* matrix */
  __shared__ shared_cells cells;
  __shared__ shared_slots slots;
  const u32 lane = threadIdx.x % 32, g = lane / 4, q = lane % 4;
  const u32 warp = threadIdx.x / 32;
  const struct division v = get_division (p);
  const struct walk stride = tile_stride (p);
  const u32 slots_at = shared_address (slots);
  const u32 outputs_at = shared_address (cells) + 4 * p.cols;
  const matrix_place matrix_at = place_matrix (shared_address (dynamic));
  const u32 first = warp * v.span + 16 * g;
  const u32 from = first + CHUNK * lane_chunk (v, q);
  struct walk here = first_tile (p);
  u32 words[4 * HALVES][4];

  fill_matrix<HALVES> (p, v, dynamic);
  fill_slots (p, v, slots, false);
  fill_cells (p, cells);
  matrix_is_filled ();
  __syncthreads ();

  load<HALVES> (p, v, cells, here, from, q, words);
#pragma unroll 1
  while (here.rect < p.nr_rects) {
    const u32 pos = here.tile * (v.span * (THREADS / 32)) + first;
    const u32 outputs = outputs_at + 4 * here.rect * (p.cols + p.rows);
    matrix_place matrix = matrix_at;
    struct operands<HALVES> f;

#pragma unroll
    for (int h = 0; h < HALVES; h++)
      transpose<HALVES> (words + 4 * h, h, f);
    next_tile (p, stride, here);
    load<HALVES> (p, v, cells, here, from, q, words);

#pragma unroll 1
    for (u32 n = 0; n < v.nr_groups; n++) {
      u32 r[4], slot[2], cell;

      multiply<HALVES, SAFE> (f, matrix, r, slots_at + 8 * (GROUP * n + q),
                              outputs, slot, cell);
      matrix += group_stride<HALVES> ();

      const u32 at = pos + slot[1];

      store16_if (at < p.cell_len, p.out_base + at + (u64) cell * 64, r);
    }
  }
}

#define KERNEL(NAME, HALVES, BLOCKS, SAFE)                              \
extern "C" __global__ void __launch_bounds__ (THREADS, BLOCKS)          \
gpuraid_##NAME (const __grid_constant__ struct kernel_params p)         \
{                                                                       \
  run<HALVES, SAFE> (p);                                                \
}

#endif
