/* gpuraid: compare the speed of tunings of kernels for one matrix.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_BENCH_TUNINGS_H
#define GPURAID_BENCH_TUNINGS_H

#include "bench/report.h"
#include "bench/sweep.h"

/* A table, or an entry of "tunings", for each case of the sweep, whose choices
 * do not count: the tunings in s->tunings, or else a grid, fastest first.
 * Progress goes to stderr if that is a terminal.  0, or -1 reported, also for
 * wrong bytes.
 */
extern int tunings_run (const struct sweep *, struct report *);

#endif
