/* gpuraid: GPU-RSCode, as a method of the benchmark.
 *
 * Decides what its host side does: the shape of the tiles, the tables, the
 * slices over streams, the devices.  The kernels are in rscode.cu, the code and
 * the options in rscode-options.c.
 *
 * A file is k chunks end to end, then the parity chunks likewise; a chunk is
 * the cells of all rects end to end.  For overall a chunk is divided into
 * slices, one a stream: k copies in, the kernel, the copies out.  With two
 * devices each has a range of bytes of all chunks, and a thread.  The original
 * waits for each slice, so that its streams take turns; this version waits only
 * at the end.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/methods.h"
#include "bench/seeds/rscode/rscode-part.h"
#include "common/bits.h"
#include "measure/clock.h"

#define BLOCK 128               /* threads, where the shape is ours to choose */
#define SQUARE 16               /* else a side of the block */
#define SHARED_LEN (48 << 10)   /* of a block, without asking for more */
#define SLICES 8                /* where the case leaves it to us */

static size_t
shared_len (const struct rscode_tile *t)
{
  return t->rows * t->depth + t->cols * t->depth * t->element_len +
    RSCODE_TABLES_LEN;
}

/* The aspect ratio is tile rows to tile columns.  Smallest: a row.  Largest:
 * as many rows as there are.
 */
static void
choose_tile (struct rscode *x)
{
  struct rscode_tile *t = &x->tile;

  t->element_len = x->option->word ? 4 : 1;
  t->depth = x->k;
  switch (x->option->shape) {
  case RSCODE_NAIVE:
  case RSCODE_MIN_AR:
    t->rows = 1;
    t->cols = BLOCK;
    break;
  case RSCODE_MAX_AR:
    t->rows = MIN (x->rows, BLOCK);
    t->cols = BLOCK / t->rows;
    break;
  case RSCODE_SQUARE:
    t->depth = SQUARE;
    /* fall through */
  case RSCODE_AR_1:
    t->rows = t->cols = SQUARE;
    break;
  }
  while (t->cols > 1 && x->option->shape != RSCODE_NAIVE &&
         shared_len (t) > SHARED_LEN)
    t->cols /= 2;
}

static void *
part_thread (void *opaque)
{
  struct rscode_part *p = opaque;

  if (bench_gpu_use (p->gpu, p->why) == -1 || p->work (p, p->why) == -1)
    return p;
  return NULL;
}

/* Run all parts, each in a thread of its own if there are several.  0, or -1:
 * why.
 */
static int
each_part (struct rscode *x, int (*work) (struct rscode_part *, char *why),
           unsigned nr, char *why)
{
  pthread_t threads[RSCODE_MAX_PARTS];
  unsigned started = 0;
  struct rscode_part *failed = NULL;
  int err = 0;

  for (unsigned i = 0; i < x->nr_parts; i++) {
    x->parts[i].work = work;
    x->parts[i].nr = nr;
  }
  for (unsigned i = 1; err == 0 && i < x->nr_parts; i++) {
    err = pthread_create (&threads[i], NULL, part_thread, &x->parts[i]);
    started += err == 0;
  }
  if (err == 0)
    failed = part_thread (&x->parts[0]);
  for (unsigned i = 1; i <= started; i++) {
    void *r;

    pthread_join (threads[i], &r);
    failed = failed ? failed : r;
  }
  if (err != 0)
    snprintf (why, BENCH_WHY_LEN, "pthread_create: %s", strerror (err));
  else if (failed)
    memcpy (why, failed->why, BENCH_WHY_LEN);
  return err != 0 || failed ? -1 : 0;
}

static void
rscode_close (struct method *e)
{
  struct rscode *x = (struct rscode *) e;
  char why[BENCH_WHY_LEN];

  if (x == NULL)
    return;
  for (unsigned i = x->nr_parts; i-- > 0; )
    rscode_part_close (&x->parts[i]);
  if (x->parts[0].gpu && bench_gpu_use (x->parts[0].gpu, why) == 0) {
    bench_gpu_host_free (x->in);
    bench_gpu_host_free (x->out);
  }
  free (x);
}

