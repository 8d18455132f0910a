/* gpuraid: tests: the functions and types that CUDA C has built in.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_FAKE_CUDA_INTRINSICS_H
#define GPURAID_FAKE_CUDA_INTRINSICS_H

#include "tests/fake-cuda/compiler/checks.h"

typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;

#define EMU_VECTORS(name, type, align2, align4)                         \
  struct name##1 { type x; };                                           \
  struct __attribute__ ((aligned (align2))) name##2 { type x, y; };     \
  struct __attribute__ ((aligned (align4))) name##4 { type x, y, z, w; }; \
  static inline name##2 make_##name##2 (type x, type y)                 \
  { return name##2 { x, y }; }                                          \
  static inline name##4 make_##name##4 (type x, type y, type z, type w) \
  { return name##4 { x, y, z, w }; }

EMU_VECTORS (char, signed char, 2, 4)
EMU_VECTORS (uchar, unsigned char, 2, 4)
EMU_VECTORS (short, short, 4, 8)
EMU_VECTORS (ushort, unsigned short, 4, 8)
EMU_VECTORS (int, int, 8, 16)
EMU_VECTORS (uint, unsigned, 8, 16)
EMU_VECTORS (ulong, unsigned long, 16, 16)
EMU_VECTORS (longlong, long long, 16, 16)
EMU_VECTORS (ulonglong, unsigned long long, 16, 16)
EMU_VECTORS (float, float, 8, 16)
EMU_VECTORS (double, double, 16, 16)
typedef struct emu_dim uint3, dim3;

#define EMU_FN static inline __attribute__ ((always_inline, unused))

/* ---- of one thread */

EMU_FN int __popc (unsigned x) { return __builtin_popcount (x); }
EMU_FN int __popcll (unsigned long long x) { return __builtin_popcountll (x); }
EMU_FN int __clz (int x) { return x ? __builtin_clz (x) : 32; }
EMU_FN int __clzll (long long x) { return x ? __builtin_clzll (x) : 64; }
EMU_FN int __ffs (int x) { return __builtin_ffs (x); }
EMU_FN int __ffsll (long long x) { return __builtin_ffsll (x); }

EMU_FN unsigned
__brev (unsigned x)
{
  x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
  x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
  x = (x >> 4 & 0x0f0f0f0f) | (x & 0x0f0f0f0f) << 4;
  return __builtin_bswap32 (x);
}

EMU_FN unsigned long long
__brevll (unsigned long long x)
{
  return (unsigned long long) __brev (x) << 32 | __brev (x >> 32);
}

EMU_FN unsigned
__umulhi (unsigned a, unsigned b)
{
  return (unsigned long long) a * b >> 32;
}

EMU_FN int __mulhi (int a, int b) { return (long long) a * b >> 32; }

EMU_FN unsigned long long
__umul64hi (unsigned long long a, unsigned long long b)
{
  return (unsigned __int128) a * b >> 64;
}

EMU_FN unsigned
__umul24 (unsigned a, unsigned b)
{
  return (a & 0xffffff) * (b & 0xffffff);
}

EMU_FN unsigned
__byte_perm (unsigned x, unsigned y, unsigned s)
{
  unsigned long long all = (unsigned long long) y << 32 | x;
  unsigned r = 0;

  for (unsigned i = 0; i < 4; i++) {
    unsigned sel = s >> 4 * i & 15, byte = all >> 8 * (sel & 7) & 255;

    if (sel & 8)                /* the byte's sign, all over */
      byte = byte & 128 ? 255 : 0;
    r |= byte << 8 * i;
  }
  return r;
}

EMU_FN unsigned
__funnelshift_l (unsigned lo, unsigned hi, unsigned s)
{
  return (((unsigned long long) hi << 32 | lo) << (s & 31)) >> 32;
}

EMU_FN unsigned
__funnelshift_r (unsigned lo, unsigned hi, unsigned s)
{
  return ((unsigned long long) hi << 32 | lo) >> (s & 31);
}

EMU_FN unsigned
__funnelshift_lc (unsigned lo, unsigned hi, unsigned s)
{
  return ((unsigned __int128) ((unsigned long long) hi << 32 | lo)
          << (s < 32 ? s : 32)) >> 32;
}

EMU_FN unsigned
__funnelshift_rc (unsigned lo, unsigned hi, unsigned s)
{
  return ((unsigned long long) hi << 32 | lo) >> (s < 32 ? s : 32);
}

#define EMU_MIN_MAX(type)                                       \
  EMU_FN type min (type a, type b) { return a < b ? a : b; }    \
  EMU_FN type max (type a, type b) { return a > b ? a : b; }

