/* gpuraid: shared by the files that write kernels.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEXT_INTERNAL_H
#define GPURAID_TEXT_INTERNAL_H

#include <stdio.h>

#include "gpu/text/params.h"
#include "gpu/text/source.h"

#define CRC_BLOCK_LEN 4096u

/* gpu/kernels/specialised.cuh, whole. */
extern const char source_specialised[];

/* The parameters of the frame: see gpu/kernels/specialised.cuh. */
struct kernel_frame {
  unsigned block, bytes, min_blocks, w;
  bool signed_cells;
  unsigned crc_words, crc_stride, crc_step;
};

/* Everything up to the body of the function code. */
extern void kernel_source_begin (FILE *fp, const struct matrix *, bool crc,
                                 const struct kernel_frame *);

/* After the line that sums cell n of nr: sum all pending cells, if there are
 * enough.
 */
#define CRC_PENDING 16          /* as in gpu/kernels/specialised.cuh */
extern void kernel_source_flush (FILE *fp, unsigned n, unsigned nr);

/* kernel_source for packets. */
extern char *kernel_source_packets (const struct matrix *, bool crc,
                                    const struct kernel_tuning *,
                                    struct kernel_shape *);

/* Whether the kernels can make CRCs for a matrix of packets: w is 4 or 8,
 * and w packets are a block.
 */
extern bool kernel_crc_packets (const struct matrix *);

/* kernel_generic for packets. */
extern void *kernel_generic_packets (const struct matrix *, bool crc,
                                     size_t *len, struct kernel_shape *);

#endif
