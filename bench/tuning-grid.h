/* gpuraid: which tunings to try for a matrix.
 *
 * Pure.  All combinations would be thousands, so it is in two steps: what a
 * thread and a block are, with the rest as kernel_tune has it; then the rest,
 * with the best of these.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_BENCH_TUNING_GRID_H
#define GPURAID_BENCH_TUNING_GRID_H

#include "gpu/kernel-source.h"

#define GRID_MAX 64u            /* of one step */

enum grid_step { GRID_FRAMES, GRID_SUMS, GRID_NR_STEPS };

/* How many there are, in t; base is what this step keeps the rest of, and is
 * among them or not.  None is there twice.
 */
extern unsigned grid_fill (enum grid_step, const struct matrix *,
                           const struct kernel_tuning *base,
                           struct kernel_tuning t[GRID_MAX]);

#endif
