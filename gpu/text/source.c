/* gpuraid: write the kernel for a matrix over GF(2^8).
 *
 * A byte times 2^b is b doublings, so a row is evaluated as a polynomial
 * in 2 (Horner): the sum of the inputs whose coefficient has bit 7,
 * doubled, plus the sum of those with bit 6, and so on; 7 doublings a row,
 * whatever the number of inputs.  These sums are made from sums of a few
 * neighbouring inputs, each of which is made once for all rows.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bits.h"
#include "gpu/text/columns.h"
#include "gpu/text/internal.h"
#include "gpu/text/row.h"

#define CRC_BYTES 16u           /* of a block, for each thread */

/* More would compile for minutes. */
#define MAX_PRODUCTS 4096u

struct writer {
  FILE *fp;
  const struct matrix *a;
  unsigned group, multiply;
  enum kernel_share share;
  unsigned nr_cols;             /* that are not all 0 */
  unsigned col[MATRIX_MAX];
};

/* Which columns of group g have bit b in row j. */
static unsigned
group_mask (const struct writer *w, unsigned g, unsigned j, unsigned b)
{
  unsigned mask = 0;

  for (unsigned n = 0; n < w->group; n++) {
    unsigned c = g * w->group + n;

    if (c < w->nr_cols &&
        w->a->coef[j * w->a->cols + w->col[c]] >> b & 1)
      mask |= 1u << n;
  }
  return mask;
}

/* The variable that holds a sum: dCOLUMN_WORD or sGROUP_MASK_WORD. */
#define NAME_LEN 40

static void
name_sum (const struct writer *w, unsigned g, unsigned mask, unsigned word,
          char name[NAME_LEN])
{
  if (mask & (mask - 1))
    snprintf (name, NAME_LEN, "s%u_%u_%u", g, mask, word);
  else
    snprintf (name, NAME_LEN, "d%u_%u",
              w->col[g * w->group + __builtin_ctz (mask)], word);
}

/* The sum of n names, n >= 1. */
static void
print_xor (const struct writer *w, char name[][NAME_LEN], unsigned n)
{
  unsigned i = 0;

  for (; n - i > 2; i += 2)
    fprintf (w->fp, "xor3 (%s, %s, ", name[i], name[i+1]);
  if (n - i == 2)
    fprintf (w->fp, "%s ^ ", name[i]);
  fprintf (w->fp, "%s", name[n-1]);
  for (; i > 0; i -= 2)
    fprintf (w->fp, ")");
}

static void
print_sum_of_group (const struct writer *w, unsigned g, unsigned mask,
                    const bool *have, unsigned word)
{
  const unsigned rest = mask & (mask - 1);
  char name[KERNEL_MAX_GROUP][NAME_LEN];
  unsigned n = 0;

  name_sum (w, g, mask & -mask, word, name[n++]);
  if (have[rest])
    name_sum (w, g, rest, word, name[n++]);
  else {
    name_sum (w, g, rest & -rest, word, name[n++]);
    if (rest & (rest - 1))
      name_sum (w, g, rest & (rest - 1), word, name[n++]);
  }
  fprintf (w->fp, "  const u32 s%u_%u_%u = ", g, mask, word);
  print_xor (w, name, n);
  fprintf (w->fp, ";\n");
}

/* The sums of a group that some row needs, small ones first: a sum of four is
 * one of two with the other two, or with a sum of three.
 */
static void
print_sums (const struct writer *w, unsigned g, unsigned word)
{
  bool need[1 << KERNEL_MAX_GROUP] = { false };

  for (unsigned j = 0; j < w->a->rows; j++)
    for (unsigned b = 0; b < 8; b++)
      need[group_mask (w, g, j, b)] = true;
  if (need[15] && !need[14] && !need[12])
    need[12] = true;
  for (unsigned n = 2; n <= KERNEL_MAX_GROUP; n++)
    for (unsigned mask = 1; mask < 1u << KERNEL_MAX_GROUP; mask++)
      if (need[mask] && nr_bits (mask) == n)
        print_sum_of_group (w, g, mask, need, word);
}

/* The terms with bit b in row j. */
static void
list_terms (const struct writer *w, unsigned j, struct kernel_row *row)
{
  unsigned nr_groups = div_round_up (w->nr_cols, w->group);

  for (unsigned b = 0; b < 8; b++) {
    row->bit[b].nr = 0;
    for (unsigned g = 0; g < nr_groups; g++) {
      unsigned mask = group_mask (w, g, j, b);

      if (mask)
        row->bit[b].term[row->bit[b].nr++] = KERNEL_TERM (g, mask);
    }
  }
}

