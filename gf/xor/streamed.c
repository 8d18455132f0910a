/* gpuraid: write XOR programs that stream.
 *
 * An output is a chain of variables, each the one before and the sums of
 * one step's inputs; the last is the output.  A step is one input, or two
 * where a symbol has 4 bits or fewer, since hardware XORs three at a time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bits.h"
#include "common/cleanup.h"
#include "gf/matrix/bit-matrix.h"
#include "gf/xor/streamed.h"

#define GROUP 4u                /* packets whose sums are made */
#define MAX_STEP_GROUPS 2u
#define NONE UINT32_MAX

struct stream {
  const struct matrix *a;
  const struct bit_matrix *bits;
  unsigned group;               /* packets of a group, at most GROUP */
  unsigned groups;              /* of an input */
  unsigned inputs;              /* of a step */
  unsigned nr_steps;
  uint32_t *chain;              /* of each output: the variable, or NONE */
  unsigned *last_step;          /* of each output: nr_steps if it is 0 */
  unsigned next_temp;           /* from nr_in + nr_out, until renumber */
  size_t nr_terms, max_terms, max_equations;
  struct xor_program *prog;
};

static int
begin_equation (struct stream *s, uint32_t target)
{
  struct xor_program *p = s->prog;

  if (p->nr_equations == s->max_equations) {
    size_t max = MAX (2 * s->max_equations, 256);
    void *e = realloc (p->equation, max * sizeof p->equation[0]);

    if (e == NULL)
      return -1;
    p->equation = e;
    s->max_equations = max;
  }
  if (target > UINT16_MAX) {
    errno = ENOTSUP;
    return -1;
  }
  p->equation[p->nr_equations++] = (struct xor_equation) {
    .target = target, .first_term = s->nr_terms,
  };
  return 0;
}

static int
add_term (struct stream *s, uint32_t var)
{
  struct xor_program *p = s->prog;

  if (s->nr_terms == s->max_terms) {
    size_t max = MAX (2 * s->max_terms, 1024);
    void *t = realloc (p->term, max * sizeof p->term[0]);

    if (t == NULL)
      return -1;
    p->term = t;
    s->max_terms = max;
  }
  p->term[s->nr_terms++] = var;
  p->equation[p->nr_equations-1].nr_terms++;
  return 0;
}

/* Which packets of group g, counted over all inputs, are in an output. */
static unsigned
group_mask (const struct stream *s, unsigned output, unsigned g)
{
  const unsigned input = g / s->groups, first = g % s->groups * s->group;
  unsigned mask = 0;

  if (input >= s->a->cols)
    return 0;
  for (unsigned n = 0; n < s->group && first + n < s->a->w; n++)
    if (bit_matrix_get (s->bits, output, input * s->a->w + first + n))
      mask |= 1u << n;
  return mask;
}

static uint32_t
packet (const struct stream *s, unsigned g, unsigned n)
{
  return g / s->groups * s->a->w + g % s->groups * s->group + n;
}

/* Make the sums of group g that some output has.  var: by mask. */
static int
make_sums (struct stream *s, unsigned g, uint32_t var[1 << GROUP])
{
  bool need[1 << GROUP] = { false };

  for (unsigned o = 0; o < s->prog->nr_out; o++)
    need[group_mask (s, o, g)] = true;
  for (unsigned n = 0; n < s->group; n++)
    var[1u << n] = packet (s, g, n);
  for (unsigned size = 2; size <= s->group; size++)
    for (unsigned mask = 1; mask < 1u << s->group; mask++) {
      unsigned rest = mask & (mask - 1);

      if (!need[mask] || nr_bits (mask) != size)
        continue;
      var[mask] = s->next_temp++;
      if (begin_equation (s, var[mask]) == -1 ||
          add_term (s, var[mask & -mask]) == -1)
        return -1;
      if (need[rest] || nr_bits (rest) == 1) {
        if (add_term (s, var[rest]) == -1)
          return -1;
      }
      else
        FOR_EACH_BIT (n, rest)
          if (add_term (s, var[1u << n]) == -1)
            return -1;
    }
  return 0;
}

static int
do_step (struct stream *s, unsigned step)
{
  const unsigned nr = s->inputs * s->groups;
  uint32_t var[MAX_STEP_GROUPS][1 << GROUP];

  for (unsigned n = 0; n < nr; n++)
    if (step * nr + n < s->a->cols * s->groups &&
        make_sums (s, step * nr + n, var[n]) == -1)
      return -1;
  for (unsigned o = 0; o < s->prog->nr_out; o++) {
    unsigned mask[MAX_STEP_GROUPS], any = 0;
    uint32_t target;

    for (unsigned n = 0; n < nr; n++)
      any |= mask[n] = group_mask (s, o, step * nr + n);
    if (any == 0)
      continue;
    target = step == s->last_step[o] ? s->prog->nr_in + o : s->next_temp++;
    if (begin_equation (s, target) == -1 ||
        (s->chain[o] != NONE && add_term (s, s->chain[o]) == -1))
      return -1;
    for (unsigned n = 0; n < nr; n++)
      if (mask[n] && add_term (s, var[n][mask[n]]) == -1)
        return -1;
    s->chain[o] = target;
  }
  return 0;
}

