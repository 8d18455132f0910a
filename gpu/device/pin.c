/* gpuraid: memory that all devices can use in place.
 *
 * Pinned memory belongs to a context, and ends with it.  So that devices go on
 * when one of them is dropped (gpu/device/drop.c), several devices get one more
 * context, in which nothing is ever launched.  A single device pins in its own.
 * (That helps if a device hangs, or a call fails.  After an error of a kernel,
 * on H200s at least, all contexts of the process have that error, on all
 * devices, whatever they are used for: then all devices are dropped.)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "gpu/device/pin.h"

static CUresult
do_register (const struct gpu_device *dev, void *memory, size_t len)
{
  return dev->driver->mem_host_register (memory, len,
                                         CU_MEMHOSTREGISTER_PORTABLE |
                                         CU_MEMHOSTREGISTER_DEVICEMAP);
}

static CUresult
pin_in_own (struct gpu_device *dev, void *memory, size_t len)
{
  CUresult r = device_enter (dev);

  if (r == CUDA_SUCCESS) {
    r = do_register (dev, memory, len);
    device_leave (dev);
  }
  return r;
}

static CUresult
pin_in_another (struct gpu_device *dev, void *memory, size_t len,
                CUcontext *ctx)
{
  const struct driver *d = dev->driver;
  CUresult r = d->ctx_create (ctx, 0, dev->handle);

  if (r != CUDA_SUCCESS)
    return r;
  r = do_register (dev, memory, len);
  d->ctx_set_current (NULL);
  if (r != CUDA_SUCCESS)
    d->ctx_destroy (*ctx);
  return r;
}

CUresult
pin_memory (struct pin *pin, struct gpu_device *const *dev, unsigned nr,
            void *memory, size_t len)
{
  CUresult r, first = CUDA_SUCCESS;

  for (unsigned i = 0; i < nr; i++) {
    CUcontext ctx = NULL;

    r = nr == 1 ? pin_in_own (dev[i], memory, len)
      : pin_in_another (dev[i], memory, len, &ctx);
    if (r == CUDA_SUCCESS) {
      *pin = (struct pin) { .dev = dev[i], .ctx = ctx, .memory = memory };
      return CUDA_SUCCESS;
    }
    first = first ? first : r;
  }
  return first;
}

void
pin_free (struct pin *pin)
{
  const struct driver *d;

  if (pin->dev == NULL)
    return;
  d = pin->dev->driver;
  if (pin->ctx == NULL) {
    if (device_enter (pin->dev) == CUDA_SUCCESS) {
      d->mem_host_unregister (pin->memory);
      device_leave (pin->dev);
    }
    return;
  }
  if (d->ctx_set_current (pin->ctx) == CUDA_SUCCESS) {
    d->mem_host_unregister (pin->memory);
    d->ctx_set_current (NULL);
  }
  d->ctx_destroy (pin->ctx);
}
