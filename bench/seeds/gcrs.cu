/* gpuraid: G-CRS, the kernel and the steps that led to it.
 *
 * Cauchy Reed-Solomon with packets of one long: a cell is a row of blocks
 * of w packets.  In the final form each thread loads one packet of each
 * input into shared memory and makes its packet of up to m outputs, without
 * a branch, from the bit matrix packed by columns in constant memory.
 *
 * Compiled at run time, for one M and one set of
 *
 *   BITMATRIX   the bit matrix is packed, in constant memory; else an int a
 *               bit, row by row, in global memory
 *   EFFICIENT   inputs are staged in shared memory
 *   BANDWIDTH   a thread makes all M outputs; else one, of threadIdx.y
 *   BRANCHLESS  a bit is multiplied, not tested
 *   UNROLL      the loop over the packets is unrolled, w is W
 *   NO_LOADS    for the model: loads from global memory moved out of the
 *               loop (the result is wrong)
 *
 * and NR_INTS, of the packed matrix.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

typedef unsigned long long word;

#define THREADS 128

#ifdef BANDWIDTH
#define OUTPUTS M
#define OUTPUT(p) (p)
#else
#define OUTPUTS 1
#define OUTPUT(p) ((int) threadIdx.y)
#endif

#ifdef BITMATRIX
/* Ints of a column: one holds floor(32/w) outputs. */
#define COLUMN ((M + 32 / W - 1) / (32 / W))
__constant__ unsigned bitmatrix[NR_INTS];
#define BIT(i, j, p)                                                    \
  ((bitmatrix[first + ((i) * w + (j)) * COLUMN + (p) / q] >>            \
    ((p) % q * w + r)) & 1)
#else
#define BIT(i, j, p)                                                    \
  ((unsigned) bm[((long long) ((first + (p)) * w + r) * k + (i)) * w + (j)])
#endif

/* One packet of each of blockIdx.x's units, by one launch for M of the m
 * outputs; blockIdx.y is the rect.
 *
 *   in, out  k and m cells end to end, rects end to end
 *   bm       without BITMATRIX: m*w rows of k*w ints
 *   size     longs of a cell
 *   n        longs to make of each, from in and out on
 *   first    BITMATRIX: the first int of these outputs; else the first of
 *            these outputs
 *   dest     the first of these outputs
 */
extern "C" __global__ void
gcrs (const word *in, word *out, const int *bm, long long size, long long n,
      int k, int m, int some_w, int first, int dest)
{
#ifdef UNROLL
  const int w = W, steps = W;
#else
  const int w = some_w, steps = 1;
#endif
#ifdef BITMATRIX
  const int q = 32 / w;
#endif
#ifdef EFFICIENT
  __shared__ word sh[THREADS];
#endif
  const int width = THREADS / w * w, tx = threadIdx.x;
  const int r = tx % w, u = tx - r;     /* the packet; its unit's first */
  const long long t = (long long) blockIdx.x * width + tx;
  const int mine = tx < width && t < n; /* the others only keep barriers */
  word acc[OUTPUTS];

  in += blockIdx.y * (size * k);
  out += blockIdx.y * (size * m) + size * dest;
#pragma unroll
  for (int p = 0; p < OUTPUTS; p++)
    acc[p] = 0;

#ifdef NO_LOADS
  word v = mine ? in[t] : 0;
#endif
  for (int i = 0; i < k; i++) {
#ifdef EFFICIENT
    if (mine && threadIdx.y == 0)
#ifdef NO_LOADS
      sh[tx] = v;
#else
      sh[tx] = in[i * size + t];
#endif
    __syncthreads ();
#else
    const word *sh = in + i * size + (t - tx);
#endif
    if (mine) {
#pragma unroll steps
      for (int j = 0; j < w; j++) {
#pragma unroll
        for (int p = 0; p < OUTPUTS; p++) {
#ifdef BRANCHLESS
          acc[p] ^= BIT (i, j, OUTPUT (p)) * ~0ULL & sh[u + j];
#else
          if (BIT (i, j, OUTPUT (p)))
            acc[p] ^= sh[u + j];
#endif
        }
      }
    }
#ifdef EFFICIENT
    __syncthreads ();
#endif
  }

  if (mine) {
#pragma unroll
    for (int p = 0; p < OUTPUTS; p++)
      out[OUTPUT (p) * size + t] = acc[p];
  }
}
