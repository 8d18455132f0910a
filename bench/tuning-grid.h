/* gpuraid: which tunings to try for a matrix.
 *
 * Pure.  All combinations would be thousands, so there are two steps: first the
 * work of a thread and the size of a block, with the rest from kernel_tune;
 * then the rest, with the best of these.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_BENCH_TUNING_GRID_H
#define GPURAID_BENCH_TUNING_GRID_H

#include "gpu/kernel-source.h"

#define GRID_MAX 64u            /* of one step */

enum grid_step { GRID_FRAMES, GRID_SUMS, GRID_NR_STEPS };

/* Put the tunings of a step into t; returns how many.  base has the values that
 * this step does not change, and may be among them.  All are different.
 */
extern unsigned grid_fill (enum grid_step, const struct matrix *,
                           const struct kernel_tuning *base,
                           struct kernel_tuning t[GRID_MAX]);

#endif
