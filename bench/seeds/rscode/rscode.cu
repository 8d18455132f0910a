/* gpuraid: GPU-RSCode's kernels, rebuilt.
 *
 * From a description of the slides "Reed-Solomon codes on the GPU" of its
 * author, Shuai Yuan; no code of the original.  Coding is the product
 * C = A * B over GF(2^8): A is rows x k coefficients, B is k chunks, C rows
 * chunks.  In its order of discovery:
 *
 *   -DNAIVE       a thread for each byte of C, all from global memory
 *   else          tiles: a block of TILE_ROWS x TILE_COLS threads, one
 *                 element of C each, walks over the columns; it stages
 *                 TILE_DEPTH rows of B, and its part of A, in shared memory
 *                 (TILE_DEPTH = K in the tuned form, 16 in the usual square)
 *   -DWORD        an element is 4 bytes of a chunk, loaded and stored
 *                 together and multiplied one by one; else a byte
 *   -DLOOP        multiply by shift and add
 *   -DVARIANT     else by logarithms, where a sum of two may exceed 254:
 *                   0  s % 255
 *                   1  (s & 255) + (s >> 8), with exp[255] = 1
 *                   2  exp is twice as long
 *                   3  the same, and log 0 is 510, from where on exp is 0,
 *                      so that zeros need no test: log has 16 bits
 *   -DPLACE       tables in 0: constant memory; 1: shared memory, made by
 *                 one thread of each block; 2: shared memory, copied there
 *                 by all of them
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#define CONSTANT 0
#define SERIAL   1
#define PARALLEL 2

#ifdef WORD
typedef unsigned element;
#else
typedef unsigned char element;
#endif

#ifndef LOOP

#if VARIANT == 3
typedef unsigned short log_type;
#else
typedef unsigned char log_type;
#endif

#if VARIANT == 3
#define EXP_LEN 1024                    /* 510 + 510 is the last used */
#elif VARIANT == 2
#define EXP_LEN 512
#else
#define EXP_LEN 256
#endif
#define TABLE_WORDS ((256 * sizeof (log_type) + EXP_LEN) / 4)

union tables {
  unsigned words[TABLE_WORDS];
  struct {
    log_type log[256];
    unsigned char exp[EXP_LEN];
  } of;
};

#if PLACE == CONSTANT
__constant__ union tables rscode_tables;
#elif PLACE == PARALLEL
__device__ union tables rscode_tables;
#endif

#if PLACE == SERIAL
static __device__ __forceinline__ void
make_tables (union tables *tables)
{
  log_type *log = tables->of.log;
  unsigned char *exp = tables->of.exp;
  unsigned x = 1;

  for (unsigned i = 0; i < EXP_LEN; i++)
    exp[i] = 0;
  log[0] = VARIANT == 3 ? 510 : 0;
  for (unsigned i = 0; i < 255; i++) {
    exp[i] = x;
    if (VARIANT >= 2)
      exp[255 + i] = x;
    log[x] = i;
    x = x << 1 ^ (x & 0x80 ? 0x11d : 0);
  }
  if (VARIANT == 1)
    exp[255] = 1;
}
#endif

static __device__ __forceinline__ unsigned
multiply (const union tables *tables, unsigned a, unsigned b)
{
  unsigned s;

  if (VARIANT < 3 && (a == 0 || b == 0))
    return 0;
  s = tables->of.log[a] + tables->of.log[b];
  if (VARIANT == 0)
    s %= 255;
  if (VARIANT == 1)
    s = (s & 255) + (s >> 8);
  return tables->of.exp[s];
}

#else /* LOOP */

union tables;

static __device__ __forceinline__ unsigned
multiply (const union tables *tables, unsigned a, unsigned b)
{
  unsigned r = 0;

#pragma unroll
  for (unsigned i = 0; i < 8; i++) {
    if (b & 1)
      r ^= a;
    a = a << 1 ^ (a & 0x80 ? 0x11d : 0);
    b >>= 1;
  }
  return r;
}

