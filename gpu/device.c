/* gpuraid: launch parts on a CUDA device.
 *
 * A lane is all that a launch needs, so that nothing is allocated and
 * nothing waits: an event, pinned memory into which the kernel puts its
 * CRCs, and room on the device for the tables of a generic kernel, which
 * go there in the launch's own stream just before it.  Tables that stay on
 * the device for each matrix were the alternative: allocating and freeing
 * them waits for the whole device.
 *
 * When anything fails the device is never used again, but what was
 * launched may still be running, and would write into cells that belong
 * to somebody else by then: gpu/device-thread.c waits for the whole
 * context before it gives the parts back.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/bits.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "gpu/device.h"
#include "gpu/kernels.h"
#include "gpu/staged.h"

#define CRC_LEN (DEVICE_MAX_CRCS * sizeof (uint32_t))
/* Longer tables go to the device from where they are, which may wait. */
#define STAGE_LEN ((size_t) 64 << 10)
#define LANE_HOST_LEN (CRC_LEN + STAGE_LEN)

/* Threads in place: enough to keep the link busy, and few, so that what is
 * read first is written first, and that something small which comes along
 * does not queue behind megabytes of reads.  With CRCs a thread takes
 * longer.
 */
#define IN_PLACE_THREADS 8192u
#define IN_PLACE_CRC_THREADS 32768u

#define CUDA_ERROR_LAUNCH_FAILED 719

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
  return dev->driver->ctx_set_current (dev->ctx);
}

static int
identify (struct gpu_device *dev)
{
  const struct driver *d = dev->driver;
  int major, minor;
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
               CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, dev->handle)))
    return report (dev, "cuDeviceGetAttribute", r);
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

/* Nobody else knows the device yet. */
static int
no_start (struct gpu_device *dev, const char *call, const char *text)
{
  log_error ("%s: %s: %s: it is not used", dev->name, call, text);
  dev->failed = true;
  snprintf (dev->why, sizeof dev->why, "%.25s: %.90s", call, text);
  return -1;
}

int
device_start (struct gpu_device *dev, const struct device_owner *owner,
              void *arena, size_t arena_len)
{
  const struct driver *d = dev->driver;
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
  if (r == CUDA_SUCCESS && arena_len > 0) {
    call = "cuMemHostGetDevicePointer";
    r = d->mem_host_get_device_pointer (&dev->base, arena, 0);
  }
  if (r || (r = make_streams (dev, &call)) ||
      (r = make_memory (dev, &call)) || (r = make_lanes (dev, &call)))
    return no_start (dev, call, driver_error (d, r, buf));

  dev->staged = staged_new (dev);
  err = pthread_create (&dev->thread, NULL, device_thread, dev);
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
  __atomic_add_fetch (&dev->nr_news, 1, __ATOMIC_RELEASE);
  pthread_join (dev->thread, NULL);
  dev->has_thread = false;
}

/* Of a device that failed all calls fail too, which harms nothing. */
void
device_close (struct gpu_device *dev)
{
  const struct driver *d;

  if (dev == NULL)
    return;
  d = dev->driver;
  device_stop (dev);
  if (dev->ctx && device_enter (dev) == CUDA_SUCCESS) {
    for (unsigned i = 0; dev->lane && i < DEVICE_NR_LANES; i++)
      if (dev->lane[i].event)
        d->event_destroy (dev->lane[i].event);
    for (unsigned i = 0; i < DEVICE_NR_STREAMS; i++)
      if (dev->stream[i])
        d->stream_destroy (dev->stream[i]);
    staged_free (dev->staged);
    if (dev->tables)
      d->mem_free (dev->tables);
    if (dev->host)
      d->mem_free_host (dev->host);
    d->ctx_set_current (NULL);
  }
  if (dev->ctx)
    d->primary_ctx_release (dev->handle);
  pthread_mutex_destroy (&dev->lock);
  pthread_cond_destroy (&dev->wake);
  free (dev->lane);
  free (dev);
}

/* ---- launching ------------------------------------------------------- */

struct lane *
device_take (struct gpu_device *dev, bool small)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&dev->lock);
  struct list *l;

  if (dev->failed)
    return NULL;
  l = list_pop (&dev->free[small]);
  if (l == NULL)
    return NULL;
  dev->nr_launching++;
  return list_item (l, struct lane, link);
}

static void
fill_params (struct lane *s, const struct job_part *p)
{
  const struct matrix *a = p->job->matrix;
  const uint8_t *zero = s->dev->arena - p->off;
  const uint8_t *const *in = p->job->in + p->first_rect * a->cols;
  uint8_t *const *out = p->job->out + p->first_rect * a->rows;
  struct kernel_params *params = &s->params;
  uint32_t *cell = params->cell;

  params->in_base = params->out_base = s->dev->base;
  params->crc = p->job->crc ? s->crc : 0;
  params->cell_len = p->len;
  params->nr_rects = p->nr_rects;
  params->cols = a->cols;
  params->rows = a->rows;
  params->packet_len = a->packet_len;
  params->w = a->w;
  for (size_t r = 0; r < p->nr_rects; r++) {
    for (unsigned i = 0; i < a->cols; i++)
      *cell++ = (size_t) (*in++ - zero) / 64;
    for (unsigned j = 0; j < a->rows; j++)
      *cell++ = (size_t) (*out++ - zero) / 64;
  }
}

