/* gpuraid: all the cases that a call of gpuraid bench asks for.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_BENCH_SWEEP_H
#define GPURAID_BENCH_SWEEP_H

#include "bench/meter.h"
#include "bench/report.h"

/* Numbers in the order they were given. */
#define SWEEP_MAX_VALUES 512
struct values {
  unsigned nr;
  uint64_t v[SWEEP_MAX_VALUES];
};

/* A method and which of its options; NULL: its default. */
struct choice {
  const struct method_ops *ops;
  const char *option;
};
#define SWEEP_MAX_CHOICES 128

/* The k and m of a case. */
#define SWEEP_MAX_SHAPES 4096
struct shape {
  unsigned k, m;
};
struct shapes {
  unsigned nr;
  struct shape v[SWEEP_MAX_SHAPES];
};

/* What to lose and decode. */
struct lose {
  enum loss loss;
  unsigned nr;                  /* as nr_lost of a struct run_request */
};
#define SWEEP_MAX_LOSSES 32

struct sweep {
  struct choice choice[SWEEP_MAX_CHOICES];
  unsigned nr_choices;
  const char *k;                /* a list, parsed for each m: it may contain
                                 * "m" */
  const char *pairs;            /* "4+2,10+4": instead of k and m; or NULL */
  const char *tunings;          /* a list (bench/tuning.h), or NULL */
  struct values m, w, cell, batch, threads, slices;     /* batch, slices:
                                 * 0 is the default; w too */
  unsigned w_floor;
  enum code code;
  bool raw, overall;            /* which metrics are wanted, if there are
                                 * both */
  struct lose lose[SWEEP_MAX_LOSSES];
  unsigned nr_losses;
  unsigned lost[CODE_MAX];      /* of LOSS_GIVEN */
  size_t memory_len;            /* bytes of all cells where batch is 0, */
  size_t least_rects;           /* but at least this many rects */
  struct meter_effort effort;
  unsigned nr_latencies;        /* 0: rates */
  bool in_turn;                 /* methods take their samples in turn */
  bool verify_only;
  uint64_t seed;
};

/* Parse "4", "2,4,8", "2-45", "2-45:5", and where m is not 0 "m" for it,
 * too: values from least to most.  0, or -1: why not.
 */
extern int values_parse (const char *text, uint64_t least, uint64_t most,
                         uint64_t m, struct values *, char *why);

/* By pairs, or all k with all m.  0, or -1 reported. */
extern int sweep_shapes (const struct sweep *, struct shapes *);

/* Call one for every case with every choice of a method, until it returns
 * -1.  0, or -1 reported.
 */
typedef int sweep_case (const struct sweep *, const struct run_request *,
                        void *opaque);
extern int sweep_each (const struct sweep *, sweep_case *one, void *opaque);

/* A row for every case, a line for each that is impossible; stops if a method
 * makes wrong bytes.  0, or -1 reported.
 */
extern int sweep_run (const struct sweep *, struct report *);

#endif
