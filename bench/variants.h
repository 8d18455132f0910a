/* gpuraid: kernels for one matrix, with different tunings.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_BENCH_VARIANTS_H
#define GPURAID_BENCH_VARIANTS_H

#include <stdbool.h>
#include <stddef.h>

#include "bench/meter.h"
#include "bench/tuning.h"

struct variant {
  struct kernel_tuning tuning;
  char name[TUNING_LEN];
  bool chosen;                  /* by kernel_tune */
  char *source;                 /* NULL: there is none for this matrix */
  struct kernel_shape shape;
  void *code;                   /* for the driver; NULL: why */
  size_t code_len;
  int nr_registers;             /* for each thread */
  int local_len;                /* bytes for each thread that did not fit */
  struct meter_rate sample;     /* seconds 0: not measured, why */
  char why[BENCH_WHY_LEN];
  bool wrong;                   /* and why says which byte */
};

/* A list, or two steps of a grid, and the one that is chosen. */
#define VARIANTS_MAX (1 + TUNING_MAX_LIST)
struct variants {
  unsigned nr;
  struct variant v[VARIANTS_MAX];
};

/* Add one, unless it is there already. */
extern struct variant *variants_add (struct variants *,
                                     const struct kernel_tuning *);
extern void variants_close (struct variants *);

/* Compile those from first on, several at a time, for compute capability arch;
 * but only once where the text is the same for this matrix.  NVRTC does a tenth
 * of its work under a lock, so with many processors this is faster in children
 * (gpu/compiler-child.h), which cost next to nothing.  progress is called in
 * one thread at a time, with how many are done.
 */
extern void variants_compile (struct variants *, unsigned first,
                              const struct matrix *, int arch,
                              unsigned threads,
                              void (*progress) (void *opaque, unsigned done),
                              void *opaque);

#endif
