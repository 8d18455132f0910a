/* gpuraid: the cells of a case in host and device memory, and the pipeline
 * between them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>
#include <string.h>

#include "bench/gpu.h"
#include "common/bits.h"
#include "measure/clock.h"

int
bench_cells_open (struct bench_cells *c, struct bench_gpu *gpu,
                  const struct bench_case *bc, char *why)
{
  size_t in_len = bc->nr_rects * bc->matrix->cols * bc->cell_len;
  size_t out_len = bc->nr_rects * bc->matrix->rows * bc->cell_len;

  *c = (struct bench_cells) {
    .gpu = gpu, .nr_rects = bc->nr_rects, .cell_len = bc->cell_len,
    .cols = bc->matrix->cols, .rows = bc->matrix->rows,
  };
  c->host_in = bench_gpu_host_alloc (gpu, in_len, why);
  if (c->host_in)
    c->host_out = bench_gpu_host_alloc (gpu, out_len, why);
  if (c->host_out)
    c->in = bench_gpu_alloc (gpu, in_len, why);
  if (c->in)
    c->out = bench_gpu_alloc (gpu, out_len, why);
  if (c->out && bench_cells_clear (c, why) == 0)
    return 0;
  bench_cells_close (c);
  return -1;
}

void
bench_cells_close (struct bench_cells *c)
{
  if (c->gpu == NULL)
    return;
  bench_gpu_host_free (c->host_in);
  bench_gpu_host_free (c->host_out);
  bench_gpu_free (c->gpu, c->in);
  bench_gpu_free (c->gpu, c->out);
  *c = (struct bench_cells) { 0 };
}

uint8_t *
bench_cells_in (struct bench_cells *c, size_t r, unsigned i)
{
  return c->host_in + (r * c->cols + i) * c->cell_len;
}

uint8_t *
bench_cells_out (struct bench_cells *c, size_t r, unsigned j)
{
  return c->host_out + (r * c->rows + j) * c->cell_len;
}

int
bench_cells_clear (struct bench_cells *c, char *why)
{
  struct bench_gpu *gpu = c->gpu;

  if (CU (gpu, why, memset_d8_async (c->out, 0x5a, c->nr_rects * c->rows *
                                     c->cell_len, gpu->stream)) == -1)
    return -1;
  return CU (gpu, why, stream_synchronize (gpu->stream));
}

int
bench_cells_fetch (struct bench_cells *c, char *why)
{
  return CU (c->gpu, why, memcpy_dtoh (c->host_out, c->out, c->nr_rects *
                                       c->rows * c->cell_len));
}

/* ---- as a method */

uint8_t *
cells_method_in (struct method *e, size_t r, unsigned i)
{
  return bench_cells_in (&((struct cells_method *) e)->cells, r, i);
}

uint8_t *
cells_method_out (struct method *e, size_t r, unsigned j)
{
  return bench_cells_out (&((struct cells_method *) e)->cells, r, j);
}

int
cells_method_spoil (struct method *e, char *why)
{
  struct bench_cells *c = &((struct cells_method *) e)->cells;
  struct bench_gpu *gpu = c->gpu;

  if (CU (gpu, why, memset_d8_async (c->in, 0xa5, c->nr_rects * c->cols *
                                     c->cell_len, gpu->stream)) == -1)
    return -1;
  return bench_cells_clear (c, why);
}

int
cells_method_load (struct method *e, char *why)
{
  struct bench_cells *c = &((struct cells_method *) e)->cells;

  return CU (c->gpu, why, memcpy_htod (c->in, c->host_in, c->nr_rects *
                                       c->cols * c->cell_len));
}

int
cells_method_fetch (struct method *e, char *why)
{
  return bench_cells_fetch (&((struct cells_method *) e)->cells, why);
}

/* ---- the pipeline */

/* One slice of one rect. */
struct slice {
  size_t r, off, len;
  CUstream stream;
};

enum stage { COPY_IN, KERNEL, COPY_OUT, NR_STAGES };

static int
run_stage (struct bench_cells *c, const struct bench_pipeline *p,
           enum stage stage, bool copies, const struct slice *s, char *why)
{
  struct bench_gpu *gpu = c->gpu;

  if (stage == KERNEL)
    return p->launch (p->opaque, s->r, s->off, s->len, s->stream, why);
  for (unsigned i = 0; copies && stage == COPY_IN && i < c->cols; i++) {
    size_t off = (s->r * c->cols + i) * c->cell_len + s->off;

    if (CU (gpu, why, memcpy_htod_async (c->in + off, c->host_in + off,
                                         s->len, s->stream)) == -1)
      return -1;
  }
  for (unsigned j = 0; copies && stage == COPY_OUT && j < c->rows; j++) {
    size_t off = (s->r * c->rows + j) * c->cell_len + s->off;

    if (CU (gpu, why, memcpy_dtoh_async (c->host_out + off, c->out + off,
                                         s->len, s->stream)) == -1)
      return -1;
  }
  return 0;
}

/* Bytes of a slice: units shared out evenly, the first ones rounded up. */
static size_t
slice_len (const struct bench_cells *c, const struct bench_pipeline *p)
{
  size_t units = div_round_up (c->cell_len, p->unit);

  return div_round_up (units, MAX (p->nr_slices, 1)) * p->unit;
}

/* Stages first to last of all slices. */
static int
run_stages (struct bench_cells *c, const struct bench_pipeline *p,
            const CUstream *streams, enum stage first, enum stage last,
            bool copies, char *why)
{
  size_t len = slice_len (c, p), nr = 0;

  for (size_t r = 0; r < c->nr_rects; r++) {
    for (size_t off = 0; off < c->cell_len; off += len) {
      struct slice s = { r, off, MIN (len, c->cell_len - off),
                         streams[nr++ % p->nr_streams] };

      for (enum stage stage = first; stage <= last; stage++)
        if (run_stage (c, p, stage, copies, &s, why) == -1)
          return -1;
    }
  }
  return 0;
}

static int
run_once (struct bench_cells *c, const struct bench_pipeline *p,
          const CUstream *streams, bool copies, char *why)
{
  int r = 0;

  if (p->by_stage)
    for (enum stage stage = COPY_IN; r == 0 && stage < NR_STAGES; stage++)
      r = run_stages (c, p, streams, stage, stage, copies, why);
  else
    r = run_stages (c, p, streams, COPY_IN, COPY_OUT, copies, why);
  for (unsigned s = 0; s < p->nr_streams; s++)
    if (r == 0)
      r = CU (c->gpu, why, stream_synchronize (streams[s]));
  return r;
}

int
bench_cells_overall (struct bench_cells *c, const struct bench_pipeline *p,
                     bool copies, unsigned nr, double *seconds, char *why)
{
  CUstream streams[BENCH_MAX_STREAMS];
  unsigned nr_streams = 0;
  double start;
  int r = 0;

  for (; r == 0 && nr_streams < p->nr_streams; nr_streams += r == 0)
    r = CU (c->gpu, why, stream_create (&streams[nr_streams],
                                        CU_STREAM_NON_BLOCKING, 0));
  start = now ();
  for (unsigned n = 0; r == 0 && n < nr; n++)
    r = run_once (c, p, streams, copies, why);
  *seconds = now () - start;
  while (nr_streams > 0)
    c->gpu->d->stream_destroy (streams[--nr_streams]);
  return r;
}
