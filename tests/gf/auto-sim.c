/* gpuraid: two coders that only take time, a virtual one, for coder auto.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/bits.h"
#include "tests/coder-stub.h"
#include "tests/gf-reference.h"
#include "tests/gf/auto-sim.h"

struct auto_sim_event {
  struct list link;
  struct auto_sim_side *side;
  struct coder_job *job;
  double at;
  int error;
};

uint8_t *auto_sim_arena;

static void
submit (struct coder *coder, struct coder_job *job)
{
  struct auto_sim_side *s = (struct auto_sim_side *) coder;
  struct auto_sim_event *e = ref_alloc (sizeof *e);
  unsigned next = 0;

  for (unsigned i = 1; i < s->nr_workers; i++)
    if (s->free_at[i] < s->free_at[next])
      next = i;
  s->free_at[next] = MAX (s->free_at[next], s->sim->now) +
    auto_sim_bytes (job) * s->slowness * s->nr_workers / s->rate;
  *e = (struct auto_sim_event) {
    .side = s, .job = job, .at = s->free_at[next] + s->fixed,
    .error = s->error,
  };
  if (++s->nr_jobs == s->late)
    e->at = s->free_at[next] += 20e-3;
  list_append (&s->sim->jobs, &e->link);
  s->nr_busy++;
  s->most_busy = MAX (s->most_busy, s->nr_busy);
}

static const struct coder_ops auto_sim_ops[2] = {
  { .name = "cpu", .start = coder_stub_start, .submit = submit,
    .shares = coder_stub_shares, .free = coder_stub_free },
  { .name = "gpu", .start = coder_stub_start, .submit = submit,
    .shares = coder_stub_shares, .free = coder_stub_free },
};

void
auto_sim_init (struct auto_sim *sim)
{
  *sim = (struct auto_sim) {
    .now = 1000,
    .side = {
      [SIM_CPU] = { .nr_workers = 14, .rate = 75 * GB, .fixed = 1 * US },
      [SIM_GPU] = { .nr_workers = 1, .rate = 45 * GB, .fixed = 20 * US },
    },
  };
  list_init (&sim->jobs);
  for (unsigned i = 0; i < 2; i++) {
    sim->side[i].coder.ops = &auto_sim_ops[i];
    sim->side[i].sim = sim;
    sim->side[i].slowness = 1;
  }
}

bool
auto_sim_step (struct auto_sim *sim)
{
  struct auto_sim_event *first = NULL;
  struct coder_job *job;
  int error;

  list_for_each (l, &sim->jobs) {
    struct auto_sim_event *e = list_item (l, struct auto_sim_event, link);

    if (first == NULL || e->at < first->at)
      first = e;
  }
  if (first == NULL)
    return false;
  list_remove (&first->link);
  sim->now = MAX (sim->now, first->at);
  first->side->nr_busy--;
  job = first->job;
  error = first->error;
  free (first);
  job->done (job, error);
  return true;
}

static double
auto_sim_now (void *sim)
{
  return ((struct auto_sim *) sim)->now;
}

static void
auto_sim_pause (void *sim)
{
  assert_true (auto_sim_step (sim));
}

void
auto_sim_clock (struct auto_sim *sim, struct coder_auto_clock *clock)
{
  *clock = (struct coder_auto_clock) { auto_sim_now, auto_sim_pause, sim };
}

struct coder *
auto_sim_start (struct auto_sim *sim, const struct matrix *a)
{
  struct coder_auto_clock clock;
  struct coder *c = coder_auto_new (&sim->side[SIM_CPU].coder,
                                    sim->side[SIM_CPU].nr_workers,
                                    &sim->side[SIM_GPU].coder, a,
                                    auto_sim_cell_len);

  assert_non_null (c);
  auto_sim_clock (sim, &clock);
  coder_auto_set_clock (c, &clock);
  assert_int_equal (coder_start (c, auto_sim_arena, auto_sim_arena_len), 0);
  for (unsigned i = 0; i < 2; i++)
    sim->side[i].nr_jobs = sim->side[i].most_busy = 0;
  return c;
}

struct matrix *
auto_sim_matrix (unsigned k, unsigned m)
{
  uint8_t coef[32 * 32];
  struct matrix *a;

  assert_true (k * m <= sizeof coef);
  matrix_rs_parity (k, m, coef);
  a = matrix_new (m, k, coef);
  assert_non_null (a);
  return a;
}

void
auto_sim_job (struct coder_job *job, const struct matrix *a, size_t nr_rects)
{
  enum { max = 32768 };
  static const uint8_t *in[max];
  static uint8_t *out[max];

  assert_true (nr_rects * a->cols <= max && nr_rects * a->rows <= max);
  *job = (struct coder_job) {
    .matrix = a, .cell_len = auto_sim_cell_len, .nr_rects = nr_rects, .in = in,
    .out = out,
  };
}

double
auto_sim_bytes (const struct coder_job *job)
{
  return (double) job->nr_rects * job->matrix->cols * job->cell_len;
}
