/* gpuraid: the instructions of the kernels on tensor cores.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TENSOR_INSTRUCTIONS_CUH
#define GPURAID_TENSOR_INSTRUCTIONS_CUH

#include "gpu/kernels/parts.cuh"

/* ---- arithmetic -------------------------------------------------------- */

INLINE u32
multiply_add (u32 a, u32 b, u32 c)
{
  u32 r;

  asm ("mad.lo.u32 %0, %1, %2, %3;" : "=r" (r) : "r" (a), "r" (b), "r" (c));
  return r;
}

/* a + 256 * b, by the pipe of floating point: as numbers of that kind these
 * are so small that they are added as integers.
 */
INLINE u32
add_256 (u32 a, u32 b)
{
  u32 r;

  asm ("{ .reg .f32 x, y, z; mov.b32 x, %1; mov.b32 y, %2;"
       " fma.rn.f32 z, y, 0f43800000, x; mov.b32 %0, z; }"
       : "=r" (r) : "r" (a), "r" (b));
  return r;
}

/* c << 16 | b << 8 | a; what is above 255 becomes 255. */
INLINE u32
pack_saturated (u32 a, u32 b, u32 c)
{
  u32 r;

  asm ("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;"
       : "=r" (r) : "r" (b), "r" (a), "r" (c));
  return r;
}

/* The bits of a where mask has ones, else those of b. */
INLINE u32
select_bits (u32 mask, u32 a, u32 b)
{
  u32 r;

  asm ("lop3.b32 %0, %1, %2, %3, 0xca;"
       : "=r" (r) : "r" (mask), "r" (a), "r" (b));
  return r;
}

/* The compiler shall keep it, and not make it anew from what it is made of. */
INLINE void keep (u32 &a) { asm volatile ("" : "+r" (a)); }

INLINE u32 from_first_lane (u32 a) { return __shfl_sync (~0u, a, 0); }

/* ---- memory: addresses of shared memory have 32 bits ------------------- */

INLINE u32
shared_address (const void *p)
{
  return (u32) __cvta_generic_to_shared (p);
}

INLINE void
shared_load4 (u32 d[4], u32 at)
{
  asm volatile ("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                : "=r" (d[0]), "=r" (d[1]), "=r" (d[2]), "=r" (d[3])
                : "r" (at) : "memory");
}

INLINE void
shared_load2 (u32 d[2], u32 at)
{
  asm volatile ("ld.shared.v2.u32 {%0, %1}, [%2];"
                : "=r" (d[0]), "=r" (d[1]) : "r" (at));
}

INLINE u32
shared_load (u32 at)
{
  u32 r;

  asm volatile ("ld.shared.u32 %0, [%1];" : "=r" (r) : "r" (at));
  return r;
}

/* What is not loaded is anything. */
INLINE void
load16_if (bool ok, u32 d[4], u64 at)
{
  asm volatile ("{ .reg .pred p; setp.ne.u32 p, %5, 0;"
                " @p ld.global.nc.L1::no_allocate.v4.u32"
                " {%0, %1, %2, %3}, [%4]; }"
                : "=r" (d[0]), "=r" (d[1]), "=r" (d[2]), "=r" (d[3])
                : "l" (at), "r" ((u32) ok));
}

INLINE void
store16_if (bool ok, u64 at, const u32 d[4])
{
  asm volatile ("{ .reg .pred p; setp.ne.u32 p, %5, 0;"
                " @p st.global.v4.u32 [%4], {%0, %1, %2, %3}; }"
                : : "r" (d[0]), "r" (d[1]), "r" (d[2]), "r" (d[3]), "l" (at),
                "r" ((u32) ok) : "memory");
}

/* ---- barriers in shared memory, for warps (sm_90) ---------------------- */

INLINE void
barrier_init (u32 at, u32 nr)
{
  asm volatile ("mbarrier.init.shared.b64 [%0], %1;"
                : : "r" (at), "r" (nr) : "memory");
}

/* This thread arrives. */
INLINE void
barrier_arrive (u32 at)
{
  asm volatile ("mbarrier.arrive.shared.b64 _, [%0];"
                : : "r" (at) : "memory");
}

