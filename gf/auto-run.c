/* gpuraid: jobs that only show how long they take.
 *
 * Each takes the next cells of the arena, so that they come from memory, as
 * those of an array's jobs may.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdlib.h>

#include "common/bits.h"
#include "common/cleanup.h"
#include "gf/auto-run.h"
#include "gf/balance.h"

void
auto_runs_init (struct auto_runs *runs)
{
  runs->cursor = 0;
  pthread_mutex_init (&runs->lock, NULL);
  pthread_cond_init (&runs->cond, NULL);
}

void
auto_runs_destroy (struct auto_runs *runs)
{
  pthread_cond_destroy (&runs->cond);
  pthread_mutex_destroy (&runs->lock);
}

double
auto_runs_now (const struct auto_runs *runs)
{
  return runs->clock->now (runs->clock->opaque);
}

size_t
auto_runs_rect_len (const struct auto_runs *runs)
{
  return (runs->matrix->rows + runs->matrix->cols) * runs->stride;
}

static void
run_done (struct coder_job *job, int error)
{
  struct auto_run *r = (struct auto_run *) job;
  double t = auto_runs_now (r->runs);
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&r->runs->lock);

  r->done = true;
  r->error = error;
  r->ended = t;
  pthread_cond_signal (&r->runs->cond);
}

void
auto_run_free (struct auto_run *r)
{
  if (r) {
    free (r->in);
    free (r->out);
    free (r);
  }
}

/* Cells lie as far apart as large ones do, whatever their length.  NULL
 * with errno.
 */
struct auto_run *
auto_run_new (struct auto_runs *runs, size_t nr_rects, size_t cell_len)
{
  const struct matrix *a = runs->matrix;
  size_t len = nr_rects * auto_runs_rect_len (runs);
  struct auto_run *r = calloc (1, sizeof *r);
  uint8_t *p;

  if (r == NULL)
    return NULL;
  r->in = malloc (nr_rects * a->cols * sizeof r->in[0]);
  r->out = malloc (nr_rects * a->rows * sizeof r->out[0]);
  if (r->in == NULL || r->out == NULL) {
    auto_run_free (r);
    return NULL;
  }
  if (runs->cursor + len > runs->arena_len)
    runs->cursor = 0;
  p = runs->arena + runs->cursor;
  runs->cursor += len;
  for (size_t n = 0; n < nr_rects; n++) {
    for (unsigned i = 0; i < a->cols; i++, p += runs->stride)
      r->in[n * a->cols + i] = p;
    for (unsigned j = 0; j < a->rows; j++, p += runs->stride)
      r->out[n * a->rows + j] = p;
  }
  r->runs = runs;
  r->job.matrix = a;
  r->job.cell_len = cell_len;
  r->job.nr_rects = nr_rects;
  r->job.in = r->in;
  r->job.out = r->out;
  r->job.done = run_done;
  return r;
}

void
auto_run_begin (struct auto_run *r, unsigned side)
{
  r->begun = true;
  r->began = auto_runs_now (r->runs);
  coder_submit (r->runs->side[side], &r->job);
}

bool
auto_run_is_done (struct auto_run *r)
{
  ACQUIRE_LOCK_FOR_CURRENT_SCOPE (&r->runs->lock);

  return r->done;
}

void
auto_run_wait (struct auto_run *r)
{
  const struct coder_auto_clock *clock = r->runs->clock;

  if (clock->pause) {
    while (!auto_run_is_done (r))
      clock->pause (clock->opaque);
    return;
  }
  pthread_mutex_lock (&r->runs->lock);
  while (!r->done)
    pthread_cond_wait (&r->runs->cond, &r->runs->lock);
  pthread_mutex_unlock (&r->runs->lock);
}

int
auto_runs_once (struct auto_runs *runs, const size_t nr[2], size_t cell_len,
                double *seconds)
{
  struct auto_run *r[2] = { NULL };
  double began = 0;
  int error = 0;

  for (unsigned s = 0; s < 2; s++) {
    if (nr[s] > 0 && (r[s] = auto_run_new (runs, nr[s], cell_len)) == NULL) {
      error = ENOMEM;
      goto out;
    }
  }
  /* Near may not come back before it is done. */
  if (r[FAR])
    auto_run_begin (r[FAR], FAR);
  if (r[NEAR])
    auto_run_begin (r[NEAR], NEAR);
  began = r[FAR] ? r[FAR]->began : r[NEAR] ? r[NEAR]->began : 0;
  *seconds = 0;
  for (unsigned s = 0; s < 2; s++) {
    if (r[s]) {
      auto_run_wait (r[s]);
      error = error ? error : r[s]->error;
      *seconds = MAX (*seconds, r[s]->ended - began);
    }
  }

 out:
  auto_run_free (r[NEAR]);
  auto_run_free (r[FAR]);
  return error;
}
