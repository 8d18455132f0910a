/* gpuraid: make XOR programs.
 *
 * The pairs come from gf/xor/pairs.c.  Here they become equations.  A temporary
 * used once is written out where it is used; one that is all of an output
 * becomes the output.  Equations are ordered so that a temporary is made just
 * before the first output that needs it, which keeps few alive.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bits.h"
#include "common/cleanup.h"
#include "gf/xor/pairs.h"
#include "gf/xor/program.h"

#define NONE UINT32_MAX

/* What is known of a variable, here numbered as in struct xor_pairs. */
struct var {
  unsigned uses;                /* in rows and pairs */
  uint32_t same;                /* a temporary that is this output, or the
                                 * other way round; or NONE */
  uint32_t first, nr;           /* its terms in maker.term, all of them written
                                 * out */
  bool emitted;
  uint16_t name;                /* in the program */
};

struct maker {
  const struct xor_pairs *p;
  bool fold;                    /* write out what is used once */
  bool share;                   /* outputs may be terms */
  unsigned fixed;               /* inputs and outputs */
  struct var *var;
  uint16_t *term;
  size_t nr_terms, max_terms;
  struct xor_program *prog;
};

void
xor_program_free (struct xor_program *prog)
{
  if (prog == NULL)
    return;
  free (prog->equation);
  free (prog->term);
  free (prog);
}

size_t
xor_program_nr_xors (const struct xor_program *prog)
{
  size_t nr = 0;

  for (unsigned i = 0; i < prog->nr_equations; i++)
    nr += MAX (prog->equation[i].nr_terms, 1) - 1;
  return nr;
}

static void
count_uses (struct maker *k)
{
  const struct xor_pairs *p = k->p;

  for (unsigned v = 0; v < p->nr_vars; v++)
    k->var[v].same = NONE;
  for (unsigned t = k->fixed; t < p->nr_vars; t++)
    for (unsigned i = 0; i < 2; i++)
      k->var[p->pair[t-k->fixed][i]].uses++;
  for (unsigned r = 0; r < p->nr_out; r++)
    for (unsigned i = 0; i < p->row[r].nr; i++)
      k->var[p->row[r].var[i]].uses++;
}

/* An output that is one temporary, which others use too. */
static void
find_same (struct maker *k)
{
  const struct xor_pairs *p = k->p;

  for (unsigned r = 0; r < p->nr_out; r++) {
    const unsigned t = p->row[r].var[0];

    if (p->row[r].nr == 1 && t >= k->fixed && k->var[t].uses > 1 &&
        k->var[t].same == NONE) {
      k->var[t].same = p->nr_in + r;
      k->var[p->nr_in+r].same = t;
    }
  }
}

static int
add_term (struct maker *k, unsigned v)
{
  if (k->nr_terms == k->max_terms) {
    size_t max = MAX (2 * k->max_terms, 256);
    void *term = realloc (k->term, max * sizeof k->term[0]);

    if (term == NULL)
      return -1;
    k->term = term;
    k->max_terms = max;
  }
  k->term[k->nr_terms++] = v;
  return 0;
}

/* The terms of variable v are those of vars, or their terms. */
static int
define (struct maker *k, unsigned v, const uint16_t *vars, unsigned nr)
{
  const size_t first = k->nr_terms;

  for (unsigned i = 0; i < nr; i++) {
    const struct var *t = &k->var[vars[i]];

    if (!k->fold || vars[i] < k->fixed || t->uses > 1) {
      if (add_term (k, t->same == NONE || vars[i] < k->fixed ? vars[i]
                       : t->same) == -1)
        return -1;
      continue;
    }
    for (unsigned j = 0; j < t->nr; j++)
      if (add_term (k, k->term[t->first+j]) == -1)
        return -1;
  }
  k->var[v].first = first;
  k->var[v].nr = k->nr_terms - first;
  return 0;
}

static int
define_all (struct maker *k)
{
  const struct xor_pairs *p = k->p;

  for (unsigned t = k->fixed; t < p->nr_vars; t++)
    if (define (k, t, p->pair[t-k->fixed], 2) == -1)
      return -1;
  for (unsigned r = 0; r < p->nr_out; r++) {
    struct var *out = &k->var[p->nr_in+r];

    if (out->same != NONE) {
      out->first = k->var[out->same].first;
      out->nr = k->var[out->same].nr;
    }
    else if (define (k, p->nr_in + r, p->row[r].var, p->row[r].nr) == -1)
      return -1;
  }
  return 0;
}

/* Does this temporary have an equation of its own? */
static bool
stays (const struct maker *k, unsigned t)
{
  return !k->fold || (k->var[t].uses > 1 && k->var[t].same == NONE);
}

static void
name_all (struct maker *k)
{
  const struct xor_pairs *p = k->p;
  unsigned n = p->nr_in;

  for (unsigned i = 0; i < p->nr_in; i++)
    k->var[i].name = i;
  for (unsigned t = k->fixed; t < p->nr_vars; t++)
    if (stays (k, t))
      k->var[t].name = n++;
  k->prog->nr_in = p->nr_in;
  k->prog->nr_temps = n - p->nr_in;
  k->prog->nr_out = p->nr_out;
  for (unsigned r = 0; r < p->nr_out; r++)
    k->var[p->nr_in+r].name = n++;
}

static int
compare_terms (const void *av, const void *bv)
{
  return (int) *(const uint16_t *) av - *(const uint16_t *) bv;
}

