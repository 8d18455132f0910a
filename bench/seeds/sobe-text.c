/* gpuraid: Sobe's equations as text: C, OpenCL, and as Sobe prints them.
 *
 * Every unit is base[constant + i], temporaries are assigned once.  The only
 * loop is over the bytes of a unit, there is no matrix, and the only branch is
 * for the work items beyond the unit.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/seeds/sobe.h"
#include "common/bits.h"

struct xor_program *
sobe_equations (const struct matrix *a, bool iterative, char *why)
{
  struct xor_program *q;

  q = xor_program_new (a, iterative ? XOR_ITERATIVE : XOR_DIRECT);
  if (q == NULL)
    snprintf (why, BENCH_WHY_LEN, "the equations: %s", strerror (errno));
  return q;
}

static bool
is_temp (const struct xor_program *q, unsigned v)
{
  return v >= q->nr_in && v < q->nr_in + q->nr_temps;
}

/* len: of a unit, in what i counts. */
static void
put_var (FILE *f, const struct xor_program *q, unsigned v, size_t len)
{
  if (v < q->nr_in)
    fprintf (f, "n[%zu + i]", v * len);
  else if (is_temp (q, v))
    fprintf (f, "t%u", v - q->nr_in);
  else
    fprintf (f, "r[%zu + i]", (v - q->nr_in - q->nr_temps) * len);
}

/* type: of a temporary, where it is declared. */
static void
put_statements (FILE *f, const struct xor_program *q, const char *type,
                size_t len)
{
  for (unsigned n = 0; n < q->nr_equations; n++) {
    const struct xor_equation *e = &q->equation[n];

    fprintf (f, "    %s", is_temp (q, e->target) ? type : "");
    put_var (f, q, e->target, len);
    fputs (e->nr_terms ? " = " : " = 0", f);
    for (unsigned i = 0; i < e->nr_terms; i++) {
      fputs (i ? " ^ " : "", f);
      put_var (f, q, q->term[e->first_term + i], len);
    }
    fputs (";\n", f);
  }
}

/* simd is needed: the compiler, which outlines the loop and forgets restrict
 * over it, otherwise goes byte by byte from about 10+4 on: 0.2 for 3 GB/s.
 */
static void
put_openmp (FILE *f, const struct xor_program *q, size_t len)
{
  fputs ("void code (const unsigned char *restrict n, "
         "unsigned char *restrict r,\n           int threads)\n{\n"
         "  long i;\n", f);
  for (unsigned t = 0; t < q->nr_temps; t++)
    fprintf (f, "%st%u%s", t ? ", " : "  unsigned char ", t,
             t + 1 == q->nr_temps ? ";\n" : "");
  fputs ("#pragma omp parallel for simd num_threads (threads)", f);
  for (unsigned t = 0; t < q->nr_temps; t++)
    fprintf (f, "%st%u%s", t ? ", " : " private (", t,
             t + 1 == q->nr_temps ? ")" : "");
  fprintf (f, "\n  for (i = 0; i < %zu; i++) {\n", len);
  put_statements (f, q, "", len);
  fputs ("  }\n}\n", f);
}

static void
put_cl (FILE *f, const struct xor_program *q, const char *type, size_t len)
{
  char declared[24];

  snprintf (declared, sizeof declared, "%s ", type);
  fprintf (f, "__kernel void code (__global const %s *restrict n,\n"
           "                    __global %s *restrict r)\n{\n"
           "  size_t i = get_global_id (0);\n  if (i < %zu) {\n",
           type, type, len);
  put_statements (f, q, declared, len);
  fputs ("  }\n}\n", f);
}

static void
put_name (FILE *f, const struct xor_program *q, unsigned v)
{
  if (is_temp (q, v))
    fprintf (f, "t%u", v - q->nr_in);
  else
    fprintf (f, "u%u", v < q->nr_in ? v : v - q->nr_temps);
}

static void
put_listing (FILE *f, const struct xor_program *q)
{
  for (unsigned n = 0; n < q->nr_equations; n++) {
    const struct xor_equation *e = &q->equation[n];

    put_name (f, q, e->target);
    fputs (" = XOR(", f);
    for (unsigned i = 0; i < e->nr_terms; i++) {
      fputs (i ? "," : "", f);
      put_name (f, q, q->term[e->first_term + i]);
    }
    fputs (")\n", f);
  }
}

/* The result of open_memstream, if all of it could be written. */
static char *
finish (FILE *f, char **text, char *why)
{
  bool failed = f == NULL || ferror (f);

  if (f && fclose (f) == 0 && !failed)
    return *text;
  snprintf (why, BENCH_WHY_LEN, "open_memstream: %s", strerror (errno));
  free (*text);
  return NULL;
}

char *
sobe_text (const struct xor_program *q, enum sobe_style style,
           size_t unit_len, char *why)
{
  char *text = NULL;
  size_t len;
  FILE *f = open_memstream (&text, &len);

  if (f)
    switch (style) {
    case SOBE_OPENMP:
      put_openmp (f, q, unit_len);
      break;
    case SOBE_CL:
      put_cl (f, q, "char", unit_len);
      break;
    case SOBE_CL16:
      put_cl (f, q, "char16", unit_len / 16);
      break;
    }
  return finish (f, &text, why);
}

char *
sobe_listing (const struct xor_program *q, char *why)
{
  char *text = NULL;
  size_t len;
  FILE *f = open_memstream (&text, &len);

  if (f)
    put_listing (f, q);
  return finish (f, &text, why);
}

/* All of a cell; from 64 bytes on a multiple of 64. */
size_t
sobe_packet_len (unsigned w, size_t cell_len, const char *option)
{
  size_t len = cell_len / w;

  return len >= 64 ? len / 64 * 64 : MAX (len / 16, 1) * 16;
}
