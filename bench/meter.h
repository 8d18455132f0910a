/* gpuraid: samples of how long a case takes.
 *
 * They are taken a few at a time, so that several cases can take turns: a
 * shared machine is faster at one moment than at another, and all cases should
 * meet both.
 *
 * One thread at a time.  why has room for BENCH_WHY_LEN bytes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_BENCH_METER_H
#define GPURAID_BENCH_METER_H

#include "bench/run.h"

#define METER_MAX 1000

struct meter {
  struct run *run;              /* the caller's */
  enum metric metric;
  unsigned nr_times;            /* times that a sample codes everything */
  unsigned nr;                  /* samples taken */
  double sample[METER_MAX];     /* seconds, for coding everything once */
  double cpu;                   /* seconds of all processors, of all samples */
};

/* To warm up, code everything some times.  A sample is to take this many
 * seconds, or with 0 to code it once.  0, or -1: why.
 */
extern int meter_begin (struct meter *, struct run *, enum metric,
                        double seconds, char *why);
/* The same, if nothing else has changed since. */
extern int meter_warm (struct meter *, unsigned nr_times, char *why);
/* Take nr more samples, while there is room.  0, or -1: why. */
extern int meter_take (struct meter *, unsigned nr, char *why);
/* Take one more, if there is room: the mean of as many runs as fit into this
 * many seconds, at least one.  The time between two runs is not counted, nor
 * are seconds of processors.
 */
extern int meter_take_mean (struct meter *, double seconds, char *why);

struct meter_rate {
  double seconds;               /* the median, for coding everything once */
  double low, high;             /* of the same */
  double cpu_seconds;           /* of all processors, for coding once */
};

struct meter_latency {
  double p50, p90, p99, low, high;      /* seconds */
};

/* Of the samples taken, at least one.  Sorts them. */
extern void meter_rate (struct meter *, struct meter_rate *);
extern void meter_latency (struct meter *, struct meter_latency *);

struct meter_effort {
  unsigned samples;
  double seconds;               /* of a sample, at least */
};

/* Begin, take all, and end.  0, or -1: why. */
extern int meter_run (struct run *, enum metric, const struct meter_effort *,
                      struct meter_rate *, char *why);

#endif
