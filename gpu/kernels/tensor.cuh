/* gpuraid: a product over GF(2^8) as a product of bits, on tensor cores.
 *
 * A bit of an output is the sum of some bits of the inputs: of the ones in
 * (bits of the inputs AND a row of the bit matrix) only whether they are an
 * even number counts.  Tensor cores count them.  The matrix is data
 * (gpu/text/tensor.c makes it), so one kernel serves all matrices.
 *
 * A warp takes 128 bytes of each cell, as 8 pieces of 16 bytes.  Four lanes, a
 * quad, share a piece: lane q has cells 4q to 4q+3 of each block of 16 cells.
 * HALVES is the number of blocks, two for each 256 bits that an instruction
 * takes.  Its rows are positions: word t (of 4) of piece g, for byte j of the
 * word; t even is row g, t odd row g + 8; (t / 2, j) are products of their
 * own.  Its columns are the bits of outputs: a group is 4 outputs, one for
 * each lane of a quad, and lane q gets all bits of the one that is its own.
 * So a lane has whole words of cells before and after, and nothing is
 * exchanged between lanes.
 *
 * Few inputs would leave most of a row empty.  Then a warp takes several
 * chunks of 128 bytes of each cell: the second block of a row may be another
 * chunk of the same cells, and so may the lanes of a quad.  An output of a
 * chunk is called a slot.
 *
 * tensor-wgmma.cuh and tensor-mma.cuh have the product itself, for compute
 * capability 9.0 and 8.x.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TENSOR_CUH
#define GPURAID_TENSOR_CUH

#include "gpu/kernels/tensor-instructions.cuh"

#define CHUNK 128u              /* bytes */
#define GROUP 4u                /* slots */
#define GROUP_LEN 512u          /* bytes of the matrix: for each block */
#define MAX_SLOTS 512u          /* as in gpu/text/tensor.c */
#define MAX_COLS 64u

/* ---- how a step is divided --------------------------------------------- */

struct division {
  u32 lanes;                    /* log2 of chunks by lanes */
  bool by_block;                /* two chunks by blocks */
  u32 span;                     /* bytes of each cell, of a warp */
  u32 nr_slots, nr_groups;
};

INLINE struct division
get_division (const struct kernel_params &p)
{
  struct division v;

  v.lanes = p.lane_chunks_log;
  v.by_block = p.block_chunks == 2;
  v.span = CHUNK * p.block_chunks << v.lanes;
  v.nr_slots = (p.block_chunks << v.lanes) * p.rows;
  v.nr_groups = (v.nr_slots + GROUP - 1) / GROUP;
  return v;
}

/* The number of the chunk among those of the lanes, and which of its cells
 * lane q has: this times 4 and the 3 after it.
 */
INLINE u32
lane_chunk (const struct division &v, u32 q)
{
  return q >> (2 - v.lanes);
}

INLINE u32
lane_cells (const struct division &v, u32 q)
{
  return q & (3 >> v.lanes);
}

/* From one block to the next: cells, in fours, or bytes. */
INLINE u32
block_cells (const struct division &v)
{
  return v.by_block ? 0 : 4 >> v.lanes;
}

INLINE u32
block_bytes (const struct division &v)
{
  return v.by_block ? CHUNK << v.lanes : 0;
}

/* ---- tiles ------------------------------------------------------------- */

/* Blocks take the tiles of all rects in turn. */
struct walk {
  u32 rect, tile;
};

INLINE struct walk
first_tile (const struct kernel_params &p)
{
  return { blockIdx.x / p.nr_tiles, blockIdx.x % p.nr_tiles };
}

/* From one tile of this block to its next. */
INLINE struct walk
tile_stride (const struct kernel_params &p)
{
  return { gridDim.x / p.nr_tiles, gridDim.x % p.nr_tiles };
}

INLINE void
next_tile (const struct kernel_params &p, const struct walk &stride,
           struct walk &w)
{
  w.rect += stride.rect;
  w.tile += stride.tile;
  if (w.tile >= p.nr_tiles) {
    w.tile -= p.nr_tiles;
    w.rect++;
  }
}

/* ---- shared memory ----------------------------------------------------- */

/* Cells behind those of the last rect are loaded, and not used. */
typedef u32 shared_cells[KERNEL_MAX_CELLS + MAX_COLS];
/* For each slot the bytes from a rect's first output to its cell in
 * shared_cells, and where its chunk begins in a span.
 */
typedef uint2 shared_slots[MAX_SLOTS];

