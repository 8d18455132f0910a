/* gpuraid: the source of a kernel for one matrix.
 *
 * Pure: text from a matrix.  The text is CUDA C that needs no header; with
 * tests/cuda-emulator.h in front of it, it is plain C too.  Its kernels are
 *
 *   extern "C" __global__ void gpuraid_kernel (struct kernel_params)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_KERNEL_SOURCE_H
#define GPURAID_KERNEL_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "gf/matrix.h"

/* Goes up whenever the same matrix gives other text: part of the key of
 * what is kept on disk.
 */
#define KERNEL_SOURCE_VERSION 1

/* How a kernel is launched: (cell_len / (block * bytes), rounded up;
 * nr_rects) blocks of block threads.  No dynamic shared memory.
 */
struct kernel_shape {
  unsigned block;               /* threads */
  unsigned bytes;               /* of every cell, for each thread */
};

/* The text, which the caller frees; NULL with errno, ENOTSUP if this
 * matrix is only for the generic kernel (too big, or a packet length that
 * the kernels can't do).  With crc the kernel also makes CRC32Cs, and then
 * serves only jobs that ask for them.
 */
extern char *kernel_source (const struct matrix *, bool crc,
                            struct kernel_shape *);

/* The tables of the generic kernel for a matrix, to be copied to the
 * device: NULL with errno, freed by the caller.
 */
extern void *kernel_generic_tables (const struct matrix *, size_t *len);
extern void kernel_generic_shape (bool crc, struct kernel_shape *);

#endif
