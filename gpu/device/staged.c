/* gpuraid: copy cells to the device, code them, and copy them back.
 *
 * One stream for each direction of the link and one between them for kernels,
 * so that three parts are processed at once.  With more streams copies of both
 * directions wait for each other (48 GB/s rather than 52 with four).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>

#include "common/bits.h"
#include "gpu/device/staged.h"

/* Of inputs and outputs of a part. */
#define STAGE_LEN ((size_t) 24 << 20)

/* With shorter cells the single copies take too long. */
#define MIN_CELL_LEN ((size_t) 32 << 10)

/* A list of copies for the driver. */
struct copies {
  size_t nr;
  CUdeviceptr dst[KERNEL_MAX_CELLS], src[KERNEL_MAX_CELLS];
  size_t len[KERNEL_MAX_CELLS];
};

/* What one launch needs. */
struct stage {
  CUdeviceptr memory;
  CUevent arrived, coded;
  struct copies in, out;
};

struct staged {
  struct gpu_device *dev;
  CUdeviceptr memory;
  CUstream in, code, out;
  struct stage stage[DEVICE_NR_LARGE];
};

static CUresult
make_all (struct staged *s)
{
  const struct driver *d = s->dev->driver;
  CUstream *const streams[] = { &s->in, &s->code, &s->out };
  CUresult r = d->mem_alloc (&s->memory, DEVICE_NR_LARGE * STAGE_LEN);

  for (unsigned i = 0; r == CUDA_SUCCESS && i < 3; i++)
    r = d->stream_create (streams[i], CU_STREAM_NON_BLOCKING, 0);
  for (unsigned i = 0; r == CUDA_SUCCESS && i < DEVICE_NR_LARGE; i++) {
    struct stage *g = &s->stage[i];

    g->memory = s->memory + i * STAGE_LEN;
    r = d->event_create (&g->arrived, CU_EVENT_DISABLE_TIMING);
    if (r == CUDA_SUCCESS)
      r = d->event_create (&g->coded, CU_EVENT_DISABLE_TIMING);
  }
  return r;
}

void
staged_close (struct staged *s)
{
  const struct driver *d;

  if (s == NULL)
    return;
  d = s->dev->driver;
  for (unsigned i = 0; i < DEVICE_NR_LARGE; i++) {
    if (s->stage[i].arrived)
      d->event_destroy (s->stage[i].arrived);
    if (s->stage[i].coded)
      d->event_destroy (s->stage[i].coded);
  }
  if (s->in)
    d->stream_destroy (s->in);
  if (s->code)
    d->stream_destroy (s->code);
  if (s->out)
    d->stream_destroy (s->out);
  if (s->memory)
    d->mem_free (s->memory);
}

void
staged_free (struct staged *s)
{
  free (s);
}

bool
staged_takes (const struct staged *s, const struct job_part *p)
{
  const struct matrix *a = p->job->matrix;

  return s && p->len >= MIN_CELL_LEN &&
    p->nr_rects * (a->cols + a->rows) * p->len <= STAGE_LEN;
}

/* Cells that are adjacent in both memories are copied as one. */
static void
add_copy (struct copies *c, CUdeviceptr dst, CUdeviceptr src, size_t len)
{
  if (c->nr > 0 && c->src[c->nr-1] + c->len[c->nr-1] == src &&
      c->dst[c->nr-1] + c->len[c->nr-1] == dst) {
    c->len[c->nr-1] += len;
    return;
  }
  c->dst[c->nr] = dst;
  c->src[c->nr] = src;
  c->len[c->nr++] = len;
}

/* The inputs of all rects come first on the device, then their outputs. */
static void
place_cells (struct stage *g, const struct job_part *p,
             struct kernel_params *params)
{
  const struct matrix *a = p->job->matrix;
  const CUdeviceptr host = params->in_base;
  uint32_t *cell = params->cell;
  CUdeviceptr in = g->memory;
  CUdeviceptr out = in + p->nr_rects * a->cols * p->len;

  g->in.nr = g->out.nr = 0;
  for (size_t r = 0; r < p->nr_rects; r++) {
    for (unsigned i = 0; i < a->cols; i++, cell++, in += p->len) {
      add_copy (&g->in, in, host + (uint64_t) *cell * 64, p->len);
      *cell = (in - g->memory) / 64;
    }
    for (unsigned j = 0; j < a->rows; j++, cell++, out += p->len) {
      add_copy (&g->out, host + (uint64_t) *cell * 64, out, p->len);
      *cell = (out - g->memory) / 64;
    }
  }
  params->in_base = params->out_base = g->memory;
}

static CUresult
copy (const struct driver *d, struct copies *c, CUstream stream)
{
  CUmemcpyAttributes attributes = {
    .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
  };
  size_t first = 0;

  return d->memcpy_batch_async (c->dst, c->src, c->len, c->nr, &attributes,
                                &first, 1, stream);
}

/* The driver may have the call and still not support it here (a virtual device
 * may refuse it), and a launch that fails would cost the device.
 */
static CUresult
try_copies (struct staged *s)
{
  const CUdeviceptr host = s->dev->lane[0].crc;
  struct copies *c = &s->stage[0].in;
  CUresult r;

  for (unsigned i = 0; i < 2; i++)
    add_copy (c, s->memory + i * KIB, host + i * 2 * KIB, 64);
  r = copy (s->dev->driver, c, s->in);
  return r ? r : s->dev->driver->stream_synchronize (s->in);
}

struct staged *
staged_new (struct gpu_device *dev)
{
  struct staged *s;

  if (dev->driver->memcpy_batch_async == NULL)
    return NULL;
  s = calloc (1, sizeof *s);
  if (s == NULL)
    return NULL;
  s->dev = dev;
  if (make_all (s) == CUDA_SUCCESS && try_copies (s) == CUDA_SUCCESS)
    return s;
  staged_close (s);
  staged_free (s);
  return NULL;
}

CUstream
staged_stream (const struct staged *s)
{
  return s->in;
}

CUresult
staged_launch (struct staged *s, unsigned nr, const struct job_part *p,
               const struct kernel_choice *k, struct kernel_params *params,
               CUevent done, const char **call)
{
  const struct driver *d = s->dev->driver;
  struct stage *g = &s->stage[nr];
  void *args[] = { params };
  unsigned x, y;
  CUresult r;

  place_cells (g, p, params);
  *call = "cuMemcpyBatchAsync";
  if ((r = copy (d, &g->in, s->in)))
    return r;
  *call = "cuEventRecord";
  if ((r = d->event_record (g->arrived, s->in)))
    return r;
  *call = "cuStreamWaitEvent";
  if ((r = d->stream_wait_event (s->code, g->arrived, 0)))
    return r;
  kernel_grid (&k->shape, params, s->dev->nr_sms, KERNEL_ANY_BLOCKS, &x, &y);
  *call = "cuLaunchKernel";
  if ((r = d->launch_kernel (k->function, x, y, 1, k->shape.block, 1, 1,
                             k->shape.shared_len, s->code, args, NULL)))
    return r;
  *call = "cuEventRecord";
  if ((r = d->event_record (g->coded, s->code)))
    return r;
  *call = "cuStreamWaitEvent";
  if ((r = d->stream_wait_event (s->out, g->coded, 0)))
    return r;
  *call = "cuMemcpyBatchAsync";
  if ((r = copy (d, &g->out, s->out)))
    return r;
  *call = "cuEventRecord";
  return d->event_record (done, s->out);
}
