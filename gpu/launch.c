/* gpuraid: launch parts on a CUDA device.
 *
 * A lane has everything that a launch needs, so that nothing is allocated and
 * nothing waits: an event, pinned memory into which the kernel puts its CRCs,
 * and room on the device for the tables of a generic kernel, which are copied
 * in the stream of the launch, or of its copies, just before it.  The
 * alternative, tables that stay on the device for each matrix, is slow:
 * allocating and freeing them waits for the whole device.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdatomic.h>
#include <string.h>

#include "common/bits.h"
#include "common/cleanup.h"
#include "gpu/choice/kernels.h"
#include "gpu/device/device.h"
#include "gpu/device/staged.h"

/* Threads of a launch in place.  They must keep the link busy, but be few: then
 * what is read first is written first, and a small launch does not queue behind
 * megabytes of reads.  With CRCs a thread takes longer.
 */
#define IN_PLACE_THREADS 8192u
#define IN_PLACE_CRC_THREADS 32768u

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
  /* It takes as long to wake up as a launch takes. */
  if (dev->idle)
    pthread_cond_broadcast (&dev->wake);
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

/* s->host must not change until the launch is over; its lane owns it. */
static CUresult
send_tables (struct lane *s, const struct kernel_choice *k, CUstream stream)
{
  const void *from = k->tables;
  CUresult r;

  s->params.tables = s->tables;
  if (s->tables_of == k->serial)
    return CUDA_SUCCESS;
  if (k->tables_len <= LANE_TABLES_LEN) {
    memcpy (s->host + LANE_CRC_LEN, from, k->tables_len);
    from = s->host + LANE_CRC_LEN;
  }
  r = s->dev->driver->memcpy_htod_async (s->tables, from, k->tables_len,
                                         stream);
  s->tables_of = r == CUDA_SUCCESS ? k->serial : 0;
  return r;
}

/* Alone on the device, the copies of a part would not overlap with those of
 * another.
 */
static bool
is_staged (const struct gpu_device *dev, const struct lane *s,
           const struct job_part *p)
{
  return !s->small && !dev->in_place && staged_takes (dev->staged, p) &&
    atomic_load_explicit (&dev->bytes_in_flight,
                          memory_order_relaxed) > p->bytes;
}

static CUresult
launch_in_place (struct lane *s, const struct job_part *p,
                 const struct kernel_choice *k, const char **call)
{
  const struct driver *d = s->dev->driver;
  unsigned threads = s->dev->in_place_threads ? s->dev->in_place_threads
    : p->job->crc ? IN_PLACE_CRC_THREADS : IN_PLACE_THREADS;
  unsigned most = MAX (threads / k->shape.block, 1);
  unsigned x, y;
  void *params[] = { &s->params };
  CUresult r;

  kernel_grid (&k->shape, &s->params, s->dev->nr_sms, most, &x, &y);
  *call = "cuLaunchKernel";
  r = d->launch_kernel (k->function, x, y, 1, k->shape.block, 1, 1,
                        k->shape.shared_len, s->stream, params, NULL);
  if (r)
    return r;
  *call = "cuEventRecord";
  return d->event_record (s->event, s->stream);
}

static CUresult
launch (struct lane *s, const struct job_part *p, const char **call)
{
  struct gpu_device *dev = s->dev;
  const bool staged = is_staged (dev, s, p);
  struct kernel_choice k;
  CUresult r;

  *call = "cuCtxSetCurrent";
  r = device_set_current (dev);
  if (r)
    return r;
  kernel_choose (p->kernel, dev, staged ? KERNEL_ON_DEVICE : KERNEL_ON_HOST,
                 &k);
  fill_params (s, p);
  kernel_shape_params (&k.shape, &s->params);
  if (k.tables) {
    *call = "cuMemcpyHtoDAsync";
    r = send_tables (s, &k, staged ? staged_stream (dev->staged) : s->stream);
    if (r)
      return r;
  }
  if (dev->fail_after &&
      atomic_fetch_add_explicit (&dev->nr_launches, 1,
                                 memory_order_relaxed) >=
      dev->fail_after) {
    atomic_store_explicit (&dev->broken, true, memory_order_relaxed);
    *call = "cuLaunchKernel";
    return CUDA_ERROR_LAUNCH_FAILED;
  }
  if (staged)
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
  atomic_fetch_add_explicit (&dev->bytes_in_flight, p->bytes,
                             memory_order_relaxed);
  r = launch (s, p, &call);
  if (r != CUDA_SUCCESS)
    device_fail (dev, call, r);

  /* From here the thread owns it, also if it was not launched. */
  {
    ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&dev->lock);

    list_append (&dev->launched, &s->link);
    dev->nr_launching--;
    atomic_fetch_add_explicit (&dev->nr_news, 1, memory_order_release);
    if (dev->asleep)
      pthread_cond_broadcast (&dev->wake);
  }
}
