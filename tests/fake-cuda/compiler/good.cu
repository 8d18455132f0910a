/* gpuraid: tests: kernels that are right, for tests/gpu/test-emulator.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

typedef unsigned int u32;
typedef unsigned long long u64;

__constant__ u32 table[256];
__device__ u64 total;

extern "C" __global__ void
functions (u32 *out, u32 x, u32 y)
{
  *out++ = __popc (x);
  *out++ = __clz (x >> 7);
  *out++ = __clz (0);
  *out++ = __brev (x);
  *out++ = __umulhi (x, y);
  *out++ = __byte_perm (x, y, 0x7530);
  *out++ = __byte_perm (y, x, 0xba98);
  *out++ = __funnelshift_l (x, y, 36);
  *out++ = __funnelshift_r (x, y, 36);
  *out++ = __funnelshift_lc (x, y, 36);
  *out++ = __popcll ((u64) x << 32 | y);
  *out++ = __ffs (x & ~15);
  *out++ = min (x, y) ^ max (x, 1u);
  *out++ = __clzll (y);
}

/* One warp; 32 words for each question. */
extern "C" __global__ void
warp (u32 *out)
{
  const u32 lane = threadIdx.x, all = 0xffffffff, v = lane * lane + 1;

  out[lane] = __shfl_sync (all, v, lane + 3);
  out[32 + lane] = __shfl_up_sync (all, v, 2, 8);
  out[64 + lane] = __shfl_down_sync (all, v, 2, 8);
  out[96 + lane] = __shfl_xor_sync (all, v, 5);
  out[128 + lane] = __ballot_sync (all, lane % 3 == 0);
  out[160 + lane] = __reduce_xor_sync (all, v);
  out[192 + lane] = __reduce_max_sync (all, v);
  if (lane < 16)
    out[224 + lane] = __reduce_add_sync (0x0000ffff, v);
  else
    out[224 + lane] = __any_sync (0xffff0000, lane == 20);
  __syncwarp ();
  out[256 + lane] = __shfl_sync (all, (u64) v << 33, 7) >> 33;
}

/* Of blocks of 32 x 4 threads, in two ways; a word of dynamic shared
 * memory for each thread.
 */
extern "C" __global__ void __launch_bounds__ (128)
sums (const u32 *__restrict__ in, u32 *out, u32 nr)
{
  __shared__ u32 part[4][2];
  extern __shared__ u32 all[];
  const u32 t = threadIdx.y * 32 + threadIdx.x;
  const u32 i = blockIdx.x * 128 + t;
  u32 v = i < nr ? __ldg (in + i) + table[t] : 0;

  all[t] = v;
#pragma unroll
  for (int n = 16; n > 0; n /= 2)
    v += __shfl_down_sync (0xffffffff, v, n);
  if (threadIdx.x == 0) {
    part[threadIdx.y][0] = v;
    part[threadIdx.y][1] = 0;
  }
  const u32 few = __syncthreads_count (i < nr);

  for (u32 n = 64; n > 0; n /= 2) {
    if (t < n)
      all[t] += all[t + n];
    __syncthreads ();
  }
  if (t == 0) {
    u32 sum = 0;

    for (int w = 0; w < 4; w++)
      sum += part[w][0] + part[w][1];
    out[blockIdx.x * 3] = sum;
    out[blockIdx.x * 3 + 1] = all[0];
    out[blockIdx.x * 3 + 2] = few;
  }
}

extern "C" __global__ void
atomics (u32 *out)
{
  __shared__ u32 bits;
  const u32 t = threadIdx.x;

  if (t == 0)
    bits = 0;
  __syncthreads ();
  atomicXor (&bits, t * 0x01000193);
  atomicAdd (out, 1);
  atomicMax (out + 1, t);
  atomicOr (out + 2, 1u << (t & 15));
  atomicAdd (&total, (u64) t << 32);
  if (atomicCAS (out + 3, 0, 77) == 0)
    atomicAdd (out + 4, 1);
  __syncthreads ();
  if (t == 0)
    atomicXor (out + 5, bits);
}

struct big {
  unsigned char first;
  u64 at;
  u32 more[1000];
};

extern "C" __global__ void
parameters (u32 *out, const __grid_constant__ struct big b,
            unsigned char c, double e, const uint4 v)
{
  out[0] = b.first;
  out[1] = b.at;
  out[2] = b.more[c];
  out[3] = c;
  out[4] = e * 4;
  out[5] = v.w;
  out[6] = T;
  out[7] = A + 1;
  out[8] = gridDim.x << 16 | blockDim.x;
}

__device__ __forceinline__ uint4
operator^ (uint4 a, uint4 b)
{
  return make_uint4 (a.x ^ b.x, a.y ^ b.y, a.z ^ b.z, a.w ^ b.w);
}

extern "C" __global__ void __launch_bounds__ (256)
plain (const uint4 *a, const uint4 *b, uint4 *to, u32 nr)
{
  const u32 i = blockIdx.x * blockDim.x + threadIdx.x;

  if (i < nr)
    to[i] = a[i] ^ b[i];
}

/* Wrong, but not always detected: a thread reads what its neighbour wrote, with
 * no barrier between.
 */
extern "C" __global__ void
race (u32 *out)
{
  __shared__ u32 s[64];
  const u32 t = threadIdx.x;

  s[t] = t;
  out[blockIdx.x * 64 + t] = s[t == 0 ? 63 : t - 1];
}

/* Wrong: shared memory has no content at first. */
extern "C" __global__ void
unset (u32 *out)
{
  __shared__ u32 s[2];

  out[blockIdx.x] = s[threadIdx.x];
  s[threadIdx.x] = 0;
}

/* No program can ask for it: its name is not C's. */
__global__ void
mangled (u32 *out)
{
  *out = 1;
}
