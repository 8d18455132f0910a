/* gpuraid: the coder on CUDA devices.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CODER_CUDA_H
#define GPURAID_CODER_CUDA_H

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

#include "gf/coder.h"

struct driver;

struct cuda_options {
  uint64_t devices;             /* bit n: device n may be used; ~0: all */
  const char *kernel_dir;       /* where compiled kernels are kept; "": in the
                                 * user's cache folder; or NULL: nowhere */
  const struct matrix *encode;  /* the matrix used most, or NULL; borrowed for
                                 * the call */
  uint64_t special_after;       /* bytes of input after which a matrix gets
                                 * its own kernel; 0: a default; ~0: never */
  size_t part_len;             /* bytes of input of a launch, about; 0: a
                                 * default */
  /* For measurements: all launches read and write the arena in place, with
   * about this many threads; 0: the default.
   */
  bool in_place;
  unsigned in_place_threads;
  const struct driver *driver;  /* its calls are used; NULL: driver_get's */
  bool or_fallback;             /* if no device can be started, start succeeds,
                                 * with a notice, and the fallback, which must
                                 * exist, does all jobs */
  /* For tests: after this many launches every call of a device fails, 0 for
   * never; which device, or -1: all.
   */
  unsigned fail_after;
  int fail_device;
};

/* Touches no CUDA before start.  The coder owns fallback, which codes what a
 * device could not, and everything when no device is left.  With fallback NULL
 * such a job ends with EIO when no device is left, else with ENOTSUP.  NULL:
 * reported; the caller then still owns fallback.
 *
 * start pins the arena and makes a context for each device.  It fails,
 * reported, only if no device at all could be used and not or_fallback.  Jobs
 * whose cells are not in the arena, and those before start, go to the fallback.
 */
extern struct coder *coder_cuda_new (const struct cuda_options *,
                                     struct coder *fallback);

/* Statistics of kernels; after start. */
struct kernels_state;
extern void coder_cuda_kernels (struct coder *, struct kernels_state *);

#endif
