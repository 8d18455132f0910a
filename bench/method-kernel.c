/* gpuraid: our kernels alone, on cells in device memory.
 *
 * Launched like the coder on CUDA does, except for the copies: jobs of as many
 * rects as one launch can name, over several streams.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/gpu.h"
#include "bench/method-kernel.h"
#include "bench/methods.h"
#include "bench/tuning.h"
#include "common/bits.h"
#include "common/cleanup.h"
#include "gpu/text/params.h"
#include "gpu/text/source.h"
#include "gpu/text/tensor.h"

/* The tail of one launch overlaps with the head of the next. */
#define NR_STREAMS 4

struct kernel_method {
  struct cells_method base;     /* first */
  struct bench_gpu *gpu;
  bool crc;
  CUmodule module;
  CUfunction function;
  struct kernel_shape shape;
  CUdeviceptr tables, crcs;
  uint32_t *host_crcs;
  size_t nr_crcs;               /* of a rect */
  struct kernel_params *params; /* of each launch */
  unsigned nr_launches;
  CUstream stream[NR_STREAMS];
  CUevent fork, join[NR_STREAMS];
  unsigned nr;                  /* times that the launch is to code all */
};

static void
kernel_close (struct method *method)
{
  struct kernel_method *e = (struct kernel_method *) method;
  const struct driver *d = e->gpu->d;

  if (e->module)
    d->module_unload (e->module);
  bench_gpu_free (e->gpu, e->tables);
  bench_gpu_free (e->gpu, e->crcs);
  for (unsigned s = 0; s < NR_STREAMS; s++) {
    if (e->join[s])
      d->event_destroy (e->join[s]);
    if (e->stream[s])
      d->stream_destroy (e->stream[s]);
  }
  if (e->fork)
    d->event_destroy (e->fork);
  bench_cells_close (&e->base.cells);
  free (e->host_crcs);
  free (e->params);
  free (e);
}

/* With the tuning that is asked for, or with the coder's choice. */
static int
load_special (struct kernel_method *e, const struct matrix *a,
              const char *option, char *why)
{
  CLEANUP_FREE char *source = NULL;
  struct kernel_tuning tuning;

  if (option == NULL || tuning_parse (option, &tuning, why) == -1)
    kernel_tune (a, &tuning);
  else if (tuning_check (&tuning, a, why) == -1)
    return -1;
  source = kernel_source (a, e->crc, &tuning, &e->shape);
  if (source == NULL) {
    snprintf (why, BENCH_WHY_LEN, "no special kernel for this matrix: %s",
              strerror (errno));
    return -1;
  }
  return bench_gpu_compile (e->gpu, source, NULL, &e->module, why);
}

static int
send_tables (struct kernel_method *e, const void *tables, size_t len,
             char *why)
{
  e->tables = bench_gpu_alloc (e->gpu, len, why);
  return e->tables
    ? CU (e->gpu, why, memcpy_htod (e->tables, tables, len)) : -1;
}

static int
load_generic (struct kernel_method *e, const struct matrix *a, char *why)
{
  const struct kernel_image *image;
  size_t len;
  CLEANUP_FREE void *tables = kernel_generic (a, e->crc, &len, &e->shape);

  if (tables == NULL) {
    snprintf (why, BENCH_WHY_LEN, "no generic kernel for this matrix: %s",
              strerror (errno));
    return -1;
  }
  if (send_tables (e, tables, len, why) == -1)
    return -1;
  /* Like the coder: compiled now if nvcc was missing, or did not know the
   * device.
   */
  image = e->shape.image;
  if (*image->len > 0 &&
      CU (e->gpu, why, module_load_data (&e->module, image->image)) == 0)
    return 0;
  return bench_gpu_compile (e->gpu, image->source, NULL, &e->module, why);
}

/* -1: none is in this build for this device. */
static int
load_tensor (struct kernel_method *e, int kind, const struct matrix *a,
             char *why)
{
  struct kernel_shape shape[KERNEL_TENSOR_KINDS];
  size_t len;
  CLEANUP_FREE void *tables = kernel_tensor (a, &len, shape);
  const bool takes = tables && (kind == -1 || shape[kind].name);

  if (!takes || kind == -1 || *shape[kind].image->len == 0) {
    snprintf (why, BENCH_WHY_LEN, "no kernel on tensor cores for this %s",
              takes ? "device in this build" : "matrix");
    return -1;
  }
  e->shape = shape[kind];
  if (send_tables (e, tables, len, why) == -1)
    return -1;
  return CU (e->gpu, why, module_load_data (&e->module,
                                            e->shape.image->image));
}

/* Without an option: would the coder use one of kind, and not compile? */
static bool
is_tensor_best (int kind, const struct matrix *a)
{
  struct kernel_shape shape[KERNEL_TENSOR_KINDS];
  CLEANUP_FREE void *tables = NULL;
  size_t len;

  if (kind == -1 || !kernel_tensor_is_best (kind, a->rows, a->cols))
    return false;
  tables = kernel_tensor (a, &len, shape);
  return tables != NULL;
}

