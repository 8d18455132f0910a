/* gpuraid: choose the columns of a matrix that are summed together.
 *
 * Starts with the order of the matrix, and swaps columns of two groups while
 * that helps.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/bits.h"
#include "gpu/text/columns.h"
#include "gpu/text/internal.h"

/* Of a column: 8 bits for each row, 8 rows a word. */
#define NR_WORDS (MATRIX_MAX / 8)

/* Passes over all pairs; after three to six nothing more is found. */
#define MAX_PASSES 8

struct columns {
  unsigned group, nr, nr_words;
  unsigned *col;
  uint64_t bits[MATRIX_MAX][NR_WORDS];  /* by position in col */
};

static void
find (struct columns *c, const struct matrix *a)
{
  c->nr = 0;
  c->nr_words = div_round_up (a->rows, 8);
  for (unsigned i = 0; i < a->cols; i++) {
    uint64_t *bits = c->bits[c->nr];
    bool used = false;

    memset (bits, 0, sizeof c->bits[0]);
    for (unsigned j = 0; j < a->rows; j++) {
      uint8_t coef = a->coef[j * a->cols + i];

      bits[j / 8] |= (uint64_t) coef << j % 8 * 8;
      used = used || coef;
    }
    if (used)
      c->col[c->nr++] = i;
  }
}

/* Bits of rows that need the group of position n. */
static unsigned
cost (const struct columns *c, unsigned n)
{
  const unsigned first = n / c->group * c->group;
  const unsigned end = MIN (first + c->group, c->nr);
  unsigned nr = 0;

  for (unsigned w = 0; w < c->nr_words; w++) {
    uint64_t any = 0;

    for (unsigned i = first; i < end; i++)
      any |= c->bits[i][w];
    nr += __builtin_popcountll (any);
  }
  return nr;
}

static void
swap (struct columns *c, unsigned x, unsigned y)
{
  const unsigned col = c->col[x];
  uint64_t bits[NR_WORDS];

  c->col[x] = c->col[y];
  c->col[y] = col;
  memcpy (bits, c->bits[x], sizeof bits);
  memcpy (c->bits[x], c->bits[y], sizeof bits);
  memcpy (c->bits[y], bits, sizeof bits);
}

/* Does it help to swap these two? */
static bool
try_swap (struct columns *c, unsigned x, unsigned y)
{
  const unsigned before = cost (c, x) + cost (c, y);

  swap (c, x, y);
  if (cost (c, x) + cost (c, y) < before)
    return true;
  swap (c, x, y);
  return false;
}

unsigned
kernel_columns (const struct matrix *a, unsigned group,
                unsigned col[MATRIX_MAX])
{
  struct columns c = { .group = group, .col = col };
  bool better = true;

  find (&c, a);
  for (unsigned pass = 0; better && pass < MAX_PASSES; pass++) {
    better = false;
    for (unsigned x = 0; x < c.nr; x++)
      for (unsigned y = (x / group + 1) * group; y < c.nr; y++)
        better |= try_swap (&c, x, y);
  }
  return c.nr;
}
