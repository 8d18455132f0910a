/* gpuraid: coder auto with two coders that only take (virtual) time, and
 * jobs for them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/auto-sim.h"
#include "tests/gf-reference.h"

uint8_t *auto_sim_arena;
const size_t auto_sim_arena_len = (size_t) 200 << 20;

static const uint8_t *in[auto_sim_max_cells];
static uint8_t *out[auto_sim_max_cells];

int
auto_sim_set_up (void **state)
{
  static uint8_t cell[64];

  auto_sim_arena = ref_alloc (auto_sim_arena_len);
  for (unsigned i = 0; i < auto_sim_max_cells; i++)
    in[i] = out[i] = cell;
  return 0;
}

int
auto_sim_tear_down (void **state)
{
  free (auto_sim_arena);
  return 0;
}

struct matrix *
auto_sim_encode (unsigned k, unsigned m)
{
  uint8_t coef[32 * 32];
  struct matrix *a;

  assert_true (k * m <= sizeof coef);
  matrix_rs_parity (k, m, coef);
  a = matrix_new (m, k, coef);
  assert_non_null (a);
  return a;
}

struct coder *
auto_sim_new (struct coder_sim *sim, const struct matrix *a)
{
  struct coder_auto_clock clock;
  struct coder *c = coder_auto_new (&sim->side[0].coder, sim->near_leaves,
                                    &sim->side[1].coder, a,
                                    auto_sim_cell_len);

  assert_non_null (c);
  coder_sim_clock (sim, &clock);
  coder_auto_set_clock (c, &clock);
  return c;
}

struct coder *
auto_sim_start (struct coder_sim *sim, const struct matrix *a)
{
  struct coder *c = auto_sim_new (sim, a);

  assert_int_equal (coder_start (c, auto_sim_arena, auto_sim_arena_len), 0);
  return c;
}

void
auto_sim_job (struct coder_job *job, const struct matrix *a, size_t nr_rects)
{
  assert_true (nr_rects * a->cols <= auto_sim_max_cells);
  assert_true (nr_rects * a->rows <= auto_sim_max_cells);
  memset (job, 0, sizeof *job);
  job->matrix = a;
  job->cell_len = auto_sim_cell_len;
  job->nr_rects = nr_rects;
  job->in = in;
  job->out = out;
}

double
auto_sim_bytes (const struct coder_job *job)
{
  return (double) job->nr_rects * job->matrix->cols * job->cell_len;
}
