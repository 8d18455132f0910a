/* gpuraid: PErasure on the host: GMPE and SMPE.
 *
 * How a block is divided into threads, the two forms of the bit matrix, and the
 * pipeline.  The kernels are perasure.cu.  An option is numOfLong, the longs of
 * a packet, which the paper leaves open.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/gpu.h"
#include "bench/methods.h"
#include "bench/seeds/cauchy.h"
#include "common/bits.h"
#include "common/cleanup.h"

extern const char source_perasure[];

#define THREADS 256             /* of a block, where there is a choice */
#define SLICES 10
#define MAX_CONSTANT 65536      /* bytes of constant memory */
#define MAX_GRID_Y 65535
#define OPTIONS "32 16 128"

struct perasure {
  struct cells_method base;     /* first */
  struct bench_gpu *gpu;
  bool shared;                  /* SMPE */
  unsigned k, m, w, slices;
  unsigned longs;               /* of a packet */
  unsigned threads;             /* of a block */
  CUmodule module;
  CUfunction function;
  CUdeviceptr bm;               /* GMPE: the bit matrix */
};

/* numOfLong; 0: there is no such option. */
static unsigned
longs_of (const char *option)
{
  static const struct {
    const char *name;
    unsigned longs;
  } options[] = { { "32", 32 }, { "16", 16 }, { "128", 128 } };

  for (size_t i = 0; i < ARRAY_LEN (options); i++)
    if (option == NULL || strcmp (options[i].name, option) == 0)
      return options[i].longs;
  return 0;
}

static size_t
packet_len (unsigned w, size_t cell_len, const char *option)
{
  return longs_of (option) * 8;
}

/* SMPE's blocks are whole blocks of the code. */
static unsigned
threads_of (const struct perasure *g)
{
  unsigned unit = g->w * g->longs;

  return g->shared ? MAX (THREADS / unit, 1) * unit : THREADS;
}

static int
compile (struct perasure *g, size_t nr_bits, char *why)
{
  char w[16], longs[24], threads[24], masks[32];
  const char *options[5] = { w, longs };

  snprintf (w, sizeof w, "-DW=%u", g->w);
  snprintf (longs, sizeof longs, "-DLONGS=%u", g->longs);
  if (g->shared) {
    snprintf (threads, sizeof threads, "-DTHREADS=%u", g->threads);
    snprintf (masks, sizeof masks, "-DNR_MASKS=%zu", nr_bits);
    options[2] = threads;
    options[3] = masks;
  }
  if (bench_gpu_compile (g->gpu, source_perasure, options, &g->module,
                         why) == -1)
    return -1;
  return bench_gpu_function (g->gpu, g->module, g->shared ? "smpe" : "gmpe",
                             &g->function, why);
}

/* GMPE: an int a bit, in global memory. */
static int
load_ints (struct perasure *g, const struct bit_matrix *bits, size_t nr,
           char *why)
{
  CLEANUP_FREE int *ints = cauchy_ints (bits, why);

  if (ints == NULL)
    return -1;
  g->bm = bench_gpu_alloc (g->gpu, nr * sizeof *ints, why);
  if (g->bm == 0)
    return -1;
  return CU (g->gpu, why, memcpy_htod (g->bm, ints, nr * sizeof *ints));
}

/* SMPE: a byte a bit, 0 or -1, in constant memory. */
static int
load_masks (struct perasure *g, const struct bit_matrix *bits, size_t nr,
            char *why)
{
  CLEANUP_FREE int8_t *masks = malloc (nr);

  if (masks == NULL) {
    snprintf (why, BENCH_WHY_LEN, "malloc: %s", strerror (errno));
    return -1;
  }
  for (size_t i = 0; i < nr; i++)
    masks[i] = -bit_matrix_get (bits, i / bits->cols, i % bits->cols);
  return bench_gpu_set (g->gpu, g->module, "masks", masks, nr, why);
}

static int
open_all (struct perasure *g, const struct bench_case *bc, char *why)
{
  CLEANUP_FREE struct bit_matrix *bits = NULL;
  size_t nr = (size_t) g->m * g->w * g->k * g->w;

  if (g->shared && nr > MAX_CONSTANT) {
    snprintf (why, BENCH_WHY_LEN,
              "k*m of w %u is limited to %u: the masks take %zu bytes of "
              "constant memory, of which there are %u", g->w,
              MAX_CONSTANT / (g->w * g->w), nr, MAX_CONSTANT);
    return -1;
  }
  bits = cauchy_bits (bc->matrix, why);
  if (bits == NULL)
    return -1;
  g->gpu = bench_gpu_get (why);
  if (g->gpu == NULL || compile (g, nr, why) == -1)
    return -1;
  if ((g->shared ? load_masks : load_ints) (g, bits, nr, why) == -1)
    return -1;
  return bench_cells_open (&g->base.cells, g->gpu, bc, why);
}

