/* gpuraid: write the kernel for a matrix of packets, from its XOR program.
 *
 * Every variable of the program is a variable of the kernel; the compiler
 * gives it a register.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/bits.h"
#include "common/cleanup.h"
#include "gf/xor/program.h"
#include "gf/xor/streamed.h"
#include "gpu/text/internal.h"

/* With more alive, values not used soon would go to memory and back. */
#define MAX_ALIVE 160u          /* words */

/* A longer program would compile for minutes. */
#define MAX_EQUATIONS 20000u

struct writer {
  FILE *fp;
  const struct matrix *a;
  const struct xor_program *prog;
  unsigned words;               /* of a packet, for a thread */
  bool crc;
  bool *loaded;                 /* of each input cell */
};

static void
print_cell_load (const struct writer *w, unsigned i)
{
  static const char *const type[] = { "", "u32", "uint2" };

  for (unsigned l = 0; l < w->a->w; l++) {
    const unsigned v = i * w->a->w + l;

    fprintf (w->fp, "  const %s c%u = load%u (CELL (%u) + %zu);\n",
             type[w->words], v, w->words * 4, i, l * w->a->packet_len);
    if (w->words == 1)
      fprintf (w->fp, "  const u32 v%u_0 = c%u;\n", v, v);
    else
      fprintf (w->fp, "  const u32 v%u_0 = c%u.x, v%u_1 = c%u.y;\n",
               v, v, v, v);
  }
}

/* The packets of a cell are variables first to first + w - 1. */
static void
print_crc (const struct writer *w, unsigned cell, unsigned first)
{
  const unsigned nr = w->a->cols + w->a->rows;

  fprintf (w->fp, "  CRC (%u, ", cell);
  for (unsigned l = 1; l < w->a->w; l++)
    fprintf (w->fp, "NEXT (");
  fprintf (w->fp, "v%u_0", first);
  for (unsigned l = 1; l < w->a->w; l++)
    fprintf (w->fp, ", v%u_0)", first + l);
  fprintf (w->fp, ");\n");
  kernel_source_flush (w->fp, cell, nr);
}

/* A cell's packets are read together, where the first is needed; for CRCs the
 * cells before it too, in their order.
 */
static void
load_cells (struct writer *w, unsigned i)
{
  for (unsigned n = w->crc ? 0 : i; n <= i; n++)
    if (!w->loaded[n]) {
      w->loaded[n] = true;
      print_cell_load (w, n);
      if (w->crc)
        print_crc (w, n, n * w->a->w);
    }
}

static void
print_xor (const struct writer *w, const struct xor_equation *e, unsigned word)
{
  const uint16_t *t = &w->prog->term[e->first_term];
  unsigned n = e->nr_terms, i = 0;

  fprintf (w->fp, "  const u32 v%u_%u = ", e->target, word);
  for (; n - i > 2; i += 2)
    fprintf (w->fp, "xor3 (v%u_%u, v%u_%u, ", t[i], word, t[i+1], word);
  if (n == 0)
    fprintf (w->fp, "0");
  else if (n - i == 1)
    fprintf (w->fp, "v%u_%u", t[i], word);
  else
    fprintf (w->fp, "v%u_%u ^ v%u_%u", t[i], word, t[i+1], word);
  for (; i > 0; i -= 2)
    fprintf (w->fp, ")");
  fprintf (w->fp, ";\n");
}

static void
print_store (const struct writer *w, unsigned v)
{
  const unsigned first = w->prog->nr_in + w->prog->nr_temps;
  const unsigned output = (v - first) / w->a->w, l = (v - first) % w->a->w;

  fprintf (w->fp, "  store%u (CELL (%u) + %zu, v%u_0", w->words * 4,
           w->a->cols + output, l * w->a->packet_len, v);
  if (w->words == 2)
    fprintf (w->fp, ", v%u_1", v);
  fprintf (w->fp, ");\n");
}

static void
print_code (struct writer *w)
{
  const struct xor_program *p = w->prog;

  for (unsigned n = 0; n < p->nr_equations; n++) {
    const struct xor_equation *e = &p->equation[n];

    for (unsigned i = 0; i < e->nr_terms; i++)
      if (p->term[e->first_term+i] < p->nr_in)
        load_cells (w, p->term[e->first_term+i] / w->a->w);
    for (unsigned word = 0; word < w->words; word++)
      print_xor (w, e, word);
    if (e->target >= p->nr_in + p->nr_temps)
      print_store (w, e->target);
  }
  if (w->crc) {
    load_cells (w, w->a->cols - 1);
    for (unsigned j = 0; j < w->a->rows; j++)
      print_crc (w, w->a->cols + j, p->nr_in + p->nr_temps + j * w->a->w);
  }
}

/* The program with the fewest XORs that fits into registers.  With CRCs it must
 * stream, because every cell's CRC is made while the cell is in registers.
 */
static struct xor_program *
choose_program (const struct matrix *a, bool crc, unsigned words)
{
  struct xor_program *p;

  if (!crc) {
    p = xor_program_new (a, XOR_GREEDY);
    if (p == NULL || xor_program_nr_alive (p) * words <= MAX_ALIVE)
      return p;
    xor_program_free (p);
  }
  return xor_program_new_streamed (a);
}

static char *
write_text (struct writer *w, const struct kernel_frame *f)
{
  char *text;
  size_t len;

  w->fp = open_memstream (&text, &len);
  if (w->fp == NULL)
    return NULL;
  kernel_source_begin (w->fp, w->a, w->crc, f);
  print_code (w);
  fprintf (w->fp, "}\n");
  if (fclose (w->fp) == 0)
    return text;
  free (text);
  return NULL;
}

char *
kernel_source_packets (const struct matrix *a, bool crc,
                       const struct kernel_tuning *t, struct kernel_shape *s)
{
  const unsigned words = crc || t->bytes == 4 ? 1 : 2;
  const struct kernel_frame frame = {
    .block = crc ? CRC_BLOCK_LEN / 4 / a->w : t->block, .bytes = words * 4,
    .min_blocks = crc ? 0 : t->min_blocks,
    .signed_cells = t->signed_cells, .w = a->w,
    .crc_words = a->w, .crc_stride = a->packet_len, .crc_step = 4,
  };
  CLEANUP_FREE bool *loaded = calloc (a->cols, 1);
  struct writer w = { .a = a, .words = words, .crc = crc, .loaded = loaded };
  struct xor_program *prog;
  char *text;

  if (crc && !kernel_crc_packets (a)) {
    errno = ENOTSUP;
    return NULL;
  }
  prog = loaded ? choose_program (a, crc, words) : NULL;
  if (prog == NULL)
    return NULL;
  w.prog = prog;
  if (prog->nr_equations > MAX_EQUATIONS) {
    errno = ENOTSUP;
    text = NULL;
  }
  else
    text = write_text (&w, &frame);
  xor_program_free (prog);
  *s = (struct kernel_shape) {
    .name = "gpuraid_kernel", .block = frame.block,
    .bytes = words * 4 * a->w,
  };
  return text;
}
