/* gpuraid: G-CRS's model against G-CRS, on this device; and where a GPU
 * begins to pay.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_BENCH_MODEL_H
#define GPURAID_BENCH_MODEL_H

#include "bench/report.h"
#include "bench/sweep.h"

/* A line, or an entry of "model", for each k, m and w of the sweep: fitted,
 * predicted, measured.  0, or -1 reported.
 */
extern int model_run (const struct sweep *, struct report *);

/* The same for "crossover": what a batch of 1, 2, 4 ... rects takes, alone,
 * on isal, cuda and auto, and on the first two once more.
 */
extern int crossover_run (const struct sweep *, struct report *);

#endif
