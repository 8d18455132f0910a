/* gpuraid: common code of all kernels: words in memory, and CRC32C.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_PARTS_CUH
#define GPURAID_PARTS_CUH

typedef unsigned int u32;
typedef unsigned long long u64;

#define INLINE static __device__ __forceinline__
#define CONSTEXPR static constexpr __host__ __device__

#ifndef GPURAID_EMULATED
#pragma nv_diag_suppress 177    /* not every kernel uses all of this */
#endif

/* ---- arithmetic -------------------------------------------------------- */

#ifdef GPURAID_EMULATED
INLINE u32 xor3 (u32 a, u32 b, u32 c) { return a ^ b ^ c; }
INLINE u32 and_xor (u32 a, u32 b, u32 c) { return (a & b) ^ c; }
INLINE u32 twice (u32 a) { return a << 1; }

INLINE u32
prmt (u32 a, u32 b, u32 selector)
{
  const u64 bytes = (u64) b << 32 | a;
  u32 r = 0;

  for (int i = 0; i < 4; i++) {
    u32 s = selector >> 4 * i & 15, byte = bytes >> 8 * (s & 7) & 255;

    r |= (s & 8 ? (byte & 128 ? 255 : 0) : byte) << 8 * i;
  }
  return r;
}
#else
INLINE u32
xor3 (u32 a, u32 b, u32 c)
{
  u32 r;

  asm ("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r" (r) : "r" (a), "r" (b),
       "r" (c));
  return r;
}

INLINE u32
and_xor (u32 a, u32 b, u32 c)
{
  u32 r;

  asm ("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r" (r) : "r" (a), "r" (b),
       "r" (c));
  return r;
}

/* Byte n of the result is byte s of a and b, where s is the selector's
 * nibble n; with bit 3 of s, its sign in all bits.
 */
INLINE u32
prmt (u32 a, u32 b, u32 selector)
{
  u32 r;

  asm ("prmt.b32 %0, %1, %2, %3;" : "=r" (r) : "r" (a), "r" (b),
       "r" (selector));
  return r;
}

/* Not by a shift: a multiplication runs on another pipe than the rest. */
INLINE u32
twice (u32 a)
{
  u32 r;

  asm ("mad.lo.u32 %0, %1, 2, 0;" : "=r" (r) : "r" (a));
  return r;
}
#endif

/* Each byte: 255 if its bit 7 is set, else 0. */
INLINE u32
signs (u32 a)
{
  return prmt (a, 0, 0xba98);
}

/* 2 * a ^ x for 4 elements of GF(2^8). */
INLINE u32
double_xor (u32 a, u32 x)
{
  return and_xor (twice (a), 0xfefefefe, and_xor (signs (a), 0x1d1d1d1d, x));
}

/* 2 * a, with more work for the pipe of multiplications and less for the
 * other.
 */
INLINE u32
doubled (u32 a)
{
  return and_xor (twice (a), 0xfefefefe,
                  __umulhi (a & 0x80808080, 0x1d << 25));
}

/* ---- cells ------------------------------------------------------------- */

/* The type of cell numbers.  With a signed type, which can't wrap, the compiler
 * lets the loads of their addresses add to it.  That is less work, but slower
 * except for the largest matrices.
 */
#ifndef CELL_NR
#define CELL_NR u32
#endif

/* Cell nr of the launch; at: its base, and the position in it. */
INLINE u64
cell_address (const struct kernel_params &p, CELL_NR nr, u64 at)
{
  return at + (u64) p.cell[nr] * 64;
}

/* Cells are read once. */
#ifdef GPURAID_EMULATED
INLINE u32 load4 (u64 at) { return *(const u32 *) at; }
INLINE uint2 load8 (u64 at) { return *(const uint2 *) at; }
INLINE uint4 load16 (u64 at) { return *(const uint4 *) at; }
#else
INLINE u32
load4 (u64 at)
{
  u32 r;

  asm ("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r" (r) : "l" (at));
  return r;
}

INLINE uint2
load8 (u64 at)
{
  uint2 r;

  asm ("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];"
       : "=r" (r.x), "=r" (r.y) : "l" (at));
  return r;
}

INLINE uint4
load16 (u64 at)
{
  uint4 r;

  asm ("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
       : "=r" (r.x), "=r" (r.y), "=r" (r.z), "=r" (r.w) : "l" (at));
  return r;
}
#endif

INLINE void store4 (u64 at, u32 a) { *(u32 *) at = a; }

INLINE void
store8 (u64 at, u32 a, u32 b)
{
  *(uint2 *) at = make_uint2 (a, b);
}

INLINE void
store16 (u64 at, u32 a, u32 b, u32 c, u32 d)
{
  *(uint4 *) at = make_uint4 (a, b, c, d);
}

/* ---- CRC32C ------------------------------------------------------------ */

/* CRC32C is reflected: bit 31 of a word is x^0.  The CRC of a block is the
 * sum of its words, each times x^32 and x^8 for each byte that follows the
 * word, and of the CRC of a block of zeros.
 */
#define CRC_BLOCK_LEN 4096
#define CRC_POLYNOMIAL 0x82f63b78

