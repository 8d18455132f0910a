/* gpuraid bench: the options that say what is coded.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CLI_BENCH_CASE_H
#define GPURAID_CLI_BENCH_CASE_H

#include "cli/bench.h"

/* Those of this process. */
extern unsigned bench_nr_cpus (void);

/* The value of the option that is called name; 0, or -1 reported. */
extern int bench_parse_list (const char *name, const char *text,
                             uint64_t least, uint64_t most, struct values *);
extern int bench_parse_number (const char *name, const char *text,
                               uint64_t most, uint64_t *n);

/* One option each: 0, or -1 reported.  arg must stay. */
extern int bench_set_k (struct bench_options *, const char *arg);
extern int bench_set_m (struct bench_options *, const char *arg);
extern int bench_set_pairs (struct bench_options *, const char *arg);
extern int bench_set_code (struct bench_options *, const char *arg);
extern int bench_set_w (struct bench_options *, const char *arg);
extern int bench_set_cell (struct bench_options *, const char *arg);
extern int bench_set_batch (struct bench_options *, const char *arg);
extern int bench_set_memory (struct bench_options *, const char *arg);
extern int bench_set_threads (struct bench_options *, const char *arg);
extern int bench_set_encode (struct bench_options *, const char *arg);
extern int bench_set_decode (struct bench_options *, const char *arg);
extern int bench_set_lost (struct bench_options *, const char *arg);

#endif
