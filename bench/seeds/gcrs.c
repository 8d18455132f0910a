/* gpuraid: G-CRS on the host.
 *
 * The steps of its kernel and what each of them lacks, how many outputs a
 * launch makes, the packing of the bit matrix, and the pipeline.  The kernel is
 * gcrs.cu.
 *
 * A word of constant memory holds the bits of q = floor(32/w) outputs.  The
 * paper does not say what happens for m > q: "gcrs" launches once per q
 * outputs, "4-launch" once per 4, as its authors' program, "one-pass" once with
 * more words.
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

extern const char source_gcrs[];

#define THREADS 128             /* of a block, in x: as in gcrs.cu */
#define PACKET_LEN 8
#define SLICES 10
#define MAX_CONSTANT 65536      /* bytes of constant memory */
#define MAX_GRID_Y 65535

enum {
  BITMATRIX = 1, EFFICIENT = 2, BANDWIDTH = 4, BRANCHLESS = 8, UNROLL = 16,
  NO_LOADS = 32,
  ALL = BITMATRIX | EFFICIENT | BANDWIDTH | BRANCHLESS | UNROLL,
};
static const char *const defines[] = {
  "-DBITMATRIX", "-DEFFICIENT", "-DBANDWIDTH", "-DBRANCHLESS", "-DUNROLL",
  "-DNO_LOADS",
};

static const struct variant {
  const char *name;
  unsigned steps;
  unsigned max;                 /* outputs of a launch, at most */
  bool any;                     /* not limited to those of a word */
} variants[] = {
  { "gcrs", ALL, 32 },
  { "4-launch", ALL, 4 },
  { "one-pass", ALL, ~0U, true },
  { "base", 0, 8, true },       /* 8 rows of 128 threads fill a block */
  { "bitmatrix", BITMATRIX, 8 },
  { "efficient", BITMATRIX | EFFICIENT, 8 },
  { "bandwidth", BITMATRIX | EFFICIENT | BANDWIDTH, 32 },
  { "no-bitmatrix", ALL & ~BITMATRIX, 32 },
  { "no-efficient", ALL & ~EFFICIENT, 32 },
  { "no-bandwidth", ALL & ~BANDWIDTH, 8 },
  { "no-branchless", ALL & ~BRANCHLESS, 32 },
  { "no-loads", ALL | NO_LOADS, 32 },
};

/* The launches, from output dest on, that one kernel serves. */
struct group {
  CUmodule module;
  CUfunction function;
  unsigned dest, nr, each;      /* launches, and outputs of each */
  unsigned column;              /* ints of a column of the packed matrix */
};

struct gcrs {
  struct cells_method base;     /* first */
  struct bench_gpu *gpu;
  const struct variant *v;
  unsigned k, m, w, slices;
  struct group groups[2];       /* full launches, and what is left */
  CUdeviceptr bm;               /* ints, where they are not packed */
};

static const struct variant *
find_variant (const char *option)
{
  for (size_t i = 0; i < ARRAY_LEN (variants); i++)
    if (option == NULL || strcmp (variants[i].name, option) == 0)
      return &variants[i];
  return NULL;
}

static unsigned
outputs_of_a_launch (const struct gcrs *g)
{
  unsigned q = 32 / g->w;
  unsigned each = g->v->any ? g->v->max : MIN (g->v->max, q);

  return MIN (each, g->m);
}

/* The packed matrix of a group, launch by launch; nr is the ints of all. */
static uint32_t *
pack (const struct gcrs *g, const struct group *group,
      const struct bit_matrix *bits, char *why)
{
  unsigned w = g->w, q = 32 / w, width = g->k * w;
  size_t launch_len = (size_t) width * group->column;
  uint32_t *packed = calloc (group->nr * launch_len, sizeof *packed);

  if (packed == NULL) {
    snprintf (why, BENCH_WHY_LEN, "calloc: %s", strerror (errno));
    return NULL;
  }
  for (unsigned o = 0; o < group->nr * group->each; o++) {
    unsigned p = o % group->each;
    uint32_t *launch = packed + o / group->each * launch_len;

    for (unsigned l = 0; l < w; l++)
      for (unsigned c = 0; c < width; c++)
        launch[c * group->column + p / q] |=
          (uint32_t) bit_matrix_get (bits, (group->dest + o) * w + l, c)
          << (p % q * w + l);
  }
  return packed;
}

