/* gpuraid: find the pairs that rows have in common.
 *
 * The count of a pair is not stored but computed, from the sets of rows of its
 * two variables: 128 rows, the most that a usual array has, are two words.  A
 * pair's count only falls, except for pairs with a temporary that was made
 * since, and those occur no oftener than the pair that it was made of.  So a
 * pair waits in the bucket of a count that it once had, and moves down if it
 * has less when it is found there.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bits.h"
#include "gf/xor/pairs.h"

struct xor_bucket {
  size_t nr, max;
  uint16_t (*pair)[2];
};

struct xor_pairs *
xor_pairs_new (const struct bit_matrix *b)
{
  struct xor_pairs *p = calloc (1, sizeof *p);

  if (p == NULL)
    return NULL;
  p->nr_in = b->cols;
  p->nr_out = b->rows;
  p->set_words = div_round_up (MAX (b->rows, 1), 64);
  p->row = calloc (MAX (b->rows, 1), sizeof p->row[0]);
  p->row_room = malloc ((size_t) 2 * b->rows * (b->cols + 1) + 1);
  p->bucket = calloc (b->rows + 1, sizeof p->bucket[0]);
  if (p->row == NULL || p->row_room == NULL || p->bucket == NULL) {
    xor_pairs_free (p);
    return NULL;
  }
  for (unsigned r = 0; r < b->rows; r++)
    p->row[r].var = p->row_room + (size_t) r * (b->cols + 1);
  return p;
}

void
xor_pairs_free (struct xor_pairs *p)
{
  if (p == NULL)
    return;
  for (unsigned n = 0; p->bucket && n <= p->nr_out; n++)
    free (p->bucket[n].pair);
  free (p->bucket);
  free (p->row_room);
  free (p->row);
  free (p->seen);
  free (p->rows_of);
  free (p->pair);
  free (p);
}

/* Room for one more variable. */
static int
grow (struct xor_pairs *p)
{
  unsigned fixed = p->nr_in + p->nr_out, max = p->max_vars;
  void *rows_of, *pair, *seen;

  if (p->nr_vars < max)
    return 0;
  max = MIN (MAX (2 * max, fixed + 64), XOR_MAX_VARS);
  rows_of = realloc (p->rows_of, (size_t) 8 * max * p->set_words);
  if (rows_of)
    p->rows_of = rows_of;
  pair = realloc (p->pair, (max - fixed) * sizeof p->pair[0]);
  if (pair)
    p->pair = pair;
  seen = realloc (p->seen, max * sizeof p->seen[0]);
  if (seen)
    p->seen = seen;
  if (rows_of == NULL || pair == NULL || seen == NULL)
    return -1;
  p->max_vars = max;
  return 0;
}

static uint64_t *
set_of (const struct xor_pairs *p, unsigned var)
{
  return p->rows_of + (size_t) var * p->set_words;
}

static unsigned
count_pair (struct xor_pairs *p, unsigned a, unsigned b)
{
  const uint64_t *s = set_of (p, a), *t = set_of (p, b);
  unsigned nr = 0;

  for (unsigned i = 0; i < p->set_words; i++)
    nr += nr_bits (s[i] & t[i]);
  p->work += p->set_words;
  return nr;
}

/* ---- rows ------------------------------------------------------------ */

static unsigned
distance (const struct bit_matrix *b, unsigned r, unsigned q)
{
  const uint64_t *s = b->word + (size_t) r * b->row_words;
  const uint64_t *t = b->word + (size_t) q * b->row_words;
  unsigned nr = 0;

  for (unsigned i = 0; i < b->row_words; i++)
    nr += nr_bits (s[i] ^ t[i]);
  return nr;
}

/* The row of r: the inputs in which it differs from row `from`, and that
 * output; from == r: all its inputs.
 */
static void
load_row (struct xor_pairs *p, const struct bit_matrix *b, unsigned r,
          unsigned from)
{
  struct xor_row *row = &p->row[r];

  row->nr = 0;
  for (unsigned i = 0; i < b->row_words; i++) {
    uint64_t bits = b->word[(size_t) r * b->row_words + i];

    if (from != r)
      bits ^= b->word[(size_t) from * b->row_words + i];
    FOR_EACH_BIT (c, bits)
      row->var[row->nr++] = i * 64 + c;
  }
  if (from != r)
    row->var[row->nr++] = p->nr_in + from;
  for (unsigned i = 0; i < row->nr; i++)
    set_of (p, row->var[i])[r / 64] |= BIT (r % 64);
}

