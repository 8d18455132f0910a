/* gpuraid: turn operations into jobs for the coder.
 *
 * Rects that share a matrix and a length go in one job.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array/engine/consistency.h"
#include "array/engine/place.h"
#include "array/ops/internal.h"

struct batch_item {
  struct op *op;
  struct rect *rect;
};

struct batch {
  struct coder_job job;
  struct news news;
  struct array *a;
  struct pool *pool;
  int error;
  struct solution *sol;
  size_t nr;
  struct batch_item *item;
  const uint8_t **in;
  uint8_t **out;
  uint32_t *crc;                /* or NULL */
};

/* The crcs of the blocks of one cell, of which there are rect->nr. */
static const uint32_t *
take_crcs (struct op *op, const struct rect *rect, unsigned role,
           const uint32_t *crc)
{
  struct op_role *o = &op->role[role];

  o->crc_blocks |= block_mask (rect->b0, rect->nr);
  memcpy (&o->crc[rect->b0], crc, rect->nr * sizeof *crc);
  return crc + rect->nr;
}

/* Those of what is to be stored: not of old content that is replaced. */
static void
note_crcs (const struct batch *b, size_t i)
{
  const struct matrix *m = b->job.matrix;
  const struct rect *rect = b->item[i].rect;
  struct op *op = b->item[i].op;
  const uint32_t *crc = b->crc + i * (m->cols + m->rows) * rect->nr;

  op_check_coded (b->a, op, b->item[i].rect, rect->p.in, crc);
  FOR_EACH_BIT (r, rect->p.in) {
    if (rect->given & BIT (r))
      crc += rect->nr;
    else
      crc = take_crcs (op, rect, r, crc);
  }
  FOR_EACH_BIT (r, rect->given)
    crc = take_crcs (op, rect, r, crc);
  FOR_EACH_BIT (r, rect->p.make)
    crc = take_crcs (op, rect, r, crc);
  op_check_made (b->a, op, b->item[i].rect);
}

static void
batch_news (struct array *a, struct news *n)
{
  struct batch *b = list_item (n, struct batch, news);

  for (size_t i = 0; i < b->nr; i++) {
    struct op *op = b->item[i].op;

    if (b->crc && b->error == 0)
      note_crcs (b, i);
    solver_put (a->solver, b->sol);
    b->item[i].rect->sol = NULL;
    if (b->error)
      op->error = b->error;
    if (--op->pending == 0)
      op_go_on (a, op);
  }
  pool_put (b->pool, b);
}

static void
batch_done (struct coder_job *job, int error)
{
  struct batch *b = list_item (job, struct batch, job);

  b->error = error;
  engine_post (b->a, &b->news);
}

static struct batch *
batch_new (struct array *a, const struct matrix *m, size_t nr,
           unsigned nr_blocks, bool crc)
{
  const size_t nr_in = nr * m->cols, nr_out = nr * m->rows;
  const size_t nr_crcs = crc ? (nr_in + nr_out) * nr_blocks : 0;
  struct pool *pool = pools_at (&a->pools, sizeof (struct batch) +
                                nr * sizeof (struct batch_item) +
                                (nr_in + nr_out) * sizeof (uint8_t *) +
                                nr_crcs * sizeof (uint32_t));
  struct batch *b = pool_get (pool);

  if (b == NULL)
    abort ();           /* as in array/io/xfer.c */
  b->a = a;
  b->pool = pool;
  b->news.run = batch_news;
  b->error = 0;
  b->nr = 0;
  b->item = (struct batch_item *) (b + 1);
  b->in = (const uint8_t **) (b->item + nr);
  b->out = (uint8_t **) (b->in + nr_in);
  b->crc = nr_crcs ? (uint32_t *) (b->out + nr_out) : NULL;
  return b;
}

