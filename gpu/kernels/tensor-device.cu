/* gpuraid: the kernels on tensor cores for cells on the device.
 *
 * Pieces of cells are copied to shared memory some steps ahead, by copies that
 * cost no registers: a block has a stage for each of these steps.  A barrier
 * says that a stage is full (all bytes have arrived), another that it is empty
 * (all warps have read it).  A block stays on its multiprocessor and takes
 * many tiles.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "gpu/text/params.h"
#include "gpu/kernels/tensor-wgmma.cuh"

/* As in gpu/text/tensor.c. */
#ifndef THREADS_64
#define THREADS_64 384
#endif
#define THREADS_32 512
#define MAX_STAGES 3
#define QUAD_PAD 32             /* bytes: the quads' cells in other banks */

/* The stages.  In each the cells come in fours; of a cell there is a tile. */
struct stages {
  u32 at;                       /* in shared memory */
  u32 quad_len, len;            /* of four cells, of a stage */
  u32 tile_len;                 /* of a cell */
  u32 full, empty;              /* the first barriers of either kind */
};

/* Each warp starts some of the copies of a tile. */
template <int WARPS> INLINE void
fetch (const struct kernel_params &p, const struct stages &s,
       const u32 *cells, const struct walk &w, u32 stage, u32 warp, u32 lane)
{
  const u32 pos = w.tile * s.tile_len;
  const u32 len = min (s.tile_len, p.cell_len - pos);
  const u32 mine = warp < p.cols ? (p.cols - warp + WARPS - 1) / WARPS : 0;
  const u32 barrier = s.full + 8 * stage, to = s.at + stage * s.len;

  barrier_arrive_expect (barrier, len * mine, lane);
#pragma unroll 1
  for (u32 i = warp; i < p.cols; i += WARPS)
    bulk_copy (to + i / 4 * s.quad_len + i % 4 * s.tile_len, p.in_base + pos +
               (u64) cells[w.rect * (p.cols + p.rows) + i] * 64, len, barrier);
}

template <int HALVES, int THREADS, bool SAFE> INLINE void
run (const struct kernel_params &p)
{
  constexpr u32 WARPS = THREADS / 32;
  extern __shared__ __align__ (128) u32 dynamic[];      /* matrix, stages */
  __shared__ shared_cells cells;
  __shared__ shared_slots slots;
  __shared__ __align__ (8) u64 barriers[2 * MAX_STAGES];
  const u32 lane = threadIdx.x % 32, g = lane / 4, q = lane % 4;
  const u32 warp = from_first_lane (threadIdx.x / 32);
  const struct division v = get_division (p);
  const struct walk stride = tile_stride (p);
  const u32 matrix_at = shared_address (dynamic);
  const u32 cells_at = shared_address (cells);
  const u32 slots_at = shared_address (slots);
  const u32 last_quad = (p.cols + 3) / 4 - 1;
  const u32 nr_stages = p.stages;
  struct stages s;

  s.tile_len = v.span * WARPS;
  s.quad_len = 4 * s.tile_len + QUAD_PAD;
  s.len = (last_quad + 1) * s.quad_len;
  s.at = matrix_at + v.nr_groups * (HALVES * GROUP_LEN);
  s.full = shared_address (barriers);
  s.empty = s.full + 8 * MAX_STAGES;

  fill_cells (p, cells);
  if (threadIdx.x == 0)
    for (u32 i = 0; i < nr_stages; i++) {
      barrier_init (s.full + 8 * i, WARPS);
      barrier_init (s.empty + 8 * i, THREADS);
    }
  fence_shared ();
  __syncthreads ();

  /* What is fetched next, into which stage; the parity of its barrier. */
  struct walk here = first_tile (p), ahead = here;
  u32 to = 0, to_parity = 1;

#pragma unroll 1
  for (; to < nr_stages - 1; to++) {
    if (ahead.rect < p.nr_rects)
      fetch<WARPS> (p, s, cells, ahead, to, warp, lane);
    next_tile (p, stride, ahead);
  }
  fill_matrix<HALVES> (p, v, dynamic);
  fill_slots (p, v, slots, true);
  fence_shared ();
  __syncthreads ();

  /* Where this lane reads in a stage, of each block.  The lanes of a chunk read
   * its pieces in another order than those of the next chunk, so that they use
   * other banks.  Cells that are not there are times 0: any will do.
   */
  u32 from[HALVES];

#pragma unroll
  for (int h = 0; h < HALVES; h++) {
    const u32 quad = lane_cells (v, q) + h * block_cells (v);
    const u32 by = lane_chunk (v, q);

    from[h] = s.at + min (quad, last_quad) * s.quad_len + warp * v.span +
      CHUNK * by + h * block_bytes (v) + 16 * (g + (by << (3 - v.lanes)) & 7);
    if (HALVES == 2)
      keep (from[h]);
  }

  u32 piece = 16 * g, stage = 0, parity = 0;

  keep (piece);
#pragma unroll 1
  while (here.rect < p.nr_rects) {
    u32 pos = here.tile * s.tile_len + warp * v.span;
    u32 outputs_at = cells_at + 4 * (here.rect * (p.cols + p.rows) + p.cols);
    u32 slot_at = slots_at + 8 * q;
    struct operands<HALVES> f;

    keep (pos);
    keep (outputs_at);
    keep (slot_at);
    barrier_wait (s.full + 8 * stage, parity);
#pragma unroll
    for (int h = 0; h < HALVES; h++) {
      u32 words[4][4];

#pragma unroll
      for (int i = 0; i < 4; i++)
        shared_load4 (words[i], from[h] + stage * s.len + i * s.tile_len);
      transpose<HALVES> (words, h, f);
    }
    next_tile (p, stride, here);
    barrier_arrive (s.empty + 8 * stage);

    /* Into the stage of the step before this one. */
    if (ahead.rect < p.nr_rects) {
      barrier_wait (s.empty + 8 * to, to_parity);
      fetch<WARPS> (p, s, cells, ahead, to, warp, lane);
    }
    next_tile (p, stride, ahead);
    if (++to == nr_stages) {
      to = 0;
      to_parity ^= 1;
    }
    if (++stage == nr_stages) {
      stage = 0;
      parity ^= 1;
    }

    matrix_place matrix = place_matrix (matrix_at);

#pragma unroll 1
    for (u32 n = 0; n < v.nr_groups; n++) {
      u32 r[4], slot[2], cell;

      multiply<HALVES, SAFE> (f, matrix, r, slot_at, outputs_at, slot, cell);
      matrix += group_stride<HALVES> ();
      slot_at += 8 * GROUP;

      const u32 at = pos + select_bits (CHUNK - 1, piece + slot[1], slot[1]);

      store16_if (at < p.cell_len, p.out_base + at + (u64) cell * 64, r);
    }
  }
}

#define KERNEL(NAME, HALVES, THREADS, SAFE)                             \
extern "C" __global__ void __launch_bounds__ (THREADS, 1)               \
gpuraid_device##NAME (const __grid_constant__ struct kernel_params p)   \
{                                                                       \
  run<HALVES, THREADS, SAFE> (p);                                       \
}

KERNEL (32, 2, THREADS_32, false)
KERNEL (32_safe, 2, THREADS_32, true)
KERNEL (64, 4, THREADS_64, false)
KERNEL (64_safe, 4, THREADS_64, true)
