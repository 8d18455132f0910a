/* gpuraid: the kernels alone, and which one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_BENCH_ENGINE_KERNEL_H
#define GPURAID_BENCH_ENGINE_KERNEL_H

#include "bench/engine.h"
#include "gpu/kernel-source.h"

/* The engine "kernel" without a kernel: kernel_engine_use brings one, and
 * then another.
 */
extern const struct engine_ops engine_kernel_any;

/* From now on it codes by this kernel, of kernel_source for the case's matrix
 * without CRCs, compiled: code is only read here.  0 and what a thread
 * has, or -1: why.
 */
extern int kernel_engine_use (struct engine *, const struct kernel_shape *,
                              const void *code, int *nr_registers,
                              int *local_len, char *why);

#endif