/* The cheapest way found to make a row. */
struct diff {
  unsigned from, nr_terms;
  unsigned weight;              /* its inputs */
  bool done;
};

/* Prim's algorithm: a tree of all rows whose root is the empty row. */
static int
load_differences (struct xor_pairs *p, const struct bit_matrix *b,
                  unsigned percent)
{
  struct diff *diff;

  diff = calloc (MAX (b->rows, 1), sizeof diff[0]);
  if (diff == NULL)
    return -1;
  for (unsigned r = 0; r < b->rows; r++) {
    diff[r].from = r;
    for (unsigned i = 0; i < b->row_words; i++)
      diff[r].weight += nr_bits (b->word[(size_t) r * b->row_words + i]);
    diff[r].nr_terms = diff[r].weight;
  }
  for (unsigned n = 0; n < b->rows; n++) {
    unsigned best = b->rows;

    for (unsigned r = 0; r < b->rows; r++)
      if (!diff[r].done &&
          (best == b->rows || diff[r].nr_terms < diff[best].nr_terms))
        best = r;
    diff[best].done = true;
    load_row (p, b, best, diff[best].from);
    for (unsigned r = 0; r < b->rows; r++) {
      unsigned nr_terms = distance (b, r, best) + 1;

      if (!diff[r].done && nr_terms < diff[r].nr_terms &&
          nr_terms * 100 <= diff[r].weight * percent) {
        diff[r].nr_terms = nr_terms;
        diff[r].from = best;
      }
    }
  }
  free (diff);
  p->work += (uint64_t) b->rows * b->rows * b->row_words;
  return 0;
}

int
xor_pairs_load (struct xor_pairs *p, const struct bit_matrix *b,
                unsigned percent, uint64_t seed)
{
  if (p->nr_in + p->nr_out > XOR_MAX_VARS) {
    errno = EOVERFLOW;
    return -1;
  }
  p->nr_vars = 0;
  if (grow (p) == -1)
    return -1;
  p->nr_vars = p->nr_in + p->nr_out;
  p->random = seed;
  p->work = 0;
  memset (p->rows_of, 0, (size_t) 8 * p->nr_vars * p->set_words);
  memset (p->seen, 0xff, p->max_vars * sizeof p->seen[0]);
  for (unsigned n = 0; n <= p->nr_out; n++)
    p->bucket[n].nr = 0;
  if (percent > 0)
    return load_differences (p, b, percent);
  for (unsigned r = 0; r < b->rows; r++)
    load_row (p, b, r, r);
  return 0;
}

static void
row_remove (struct xor_row *row, unsigned var)
{
  unsigned i = 0;

  while (row->var[i] != var)
    i++;
  row->nr--;
  memmove (row->var + i, row->var + i + 1,
           (row->nr - i) * sizeof row->var[0]);
}

/* Make a temporary of a and b in all rows that have both.  0; 1: no number is
 * left for it; -1 with errno.
 */
static int
make_temp (struct xor_pairs *p, unsigned a, unsigned b)
{
  const unsigned t = p->nr_vars, fixed = p->nr_in + p->nr_out;
  uint64_t *set;

  if (t == XOR_MAX_VARS)
    return 1;
  if (grow (p) == -1)
    return -1;
  p->nr_vars++;
  p->pair[t-fixed][0] = a;
  p->pair[t-fixed][1] = b;
  p->seen[t] = UINT32_MAX;
  set = set_of (p, t);
  for (unsigned i = 0; i < p->set_words; i++) {
    set[i] = set_of (p, a)[i] & set_of (p, b)[i];
    set_of (p, a)[i] ^= set[i];
    set_of (p, b)[i] ^= set[i];
    FOR_EACH_BIT (bit, set[i]) {
      struct xor_row *row = &p->row[i * 64 + bit];

      row_remove (row, a);
      row_remove (row, b);
      row->var[row->nr++] = t;
      p->work += row->nr / 8;
    }
  }
  return 0;
}

/* ---- iterative ------------------------------------------------------- */

/* The first pair of a row that another row has.  Earlier rows have no pair in
 * common with it any more.
 */
