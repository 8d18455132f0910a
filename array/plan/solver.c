/* gpuraid: the matrix for a plan, made once and kept.
 *
 * One matrix serves encoding, a partial update, a degraded read, rebuild and
 * repair.  The unknowns are the old content of the k data roles and the new
 * content of the given ones.  Every cell that is read, given or to be made is
 * a linear form of them, so matrix_express finds the coefficients in every
 * case.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "array/plan/solver.h"
#include "common/bits.h"
#include "raidmap/layout/layout.h"

#define NR_BUCKETS 256u         /* 8 bits of the hash */
#define MAX_SOLUTIONS 2048u     /* then unused ones are freed; 2 KiB each at
                                 * most, usually 1 */

/* Sources are old content (k + m roles) and new (k); unknowns 2k; targets k +
 * m.  matrix_express has the same limits.
 */
#define MAX_SOURCES (2 * MAX_SLOTS)
#define MAX_VARS (2 * MAX_SLOTS)
#define MAX_TARGETS MAX_SLOTS
_Static_assert (MAX_SOURCES <= MATRIX_MAX && MAX_VARS <= MATRIX_MAX,
                "matrix_express");

struct solver {
  enum code code;
  unsigned w, k, m;
  unsigned nr;                  /* solutions */
  struct solution *bucket[NR_BUCKETS];
  /* Scratch memory of make_matrix. */
  uint8_t source[MAX_SOURCES * MAX_VARS];
  uint8_t target[MAX_TARGETS * MAX_VARS];
  uint8_t coef[MAX_TARGETS * MAX_SOURCES];
  uint8_t parity[];             /* m x k */
};

struct solver *
solver_new (enum code code, unsigned w, unsigned k, unsigned m)
{
  struct solver *s = calloc (1, sizeof *s + (size_t) k * m);

  if (s) {
    s->code = code;
    s->w = w;
    s->k = k;
    s->m = m;
    code_parity (code, w, k, m, s->parity);
  }
  return s;
}

static void
solution_free (struct solution *sol)
{
  matrix_free (sol->matrix);
  free (sol);
}

/* Free the solutions that no job uses. */
static void
trim (struct solver *s)
{
  for (unsigned b = 0; b < NR_BUCKETS; b++)
    for (struct solution **p = &s->bucket[b]; *p; ) {
      struct solution *sol = *p;

      if (sol->users > 0) {
        p = &sol->next;
        continue;
      }
      *p = sol->next;
      s->nr--;
      solution_free (sol);
    }
}

void
solver_free (struct solver *s)
{
  if (s)
    trim (s);
  free (s);
}

/* The content of a role as a form of the 2k unknowns: the old content of
 * data; for parity, the content with the given data applied.  What is known to
 * be zeroes adds nothing.
 */
static void
form (const struct solver *s, unsigned role, uint64_t given, uint64_t zeroes,
      uint8_t *v)
{
  const unsigned k = s->k;

  memset (v, 0, 2 * k);
  if (role < k) {
    v[role] = 1;
    return;
  }
  for (unsigned i = 0; i < k; i++)
    if ((zeroes & BIT (i)) == 0)
      v[given & BIT (i) ? k + i : i] = s->parity[(role - k) * k + i];
}

static struct matrix *
make_matrix (struct solver *s, const struct solution *sol)
{
  const unsigned nr_vars = 2 * s->k;
  unsigned nr_src = 0, nr_tgt = 0;

  FOR_EACH_BIT (r, sol->in)
    form (s, r, 0, sol->zeroes, &s->source[nr_src++ * nr_vars]);
  FOR_EACH_BIT (r, sol->given) {
    uint8_t *v = &s->source[nr_src++ * nr_vars];

    memset (v, 0, nr_vars);
    v[s->k + r] = 1;
  }
  FOR_EACH_BIT (r, sol->make)
    form (s, r, sol->given, sol->zeroes, &s->target[nr_tgt++ * nr_vars]);

  if (matrix_express (s->w, nr_vars, nr_src, s->source, nr_tgt, s->target,
                      s->coef) == -1)
    return NULL;
  return code_matrix (s->code, s->w, nr_tgt, nr_src, s->coef);
}

struct solution *
solver_get (struct solver *s, uint64_t in, uint64_t given, uint64_t make,
            uint64_t zeroes)
{
  const uint64_t h = (in * 0x9e3779b97f4a7c15) ^ (given * 0xc2b2ae3d27d4eb4f) ^
    (make * 0x165667b19e3779f9) ^ (zeroes * 0x27d4eb2f165667c5);
  struct solution **b, *sol;

  assert (((in | make) & ~LOW_BITS (s->k + s->m)) == 0 &&
          ((given | zeroes) & ~LOW_BITS (s->k)) == 0 &&
          ((in | given | make) & zeroes) == 0);
  /* All bits of a product's factors affect its high bits. */
  b = &s->bucket[h >> 56];
  for (sol = *b; sol; sol = sol->next)
    if (sol->in == in && sol->given == given && sol->make == make &&
        sol->zeroes == zeroes) {
      sol->users++;
      return sol;
    }

  if (s->nr >= MAX_SOLUTIONS)
    trim (s);
  sol = calloc (1, sizeof *sol);
  if (sol == NULL)
    return NULL;
  sol->in = in;
  sol->given = given;
  sol->make = make;
  sol->zeroes = zeroes;
  sol->users = 1;
  sol->matrix = make_matrix (s, sol);
  if (sol->matrix == NULL) {
    free (sol);
    return NULL;
  }
  sol->next = *b;
  *b = sol;
  s->nr++;
  return sol;
}

void
solver_put (struct solver *s, struct solution *sol)
{
  sol->users--;
}
