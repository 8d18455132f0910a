/* gpuraid: loads for coder auto with coders that only take (virtual) time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_AUTO_LOAD_H
#define GPURAID_AUTO_LOAD_H

#include "tests/auto-sim.h"

/* Bytes a second of nr_streams of jobs, each submitted when the last one of
 * its stream is done; nr_rects of them are taken in turn, nr_jobs in all.
 */
extern double auto_load (struct coder_sim *, struct coder *,
                         const struct matrix *, unsigned nr_streams,
                         const size_t *nr_rects, unsigned nr_sizes,
                         unsigned nr_jobs);

/* Two coders, bytes and seconds. */
struct pair {
  double near_fixed, near_rate, near_single;
  double far_fixed, far_rate;
  double ceiling;
};
extern void pair_init (struct coder_sim *, const struct pair *);

#endif