static void
emit (struct maker *k, unsigned v, uint32_t *nr_terms)
{
  struct xor_program *prog = k->prog;
  struct xor_equation *e = &prog->equation[prog->nr_equations++];
  const struct var *var = &k->var[v];

  e->target = var->name;
  e->first_term = *nr_terms;
  e->nr_terms = var->nr;
  for (unsigned i = 0; i < var->nr; i++)
    prog->term[(*nr_terms)++] = k->var[k->term[var->first+i]].name;
  qsort (prog->term + e->first_term, e->nr_terms, sizeof prog->term[0],
         compare_terms);
  k->var[v].emitted = true;
}

/* Emit v after the variables that it needs.  Recursion could be as deep as
 * there are variables.
 */
static void
emit_with_terms (struct maker *k, unsigned v, uint16_t *stack,
                 uint32_t *nr_terms)
{
  unsigned depth = 0;

  stack[depth++] = v;
  while (depth > 0) {
    const struct var *var = &k->var[stack[depth-1]];
    unsigned i = 0;

    while (i < var->nr && (k->term[var->first+i] < k->p->nr_in ||
                           k->var[k->term[var->first+i]].emitted))
      i++;
    if (i < var->nr)
      stack[depth++] = k->term[var->first+i];
    else if (!k->var[stack[--depth]].emitted)
      emit (k, stack[depth], nr_terms);
  }
}

static int
emit_all (struct maker *k)
{
  const struct xor_pairs *p = k->p;
  CLEANUP_FREE uint16_t *stack = malloc ((size_t) 2 * p->nr_vars + 1);
  struct xor_program *prog = k->prog;
  uint32_t nr_terms = 0;
  size_t nr = 0;

  name_all (k);
  for (unsigned v = p->nr_in; v < p->nr_vars; v++)
    nr += k->var[v].nr;
  prog->equation = calloc (prog->nr_temps + prog->nr_out + 1,
                           sizeof prog->equation[0]);
  prog->term = calloc (nr + 1, sizeof prog->term[0]);
  if (stack == NULL || prog->equation == NULL || prog->term == NULL)
    return -1;
  for (unsigned r = 0; r < p->nr_out; r++)
    if (!k->var[p->nr_in+r].emitted)
      emit_with_terms (k, p->nr_in + r, stack, &nr_terms);
  assert (prog->nr_equations == prog->nr_temps + prog->nr_out);
  return 0;
}

static struct xor_program *
make_program (const struct xor_pairs *p, bool fold, bool share)
{
  struct maker k = { .p = p, .fold = fold, .share = share,
                      .fixed = p->nr_in + p->nr_out };
  int r = -1;

  k.var = calloc (p->nr_vars + 1, sizeof k.var[0]);
  k.prog = calloc (1, sizeof *k.prog);
  if (k.var && k.prog) {
    count_uses (&k);
    if (share)
      find_same (&k);
    r = define_all (&k);
    if (r == 0)
      r = emit_all (&k);
  }
  free (k.var);
  free (k.term);
  if (r == -1) {
    xor_program_free (k.prog);
    return NULL;
  }
  return k.prog;
}

/* ---- styles ---------------------------------------------------------- */

/* Steps, of some 2 ns each: for one attempt, which only the widest
 * matrices reach, and for all attempts of XOR_BEST.
 */
#define MAX_WORK (UINT64_C (1) << 28)
#define BEST_WORK (UINT64_C (50) << 20)
#define BEST_ATTEMPTS 300

/* The least outputs that share a pair, in the style for the CPU.  A temporary
 * that n outputs use saves n loads, and costs two and a store that the first of
 * them waits for.  Measured with 4 to 12: less is slower everywhere, more is
 * slower at 32+16.
 */
#define LOADS_ROWS 10

static const uint64_t some_seed = 0x9e3779b97f4a7c15;

/* Rows of outputs pay for few matrices, and with a different threshold for
 * each, so each threshold is tried.
 */
static struct xor_program *
best_program (struct xor_pairs *p, const struct bit_matrix *b)
{
  static const unsigned percents[] = { 0, 100, 70, 40 };
  struct xor_program *best = NULL, *prog;
  unsigned nr_xors = 0;
  uint64_t work = 0;

  for (unsigned n = 0; n < BEST_ATTEMPTS; n++) {
    if (xor_pairs_load (p, b, percents[n % ARRAY_LEN (percents)],
                        some_seed + n) == -1 ||
        xor_pairs_greedy (p, 2, MAX_WORK) == -1)
      goto err;
    if (best == NULL || xor_pairs_nr_xors (p) < nr_xors) {
      prog = make_program (p, true, true);
      if (prog == NULL)
        goto err;
      xor_program_free (best);
      best = prog;
      nr_xors = xor_pairs_nr_xors (p);
    }
    work += p->work;
    if (work + p->work > BEST_WORK)
      break;
  }
  return best;

 err:
  xor_program_free (best);
  return NULL;
}

struct xor_program *
xor_program_new (const struct matrix *a, enum xor_style style)
{
  struct bit_matrix *b = bit_matrix_new (a);
  struct xor_pairs *p = b ? xor_pairs_new (b) : NULL;
  struct xor_program *prog = NULL;
  int r = -1;

  if (p && style == XOR_BEST)
    prog = best_program (p, b);
  else if (p) {
    r = xor_pairs_load (p, b, 0, some_seed);
    if (r == 0 && style == XOR_ITERATIVE)
      r = xor_pairs_iterative (p, MAX_WORK);
    else if (r == 0 && style != XOR_DIRECT)
      r = xor_pairs_greedy (p, style == XOR_LOADS ? LOADS_ROWS : 2,
                            MAX_WORK);
    if (r == 0)
      prog = make_program (p, style >= XOR_GREEDY, style == XOR_GREEDY);
  }
  xor_pairs_free (p);
  free (b);
  return prog;
}