INLINE void
fill_cells (const struct kernel_params &p, shared_cells cells)
{
  for (u32 i = threadIdx.x; i < p.nr_rects * (p.cols + p.rows); i += blockDim.x)
    cells[i] = p.cell[i];
}

/* turn: chunks by lanes begin in different pieces, see tensor-device.cu.  What
 * fills the last group is outside of every cell.
 */
INLINE void
fill_slots (const struct kernel_params &p, const struct division &v,
            shared_slots slots, bool turn)
{
  for (u32 i = threadIdx.x; i < v.nr_groups * GROUP; i += blockDim.x) {
    const u32 chunk = i / p.rows, by = chunk & ((1 << v.lanes) - 1);
    u32 at = CHUNK * chunk;

    if (turn)
      at += 16 * (by << (3 - v.lanes) & 7);
    slots[i] = i < v.nr_slots ? make_uint2 (4 * (i % p.rows), at)
      : make_uint2 (0, 1u << 31);
  }
}

template <int HALVES> INLINE void
fill_matrix (const struct kernel_params &p, const struct division &v, u32 *to)
{
  for (u32 i = threadIdx.x; i < v.nr_groups * (HALVES * GROUP_LEN / 16);
       i += blockDim.x)
    ((uint4 *) to)[i] = ((const uint4 *) p.tables)[i];
}

/* ---- before and after the product -------------------------------------- */

/* The operands: of words t = 0, 1 and of 2, 3; of byte j. */
template <int HALVES> struct operands {
  u32 a[2][4][2 * HALVES];
};

/* The words of 4 cells, a block's, as the instruction wants them: byte j of
 * each of the cells together.
 */
template <int HALVES> INLINE void
transpose (const u32 w[4][4], int block, struct operands<HALVES> &f)
{
#pragma unroll
  for (int t = 0; t < 4; t++) {
    const u32 low01 = prmt (w[0][t], w[1][t], 0x5140);
    const u32 high01 = prmt (w[0][t], w[1][t], 0x7362);
    const u32 low23 = prmt (w[2][t], w[3][t], 0x5140);
    const u32 high23 = prmt (w[2][t], w[3][t], 0x7362);
    const int i = block / 2 * 4 + block % 2 * 2 + t % 2;

    f.a[t / 2][0][i] = prmt (low01, low23, 0x5410);
    f.a[t / 2][1][i] = prmt (low01, low23, 0x7632);
    f.a[t / 2][2][i] = prmt (high01, high23, 0x5410);
    f.a[t / 2][3][i] = prmt (high01, high23, 0x7632);
  }
}

/* The lowest bits of the counts for bytes 0 to 3 of a word, in the lowest bits
 * of its bytes; anything above.  SAFE: also if a count is above 255.
 * CONVERTED: for which bits conversions pack them; for the others it is
 * floating point, which is another pipe.
 */
template <bool SAFE, u32 CONVERTED> INLINE u32
pack_counts (const u32 d[4][16], int bit, int x)
{
  const int i = bit / 2 * 4 + 2 * x + bit % 2;

  if (SAFE)
    return prmt (multiply_add (d[1][i], 65536, d[0][i]),
                 multiply_add (d[3][i], 65536, d[2][i]), 0x6420);
  if (CONVERTED >> bit & 1)
    return pack_saturated (d[0][i], d[1][i],
                           pack_saturated (d[2][i], d[3][i], 0));
  return multiply_add (add_256 (d[2][i], d[3][i]), 65536,
                       add_256 (d[0][i], d[1][i]));
}

/* Bits first to last of each byte, shifted down to bit 0; anything above. */
template <bool SAFE, u32 CONVERTED> INLINE u32
gather_bits (const u32 d[4][16], int x, int last, int first)
{
  u32 r = pack_counts<SAFE, CONVERTED> (d, last, x);

#pragma unroll
  for (int bit = last - 1; bit >= first; bit--)
    r = select_bits (0x01010101, pack_counts<SAFE, CONVERTED> (d, bit, x),
                     multiply_add (r, 2, 0));
  return r;
}

/* The word of row g (x = 0) or g + 8. */
template <bool SAFE, u32 CONVERTED> INLINE u32
gather (const u32 d[4][16], int x)
{
  return select_bits (0x0f0f0f0f, gather_bits<SAFE, CONVERTED> (d, x, 3, 0),
                      multiply_add (gather_bits<SAFE, CONVERTED> (d, x, 7, 4),
                                    16, 0));
}

#endif
