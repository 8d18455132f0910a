/* gpuraid: one job for two coders.
 *
 * Cuts a job in two, and puts the answers together.  Cells are never
 * copied; the CRCs of a band are, since those of whole cells lie together.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>
#include <string.h>

#include "common/bits.h"
#include "gf/auto-task.h"

#define BLOCK_LEN ((size_t) 4096)

/* From so many rects on a cut between them is fine enough. */
#define MANY_RECTS 24

/* What the length of a band must be a multiple of. */
static size_t
band_unit (const struct coder_job *job)
{
  const struct matrix *a = job->matrix;
  size_t least = job->crc ? BLOCK_LEN : 64;
  size_t block = a->packet_len ? a->w * a->packet_len : 64;
  size_t unit = block;

  while (unit % least != 0)
    unit += block;
  /* Whole pages, where they fit. */
  while (unit < BLOCK_LEN && job->cell_len % (2 * unit) == 0)
    unit *= 2;
  return unit;
}

void
auto_units (const struct coder_job *job, struct auto_units *u)
{
  u->nr = job->nr_rects;
  u->len = 0;
  if (job->nr_rects < MANY_RECTS) {
    size_t unit = band_unit (job);

    if (job->cell_len % unit == 0 && job->cell_len / unit > job->nr_rects) {
      u->nr = job->cell_len / unit;
      u->len = unit;
    }
  }
}

static struct auto_part *
part_init (struct auto_task *t, unsigned side)
{
  struct auto_part *p = &t->part[side];

  p->task = t;
  p->side = side;
  p->job = *t->job;
  t->nr_left++;
  return p;
}

static void
cut_rects (struct auto_task *t, size_t nr)
{
  const struct matrix *a = t->job->matrix;
  struct coder_job *far = &part_init (t, FAR)->job;
  struct coder_job *near = &part_init (t, NEAR)->job;

  far->nr_rects = nr;
  near->nr_rects -= nr;
  near->in += nr * a->cols;
  near->out += nr * a->rows;
  if (near->crc)
    near->crc += nr * (a->cols + a->rows) * (near->cell_len / BLOCK_LEN);
}

static size_t
nr_crcs (const struct coder_job *job)
{
  return job->nr_rects * (job->matrix->cols + job->matrix->rows) *
    (job->cell_len / BLOCK_LEN);
}

/* 0, or -1: no memory. */
static int
cut_bands (struct auto_task *t, size_t len)
{
  const struct coder_job *job = t->job;
  size_t nr_in = job->nr_rects * job->matrix->cols;
  size_t nr_out = job->nr_rects * job->matrix->rows;
  struct coder_job *far = &part_init (t, FAR)->job;
  struct coder_job *near = &part_init (t, NEAR)->job;

  far->cell_len = len;
  near->cell_len -= len;
  t->in = malloc (MAX (nr_in, 1) * sizeof t->in[0]);
  t->out = malloc (MAX (nr_out, 1) * sizeof t->out[0]);
  if (t->in == NULL || t->out == NULL)
    return -1;
  for (size_t i = 0; i < nr_in; i++)
    t->in[i] = job->in[i] + len;
  for (size_t j = 0; j < nr_out; j++)
    t->out[j] = job->out[j] + len;
  near->in = t->in;
  near->out = t->out;
  for (unsigned s = 0; job->crc && s < 2; s++) {
    struct auto_part *p = &t->part[s];

    p->crc = malloc (MAX (nr_crcs (&p->job), 1) * sizeof p->crc[0]);
    if (p->crc == NULL)
      return -1;
    p->job.crc = p->crc;
  }
  return 0;
}

static void
task_free (struct auto_task *t)
{
  if (t) {
    free (t->part[NEAR].crc);
    free (t->part[FAR].crc);
    free (t->in);
    free (t->out);
    free (t);
  }
}

struct auto_task *
auto_task_new (struct coder_job *job, const struct auto_units *u,
               size_t far_units)
{
  struct auto_task *t = calloc (1, sizeof *t);

  if (t == NULL)
    return NULL;
  t->job = job;
  if (far_units == 0)
    part_init (t, NEAR);
  else if (far_units >= u->nr)
    part_init (t, FAR);
  else if (u->len == 0)
    cut_rects (t, far_units);
  else if (cut_bands (t, far_units * u->len) == -1) {
    task_free (t);
    return NULL;
  }
  return t;
}

/* The CRCs of a band, that begins with block first, to their places. */
static void
place_crcs (const struct auto_part *p, const struct coder_job *job,
            size_t first)
{
  size_t nr_cells = job->nr_rects * (job->matrix->cols + job->matrix->rows);
  size_t nr_blocks = p->job.cell_len / BLOCK_LEN;
  size_t stride = job->cell_len / BLOCK_LEN;

  for (size_t i = 0; i < nr_cells; i++)
    memcpy (job->crc + i * stride + first, p->crc + i * nr_blocks,
            nr_blocks * sizeof p->crc[0]);
}

void
auto_task_part_done (struct auto_task *t, int error)
{
  struct coder_job *job = t->job;
  int none = 0;

  if (error)
    __atomic_compare_exchange_n (&t->error, &none, error, false,
                                 __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  if (__atomic_sub_fetch (&t->nr_left, 1, __ATOMIC_ACQ_REL) > 0)
    return;
  if (t->part[FAR].crc) {
    place_crcs (&t->part[FAR], job, 0);
    place_crcs (&t->part[NEAR], job, t->part[FAR].job.cell_len / BLOCK_LEN);
  }
  error = t->error;
  task_free (t);
  job->done (job, error);
}
