/* gpuraid: a matrix for the kernels on tensor cores.
 *
 * Pure.  gpu/kernels/tensor.cuh explains how they work; gpu/choice/tensor.c
 * loads them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEXT_TENSOR_H
#define GPURAID_TEXT_TENSOR_H

#include <stdbool.h>

#include "gf/matrix/matrix.h"
#include "gpu/text/shape.h"

/* Where the cells are. */
enum kernel_place { KERNEL_ON_HOST, KERNEL_ON_DEVICE };
#define KERNEL_NR_PLACES 2

/* The kernels: of compute capability 9.0 for either place, by wgmma; of 8.x for
 * both, by mma.sync, which 9.0 can run too.
 */
enum kernel_tensor_kind {
  KERNEL_TENSOR_HOST, KERNEL_TENSOR_DEVICE, KERNEL_TENSOR_SYNC,
};
#define KERNEL_TENSOR_KINDS 3

/* Which of those in this build serve a device and place; arch: 90 is compute
 * capability 9.0.  -1: none.
 */
extern int kernel_tensor_kind (int arch, enum kernel_place);

/* More dynamic shared memory than this they don't take, bytes: what a block
 * may have on every device, less what they have anyway.
 */
extern const unsigned kernel_tensor_max_shared[KERNEL_TENSOR_KINDS];

/* The functions of a kind. */
#define KERNEL_TENSOR_NR 4
extern const char *const
kernel_tensor_name[KERNEL_TENSOR_KINDS][KERNEL_TENSOR_NR];

/* The tables for the matrix, the same for all kinds, to be copied to the
 * device; and the shapes; a name that is NULL: not of that kind.  Freed by the
 * caller.  NULL with errno: ENOTSUP for packets, more than 64 columns, or more
 * rows than shared memory has room for (100 with 32 columns).
 */
extern void *kernel_tensor (const struct matrix *, size_t *len,
                            struct kernel_shape shape[KERNEL_TENSOR_KINDS]);

/* Whether no kernel compiled for a matrix of this size is faster. */
extern bool kernel_tensor_is_best (enum kernel_tensor_kind, unsigned rows,
                                   unsigned cols);

#endif
