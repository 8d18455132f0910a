/* gpuraid: the work of one device for GPU-RSCode: compile, copy, launch.
 *
 * rscode.c decides which part of the chunks it works on.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>

#include "bench/seeds/rscode/rscode-part.h"
#include "common/bits.h"

extern const char source_rscode[];

#define SM_THREADS 2048         /* enough to fill a multiprocessor */

static int
compile (struct rscode_part *p, char *why)
{
  const struct rscode *x = p->rscode;
  const struct rscode_option *o = x->option;
  char text[6][32];
  const char *options[10];
  uint8_t tables[RSCODE_TABLES_LEN];
  unsigned n = 0;

  snprintf (text[0], sizeof text[0], "-DK=%u", x->k);
  snprintf (text[1], sizeof text[1], "-DVARIANT=%u", o->variant);
  snprintf (text[2], sizeof text[2], "-DPLACE=%u", o->place);
  snprintf (text[3], sizeof text[3], "-DTILE_ROWS=%u", x->tile.rows);
  snprintf (text[4], sizeof text[4], "-DTILE_COLS=%u", x->tile.cols);
  snprintf (text[5], sizeof text[5], "-DTILE_DEPTH=%u", x->tile.depth);
  for (; n < ARRAY_LEN (text); n++)
    options[n] = text[n];
  if (o->word)
    options[n++] = "-DWORD";
  if (o->loop)
    options[n++] = "-DLOOP";
  if (o->shape == RSCODE_NAIVE)
    options[n++] = "-DNAIVE";
  options[n] = NULL;

  if (bench_gpu_compile (p->gpu, source_rscode, options, &p->module,
                         why) == -1 ||
      bench_gpu_function (p->gpu, p->module, "rscode", &p->function,
                          why) == -1)
    return -1;
  if (o->loop || o->place == RSCODE_SERIAL)
    return 0;
  return bench_gpu_set (p->gpu, p->module, "rscode_tables", tables,
                        rscode_tables (o->variant, tables), why);
}

int
rscode_part_open (struct rscode_part *p, const struct matrix *matrix, char *why)
{
  const struct rscode *x = p->rscode;
  struct bench_gpu *gpu = p->gpu;
  size_t coef_len = (size_t) x->rows * x->k, len = MAX (p->len, 1);

  if (bench_gpu_use (gpu, why) == -1 || compile (p, why) == -1)
    return -1;
  p->coef = bench_gpu_alloc (gpu, coef_len, why);
  if (p->coef)
    p->in = bench_gpu_alloc (gpu, x->k * len, why);
  if (p->in)
    p->out = bench_gpu_alloc (gpu, x->rows * len, why);
  if (p->out == 0)
    return -1;
  for (; p->nr_streams < x->slices; p->nr_streams++)
    if (CU (gpu, why, stream_create (&p->streams[p->nr_streams],
                                     CU_STREAM_NON_BLOCKING, 0)) == -1)
      return -1;
  return CU (gpu, why, memcpy_htod (p->coef, matrix->coef, coef_len));
}

void
rscode_part_close (struct rscode_part *p)
{
  char why[BENCH_WHY_LEN];

  if (p->gpu == NULL || bench_gpu_use (p->gpu, why) == -1)
    return;
  while (p->nr_streams > 0)
    p->gpu->d->stream_destroy (p->streams[--p->nr_streams]);
  bench_gpu_free (p->gpu, p->coef);
  bench_gpu_free (p->gpu, p->in);
  bench_gpu_free (p->gpu, p->out);
  if (p->module)
    p->gpu->d->module_unload (p->module);
}

