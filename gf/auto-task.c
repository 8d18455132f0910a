/* gpuraid: one job for two coders.
 *
 * Cuts a job in two, and puts the answers together.  Cells are never
 * copied; the CRCs of a band are, since those of whole cells lie together.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
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

/* ---- parts -------------------------------------------------------------- */

static size_t
nr_crcs (const struct coder_job *job)
{
  return job->nr_rects * (job->matrix->cols + job->matrix->rows) *
    (job->cell_len / BLOCK_LEN);
}

void
auto_part_free (struct auto_part *p)
{
  struct auto_task *t = p->task;

  if (p != &t->whole) {
    free (p->crc);
    free (p->in);
    free (p->out);
    free (p);
  }
  auto_task_leave (t);
}

static void
take_rects (struct auto_part *p, size_t first, size_t nr)
{
  struct coder_job *job = &p->job;
  const struct matrix *a = job->matrix;

  job->nr_rects = nr;
  job->in += first * a->cols;
  job->out += first * a->rows;
  if (job->crc)
    job->crc += first * (a->cols + a->rows) * (job->cell_len / BLOCK_LEN);
}

/* 0, or -1: no memory. */
static int
take_band (struct auto_part *p, size_t off, size_t len)
{
  struct coder_job *job = &p->job;
  const size_t nr_in = job->nr_rects * job->matrix->cols;
  const size_t nr_out = job->nr_rects * job->matrix->rows;

  p->in = malloc (MAX (nr_in, 1) * sizeof p->in[0]);
  p->out = malloc (MAX (nr_out, 1) * sizeof p->out[0]);
  if (p->in == NULL || p->out == NULL)
    return -1;
  for (size_t i = 0; i < nr_in; i++)
    p->in[i] = job->in[i] + off;
  for (size_t j = 0; j < nr_out; j++)
    p->out[j] = job->out[j] + off;
  job->in = p->in;
  job->out = p->out;
  job->cell_len = len;
  if (job->crc) {
    p->first_block = off / BLOCK_LEN;
    p->crc = malloc (MAX (nr_crcs (job), 1) * sizeof p->crc[0]);
    job->crc = p->crc;
  }
  return job->crc == NULL && p->task->job->crc ? -1 : 0;
}

struct auto_part *
auto_part_new (struct auto_task *t, size_t first, size_t nr)
{
  const size_t len = t->units.len;
  const bool all = nr == t->units.nr;
  struct auto_part *p = all ? &t->whole : malloc (sizeof *p);

  if (p == NULL)
    return NULL;
  auto_task_keep (t);
  /* The rest is set when it is given. */
  p->job = *t->job;
  p->task = t;
  p->is_slice = p->is_here = false;
  p->first_block = 0;
  p->crc = NULL;
  p->in = NULL;
  p->out = NULL;
  if (!all && len == 0)
    take_rects (p, first, nr);
  else if (!all && take_band (p, first * len, nr * len) == -1) {
    auto_part_free (p);
    return NULL;
  }
  __atomic_add_fetch (&t->nr_left, 1, __ATOMIC_RELAXED);
  return p;
}

/* The CRCs of a band to their places. */
static void
place_crcs (const struct auto_part *p)
{
  const struct coder_job *job = p->task->job;
  size_t nr_cells = job->nr_rects * (job->matrix->cols + job->matrix->rows);
  size_t nr_blocks = p->job.cell_len / BLOCK_LEN;
  size_t stride = job->cell_len / BLOCK_LEN;

  for (size_t i = 0; i < nr_cells; i++)
    memcpy (job->crc + i * stride + p->first_block, p->crc + i * nr_blocks,
            nr_blocks * sizeof p->crc[0]);
}

void
auto_part_cancel (struct auto_part *p)
{
  /* Not the last: the task is held. */
  __atomic_sub_fetch (&p->task->nr_left, 1, __ATOMIC_RELAXED);
  auto_part_free (p);
}

void
auto_part_done (struct auto_part *p)
{
  if (p->error)
    auto_task_fail (p->task, p->error);
  else if (p->crc)
    place_crcs (p);
}

/* ---- tasks -------------------------------------------------------------- */

struct auto_task *
auto_task_new (struct coder_job *job, const struct auto_units *u)
{
  struct auto_task *t = malloc (sizeof *t);

  if (t == NULL)
    return NULL;
  /* But for its part: see auto_part_new. */
  t->job = job;
  t->units = *u;
  t->nr_left = t->nr_users = 1;
  t->error = 0;
  t->first = 0;
  t->end = u->nr;
  return t;
}

void
auto_task_fail (struct auto_task *t, int error)
{
  int none = 0;

  __atomic_compare_exchange_n (&t->error, &none, error, false,
                               __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void
auto_task_keep (struct auto_task *t)
{
  __atomic_add_fetch (&t->nr_users, 1, __ATOMIC_RELAXED);
}

void
auto_task_leave (struct auto_task *t)
{
  if (__atomic_sub_fetch (&t->nr_users, 1, __ATOMIC_ACQ_REL) == 0)
    free (t);
}

void
auto_task_cancel (struct auto_task *t)
{
  assert (t->nr_users == 1);
  free (t);
}

void
auto_task_release (struct auto_task *t)
{
  if (__atomic_sub_fetch (&t->nr_left, 1, __ATOMIC_ACQ_REL) > 0)
    return;
  t->job->done (t->job, t->error);
  auto_task_leave (t);
}

/* ---- those that are done ------------------------------------------------ */

void
auto_ended_put (struct auto_ended *e, struct auto_part *p)
{
  p->next = __atomic_load_n (&e->last, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n (&e->last, &p->next, p, true,
                                       __ATOMIC_RELEASE, __ATOMIC_RELAXED))
    ;
}

struct auto_part *
auto_ended_take (struct auto_ended *e)
{
  struct auto_part *p, *first = NULL;

  if (__atomic_load_n (&e->last, __ATOMIC_RELAXED) == NULL)
    return NULL;
  p = __atomic_exchange_n (&e->last, NULL, __ATOMIC_ACQUIRE);
  while (p) {
    struct auto_part *before = p->next;

    p->next = first;
    first = p;
    p = before;
  }
  return first;
}
