/* gpuraid: tests: jobs for the coder on CUDA, in an arena.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CUDA_JOB_H
#define GPURAID_CUDA_JOB_H

#include <pthread.h>
#include <stdbool.h>

#include "gf/coder.h"
#include "tests/gf-reference.h"

/* Memory for cells, from which jobs take turns; any thread. */
extern void cuda_arena_new (size_t len);
extern void cuda_arena_free (void);
extern void *cuda_arena (size_t *len);

struct cuda_job {
  struct coder_job job;         /* first */
  size_t nr_in, nr_out, nr_crcs;
  const uint8_t **in;
  uint8_t **out, **expected;    /* by another coder */
  uint32_t *expected_crc;
  size_t place, place_len;      /* in the arena */
  pthread_mutex_t lock;
  pthread_cond_t cond;
  unsigned nr_done;             /* lock; more than 1 is wrong */
};

/* Random cells in the arena, and the right result, by the coder right.  The
 * matrix is borrowed.
 */
extern struct cuda_job *cuda_job_new (struct ref_random *, struct coder *right,
                                      const struct matrix *, size_t nr_rects,
                                      size_t cell_len, bool crc);
extern void cuda_job_submit (struct coder *, struct cuda_job *);
/* Wait until it is done; false: done twice, an error, or wrong bytes. */
extern bool cuda_job_wait (struct cuda_job *);
extern void cuda_job_free (struct cuda_job *);

#endif
