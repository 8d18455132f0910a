/* gpuraid: count XORs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <string.h>

#include "bench/code.h"
#include "bench/methods.h"
#include "bench/reference.h"
#include "bench/xors.h"
#include "common/bits.h"
#include "common/log.h"
#include "gf/xor-program.h"

static const struct {
  const char *name;
  enum xor_style style;
} styles[] = {
  { "direct", XOR_DIRECT }, { "iterative", XOR_ITERATIVE },
  { "greedy", XOR_GREEDY }, { "best", XOR_BEST },
};

/* The numbers printed in Sobe's papers. */
static const struct printed {
  const struct method_ops *ops;
  unsigned k, m, w;
  unsigned direct, iterative;   /* 0: not said */
} printed[] = {
  { &method_sobe_c, 5, 2, 3, 45, 33 },
  { &method_sobe_c, 4, 2, 3, 38, 0 },
};

static const struct printed *
find_printed (const struct method_ops *ops, unsigned k, unsigned m,
              unsigned w)
{
  for (size_t i = 0; i < ARRAY_LEN (printed); i++)
    if (printed[i].ops == ops && printed[i].k == k && printed[i].m == m &&
        printed[i].w == w)
      return &printed[i];
  return NULL;
}

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

static struct json_object *
count (const struct matrix *a, const char *name, const struct printed *paper)
{
  struct json_object *o = json_object_new_object ();

  json_object_object_add (o, "matrix", json_object_new_string (name));
  json_object_object_add (o, "k", json_object_new_int (a->cols));
  json_object_object_add (o, "m", json_object_new_int (a->rows));
  json_object_object_add (o, "w", json_object_new_int (a->w));
  json_object_object_add (o, "ones", json_object_new_int (nr_ones (a)));
  for (size_t i = 0; i < ARRAY_LEN (styles); i++) {
    struct xor_program *p = xor_program_new (a, styles[i].style);

    if (p == NULL) {
      json_object_put (o);
      return NULL;
    }
    json_object_object_add (o, styles[i].name,
                            json_object_new_int64 (xor_program_nr_xors (p)));
    xor_program_free (p);
  }
  if (paper && paper->direct)
    json_object_object_add (o, "paper_direct",
                            json_object_new_int (paper->direct));
  if (paper && paper->iterative)
    json_object_object_add (o, "paper_iterative",
                            json_object_new_int (paper->iterative));
  return o;
}

static void
print (FILE *fp, struct json_object *o)
{
  static const char *const columns[] = {
    "k", "m", "w", "ones", "direct", "iterative", "greedy", "best",
    "paper_direct", "paper_iterative",
  };
  struct json_object *v;

  json_object_object_get_ex (o, "matrix", &v);
  fprintf (fp, "%-8s", json_object_get_string (v));
  for (size_t i = 0; i < ARRAY_LEN (columns); i++)
    if (json_object_object_get_ex (o, columns[i], &v))
      fprintf (fp, " %*d", i < 3 ? 3 : 9, json_object_get_int (v));
    else
      fprintf (fp, " %9s", "-");
  fprintf (fp, "\n");
  fflush (fp);
}

/* A matrix that does not exist for this k, m and w is skipped. */
static int
one (const struct method_ops *ops, unsigned k, unsigned m, unsigned w,
     struct report *r, struct json_object *list)
{
  uint8_t coef[CODE_MAX * CODE_MAX];
  char why[BENCH_WHY_LEN];
  struct matrix *a;
  struct json_object *o;

  if (1u << w < k + m ||
      method_parity (ops, CODE_CRS, k, m, w, coef, why) == -1)
    return 0;
  a = matrix_new_packets (w, 8, m, k, coef);
  o = a ? count (a, ops == &method_xor ? "gpuraid" : ops->name,
                 find_printed (ops, k, m, w)) : NULL;
  matrix_free (a);
  if (o == NULL) {
    log_error ("%u+%u: %m", k, m);
    return -1;
  }
  if (!r->json)
    print (r->fp, o);
  json_object_array_add (list, o);
  return 0;
}

/* Ours, then the two Cauchy matrices of the papers. */
static int
all (const struct sweep *s, struct report *r, struct json_object *list)
{
  static const struct method_ops *const ops[] = {
    &method_xor, &method_gcrs, &method_sobe_c,
  };
  struct shapes shapes;
  char why[BENCH_WHY_LEN];
  unsigned w;

  if (sweep_shapes (s, &shapes) == -1)
    return -1;
  for (unsigned i = 0; i < shapes.nr * s->w.nr; i++) {
    unsigned k = shapes.v[i / s->w.nr].k, m = shapes.v[i / s->w.nr].m;

    if (code_w (&method_xor, CODE_CRS, k, m, s->w.v[i % s->w.nr], s->w_floor,
                &w, why) == -1) {
      log_error ("--xors: %s", why);
      return -1;
    }
    for (size_t e = 0; e < ARRAY_LEN (ops); e++)
      if (one (ops[e], k, m, w, r, list) == -1)
        return -1;
  }
  return 0;
}

int
xors_run (const struct sweep *s, struct report *r)
{
  struct json_object *list = json_object_new_array ();
  int status;

  if (!r->json)
    fprintf (r->fp, "%-8s %3s %3s %3s %9s %9s %9s %9s %9s %9s %9s\n",
             "matrix", "k", "m", "w", "ones", "direct", "iterative", "greedy",
             "best", "paper:dir", "paper:it");
  status = all (s, r, list);
  json_object_object_add (r->top, "xors", list);
  return status;
}
