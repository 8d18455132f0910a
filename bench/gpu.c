/* gpuraid: open a device, and time what runs on it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/gpu.h"
#include "common/bits.h"
#include "common/cleanup.h"
#include "gpu/compiler/compiler.h"
#include "measure/coders.h"

#define MAX_GPUS 16

static struct bench_gpu gpus[MAX_GPUS];         /* d is NULL: not open */
static unsigned chosen;

int
bench_gpu_check (struct bench_gpu *gpu, CUresult r, const char *call,
                 char *why)
{
  char buf[DRIVER_ERROR_LEN];

  if (r == CUDA_SUCCESS)
    return 0;
  snprintf (why, BENCH_WHY_LEN, "%.*s: %s", (int) strcspn (call, " ("), call,
            driver_error (gpu->d, r, buf));
  return -1;
}

static int
get_attributes (struct bench_gpu *gpu, char *why)
{
  int major, minor, sms, khz, bus;

#define GET(name, value)                                                \
  CU (gpu, why, device_get_attribute (&(value), CU_DEVICE_ATTRIBUTE_##name, \
                                      gpu->device))
  if (CU (gpu, why, device_get_name (gpu->name, sizeof gpu->name,
                                     gpu->device)) == -1 ||
      GET (COMPUTE_CAPABILITY_MAJOR, major) == -1 ||
      GET (COMPUTE_CAPABILITY_MINOR, minor) == -1 ||
      GET (MULTIPROCESSOR_COUNT, sms) == -1 ||
      GET (PCI_BUS_ID, bus) == -1 ||
      GET (CLOCK_RATE, khz) == -1)
    return -1;
#undef GET
  gpu->bus = bus;
  gpu->arch = 10 * major + minor;
  gpu->nr_sms = sms;
  gpu->core_hz = khz * 1e3;
  return 0;
}

static int
open_device (struct bench_gpu *gpu, char *why)
{
  if (CU (gpu, why, device_get (&gpu->device, gpu->nr)) == -1 ||
      get_attributes (gpu, why) == -1 ||
      CU (gpu, why, primary_ctx_retain (&gpu->context, gpu->device)) == -1 ||
      CU (gpu, why, ctx_set_current (gpu->context)) == -1 ||
      CU (gpu, why, stream_create (&gpu->stream, CU_STREAM_NON_BLOCKING,
                                   0)) == -1 ||
      CU (gpu, why, event_create (&gpu->start, CU_EVENT_DEFAULT)) == -1 ||
      CU (gpu, why, event_create (&gpu->stop, CU_EVENT_DEFAULT)) == -1)
    return -1;
  return 0;
}

int
bench_gpu_use (struct bench_gpu *gpu, char *why)
{
  return CU (gpu, why, ctx_set_current (gpu->context));
}

struct bench_gpu *
bench_gpu_open (unsigned nr, char *why)
{
  unsigned count = MIN (method_nr_devices (why), MAX_GPUS);
  struct bench_gpu *gpu = &gpus[nr < MAX_GPUS ? nr : 0];

  if (count == 0)
    return NULL;
  if (nr >= count) {
    snprintf (why, BENCH_WHY_LEN, "no CUDA device %u: there are %u", nr,
              count);
    return NULL;
  }
  if (gpu->d == NULL) {
    struct bench_gpu g = { .d = driver_get (why, BENCH_WHY_LEN), .nr = nr };

    if (g.d == NULL || open_device (&g, why) == -1)
      return NULL;
    *gpu = g;
  }
  return bench_gpu_use (gpu, why) == 0 ? gpu : NULL;
}

void
bench_gpu_choose (unsigned nr)
{
  chosen = nr;
}

struct bench_gpu *
bench_gpu_get (char *why)
{
  return bench_gpu_open (chosen, why);
}

int
bench_gpu_compile (struct bench_gpu *gpu, const char *source,
                   const char *const *options, CUmodule *module, char *why)
{
  CLEANUP_FREE void *code = NULL;
  size_t len;

  if (compiler_version (why, BENCH_WHY_LEN) == NULL)
    return -1;
  if (compiler_run (source, gpu->arch, options, &code, &len) == -1) {
    code = NULL;
    snprintf (why, BENCH_WHY_LEN, "a kernel could not be compiled");
    return -1;
  }
  return CU (gpu, why, module_load_data (module, code));
}

