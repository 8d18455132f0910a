/* gpuraid: divide a job into parts for launches.  Pure.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_SPLIT_H
#define GPURAID_SPLIT_H

#include <stdbool.h>

#include "gf/coder.h"

/* The parts of a job: nr_rects each, of bands len long; the last ones smaller.
 */
struct split {
  size_t nr_rects, len;
  size_t nr;                    /* parts */
};

/* Divide into parts of about part_len bytes of input, at least a rect and a
 * block of packets, that fit into a launch.  false: not possible, as the job is
 * empty or its rects are too large.
 */
extern bool split_job (const struct coder_job *, size_t part_len,
                       struct split *);

#endif