CONSTEXPR u32
crc_times_x (u32 a)
{
  return a >> 1 ^ (a & 1 ? CRC_POLYNOMIAL : 0);
}

CONSTEXPR u32
crc_times (u32 a, u32 b)
{
  u32 r = 0;

  for (int i = 31; i >= 0; i--, b = crc_times_x (b))
    if (a >> i & 1)
      r ^= b;
  return r;
}

/* x^(8 * bytes) */
CONSTEXPR u32
crc_power (u32 bytes)
{
  u32 r = 0x80000000, square = 0x00800000;

  for (; bytes; bytes >>= 1, square = crc_times (square, square))
    if (bytes & 1)
      r = crc_times (r, square);
  return r;
}

/* Of a block, a thread has WORDS words of 4 bytes, STRIDE bytes apart;
 * those of the next thread are STEP bytes further.
 */
template <int WORDS, int STRIDE, int STEP>
struct crc_tables {
  static constexpr int THREADS = CRC_BLOCK_LEN / 4 / WORDS;
  static constexpr int WARPS = THREADS / 32;

  u32 stride[4][256];           /* byte n of a word times x^(8 * STRIDE) */
  u32 thread[THREADS];          /* what thread t's sum is to be times */
  u32 zeros;                    /* CRC32C of a block of zeros */
};

template <int WORDS, int STRIDE, int STEP>
CONSTEXPR struct crc_tables<WORDS, STRIDE, STEP>
crc_make_tables ()
{
  struct crc_tables<WORDS, STRIDE, STEP> t = {};
  u32 power = crc_power (STRIDE), step = crc_power (STEP);

  /* Bit 31 is x^0. */
  for (int bit = 31; bit >= 0; bit--, power = crc_times_x (power))
    t.stride[bit / 8][1 << bit % 8] = power;
  for (int n = 0; n < 4; n++)
    for (int i = 1; i < 256; i++)
      t.stride[n][i] = t.stride[n][i & -i] ^ t.stride[n][i & (i - 1)];
  power = crc_power (CRC_BLOCK_LEN - STRIDE * (WORDS - 1) -
                     STEP * (t.THREADS - 1));
  for (int i = t.THREADS - 1; i >= 0; i--, power = crc_times (power, step))
    t.thread[i] = power;
  t.zeros = ~crc_times (~0u, crc_power (CRC_BLOCK_LEN));
  return t;
}

/* The data of CRCs that a kernel keeps in shared memory. */
typedef u32 crc_stride_table[4][256];

/* All threads; then a barrier. */
template <class TABLES> INLINE void
crc_begin (const TABLES &t, crc_stride_table stride)
{
  for (u32 i = threadIdx.x; i < 1024; i += blockDim.x)
    stride[i / 256][i % 256] = t.stride[i / 256][i % 256];
}

/* sum times x^(8 * STRIDE), and the next word. */
INLINE u32
crc_next (const crc_stride_table stride, u32 sum, u32 word)
{
  return xor3 (stride[0][sum & 255], stride[1][sum >> 8 & 255],
               xor3 (stride[2][sum >> 16 & 255], stride[3][sum >> 24], word));
}

/* What a thread's sums are multiplied by: its power of x times x^i. */
struct crc_factor {
  u32 power[32];
};

template <class TABLES> INLINE void
crc_get_factor (const TABLES &t, struct crc_factor &f)
{
  u32 a = t.thread[threadIdx.x];

#pragma unroll
  for (int i = 0; i < 32; i++) {
    f.power[i] = a;
    a = a >> 1 ^ (a & 1 ? CRC_POLYNOMIAL : 0);
  }
}

/* The sum of all threads of a warp, in each of them. */
INLINE u32
crc_sum_warp (u32 a)
{
#if defined (GPURAID_EMULATED) || __CUDA_ARCH__ >= 800
  return __reduce_xor_sync (0xffffffff, a);
#else
  for (int i = 16; i > 0; i >>= 1)
    a ^= __shfl_xor_sync (0xffffffff, a, i);
  return a;
#endif
}

/* A thread's sum of one cell goes to sums[warp]; all threads of the block
 * together.
 */
INLINE void
crc_add (u32 *sums, const struct crc_factor &f, u32 sum)
{
  u32 r = 0;

#pragma unroll
  for (int i = 0; i < 32; i++)
    if (sum >> (31 - i) & 1)
      r ^= f.power[i];
  r = crc_sum_warp (r);
  if (threadIdx.x % 32 == 0)
    sums[threadIdx.x / 32] = r;
}

/* After a barrier: the CRCs of this block of a rect's nr cells. */
template <class TABLES> INLINE void
crc_end (const TABLES &t, const struct kernel_params &p,
         const u32 (*sums)[TABLES::WARPS], u32 first, u32 nr, u32 block)
{
  u32 *out = (u32 *) p.crc + (u64) first * p.nr_tiles + block;

  for (u32 i = threadIdx.x; i < nr; i += blockDim.x) {
    u32 r = t.zeros;

    for (int warp = 0; warp < TABLES::WARPS; warp++)
      r ^= sums[i][warp];
    out[(u64) i * p.nr_tiles] = r;
  }
}

#endif
