/* gpuraid-bench: shared by the methods that run on a GPU.
 *
 * A device, memory on both sides, compiling, timing, and the pipeline of copies
 * and kernels.  Decides nothing about a code or a kernel.
 *
 * Only one thread at a time calls these, except for bench_gpu_use.  why has
 * room for BENCH_WHY_LEN bytes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_BENCH_GPU_H
#define GPURAID_BENCH_GPU_H

#include <stdbool.h>

#include "gpu/device/driver.h"
#include "measure/method.h"

/* Opened once in a process and never closed. */
struct bench_gpu {
  const struct driver *d;
  unsigned nr;                  /* of the device */
  CUdevice device;
  CUcontext context;
  char name[96];
  unsigned bus;                 /* its number on PCI */
  int arch;                     /* compute capability: 90 is 9.0 */
  unsigned nr_sms;
  double core_hz;               /* the highest clock of a multiprocessor */
  CUstream stream;              /* for what is timed by events */
  CUevent start, stop;
};

/* Choose the device of bench_gpu_get; 0 if not called. */
extern void bench_gpu_choose (unsigned nr);
/* The chosen device; its context becomes the calling thread's.  NULL: why. */
extern struct bench_gpu *bench_gpu_get (char *why);
/* Device nr, for methods with several devices; NULL: why. */
extern struct bench_gpu *bench_gpu_open (unsigned nr, char *why);
/* Make its context that of the calling thread.  Any thread. */
extern int bench_gpu_use (struct bench_gpu *, char *why);

/* Call the driver: if (CU (gpu, why, mem_free (p)) == -1) ...  0, or -1:
 * why says which call and what is wrong.
 */
#define CU(gpu, why, call)                                              \
  bench_gpu_check ((gpu), (gpu)->d->call, #call, (why))
extern int bench_gpu_check (struct bench_gpu *, CUresult, const char *call,
                            char *why);

/* Compile CUDA C for this device.  options: as for compiler_run.  The
 * caller unloads the module.
 */
extern int bench_gpu_compile (struct bench_gpu *, const char *source,
                              const char *const *options, CUmodule *,
                              char *why);
extern int bench_gpu_function (struct bench_gpu *, CUmodule, const char *name,
                               CUfunction *, char *why);
/* Copy to a __constant__ or __device__ variable; len may be less than its
 * length.
 */
extern int bench_gpu_set (struct bench_gpu *, CUmodule, const char *name,
                          const void *src, size_t len, char *why);

/* Pinned and mapped, with anything in it; NULL: why. */
extern void *bench_gpu_host_alloc (struct bench_gpu *, size_t len, char *why);
extern void bench_gpu_host_free (void *);
/* 0: why. */
extern CUdeviceptr bench_gpu_alloc (struct bench_gpu *, size_t len, char *why);
extern void bench_gpu_free (struct bench_gpu *, CUdeviceptr);

/* The seconds that nr calls of launch take on the device, by events on
 * gpu->stream, which launch must use.  0; -1: why, which launch fills if it
 * returns -1.
 */
extern int bench_gpu_time (struct bench_gpu *,
                           int (*launch) (void *opaque, char *why),
                           void *opaque, unsigned nr, double *seconds,
                           char *why);

/* The cells of a case on both sides, each side end to end: input i of rect
 * r is cell r*cols + i of in, output j cell r*rows + j of out.
 */
struct bench_cells {
  struct bench_gpu *gpu;
  size_t nr_rects, cell_len;
  unsigned cols, rows;
  uint8_t *host_in, *host_out;  /* pinned and mapped */
  CUdeviceptr in, out;
};

/* 0, or -1: why; then nothing is open, and close does nothing. */
extern int bench_cells_open (struct bench_cells *, struct bench_gpu *,
                             const struct bench_case *, char *why);
extern void bench_cells_close (struct bench_cells *);
extern uint8_t *bench_cells_in (struct bench_cells *, size_t r, unsigned i);
extern uint8_t *bench_cells_out (struct bench_cells *, size_t r, unsigned j);
/* Make the outputs on the device wrong: another method or kernel may have left
 * the right ones there.  open does it too.
 */
extern int bench_cells_clear (struct bench_cells *, char *why);
/* All outputs from the device. */
extern int bench_cells_fetch (struct bench_cells *, char *why);

/* The struct of a method with such cells begins with this. */
struct cells_method {
  struct method method;         /* first */
  struct bench_cells cells;
};

/* For its method_ops. */
extern uint8_t *cells_method_in (struct method *, size_t r, unsigned i);
extern uint8_t *cells_method_out (struct method *, size_t r, unsigned j);
extern int cells_method_spoil (struct method *, char *why);
extern int cells_method_load (struct method *, char *why);
extern int cells_method_fetch (struct method *, char *why);

/* The copies and kernels of slices, over streams.  A slice is a range of
 * bytes of all cells of one rect.
 */
struct bench_pipeline {
  unsigned nr_slices;           /* of each rect */
  size_t unit;                  /* a slice is a multiple of this, except for the
                                 * last; need not divide cell_len */
  unsigned nr_streams;          /* slices take turns on them; at most
                                 * BENCH_MAX_STREAMS */
  bool by_stage;                /* all copies in, then all kernels, then all
                                 * copies out; else slice by slice */
  /* Start the kernels for bytes off to off+len of the cells of rect r.
   * 0; -1: why.
   */
  int (*launch) (void *opaque, size_t r, size_t off, size_t len, CUstream,
                 char *why);
  void *opaque;
};
#define BENCH_MAX_STREAMS 64

/* Host memory to host memory, nr times, each waited for at its end; measured
 * with the clock.  copies: false leaves out the copies that the pipeline hides.
 */
extern int bench_cells_overall (struct bench_cells *,
                                const struct bench_pipeline *, bool copies,
                                unsigned nr, double *seconds, char *why);

#endif