/* The variables of terms; a sum that bits of row j share is tROW_NUMBER_WORD.
 */
static void
name_terms (const struct writer *w, unsigned j, unsigned word,
            const uint16_t *term, unsigned nr, char name[][NAME_LEN])
{
  for (unsigned i = 0; i < nr; i++)
    if (term[i] >= KERNEL_SHARED)
      snprintf (name[i], NAME_LEN, "t%u_%u_%u", j, term[i] - KERNEL_SHARED,
                word);
    else
      name_sum (w, KERNEL_TERM_GROUP (term[i]), KERNEL_TERM_MASK (term[i]),
                word, name[i]);
}

static void
print_row (const struct writer *w, const struct kernel_row *row, unsigned j,
           unsigned word)
{
  char name[MATRIX_MAX + 1][NAME_LEN];
  unsigned nr_multiplied = 0;
  bool first = true;

  for (unsigned i = 0; i < row->nr_shared; i++) {
    const unsigned nr = row->shared[i].nr;

    name_terms (w, j, word, row->shared[i].term, nr, name);
    fprintf (w->fp, "  const u32 t%u_%u_%u = ", j, i, word);
    print_xor (w, name, nr);
    fprintf (w->fp, ";\n");
  }
  for (int b = 7; b >= 0; b--) {
    unsigned nr = row->bit[b].nr;

    if (first && nr == 0 && b > 0)
      continue;
    name_terms (w, j, word, row->bit[b].term, nr, name);
    if (nr == 0)
      strcpy (name[nr++], "0");
    if (first)
      fprintf (w->fp, "  u32 r%u_%u = ", j, word);
    else if (nr % 2 == 0 && nr_multiplied < w->multiply) {
      nr_multiplied++;
      fprintf (w->fp, "  r%u_%u = ", j, word);
      snprintf (name[nr++], NAME_LEN, "doubled (r%u_%u)", j, word);
    }
    else {
      fprintf (w->fp, "  r%u_%u = double_xor (r%u_%u, ", j, word, j, word);
      print_xor (w, name, nr);
      fprintf (w->fp, ");\n");
      continue;
    }
    print_xor (w, name, nr);
    fprintf (w->fp, ";\n");
    first = false;
  }
}

static const char member_of_word[] = "xyzw";

static void
print_load (const struct writer *w, unsigned i, unsigned words)
{
  static const char *const type[] = { "", "u32", "uint2", "", "uint4" };

  fprintf (w->fp, "  const %s c%u = load%u (CELL (%u));\n", type[words], i,
           words * 4, i);
}

/* A column of zeroes is loaded only for its CRC. */
static void
print_loads (const struct writer *w, unsigned words, bool crc)
{
  bool used[MATRIX_MAX] = { false };

  for (unsigned c = 0; c < w->nr_cols; c++) {
    const unsigned i = w->col[c];

    used[i] = true;
    print_load (w, i, words);
    for (unsigned n = 0; n < words; n++)
      if (words == 1)
        fprintf (w->fp, "  const u32 d%u_0 = c%u;\n", i, i);
      else
        fprintf (w->fp, "  const u32 d%u_%u = c%u.%c;\n", i, n, i,
                 member_of_word[n]);
  }
  for (unsigned i = 0; crc && i < w->a->cols; i++)
    if (!used[i])
      print_load (w, i, words);
}

static void
print_crc (const struct writer *w)
{
  const unsigned nr = w->a->cols + w->a->rows;

  for (unsigned n = 0; n < nr; n++) {
    if (n < w->a->cols)
      fprintf (w->fp, "  CRC (%u, NEXT (NEXT (NEXT (c%u.x, c%u.y), c%u.z), "
               "c%u.w));\n", n, n, n, n, n);
    else {
      unsigned j = n - w->a->cols;

      fprintf (w->fp, "  CRC (%u, NEXT (NEXT (NEXT (r%u_0, r%u_1), r%u_2), "
               "r%u_3));\n", n, j, j, j, j);
    }
    kernel_source_flush (w->fp, n, nr);
  }
}

static void
print_store (const struct writer *w, unsigned j, unsigned words)
{
  fprintf (w->fp, "  store%u (CELL (%u)", words * 4, w->a->cols + j);
  for (unsigned n = 0; n < words; n++)
    fprintf (w->fp, ", r%u_%u", j, n);
  fprintf (w->fp, ");\n");
}

/* Words two at a time, because two that differ only in their data hide each
 * other's latency; row by row, so that few results are held.
 */
