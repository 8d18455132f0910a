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

struct cuda_options {
  uint64_t devices;             /* bit n: device n may be used; ~0: all */
  const char *kernel_dir;       /* where compiled kernels are kept; "": where
                                 * the user's caches are; or NULL: nowhere */
  const struct matrix *encode;  /* will be used much, or NULL; borrowed for
                                 * the call */
  uint64_t special_after;       /* bytes of input after which a matrix gets
                                 * its own kernel; 0: a default; ~0: never */
  size_t part_len;             /* bytes of input of a launch, about; 0: a
                                 * default */
  /* To measure what the choice is worth: all launches read and write the
   * arena; with about so many threads, 0: a default.
   */
  bool in_place;
  unsigned in_place_threads;
  bool or_fallback;             /* where no device can be started, start
                                 * succeeds, with a notice, and the fallback,
                                 * which there must be, does all */
  /* For tests: after so many launches every call of a device fails, 0 for
   * never; which device, or -1: all.
   */
  unsigned fail_after;
  int fail_device;
};

/* Touches no CUDA before start.  fallback, which becomes the coder's own,
 * codes whatever a device could not, and all when no device is left.  With
 * fallback NULL such a job ends with EIO when no device is left, else with
 * ENOTSUP.  NULL is returned after an error, reported; the fallback is then
 * still the caller's.
 *
 * start: pins the arena, makes a context for each device; fails, reported,
 * only if no device at all could be used and not or_fallback.  Jobs whose
 * cells are not in the arena, and those before start, go to the fallback.
 */
extern struct coder *coder_cuda_new (const struct cuda_options *,
                                     struct coder *fallback);

/* What has become of kernels; after start. */
struct kernels_state;
extern void coder_cuda_kernels (struct coder *, struct kernels_state *);

#endif
