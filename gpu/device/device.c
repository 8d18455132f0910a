/* gpuraid: a CUDA device, from the start to the end.
 *
 * When a call fails the device is never used again, but its launches may still
 * be running, and would write into cells that are reused by then:
 * gpu/device/drop.c ends them before it gives the parts back.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/threads/thread.h"
#include "gpu/device/device.h"
#include "gpu/device/staged.h"

static int
report (const struct gpu_device *dev, const char *call, CUresult r)
{
  char buf[DRIVER_ERROR_LEN];

  log_error ("%s: %s: %s", dev->name, call,
             driver_error (dev->driver, r, buf));
  return -1;
}

CUresult
device_enter (struct gpu_device *dev)
{
  CUresult r;

  {
    ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&dev->lock);

    if (dev->dropping)
      return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    dev->nr_inside++;
  }
  r = device_set_current (dev);
  if (r != CUDA_SUCCESS)
    device_leave (dev);
  return r;
}

void
device_leave (struct gpu_device *dev)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&dev->lock);

  if (--dev->nr_inside == 0 && dev->dropping)
    pthread_cond_broadcast (&dev->wake);
}

static int
identify (struct gpu_device *dev)
{
  const struct driver *d = dev->driver;
  int major, minor, sms;
  char name[64];
  CUresult r;

  if ((r = d->device_get (&dev->handle, dev->nr)))
    return report (dev, "cuDeviceGet", r);
  if ((r = d->device_get_name (name, sizeof name, dev->handle)))
    return report (dev, "cuDeviceGetName", r);
  name[sizeof name - 1] = '\0';
  snprintf (dev->name, sizeof dev->name, "cuda:%u %s", dev->nr, name);
  if ((r = d->device_get_attribute (&major,
               CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, dev->handle)) ||
      (r = d->device_get_attribute (&minor,
               CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, dev->handle)) ||
      (r = d->device_get_attribute (&sms,
               CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, dev->handle)))
    return report (dev, "cuDeviceGetAttribute", r);
  dev->nr_sms = sms;
  dev->arch = major * 10 + minor;
  return 0;
}

struct gpu_device *
device_open (const struct driver *d, unsigned nr, unsigned index)
{
  struct gpu_device *dev = calloc (1, sizeof *dev);
  pthread_condattr_t attr;
  CUcontext ctx;
  CUresult r;

  if (dev == NULL) {
    log_error ("calloc: %m");
    return NULL;
  }
  dev->driver = d;
  dev->nr = nr;
  dev->index = index;
  snprintf (dev->name, sizeof dev->name, "cuda:%u", nr);
  list_init (&dev->free[0]);
  list_init (&dev->free[1]);
  list_init (&dev->launched);
  list_init (&dev->running);
  pthread_mutex_init (&dev->lock, NULL);
  pthread_condattr_init (&attr);
  pthread_condattr_setclock (&attr, CLOCK_MONOTONIC);
  pthread_cond_init (&dev->wake, &attr);
  pthread_condattr_destroy (&attr);

  if (identify (dev) == -1)
    goto err;
  r = d->primary_ctx_retain (&ctx, dev->handle);
  if (r != CUDA_SUCCESS) {
    report (dev, "cuDevicePrimaryCtxRetain", r);
    goto err;
  }
  dev->ctx = ctx;
  return dev;

 err:
  device_close (dev);
  return NULL;
}

/* ---- lanes ----------------------------------------------------------- */

static CUresult
make_streams (struct gpu_device *dev, const char **call)
{
  const struct driver *d = dev->driver;
  int least, greatest;
  CUresult r;

  *call = "cuCtxGetStreamPriorityRange";
  r = d->ctx_get_stream_priority_range (&least, &greatest);
  *call = "cuStreamCreate";
  for (unsigned i = 0; r == CUDA_SUCCESS && i < DEVICE_NR_STREAMS; i++)
    r = d->stream_create (&dev->stream[i], CU_STREAM_NON_BLOCKING,
                          i < DEVICE_NR_LARGE ? least : greatest);
  return r;
}

static CUresult
make_memory (struct gpu_device *dev, const char **call)
{
  const struct driver *d = dev->driver;
  void *host;
  CUresult r;

  *call = "cuMemHostAlloc";
  r = d->mem_host_alloc (&host, DEVICE_NR_LANES * LANE_HOST_LEN,
                         CU_MEMHOSTALLOC_DEVICEMAP);
  if (r)
    return r;
  dev->host = host;
  *call = "cuMemAlloc";
  return d->mem_alloc (&dev->tables, DEVICE_NR_LANES * DEVICE_MAX_TABLES);
}

