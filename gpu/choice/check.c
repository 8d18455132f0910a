/* gpuraid: test a loaded kernel before it codes anything.
 *
 * Compiled code may be wrong: by a compiler's mistake, by a file in the cache
 * that is wrong but has the right checksum, or on a device that computes
 * something else.  It would go unnoticed, because parity is only read when a
 * member is lost.  One rect finds all mistakes that do not depend on the data.
 *
 * The cells are pinned memory, as in a launch in place; they have a second tile
 * that is not full.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/bits.h"
#include "common/bytes/random.h"
#include "common/cleanup.h"
#include "common/threads/clock.h"
#include "gpu/choice/check.h"
#include "gpu/choice/internal.h"

#define BLOCK_LEN ((size_t) 4096)
#define GUARD_LEN ((size_t) 64)         /* behind the cells: not written */
#define NAP_NS 50000

/* The memory of both: cells, guard, CRCs, the kernel's tables. */
struct check {
  struct gpu_device *dev;
  const struct matrix *matrix;
  size_t nr_cells, cell_len;
  size_t crc_off, tables_off, len;      /* bytes; of all */
  bool crc;
  uint8_t *mem;                 /* pinned */
  uint8_t *want;
  CUstream stream;
  CUevent event;
};

static void
init_sizes (struct check *c, const struct kernel_choice *k)
{
  const struct matrix *a = c->matrix;
  const size_t unit = common_multiple (c->crc ? BLOCK_LEN : 64,
                                       a->packet_len ? a->w * a->packet_len
                                       : 1);
  const size_t tile = (size_t) k->shape.block * k->shape.bytes;

  c->nr_cells = (size_t) a->cols + a->rows;
  c->cell_len = div_round_up (tile + 1, unit) * unit;
  c->crc_off = c->nr_cells * c->cell_len + GUARD_LEN;
  c->len = c->crc_off;
  if (c->crc)
    c->len += c->nr_cells * (c->cell_len / BLOCK_LEN) * sizeof (uint32_t);
  c->tables_off = round_up (c->len, 64);
  c->len = c->tables_off + k->tables_len;
}

/* ---- the expected result ------------------------------------------------ */

static void
job_done (struct coder_job *job, int error)
{
  if (error == 0)
    job->nr_rects = 0;          /* says that it is done */
}

static bool
code_on_cpu (struct check *c, struct coder *cpu)
{
  const uint8_t *in[KERNEL_MAX_CELLS];
  uint8_t *out[KERNEL_MAX_CELLS];
  struct coder_job job = {
    .matrix = c->matrix, .cell_len = c->cell_len, .nr_rects = 1,
    .in = in, .out = out, .done = job_done,
    .crc = c->crc ? (uint32_t *) (c->want + c->crc_off) : NULL,
  };

  for (unsigned i = 0; i < c->matrix->cols; i++)
    in[i] = c->want + i * c->cell_len;
  for (unsigned j = 0; j < c->matrix->rows; j++)
    out[j] = c->want + (c->matrix->cols + j) * c->cell_len;
  coder_submit (cpu, &job);
  return job.nr_rects == 0;
}

/* ---- the result of the kernel -------------------------------------------- */

static CUresult
make (struct check *c, const char **call)
{
  const struct driver *d = c->dev->driver;
  void *mem;
  CUresult r;

  *call = "cuMemHostAlloc";
  r = d->mem_host_alloc (&mem, c->len, CU_MEMHOSTALLOC_DEVICEMAP);
  if (r)
    return r;
  c->mem = mem;
  *call = "cuStreamCreate";
  r = d->stream_create (&c->stream, CU_STREAM_NON_BLOCKING, 0);
  if (r)
    return r;
  *call = "cuEventCreate";
  return d->event_create (&c->event, CU_EVENT_DISABLE_TIMING);
}

static void
destroy (struct check *c)
{
  const struct driver *d = c->dev->driver;

  if (c->event)
    d->event_destroy (c->event);
  if (c->stream)
    d->stream_destroy (c->stream);
  if (c->mem)
    d->mem_free_host (c->mem);
}

