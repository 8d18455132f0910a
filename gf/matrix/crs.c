/* gpuraid: the generator matrix of code crs.
 *
 * Pure.  Chooses the matrix; bit-matrix.c makes the bit matrix.
 *
 * Why it is MDS.  Column i belongs to y_i = 1 / e_i, row j >= 1 to x_j, where
 * x_1 = 0 and the x after it are neither 0 nor any y.  Row j is then s_j / (x_j
 * + y_i): rows 1 and on are a Cauchy matrix times a constant for each row, and
 * row 0 is the limit of x / (x + y_i) for x to infinity.  As in matrix.c no
 * minor is 0 if all x differ, all y differ, and no x is a y, and they are
 * chosen so.  There are 2^w elements for k of y and m - 1 of x, so k + m <= 2^w
 * leaves one over.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "gf/matrix/field.h"
#include "gf/matrix/matrix.h"

#define MAX_ELEMENTS 256u

/* A candidate for a row. */
struct candidate {
  uint8_t x, scale;
  unsigned nr_ones;             /* in the bits of the row */
};

struct choice {
  const struct field *f;
  unsigned nr_elements;         /* 2^w */
  uint8_t ones[MAX_ELEMENTS];   /* in the w x w bits of an element */
};

static void
choice_init (struct choice *c, unsigned w)
{
  c->f = field_get (w);
  c->nr_elements = 1u << w;
  for (unsigned a = 0; a < c->nr_elements; a++) {
    c->ones[a] = 0;
    for (unsigned x = 0; x < w; x++)
      c->ones[a] += __builtin_popcount (c->f->mul[a][1u << x]);
  }
}

/* Row 1: the k cheapest elements but 0, in ascending order of ones. */
static void
choose_columns (const struct choice *c, unsigned k, uint8_t *e)
{
  bool used[MAX_ELEMENTS] = { false };

  for (unsigned i = 0; i < k; i++) {
    unsigned best = 0;

    for (unsigned a = 1; a < c->nr_elements; a++)
      if (!used[a] && (best == 0 || c->ones[a] < c->ones[best]))
        best = a;
    used[best] = true;
    e[i] = best;
  }
}

/* The best scale of the row of x. */
static struct candidate
try_row (const struct choice *c, unsigned k, const uint8_t *e, uint8_t x)
{
  struct candidate best = { .x = x };
  uint8_t row[MAX_ELEMENTS];

  for (unsigned i = 0; i < k; i++)
    row[i] = c->f->inv[c->f->inv[e[i]] ^ x];
  for (unsigned s = 1; s < c->nr_elements; s++) {
    unsigned nr = 0;

    for (unsigned i = 0; i < k; i++)
      nr += c->ones[c->f->mul[s][row[i]]];
    if (best.scale == 0 || nr < best.nr_ones) {
      best.scale = s;
      best.nr_ones = nr;
    }
  }
  return best;
}

static int
compare_candidates (const void *av, const void *bv)
{
  const struct candidate *a = av, *b = bv;

  if (a->nr_ones != b->nr_ones)
    return a->nr_ones < b->nr_ones ? -1 : 1;
  return (int) a->x - b->x;
}

void
matrix_crs_parity (unsigned k, unsigned m, unsigned w, uint8_t *coef)
{
  struct choice c;
  struct candidate row[MAX_ELEMENTS];
  unsigned nr = 0;
  uint8_t e[MAX_ELEMENTS];
  bool is_y[MAX_ELEMENTS] = { false };

  assert (w >= 1 && w <= FIELD_MAX_W && k >= 1 && m >= 1 &&
          k <= MATRIX_MAX && m <= MATRIX_MAX && k + m <= 1u << w);

  choice_init (&c, w);
  memset (coef, 1, k);
  if (m == 1)
    return;
  choose_columns (&c, k, e);
  memcpy (coef + k, e, k);
  if (m == 2)
    return;
  for (unsigned i = 0; i < k; i++)
    is_y[c.f->inv[e[i]]] = true;
  for (unsigned x = 1; x < c.nr_elements; x++)
    if (!is_y[x])
      row[nr++] = try_row (&c, k, e, x);
  qsort (row, nr, sizeof row[0], compare_candidates);
  for (unsigned j = 2; j < m; j++)
    for (unsigned i = 0; i < k; i++)
      coef[j * k + i] = c.f->mul[row[j-2].scale]
        [c.f->inv[c.f->inv[e[i]] ^ row[j-2].x]];
}
