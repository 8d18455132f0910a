/* gpuraid: Gibraltar, as a method of the benchmark.
 *
 * Decides what Gibraltar's host side does: its code, its layout, one call
 * at a time, zero-copy.  The kernel is in gibraltar.cu.
 *
 * Code: RS over GF(2^8).  The Vandermonde matrix r^c of k + m rows (0^0 is
 * 1) is column-reduced, so that the first k rows become I; the others are
 * the parity rows.  Any k rows of the first are independent and stay so:
 * MDS for k + m <= 256.
 *
 * A call codes one region, byte i of buffer j at j * stride + i, parity
 * after data; here the inputs and the outputs are a region each, since the
 * benchmark has them apart.  As the paper says of small stripes, several
 * are packed into a call: a buffer is the cells of all rects end to end.
 * overall is the paper's: the kernel works on mapped host memory, and each
 * call is waited for.
 *
 * Unlike the original, which recovers data only and makes lost parity
 * anew from the data, rows of lost parity may be in the matrix too.  The
 * matrix is uploaded when the method is opened, not in each call.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/gpu.h"
#include "bench/methods.h"
#include "common/bits.h"
#include "common/cleanup.h"
#include "gf/matrix/field.h"
#include "measure/clock.h"

extern const char source_gibraltar[];

#define THREADS 128
#define UNIT (4 * THREADS)      /* bytes of a buffer for a block */
#define POLYNOMIAL 0x11d

struct gibraltar {
  struct cells_method base;     /* first */
  struct bench_gpu *gpu;
  CUmodule module;
  CUfunction function;
  size_t cell_len;              /* base.cells has one rect, of buffers */
  size_t stride;                /* bytes of a buffer */
  unsigned rows;
};

/* A column-reduced row has the values at r of the polynomials that are 1 at one
 * of 0 to k-1 and 0 at the others.
 */
static uint8_t
reduced (const struct field *f, unsigned k, unsigned r, unsigned c)
{
  uint8_t x = 1;

  for (unsigned i = 0; i < k; i++)
    if (i != c)
      x = f->mul[x][f->mul[r ^ i][f->inv[c ^ i]]];
  return x;
}

static int
gibraltar_parity (unsigned k, unsigned m, unsigned w, uint8_t *coef)
{
  const struct field *f = field_get (8);

  if (w != 8 || k + m > 256) {
    errno = ERANGE;
    return -1;
  }
  for (unsigned j = 0; j < m; j++)
    for (unsigned i = 0; i < k; i++)
      coef[j * k + i] = reduced (f, k, k + j, i);
  return 0;
}

/* Encoding knows its rows when it is compiled, recovery does not. */
static bool
is_encode (const struct bench_case *c)
{
  const struct field *f = field_get (8);

  for (unsigned j = 0; j < c->matrix->rows; j++)
    for (unsigned i = 0; i < c->k; i++)
      if (c->matrix->coef[j * c->k + i] != reduced (f, c->k, c->k + j, i))
        return false;
  return c->matrix->rows == c->m;
}

static int
check_case (const struct bench_case *c, char *why)
{
  const struct matrix *x = c->matrix;

  if (x->w != 8 || x->packet_len != 0) {
    snprintf (why, BENCH_WHY_LEN, "symbols must be bytes");
    return -1;
  }
  if (x->cols != c->k || x->rows > c->m || c->k + c->m > 256) {
    snprintf (why, BENCH_WHY_LEN, "no kernel for %u+%u makes %u from %u",
              c->k, c->m, x->rows, x->cols);
    return -1;
  }
  if (memchr (x->coef, 0, (size_t) x->rows * x->cols)) {
    snprintf (why, BENCH_WHY_LEN, "the kernel can't multiply by 0, which is"
              " in no matrix of its code");
    return -1;
  }
  return 0;
}

/* What each block copies to shared memory. */
static void
make_tables (uint8_t tables[512])
{
  uint8_t *log = tables, *exp = tables + 256;
  unsigned x = 1;

  memset (tables, 0, 512);
  for (unsigned i = 0; i < 255; i++) {
    exp[i] = x;
    log[x] = i;
    x = x << 1 ^ (x & 0x80 ? POLYNOMIAL : 0);
  }
}