static void
perasure_close (struct method *e)
{
  struct perasure *g = (struct perasure *) e;

  if (g == NULL)
    return;
  if (g->module)
    g->gpu->d->module_unload (g->module);
  if (g->gpu)
    bench_gpu_free (g->gpu, g->bm);
  bench_cells_close (&g->base.cells);
  free (g);
}

static struct method *
perasure_open (const struct bench_case *bc, const struct method_ops *ops,
               bool shared, char *why)
{
  unsigned longs = longs_of (bc->option);
  struct perasure *g;

  if (longs == 0) {
    snprintf (why, BENCH_WHY_LEN, "no option %s", bc->option);
    return NULL;
  }
  if (cauchy_check (bc, longs * 8, why) == -1)
    return NULL;
  g = calloc (1, sizeof *g);
  if (g == NULL) {
    snprintf (why, BENCH_WHY_LEN, "calloc: %s", strerror (errno));
    return NULL;
  }
  *g = (struct perasure) {
    .base.method.ops = ops, .shared = shared, .longs = longs,
    .k = bc->matrix->cols, .m = bc->matrix->rows, .w = bc->matrix->w,
    .slices = bc->slices ? bc->slices : SLICES,
  };
  g->threads = threads_of (g);
  if (open_all (g, bc, why) == -1) {
    perasure_close (&g->base.method);
    return NULL;
  }
  return &g->base.method;
}

/* One launch an output, for bytes off to off+len of nr_rects rects. */
static int
launch (struct perasure *g, size_t r, size_t nr_rects, size_t off, size_t len,
        CUstream stream, char *why)
{
  const struct bench_cells *c = &g->base.cells;
  CUdeviceptr data = c->in + r * g->k * c->cell_len + off;
  CUdeviceptr coding = c->out + r * g->m * c->cell_len + off;
  long long size = c->cell_len / 8, n = len / 8;
  int k = g->k, m = g->m, dest = 0;
  void *gmpe[] = { &data, &coding, &g->bm, &size, &n, &k, &m, &dest };
  void *smpe[] = { &data, &coding, &size, &n, &k, &m, &dest };
  long long nr_threads = g->shared ? n : n / g->w;

  for (; dest < m; dest++)
    if (CU (g->gpu, why,
            launch_kernel (g->function, div_round_up (nr_threads, g->threads),
                           nr_rects, 1, g->threads, 1, 1, 0, stream,
                           g->shared ? smpe : gmpe, NULL)) == -1)
      return -1;
  return 0;
}

static int
launch_slice (void *opaque, size_t r, size_t off, size_t len, CUstream stream,
              char *why)
{
  return launch (opaque, r, 1, off, len, stream, why);
}

static int
launch_rects (void *opaque, char *why)
{
  struct perasure *g = opaque;
  size_t nr_rects = g->base.cells.nr_rects;

  for (size_t r = 0; r < nr_rects; r += MAX_GRID_Y)
    if (launch (g, r, MIN (nr_rects - r, MAX_GRID_Y), 0, g->base.cells.cell_len,
                g->gpu->stream, why) == -1)
      return -1;
  return 0;
}

static int
perasure_raw (struct method *e, unsigned nr, double *seconds, char *why)
{
  struct perasure *g = (struct perasure *) e;

  return bench_gpu_time (g->gpu, launch_rects, g, nr, seconds, why);
}

static int
perasure_overall (struct method *e, unsigned nr, double *seconds, char *why)
{
  struct perasure *g = (struct perasure *) e;
  struct bench_pipeline p = {
    .nr_slices = g->slices, .unit = g->w * g->longs * 8,
    .nr_streams = MIN (g->slices, BENCH_MAX_STREAMS),
    .launch = launch_slice, .opaque = g,
  };

  return bench_cells_overall (&g->base.cells, &p, true, nr, seconds, why);
}

static struct method *gmpe_open (const struct bench_case *, char *why);
static struct method *smpe_open (const struct bench_case *, char *why);

#define PERASURE(kind, text)                                            \
  .name = kind, .what = text, .options = OPTIONS, .gpu = true,          \
  .parity = cauchy_good, .packet_len = packet_len,                      \
  .close = perasure_close,                                              \
  .in = cells_method_in, .out = cells_method_out,                       \
  .spoil = cells_method_spoil,                                          \
  .load = cells_method_load, .fetch = cells_method_fetch,               \
  .raw = perasure_raw, .overall = perasure_overall

const struct method_ops method_gmpe = {
  PERASURE ("gmpe", "PErasure: one launch an output, global memory"),
  .open = gmpe_open,
};
const struct method_ops method_smpe = {
  PERASURE ("smpe", "PErasure: one launch an output, shared memory"),
  .open = smpe_open,
};

static struct method *
gmpe_open (const struct bench_case *bc, char *why)
{
  return perasure_open (bc, &method_gmpe, false, why);
}

static struct method *
smpe_open (const struct bench_case *bc, char *why)
{
  return perasure_open (bc, &method_smpe, true, why);
}
