/* gpuraid: how fast differently tuned kernels for one matrix are.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_BENCH_TUNINGS_H
#define GPURAID_BENCH_TUNINGS_H

#include "bench/report.h"
#include "bench/sweep.h"

/* A table, or an entry of "tunings", for each case of the sweep, whose
 * choices do not count: what is in s->tunings, or else a grid, fastest
 * first.  Progress goes to stderr if that is a terminal.  0, or -1 reported:
 * wrong bytes, too.
 */
extern int tunings_run (const struct sweep *, struct report *);

#endif
