/* gpuraid: one case on one method: prepare, code, check.
 *
 * One thread at a time.  why has room for BENCH_WHY_LEN bytes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_MEASURE_RUN_H
#define GPURAID_MEASURE_RUN_H

#include "measure/code.h"
#include "measure/method.h"

/* What to lose and decode. */
enum loss {
  LOSS_NONE,                    /* encode */
  LOSS_RANDOM,                  /* nr_lost of the k + m */
  LOSS_DATA,                    /* min (k, m) of the k */
  LOSS_GIVEN,                   /* lost[0..nr_lost-1], ascending */
};

struct run_request {
  const struct method_ops *ops;
  const char *option;           /* of the method, or NULL */
  enum code code;               /* for methods without a code of their own */
  unsigned k, m;
  unsigned w, w_floor;          /* w: 0, then at least w_floor */
  enum loss loss;
  unsigned nr_lost;             /* 0 with LOSS_RANDOM: m */
  const unsigned *lost;
  size_t cell_len;              /* rounded down to what the method supports */
  size_t nr_rects;              /* 0: as many as memory_len holds */
  size_t memory_len;            /* bytes of all cells, */
  size_t least_rects;           /* but at least this many rects */
  unsigned threads;
  unsigned slices;
  uint64_t seed;
};

struct run {
  struct run_request request;
  struct bench_case bc;
  struct matrix *matrix;
  struct method *method;
  uint64_t random;
};

/* Make the matrix and open the method, with random inputs.  NULL: why. */
extern struct run *run_open (const struct run_request *, char *why);
extern void run_close (struct run *);

/* The ways to measure. */
enum metric {
  METRIC_RAW, METRIC_OVERALL,
};
extern bool run_can (const struct run *, enum metric);
extern const char *run_metric_name (enum metric);

/* Code once and compare with the right result: all of it, or, if max_len is not
 * 0, about max_len bytes of the outputs: the first and the last cells and some
 * between.  0; 1: it is wrong, and why; -1: why it could not be coded.
 * Inputs that were loaded are not any more.
 */
extern int run_verify (struct run *, enum metric, size_t max_len, char *why);

/* Code everything nr times, one after the other.  0, or -1: why. */
extern int run_code (struct run *, enum metric, unsigned nr, double *seconds,
                     char *why);

/* Bytes of data in coding everything once. */
extern double run_data_len (const struct run *);

#endif
