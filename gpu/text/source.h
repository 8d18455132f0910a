/* gpuraid: the source of a kernel for one matrix.
 *
 * Pure: text from a matrix.  The text is CUDA C++ that needs no header; the
 * tests run it on the processor too.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEXT_SOURCE_H
#define GPURAID_TEXT_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "gf/matrix/matrix.h"
#include "gpu/text/shape.h"

/* Increment whenever the same matrix gives other text: part of the key of
 * kernels on disk.
 */
#define KERNEL_SOURCE_VERSION 4

/* Which sums within a row are made once (gpu/text/row.h). */
enum kernel_share { KERNEL_SHARE_NONE, KERNEL_SHARE_EVEN, KERNEL_SHARE_ODD };

/* The parameters of the text; how fast it is depends on the device. */
struct kernel_tuning {
  unsigned bytes;               /* 4, 8 or 16: of a packet, for each thread */
  unsigned block;               /* threads, a multiple of 32 */
  unsigned min_blocks;          /* that must fit on a multiprocessor with their
                                 * registers; 0: the compiler chooses */
  bool signed_cells;            /* see CELL_NR in gpu/kernels/parts.cuh */
  /* Of bytes only. */
  unsigned group;               /* 1 to 4: adjacent columns; all their sums are
                                 * made once, for all rows */
  enum kernel_share share;
  unsigned multiply;            /* how many of the 7 doublings of a row at most
                                 * use multiplications */
};

/* The fastest for matrices of this size. */
extern void kernel_tune (const struct matrix *, struct kernel_tuning *);
/* The text, which the caller frees; NULL with errno, ENOTSUP if this
 * matrix is only for the generic kernel.  With crc the kernel also makes
 * CRC32Cs, and then serves only jobs that ask for them; bytes and block
 * are then given by the blocks that are summed.
 */
extern char *kernel_source (const struct matrix *, bool crc,
                            const struct kernel_tuning *,
                            struct kernel_shape *);

/* The generic kernels, of gpu/kernels/generic.cu: which one, and its table for
 * the matrix, to be copied to the device.  Freed by the caller; NULL with
 * errno, ENOTSUP if no kernel can do it (crc of packets that are not of code
 * crs in an array: w 4 or 8, 4096 bytes a block).
 */
extern void *kernel_generic (const struct matrix *, bool crc, size_t *len,
                             struct kernel_shape *);

#endif
