/* gpuraid: loads for coder auto with coders that only take (virtual) time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gf/matrix.h"
#include "tests/auto-load.h"
#include "tests/gf-reference.h"

enum { max_streams = 16 };

/* Jobs, each submitted when the last one of its stream is done. */
struct stream {
  struct coder_job job;         /* first */
  struct load *load;
};

struct load {
  struct coder *coder;
  const struct matrix *matrix;
  const size_t *nr_rects;       /* of the jobs, in turn */
  unsigned nr_sizes, next;
  double left, done;            /* bytes */
  unsigned errors;
  struct stream stream[max_streams];
};

static void stream_done (struct coder_job *job, int error);

static void
submit_next (struct stream *s)
{
  struct load *l = s->load;

  auto_sim_job (&s->job, l->matrix, l->nr_rects[l->next++ % l->nr_sizes]);
  s->job.done = stream_done;
  l->left -= auto_sim_bytes (&s->job);
  coder_submit (l->coder, &s->job);
}

static void
stream_done (struct coder_job *job, int error)
{
  struct stream *s = (struct stream *) job;

  s->load->errors += error != 0;
  s->load->done += auto_sim_bytes (job);
  if (s->load->left > 0)
    submit_next (s);
}

double
auto_load (struct coder_sim *sim, struct coder *c, const struct matrix *a,
           unsigned nr_streams, const size_t *nr_rects, unsigned nr_sizes,
           unsigned nr_jobs)
{
  struct load *l = ref_alloc (sizeof *l);
  double began = sim->now, r;

  memset (l, 0, sizeof *l);
  l->coder = c;
  l->matrix = a;
  l->nr_rects = nr_rects;
  l->nr_sizes = nr_sizes;
  for (unsigned i = 0; i < nr_sizes; i++)
    l->left += (double) nr_rects[i] * a->cols * auto_sim_cell_len *
      nr_jobs / nr_sizes;
  for (unsigned i = 0; i < nr_streams; i++) {
    l->stream[i].load = l;
    submit_next (&l->stream[i]);
  }
  while (coder_sim_step (sim))
    ;
  assert_int_equal (l->errors, 0);
  r = l->done / (sim->now - began);
  free (l);
  return r;
}

void
pair_init (struct coder_sim *sim, const struct pair *p)
{
  coder_sim_init (sim, p->ceiling);
  sim->side[0].fixed = p->near_fixed;
  sim->side[0].rate = p->near_rate;
  sim->side[0].single = p->near_single;
  sim->side[0].small_len = 1 << 20;
  sim->side[1].fixed = p->far_fixed;
  sim->side[1].rate = p->far_rate;
}