static int
compile (struct gcrs *g, struct group *group, size_t nr_ints, char *why)
{
  char w[16], m[16], ints[32];
  const char *options[4 + ARRAY_LEN (defines)];
  unsigned nr = 0;

  snprintf (w, sizeof w, "-DW=%u", g->w);
  snprintf (m, sizeof m, "-DM=%u", group->each);
  snprintf (ints, sizeof ints, "-DNR_INTS=%zu", nr_ints);
  options[nr++] = w;
  options[nr++] = m;
  options[nr++] = ints;
  for (unsigned i = 0; i < ARRAY_LEN (defines); i++)
    if (g->v->steps & 1U << i)
      options[nr++] = defines[i];
  options[nr] = NULL;
  if (bench_gpu_compile (g->gpu, source_gcrs, options, &group->module,
                         why) == -1)
    return -1;
  return bench_gpu_function (g->gpu, group->module, "gcrs", &group->function,
                             why);
}

static int
open_group (struct gcrs *g, struct group *group,
            const struct bit_matrix *bits, char *why)
{
  CLEANUP_FREE uint32_t *packed = NULL;
  size_t nr_ints;

  if (group->nr == 0)
    return 0;
  group->column = div_round_up (group->each, 32 / g->w);
  nr_ints = (size_t) group->nr * g->k * g->w * group->column;
  if (!(g->v->steps & BITMATRIX))
    return compile (g, group, 1, why);
  if (nr_ints * 4 > MAX_CONSTANT) {
    snprintf (why, BENCH_WHY_LEN,
              "the bit matrix takes %zu bytes of constant memory, of which "
              "there are %u", nr_ints * 4, MAX_CONSTANT);
    return -1;
  }
  packed = pack (g, group, bits, why);
  if (packed == NULL || compile (g, group, nr_ints, why) == -1)
    return -1;
  return bench_gpu_set (g->gpu, group->module, "bitmatrix", packed,
                        nr_ints * 4, why);
}

/* The bit matrix as ints in global memory. */
static int
load_ints (struct gcrs *g, const struct bit_matrix *bits, char *why)
{
  size_t nr = (size_t) g->m * g->w * g->k * g->w;
  CLEANUP_FREE int *ints = NULL;

  if (g->v->steps & BITMATRIX)
    return 0;
  ints = cauchy_ints (bits, why);
  if (ints == NULL)
    return -1;
  g->bm = bench_gpu_alloc (g->gpu, nr * sizeof *ints, why);
  if (g->bm == 0)
    return -1;
  return CU (g->gpu, why, memcpy_htod (g->bm, ints, nr * sizeof *ints));
}

static void
gcrs_close (struct method *e)
{
  struct gcrs *g = (struct gcrs *) e;

  if (g == NULL)
    return;
  for (unsigned i = 0; i < ARRAY_LEN (g->groups); i++)
    if (g->groups[i].module)
      g->gpu->d->module_unload (g->groups[i].module);
  if (g->gpu)
    bench_gpu_free (g->gpu, g->bm);
  bench_cells_close (&g->base.cells);
  free (g);
}

static int
open_all (struct gcrs *g, const struct bench_case *bc, char *why)
{
  CLEANUP_FREE struct bit_matrix *bits = cauchy_bits (bc->matrix, why);
  unsigned each = outputs_of_a_launch (g);

  if (bits == NULL)
    return -1;
  g->groups[0] = (struct group) { .nr = g->m / each, .each = each };
  g->groups[1] = (struct group) {
    .dest = g->m / each * each, .nr = g->m % each != 0, .each = g->m % each
  };
  g->gpu = bench_gpu_get (why);
  if (g->gpu == NULL || load_ints (g, bits, why) == -1 ||
      open_group (g, &g->groups[0], bits, why) == -1 ||
      open_group (g, &g->groups[1], bits, why) == -1)
    return -1;
  return bench_cells_open (&g->base.cells, g->gpu, bc, why);
}

static struct method *
gcrs_open (const struct bench_case *bc, char *why)
{
  const struct variant *v = find_variant (bc->option);
  struct gcrs *g;

  if (v == NULL) {
    snprintf (why, BENCH_WHY_LEN, "no option %s", bc->option);
    return NULL;
  }
  if (cauchy_check (bc, PACKET_LEN, why) == -1)
    return NULL;
  g = calloc (1, sizeof *g);
  if (g == NULL) {
    snprintf (why, BENCH_WHY_LEN, "calloc: %s", strerror (errno));
    return NULL;
  }
  *g = (struct gcrs) {
    .base.method.ops = &method_gcrs, .v = v,
    .k = bc->matrix->cols, .m = bc->matrix->rows, .w = bc->matrix->w,
    .slices = bc->slices ? bc->slices : SLICES,
  };
  if (open_all (g, bc, why) == -1) {
    gcrs_close (&g->base.method);
    return NULL;
  }
  return &g->base.method;
}

