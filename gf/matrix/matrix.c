/* gpuraid: make generator matrices and solve with them.
 *
 * Pure except for the counter of ids.  array/ decides what to express by
 * what.
 *
 * Why code rs is MDS.  Let x_i = 2^-i for column i, and y_1 = 0, y_j+1 =
 * 2^j for row j+1 (j >= 1).  Rows 1 and on are then 1 / (x_i + y_j) times
 * a constant for each row, a Cauchy matrix with scaled rows, and row 0 is
 * the limit of y / (x_i + y) for y to infinity, that is 1.  The minor of
 * the rows y_a and columns x_b of a Cauchy matrix is
 *
 *     product over pairs of (x_b - x_b') (y_a' - y_a)
 *     -----------------------------------------------
 *       product over all a and b of (x_b + y_a)
 *
 * and with row 0 in it the same without the factors of the y that is
 * infinite.  It is not 0 if all x differ, all y differ, and no x is a y:
 * 2^-i = 2^j only where 255 divides i + j.  With k + m <= 64 that is so
 * for every minor.  tests/gf/test-matrix.c checks these three conditions,
 * that our rows have this form, and the minors themselves.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/bits.h"
#include "gf/matrix/field.h"
#include "gf/matrix/matrix.h"

static struct matrix *
new_matrix (unsigned w, size_t packet_len, unsigned rows, unsigned cols,
            const uint8_t *coef)
{
  static _Atomic (uint64_t) last_id;
  size_t len = (size_t) rows * cols;
  struct matrix *a;

  if (rows > MATRIX_MAX || cols > MATRIX_MAX) {
    errno = EINVAL;
    return NULL;
  }
  a = malloc (sizeof *a + len);
  if (a == NULL)
    return NULL;
  a->id = atomic_fetch_add_explicit (&last_id, 1, memory_order_relaxed) + 1;
  a->rows = rows;
  a->cols = cols;
  a->w = w;
  a->packet_len = packet_len;
  if (len > 0)
    memcpy (a->coef, coef, len);
  return a;
}

struct matrix *
matrix_new (unsigned rows, unsigned cols, const uint8_t *coef)
{
  return new_matrix (8, 0, rows, cols, coef);
}

struct matrix *
matrix_new_packets (unsigned w, size_t packet_len, unsigned rows,
                    unsigned cols, const uint8_t *coef)
{
  if (w < 1 || w > 8 || packet_len == 0 || packet_len % 8 != 0) {
    errno = EINVAL;
    return NULL;
  }
  return new_matrix (w, packet_len, rows, cols, coef);
}

struct matrix *
matrix_copy (const struct matrix *a)
{
  return new_matrix (a->w, a->packet_len, a->rows, a->cols, a->coef);
}

void
matrix_free (struct matrix *a)
{
  free (a);
}

void
matrix_rs_parity (unsigned k, unsigned m, uint8_t *coef)
{
  const struct field *f = field_get (8);
  uint8_t power[64], *row;

  assert (k >= 1 && m >= 1 && k + m <= 64);

  power[0] = 1;
  for (unsigned i = 1; i < 64; i++)
    power[i] = f->mul[2][power[i-1]];

  memset (coef, 1, k);
  if (m > 1)
    memcpy (coef + k, power, k);
  for (unsigned j = 1; j + 1 < m; j++) {
    row = coef + (j + 1) * k;
    for (unsigned i = 0; i < k; i++)
      row[i] = f->inv[f->inv[power[i]] ^ power[j]];
    /* The first is divided last, because all others need it. */
    for (unsigned i = k; i-- > 0;)
      row[i] = f->mul[row[i]][f->inv[row[0]]];
  }
}