/* Bytes off to off+len of the part's chunks. */
static int
launch (struct rscode_part *p, size_t off, size_t len, CUstream stream,
        char *why)
{
  const struct rscode *x = p->rscode;
  const struct rscode_tile *t = &x->tile;
  unsigned long long stride = p->len / t->element_len;
  unsigned long long columns = len / t->element_len;
  CUdeviceptr in = p->in + off, out = p->out + off;
  unsigned rows = x->rows, grid_y = div_round_up (rows, t->rows);
  size_t grid_x = div_round_up (columns, t->cols);
  size_t full = p->gpu->nr_sms * (SM_THREADS / (t->rows * t->cols)) / grid_y;
  void *params[] = { &p->coef, &in, &out, &rows, &stride, &columns };

  /* The blocks of tiles walk over the columns: as many as run at once, so
   * that tables are made once and not for each tile.
   */
  if (x->option->shape != RSCODE_NAIVE)
    grid_x = MIN (grid_x, MAX (full, 1));
  return CU (p->gpu, why, launch_kernel (p->function, grid_x, grid_y, 1,
                                         t->cols, t->rows, 1, 0, stream,
                                         params, NULL));
}

static int
slice (struct rscode_part *p, size_t off, size_t len, CUstream stream,
       char *why)
{
  const struct rscode *x = p->rscode;
  struct bench_gpu *gpu = p->gpu;

  for (unsigned i = 0; i < x->k; i++) {
    const uint8_t *src = x->in + i * x->chunk_len + p->off + off;

    if (CU (gpu, why, memcpy_htod_async (p->in + i * p->len + off, src, len,
                                         stream)) == -1)
      return -1;
  }
  if (launch (p, off, len, stream, why) == -1)
    return -1;
  for (unsigned j = 0; j < x->rows; j++) {
    uint8_t *dst = x->out + j * x->chunk_len + p->off + off;

    if (CU (gpu, why, memcpy_dtoh_async (dst, p->out + j * p->len + off, len,
                                         stream)) == -1)
      return -1;
  }
  return 0;
}

/* Host memory to host memory, nr times. */
int
rscode_part_overall (struct rscode_part *p, char *why)
{
  size_t len = div_round_up (div_round_up (p->len, 64), p->nr_streams) * 64;

  for (unsigned n = 0; n < p->nr; n++) {
    unsigned s = 0;

    for (size_t off = 0; off < p->len; off += len)
      if (slice (p, off, MIN (len, p->len - off), p->streams[s++],
                 why) == -1)
        return -1;
    while (s > 0)
      if (CU (p->gpu, why, stream_synchronize (p->streams[--s])) == -1)
        return -1;
  }
  return 0;
}

static int
launch_all (void *opaque, char *why)
{
  struct rscode_part *p = opaque;

  return launch (p, 0, p->len, p->gpu->stream, why);
}

int
rscode_part_raw (struct rscode_part *p, char *why)
{
  if (p->len == 0)
    return 0;
  return bench_gpu_time (p->gpu, launch_all, p, p->nr, &p->seconds, why);
}

int
rscode_part_spoil (struct rscode_part *p, char *why)
{
  const struct rscode *x = p->rscode;
  struct bench_gpu *gpu = p->gpu;

  if (p->len == 0)
    return 0;
  if (CU (gpu, why, memset_d8_async (p->in, 0xa5, x->k * p->len,
                                     gpu->stream)) == -1 ||
      CU (gpu, why, memset_d8_async (p->out, 0xa5, x->rows * p->len,
                                     gpu->stream)) == -1)
    return -1;
  return CU (gpu, why, stream_synchronize (gpu->stream));
}

int
rscode_part_load (struct rscode_part *p, char *why)
{
  const struct rscode *x = p->rscode;

  for (unsigned i = 0; p->len > 0 && i < x->k; i++)
    if (CU (p->gpu, why, memcpy_htod (p->in + i * p->len,
                                      x->in + i * x->chunk_len + p->off,
                                      p->len)) == -1)
      return -1;
  return 0;
}

int
rscode_part_fetch (struct rscode_part *p, char *why)
{
  const struct rscode *x = p->rscode;

  for (unsigned j = 0; p->len > 0 && j < x->rows; j++)
    if (CU (p->gpu, why, memcpy_dtoh (x->out + j * x->chunk_len + p->off,
                                      p->out + j * p->len, p->len)) == -1)
      return -1;
  return 0;
}
