/* gpuraid: memory that all devices can use in place.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_PIN_H
#define GPURAID_PIN_H

#include "gpu/device.h"

struct pin {
  struct gpu_device *dev;       /* by which it is pinned; NULL: it is not */
  CUcontext ctx;                /* for nothing else, or NULL: the device's */
  void *memory;
};

/* Once for all nr > 0 devices: it takes 14 ms for 256 MiB.  By the first
 * that can; the others will say themselves what is wrong with them.  Returns
 * the first's error if none can; then *pin is as it was.
 */
extern CUresult pin_memory (struct pin *, struct gpu_device *const *,
                            unsigned nr, void *memory, size_t len);

/* No device uses it any more.  Safe on what is zeroes. */
extern void pin_free (struct pin *);

#endif
