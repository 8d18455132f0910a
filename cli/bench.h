/* gpuraid bench: the options.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CLI_BENCH_H
#define GPURAID_CLI_BENCH_H

#include "bench/sweep.h"

enum bench_mode {
  BENCH_SWEEP, BENCH_CEILINGS, BENCH_LIST, BENCH_CROSSOVER, BENCH_XORS,
  BENCH_MODEL, BENCH_TUNINGS,
};

struct bench_options {
  struct sweep sweep;
  enum bench_mode mode;
  const char *methods, *option; /* as given; the sweep has the choices */
  bool crc, json, verbose;
  const char *plot;             /* a file, or NULL */
  uint64_t devices;             /* bit n: device n */
};

/* 0, or -1 reported. */
extern int bench_parse (struct bench_options *, int argc, char **argv);
/* The same for options that name methods; 0, or -1 reported. */
extern int bench_parse_methods (struct bench_options *);

#endif