static int
load_by_option (struct kernel_method *e, const struct bench_case *bc,
                char *why)
{
  const int kind = kernel_tensor_kind (e->gpu->arch, KERNEL_ON_DEVICE);
  const struct matrix *a = bc->matrix;
  const char *option = bc->option;

  if (option == NULL && is_tensor_best (kind, a))
    return load_tensor (e, kind, a, why);
  if (option && strncmp (option, "generic", 7) == 0)
    return load_generic (e, a, why);
  if (option && strcmp (option, "tensor") == 0)
    return load_tensor (e, kind, a, why);
  if (option && strcmp (option, "tensor-sync") == 0)
    return load_tensor (e, kind == -1 ? -1 : KERNEL_TENSOR_SYNC, a, why);
  return load_special (e, a, option, why);
}

static int
load_kernel (struct kernel_method *e, const struct bench_case *bc, char *why)
{
  if (e->base.method.ops == &method_kernel_any)
    return 0;
  if (load_by_option (e, bc, why) == -1 ||
      bench_gpu_function (e->gpu, e->module, e->shape.name, &e->function,
                          why) == -1)
    return -1;
  if (e->shape.shared_len == 0)
    return 0;
  return CU (e->gpu, why, func_set_attribute
             (e->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
              e->shape.shared_len));
}

static int
make_params (struct kernel_method *e, const struct bench_case *bc, char *why)
{
  const struct matrix *a = bc->matrix;
  unsigned cells = a->cols + a->rows, per = KERNEL_MAX_CELLS / cells;

  e->nr_launches = div_round_up (bc->nr_rects, per);
  per = div_round_up (bc->nr_rects, e->nr_launches);    /* all alike */
  e->nr_launches = div_round_up (bc->nr_rects, per);
  e->params = calloc (e->nr_launches, sizeof e->params[0]);
  if (e->params == NULL) {
    snprintf (why, BENCH_WHY_LEN, "calloc: %m");
    return -1;
  }
  for (size_t r = 0; r < bc->nr_rects; r++) {
    struct kernel_params *p = &e->params[r / per];
    uint32_t *cell = &p->cell[r % per * cells];

    p->in_base = e->base.cells.in;
    p->out_base = e->base.cells.out;
    p->tables = e->tables;
    p->crc = e->crcs ? e->crcs + r / per * per * e->nr_crcs * 4 : 0;
    p->cell_len = bc->cell_len;
    p->nr_rects = r % per + 1;
    p->cols = a->cols;
    p->rows = a->rows;
    p->packet_len = a->packet_len;
    p->w = a->w;
    for (unsigned i = 0; i < a->cols; i++)
      *cell++ = (r * a->cols + i) * bc->cell_len / 64;
    for (unsigned j = 0; j < a->rows; j++)
      *cell++ = (r * a->rows + j) * bc->cell_len / 64;
  }
  return 0;
}

/* Once there is a kernel. */
static void
set_tiles (struct kernel_method *e)
{
  for (unsigned n = 0; n < e->nr_launches; n++)
    kernel_shape_params (&e->shape, &e->params[n]);
}

static int
make_streams (struct kernel_method *e, char *why)
{
  struct bench_gpu *gpu = e->gpu;

  for (unsigned s = 0; s < NR_STREAMS; s++)
    if (CU (gpu, why, stream_create (&e->stream[s], CU_STREAM_NON_BLOCKING,
                                     0)) == -1 ||
        CU (gpu, why, event_create (&e->join[s],
                                    CU_EVENT_DISABLE_TIMING)) == -1)
      return -1;
  return CU (gpu, why, event_create (&e->fork, CU_EVENT_DISABLE_TIMING));
}

static int
make_crcs (struct kernel_method *e, const struct bench_case *bc, char *why)
{
  const struct matrix *a = bc->matrix;

  if (!e->crc)
    return 0;
  if (bc->cell_len % CRC_BLOCK_LEN != 0) {
    snprintf (why, BENCH_WHY_LEN, "CRCs are of blocks of 4096 bytes");
    return -1;
  }
  e->nr_crcs = (a->cols + a->rows) * (bc->cell_len / CRC_BLOCK_LEN);
  e->host_crcs = calloc (bc->nr_rects * e->nr_crcs, 4);
  if (e->host_crcs == NULL) {
    snprintf (why, BENCH_WHY_LEN, "calloc: %m");
    return -1;
  }
  e->crcs = bench_gpu_alloc (e->gpu, bc->nr_rects * e->nr_crcs * 4, why);
  return e->crcs ? 0 : -1;
}

static struct method *
open_as (const struct method_ops *ops, const struct bench_case *bc, char *why)
{
  struct bench_gpu *gpu = bench_gpu_get (why);
  struct kernel_method *e;

  if (gpu == NULL)
    return NULL;
  e = calloc (1, sizeof *e);
  if (e == NULL) {
    snprintf (why, BENCH_WHY_LEN, "calloc: %m");
    return NULL;
  }
  e->base.method.ops = ops;
  e->gpu = gpu;
  e->crc = bc->option && strstr (bc->option, "crc");
  if (bench_cells_open (&e->base.cells, gpu, bc, why) == 0 &&
      make_crcs (e, bc, why) == 0 && load_kernel (e, bc, why) == 0 &&
      make_params (e, bc, why) == 0 && make_streams (e, why) == 0) {
    if (e->function)
      set_tiles (e);
    return &e->base.method;
  }
  kernel_close (&e->base.method);
  return NULL;
}