static int
compile (struct gibraltar *g, const struct bench_case *c, char *why)
{
  char k[16], m[16];
  const char *options[] = { k, m, is_encode (c) ? NULL : "-DRECOVER", NULL };
  uint8_t tables[512];

  snprintf (k, sizeof k, "-DK=%u", c->k);
  snprintf (m, sizeof m, "-DM=%u", c->m);
  make_tables (tables);
  if (bench_gpu_compile (g->gpu, source_gibraltar, options, &g->module,
                         why) == -1)
    return -1;
  if (bench_gpu_function (g->gpu, g->module, "gibraltar", &g->function,
                          why) == -1 ||
      bench_gpu_set (g->gpu, g->module, "gibraltar_tables", tables,
                     sizeof tables, why) == -1 ||
      bench_gpu_set (g->gpu, g->module, "gibraltar_coef", c->matrix->coef,
                     (size_t) c->matrix->rows * c->matrix->cols, why) == -1)
    return -1;
  return 0;
}

static void
gibraltar_close (struct method *e)
{
  struct gibraltar *g = (struct gibraltar *) e;

  if (g == NULL)
    return;
  bench_cells_close (&g->base.cells);
  if (g->module)
    g->gpu->d->module_unload (g->module);
  free (g);
}

static struct method *
gibraltar_open (const struct bench_case *c, char *why)
{
  struct bench_case packed = *c;
  struct gibraltar *g;

  if (check_case (c, why) == -1)
    return NULL;
  g = calloc (1, sizeof *g);
  if (g == NULL) {
    snprintf (why, BENCH_WHY_LEN, "calloc: %m");
    return NULL;
  }
  g->base.method.ops = &method_gibraltar;
  g->cell_len = c->cell_len;
  g->rows = c->matrix->rows;
  g->stride = div_round_up (c->nr_rects * c->cell_len, UNIT) * UNIT;
  packed.nr_rects = 1;
  packed.cell_len = g->stride;
  g->gpu = bench_gpu_get (why);
  if (g->gpu == NULL || compile (g, c, why) == -1 ||
      bench_cells_open (&g->base.cells, g->gpu, &packed, why) == -1) {
    gibraltar_close (&g->base.method);
    return NULL;
  }
  return &g->base.method;
}

static uint8_t *
gibraltar_in (struct method *e, size_t r, unsigned i)
{
  struct gibraltar *g = (struct gibraltar *) e;

  return bench_cells_in (&g->base.cells, 0, i) + r * g->cell_len;
}

static uint8_t *
gibraltar_out (struct method *e, size_t r, unsigned j)
{
  struct gibraltar *g = (struct gibraltar *) e;

  return bench_cells_out (&g->base.cells, 0, j) + r * g->cell_len;
}

static int
launch (struct gibraltar *g, CUdeviceptr in, CUdeviceptr out, char *why)
{
  unsigned long long stride = g->stride / 4;
  void *params[] = { &in, &out, &stride, &g->rows };

  return CU (g->gpu, why, launch_kernel (g->function, g->stride / UNIT, 1, 1,
                                         THREADS, 1, 1, 0, g->gpu->stream,
                                         params, NULL));
}

static int
launch_raw (void *opaque, char *why)
{
  struct gibraltar *g = opaque;

  return launch (g, g->base.cells.in, g->base.cells.out, why);
}

static int
gibraltar_raw (struct method *e, unsigned nr, double *seconds, char *why)
{
  struct gibraltar *g = (struct gibraltar *) e;

  return bench_gpu_time (g->gpu, launch_raw, g, nr, seconds, why);
}

static int
gibraltar_overall (struct method *e, unsigned nr, double *seconds, char *why)
{
  struct gibraltar *g = (struct gibraltar *) e;
  const struct bench_cells *c = &g->base.cells;
  CUdeviceptr in, out;
  double start;

  if (CU (g->gpu, why, mem_host_get_device_pointer (&in, c->host_in,
                                                    0)) == -1 ||
      CU (g->gpu, why, mem_host_get_device_pointer (&out, c->host_out,
                                                    0)) == -1)
    return -1;
  start = now ();
  for (unsigned n = 0; n < nr; n++)
    if (launch (g, in, out, why) == -1 ||
        CU (g->gpu, why, stream_synchronize (g->gpu->stream)) == -1)
      return -1;
  *seconds = now () - start;
  return 0;
}

const struct method_ops method_gibraltar = {
  .name = "gibraltar",
  .what = "Gibraltar: RS, log and exp in shared memory, a kernel for each"
          " k+m, zero-copy",
  .options = "4byte",
  .gpu = true,
  .parity = gibraltar_parity,
  .open = gibraltar_open,
  .close = gibraltar_close,
  .in = gibraltar_in,
  .out = gibraltar_out,
  .spoil = cells_method_spoil,
  .load = cells_method_load,
  .raw = gibraltar_raw,
  .fetch = cells_method_fetch,
  .overall = gibraltar_overall,
};
