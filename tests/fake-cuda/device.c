/* gpuraid: tests: a fake CUDA driver: devices, and the start of every call.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>
#include <unistd.h>

#include "tests/fake-cuda/fake.h"

struct fake fake = {
  .lock = PTHREAD_MUTEX_INITIALIZER,
  .changed = PTHREAD_COND_INITIALIZER,
};

/* ---- every call */

bool
fake_is_sticky (CUresult r)
{
  return (r >= CUDA_ERROR_ILLEGAL_ADDRESS && r <= 721 &&
          r != CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED &&
          r != CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED &&
          r != CUDA_ERROR_CONTEXT_IS_DESTROYED && r != 701 && r != 704 &&
          r != 705 && r != 708) || r == 214 || r == 220;
}

CUresult
fake_enter (const char *symbol, enum need need, struct CUctx_st **ctx)
{
  struct CUctx_st *current = fake_current ();
  CUresult r = CUDA_SUCCESS;

  /* A child stops here: another thread of the parent may hold the lock. */
  if (!fake.initialized || fake.pid != getpid ())
    return CUDA_ERROR_NOT_INITIALIZED;
  pthread_mutex_lock (&fake.lock);
  if (need == NEED_CONTEXT) {
    *ctx = current;
    if (current == NULL)
      r = CUDA_ERROR_INVALID_CONTEXT;
    else if (fake_is_gone (current))
      r = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    else if (current->error)
      r = current->error;
  }
  if (r == CUDA_SUCCESS && symbol) {
    r = fake_fault (symbol, current ? current->device : -1);
    if (need == NEED_CONTEXT && fake_is_sticky (r))
      stream_fail (current, r);
  }
  if (r != CUDA_SUCCESS)
    pthread_mutex_unlock (&fake.lock);
  return r;
}

CUresult
fake_leave (CUresult r)
{
  pthread_mutex_unlock (&fake.lock);
  return r;
}

/* ---- devices */

CUresult
cuInit (unsigned flags)
{
  CUresult r;

  if (flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (fake.initialized && fake.pid != getpid ())
    return CUDA_ERROR_NOT_INITIALIZED;
  pthread_mutex_lock (&fake.lock);
  if (fake.initialized)
    return fake_leave (CUDA_SUCCESS);
  fake_configure ();
  r = fake_fault ("cuInit", -1);
  if (r == CUDA_SUCCESS && fake.nr_devices == 0)
    r = CUDA_ERROR_NO_DEVICE;
  if (r == CUDA_SUCCESS) {
    fake.pid = getpid ();
    fake.initialized = true;
    for (int i = 0; i < MAX_DEVICES; i++)
      fake.device[i].ctx.device = i;
  }
  return fake_leave (r);
}

CUresult
cuDriverGetVersion (int *version)
{
  *version = 13000;
  return CUDA_SUCCESS;
}

/* Tables of functions that only NVIDIA's own libraries know: none.  NVRTC asks
 * the driver for some, and crashes if it can't ask.
 */
extern CUresult cuGetExportTable (const void **table, const void *uuid);

CUresult
cuGetExportTable (const void **table, const void *uuid)
{
  *table = NULL;
  return CUDA_ERROR_NOT_FOUND;
}

CUresult
cuDeviceGetCount (int *nr)
{
  CUresult r = fake_enter ("cuDeviceGetCount", NEED_INIT, NULL);

  if (r != CUDA_SUCCESS)
    return r;
  *nr = fake.nr_devices;
  return fake_leave (CUDA_SUCCESS);
}

bool
fake_is_device (CUdevice d)
{
  return d >= 0 && d < fake.nr_devices;
}

CUresult
cuDeviceGet (CUdevice *device, int nr)
{
  CUresult r = fake_enter ("cuDeviceGet", NEED_INIT, NULL);

  if (r != CUDA_SUCCESS)
    return r;
  if (!fake_is_device (nr))
    return fake_leave (CUDA_ERROR_INVALID_DEVICE);
  *device = nr;
  return fake_leave (CUDA_SUCCESS);
}

CUresult
cuDeviceGetName (char *name, int len, CUdevice d)
{
  CUresult r = fake_enter ("cuDeviceGetName", NEED_INIT, NULL);

  if (r != CUDA_SUCCESS)
    return r;
  if (!fake_is_device (d))
    return fake_leave (CUDA_ERROR_INVALID_DEVICE);
  snprintf (name, len, "Fake GPU %d", d);
  return fake_leave (CUDA_SUCCESS);
}

static CUresult
get_attribute (int *value, int attribute, CUdevice d)
{
  switch (attribute) {
  case 1: *value = 1024; break;         /* threads in a block */
  case 8: *value = 49152; break;        /* shared memory of a block */
  case 10: *value = EMU_WARP; break;
  case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: *value = 1980000; break;
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 4; break;
  case 19: *value = 1; break;           /* can map host memory */
  case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: *value = 16 + d; break;
  case 36: *value = 2619000; break;     /* memory clock, kHz */
  case 37: *value = 5120; break;        /* bits of the memory's bus */
  case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *value = 50 << 20; break;
  case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: *value = 3; break;
  case 41: *value = 1; break;           /* unified addressing */
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    *value = fake.arch / 10;
    break;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    *value = fake.arch % 10;
    break;
  default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult
cuDeviceGetAttribute (int *value, int attribute, CUdevice d)
{
  CUresult r = fake_enter ("cuDeviceGetAttribute", NEED_INIT, NULL);

  if (r != CUDA_SUCCESS)
    return r;
  if (!fake_is_device (d))
    return fake_leave (CUDA_ERROR_INVALID_DEVICE);
  return fake_leave (get_attribute (value, attribute, d));
}

CUresult
cuDeviceTotalMem_v2 (size_t *len, CUdevice d)
{
  CUresult r = fake_enter ("cuDeviceTotalMem_v2", NEED_INIT, NULL);

  if (r != CUDA_SUCCESS)
    return r;
  if (!fake_is_device (d))
    return fake_leave (CUDA_ERROR_INVALID_DEVICE);
  *len = fake.memory_len;
  return fake_leave (CUDA_SUCCESS);
}
