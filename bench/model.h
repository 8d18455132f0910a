/* gpuraid: G-CRS's model compared with G-CRS on this device; and the crossover
 * between CPU and GPU.
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

/* The same for "crossover": the time of a batch of 1, 2, 4 ... rects, alone, on
 * isal, cuda and auto, and on the first two once more.
 */
extern int crossover_run (const struct sweep *, struct report *);

#endif
