/* gpuraid: Jerasure, which the papers compare with on the processor.
 *
 * It is only needed for comparison, so it is opened at run time.  Threads take
 * ranges of bytes of all cells.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/methods.h"
#include "common/bits.h"
#include "measure/clock.h"

#define MAX_THREADS 1024

static struct {
  void (*matrix_encode) (int k, int m, int w, int *matrix, char **data,
                         char **coding, int size);
  void (*bitmatrix_encode) (int k, int m, int w, int *bits, char **data,
                            char **coding, int size, int packet_len);
  int *(*matrix_to_bitmatrix) (int k, int m, int w, int *matrix);
} jerasure;

struct jerasure_method {
  struct method method;         /* first */
  struct bench_case bc;
  uint8_t *cells;               /* rect by rect, inputs and then outputs */
  int *matrix, *bits;           /* bits: NULL without packets */
  size_t unit;                  /* a range is a multiple of this */
  unsigned nr;                  /* times that run codes everything */
};

static int
load (char *why)
{
  static const char *const names[] = { "libJerasure.so.2", "libJerasure.so" };
  void *lib = NULL;

  for (size_t i = 0; !lib && i < ARRAY_LEN (names); i++)
    lib = dlopen (names[i], RTLD_NOW | RTLD_LOCAL);
  if (lib == NULL) {
    snprintf (why, BENCH_WHY_LEN, "no libJerasure.so.2");
    return -1;
  }
  jerasure.matrix_encode = dlsym (lib, "jerasure_matrix_encode");
  jerasure.bitmatrix_encode = dlsym (lib, "jerasure_bitmatrix_encode");
  jerasure.matrix_to_bitmatrix = dlsym (lib, "jerasure_matrix_to_bitmatrix");
  if (jerasure.matrix_encode && jerasure.bitmatrix_encode &&
      jerasure.matrix_to_bitmatrix)
    return 0;
  snprintf (why, BENCH_WHY_LEN, "libJerasure.so.2 lacks what we call");
  return -1;
}

static void
jerasure_close (struct method *method)
{
  struct jerasure_method *e = (struct jerasure_method *) method;

  free (e->cells);
  free (e->matrix);
  free (e->bits);
  free (e);
}

static int
make (struct jerasure_method *e)
{
  const struct matrix *a = e->bc.matrix;
  size_t len = e->bc.nr_rects * (a->cols + a->rows) * e->bc.cell_len;
  void *p;

  if (posix_memalign (&p, 4096, len) != 0)
    return -1;
  e->cells = p;
  memset (p, 0, len);
  e->matrix = calloc (a->rows * a->cols, sizeof e->matrix[0]);
  if (e->matrix == NULL)
    return -1;
  for (unsigned i = 0; i < a->rows * a->cols; i++)
    e->matrix[i] = a->coef[i];
  e->unit = 64;
  if (a->packet_len == 0)
    return 0;
  e->unit = a->w * a->packet_len;
  e->bits = jerasure.matrix_to_bitmatrix (a->cols, a->rows, a->w, e->matrix);
  return e->bits ? 0 : -1;
}

static uint8_t *
cell (struct method *method, size_t r, unsigned n)
{
  struct jerasure_method *e = (struct jerasure_method *) method;
  const struct matrix *a = e->bc.matrix;

  return e->cells + (r * (a->cols + a->rows) + n) * e->bc.cell_len;
}

static uint8_t *
jerasure_in (struct method *method, size_t r, unsigned i)
{
  return cell (method, r, i);
}

static uint8_t *
jerasure_out (struct method *method, size_t r, unsigned j)
{
  struct jerasure_method *e = (struct jerasure_method *) method;

  return cell (method, r, e->bc.matrix->cols + j);
}

static void
code_range (struct jerasure_method *e, size_t r, size_t off, size_t len)
{
  const struct matrix *a = e->bc.matrix;
  char *in[MATRIX_MAX], *out[MATRIX_MAX];

  for (unsigned i = 0; i < a->cols; i++)
    in[i] = (char *) jerasure_in (&e->method, r, i) + off;
  for (unsigned j = 0; j < a->rows; j++)
    out[j] = (char *) jerasure_out (&e->method, r, j) + off;
  if (e->bits)
    jerasure.bitmatrix_encode (a->cols, a->rows, a->w, e->bits, in, out, len,
                               a->packet_len);
  else
    jerasure.matrix_encode (a->cols, a->rows, 8, e->matrix, in, out, len);
}

static struct method *
jerasure_open (const struct bench_case *bc, char *why)
{
  struct jerasure_method *e;

  if (load (why) == -1)
    return NULL;
  e = calloc (1, sizeof *e);
  if (e == NULL) {
    snprintf (why, BENCH_WHY_LEN, "calloc: %m");
    return NULL;
  }
  e->method.ops = &method_jerasure;
  e->bc = *bc;
  if (make (e) == 0) {
    /* It makes its tables in the first call, which is not thread-safe. */
    code_range (e, 0, 0, e->unit);
    return &e->method;
  }
  snprintf (why, BENCH_WHY_LEN, "no memory");
  jerasure_close (&e->method);
  return NULL;
}

struct part {
  struct jerasure_method *e;
  unsigned nr;
};

static void *
part_main (void *opaque)
{
  struct part *p = opaque;
  struct jerasure_method *e = p->e;
  size_t units = e->bc.cell_len / e->unit;
  size_t off = units * p->nr / e->bc.threads * e->unit;
  size_t end = units * (p->nr + 1) / e->bc.threads * e->unit;

  for (unsigned n = 0; off < end && n < e->nr; n++)
    for (size_t r = 0; r < e->bc.nr_rects; r++)
      code_range (e, r, off, end - off);
  return NULL;
}

/* The caller does part 0, and the parts for which there is no thread. */
static int
jerasure_raw (struct method *method, unsigned nr, double *seconds, char *why)
{
  struct jerasure_method *e = (struct jerasure_method *) method;
  struct part part[MAX_THREADS];
  pthread_t thread[MAX_THREADS];
  bool made[MAX_THREADS] = { false };
  unsigned threads = MIN (e->bc.threads, MAX_THREADS);
  double start = now ();

  e->nr = nr;
  for (unsigned n = 0; n < threads; n++) {
    part[n] = (struct part) { e, n };
    if (n > 0)
      made[n] = pthread_create (&thread[n], NULL, part_main, &part[n]) == 0;
  }
  for (unsigned n = 0; n < threads; n++)
    if (!made[n])
      part_main (&part[n]);
  for (unsigned n = 0; n < threads; n++)
    if (made[n])
      pthread_join (thread[n], NULL);
  *seconds = now () - start;
  return 0;
}

const struct method_ops method_jerasure = {
  .name = "jerasure",
  .what = "Jerasure on the processor, where it is installed",
  .open = jerasure_open,
  .close = jerasure_close,
  .in = jerasure_in,
  .out = jerasure_out,
  .raw = jerasure_raw,
};