/* The devices, and the range of each. */
static int
choose_parts (struct rscode *x, char *why)
{
  unsigned count = method_nr_devices (why);
  size_t len = div_round_up (div_round_up (x->chunk_len, 64),
                             x->option->gpus) * 64;

  if (count == 0)
    return -1;
  if (count < x->option->gpus) {
    snprintf (why, BENCH_WHY_LEN, "only %u CUDA device", count);
    return -1;
  }
  for (unsigned i = 0; i < x->option->gpus; i++) {
    struct rscode_part *p = &x->parts[i];

    p->rscode = x;
    p->gpu = i == 0 ? bench_gpu_get (why)
                    : bench_gpu_open ((x->parts[0].gpu->nr + i) % count, why);
    if (p->gpu == NULL)
      return -1;
    x->nr_parts++;
    p->off = MIN (i * len, x->chunk_len);
    p->len = MIN (len, x->chunk_len - p->off);
  }
  return 0;
}

static int
open_parts (struct rscode *x, const struct matrix *matrix, char *why)
{
  if (choose_parts (x, why) == -1)
    return -1;
  for (unsigned i = x->nr_parts; i-- > 0; )
    if (rscode_part_open (&x->parts[i], matrix, why) == -1)
      return -1;
  x->in = bench_gpu_host_alloc (x->parts[0].gpu, x->k * x->chunk_len, why);
  if (x->in)
    x->out = bench_gpu_host_alloc (x->parts[0].gpu, x->rows * x->chunk_len,
                                   why);
  return x->out ? 0 : -1;
}

static struct method *
rscode_open (const struct bench_case *c, char *why)
{
  const struct rscode_option *option = rscode_option (c->option);
  struct rscode *x;

  if (option == NULL || c->matrix->w != 8 || c->matrix->packet_len != 0) {
    snprintf (why, BENCH_WHY_LEN, option ? "symbols must be bytes"
                                         : "there is no such option");
    return NULL;
  }
  x = calloc (1, sizeof *x);
  if (x == NULL) {
    snprintf (why, BENCH_WHY_LEN, "calloc: %m");
    return NULL;
  }
  x->e.ops = &method_rscode;
  x->option = option;
  x->k = c->matrix->cols;
  x->rows = c->matrix->rows;
  x->cell_len = c->cell_len;
  x->chunk_len = c->nr_rects * c->cell_len;
  x->slices = MIN (c->slices ? c->slices : SLICES, BENCH_MAX_STREAMS);
  choose_tile (x);
  if (open_parts (x, c->matrix, why) == -1) {
    rscode_close (&x->e);
    return NULL;
  }
  return &x->e;
}

static uint8_t *
rscode_in (struct method *e, size_t r, unsigned i)
{
  struct rscode *x = (struct rscode *) e;

  return x->in + i * x->chunk_len + r * x->cell_len;
}

static uint8_t *
rscode_out (struct method *e, size_t r, unsigned j)
{
  struct rscode *x = (struct rscode *) e;

  return x->out + j * x->chunk_len + r * x->cell_len;
}

static int
rscode_spoil (struct method *e, char *why)
{
  return each_part ((struct rscode *) e, rscode_part_spoil, 1, why);
}

static int
rscode_load (struct method *e, char *why)
{
  return each_part ((struct rscode *) e, rscode_part_load, 1, why);
}

static int
rscode_fetch (struct method *e, char *why)
{
  return each_part ((struct rscode *) e, rscode_part_fetch, 1, why);
}

static int
rscode_raw (struct method *e, unsigned nr, double *seconds, char *why)
{
  struct rscode *x = (struct rscode *) e;

  if (each_part (x, rscode_part_raw, nr, why) == -1)
    return -1;
  *seconds = 0;
  for (unsigned i = 0; i < x->nr_parts; i++)
    *seconds = MAX (*seconds, x->parts[i].seconds);
  return 0;
}

static int
rscode_overall (struct method *e, unsigned nr, double *seconds, char *why)
{
  double start = now ();

  if (each_part ((struct rscode *) e, rscode_part_overall, nr, why) == -1)
    return -1;
  *seconds = now () - start;
  return 0;
}

const struct method_ops method_rscode = {
  .name = "rscode",
  .what = "GPU-RSCode: RS, tiles of a matrix product, log and exp in shared"
          " memory",
  .options = RSCODE_OPTIONS,
  .gpu = true,
  .parity = rscode_parity,
  .open = rscode_open,
  .close = rscode_close,
  .in = rscode_in,
  .out = rscode_out,
  .spoil = rscode_spoil,
  .load = rscode_load,
  .raw = rscode_raw,
  .fetch = rscode_fetch,
  .overall = rscode_overall,
};