#endif /* LOOP */

static __device__ __forceinline__ element
multiply_element (const union tables *tables, unsigned a, element b)
{
  element r = 0;

#pragma unroll
  for (unsigned i = 0; i < sizeof (element); i++)
    r |= multiply (tables, a, b >> 8 * i & 0xff) << 8 * i;
  return r;
}

#if defined LOOP
#define TABLES                                                          \
  const union tables *tables = 0
#elif PLACE == CONSTANT
#define TABLES                                                          \
  const union tables *tables = &rscode_tables
#elif PLACE == SERIAL
#define TABLES                                                          \
  __shared__ union tables shared_tables;                                \
  union tables *tables = &shared_tables;                                \
  if (threadIdx.x == 0 && threadIdx.y == 0)                             \
    make_tables (tables)
#else
#define TABLES                                                          \
  __shared__ union tables shared_tables;                                \
  union tables *tables = &shared_tables;                                \
  for (unsigned t = threadIdx.y * blockDim.x + threadIdx.x;             \
       t < TABLE_WORDS; t += blockDim.x * blockDim.y)                   \
    tables->words[t] = rscode_tables.words[t]
#endif

/* C = A * B.  stride and columns are counted in elements: from chunk to
 * chunk, and of each chunk to be coded.
 */
#ifdef NAIVE

extern "C" __global__ void
rscode (const unsigned char *a, const element *b, element *c, unsigned rows,
        unsigned long long stride, unsigned long long columns)
{
  unsigned long long col =
    (unsigned long long) blockIdx.x * blockDim.x + threadIdx.x;
  unsigned row = blockIdx.y;
  element sum = 0;
  TABLES;

  __syncthreads ();
  if (row >= rows || col >= columns)
    return;
  for (unsigned d = 0; d < K; d++)
    sum ^= multiply_element (tables, a[row * K + d], b[d * stride + col]);
  c[row * stride + col] = sum;
}

#else /* tiles */

extern "C" __global__ void __launch_bounds__ (TILE_ROWS * TILE_COLS)
rscode (const unsigned char *a, const element *b, element *c, unsigned rows,
        unsigned long long stride, unsigned long long columns)
{
  __shared__ unsigned char tile_a[TILE_ROWS * TILE_DEPTH];
  __shared__ element tile_b[TILE_DEPTH * TILE_COLS];
  const unsigned x = threadIdx.x, y = threadIdx.y;
  const unsigned row = blockIdx.y * TILE_ROWS + y;
  const unsigned long long step = (unsigned long long) gridDim.x * TILE_COLS;
  TABLES;

  for (unsigned long long first = (unsigned long long) blockIdx.x * TILE_COLS;
       first < columns; first += step) {
    const unsigned long long col = first + x;
    element sum = 0;

    for (unsigned d0 = 0; d0 < K; d0 += TILE_DEPTH) {
      const unsigned depth = K - d0 < TILE_DEPTH ? K - d0 : TILE_DEPTH;

      /* One tile of A is enough where it is as deep as A. */
      if (TILE_DEPTH < K || first < step)
        for (unsigned d = x; row < rows && d < depth; d += TILE_COLS)
          tile_a[y * TILE_DEPTH + d] = a[row * K + d0 + d];
      for (unsigned d = y; col < columns && d < depth; d += TILE_ROWS)
        tile_b[d * TILE_COLS + x] = b[(d0 + d) * stride + col];
      __syncthreads ();
      if (row < rows && col < columns)
#pragma unroll 16
        for (unsigned d = 0; d < depth; d++)
          sum ^= multiply_element (tables, tile_a[y * TILE_DEPTH + d],
                                   tile_b[d * TILE_COLS + x]);
      __syncthreads ();
    }
    if (row < rows && col < columns)
      c[row * stride + col] = sum;
  }
}

#endif /* tiles */