static struct method *
kernel_open (const struct bench_case *bc, char *why)
{
  return open_as (&method_kernel, bc, why);
}

static struct method *
kernel_any_open (const struct bench_case *bc, char *why)
{
  return open_as (&method_kernel_any, bc, why);
}

int
kernel_method_use (struct method *method, const struct kernel_shape *shape,
                   const void *code, int *nr_registers, int *local_len,
                   char *why)
{
  struct kernel_method *e = (struct kernel_method *) method;
  struct bench_gpu *gpu = e->gpu;

  if (e->module)
    gpu->d->module_unload (e->module);
  e->module = NULL;
  if (CU (gpu, why, module_load_data (&e->module, code)) == -1) {
    e->module = NULL;
    return -1;
  }
  e->shape = *shape;
  set_tiles (e);
  if (bench_cells_clear (&e->base.cells, why) == -1 ||
      bench_gpu_function (gpu, e->module, shape->name, &e->function,
                          why) == -1 ||
      CU (gpu, why, func_get_attribute (nr_registers,
                                        CU_FUNC_ATTRIBUTE_NUM_REGS,
                                        e->function)) == -1)
    return -1;
  return CU (gpu, why, func_get_attribute (local_len,
                                           CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
                                           e->function));
}

/* A tuning. */
static bool
kernel_takes (const char *word, char *why)
{
  struct kernel_tuning t;

  return tuning_parse (word, &t, why) == 0;
}

/* Everything e->nr times: fork from the stream that is timed, join there. */
static int
launch (void *opaque, char *why)
{
  struct kernel_method *e = opaque;
  struct bench_gpu *gpu = e->gpu;
  unsigned s;

  if (CU (gpu, why, event_record (e->fork, gpu->stream)) == -1)
    return -1;
  for (s = 0; s < NR_STREAMS; s++)
    if (CU (gpu, why, stream_wait_event (e->stream[s], e->fork, 0)) == -1)
      return -1;
  for (unsigned n = 0; n < e->nr * e->nr_launches; n++) {
    struct kernel_params *p = &e->params[n % e->nr_launches];
    void *args[] = { p };
    unsigned x, y;

    kernel_grid (&e->shape, p, gpu->nr_sms, KERNEL_ANY_BLOCKS, &x, &y);
    if (CU (gpu, why, launch_kernel (e->function, x, y, 1, e->shape.block, 1,
                                     1, e->shape.shared_len,
                                     e->stream[n % NR_STREAMS], args,
                                     NULL)) == -1)
      return -1;
  }
  for (s = 0; s < NR_STREAMS; s++)
    if (CU (gpu, why, event_record (e->join[s], e->stream[s])) == -1 ||
        CU (gpu, why, stream_wait_event (gpu->stream, e->join[s], 0)) == -1)
      return -1;
  return 0;
}

static int
kernel_raw (struct method *method, unsigned nr, double *seconds, char *why)
{
  struct kernel_method *e = (struct kernel_method *) method;

  e->nr = nr;
  return bench_gpu_time (e->gpu, launch, e, 1, seconds, why);
}

static int
kernel_fetch (struct method *method, char *why)
{
  struct kernel_method *e = (struct kernel_method *) method;

  size_t len = e->base.cells.nr_rects * e->nr_crcs * sizeof e->host_crcs[0];

  if (e->crc && CU (e->gpu, why, memcpy_dtoh (e->host_crcs, e->crcs,
                                              len)) == -1)
    return -1;
  return bench_cells_fetch (&e->base.cells, why);
}

static int
kernel_check (struct method *method, char *why)
{
  struct kernel_method *e = (struct kernel_method *) method;
  const struct bench_cells *c = &e->base.cells;

  return e->crc ? method_check_crcs (method, e->host_crcs, c->nr_rects,
                                     c->cols, c->rows, c->cell_len, why) : 0;
}

#define KERNEL_METHOD                           \
  .name = "kernel",                             \
  .gpu = true,                                  \
  .close = kernel_close,                        \
  .in = cells_method_in,                        \
  .out = cells_method_out,                      \
  .spoil = cells_method_spoil,                  \
  .load = cells_method_load,                    \
  .raw = kernel_raw,                            \
  .fetch = kernel_fetch,                        \
  .check = kernel_check

const struct method_ops method_kernel = {
  KERNEL_METHOD,
  .what = "our kernels alone, raw",
  .options = "special tensor tensor-sync generic crc generic-crc",
  .others = "a tuning, as 8x128-min4-g3",
  .takes = kernel_takes,
  .open = kernel_open,
};

const struct method_ops method_kernel_any = {
  KERNEL_METHOD,
  .what = "any of our kernels, raw",
  .open = kernel_any_open,
};
