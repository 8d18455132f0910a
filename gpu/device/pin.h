/* gpuraid: memory that all devices can use in place.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_PIN_H
#define GPURAID_PIN_H

#include "gpu/device/device.h"

struct pin {
  struct gpu_device *dev;       /* the context that pinned it; NULL: not
                                 * pinned */
  CUcontext ctx;                /* only for this, or NULL: the device's */
  void *memory;
};

/* Once for all nr > 0 devices, because it takes 14 ms for 256 MiB.  The first
 * device that can pins it; the others report their errors themselves.  Returns
 * the first's error if none can; then *pin is unchanged.
 */
extern CUresult pin_memory (struct pin *, struct gpu_device *const *,
                            unsigned nr, void *memory, size_t len);

/* No device uses it any more.  Safe on a struct of zeroes. */
extern void pin_free (struct pin *);

#endif