/* What is in s->host stays until the launch is over, whose lane it is. */
static CUresult
send_tables (struct lane *s, const struct kernel_choice *k)
{
  const void *from = k->tables;
  CUresult r;

  s->params.tables = s->tables;
  if (s->tables_of == k->serial)
    return CUDA_SUCCESS;
  if (k->tables_len <= STAGE_LEN) {
    memcpy (s->host + CRC_LEN, from, k->tables_len);
    from = s->host + CRC_LEN;
  }
  r = s->dev->driver->memcpy_htod_async (s->tables, from, k->tables_len,
                                         s->stream);
  s->tables_of = r == CUDA_SUCCESS ? k->serial : 0;
  return r;
}

/* Alone on the device the copies of a part would not overlap with those of
 * another one.
 */
static bool
is_staged (const struct gpu_device *dev, const struct lane *s,
           const struct job_part *p)
{
  return !s->small && staged_takes (dev->staged, p) &&
    __atomic_load_n (&dev->bytes_in_flight, __ATOMIC_RELAXED) > p->bytes;
}

static CUresult
launch_in_place (struct lane *s, const struct job_part *p,
                 const struct kernel_choice *k, const char **call)
{
  const struct driver *d = s->dev->driver;
  unsigned most = (p->job->crc ? IN_PLACE_CRC_THREADS : IN_PLACE_THREADS) /
    k->shape.block;
  unsigned x = MIN (s->params.nr_tiles, most);
  unsigned y = MIN (p->nr_rects, div_round_up (most, x));
  void *params[] = { &s->params };
  CUresult r;

  *call = "cuLaunchKernel";
  r = d->launch_kernel (k->function, x, y, 1, k->shape.block, 1, 1, 0,
                        s->stream, params, NULL);
  if (r)
    return r;
  *call = "cuEventRecord";
  return d->event_record (s->event, s->stream);
}

static CUresult
launch (struct lane *s, const struct job_part *p, const char **call)
{
  struct gpu_device *dev = s->dev;
  struct kernel_choice k;
  CUresult r;

  *call = "cuCtxSetCurrent";
  r = device_enter (dev);
  if (r)
    return r;
  kernel_choose (p->kernel, dev, &k);
  fill_params (s, p);
  s->params.nr_tiles = kernel_tiles (&k.shape, p->len);
  if (k.tables) {
    *call = "cuMemcpyHtoDAsync";
    r = send_tables (s, &k);
    if (r)
      return r;
  }
  if (dev->fail_after &&
      __atomic_add_fetch (&dev->nr_launches, 1, __ATOMIC_RELAXED) >
      dev->fail_after) {
    __atomic_store_n (&dev->broken, true, __ATOMIC_RELAXED);
    *call = "cuLaunchKernel";
    return CUDA_ERROR_LAUNCH_FAILED;
  }
  /* Tables went by the lane's own stream. */
  if (k.tables == NULL && is_staged (dev, s, p))
    return staged_launch (dev->staged, s - dev->lane, p, &k, &s->params,
                          s->event, call);
  return launch_in_place (s, p, &k, call);
}

void
device_launch (struct lane *s, struct job_part *p)
{
  struct gpu_device *dev = s->dev;
  const char *call;
  CUresult r;

  s->part = p;
  __atomic_add_fetch (&dev->bytes_in_flight, p->bytes, __ATOMIC_RELAXED);
  r = launch (s, p, &call);
  if (r != CUDA_SUCCESS)
    device_fail (dev, call, r);

  /* The thread takes it from here, also what was not launched. */
  {
    ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&dev->lock);

    list_append (&dev->launched, &s->link);
    dev->nr_launching--;
    __atomic_add_fetch (&dev->nr_news, 1, __ATOMIC_RELEASE);
    if (dev->asleep)
      pthread_cond_broadcast (&dev->wake);
  }
}

/* ---- failing --------------------------------------------------------- */

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

void
device_fail (struct gpu_device *dev, const char *call, CUresult r)
{
  char buf[DRIVER_ERROR_LEN];

  driver_error (dev->driver, r, buf);
  {
    ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&dev->lock);

    if (dev->failed)
      return;
    dev->failed = true;
    snprintf (dev->why, sizeof dev->why, "%.25s: %.90s", call, buf);
    pthread_cond_broadcast (&dev->wake);
  }
  log_error ("%s: %s: %s: it is not used any more", dev->name, call, buf);
}
