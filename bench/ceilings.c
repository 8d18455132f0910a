/* gpuraid: measure how long copies take.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/ceilings.h"
#include "bench/gpu.h"
#include "common/bits.h"
#include "common/cleanup.h"
#include "measure/clock.h"
#include "measure/coders.h"

/* How many times; the best counts, because a ceiling is what can be reached. */
#define NR_TRIES 5
#define MAX_DEVICES 16

/* ---- on the device */

static const char copy_source[] =
  "extern \"C\" __global__ void\n"
  "copy (uint4 *dst, const uint4 *src, unsigned long long nr)\n"
  "{\n"
  "  unsigned long long i = (unsigned long long) blockIdx.x * blockDim.x\n"
  "    + threadIdx.x;\n"
  "\n"
  "  if (i < nr)\n"
  "    dst[i] = src[i];\n"
  "}\n";

struct copy {
  struct bench_gpu *gpu;
  CUdeviceptr src, dst;
  size_t len;
  CUfunction function;          /* NULL: the driver's copy */
};

static int
launch_copy (void *opaque, char *why)
{
  struct copy *c = opaque;
  uint64_t nr = c->len / 16;
  void *args[] = { &c->dst, &c->src, &nr };

  if (c->function == NULL)
    return CU (c->gpu, why, memcpy_dtod_async (c->dst, c->src, c->len,
                                               c->gpu->stream));
  return CU (c->gpu, why, launch_kernel (c->function, div_round_up (nr, 256),
                                         1, 1, 256, 1, 1, 0, c->gpu->stream,
                                         args, NULL));
}

static int
best_copy (struct copy *c, double *best, char *why)
{
  double seconds;

  for (unsigned n = 0; n < NR_TRIES; n++) {
    if (bench_gpu_time (c->gpu, launch_copy, c, n == 0 ? 1 : 4, &seconds,
                        why) == -1)
      return -1;
    if (n > 0)
      *best = MAX (*best, 4 * 2.0 * c->len / MAX (seconds, 1e-9));
  }
  return 0;
}

/* The better of the driver's copy and a kernel's.  Without the compiler that
 * the kernel needs, the driver's.
 */
static int
measure_copy (struct bench_gpu *gpu, size_t buffer_len, double *best,
              char *why)
{
  struct copy c = { .gpu = gpu, .len = buffer_len };
  CUmodule module = NULL;
  char no_kernel[BENCH_WHY_LEN];
  int r = -1;

  c.src = bench_gpu_alloc (gpu, c.len, why);
  if (c.src)
    c.dst = bench_gpu_alloc (gpu, c.len, why);
  if (c.dst && best_copy (&c, best, why) == 0) {
    r = 0;
    if (bench_gpu_compile (gpu, copy_source, NULL, &module, no_kernel) == 0 &&
        (r = bench_gpu_function (gpu, module, "copy", &c.function, why)) == 0)
      r = best_copy (&c, best, why);
  }
  if (module)
    gpu->d->module_unload (module);
  bench_gpu_free (gpu, c.src);
  bench_gpu_free (gpu, c.dst);
  return r;
}

/* ---- between host and devices */

struct link {
  struct bench_gpu *gpu;
  uint8_t *host_in, *host_out;
  CUdeviceptr in, out;
  CUstream up, down;
};

static int
link_open (struct link *l, unsigned nr, size_t len, char *why)
{
  struct bench_gpu *gpu = l->gpu = bench_gpu_open (nr, why);

  if (gpu == NULL || (l->in = bench_gpu_alloc (gpu, len, why)) == 0 ||
      (l->out = bench_gpu_alloc (gpu, len, why)) == 0 ||
      (l->host_in = bench_gpu_host_alloc (gpu, len, why)) == NULL ||
      (l->host_out = bench_gpu_host_alloc (gpu, len, why)) == NULL ||
      CU (gpu, why, stream_create (&l->up, CU_STREAM_NON_BLOCKING, 0)) == -1)
    return -1;
  return CU (gpu, why, stream_create (&l->down, CU_STREAM_NON_BLOCKING, 0));
}

static void
link_close (struct link *l)
{
  char why[BENCH_WHY_LEN];

  if (l->gpu == NULL || bench_gpu_use (l->gpu, why) == -1)
    return;
  bench_gpu_free (l->gpu, l->in);
  bench_gpu_free (l->gpu, l->out);
  bench_gpu_host_free (l->host_in);
  bench_gpu_host_free (l->host_out);
  if (l->up)
    l->gpu->d->stream_destroy (l->up);
  if (l->down)
    l->gpu->d->stream_destroy (l->down);
}