int
bench_gpu_function (struct bench_gpu *gpu, CUmodule module, const char *name,
                    CUfunction *function, char *why)
{
  return CU (gpu, why, module_get_function (function, module, name));
}

int
bench_gpu_set (struct bench_gpu *gpu, CUmodule module, const char *name,
               const void *src, size_t len, char *why)
{
  CUdeviceptr p;
  size_t size;

  if (CU (gpu, why, module_get_global (&p, &size, module, name)) == -1)
    return -1;
  if (len > size) {
    snprintf (why, BENCH_WHY_LEN, "%s has %zu bytes, not %zu", name, size,
              len);
    return -1;
  }
  return CU (gpu, why, memcpy_htod (p, src, len));
}

/* Pinning takes long, so a freed buffer is kept for the next case. */
static struct pinned {
  void *p;
  size_t len;
  bool used;
} pinned[32];

static void
free_unused (struct bench_gpu *gpu)
{
  for (size_t i = 0; i < ARRAY_LEN (pinned); i++) {
    if (pinned[i].p && !pinned[i].used) {
      gpu->d->mem_free_host (pinned[i].p);
      pinned[i].p = NULL;
    }
  }
}

/* A place for a new buffer; NULL: all are taken. */
static struct pinned *
find_place (struct bench_gpu *gpu)
{
  for (unsigned try = 0; try < 2; try++) {
    for (size_t i = 0; i < ARRAY_LEN (pinned); i++)
      if (pinned[i].p == NULL)
        return &pinned[i];
    free_unused (gpu);
  }
  return NULL;
}

/* The smallest buffer that is big enough and not much bigger. */
static struct pinned *
find_kept (size_t len)
{
  struct pinned *best = NULL;

  for (size_t i = 0; i < ARRAY_LEN (pinned); i++)
    if (pinned[i].p && !pinned[i].used && pinned[i].len >= len &&
        pinned[i].len / 4 <= len && (!best || pinned[i].len < best->len))
      best = &pinned[i];
  return best;
}

void *
bench_gpu_host_alloc (struct bench_gpu *gpu, size_t len, char *why)
{
  const unsigned flags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
  struct pinned *m = find_kept (len);

  if (m == NULL) {
    m = find_place (gpu);
    if (m == NULL) {
      snprintf (why, BENCH_WHY_LEN, "too many pinned buffers");
      return NULL;
    }
    if (gpu->d->mem_host_alloc (&m->p, len, flags) != CUDA_SUCCESS) {
      free_unused (gpu);
      if (CU (gpu, why, mem_host_alloc (&m->p, len, flags)) == -1) {
        m->p = NULL;
        return NULL;
      }
    }
    m->len = len;
  }
  m->used = true;
  return m->p;
}

void
bench_gpu_host_free (void *p)
{
  for (size_t i = 0; p && i < ARRAY_LEN (pinned); i++)
    if (pinned[i].p == p)
      pinned[i].used = false;
}

CUdeviceptr
bench_gpu_alloc (struct bench_gpu *gpu, size_t len, char *why)
{
  CUdeviceptr p;

  return CU (gpu, why, mem_alloc (&p, len)) == 0 ? p : 0;
}

void
bench_gpu_free (struct bench_gpu *gpu, CUdeviceptr p)
{
  if (p)
    gpu->d->mem_free (p);
}

int
bench_gpu_time (struct bench_gpu *gpu,
                int (*launch) (void *opaque, char *why), void *opaque,
                unsigned nr, double *seconds, char *why)
{
  float ms;

  if (CU (gpu, why, event_record (gpu->start, gpu->stream)) == -1)
    return -1;
  for (unsigned n = 0; n < nr; n++)
    if (launch (opaque, why) == -1)
      return -1;
  if (CU (gpu, why, event_record (gpu->stop, gpu->stream)) == -1 ||
      CU (gpu, why, event_synchronize (gpu->stop)) == -1 ||
      CU (gpu, why, event_elapsed_time (&ms, gpu->start, gpu->stop)) == -1)
    return -1;
  *seconds = ms / 1e3;
  return 0;
}
