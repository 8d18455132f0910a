/* gpuraid: how a kernel is launched.
 *
 * Pure.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEXT_SHAPE_H
#define GPURAID_TEXT_SHAPE_H

#include <stddef.h>

#include "common/bits.h"
#include "gpu/device/driver.h"
#include "gpu/text/params.h"

/* A file of kernels that is built in. */
struct kernel_image {
  const char *source;           /* for the run-time compiler, or NULL */
  const unsigned char *image;   /* for the driver */
  const size_t *len;            /* of image: 0 where there was no nvcc */
};

/* Its one parameter is a struct kernel_params.  Any cell_len that the coder's
 * contract allows.
 */
struct kernel_shape {
  const char *name;             /* extern "C" */
  const struct kernel_image *image; /* where it is; NULL: in the text */
  unsigned block;               /* threads */
  unsigned bytes;               /* of every cell, for each thread */

  /* Of the kernels on tensor cores; 0 for all others. */
  unsigned per_sm;              /* blocks that fit on a multiprocessor */
  unsigned shared_len;          /* dynamic shared memory, bytes */
  uint8_t block_chunks, lane_chunks_log, stages; /* for the parameter */
};

/* A kernel that was chosen to be launched on a device. */
struct kernel_choice {
  CUfunction function;
  struct kernel_shape shape;
  const void *tables;           /* of the generic kernel, borrowed, or NULL */
  size_t tables_len;
  uint64_t serial;              /* of the kernel, unique in the process */
};

/* No limit to the blocks of a launch. */
#define KERNEL_ANY_BLOCKS (~0u)

/* Tiles in a cell. */
static inline unsigned
kernel_tiles (const struct kernel_shape *s, size_t cell_len)
{
  return div_round_up (cell_len, (size_t) s->block * s->bytes);
}

/* Set what of the parameter depends on the kernel; cell_len is there. */
static inline void
kernel_shape_params (const struct kernel_shape *s, struct kernel_params *p)
{
  p->nr_tiles = kernel_tiles (s, p->cell_len);
  p->block_chunks = s->block_chunks;
  p->lane_chunks_log = s->lane_chunks_log;
  p->stages = s->stages;
}

/* The grid (*x, *y) for at most that many blocks, 1 or more, on a device with
 * nr_sms multiprocessors.  Blocks are numbered (tile, rect), but those of the
 * kernels on tensor cores are in one line: more than fit on the device at
 * once would only start anew what a block has in shared memory.
 */
static inline void
kernel_grid (const struct kernel_shape *s, const struct kernel_params *p,
             unsigned nr_sms, unsigned most, unsigned *x, unsigned *y)
{
  const uint64_t nr = (uint64_t) p->nr_tiles * p->nr_rects;

  *y = 1;
  if (s->per_sm) {
    *x = MIN (nr, MIN (most, s->per_sm * nr_sms));
    return;
  }
  *x = MIN (p->nr_tiles, most);
  *y = MIN (p->nr_rects, div_round_up ((uint64_t) most, *x));
}

#endif
