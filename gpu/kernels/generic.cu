/* gpuraid: the kernel that takes its matrix as data.
 *
 * A byte is divided into pieces of 3, 3 and 2 bits; each has a table of its
 * products of 8 or 4 bytes, which fits into the two registers from which one
 * instruction (prmt) picks 4 bytes by 4 indices.  The indices are made once for
 * an input and serve all rows.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "gpu/text/params.h"
#include "gpu/kernels/parts.cuh"

/* As in gpu/text/generic.c. */
#define BLOCK 256
#define BYTES 16                /* of every cell, for each thread */
#define MAX_CRC_CELLS 384       /* of a rect */

/* What gpu/text/generic.c makes for each row of each column; columns
 * are outermost.
 */
struct product {
  uint4 low;                    /* times bits 0 to 2; times bits 3 to 5 */
  u32 high, unused[3];          /* times bits 6 and 7 */
};

/* Indices for two words: nibble 2n is of byte n of the first, 2n+1 of the
 * second; so what they pick has the words' bytes in turn.
 */
struct indices {
  u32 piece[3];
};

INLINE struct indices
make_indices (u32 a, u32 b)
{
  struct indices x;

  x.piece[0] = (a & 0x07070707) | (b << 4 & 0x70707070);
  x.piece[1] = (a >> 3 & 0x07070707) | (b << 1 & 0x70707070);
  x.piece[2] = (a >> 6 & 0x03030303) | (b >> 2 & 0x30303030);
  return x;
}

/* The products of the lower halves of both words, or of the upper ones. */
INLINE u32
times (const struct product &t, const struct indices &x, int shift)
{
  return prmt (t.low.x, t.low.y, x.piece[0] >> shift) ^
    prmt (t.low.z, t.low.w, x.piece[1] >> shift) ^
    prmt (t.high, 0, x.piece[2] >> shift);
}

typedef struct crc_tables<4, 4, BYTES> tables;
__device__ const tables crc = crc_make_tables<4, 4, BYTES> ();

struct crc_state {
  u32 (*sums)[tables::WARPS];
  u32 (*stride)[256];
  struct crc_factor factor;
};

INLINE void
add_crc (const struct crc_state &c, u32 cell, uint4 d)
{
  crc_add (c.sums[cell], c.factor,
           crc_next (c.stride, crc_next (c.stride, crc_next
             (c.stride, d.x, d.y), d.z), d.w));
}

/* Rows row to row + nr - 1, nr <= R. */
template <int R, bool CRC> INLINE void
run_rows (const struct kernel_params &p, u32 first, u32 pos, u32 row, u32 nr,
          bool inside, const struct crc_state &c)
{
  const struct product *t = (const struct product *) p.tables + row;
  u32 sum[R][4];

#pragma unroll
  for (int j = 0; j < R; j++)
    sum[j][0] = sum[j][1] = sum[j][2] = sum[j][3] = 0;

#pragma unroll 2
  for (u32 i = 0; i < p.cols; i++, t += p.rows) {
    uint4 d = make_uint4 (0, 0, 0, 0);

    if (inside)
      d = load16 (cell_address (p, first + i, p.in_base + pos));
    const struct indices x = make_indices (d.x, d.y), y = make_indices (d.z, d.w);

    if (CRC && row == 0)
      add_crc (c, i, d);
#pragma unroll
    for (int j = 0; j < R; j++) {
      const u32 k = R == 1 ? 0 : min ((u32) j, nr - 1);
      const struct product prod = { __ldg (&t[k].low), __ldg (&t[k].high) };

      sum[j][0] ^= times (prod, x, 0);
      sum[j][1] ^= times (prod, x, 16);
      sum[j][2] ^= times (prod, y, 0);
      sum[j][3] ^= times (prod, y, 16);
    }
  }

#pragma unroll
  for (int j = 0; j < R; j++) {
    if (j >= nr)
      break;
    const uint4 r = make_uint4 (prmt (sum[j][0], sum[j][1], 0x6420),
                                prmt (sum[j][0], sum[j][1], 0x7531),
                                prmt (sum[j][2], sum[j][3], 0x6420),
                                prmt (sum[j][2], sum[j][3], 0x7531));

    if (inside)
      store16 (cell_address (p, first + p.cols + row + j, p.out_base + pos),
               r.x, r.y, r.z, r.w);
    if (CRC)
      add_crc (c, p.cols + row + j, r);
  }
}

/* R: the rows that are made at a time; fewer rows need fewer registers. */
template <int R, bool CRC> INLINE void
run_tile (const struct kernel_params &p, u32 first, u32 tile,
          const struct crc_state &c)
{
  const u32 pos = (tile * BLOCK + threadIdx.x) * BYTES;
  const bool inside = pos < p.cell_len;

  if (!CRC && !inside)
    return;
  for (u32 row = 0; row < p.rows; row += R)
    run_rows<R, CRC> (p, first, pos, row, min (p.rows - row, (u32) R), inside,
                      c);
  if (CRC) {
    __syncthreads ();
    crc_end (crc, p, c.sums, first, p.cols + p.rows, tile);
    __syncthreads ();
  }
}

template <int R, bool CRC> INLINE void
run (const struct kernel_params &p, const struct crc_state &c)
{
  for (u32 rect = blockIdx.y; rect < p.nr_rects; rect += gridDim.y)
    for (u32 tile = blockIdx.x; tile < p.nr_tiles; tile += gridDim.x)
      run_tile<R, CRC> (p, rect * (p.cols + p.rows), tile, c);
}

#define KERNEL(R)                                                       \
extern "C" __global__ void __launch_bounds__ (BLOCK)                    \
gpuraid_generic##R (const __grid_constant__ struct kernel_params p)     \
{                                                                       \
  const struct crc_state none = {};                                     \
                                                                        \
  run<R, false> (p, none);                                              \
}                                                                       \
                                                                        \
extern "C" __global__ void __launch_bounds__ (BLOCK)                    \
gpuraid_generic##R##_crc (const __grid_constant__ struct kernel_params p) \
{                                                                       \
  __shared__ u32 sums[MAX_CRC_CELLS][tables::WARPS];                    \
  __shared__ crc_stride_table stride;                                   \
  struct crc_state c;                                                   \
                                                                        \
  crc_begin (crc, stride);                                              \
  __syncthreads ();                                                     \
  crc_get_factor (crc, c.factor);                                       \
  c.sums = sums;                                                        \
  c.stride = stride;                                                    \
  run<R, true> (p, c);                                                  \
}

KERNEL (1)
KERNEL (2)
KERNEL (4)
KERNEL (8)
KERNEL (16)
