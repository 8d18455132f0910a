/* gpuraid: how many XORs the programs of a bit matrix need.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_BENCH_XORS_H
#define GPURAID_BENCH_XORS_H

#include "bench/report.h"
#include "bench/sweep.h"

/* A line, or an entry of "xors", for each k, m and w of the sweep and each
 * matrix: ours, and those of the papers.  0, or -1 reported.
 */
extern int xors_run (const struct sweep *, struct report *);

#endif