static CUresult
make_lanes (struct gpu_device *dev, const char **call)
{
  const struct driver *d = dev->driver;
  CUdeviceptr host;
  CUresult r;

  *call = "cuMemHostGetDevicePointer";
  r = d->mem_host_get_device_pointer (&host, dev->host, 0);
  *call = "cuEventCreate";
  for (unsigned i = 0; r == CUDA_SUCCESS && i < DEVICE_NR_LANES; i++) {
    struct lane *s = &dev->lane[i];

    s->dev = dev;
    s->small = i >= DEVICE_NR_LARGE;
    s->stream = dev->stream[s->small
      ? DEVICE_NR_LARGE + i % (DEVICE_NR_STREAMS - DEVICE_NR_LARGE) : i];
    s->host = dev->host + i * LANE_HOST_LEN;
    s->crc = host + i * LANE_HOST_LEN;
    s->tables = dev->tables + i * DEVICE_MAX_TABLES;
    r = d->event_create (&s->event, CU_EVENT_DISABLE_TIMING);
    list_append (&dev->free[s->small], &s->link);
  }
  return r;
}

/* No other thread has the device yet. */
static int
no_start (struct gpu_device *dev, const char *call, const char *text)
{
  log_error ("%s: %s: %s: it is not used", dev->name, call, text);
  dev->failed = true;
  snprintf (dev->why, sizeof dev->why, "%.25s: %.90s", call, text);
  return -1;
}

/* Free everything that is in the context. */
static CUresult
make_all (struct gpu_device *dev, void *arena, size_t arena_len,
          const char **call)
{
  CUresult r = CUDA_SUCCESS;

  if (arena_len > 0) {
    *call = "cuMemHostGetDevicePointer";
    r = dev->driver->mem_host_get_device_pointer (&dev->base, arena, 0);
  }
  if (r || (r = make_streams (dev, call)) || (r = make_memory (dev, call)) ||
      (r = make_lanes (dev, call)))
    return r;
  dev->staged = staged_new (dev);
  return CUDA_SUCCESS;
}

int
device_start (struct gpu_device *dev, const struct device_owner *owner,
              void *arena, size_t arena_len)
{
  char buf[DRIVER_ERROR_LEN];
  const char *call = "cuCtxSetCurrent";
  CUresult r;
  int err;

  dev->owner = owner;
  dev->arena = arena;
  dev->lane = calloc (DEVICE_NR_LANES, sizeof dev->lane[0]);
  if (dev->lane == NULL)
    return no_start (dev, "calloc", strerror (errno));
  r = device_enter (dev);
  if (r == CUDA_SUCCESS) {
    r = make_all (dev, arena, arena_len, &call);
    device_leave (dev);
  }
  if (r != CUDA_SUCCESS)
    return no_start (dev, call, driver_error (dev->driver, r, buf));
  err = thread_start (&dev->thread, "gpuraid-cuda", device_thread, dev);
  if (err)
    return no_start (dev, "pthread_create", strerror (err));
  dev->has_thread = true;
  return 0;
}

void
device_stop (struct gpu_device *dev)
{
  if (!dev->has_thread)
    return;
  {
    ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&dev->lock);

    assert (dev->nr_launching == 0 && list_empty (&dev->launched));
    dev->stop = true;
    pthread_cond_broadcast (&dev->wake);
  }
  atomic_fetch_add_explicit (&dev->nr_news, 1, memory_order_release);
  pthread_join (dev->thread, NULL);
  dev->has_thread = false;
}

/* On a failed device all these calls fail too, which is harmless. */
static void
close_all (struct gpu_device *dev)
{
  const struct driver *d = dev->driver;

  for (unsigned i = 0; dev->lane && i < DEVICE_NR_LANES; i++)
    if (dev->lane[i].event)
      d->event_destroy (dev->lane[i].event);
  for (unsigned i = 0; i < DEVICE_NR_STREAMS; i++)
    if (dev->stream[i])
      d->stream_destroy (dev->stream[i]);
  staged_close (dev->staged);
  if (dev->tables)
    d->mem_free (dev->tables);
  if (dev->host)
    d->mem_free_host (dev->host);
  d->ctx_set_current (NULL);
}

void
device_close (struct gpu_device *dev)
{
  if (dev == NULL)
    return;
  device_stop (dev);
  if (dev->ctx && device_enter (dev) == CUDA_SUCCESS) {
    close_all (dev);
    device_leave (dev);
  }
  if (dev->ctx)
    dev->driver->primary_ctx_release (dev->handle);
  pthread_mutex_destroy (&dev->lock);
  pthread_cond_destroy (&dev->wake);
  staged_free (dev->staged);
  free (dev->lane);
  free (dev);
}
