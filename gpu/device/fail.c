/* gpuraid: a CUDA device fails.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "gpu/device/device.h"

bool
device_failed (struct gpu_device *dev)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&dev->lock);

  return dev->failed;
}

void
device_why (struct gpu_device *dev, char *buf, size_t len)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&dev->lock);

  snprintf (buf, len, "%s", dev->why);
}

static void
fail (struct gpu_device *dev, const char *why)
{
  {
    ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&dev->lock);

    if (dev->failed)
      return;
    dev->failed = true;
    snprintf (dev->why, sizeof dev->why, "%s", why);
    pthread_cond_broadcast (&dev->wake);
  }
  log_error ("%s: %s: it is not used any more", dev->name, why);
}

void
device_fail (struct gpu_device *dev, const char *call, CUresult r)
{
  char buf[DRIVER_ERROR_LEN], why[sizeof dev->why];

  snprintf (why, sizeof why, "%.25s: %.90s", call,
            driver_error (dev->driver, r, buf));
  fail (dev, why);
}

void
device_fail_silent (struct gpu_device *dev, unsigned seconds)
{
  char why[40];

  snprintf (why, sizeof why, "no answer for %u s", seconds);
  fail (dev, why);
}

void
device_fail_busy (struct gpu_device *dev, unsigned seconds)
{
  {
    ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&dev->lock);

    dev->busy = true;
  }
  device_fail_silent (dev, seconds);
}
