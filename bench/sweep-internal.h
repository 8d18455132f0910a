/* gpuraid: what the files of a sweep share: a row in the making.
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

/* What a row says of its case, whether or not it can be run. */
extern void row_start (struct row *, const struct run_request *);
/* Which of the metrics are wanted of it, and are there. */
extern unsigned row_nr_metrics (const struct sweep *, const struct run *,
                                enum metric metric[2]);

/* Make the entry, and prove that its bytes are right.  0, or -1: row.why. */
extern int row_open (const struct sweep *, struct entry *, struct run *,
                     enum metric);
/* Begin to take samples.  0, or -1: row.why. */
extern int row_begin (const struct sweep *, struct entry *);
/* All are taken. */
extern void row_end (const struct sweep *, struct entry *);
/* 0, or -1 reported: the row could not be, or its bytes were wrong. */
extern int row_report (const struct entry *, struct report *);

/* sweep_run, with methods that take turns. */
extern int sweep_in_turn (const struct sweep *, struct report *);

#endif