static CUresult
launch (struct check *c, const struct kernel_choice *k, const char **call)
{
  const struct driver *d = c->dev->driver;
  struct kernel_params p = {
    .cell_len = c->cell_len, .nr_rects = 1,
    .cols = c->matrix->cols, .rows = c->matrix->rows,
    .packet_len = c->matrix->packet_len, .w = c->matrix->w,
  };
  void *params[] = { &p };
  CUdeviceptr base;
  unsigned x, y;
  CUresult r;

  *call = "cuMemHostGetDevicePointer";
  r = d->mem_host_get_device_pointer (&base, c->mem, 0);
  if (r)
    return r;
  p.in_base = p.out_base = base;
  p.crc = c->crc ? base + c->crc_off : 0;
  p.tables = base + c->tables_off;
  for (size_t i = 0; i < c->nr_cells; i++)
    p.cell[i] = i * c->cell_len / 64;
  kernel_shape_params (&k->shape, &p);
  kernel_grid (&k->shape, &p, c->dev->nr_sms, KERNEL_ANY_BLOCKS, &x, &y);
  *call = "cuLaunchKernel";
  r = d->launch_kernel (k->function, x, y, 1, k->shape.block, 1, 1,
                        k->shape.shared_len, c->stream, params, NULL);
  if (r)
    return r;
  *call = "cuEventRecord";
  return d->event_record (c->event, c->stream);
}

/* A kernel that does not end means that the device does not answer. */
static CUresult
wait_for_end (struct check *c, const char **call)
{
  const struct timespec nap = { .tv_nsec = NAP_NS };
  const int64_t end = monotonic_ms () / 1000 + device_hang_s;
  CUresult r;

  *call = "cuEventQuery";
  while ((r = c->dev->driver->event_query (c->event)) ==
         CUDA_ERROR_NOT_READY) {
    if (device_failed (c->dev))
      return r;
    if (monotonic_ms () / 1000 > end) {
      device_fail_busy (c->dev, device_hang_s);
      return r;
    }
    nanosleep (&nap, NULL);
  }
  return r;
}

CUresult
kernel_check (struct gpu_device *dev, const struct kernel_choice *k,
              const struct matrix *matrix, bool crc, struct coder *cpu,
              bool *right, const char **call)
{
  struct check c = { .dev = dev, .matrix = matrix, .crc = crc };
  CLEANUP_FREE uint8_t *want = NULL;
  CUresult r;

  init_sizes (&c, k);
  *right = true;
  if (c.nr_cells > KERNEL_MAX_CELLS)
    return CUDA_SUCCESS;        /* it is never launched */
  *call = "malloc";
  c.want = want = malloc (c.len);
  if (want == NULL || random_bytes (want, c.len) == -1)
    return CUDA_ERROR_OUT_OF_MEMORY;
  if (k->tables_len > 0)
    memcpy (want + c.tables_off, k->tables, k->tables_len);
  r = make (&c, call);
  if (r == CUDA_SUCCESS) {
    memcpy (c.mem, want, c.len);
    r = launch (&c, k, call);
  }
  if (r == CUDA_SUCCESS)
    r = wait_for_end (&c, call);
  if (r == CUDA_ERROR_NOT_READY)
    return r;                   /* it may still write: freed with the context */
  if (r == CUDA_SUCCESS) {
    *call = "the coder on the CPU";
    if (code_on_cpu (&c, cpu))
      *right = memcmp (c.mem, want, c.len) == 0;
    else
      r = CUDA_ERROR_OUT_OF_MEMORY;
  }
  destroy (&c);
  return r;
}

/* gf-complete, because it needs no tables and programs of its own. */
bool
kernels_make_cpu (struct kernels *ks)
{
  if (ks->cpu)
    return true;
  ks->cpu = coder_gf_complete_new (0);
  if (ks->cpu && coder_start (ks->cpu, NULL, 0) == 0)
    return true;
  coder_free (ks->cpu);
  ks->cpu = NULL;
  return false;
}
