/* gpuraid: what two coders do, measured.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_AUTO_MEASURE_H
#define GPURAID_AUTO_MEASURE_H

#include "gf/balance.h"
#include "gf/coder-auto.h"

struct auto_measure {
  struct coder *side[2];        /* started */
  const struct matrix *matrix;
  size_t cell_len;              /* as the jobs to come will have it */
  uint8_t *arena;               /* 64-byte aligned; written to */
  size_t arena_len;
  const struct coder_auto_clock *clock;
};

/* Fill in what was found; 0, or a positive errno with all as it was. */
extern int auto_measure (const struct auto_measure *, struct balance *,
                         struct coder_auto_measured *);

#endif
