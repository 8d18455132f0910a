/* gpuraid: tests: between an emulated kernel and the scheduler.
 *
 * Part of every emulated module (emulator.h) and of the fake driver, so it
 * needs no header of the C library.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_FAKE_CUDA_RUNTIME_H
#define GPURAID_FAKE_CUDA_RUNTIME_H

#define EMU_WARP 32
#define EMU_DYNAMIC_LEN 65536   /* bytes of dynamic shared memory */
/* A stack is aligned to its length, and ends with a pointer to what runs on it:
 * so a kernel finds that without thread-local variables, which sanitizers make
 * slow.
 */
#define EMU_STACK_LEN 0x40000

struct emu_dim {
  unsigned x, y, z;
};

/* The running thread: one of these for each thread of the driver, filled again
 * for each emulated thread.
 */
struct emu_thread {
  struct emu_dim thread, block, block_dim, grid_dim;
  __UINTPTR_TYPE__ lo, hi;      /* where the last access was allowed */
  __UINTPTR_TYPE__ stack_lo, stack_hi;
};

enum emu_atomic {
  EMU_ADD, EMU_SUB, EMU_EXCHANGE, EMU_AND, EMU_OR, EMU_XOR, EMU_CAS,
};

struct emu_runtime {
  /* Ends the launch if p is not memory of this device. */
  void (*check) (const void *p, __SIZE_TYPE__ len, int write);
  /* Ends the launch. */
  void (*fail) (const char *file, unsigned line, const char *what);
  /* __syncthreads: the sum of value over the block. */
  unsigned (*barrier) (unsigned line, unsigned value);
  /* Every lane of mask gives a value: all of them, by lane. */
  void (*exchange) (unsigned line, unsigned mask, __UINT64_TYPE__ value,
                    __UINT64_TYPE__ *all);
  /* The old value of what p points to, len (4 or 8) bytes.  c: what
   * EMU_CAS compares with.
   */
  __UINT64_TYPE__ (*atomic) (enum emu_atomic, void *p, unsigned len,
                             __UINT64_TYPE__ v, __UINT64_TYPE__ c);
};

/* A kernel, as its module exports it under the name emu_kernel_NAME. */
struct emu_kernel {
  void (*call) (void **params);
  unsigned nr_params;
  const unsigned *param_len;    /* bytes of each */
};

/* A module, as it exports itself under the name emu_module. */
struct emu_module {
  const struct emu_runtime **runtime; /* for the driver to fill in */
  void (*make_shared) (void);   /* this thread's shared variables */
};

/* What the fake compiler makes: this, then a shared object. */
#define EMU_CUBIN_MAGIC "gpuraid fake cubin 4\n"

struct emu_cubin {
  char magic[24];
  __UINT32_TYPE__ arch;         /* 90: compute capability 9.0 */
  __UINT32_TYPE__ sum;          /* emu_cubin_sum of what follows */
  __UINT64_TYPE__ len;          /* of what follows */
};

static inline __UINT32_TYPE__
emu_cubin_sum (const void *p, __UINT64_TYPE__ len)
{
  const unsigned char *c = (const unsigned char *) p;
  __UINT32_TYPE__ sum = 2166136261;

  while (len--)
    sum = (sum ^ *c++) * 16777619;
  return sum;
}

#endif
