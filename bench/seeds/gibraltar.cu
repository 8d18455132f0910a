/* gpuraid: Gibraltar's kernel, rebuilt.
 *
 * Curry, Skjellum, Ward, Brightwell: "Gibraltar: A Reed-Solomon coding
 * library for storage applications on programmable graphics processors".
 * From the paper alone, which describes the kernel in words; no code of the
 * original.  As there:
 *
 *   - a thread makes 4 neighbouring bytes of every output buffer, in
 *     registers; each input passes through one register, once;
 *   - a product is a sum of logarithms: log and exp, 256 bytes each, lie in
 *     shared memory, where each block puts them first;
 *   - the coefficients are in constant memory, since all threads need the
 *     same one at a time;
 *   - a kernel for each k + m, with both known to the compiler, so that the
 *     loops unroll and indices become immediate;
 *   - recovery is the same loop over another matrix, with the number of
 *     rows known at run time only.
 *
 * The matrix has no zeros (the code is MDS), so only data is tested for 0.
 * log (data) is looked up once for all rows.
 *
 *   -DK -DM       buffers of data and of parity
 *   -DRECOVER     the rows are the argument's, at most M; else M
 *
 * Blocks of 128 threads; a buffer is a multiple of 512 bytes long.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#define THREADS 128

#ifdef RECOVER
#define ROWS rows
#else
#define ROWS M
#endif

/* A loop that is longer than this, fully unrolled, would not stay in the
 * instruction cache.
 */
#define LOOKUPS 512
enum { UNROLL = 4 * M < LOOKUPS ? LOOKUPS / (4 * M) : 1 };

/* log[256], then exp[256]: a word for each thread of a block. */
__device__ unsigned gibraltar_tables[THREADS];
__constant__ unsigned char gibraltar_coef[M * K];

extern "C" __global__ void __launch_bounds__ (THREADS)
gibraltar (const unsigned *in, unsigned *out, unsigned long long stride,
           unsigned rows)
{
  __shared__ unsigned tables[THREADS];
  const unsigned char *log = (const unsigned char *) tables;
  const unsigned char *exp = log + 256;
  unsigned sum[M];

  tables[threadIdx.x] = gibraltar_tables[threadIdx.x];
  in += (unsigned long long) blockIdx.x * THREADS + threadIdx.x;
  out += (unsigned long long) blockIdx.x * THREADS + threadIdx.x;
#pragma unroll
  for (unsigned j = 0; j < M; j++)
    sum[j] = 0;
  __syncthreads ();

#pragma unroll UNROLL
  for (unsigned i = 0; i < K; i++) {
    unsigned data = in[i * stride], data_log[4];

#pragma unroll
    for (unsigned b = 0; b < 4; b++)
      data_log[b] = log[data >> 8 * b & 0xff];
#pragma unroll
    for (unsigned j = 0; j < M; j++) {
      if (j < ROWS) {
        unsigned f = log[gibraltar_coef[j * K + i]];

#pragma unroll
        for (unsigned b = 0; b < 4; b++) {
          if (data >> 8 * b & 0xff) {
            unsigned s = f + data_log[b];

            s = min (s, s - 255);      /* s %= 255 */
            sum[j] ^= (unsigned) exp[s] << 8 * b;
          }
        }
      }
    }
  }

#pragma unroll
  for (unsigned j = 0; j < M; j++)
    if (j < ROWS)
      out[j * stride] = sum[j];
}
