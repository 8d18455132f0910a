/* gpuraid: shared by the files of a sweep: a row in the making.
 *
 * Only for bench/sweep*.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_BENCH_SWEEP_INTERNAL_H
#define GPURAID_BENCH_SWEEP_INTERNAL_H

#include "bench/sweep.h"

struct entry {
  struct run *run;              /* the caller's */
  enum metric metric;
  struct meter meter;
  struct row row;
};

/* The part of a row that describes its case, whether or not it can be run. */
extern void row_start (struct row *, const struct run_request *);
/* The metrics that are wanted and that the case has. */
extern unsigned row_nr_metrics (const struct sweep *, const struct run *,
                                enum metric metric[2]);

/* Make the entry, and check its bytes.  0, or -1: row.why. */
extern int row_open (const struct sweep *, struct entry *, struct run *,
                     enum metric);
/* Begin to take samples.  0, or -1: row.why. */
extern int row_begin (const struct sweep *, struct entry *);
/* All are taken. */
extern void row_end (const struct sweep *, struct entry *);
/* 0, or -1 reported: the row was not possible, or its bytes were wrong. */
extern int row_report (const struct entry *, struct report *);

/* sweep_run, with methods that take turns. */
extern int sweep_in_turn (const struct sweep *, struct report *);

#endif
