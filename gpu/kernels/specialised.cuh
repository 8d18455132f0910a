/* gpuraid: the frame of the kernel for one matrix.
 *
 * Comes after the lines that gpu/text/source.c writes:
 *
 *   COLS, ROWS          of the matrix
 *   BLOCK, BYTES        threads; bytes that a thread takes of each packet
 *                       (of each cell where symbols are bytes)
 *   CELL_NR             see parts.cuh
 *   MIN_BLOCKS          if set, how many must fit on a multiprocessor
 *   W, PACKET_LEN       packets of a symbol; 1 and 0 where they are bytes
 *   CRC_WORDS, CRC_STRIDE, CRC_STEP    see parts.cuh, where CRCs are asked
 *                       for
 *
 * and before the function that it writes, code.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "gpu/text/params.h"
#include "gpu/kernels/parts.cuh"

#ifdef CRC_WORDS
typedef struct crc_tables<CRC_WORDS, CRC_STRIDE, CRC_STEP> tables;
__device__ const tables crc = crc_make_tables<CRC_WORDS, CRC_STRIDE, CRC_STEP> ();
#endif

/* Where a thread is. */
struct place {
  u64 in, out;                  /* bases, and the position in the cell */
  CELL_NR first;                /* of the rect */
#ifdef CRC_WORDS
  u32 (*sums)[tables::WARPS];   /* of the cells of the rect */
  u32 (*stride)[256];           /* a crc_stride_table */
  u32 (*pending)[BLOCK];        /* a thread's sums of some cells */
  struct crc_factor factor;
#endif
};

#define CELL(n) \
  cell_address (p, here.first + (n), (n) < COLS ? here.in : here.out)
#define CRC_PENDING 16
#define CRC(n, sum) here.pending[(n) % CRC_PENDING][threadIdx.x] = (sum)
#define CRC_FLUSH(n, nr) crc_flush (here, n, nr)
#define NEXT(sum, word) crc_next (here.stride, sum, word)

#ifdef CRC_WORDS
/* Sum what is pending of cell n and the following ones: a loop, because its
 * body is long.
 */
INLINE void
crc_flush (const struct place &here, u32 n, u32 nr)
{
#pragma unroll 1
  for (u32 i = 0; i < nr; i++)
    crc_add (here.sums[n + i], here.factor,
             here.pending[(n + i) % CRC_PENDING][threadIdx.x]);
}
#endif

INLINE void code (const struct kernel_params &p, const struct place &here);

/* Asking for one block would let the compiler use more registers. */
#ifdef MIN_BLOCKS
#define BOUNDS __launch_bounds__ (BLOCK, MIN_BLOCKS)
#else
#define BOUNDS __launch_bounds__ (BLOCK)
#endif

INLINE void
run_tile (const struct kernel_params &p, struct place &here, u32 tile)
{
  u32 pos = (tile * BLOCK + threadIdx.x) * BYTES;

#if PACKET_LEN > 0
  pos = pos / PACKET_LEN * (W * PACKET_LEN) + pos % PACKET_LEN;
#endif
  here.in = p.in_base + pos;
  here.out = p.out_base + pos;
#ifndef CRC_WORDS
  if (pos < p.cell_len)
    code (p, here);
#else
  /* A tile is a block of each cell, and none is left over. */
  code (p, here);
  __syncthreads ();
  crc_end (crc, p, here.sums, here.first, COLS + ROWS, tile);
  __syncthreads ();
#endif
}

extern "C" __global__ void BOUNDS
gpuraid_kernel (const __grid_constant__ struct kernel_params p)
{
  struct place here;

#ifdef CRC_WORDS
  __shared__ u32 sums[COLS + ROWS][tables::WARPS];
  __shared__ crc_stride_table stride;
  __shared__ u32 pending[CRC_PENDING][BLOCK];

  crc_begin (crc, stride);
  __syncthreads ();
  crc_get_factor (crc, here.factor);
  here.sums = sums;
  here.stride = stride;
  here.pending = pending;
#endif
  for (u32 rect = blockIdx.y; rect < p.nr_rects; rect += gridDim.y) {
    here.first = rect * (COLS + ROWS);
    for (u32 tile = blockIdx.x; tile < p.nr_tiles; tile += gridDim.x)
      run_tile (p, here, tile);
  }
}