static void
find_last_steps (struct stream *s)
{
  const unsigned nr = s->inputs * s->groups;

  for (unsigned o = 0; o < s->prog->nr_out; o++) {
    s->chain[o] = NONE;
    s->last_step[o] = s->nr_steps;
    for (unsigned g = 0; g < s->a->cols * s->groups; g++)
      if (group_mask (s, o, g))
        s->last_step[o] = g / nr;
  }
}

/* Temporaries come before outputs in a program. */
static void
renumber (struct stream *s)
{
  struct xor_program *p = s->prog;
  const unsigned outputs = p->nr_in, temps = p->nr_in + p->nr_out;

  p->nr_temps = s->next_temp - temps;
  for (unsigned i = 0; i < p->nr_equations; i++) {
    uint16_t *v = &p->equation[i].target;

    *v = *v >= temps ? *v - p->nr_out : *v + p->nr_temps;
  }
  for (size_t i = 0; i < s->nr_terms; i++) {
    uint16_t *v = &p->term[i];

    if (*v >= temps)
      *v -= p->nr_out;
    else if (*v >= outputs)
      *v += p->nr_temps;
  }
}

static int
make_program (struct stream *s)
{
  find_last_steps (s);
  for (unsigned o = 0; o < s->prog->nr_out; o++)
    if (s->last_step[o] == s->nr_steps &&
        begin_equation (s, s->prog->nr_in + o) == -1)
      return -1;
  for (unsigned step = 0; step < s->nr_steps; step++)
    if (do_step (s, step) == -1)
      return -1;
  renumber (s);
  return 0;
}

struct xor_program *
xor_program_new_streamed (const struct matrix *a)
{
  const unsigned nr_out = a->rows * a->w;
  CLEANUP_FREE struct bit_matrix *bits = bit_matrix_new (a);
  CLEANUP_FREE uint32_t *chain = calloc (nr_out + 1, sizeof *chain);
  CLEANUP_FREE unsigned *last_step = calloc (nr_out + 1, sizeof *last_step);
  struct stream s = {
    .a = a, .bits = bits, .chain = chain, .last_step = last_step,
    .groups = a->w <= GROUP ? 1 : 2, .inputs = a->w <= GROUP ? 2 : 1,
    .next_temp = a->cols * a->w + nr_out,
  };

  if (bits == NULL || chain == NULL || last_step == NULL)
    return NULL;
  s.group = div_round_up (a->w, s.groups);
  s.nr_steps = div_round_up (a->cols, s.inputs);
  s.prog = calloc (1, sizeof *s.prog);
  if (s.prog == NULL)
    return NULL;
  s.prog->nr_in = a->cols * a->w;
  s.prog->nr_out = nr_out;
  if (make_program (&s) == 0)
    return s.prog;
  xor_program_free (s.prog);
  return NULL;
}

unsigned
xor_program_nr_alive (const struct xor_program *p)
{
  const unsigned nr_vars = p->nr_in + p->nr_temps + p->nr_out;
  CLEANUP_FREE uint32_t *last_use = calloc (nr_vars + 1, sizeof *last_use);
  CLEANUP_FREE bool *alive = calloc (nr_vars + 1, sizeof *alive);
  unsigned nr = 0, most = 0;

  if (last_use == NULL || alive == NULL)
    return nr_vars;
  for (unsigned i = 0; i < p->nr_equations; i++)
    for (unsigned n = 0; n < p->equation[i].nr_terms; n++)
      last_use[p->term[p->equation[i].first_term+n]] = i;
  for (unsigned i = 0; i < p->nr_equations; i++) {
    const struct xor_equation *e = &p->equation[i];
    const uint16_t *term = &p->term[e->first_term];

    for (unsigned n = 0; n < e->nr_terms; n++)
      if (!alive[term[n]]) {
        alive[term[n]] = true;
        nr++;
      }
    most = MAX (most, nr + 1);
    for (unsigned n = 0; n < e->nr_terms; n++)
      if (last_use[term[n]] == i)
        nr--;
    if (last_use[e->target] > i) {
      alive[e->target] = true;
      nr++;
    }
  }
  return most;
}
