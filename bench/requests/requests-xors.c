/* gpuraid-bench: how many XORs the programs of a bit matrix need.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <string.h>

#include "bench/methods.h"
#include "bench/requests/requests.h"
#include "common/bits.h"
#include "gf/xor/program.h"
#include "measure/code.h"
#include "measure/reference.h"

static const struct {
  const char *name;
  enum xor_style style;
} styles[] = {
  { "direct", XOR_DIRECT }, { "iterative", XOR_ITERATIVE },
  { "greedy", XOR_GREEDY }, { "best", XOR_BEST },
};

/* Ours, then the two Cauchy matrices of the papers. */
static const struct {
  const char *name;
  const struct method_ops *ops;
} matrices[] = {
  { "gpuraid", &method_isal }, { "gcrs", &method_gcrs },
  { "sobe_c", &method_sobe_c },
};

static unsigned
nr_ones (const struct matrix *a)
{
  const struct reference_field *f = reference_field (a->w);
  unsigned nr = 0;

  for (unsigned i = 0; i < a->rows * a->cols; i++)
    for (unsigned x = 0; x < a->w; x++)
      nr += nr_bits (f->mul[a->coef[i]][1u << x]);
  return nr;
}

static int
count (const struct matrix *a, struct json_object *o)
{
  answer_number (o, "k", a->cols);
  answer_number (o, "m", a->rows);
  answer_number (o, "w", a->w);
  answer_number (o, "ones", nr_ones (a));
  for (size_t i = 0; i < ARRAY_LEN (styles); i++) {
    struct xor_program *p = xor_program_new (a, styles[i].style);

    if (p == NULL)
      return -1;
    answer_number (o, styles[i].name, xor_program_nr_xors (p));
    xor_program_free (p);
  }
  return 0;
}

/* A matrix that does not exist for this k, m and w is skipped. */
static int
add (const char *name, const struct method_ops *ops, unsigned k, unsigned m,
     unsigned w, struct json_object *list, char *why)
{
  uint8_t coef[CODE_MAX * CODE_MAX];
  struct json_object *o;
  struct matrix *a;
  int r;

  if (method_parity (ops, CODE_CRS, k, m, w, coef, why) == -1)
    return 0;
  o = json_object_new_object ();
  answer_text (o, "matrix", name);
  a = matrix_new_packets (w, 8, m, k, coef);
  r = a ? count (a, o) : -1;
  if (r == -1)
    snprintf (why, BENCH_WHY_LEN, "%u+%u: %s", k, m, strerror (errno));
  matrix_free (a);
  json_object_array_add (list, o);
  return r;
}

struct json_object *
request_xors (struct json_object *q, char *why)
{
  const unsigned k = request_number (q, "k", CODE_MAX, 1);
  const unsigned m = request_number (q, "m", CODE_MAX, 1);
  struct json_object *o, *list;
  unsigned w;
  int r = 0;

  if (code_w (&method_isal, CODE_CRS, k, m, request_number (q, "w", 8, 0),
              request_number (q, "w_floor", 8, 0), &w, why) == -1)
    return NULL;
  o = json_object_new_object ();
  list = json_object_new_array ();
  json_object_object_add (o, "rows", list);
  for (size_t i = 0; r == 0 && i < ARRAY_LEN (matrices); i++)
    r = add (matrices[i].name, matrices[i].ops, k, m, w, list, why);
  if (r == 0)
    return o;
  json_object_put (o);
  return NULL;
}
