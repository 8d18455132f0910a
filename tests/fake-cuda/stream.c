/* gpuraid: tests: a fake CUDA driver: streams.
 *
 * A stream is a queue and a thread that serves it.  Numbers define the order:
 * an operation has the next number of its stream, and has ended when the
 * stream's done has reached it.  After an error of its context an operation
 * does nothing.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/fake-cuda/fake.h"

/* Others may still hold their numbers. */
static struct CUstream_st *closed_streams;

static uint64_t
now (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return t.tv_sec * UINT64_C (1000000000) + t.tv_nsec;
}

/* ---- the thread of a stream */

/* false: the context ended meanwhile. */
static bool
take_time (struct CUctx_st *c, unsigned usec)
{
  struct timespec until;
  bool ok;

  if (usec == 0)
    return true;
  clock_gettime (CLOCK_REALTIME, &until);
  until.tv_sec += usec / 1000000;
  until.tv_nsec += usec % 1000000 * 1000;
  if (until.tv_nsec >= 1000000000) {
    until.tv_nsec -= 1000000000;
    until.tv_sec++;
  }
  pthread_mutex_lock (&fake.lock);
  fake.nr_slow++;
  while (!c->ending &&
         pthread_cond_timedwait (&fake.changed, &fake.lock, &until) == 0)
    ;
  fake.nr_slow--;
  ok = !c->ending;
  pthread_mutex_unlock (&fake.lock);
  return ok;
}

static CUresult
do_op (struct CUctx_st *c, const struct stream_op *op)
{
  if ((op->kind == OP_LAUNCH && !take_time (c, fake.slow_usec)) ||
      (op->back && !take_time (c, fake.slow_copies_usec)))
    return CUDA_SUCCESS;
  switch (op->kind) {
  case OP_LAUNCH:
    if (op->lost)
      return CUDA_ERROR_LAUNCH_FAILED;
    return module_launch (c, op);
  case OP_COPY:
    memcpy (op->dst, op->src ? op->src : op->staged, op->len);
    break;
  case OP_SET:
    memset (op->dst, op->byte, op->len);
    break;
  case OP_WAIT: case OP_RECORD:
    break;
  }
  return CUDA_SUCCESS;
}

static void
set_error (struct CUctx_st *c, CUresult r)
{
  c->dying = true;
  if (!c->error)
    c->error = r;
}

void
stream_fail (struct CUctx_st *c, CUresult r)
{
  c->dying = true;
  while (c->nr_running > 0 && !fake.late && !c->ending)
    pthread_cond_wait (&fake.changed, &fake.lock);
  set_error (c, r);
  for (int i = 0; fake.one_for_all && i < fake.nr_devices; i++)
    if (fake.device[i].ctx.active)
      set_error (&fake.device[i].ctx, r);
  for (c = fake.made; fake.one_for_all && c; c = c->next)
    if (c->active)
      set_error (c, r);
  pthread_cond_broadcast (&fake.changed);
}

static void
run_op (struct CUstream_st *s, const struct stream_op *op)
{
  struct CUctx_st *c = s->ctx;
  CUresult r;

  if (op->kind == OP_WAIT)
    stream_wait_seq (op->wait_stream, op->wait_seq);
  if (op->kind == OP_RECORD && op->event->stream == s &&
      op->event->seq == op->seq)
    op->event->nsec = now ();
  while (c->dying && !c->error && !c->ending)
    pthread_cond_wait (&fake.changed, &fake.lock);
  if (c->error || c->ending)
    return;
  c->nr_running++;
  fake.nr_copying_back += op->back;
  pthread_mutex_unlock (&fake.lock);
  r = do_op (c, op);
  pthread_mutex_lock (&fake.lock);
  fake.nr_copying_back -= op->back;
  c->nr_running--;
  pthread_cond_broadcast (&fake.changed);
  if (r != CUDA_SUCCESS)
    stream_fail (c, r);
  if (op->lost)
    fake.device[c->device].lost = true;
}

static void
free_op (struct stream_op *op)
{
  free (op->params);
  free (op->staged);
  free (op);
}

static void *
stream_main (void *arg)
{
  struct CUstream_st *s = arg;

  pthread_mutex_lock (&fake.lock);
  for (;;) {
    struct stream_op *op = s->first;

    if (op == NULL) {
      if (s->stop)
        break;
      pthread_cond_wait (&s->more, &fake.lock);
      continue;
    }
    run_op (s, op);
    s->first = op->next;
    if (s->first == NULL)
      s->last = &s->first;
    s->done = op->seq;
    free_op (op);
    pthread_cond_broadcast (&fake.changed);
  }
  pthread_mutex_unlock (&fake.lock);
  return NULL;
}

static struct CUstream_st *
new_stream (struct CUctx_st *c, bool non_blocking)
{
  struct CUstream_st *s = calloc (1, sizeof *s);

  if (s == NULL)
    return NULL;
  s->ctx = c;
  s->non_blocking = non_blocking;
  s->last = &s->first;
  pthread_cond_init (&s->more, NULL);
  if (pthread_create (&s->thread, NULL, stream_main, s) != 0) {
    free (s);
    return NULL;
  }
  return s;
}

/* Gives up the lock meanwhile. */
static void
stop_stream (struct CUstream_st *s)
{
  if (s->stop)
    return;
  s->stop = true;
  pthread_cond_signal (&s->more);
  pthread_mutex_unlock (&fake.lock);
  pthread_join (s->thread, NULL);
  pthread_mutex_lock (&fake.lock);
}

