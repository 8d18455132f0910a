/* gpuraid: PErasure's two kernels.
 *
 * Cauchy Reed-Solomon with packets of LONGS longs, one launch for each
 * output.  GMPE keeps all in global memory; SMPE stages the inputs in shared
 * memory and has the bit matrix as masks in constant memory.
 *
 * Compiled at run time, for W, LONGS; SMPE also THREADS, a multiple of
 * W*LONGS, and NR_MASKS.
 *
 *   data, coding  k and m cells end to end, rects end to end
 *   size          longs of a cell
 *   n             longs to make of each, from data and coding on
 *   dest          the output
 *
 * blockIdx.y is the rect.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

typedef unsigned long long word;

#ifndef THREADS
/* A thread makes one long of each of the output's W packets of a block.  The
 * bit matrix was in texture memory.
 */
extern "C" __global__ void
gmpe (const word *data, word *coding, const int *bm, long long size,
      long long n, int k, int m, int dest)
{
  long long tid = (long long) blockIdx.x * blockDim.x + threadIdx.x;
  long long at = tid / LONGS * (W * LONGS) + tid % LONGS;
  long long index = (long long) dest * W * k * W;

  if (at >= n)
    return;
  data += blockIdx.y * (size * k) + at;
  coding += blockIdx.y * (size * m) + size * dest + at;
#pragma unroll 1
  for (int i = 0; i < W; i++) {
    word temp = 0;

    for (int c = 0; c < k; c++) {
#pragma unroll
      for (int j = 0; j < W; j++)
        if (__ldg (&bm[index++]))
          temp ^= data[c * size + j * LONGS];
    }
    coding[i * LONGS] = temp;
  }
}

#else
/* 0 or -1: bit row*k*W + column of the bit matrix. */
__constant__ signed char masks[NR_MASKS];

/* A thread makes one long. */
extern "C" __global__ void
smpe (const word *data, word *coding, long long size, long long n, int k,
      int m, int dest)
{
  __shared__ word sh[THREADS];
  const int tx = threadIdx.x;
  const int row = tx / LONGS % W, first = tx - row * LONGS;
  const long long t = (long long) blockIdx.x * THREADS + tx;
  const int mine = t < n;              /* the others only keep barriers */
  int index = (dest * W + row) * k * W;
  word temp = 0;

  data += blockIdx.y * (size * k) + t;
  for (int c = 0; c < k; c++) {
    if (mine)
      sh[tx] = data[c * size];
    __syncthreads ();
    if (mine) {
#pragma unroll
      for (int j = 0; j < W; j++)
        temp ^= (word) (long long) masks[index++] & sh[first + j * LONGS];
    }
    __syncthreads ();
  }
  if (mine)
    coding[blockIdx.y * (size * m) + size * dest + t] = temp;
}
#endif
