/* gpuraid: Cauchy matrices and bit matrices.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/seeds/cauchy.h"
#include "gf/matrix/field.h"

/* 1 / ((y+p) ^ (x+i)): no two sums of these are equal. */
static int
cauchy (unsigned k, unsigned m, unsigned w, unsigned x, unsigned y,
        uint8_t *coef)
{
  const struct field *f;

  if (w < 1 || w > FIELD_MAX_W || k + m > 1U << w) {
    errno = ERANGE;
    return -1;
  }
  f = field_get (w);
  for (unsigned p = 0; p < m; p++)
    for (unsigned i = 0; i < k; i++)
      coef[p * k + i] = f->inv[(y + p) ^ (x + i)];
  return 0;
}

int
cauchy_low (unsigned k, unsigned m, unsigned w, uint8_t *coef)
{
  return cauchy (k, m, w, m, 0, coef);
}

int
cauchy_high (unsigned k, unsigned m, unsigned w, uint8_t *coef)
{
  return cauchy (k, m, w, 0, k, coef);
}

/* Of the w x w bits of an element. */
static unsigned
nr_ones (const struct field *f, unsigned w, uint8_t e)
{
  unsigned nr = 0;

  for (unsigned x = 0; x < w; x++)
    nr += __builtin_popcount (f->mul[e][1U << x]);
  return nr;
}

/* Of a row, divided by one of its elements. */
static unsigned
nr_ones_divided (const struct field *f, unsigned w, const uint8_t *row,
                 unsigned k, uint8_t by)
{
  unsigned nr = 0;

  for (unsigned i = 0; i < k; i++)
    nr += nr_ones (f, w, f->mul[row[i]][f->inv[by]]);
  return nr;
}

int
cauchy_good (unsigned k, unsigned m, unsigned w, uint8_t *coef)
{
  const struct field *f;

  if (cauchy_low (k, m, w, coef) == -1)
    return -1;
  f = field_get (w);
  for (unsigned i = 0; i < k; i++)
    for (unsigned p = m; p-- > 0;)
      coef[p * k + i] = f->mul[coef[p * k + i]][f->inv[coef[i]]];
  for (unsigned p = 1; p < m; p++) {
    uint8_t *row = coef + p * k, best = 1;

    for (unsigned i = 0; i < k; i++)
      if (nr_ones_divided (f, w, row, k, row[i]) <
          nr_ones_divided (f, w, row, k, best))
        best = row[i];
    for (unsigned i = 0; i < k; i++)
      row[i] = f->mul[row[i]][f->inv[best]];
  }
  return 0;
}

struct bit_matrix *
cauchy_bits (const struct matrix *a, char *why)
{
  struct bit_matrix *b = bit_matrix_new (a);

  if (b == NULL)
    snprintf (why, BENCH_WHY_LEN, "calloc: %s", strerror (errno));
  return b;
}

int *
cauchy_ints (const struct bit_matrix *b, char *why)
{
  int *ints = malloc ((size_t) b->rows * b->cols * sizeof *ints), *p = ints;

  if (ints == NULL) {
    snprintf (why, BENCH_WHY_LEN, "malloc: %s", strerror (errno));
    return NULL;
  }
  for (unsigned r = 0; r < b->rows; r++)
    for (unsigned c = 0; c < b->cols; c++)
      *p++ = bit_matrix_get (b, r, c);
  return ints;
}

int
cauchy_check (const struct bench_case *bc, size_t packet_len, char *why)
{
  const struct matrix *a = bc->matrix;

  if (a->w < 1 || a->w > FIELD_MAX_W)
    snprintf (why, BENCH_WHY_LEN, "w is 1 to 8, not %u", a->w);
  else if (a->rows == 0 || a->cols == 0 || bc->nr_rects == 0 ||
           bc->cell_len == 0)
    snprintf (why, BENCH_WHY_LEN, "nothing to code");
  else if (a->packet_len != packet_len)
    snprintf (why, BENCH_WHY_LEN, "packets are %zu bytes, not %zu",
              packet_len, a->packet_len);
  else if (bc->cell_len % (a->w * packet_len) != 0)
    snprintf (why, BENCH_WHY_LEN,
              "%zu bytes of a cell are no multiple of %u packets of %zu",
              bc->cell_len, a->w, packet_len);
  else
    return 0;
  return -1;
}
