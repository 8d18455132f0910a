/* gpuraid: the parameter of all kernels.
 *
 * Shared with the kernels' own sources, so it needs only fixed integers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_TEXT_PARAMS_H
#define GPURAID_TEXT_PARAMS_H

#ifdef __CUDACC_RTC__           /* which has no headers */
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#else
#include <stdint.h>
#endif

/* All data for a launch is in its one parameter, of which every driver takes 4
 * KiB, so that a small job costs no copy.
 */
#define KERNEL_PARAMS_LEN 4096
#define KERNEL_MAX_CELLS 1008

/* A tile is the part of each cell of a rect that a block of threads takes at
 * once.  Blocks are numbered (tile, rect), and each continues with the tile
 * that is gridDim further, and with rects likewise.  So any number of blocks
 * does the whole launch, and a small number has little in flight, in the order
 * of the cells.
 */
struct kernel_params {
  uint64_t in_base, out_base;   /* device addresses that cell counts from, of
                                 * inputs and of outputs */
  uint64_t tables;              /* of the matrix, for the generic kernels */
  uint64_t crc;                 /* device address of uint32_t: per rect its
                                 * inputs, then its outputs, the blocks of a
                                 * cell in order; need not be all 0 before the
                                 * launch */
  uint32_t cell_len;            /* bytes */
  uint32_t nr_rects;
  uint16_t cols, rows;          /* specialised kernels know them */
  uint32_t nr_tiles;            /* in a cell */
  uint32_t packet_len, w;       /* for the generic kernels of packets */
  uint8_t block_chunks, lane_chunks_log; /* for the kernels on tensor cores: see
                                 * gpu/kernels/tensor.cuh */
  uint8_t stages, unused;       /* see gpu/kernels/tensor-device.cu */
  uint32_t cell[KERNEL_MAX_CELLS]; /* in units of 64 bytes: per rect its
                                 * inputs, then its outputs */
};

#ifdef __cplusplus
static_assert (sizeof (struct kernel_params) <= KERNEL_PARAMS_LEN, "params");
#else
_Static_assert (sizeof (struct kernel_params) <= KERNEL_PARAMS_LEN, "params");
#endif

#endif
