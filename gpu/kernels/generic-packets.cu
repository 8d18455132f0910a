/* gpuraid: the kernel for packets that takes its bit matrix as data.
 *
 * A thread makes its place in 32 packets of output at a time: each packet of
 * input comes with a word whose bits say which of them it is added to.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "gpu/text/params.h"
#include "gpu/kernels/parts.cuh"

/* As in gpu/text/generic.c. */
#define BLOCK 128
#define BYTES 8                 /* of every packet, for each thread */
#define MAX_CRC_CELLS 384       /* of a rect */

#define OUTPUTS 32

/* A block of threads that makes CRCs has a block of each cell, each of its
 * threads 4 bytes of every packet.
 */
template <int W> struct crc_of {
  typedef struct crc_tables<W, CRC_BLOCK_LEN / W, 4> tables;
  static constexpr int BLOCK_OF_W = CRC_BLOCK_LEN / W / 4;
};
__device__ const crc_of<4>::tables crc4 =
  crc_make_tables<4, CRC_BLOCK_LEN / 4, 4> ();
__device__ const crc_of<8>::tables crc8 =
  crc_make_tables<8, CRC_BLOCK_LEN / 8, 4> ();

template <int W> struct crc_state {
  u32 (*sums)[crc_of<W>::tables::WARPS];
  u32 (*stride)[256];
  struct crc_factor factor;
};

INLINE u64
packet_address (const struct kernel_params &p, u32 cell, u32 packet, u64 at)
{
  return cell_address (p, cell, at) + (u64) packet * p.packet_len;
}

/* W: 0 for no CRCs and any number of packets, then a thread has two words
 * of each; else 4 or 8, and one word.
 */
template <int W> INLINE void
run_outputs (const struct kernel_params &p, u32 first, u32 pos, u32 output,
             const struct crc_state<W ? W : 8> &c)
{
  const u32 w = W ? W : p.w, nr = p.rows * p.w - output;
  const u32 *bits = (const u32 *) p.tables + output / OUTPUTS * p.cols * p.w;
  u32 x[OUTPUTS], y[OUTPUTS], sum = 0;

#pragma unroll
  for (int o = 0; o < OUTPUTS; o++)
    x[o] = y[o] = 0;

  for (u32 i = 0; i < p.cols; i++) {
#pragma unroll 4
    for (u32 l = 0; l < w; l++) {
      const u64 from = packet_address (p, first + i, l, p.in_base + pos);
      const u32 into = __ldg (bits++);
      uint2 d;

      if (W) {
        d.x = load4 (from);
        sum = l == 0 ? d.x : crc_next (c.stride, sum, d.x);
      }
      else
        d = load8 (from);
#pragma unroll
      for (int o = 0; o < OUTPUTS; o++) {
        const u32 mask = -(into >> o & 1);

        x[o] = and_xor (mask, d.x, x[o]);
        if (!W)
          y[o] = and_xor (mask, d.y, y[o]);
      }
    }
    if (W && output == 0)
      crc_add (c.sums[i], c.factor, sum);
  }

#pragma unroll
  for (int o = 0; o < OUTPUTS; o++) {
    const u32 n = output + o;

    if (o >= nr)
      break;
    const u64 to = packet_address (p, first + p.cols + n / w, n % w,
                                   p.out_base + pos);

    if (!W) {
      store8 (to, x[o], y[o]);
      continue;
    }
    store4 (to, x[o]);
    sum = n % w == 0 ? x[o] : crc_next (c.stride, sum, x[o]);
    if (n % w == w - 1)
      crc_add (c.sums[p.cols + n / w], c.factor, sum);
  }
}

extern "C" __global__ void __launch_bounds__ (BLOCK)
gpuraid_packets (const __grid_constant__ struct kernel_params p)
{
  const struct crc_state<8> none = {};

  for (u32 rect = blockIdx.y; rect < p.nr_rects; rect += gridDim.y)
    for (u32 tile = blockIdx.x; tile < p.nr_tiles; tile += gridDim.x) {
      u32 pos = (tile * BLOCK + threadIdx.x) * BYTES;

      pos = pos / p.packet_len * (p.w * p.packet_len) + pos % p.packet_len;
      if (pos < p.cell_len)
        for (u32 o = 0; o < p.rows * p.w; o += OUTPUTS)
          run_outputs<0> (p, rect * (p.cols + p.rows), pos, o, none);
    }
}

#define KERNEL_CRC(W)                                                   \
extern "C" __global__ void __launch_bounds__ (crc_of<W>::BLOCK_OF_W)    \
gpuraid_packets##W##_crc (const __grid_constant__ struct kernel_params p) \
{                                                                       \
  __shared__ u32 sums[MAX_CRC_CELLS][crc_of<W>::tables::WARPS];         \
  __shared__ crc_stride_table stride;                                   \
  struct crc_state<W> c;                                                \
                                                                        \
  crc_begin (crc##W, stride);                                           \
  __syncthreads ();                                                     \
  crc_get_factor (crc##W, c.factor);                                    \
  c.sums = sums;                                                        \
  c.stride = stride;                                                    \
  for (u32 rect = blockIdx.y; rect < p.nr_rects; rect += gridDim.y) {   \
    const u32 first = rect * (p.cols + p.rows);                         \
                                                                        \
    for (u32 tile = blockIdx.x; tile < p.nr_tiles; tile += gridDim.x) { \
      const u32 pos = tile * CRC_BLOCK_LEN + threadIdx.x * 4;           \
                                                                        \
      for (u32 o = 0; o < p.rows * W; o += OUTPUTS)                     \
        run_outputs<W> (p, first, pos, o, c);                           \
      __syncthreads ();                                                 \
      crc_end (crc##W, p, sums, first, p.cols + p.rows, tile);          \
      __syncthreads ();                                                 \
    }                                                                   \
  }                                                                     \
}

KERNEL_CRC (4)
KERNEL_CRC (8)
