/* gpuraid: tests: a fake CUDA driver: contexts.
 *
 * The primary one of each device, and created ones, which are never freed:
 * others may still have their addresses.  When a context ends, its waiting work
 * is dropped, its running work is interrupted, and nothing writes any more when
 * the call returns; except that the last release of a primary one lets its work
 * finish.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>

#include "tests/fake-cuda/fake.h"

static _Thread_local struct CUctx_st *current;

struct CUctx_st *
fake_current (void)
{
  return current;
}

/* It is a mistake to use one that has ended, or is about to. */
bool
fake_is_gone (const struct CUctx_st *c)
{
  if (c->active && !c->ending)
    return false;
  fake.counters.misused++;
  return true;
}

/* Releases the lock meanwhile.  Returns how many objects were freed with it. */
static size_t
end_context (struct CUctx_st *c)
{
  size_t nr;

  c->ending = true;
  pthread_cond_broadcast (&fake.changed);
  while (c->nr_running > 0)
    pthread_cond_wait (&fake.changed, &fake.lock);
  nr = fake_count_objects (c);
  stream_close_all (c);
  nr += module_close (c) + memory_close (c);
  c->error = CUDA_SUCCESS;
  c->active = c->ending = c->dying = false;
  return nr;
}

/* ---- primary ones */

CUresult
cuDevicePrimaryCtxRetain (CUcontext *ctx, CUdevice d)
{
  CUresult r = fake_enter (NULL, NEED_INIT, NULL);

  if (r != CUDA_SUCCESS)
    return r;
  if (!fake_is_device (d))
    return fake_leave (CUDA_ERROR_INVALID_DEVICE);
  r = fake_fault ("cuDevicePrimaryCtxRetain", d);
  if (r != CUDA_SUCCESS)
    return fake_leave (r);
  if (fake.device[d].lost)
    return fake_leave (CUDA_ERROR_DEVICE_UNAVAILABLE);
  fake.device[d].ctx.retained++;
  fake.device[d].ctx.active = true;
  *ctx = &fake.device[d].ctx;
  return fake_leave (CUDA_SUCCESS);
}

CUresult
cuDevicePrimaryCtxRelease_v2 (CUdevice d)
{
  CUresult r = fake_enter ("cuDevicePrimaryCtxRelease_v2", NEED_INIT, NULL);
  struct CUctx_st *c;

  if (r != CUDA_SUCCESS)
    return r;
  if (!fake_is_device (d))
    return fake_leave (CUDA_ERROR_INVALID_DEVICE);
  c = &fake.device[d].ctx;
  if (c->retained == 0)
    return fake_leave (CUDA_ERROR_INVALID_CONTEXT);
  if (c->retained == 1 && c->active) {
    stream_wait_all (c);
    fake.counters.leaked += end_context (c);
  }
  c->retained--;
  return fake_leave (CUDA_SUCCESS);
}

/* It ends even after an error, which is then what the call returns. */
CUresult
cuDevicePrimaryCtxReset_v2 (CUdevice d)
{
  CUresult r = fake_enter (NULL, NEED_INIT, NULL);
  struct CUctx_st *c;

  if (r != CUDA_SUCCESS)
    return r;
  if (!fake_is_device (d))
    return fake_leave (CUDA_ERROR_INVALID_DEVICE);
  r = fake_fault ("cuDevicePrimaryCtxReset_v2", d);
  if (r != CUDA_SUCCESS)
    return fake_leave (r);
  c = &fake.device[d].ctx;
  r = c->error;
  if (c->active)
    end_context (c);
  return fake_leave (r);
}

CUresult
cuDevicePrimaryCtxGetState (CUdevice d, unsigned *flags, int *active)
{
  CUresult r = fake_enter (NULL, NEED_INIT, NULL);

  if (r != CUDA_SUCCESS)
    return r;
  if (!fake_is_device (d))
    return fake_leave (CUDA_ERROR_INVALID_DEVICE);
  r = fake_fault ("cuDevicePrimaryCtxGetState", d);
  *flags = 0;
  *active = fake.device[d].ctx.active;
  return fake_leave (r);
}

/* ---- others */

CUresult
cuCtxCreate_v2 (CUcontext *ctx, unsigned flags, CUdevice d)
{
  CUresult r = fake_enter (NULL, NEED_INIT, NULL);
  struct CUctx_st *c;

  if (r != CUDA_SUCCESS)
    return r;
  if (!fake_is_device (d))
    return fake_leave (CUDA_ERROR_INVALID_DEVICE);
  r = fake_fault ("cuCtxCreate_v2", d);
  if (r != CUDA_SUCCESS)
    return fake_leave (r);
  if (fake.device[d].lost)
    return fake_leave (CUDA_ERROR_DEVICE_UNAVAILABLE);
  c = calloc (1, sizeof *c);
  if (c == NULL)
    return fake_leave (CUDA_ERROR_OUT_OF_MEMORY);
  c->device = d;
  c->active = true;
  c->next = fake.made;
  fake.made = c;
  c->below = current;
  current = c;
  *ctx = c;
  return fake_leave (CUDA_SUCCESS);
}

static bool
is_made (const struct CUctx_st *ctx)
{
  for (const struct CUctx_st *c = fake.made; c; c = c->next)
    if (c == ctx)
      return c->active;
  return false;
}

CUresult
cuCtxDestroy_v2 (CUcontext ctx)
{
  CUresult r = fake_enter ("cuCtxDestroy_v2", NEED_INIT, NULL);

  if (r != CUDA_SUCCESS)
    return r;
  if (!is_made (ctx))
    return fake_leave (CUDA_ERROR_INVALID_CONTEXT);
  r = ctx->error;
  fake.counters.leaked += end_context (ctx);
  if (current == ctx)
    current = ctx->below;
  return fake_leave (r);
}

/* ---- both */

static bool
is_context (CUcontext ctx)
{
  return is_made (ctx) ||
    (fake_is_device (ctx->device) && ctx->retained > 0 &&
     ctx == &fake.device[ctx->device].ctx);
}

/* The reset of a primary context shows later. */
CUresult
cuCtxSetCurrent (CUcontext ctx)
{
  CUresult r = fake_enter ("cuCtxSetCurrent", NEED_INIT, NULL);

  if (r != CUDA_SUCCESS)
    return r;
  if (ctx != NULL && !is_context (ctx))
    return fake_leave (CUDA_ERROR_INVALID_CONTEXT);
  current = ctx;
  return fake_leave (CUDA_SUCCESS);
}

CUresult
cuCtxGetStreamPriorityRange (int *least, int *greatest)
{
  struct CUctx_st *c;
  CUresult r = fake_enter ("cuCtxGetStreamPriorityRange", NEED_CONTEXT, &c);

  if (r != CUDA_SUCCESS)
    return r;
  if (least)
    *least = 0;
  if (greatest)
    *greatest = -5;
  return fake_leave (CUDA_SUCCESS);
}
