/* gpuraid: tests: a fake CUDA driver: events.
 *
 * An event is a stream and a number in it: see stream.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>

#include "tests/fake-cuda/fake.h"

static struct CUevent_st *
find_event (CUevent event)
{
  for (int i = 0; i < fake.nr_devices; i++)
    for (struct CUevent_st *e = fake.device[i].ctx.events; e; e = e->next)
      if (e == event)
        return e->destroyed ? NULL : e;
  return NULL;
}

static bool
is_over (const struct CUevent_st *e)
{
  return e->stream == NULL || e->stream->done >= e->seq;
}

CUresult
cuStreamWaitEvent (CUstream stream, CUevent event, unsigned flags)
{
  struct CUctx_st *c;
  CUresult r = fake_enter ("cuStreamWaitEvent", NEED_CONTEXT, &c);
  struct CUstream_st *s;
  struct CUevent_st *e;

  if (r != CUDA_SUCCESS)
    return r;
  s = stream_find (c, stream);
  e = find_event (event);
  if (s == NULL || e == NULL)
    return fake_leave (CUDA_ERROR_INVALID_HANDLE);
  if (flags != 0)
    return fake_leave (CUDA_ERROR_INVALID_VALUE);
  stream_add_wait (s, e->stream, e->seq);
  return fake_leave (CUDA_SUCCESS);
}

CUresult
cuEventCreate (CUevent *event, unsigned flags)
{
  struct CUctx_st *c;
  CUresult r = fake_enter ("cuEventCreate", NEED_CONTEXT, &c);
  struct CUevent_st *e;

  if (r != CUDA_SUCCESS)
    return r;
  if (flags & ~(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING))
    return fake_leave (CUDA_ERROR_INVALID_VALUE);
  e = calloc (1, sizeof *e);
  if (e == NULL)
    return fake_leave (CUDA_ERROR_OUT_OF_MEMORY);
  e->ctx = c;
  e->flags = flags;
  e->next = c->events;
  c->events = e;
  *event = e;
  return fake_leave (CUDA_SUCCESS);
}

/* Its memory is kept until its context ends: a queue may use it. */
CUresult
cuEventDestroy_v2 (CUevent event)
{
  CUresult r = fake_enter ("cuEventDestroy_v2", NEED_INIT, NULL);
  struct CUevent_st *e;

  if (r != CUDA_SUCCESS)
    return r;
  if (fake_current () == NULL)
    return fake_leave (CUDA_ERROR_INVALID_CONTEXT);
  e = find_event (event);
  if (e == NULL)
    return fake_leave (CUDA_ERROR_INVALID_HANDLE);
  e->destroyed = true;
  return fake_leave (e->ctx->error);
}

CUresult
cuEventRecord (CUevent event, CUstream stream)
{
  struct CUctx_st *c;
  CUresult r = fake_enter ("cuEventRecord", NEED_CONTEXT, &c);
  struct CUstream_st *s;
  struct CUevent_st *e;
  struct stream_op *op;

  if (r != CUDA_SUCCESS)
    return r;
  s = stream_find (c, stream);
  e = find_event (event);
  if (s == NULL || e == NULL || e->ctx != c)
    return fake_leave (CUDA_ERROR_INVALID_HANDLE);
  op = calloc (1, sizeof *op);
  if (op == NULL)
    return fake_leave (CUDA_ERROR_OUT_OF_MEMORY);
  op->kind = OP_RECORD;
  op->event = e;
  stream_add (s, op);
  e->stream = s;
  e->seq = op->seq;
  return fake_leave (CUDA_SUCCESS);
}

CUresult
cuEventQuery (CUevent event)
{
  struct CUctx_st *c;
  CUresult r = fake_enter ("cuEventQuery", NEED_CONTEXT, &c);
  struct CUevent_st *e;

  if (r != CUDA_SUCCESS)
    return r;
  e = find_event (event);
  if (e == NULL)
    return fake_leave (CUDA_ERROR_INVALID_HANDLE);
  if (e->ctx->error)
    return fake_leave (e->ctx->error);
  return fake_leave (is_over (e) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

CUresult
cuEventSynchronize (CUevent event)
{
  struct CUctx_st *c;
  CUresult r = fake_enter ("cuEventSynchronize", NEED_CONTEXT, &c);
  struct CUevent_st *e;

  if (r != CUDA_SUCCESS)
    return r;
  e = find_event (event);
  if (e == NULL)
    return fake_leave (CUDA_ERROR_INVALID_HANDLE);
  if (e->stream)
    stream_wait_seq (e->stream, e->seq);
  return fake_leave (e->ctx->error);
}

CUresult
cuEventElapsedTime (float *ms, CUevent start, CUevent end)
{
  struct CUctx_st *c;
  CUresult r = fake_enter ("cuEventElapsedTime", NEED_CONTEXT, &c);
  struct CUevent_st *a, *b;

  if (r != CUDA_SUCCESS)
    return r;
  a = find_event (start);
  b = find_event (end);
  if (a == NULL || b == NULL || a->ctx != b->ctx ||
      a->stream == NULL || b->stream == NULL ||
      ((a->flags | b->flags) & CU_EVENT_DISABLE_TIMING))
    return fake_leave (CUDA_ERROR_INVALID_HANDLE);
  if (a->ctx->error)
    return fake_leave (a->ctx->error);
  if (!is_over (a) || !is_over (b))
    return fake_leave (CUDA_ERROR_NOT_READY);
  *ms = ((double) b->nsec - (double) a->nsec) / 1e6;
  return fake_leave (CUDA_SUCCESS);
}