/* One equation for each unknown v: sum over s of coef[s] * source[s][v] =
 * target[v], for all targets at once.  Row v has the sources' values in its
 * first nr_src columns, then the targets'.
 *
 * Columns are taken in the order of the sources.  If no row with a pivot is
 * left, the source depends on earlier ones and gets 0.  Most sources are data,
 * of which only one value is not 0, so most pivots have nothing to eliminate: a
 * solution takes some 13 us with 48+16 and 16 lost, 0.3 us with 10+4 and 4
 * lost, 5 ms with the largest system.
 */
struct system {
  const struct field *field;
  unsigned nr_vars, nr_src, nr_tgt;
  unsigned nr_pivots;           /* in the first rows */
  uint8_t pivot_src[MATRIX_MAX]; /* by row */
  uint8_t *row[MATRIX_MAX];
  uint8_t cell[MATRIX_MAX][2 * MATRIX_MAX];
};

static void
system_init (struct system *sys, unsigned w, unsigned nr_vars,
             unsigned nr_src, const uint8_t *source,
             unsigned nr_tgt, const uint8_t *target)
{
  sys->field = field_get (w);
  sys->nr_vars = nr_vars;
  sys->nr_src = nr_src;
  sys->nr_tgt = nr_tgt;
  sys->nr_pivots = 0;
  for (unsigned v = 0; v < nr_vars; v++) {
    uint8_t *row = sys->row[v] = sys->cell[v];

    for (unsigned s = 0; s < nr_src; s++)
      row[s] = source[s * nr_vars + v];
    for (unsigned t = 0; t < nr_tgt; t++)
      row[nr_src + t] = target[t * nr_vars + v];
  }
}

/* Make column s 1 in one row and 0 in all others, if possible. */
static void
system_eliminate (struct system *sys, unsigned s)
{
  const struct field *f = sys->field;
  unsigned width = sys->nr_src + sys->nr_tgt;
  unsigned p = sys->nr_pivots, r = p;
  const uint8_t *mul;
  uint8_t *pivot;

  while (r < sys->nr_vars && sys->row[r][s] == 0)
    r++;
  if (r == sys->nr_vars)
    return;
  pivot = sys->row[r];
  sys->row[r] = sys->row[p];
  sys->row[p] = pivot;
  sys->pivot_src[p] = s;
  sys->nr_pivots++;

  if (pivot[s] != 1) {
    mul = f->mul[f->inv[pivot[s]]];
    for (unsigned c = s; c < width; c++)
      pivot[c] = mul[pivot[c]];
  }
  /* To the left of s a row that has not been a pivot before is 0. */
  for (r = 0; r < sys->nr_vars; r++) {
    uint8_t *row = sys->row[r];

    if (row == pivot || row[s] == 0)
      continue;
    mul = f->mul[row[s]];
    for (unsigned c = s; c < width; c++)
      row[c] ^= mul[pivot[c]];
  }
}

int
matrix_express (unsigned w, unsigned nr_vars,
                unsigned nr_src, const uint8_t *source,
                unsigned nr_tgt, const uint8_t *target,
                uint8_t *coef)
{
  struct system sys;            /* 134 KB */

  assert (nr_vars <= MATRIX_MAX);
  assert (nr_src <= MATRIX_MAX);
  assert (nr_tgt <= MATRIX_MAX);

  system_init (&sys, w, nr_vars, nr_src, source, nr_tgt, target);
  for (unsigned s = 0; s < nr_src && sys.nr_pivots < nr_vars; s++)
    system_eliminate (&sys, s);

  /* A row without a pivot says 0 = target. */
  for (unsigned r = sys.nr_pivots; r < nr_vars; r++)
    for (unsigned t = 0; t < nr_tgt; t++)
      if (sys.row[r][nr_src + t] != 0)
        return -1;

  memset (coef, 0, (size_t) nr_tgt * nr_src);
  for (unsigned p = 0; p < sys.nr_pivots; p++)
    for (unsigned t = 0; t < nr_tgt; t++)
      coef[t * nr_src + sys.pivot_src[p]] = sys.row[p][nr_src + t];
  return 0;
}