/* Lane 0 arrives, and the barrier waits for len bytes more. */
INLINE void
barrier_arrive_expect (u32 at, u32 len, u32 lane)
{
  asm volatile ("{ .reg .pred p; setp.eq.u32 p, %2, 0;"
                " @p mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1; }"
                : : "r" (at), "r" (len), "r" (lane) : "memory");
}

/* All lanes, until the phase of that parity is over. */
INLINE void
barrier_wait (u32 at, u32 parity)
{
  asm volatile ("{ .reg .pred p;"
                " again: mbarrier.try_wait.parity.shared.b64 p, [%0], %1;"
                " vote.sync.all.pred p, p, 0xffffffff;"
                " @!p bra again; }"
                : : "r" (at), "r" (parity) : "memory");
}

/* Start a copy to shared memory, by one lane; the barrier counts its bytes.
 * len and both addresses are multiples of 16.
 */
INLINE void
bulk_copy (u32 to, u64 from, u32 len, u32 barrier)
{
  asm volatile ("{ .reg .pred p; elect.sync _|p, 0xffffffff;"
                " @p cp.async.bulk.shared::cluster.global.mbarrier"
                "::complete_tx::bytes [%0], [%1], %2, [%3]; }"
                : : "r" (to), "l" (from), "r" (len), "r" (barrier)
                : "memory");
}

/* What this thread stored to shared memory is seen by what works for it
 * there: the product, and copies.
 */
INLINE void
fence_shared (void)
{
  asm volatile ("fence.proxy.async.shared::cta;" : : : "memory");
}

/* ---- the product, by one warp ------------------------------------------ */

/* d = (ADD ? d : 0) + how many ones are in a AND b, for 16 rows of a and 8
 * columns of b, of 256 bits each.
 */
template <int ADD> INLINE void
mma (u32 d[4], const u32 a[4], const u32 b[2])
{
  asm volatile ("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc"
                " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9},"
                " {%10, %11, %12, %13};"
                : "=r" (d[0]), "=r" (d[1]), "=r" (d[2]), "=r" (d[3])
                : "r" (a[0]), "r" (a[1]), "r" (a[2]), "r" (a[3]), "r" (b[0]),
                "r" (b[1]), "r" (ADD ? d[0] : 0), "r" (ADD ? d[1] : 0),
                "r" (ADD ? d[2] : 0), "r" (ADD ? d[3] : 0));
}

/* ---- the product, by four warps (sm_90a) ------------------------------- */

#define SUMS16(d)                                                       \
  "+r" ((d)[0]), "+r" ((d)[1]), "+r" ((d)[2]), "+r" ((d)[3]),           \
  "+r" ((d)[4]), "+r" ((d)[5]), "+r" ((d)[6]), "+r" ((d)[7]),           \
  "+r" ((d)[8]), "+r" ((d)[9]), "+r" ((d)[10]), "+r" ((d)[11]),         \
  "+r" ((d)[12]), "+r" ((d)[13]), "+r" ((d)[14]), "+r" ((d)[15])

/* Start it.  d = (ADD ? d : 0) + how many ones are in a AND b, for 64 rows of
 * a and 32 columns of b, of 256 bits each.
 */
template <int ADD> INLINE void
wgmma (u32 d[16], const u32 a[4], u64 b)
{
  asm volatile ("wgmma.mma_async.sync.aligned.m64n32k256.s32.b1.b1.and.popc "
                "{%0, %1, %2, %3, %4, %5, %6, %7,"
                " %8, %9, %10, %11, %12, %13, %14, %15},"
                " {%16, %17, %18, %19}, %20, %21;"
                : SUMS16 (d)
                : "r" (a[0]), "r" (a[1]), "r" (a[2]), "r" (a[3]), "l" (b),
                "n" (ADD));
}

INLINE void
wgmma_begin (void)
{
  asm volatile ("wgmma.fence.sync.aligned;" : : : "memory");
}

INLINE void
wgmma_end (void)
{
  asm volatile ("wgmma.commit_group.sync.aligned;" : : : "memory");
}

INLINE void
wgmma_wait (u32 d[4][16])
{
  asm volatile ("wgmma.wait_group.sync.aligned 0;"
                : SUMS16 (d[0]), SUMS16 (d[1]), SUMS16 (d[2]), SUMS16 (d[3])
                : : "memory");
}

#endif