static void
print_code (const struct writer *w, unsigned words, bool crc)
{
  unsigned nr_groups = div_round_up (w->nr_cols, w->group);

  print_loads (w, words, crc);
  for (unsigned n = 0; n < words; n += 2) {
    const unsigned end = MIN (n + 2, words);

    for (unsigned g = 0; g < nr_groups; g++)
      for (unsigned word = n; word < end; word++)
        print_sums (w, g, word);
    for (unsigned j = 0; j < w->a->rows; j++) {
      struct kernel_row row;

      list_terms (w, j, &row);
      row.nr_shared = 0;
      if (w->share != KERNEL_SHARE_NONE)
        kernel_row_share (&row, w->share == KERNEL_SHARE_ODD);
      for (unsigned word = n; word < end; word++)
        print_row (w, &row, j, word);
      if (end == words)
        print_store (w, j, words);
    }
  }
  if (crc)
    print_crc (w);
}

static char *
kernel_source_bytes (const struct matrix *a, bool crc,
                     const struct kernel_tuning *t, struct kernel_shape *s)
{
  const unsigned bytes = crc ? CRC_BYTES : t->bytes;
  const struct kernel_frame frame = {
    .block = crc ? CRC_BLOCK_LEN / CRC_BYTES : t->block, .bytes = bytes,
    .min_blocks = crc ? 0 : t->min_blocks,
    .signed_cells = t->signed_cells,
    .w = 1, .crc_words = 4, .crc_stride = 4, .crc_step = CRC_BYTES,
  };
  struct writer w = { .a = a, .group = t->group, .multiply = t->multiply,
                      .share = t->share };
  char *text;
  size_t len;

  w.fp = open_memstream (&text, &len);
  if (w.fp == NULL)
    return NULL;
  w.nr_cols = kernel_columns (a, w.group, w.col);
  kernel_source_begin (w.fp, a, crc, &frame);
  print_code (&w, bytes / 4, crc);
  fprintf (w.fp, "}\n");
  if (fclose (w.fp) != 0) {
    free (text);
    return NULL;
  }
  *s = (struct kernel_shape) {
    .name = "gpuraid_kernel", .block = frame.block, .bytes = bytes,
  };
  return text;
}

/* The best of some dozens of each on an H200, over encoding and dense random
 * matrices of the sizes in docs/benchmarks.md.
 */
void
kernel_tune (const struct matrix *a, struct kernel_tuning *t)
{
  static const struct kernel_tuning
    small = { .bytes = 8, .block = 128 },
    medium = { .bytes = 16, .block = 64, .min_blocks = 6,
               .share = KERNEL_SHARE_EVEN },
    medium_wide = { .bytes = 16, .block = 64, .min_blocks = 6,
                    .share = KERNEL_SHARE_EVEN, .multiply = 3 },
    wide = { .bytes = 8, .block = 128, .min_blocks = 4, .multiply = 7 },
    very_wide = { .bytes = 8, .block = 64, .min_blocks = 6, .multiply = 7 },
    high = { .bytes = 8, .block = 128, .min_blocks = 4, .signed_cells = true,
             .share = KERNEL_SHARE_EVEN, .multiply = 2 },
    big = { .bytes = 8, .block = 128, .min_blocks = 3, .signed_cells = true,
            .share = KERNEL_SHARE_EVEN },
    biggest = { .bytes = 8, .block = 64, .min_blocks = 1,
                .signed_cells = true, .share = KERNEL_SHARE_EVEN };

  if (a->rows <= 4) {
    *t = small;
    t->group = a->rows;
  }
  else {
    *t = a->cols <= 22 ? medium : a->cols <= 26 ? medium_wide :
      a->rows <= 9 ? a->cols <= 40 ? wide : very_wide :
      a->cols <= 40 ? a->rows <= 13 ? high : big : biggest;
    t->group = 3;
  }
  if (a->packet_len > 0)
    *t = (struct kernel_tuning) {
      .bytes = a->w * a->rows > 32 ? 4 : 8, .block = a->w > 4 ? 64 : 128,
    };
}

char *
kernel_source (const struct matrix *a, bool crc,
               const struct kernel_tuning *t, struct kernel_shape *s)
{
  if (a->rows == 0 || a->cols == 0 || a->rows * a->cols > MAX_PRODUCTS) {
    errno = ENOTSUP;
    return NULL;
  }
  return a->packet_len == 0 ? kernel_source_bytes (a, crc, t, s)
    : kernel_source_packets (a, crc, t, s);
}