EMU_MIN_MAX (int)
EMU_MIN_MAX (unsigned)
EMU_MIN_MAX (long)
EMU_MIN_MAX (unsigned long)
EMU_MIN_MAX (long long)
EMU_MIN_MAX (unsigned long long)
EMU_MIN_MAX (float)
EMU_MIN_MAX (double)

#define EMU_LOAD(name) \
  template <typename T> EMU_FN T name (const T *p) { return *p; }
#define EMU_STORE(name) \
  template <typename T> EMU_FN void name (T *p, T v) { *p = v; }

EMU_LOAD (__ldg)
EMU_LOAD (__ldca)
EMU_LOAD (__ldcg)
EMU_LOAD (__ldcs)
EMU_LOAD (__ldcv)
EMU_LOAD (__ldlu)
EMU_STORE (__stcg)
EMU_STORE (__stcs)
EMU_STORE (__stwb)
EMU_STORE (__stwt)

EMU_FN void __threadfence (void) { }
EMU_FN void __threadfence_block (void) { }
EMU_FN void __threadfence_system (void) { }
EMU_FN void __nanosleep (unsigned) { }
EMU_FN void __prefetch_global_l2 (const void *) { }
EMU_FN long long clock64 (void) { return 0; }
#define __trap() emu_fail (__FILE__, __LINE__, "__trap")

/* ---- between threads */

/* A float travels as its bits. */
template <typename T> EMU_FN __UINT64_TYPE__
emu_bits (T v)
{
  __UINT64_TYPE__ bits = 0;

  static_assert (sizeof (T) == 4 || sizeof (T) == 8, "4 or 8 bytes");
  __builtin_memcpy (&bits, &v, sizeof v);
  return bits;
}

template <typename T> EMU_FN T
emu_value (__UINT64_TYPE__ bits)
{
  T v;

  __builtin_memcpy (&v, &bits, sizeof v);
  return v;
}

/* The second argument is often of another type than *p. */
template <typename T> struct emu_same { typedef T type; };

#define EMU_ATOMIC(name, op)                                            \
  template <typename T> EMU_FN T                                        \
  name (T *p, typename emu_same<T>::type v)                             \
  {                                                                     \
    static_assert ((T) 0.5 == 0, "only integers are emulated");         \
    return emu_value<T> (emu_atomic (op, p, sizeof (T),             \
                                         emu_bits<T> (v), 0));          \
  }                                                                     \
  template <typename T> EMU_FN T                                        \
  name##_block (T *p, typename emu_same<T>::type v)                     \
  { return name (p, v); }                                               \
  template <typename T> EMU_FN T                                        \
  name##_system (T *p, typename emu_same<T>::type v)                    \
  { return name (p, v); }

EMU_ATOMIC (atomicAdd, EMU_ADD)
EMU_ATOMIC (atomicSub, EMU_SUB)
EMU_ATOMIC (atomicExch, EMU_EXCHANGE)
EMU_ATOMIC (atomicAnd, EMU_AND)
EMU_ATOMIC (atomicOr, EMU_OR)
EMU_ATOMIC (atomicXor, EMU_XOR)

template <typename T> EMU_FN T
atomicCAS (T *p, typename emu_same<T>::type old,
           typename emu_same<T>::type v)
{
  return emu_value<T> (emu_atomic (EMU_CAS, p, sizeof (T),
                                       emu_bits<T> (v), emu_bits<T> (old)));
}

#define EMU_ATOMIC_IF(name, op)                         \
  template <typename T> EMU_FN T                        \
  name (T *p, typename emu_same<T>::type v)             \
  {                                                     \
    T old = atomicOr (p, 0), seen;                      \
                                                        \
    while (v op old) {                                  \
      seen = atomicCAS (p, old, v);                     \
      if (seen == old)                                  \
        break;                                          \
      old = seen;                                       \
    }                                                   \
    return old;                                         \
  }

EMU_ATOMIC_IF (atomicMin, <)
EMU_ATOMIC_IF (atomicMax, >)

/* Which lane a shuffle reads: CUDA keeps it inside a part of width lanes. */
EMU_FN unsigned
emu_lane (void)
{
  struct emu_dim t = emu_thread_idx (), d = emu_block_dim ();

  return (t.x + d.x * (t.y + d.y * t.z)) % EMU_WARP;
}

enum emu_shuffle { EMU_IDX, EMU_UP, EMU_DOWN, EMU_LANE_XOR };

EMU_FN unsigned
emu_source (enum emu_shuffle kind, unsigned n, unsigned width)
{
  unsigned lane = emu_lane (), first = lane & ~(width - 1);
  unsigned last = first + width - 1, from = lane;

  switch (kind) {
  case EMU_IDX: from = first + (n & (width - 1)); break;
  case EMU_UP: from = lane - first >= n ? lane - n : lane; break;
  case EMU_DOWN: from = last - lane >= n ? lane + n : lane; break;
  case EMU_LANE_XOR: from = (lane ^ n) <= last ? lane ^ n : lane; break;
  }
  return from;
}

