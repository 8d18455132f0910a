/* gpuraid: tests: CUDA C as C++ of the host.
 *
 * Before the source of a kernel, this makes it a module that the fake driver
 * runs (scheduler.c): each thread of a block in turn, until it ends or has to
 * wait for others.  As with the real run-time compiler there is no header of
 * the C library.  Inline assembly can't be emulated: a kernel puts it into
 * functions, and if GPURAID_EMULATED is defined gives plain C instead.
 *
 * Every access to memory that is not obviously a variable of the thread's own
 * is checked: the compiler is told to sanitize threads, and calls our
 * functions.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_FAKE_CUDA_EMULATOR_H
#define GPURAID_FAKE_CUDA_EMULATOR_H

#include "tests/fake-cuda/compiler/checks.h"
#include "tests/fake-cuda/compiler/intrinsics.h"
#include "tests/fake-cuda/compiler/runtime.h"

#define GPURAID_EMULATED 1

/* The fake compiler looks for the section's name to find the kernels. */
#define __global__ \
  __attribute__ ((noinline, __section__ (".text.cuda_global")))
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __shared__ thread_local
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__ ((__always_inline__))
#define __noinline__ __attribute__ ((__noinline__))
#define __inline__ inline
#define __align__(n) __attribute__ ((__aligned__ (n)))
/* alignas is not allowed at CUDA C's place for it, after __shared__. */
#define alignas(n) __attribute__ ((__aligned__ (n)))
#ifndef __clang__
#define __builtin_assume(x) ((void) 0)
#endif

#define threadIdx (emu_thread_idx ())
#define blockIdx (emu_block_idx ())
#define blockDim (emu_block_dim ())
#define gridDim (emu_grid_dim ())
#define warpSize EMU_WARP

/* Kernels are called with an array of pointers to their parameters. */
template <unsigned... I> struct emu_indices { };
template <unsigned N, unsigned... I>
struct emu_count : emu_count<N - 1, N - 1, I...> { };
template <unsigned... I> struct emu_count<0, I...> {
  typedef emu_indices<I...> type;
};

template <auto kernel> struct emu_entry;
template <typename... A, void (*kernel) (A...)> struct emu_entry<kernel> {
  static constexpr unsigned nr = sizeof... (A);
  static constexpr unsigned len[nr + 1] = { sizeof (A)..., 0 };
  static_assert ((sizeof (A) + ... + 0) <= 4096, "too much in parameters");

  template <unsigned... I> __attribute__ ((no_sanitize_thread))
  static void call (void **p, emu_indices<I...>)
  {
    kernel (*(A *) p[I]...);
  }
  static void call (void **p)
  {
    call (p, typename emu_count<nr>::type ());
  }
};

#define EMU_KERNEL(name)                                                \
  extern "C" const struct emu_kernel emu_kernel_##name = {              \
    emu_entry<name>::call, emu_entry<name>::nr, emu_entry<name>::len,   \
  };

extern "C" const struct emu_module emu_module = { &emu_rt, emu_make_shared };

#endif