static bool
first_pair (struct xor_pairs *p, const struct xor_row *row, unsigned *a,
            unsigned *b)
{
  for (unsigned i = 0; i < row->nr; i++)
    for (unsigned j = i + 1; j < row->nr; j++)
      if (count_pair (p, row->var[i], row->var[j]) >= 2) {
        *a = row->var[i];
        *b = row->var[j];
        return true;
      }
  return false;
}

int
xor_pairs_iterative (struct xor_pairs *p, uint64_t max_work)
{
  unsigned a, b;
  int r;

  for (unsigned n = 0; n < p->nr_out; n++)
    while (p->work < max_work && first_pair (p, &p->row[n], &a, &b)) {
      r = make_temp (p, a, b);
      if (r != 0)
        return MIN (r, 0);
    }
  return 0;
}

/* ---- greedy ---------------------------------------------------------- */

static int
bucket_push (struct xor_pairs *p, unsigned count, unsigned a, unsigned b)
{
  struct xor_bucket *k = &p->bucket[count];

  if (k->nr == k->max) {
    size_t max = MAX (2 * k->max, 64);
    void *pair = realloc (k->pair, max * sizeof k->pair[0]);

    if (pair == NULL)
      return -1;
    k->pair = pair;
    k->max = max;
  }
  k->pair[k->nr][0] = a;
  k->pair[k->nr][1] = b;
  k->nr++;
  return 0;
}

/* Any pair in the bucket. */
static void
bucket_pop (struct xor_pairs *p, unsigned count, unsigned *a, unsigned *b)
{
  struct xor_bucket *k = &p->bucket[count];
  size_t i;

  /* Marsaglia's xorshift64 */
  p->random ^= p->random << 13;
  p->random ^= p->random >> 7;
  p->random ^= p->random << 17;
  i = p->random % k->nr;
  *a = k->pair[i][0];
  *b = k->pair[i][1];
  k->nr--;
  memcpy (k->pair[i], k->pair[k->nr], sizeof k->pair[0]);
}

/* All pairs of inputs, and of outputs that rows begin with. */
static int
push_all (struct xor_pairs *p, unsigned min_rows)
{
  for (unsigned b = 1; b < p->nr_vars; b++)
    for (unsigned a = 0; a < b; a++) {
      unsigned count = count_pair (p, a, b);

      if (count >= min_rows && bucket_push (p, count, a, b) == -1)
        return -1;
    }
  return 0;
}

/* The pairs of a new temporary. */
static int
push_new (struct xor_pairs *p, unsigned t, unsigned min_rows)
{
  for (unsigned i = 0; i < p->set_words; i++)
    FOR_EACH_BIT (bit, set_of (p, t)[i]) {
      const struct xor_row *row = &p->row[i * 64 + bit];

      for (unsigned j = 0; j + 1 < row->nr; j++) {
        unsigned count, x = row->var[j];

        if (p->seen[x] == t)
          continue;
        p->seen[x] = t;
        count = count_pair (p, x, t);
        if (count >= min_rows && bucket_push (p, count, x, t) == -1)
          return -1;
      }
      p->work += row->nr;
    }
  return 0;
}

int
xor_pairs_greedy (struct xor_pairs *p, unsigned min_rows, uint64_t max_work)
{
  unsigned level = p->nr_out, count, a, b;
  int r;

  if (push_all (p, min_rows) == -1)
    return -1;
  while (level >= min_rows && p->work < max_work) {
    if (p->bucket[level].nr == 0) {
      level--;
      continue;
    }
    bucket_pop (p, level, &a, &b);
    count = count_pair (p, a, b);
    if (count < level) {
      if (count >= min_rows && bucket_push (p, count, a, b) == -1)
        return -1;
      continue;
    }
    r = make_temp (p, a, b);
    if (r != 0)
      return MIN (r, 0);
    if (push_new (p, p->nr_vars - 1, min_rows) == -1)
      return -1;
  }
  return 0;
}

unsigned
xor_pairs_nr_xors (const struct xor_pairs *p)
{
  unsigned nr = p->nr_vars - p->nr_in - p->nr_out;

  for (unsigned r = 0; r < p->nr_out; r++)
    nr += MAX (p->row[r].nr, 1) - 1;
  return nr;
}
