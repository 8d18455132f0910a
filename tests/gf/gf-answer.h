/* gpuraid: jobs of many shapes, with their answers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_GF_ANSWER_H
#define GPURAID_GF_ANSWER_H

#include "tests/gf-job.h"

struct shape {
  unsigned rows, cols;
  size_t nr_rects, cell_len;
  bool crc;
  unsigned w;                   /* 0: bytes, else packets */
  size_t packet_len;
};

/* A job and its answer: matrix is the one that it uses. */
struct answer {
  struct ref_job *t;
  struct matrix *matrix;
  uint8_t *mem;
  uint32_t *crc;
  size_t nr_crcs;
};

/* A random job of that shape, and what reference makes of it. */
extern void answer_make (struct answer *, struct ref_random *,
                         const struct shape *, struct coder *reference);
/* Reset, as if nothing had been coded yet. */
extern void answer_forget (struct answer *);
/* Check the result. */
extern void answer_check (const struct answer *);
extern void answer_free (struct answer *);

/* All that there is to try. */
#define NR_SHAPES 16
extern const struct shape shapes[NR_SHAPES];

#endif
