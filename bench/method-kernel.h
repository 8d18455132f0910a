/* gpuraid: the kernels alone, and which one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_BENCH_METHOD_KERNEL_H
#define GPURAID_BENCH_METHOD_KERNEL_H

#include "gpu/text/source.h"
#include "measure/method.h"

/* The method "kernel" without a kernel: kernel_method_use sets one, and may be
 * called again.
 */
extern const struct method_ops method_kernel_any;

/* From now on it codes with this kernel, of kernel_source for the case's matrix
 * without CRCs, compiled: code is only read here.  0 and the registers of a
 * thread, or -1: why.
 */
extern int kernel_method_use (struct method *, const struct kernel_shape *,
                              const void *code, int *nr_registers,
                              int *local_len, char *why);

#endif
