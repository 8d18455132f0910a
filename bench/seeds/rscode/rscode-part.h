/* gpuraid: the work of one device for GPU-RSCode.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_RSCODE_PART_H
#define GPURAID_RSCODE_PART_H

#include "bench/gpu.h"
#include "bench/seeds/rscode/rscode-options.h"

#define RSCODE_MAX_PARTS 2

/* The shape of a launch. */
struct rscode_tile {
  unsigned rows, cols, depth;   /* cols of elements */
  size_t element_len;
};

/* The work of one device: a range of bytes of all chunks. */
struct rscode_part {
  struct rscode *rscode;
  struct bench_gpu *gpu;
  CUmodule module;
  CUfunction function;
  CUdeviceptr coef, in, out;    /* chunks of len bytes, end to end */
  CUstream streams[BENCH_MAX_STREAMS];
  unsigned nr_streams;
  size_t off, len;

  /* Of the work in progress. */
  int (*work) (struct rscode_part *, char *why);
  unsigned nr;
  double seconds;
  char why[BENCH_WHY_LEN];
};

struct rscode {
  struct method e;
  const struct rscode_option *option;
  struct rscode_tile tile;
  unsigned k, rows, slices;
  size_t cell_len, chunk_len;
  uint8_t *in, *out;            /* pinned: chunks end to end */
  unsigned nr_parts;
  struct rscode_part parts[RSCODE_MAX_PARTS];
};

/* gpu, off and len are set.  0, or -1: why; then close it too. */
extern int rscode_part_open (struct rscode_part *, const struct matrix *,
                             char *why);
extern void rscode_part_close (struct rscode_part *);

/* Work, for the thread whose context is the part's: 0, or -1: why.  overall
 * and raw do it nr times; raw measures seconds.
 */
extern int rscode_part_spoil (struct rscode_part *, char *why);
extern int rscode_part_load (struct rscode_part *, char *why);
extern int rscode_part_fetch (struct rscode_part *, char *why);
extern int rscode_part_raw (struct rscode_part *, char *why);
extern int rscode_part_overall (struct rscode_part *, char *why);

#endif
