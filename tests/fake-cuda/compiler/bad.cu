/* gpuraid: tests: kernels that are wrong, for tests/gpu/test-emulator.c.
 *
 * Each takes a device address of 64 bytes, and something else.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

typedef unsigned int u32;
typedef unsigned long long u64;

extern "C" __global__ void
reads_behind (u32 *p, u64 x)
{
  p[0] = p[16];
}

extern "C" __global__ void
writes_before (u32 *p, u64 x)
{
  p[-1] = threadIdx.x;
}

extern "C" __global__ void
follows (u32 *p, u64 x)
{
  *(u32 *) x = 1;
}

extern "C" __global__ void
adds (u32 *p, u64 x)
{
  atomicAdd (p + 16, 1);
}

extern "C" __global__ void
misaligned (u32 *p, u64 x)
{
  *(uint4 *) (p + 1) = make_uint4 (1, 2, 3, 4);
}

extern "C" __global__ void
shared_index (u32 *p, u64 x)
{
  __shared__ u32 s[8];

  s[x] = 1;
  p[0] = s[x];
}

extern "C" __global__ void
local_index (u32 *p, u64 x)
{
  u32 s[8] = { p[0], p[1], p[2] };

  s[x] = p[3];
  p[4] = s[p[5] % 8];
}

extern "C" __global__ void
shifts (u32 *p, u64 x)
{
  p[0] = p[1] << (x + 24);
}

/* Half of the block has ended. */
extern "C" __global__ void
exits (u32 *p, u64 x)
{
  if (threadIdx.x < x)
    return;
  __syncthreads ();
  p[0] = 1;
}

extern "C" __global__ void
two_barriers (u32 *p, u64 x)
{
  if (threadIdx.x < x)
    __syncthreads ();
  else
    __syncthreads ();
  p[0] = 1;
}

extern "C" __global__ void
shuffle_exits (u32 *p, u64 x)
{
  if (threadIdx.x < x)
    return;
  p[0] = __shfl_xor_sync (0xffffffff, threadIdx.x, 1);
}

extern "C" __global__ void
shuffle_mask (u32 *p, u64 x)
{
  if (threadIdx.x < x)
    p[0] = __shfl_sync (0xff, threadIdx.x, 8);
}

extern "C" __global__ void
not_in_mask (u32 *p, u64 x)
{
  p[0] = __ballot_sync (0xff, 1);
}

extern "C" __global__ void
traps (u32 *p, u64 x)
{
  if (x)
    __trap ();
}
