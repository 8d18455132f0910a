/* gpuraid: jobs for coders, with their right results.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_GF_JOB_H
#define GPURAID_GF_JOB_H

#include <pthread.h>
#include <stdbool.h>

#include "gf/coder.h"
#include "tests/gf-reference.h"

/* A job, its memory and its answer. */
struct ref_job {
  struct coder_job job;         /* first */
  struct matrix *matrix;
  size_t nr_in, nr_out;
  const uint8_t **in;
  uint8_t **out;
  uint8_t *mem;
  size_t mem_len;
  pthread_mutex_t lock;
  pthread_cond_t cond;
  unsigned nr_done;             /* lock */
};

/* Cells of random bytes in random order, with a matrix of its own. */
extern struct ref_job *ref_job_new (struct ref_random *,
                                    unsigned rows, unsigned cols,
                                    const uint8_t *coef, size_t nr_rects,
                                    size_t cell_len, bool crc);
/* The same for packets. */
extern struct ref_job *ref_job_new_packets (struct ref_random *, unsigned w,
                                            size_t packet_len, unsigned rows,
                                            unsigned cols,
                                            const uint8_t *coef,
                                            size_t nr_rects, size_t cell_len,
                                            bool crc);
extern void ref_job_free (struct ref_job *);

/* Wait until done has run; 1 if it ran once and without an error. */
extern unsigned ref_job_wait (struct ref_job *);
/* Submit and wait; fails the test on an error. */
extern void ref_job_run (struct coder *, struct ref_job *);

/* Do the CRCs fit the cells? */
extern bool ref_job_crcs_right (const struct ref_job *);

/* The right memory of a job afterwards, in the outputs' cells of mem, which is
 * a copy from before: by libisal's plain C, which needs a column or more, for
 * packets by Jerasure, and bit by bit.
 */
extern void ref_job_expect_isal_base (const struct ref_job *, uint8_t *mem);
extern void ref_job_expect_jerasure_bits (const struct ref_job *,
                                          uint8_t *mem);
extern void ref_job_expect_slow (const struct ref_job *, uint8_t *mem);

#endif