/* All launches of a group, for bytes off to off+len of nr_rects rects. */
static int
launch_group (struct gcrs *g, const struct group *group, size_t r,
              size_t nr_rects, size_t off, size_t len, CUstream stream,
              char *why)
{
  CUdeviceptr in = g->base.cells.in + r * g->k * g->base.cells.cell_len + off;
  CUdeviceptr out = g->base.cells.out + r * g->m * g->base.cells.cell_len + off;
  long long size = g->base.cells.cell_len / 8, n = len / 8;
  int k = g->k, m = g->m, w = g->w, first, dest;
  void *params[] = { &in, &out, &g->bm, &size, &n, &k, &m, &w, &first, &dest };
  unsigned width = THREADS / w * w;
  unsigned rows = g->v->steps & BANDWIDTH ? 1 : group->each;

  for (unsigned i = 0; i < group->nr; i++) {
    dest = group->dest + i * group->each;
    first = g->v->steps & BITMATRIX ? (int) i * k * w * (int) group->column
      : dest;
    if (CU (g->gpu, why,
            launch_kernel (group->function, div_round_up (n, width), nr_rects,
                           1, THREADS, rows, 1, 0, stream, params,
                           NULL)) == -1)
      return -1;
  }
  return 0;
}

static int
launch_slice (void *opaque, size_t r, size_t off, size_t len, CUstream stream,
              char *why)
{
  struct gcrs *g = opaque;

  if (launch_group (g, &g->groups[0], r, 1, off, len, stream, why) == -1)
    return -1;
  return launch_group (g, &g->groups[1], r, 1, off, len, stream, why);
}

static int
launch_rects (void *opaque, char *why)
{
  struct gcrs *g = opaque;
  size_t len = g->base.cells.cell_len;

  for (size_t r = 0; r < g->base.cells.nr_rects; r += MAX_GRID_Y) {
    size_t nr = MIN (g->base.cells.nr_rects - r, MAX_GRID_Y);

    for (unsigned i = 0; i < ARRAY_LEN (g->groups); i++)
      if (launch_group (g, &g->groups[i], r, nr, 0, len, g->gpu->stream,
                        why) == -1)
        return -1;
  }
  return 0;
}

static size_t
gcrs_packet_len (unsigned w, size_t cell_len, const char *option)
{
  return PACKET_LEN;
}

static int
gcrs_raw (struct method *e, unsigned nr, double *seconds, char *why)
{
  struct gcrs *g = (struct gcrs *) e;

  return bench_gpu_time (g->gpu, launch_rects, g, nr, seconds, why);
}

static int
gcrs_overall (struct method *e, unsigned nr, double *seconds, char *why)
{
  struct gcrs *g = (struct gcrs *) e;
  struct bench_pipeline p = {
    .nr_slices = g->slices, .unit = THREADS / g->w * g->w * 8,
    .nr_streams = MIN (g->slices, BENCH_MAX_STREAMS), .by_stage = true,
    .launch = launch_slice, .opaque = g,
  };

  return bench_cells_overall (&g->base.cells, &p, true, nr, seconds, why);
}

static bool
gcrs_takes (const char *word, char *why)
{
  why[0] = '\0';
  return strcmp (word, "no-loads") == 0;
}

const struct method_ops method_gcrs = {
  .name = "gcrs",
  .what = "G-CRS: Cauchy Reed-Solomon, bit matrix in constant memory",
  .options = "gcrs 4-launch one-pass base bitmatrix efficient bandwidth "
    "no-bitmatrix no-efficient no-bandwidth no-branchless",
  .others = "no-loads, for --model: its bytes are wrong",
  .takes = gcrs_takes,
  .gpu = true,
  .parity = cauchy_low,
  .packet_len = gcrs_packet_len,
  .open = gcrs_open,
  .close = gcrs_close,
  .in = cells_method_in,
  .out = cells_method_out,
  .spoil = cells_method_spoil,
  .load = cells_method_load,
  .raw = gcrs_raw,
  .fetch = cells_method_fetch,
  .overall = gcrs_overall,
};
