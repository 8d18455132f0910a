/* gpuraid bench: the options.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CLI_BENCH_H
#define GPURAID_CLI_BENCH_H

#include "measure/run.h"

#define BENCH_MAX 32u           /* of each list */

struct bench_options {
  const struct method_ops *engine[BENCH_MAX];
  unsigned nr_engines;
  struct { unsigned k, m; } pair[BENCH_MAX];
  unsigned nr_pairs;
  unsigned threads[BENCH_MAX], nr_threads;
  struct { enum loss loss; unsigned nr; } decode[BENCH_MAX];
  unsigned nr_decodes;
  enum code code;
  size_t cell_len, memory_len;  /* memory_len: 0 is the default */
  unsigned nr_samples;
  double seconds;               /* of a sample, at least */
  uint64_t devices;             /* bit n: device n */
  bool crc, verify_only, json, list;
};

#define BENCH_MAX_SAMPLES 1000u

/* 0, or -1 reported. */
extern int bench_parse (struct bench_options *, int argc, char **argv);

#endif
