/* gpuraid: the coder on CUDA devices.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CODER_CUDA_H
#define GPURAID_CODER_CUDA_H

#include <stdbool.h>
#include <stdint.h>

#include "gf/coder.h"

struct cuda_options {
  uint64_t devices;             /* bit n: device n may be used; ~0: all */
  const char *kernel_dir;       /* where compiled kernels are kept, or NULL:
                                 * nowhere */
  /* For tests: after so many launches every call of a device fails, 0 for
   * never; which device, or -1: all.
   */
  unsigned fail_after;
  int fail_device;
};

/* Touches no CUDA before start.  fallback, which becomes the coder's own,
 * codes whatever a device could not, and all when no device is left.  NULL:
 * reported.
 *
 * start: pins the arena, makes a context for each device; fails, reported,
 * only if no device at all could be used.  Jobs whose cells are not in the
 * arena, and those before start, go to the fallback.
 */
extern struct coder *coder_cuda_new (const struct cuda_options *,
                                     struct coder *fallback);

#endif