static int
run_links (struct link *link, unsigned nr, bool up, bool down, size_t len,
           double *best, char *why)
{
  for (unsigned try = 0; try < NR_TRIES; try++) {
    double start = now ();

    for (unsigned n = 0; n < nr; n++) {
      struct link *l = &link[n];

      if (bench_gpu_use (l->gpu, why) == -1 ||
          (up && CU (l->gpu, why, memcpy_htod_async (l->in, l->host_in, len,
                                                     l->up)) == -1) ||
          (down && CU (l->gpu, why, memcpy_dtoh_async (l->host_out, l->out,
                                                       len, l->down)) == -1))
        return -1;
    }
    for (unsigned n = 0; n < nr; n++)
      if (bench_gpu_use (link[n].gpu, why) == -1 ||
          CU (link[n].gpu, why, stream_synchronize (link[n].up)) == -1 ||
          CU (link[n].gpu, why, stream_synchronize (link[n].down)) == -1)
        return -1;
    *best = MAX (*best, (double) nr * (up + down) * len /
                 MAX (now () - start, 1e-9));
  }
  return 0;
}

static int
measure_links (size_t buffer_len, uint64_t devices, struct ceilings *c,
               char *why)
{
  struct link link[MAX_DEVICES] = { { 0 } };
  unsigned nr = 0, count = method_nr_devices (why);
  size_t len = buffer_len / 2;
  int r = 0;

  for (unsigned n = 0; r == 0 && n < MIN (count, MAX_DEVICES); n++)
    if (devices & BIT (n))
      r = link_open (&link[nr++], n, len, why);
  if (r == 0 && run_links (link, nr, true, false, len, &c->h2d, why) == 0 &&
      run_links (link, nr, false, true, len, &c->d2h, why) == 0)
    r = run_links (link, nr, true, true, len, &c->both, why);
  else
    r = -1;
  for (unsigned n = 0; n < nr; n++)
    link_close (&link[n]);
  return r;
}

int
ceilings_gpu (size_t len, uint64_t devices, struct ceilings *c, char *why)
{
  struct bench_gpu *gpu;

  len = MAX (round_down (len, 64), 64);
  if (measure_links (len, devices, c, why) == -1 ||
      (gpu = bench_gpu_get (why)) == NULL)
    return -1;
  return measure_copy (gpu, len, &c->copy, why);
}

/* ---- in memory */

struct copier {
  pthread_t thread;
  pthread_mutex_t *gate;        /* shut until the barrier exists */
  pthread_barrier_t *barrier;
  uint8_t *src, *dst;
  size_t len;
};

static void *
copier_main (void *opaque)
{
  struct copier *c = opaque;

  pthread_mutex_lock (c->gate);
  pthread_mutex_unlock (c->gate);
  for (unsigned n = 0; n < NR_TRIES; n++) {
    pthread_barrier_wait (c->barrier);
    memcpy (c->dst, c->src, c->len);
    pthread_barrier_wait (c->barrier);
  }
  return NULL;
}

/* The main thread only measures the time.  Only threads that could be made
 * count.
 */
static double
run_copiers (struct copier *c, unsigned nr)
{
  pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
  pthread_barrier_t barrier;
  double best = 0, start;
  unsigned made = 0;

  pthread_mutex_lock (&gate);
  for (; made < nr; made++) {
    c[made].gate = &gate;
    c[made].barrier = &barrier;
    if (pthread_create (&c[made].thread, NULL, copier_main, &c[made]) != 0)
      break;
  }
  pthread_barrier_init (&barrier, NULL, made + 1);
  pthread_mutex_unlock (&gate);
  for (unsigned n = 0; n < NR_TRIES; n++) {
    start = now ();
    pthread_barrier_wait (&barrier);
    pthread_barrier_wait (&barrier);
    best = MAX (best, 2.0 * made * c[0].len / MAX (now () - start, 1e-9));
  }
  for (unsigned n = 0; n < made; n++)
    pthread_join (c[n].thread, NULL);
  pthread_barrier_destroy (&barrier);
  pthread_mutex_destroy (&gate);
  return best;
}

double
ceilings_memcpy (size_t buffer_len, unsigned nr)
{
  CLEANUP_FREE struct copier *c = calloc (nr, sizeof *c);
  size_t part = MAX (round_down (buffer_len / nr, 64), 64), len = part * nr;
  uint8_t *p = mmap (NULL, 2 * len, PROT_READ|PROT_WRITE,
                     MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);
  double best;

  if (c == NULL || p == MAP_FAILED) {
    if (p != MAP_FAILED)
      munmap (p, 2 * len);
    return 0;
  }
  (void) madvise (p, 2 * len, MADV_HUGEPAGE);
  memset (p, 1, 2 * len);
  for (unsigned n = 0; n < nr; n++) {
    c[n].src = p + n * part;
    c[n].dst = p + len + n * part;
    c[n].len = part;
  }
  best = run_copiers (c, nr);
  munmap (p, 2 * len);
  return best;
}