/* ---- for the others */

struct CUstream_st *
stream_find (struct CUctx_st *c, CUstream stream)
{
  if (stream == NULL) {
    if (c->null_stream == NULL)
      c->null_stream = new_stream (c, false);
    return c->null_stream;
  }
  for (struct CUstream_st *s = c->streams; s; s = s->next)
    if (s == stream)
      return s->destroyed ? NULL : s;
  return NULL;
}

static void
append (struct CUstream_st *s, struct stream_op *op)
{
  op->seq = ++s->queued;
  *s->last = op;
  s->last = &op->next;
  pthread_cond_signal (&s->more);
}

void
stream_add_wait (struct CUstream_st *s, struct CUstream_st *other, uint64_t seq)
{
  struct stream_op *op;

  if (other == NULL || other == s || other->done >= seq)
    return;
  op = calloc (1, sizeof *op);
  if (op == NULL)
    abort ();
  op->kind = OP_WAIT;
  op->wait_stream = other;
  op->wait_seq = seq;
  append (s, op);
}

void
stream_add (struct CUstream_st *s, struct stream_op *op)
{
  struct CUctx_st *c = s->ctx;

  /* The default stream and all that are not non-blocking wait for each
   * other.
   */
  if (s == c->null_stream) {
    for (struct CUstream_st *t = c->streams; t; t = t->next)
      if (!t->non_blocking)
        stream_add_wait (s, t, t->queued);
  }
  else if (!s->non_blocking && c->null_stream)
    stream_add_wait (s, c->null_stream, c->null_stream->queued);
  append (s, op);
}

void
stream_wait_seq (struct CUstream_st *s, uint64_t seq)
{
  while (s->done < seq)
    pthread_cond_wait (&fake.changed, &fake.lock);
}

void
stream_wait_all (struct CUctx_st *c)
{
  for (struct CUstream_st *s = c->streams; s; s = s->next)
    stream_wait_seq (s, s->queued);
  if (c->null_stream)
    stream_wait_seq (c->null_stream, c->null_stream->queued);
}

static void
bury (struct CUstream_st *s)
{
  stop_stream (s);
  s->next = closed_streams;
  closed_streams = s;
}

void
stream_close_all (struct CUctx_st *c)
{
  struct CUstream_st *s;
  struct CUevent_st *e;

  while ((s = c->streams) != NULL) {
    c->streams = s->next;
    bury (s);
  }
  if (c->null_stream)
    bury (c->null_stream);
  c->null_stream = NULL;
  while ((e = c->events) != NULL) {
    c->events = e->next;
    free (e);
  }
}

/* ---- streams */

CUresult
cuStreamCreateWithPriority (CUstream *stream, unsigned flags, int priority)
{
  struct CUctx_st *c;
  CUresult r = fake_enter ("cuStreamCreateWithPriority", NEED_CONTEXT, &c);
  struct CUstream_st *s;

  if (r != CUDA_SUCCESS)
    return r;
  if (flags & ~CU_STREAM_NON_BLOCKING)
    return fake_leave (CUDA_ERROR_INVALID_VALUE);
  s = new_stream (c, flags & CU_STREAM_NON_BLOCKING);
  if (s == NULL)
    return fake_leave (CUDA_ERROR_OUT_OF_MEMORY);
  s->next = c->streams;
  c->streams = s;
  *stream = s;
  return fake_leave (CUDA_SUCCESS);
}

/* In any context of this process: NULL if there is no such stream. */
static struct CUstream_st *
find_anywhere (struct CUctx_st *c, CUstream stream)
{
  struct CUstream_st *s = NULL;

  if (stream == NULL)
    return stream_find (c, NULL);
  for (int i = 0; s == NULL && i < fake.nr_devices; i++)
    s = stream_find (&fake.device[i].ctx, stream);
  return s;
}

/* Even after an error, which is then what it returns. */
CUresult
cuStreamDestroy_v2 (CUstream stream)
{
  struct CUctx_st *c = fake_current ();
  CUresult r = fake_enter ("cuStreamDestroy_v2", NEED_INIT, &c);
  struct CUstream_st *s;

  if (r != CUDA_SUCCESS)
    return r;
  if (c == NULL)
    return fake_leave (CUDA_ERROR_INVALID_CONTEXT);
  s = stream ? find_anywhere (c, stream) : NULL;
  if (s == NULL)
    return fake_leave (CUDA_ERROR_INVALID_HANDLE);
  s->destroyed = true;
  stop_stream (s);
  return fake_leave (s->ctx->error);
}

CUresult
cuStreamSynchronize (CUstream stream)
{
  struct CUctx_st *c;
  CUresult r = fake_enter ("cuStreamSynchronize", NEED_CONTEXT, &c);
  struct CUstream_st *s;

  if (r != CUDA_SUCCESS)
    return r;
  s = find_anywhere (c, stream);
  if (s == NULL)
    return fake_leave (CUDA_ERROR_INVALID_HANDLE);
  stream_wait_seq (s, s->queued);
  return fake_leave (s->ctx->error);
}

CUresult
cuCtxSynchronize (void)
{
  struct CUctx_st *c;
  CUresult r = fake_enter ("cuCtxSynchronize", NEED_CONTEXT, &c);

  if (r != CUDA_SUCCESS)
    return r;
  stream_wait_all (c);
  return fake_leave (c->error);
}
