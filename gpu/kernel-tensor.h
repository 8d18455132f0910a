/* gpuraid: a matrix for the kernels on tensor cores.
 *
 * Pure.  gpu/kernels/tensor.cuh explains how they work; gpu/kernels-tensor.c
 * loads them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_KERNEL_TENSOR_H
#define GPURAID_KERNEL_TENSOR_H

#include <stdbool.h>

#include "gf/matrix.h"
#include "gpu/kernel-shape.h"

/* The devices that have these instructions: compute capability 9.0. */
#define KERNEL_TENSOR_ARCH 90

/* More dynamic shared memory than this they don't take, bytes: what a block
 * may have there, less what they have anyway.
 */
#define KERNEL_TENSOR_MAX_SHARED (227u * 1024 - 8448)

/* Where the cells are: each has kernels of its own. */
enum kernel_place { KERNEL_ON_HOST, KERNEL_ON_DEVICE };
#define KERNEL_NR_PLACES 2

/* The functions of a place. */
#define KERNEL_TENSOR_NR 4
extern const char *const
kernel_tensor_name[KERNEL_NR_PLACES][KERNEL_TENSOR_NR];

/* Does this build have them? */
extern bool kernel_tensor_built_in (void);

/* The tables for the matrix, the same for both places, to be copied to the
 * device; and the shapes.  Freed by the caller.  NULL with errno: ENOTSUP for
 * packets, more than 64 columns, or more rows than shared memory has room for
 * (100 with 32 columns).
 */
extern void *kernel_tensor (const struct matrix *, size_t *len,
                            struct kernel_shape shape[KERNEL_NR_PLACES]);

/* Whether no kernel compiled for a matrix of this size is faster. */
extern bool kernel_tensor_is_best (unsigned rows, unsigned cols);

#endif
