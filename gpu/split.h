/* gpuraid: divide a job into parts for launches.  Pure.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_SPLIT_H
#define GPURAID_SPLIT_H

#include <stdbool.h>

#include "gf/coder.h"

/* How the parts of a job are: nr_rects each, of bands len long; the last
 * ones smaller.
 */
struct split {
  size_t nr_rects, len;
  size_t nr;                    /* parts */
};

/* Parts of about part_len bytes of input, but of a rect and of a block of
 * packets at least, that a launch has room for.  false: there are none, as
 * the job is empty or its rects are too big.
 */
extern bool split_job (const struct coder_job *, size_t part_len,
                       struct split *);

#endif