template <typename T> EMU_FN T
emu_shuffle_value (unsigned line, enum emu_shuffle kind, unsigned mask,
                   T v, unsigned n, unsigned width = EMU_WARP)
{
  unsigned from = emu_source (kind, n, width);
  __UINT64_TYPE__ all[EMU_WARP];

  if (!(mask >> from & 1))
    emu_fail (0, line, "shuffle reads a lane that is not in its mask");
  emu_exchange (line, mask, emu_bits (v), all);
  return emu_value<T> (all[from]);
}

#define __shfl_sync(mask, ...) \
  emu_shuffle_value (__LINE__, EMU_IDX, mask, __VA_ARGS__)
#define __shfl_up_sync(mask, ...) \
  emu_shuffle_value (__LINE__, EMU_UP, mask, __VA_ARGS__)
#define __shfl_down_sync(mask, ...) \
  emu_shuffle_value (__LINE__, EMU_DOWN, mask, __VA_ARGS__)
#define __shfl_xor_sync(mask, ...) \
  emu_shuffle_value (__LINE__, EMU_LANE_XOR, mask, __VA_ARGS__)

EMU_FN void
emu_syncwarp (unsigned line, unsigned mask = 0xffffffff)
{
  __UINT64_TYPE__ all[EMU_WARP];

  emu_exchange (line, mask, 0, all);
}

EMU_FN unsigned
emu_ballot (unsigned line, unsigned mask, int predicate)
{
  __UINT64_TYPE__ all[EMU_WARP];
  unsigned r = 0;

  emu_exchange (line, mask, predicate != 0, all);
  for (unsigned i = 0; i < EMU_WARP; i++)
    if (mask >> i & 1)
      r |= (unsigned) all[i] << i;
  return r;
}

enum emu_reduce { EMU_R_XOR, EMU_R_OR, EMU_R_AND, EMU_R_ADD, EMU_R_MIN,
                  EMU_R_MAX };

template <typename T> EMU_FN T
emu_reduce_value (unsigned line, enum emu_reduce kind, unsigned mask, T v)
{
  T r = kind == EMU_R_AND ? (T) -1 : kind >= EMU_R_MIN ? v : (T) 0;
  __UINT64_TYPE__ all[EMU_WARP];

  emu_exchange (line, mask, emu_bits (v), all);
  for (unsigned i = 0; i < EMU_WARP; i++) {
    T x = emu_value<T> (all[i]);

    if (!(mask >> i & 1))
      continue;
    switch (kind) {
    case EMU_R_XOR: r ^= x; break;
    case EMU_R_OR: r |= x; break;
    case EMU_R_AND: r &= x; break;
    case EMU_R_ADD: r += x; break;
    case EMU_R_MIN: r = x < r ? x : r; break;
    case EMU_R_MAX: r = x > r ? x : r; break;
    }
  }
  return r;
}

#define __syncwarp(...) emu_syncwarp (__LINE__ __VA_OPT__ (,) __VA_ARGS__)
#define __ballot_sync(mask, p) emu_ballot (__LINE__, mask, p)
#define __any_sync(mask, p) (emu_ballot (__LINE__, mask, p) != 0)
#define __all_sync(mask, p) (emu_ballot (__LINE__, mask, !(p)) == 0)
#define __reduce_xor_sync(mask, v) \
  emu_reduce_value (__LINE__, EMU_R_XOR, mask, v)
#define __reduce_or_sync(mask, v) \
  emu_reduce_value (__LINE__, EMU_R_OR, mask, v)
#define __reduce_and_sync(mask, v) \
  emu_reduce_value (__LINE__, EMU_R_AND, mask, v)
#define __reduce_add_sync(mask, v) \
  emu_reduce_value (__LINE__, EMU_R_ADD, mask, v)
#define __reduce_min_sync(mask, v) \
  emu_reduce_value (__LINE__, EMU_R_MIN, mask, v)
#define __reduce_max_sync(mask, v) \
  emu_reduce_value (__LINE__, EMU_R_MAX, mask, v)

#define __syncthreads() ((void) emu_barrier (__LINE__, 0))
#define __syncthreads_count(p) ((int) emu_barrier (__LINE__, (p) != 0))
#define __syncthreads_or(p) (emu_barrier (__LINE__, (p) != 0) != 0)
#define __syncthreads_and(p) (emu_barrier (__LINE__, (p) == 0) == 0)

#endif
