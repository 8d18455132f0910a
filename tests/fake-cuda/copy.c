/* gpuraid: tests: a fake CUDA driver: copies.
 *
 * They expect device memory at a device address, and anything else at a host
 * address.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>
#include <string.h>

#include "tests/fake-cuda/fake.h"

static bool
is_device_range (CUdeviceptr p, size_t len, struct CUctx_st *c)
{
  struct memory *m = memory_find ((void *) p, len);

  return m ? memory_is_mapped (m, c) : module_owns (c, (void *) p, len);
}

/* An address of the host, and not one that only kernels may use. */
static bool
is_host_range (const void *p)
{
  struct memory *m = memory_find (p, 1);

  return m == NULL || m->device == m->host;
}

static bool
is_pageable (struct CUctx_st *c, const void *p, size_t len)
{
  return memory_find (p, len) == NULL && memory_find_host (p, len) == NULL &&
    !module_owns (c, p, len);
}

/* Not pinned memory, by either address. */
static bool
is_on_device (const void *p)
{
  struct memory *m = memory_find (p, 1);

  return m && m->kind == DEVICE;
}

/* *wait: whether it must be over before the caller returns. */
static CUresult
add_copy (struct CUctx_st *c, struct CUstream_st *s, void *dst,
          const void *src, size_t len, bool *wait)
{
  struct stream_op *op = calloc (1, sizeof *op);

  if (op == NULL)
    return CUDA_ERROR_OUT_OF_MEMORY;
  op->kind = OP_COPY;
  op->dst = dst;
  op->src = src;
  op->len = len;
  op->back = is_on_device (src) && !is_on_device (dst);
  if (!*wait && is_pageable (c, src, len)) {
    /* The driver takes what is not pinned before it returns. */
    op->src = NULL;
    op->staged = malloc (len);
    if (op->staged == NULL) {
      free (op);
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memcpy (op->staged, src, len);
    fake.counters.pageable_copies++;
  }
  if (!*wait && is_pageable (c, dst, len)) {
    *wait = true;
    fake.counters.pageable_copies++;
  }
  fake.counters.copies++;
  fake.counters.copied_len += len;
  stream_add (s, op);
  return CUDA_SUCCESS;
}

static CUresult
copy (const char *symbol, CUdeviceptr to, void *dst, CUdeviceptr from,
      const void *src, size_t len, CUstream stream, bool wait)
{
  struct CUctx_st *c;
  CUresult r = fake_enter (symbol, NEED_CONTEXT, &c);
  struct CUstream_st *s;

  if (r != CUDA_SUCCESS)
    return r;
  s = stream_find (c, stream);
  if (s == NULL)
    return fake_leave (CUDA_ERROR_INVALID_HANDLE);
  if (len == 0)
    return fake_leave (CUDA_SUCCESS);
  if (dst ? !is_host_range (dst) : !is_device_range (to, len, c))
    return fake_leave (CUDA_ERROR_INVALID_VALUE);
  if (src ? !is_host_range (src) : !is_device_range (from, len, c))
    return fake_leave (CUDA_ERROR_INVALID_VALUE);
  r = add_copy (c, s, dst ? dst : (void *) to,
                src ? src : (const void *) from, len, &wait);
  if (r == CUDA_SUCCESS && wait) {
    stream_wait_seq (s, s->queued);
    r = c->error;
  }
  return fake_leave (r);
}

CUresult
cuMemcpyHtoD_v2 (CUdeviceptr to, const void *src, size_t len)
{
  return copy ("cuMemcpyHtoD_v2", to, NULL, 0, src, len, NULL, true);
}

CUresult
cuMemcpyDtoH_v2 (void *dst, CUdeviceptr from, size_t len)
{
  return copy ("cuMemcpyDtoH_v2", 0, dst, from, NULL, len, NULL, true);
}

CUresult
cuMemcpyHtoDAsync_v2 (CUdeviceptr to, const void *src, size_t len,
                      CUstream stream)
{
  return copy ("cuMemcpyHtoDAsync_v2", to, NULL, 0, src, len, stream, false);
}

CUresult
cuMemcpyDtoHAsync_v2 (void *dst, CUdeviceptr from, size_t len,
                      CUstream stream)
{
  return copy ("cuMemcpyDtoHAsync_v2", 0, dst, from, NULL, len, stream,
               false);
}

CUresult
cuMemcpyDtoDAsync_v2 (CUdeviceptr to, CUdeviceptr from, size_t len,
                      CUstream stream)
{
  return copy ("cuMemcpyDtoDAsync_v2", to, NULL, from, NULL, len, stream,
               false);
}

CUresult
cuMemsetD8Async (CUdeviceptr to, unsigned char byte, size_t len,
                 CUstream stream)
{
  struct CUctx_st *c;
  CUresult r = fake_enter ("cuMemsetD8Async", NEED_CONTEXT, &c);
  struct CUstream_st *s;
  struct stream_op *op;

  if (r != CUDA_SUCCESS)
    return r;
  s = stream_find (c, stream);
  if (s == NULL)
    return fake_leave (CUDA_ERROR_INVALID_HANDLE);
  if (!is_device_range (to, len, c))
    return fake_leave (CUDA_ERROR_INVALID_VALUE);
  op = calloc (1, sizeof *op);
  if (op == NULL)
    return fake_leave (CUDA_ERROR_OUT_OF_MEMORY);
  op->kind = OP_SET;
  op->dst = (char *) to;
  op->byte = byte;
  op->len = len;
  stream_add (s, op);
  return fake_leave (CUDA_SUCCESS);
}

/* Drivers before CUDA 13 have no copies in batches. */
#ifndef FAKE_CUDA_OLD

static bool
are_good_attributes (const CUmemcpyAttributes *a, const size_t *first,
                     size_t nr_attributes, size_t nr)
{
  if (nr == 0 || nr_attributes == 0 || nr_attributes > nr || first[0] != 0)
    return false;
  for (size_t i = 0; i < nr_attributes; i++)
    if (a[i].srcAccessOrder < 1 || a[i].srcAccessOrder > 3 ||
        (i > 0 && first[i] <= first[i - 1]) || first[i] >= nr)
      return false;
  return true;
}

/* Either side may be host memory here.  No order is promised, so the last one
 * goes first.
 */
CUresult
cuMemcpyBatchAsync_v2 (CUdeviceptr *dst, CUdeviceptr *src, size_t *len,
                       size_t nr, CUmemcpyAttributes *attributes,
                       size_t *first, size_t nr_attributes, CUstream stream)
{
  struct CUctx_st *c;
  CUresult r = fake_enter ("cuMemcpyBatchAsync_v2", NEED_CONTEXT, &c);
  struct CUstream_st *s;
  bool wait = false;

  if (r != CUDA_SUCCESS)
    return r;
  s = stream ? stream_find (c, stream) : NULL;
  if (s == NULL)
    return fake_leave (CUDA_ERROR_INVALID_HANDLE);
  if (!are_good_attributes (attributes, first, nr_attributes, nr))
    return fake_leave (CUDA_ERROR_INVALID_VALUE);
  for (size_t i = 0; i < nr; i++)
    if (len[i] == 0 ||
        (!is_host_range ((void *) dst[i]) &&
         !is_device_range (dst[i], len[i], c)) ||
        (!is_host_range ((void *) src[i]) &&
         !is_device_range (src[i], len[i], c)))
      return fake_leave (CUDA_ERROR_INVALID_VALUE);
  fake.device[c->device].nr_batches++;
  for (size_t i = nr; r == CUDA_SUCCESS && i-- > 0; )
    r = add_copy (c, s, (void *) dst[i], (void *) src[i], len[i], &wait);
  if (r == CUDA_SUCCESS && wait) {
    stream_wait_seq (s, s->queued);
    r = c->error;
  }
  return fake_leave (r);
}

#endif
