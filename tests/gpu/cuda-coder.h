/* gpuraid: tests: coders on CUDA, on the fake driver, and their messages.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CUDA_CODER_H
#define GPURAID_CUDA_CODER_H

#include "gpu/choice/kernels.h"
#include "gpu/coder-cuda.h"
#include "tests/gpu/cuda-job.h"

extern uint64_t seed;

/* For a group: the fake driver, an arena. */
extern int start_tests (void **state);
extern int stop_tests (void **state);
/* For each test: no faults, no messages. */
extern int reset (void **state);

/* Errors and notices since then; those with a text. */
extern void expect_messages (unsigned nr);
extern unsigned nr_of_all (void);
extern unsigned nr_of (const char *text);

/* The options of most tests: only the generic kernels, which are kept in a
 * folder of the group.
 */
extern struct cuda_options plain_options (void);
extern struct coder *new_coder (const struct cuda_options *);
extern struct coder *start_coder (const struct cuda_options *);

/* Wait until no kernel is being made. */
extern struct kernels_state wait_for_kernels (struct coder *);

extern struct matrix *random_matrix (struct ref_random *, unsigned rows,
                                     unsigned cols);
extern struct cuda_job *new_job (struct ref_random *, const struct matrix *,
                                 size_t nr_rects, size_t cell_len, bool crc);
/* One job; false if it went wrong. */
extern bool run_one (struct coder *, struct ref_random *,
                     const struct matrix *, size_t nr_rects, size_t cell_len,
                     bool crc);
/* Were all jobs done by devices, or all by the fallback? */
extern void expect_all_on (struct coder *, bool on_cuda);

/* Random jobs from several threads, nr_jobs each, of about max_len bytes. */
extern void run_clients (struct coder *, unsigned nr_jobs, unsigned max_len);

/* A folder of its own for a test. */
extern void own_dir (char path[64]);
extern void remove_dir (const char *path);

#endif