/* Add the cells of one rect. */
static void
batch_add (struct batch *b, struct op *op, struct rect *rect)
{
  const struct matrix *m = b->sol->matrix;
  const size_t off = (size_t) rect->b0 * BLOCK_LEN;
  const uint8_t **in = &b->in[b->nr * m->cols];
  uint8_t **out = &b->out[b->nr * m->rows];

  FOR_EACH_BIT (r, rect->p.in)
    *in++ = op_old (op, rect, r)->data + off;
  FOR_EACH_BIT (r, rect->given)
    *in++ = op->role[r].given->data + off;
  FOR_EACH_BIT (r, rect->p.make)
    *out++ = op->role[r].made->data + off;
  b->item[b->nr++] = (struct batch_item) { op, rect };
}

/* For the records of the journal, and to compare with the table. */
static bool
wants_crc (const struct array *a, const struct batch_item *item, size_t nr)
{
  if (a->sums)
    return true;
  for (size_t i = 0; i < nr && a->consistency->wants_crc; i++)
    if (item[i].op->type->kind == OP_OUT)
      return true;
  return false;
}

static void
start_batch (struct array *a, struct batch_item *item, size_t nr)
{
  struct solution *sol = item[0].rect->sol;
  struct batch *b = batch_new (a, sol->matrix, nr, item[0].rect->nr,
                               wants_crc (a, item, nr));

  b->sol = sol;
  for (size_t i = 0; i < nr; i++)
    batch_add (b, item[i].op, item[i].rect);
  b->job.matrix = sol->matrix;
  b->job.cell_len = (size_t) item[0].rect->nr * BLOCK_LEN;
  b->job.nr_rects = nr;
  b->job.in = b->in;
  b->job.out = b->out;
  b->job.crc = b->crc;
  b->job.done = batch_done;
  a->counters.coder_jobs++;
  a->counters.coder_bytes += nr * b->job.cell_len * sol->matrix->cols;
  engine_job (a, &b->job);
}

/* Sort equal solutions together, in the order of their first use (not of
 * their addresses: a simulation must be repeatable).
 */
static int
compare_items (const void *p, const void *q)
{
  const struct rect *x = ((const struct batch_item *) p)->rect;
  const struct rect *y = ((const struct batch_item *) q)->rect;

  if (x->sol->matrix->id != y->sol->matrix->id)
    return x->sol->matrix->id < y->sol->matrix->id ? -1 : 1;
  if (x->nr != y->nr)
    return x->nr < y->nr ? -1 : 1;
  return 0;
}

#define MAX_ITEMS 256u

void
op_start_jobs (struct array *a)
{
  while (!list_empty (&a->coding)) {
    struct batch_item item[MAX_ITEMS];
    size_t nr = 0;

    while (!list_empty (&a->coding) && nr + OP_MAX_RECTS <= MAX_ITEMS) {
      struct op *op = list_item (list_pop (&a->coding), struct op, coding);

      for (unsigned i = 0; i < op->nr_rects; i++)
        if (op->rect[i].sol)
          item[nr++] = (struct batch_item) { op, &op->rect[i] };
    }
    qsort (item, nr, sizeof item[0], compare_items);
    for (size_t i = 0, j; i < nr; i = j) {
      for (j = i + 1; j < nr && compare_items (&item[i], &item[j]) == 0; j++)
        ;
      start_batch (a, &item[i], j - i);
    }
  }
}

void
op_code (struct array *a, struct op *op)
{
  op->pending = 0;
  for (unsigned i = 0; i < op->nr_rects; i++) {
    struct rect *rect = &op->rect[i];

    rect->sol = NULL;
    if (rect->p.make == 0)
      continue;
    rect->sol = solver_get (a->solver, rect->p.in, rect->given, rect->p.make,
                            line_zeroes (a, op->line->no));
    if (rect->sol == NULL) {
      log_error ("no memory, or no matrix, for roles %#" PRIx64
                 " from %#" PRIx64, rect->p.make, rect->p.in | rect->given);
      op->error = EIO;
      continue;
    }
    op->pending++;
  }
  if (op->pending > 0)
    list_append (&a->coding, &op->coding);
}
