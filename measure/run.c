/* gpuraid: prepare a case, and check its result.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bits.h"
#include "common/cleanup.h"
#include "measure/reference.h"
#include "measure/run.h"

/* A matrix that is singular for one choice of lost cells may work for another.
 */
#define MAX_DRAWS 1000

/* Losses that the request leaves to chance are drawn until they can be decoded:
 * not every method's code can decode all.
 */
static int
make_decode (struct run *run, unsigned w, const uint8_t *parity,
             uint8_t *coef, unsigned *rows, char *why)
{
  struct run_request *q = &run->request;
  unsigned lost[CODE_MAX], nr = q->nr_lost, n = q->k + q->m;

  if (q->loss == LOSS_DATA) {
    nr = MIN (q->k, q->m);
    n = q->k;
  }
  else if (q->loss == LOSS_RANDOM && nr == 0)
    nr = q->m;
  if (nr > q->m) {
    snprintf (why, BENCH_WHY_LEN, "%u+%u does not survive %u losses", q->k,
              q->m, nr);
    return -1;
  }
  *rows = nr;
  for (unsigned draw = 0; draw < MAX_DRAWS; draw++) {
    if (q->loss == LOSS_GIVEN)
      memcpy (lost, q->lost, nr * sizeof lost[0]);
    else
      code_choose (&run->random, n, nr, lost);
    if (lost[nr - 1] >= q->k + q->m) {
      snprintf (why, BENCH_WHY_LEN, "%u+%u has no cell %u", q->k, q->m,
                lost[nr - 1]);
      return -1;
    }
    if (code_decode (q->k, q->m, w, parity, nr, lost, coef) == 0)
      return 0;
    if (q->loss == LOSS_GIVEN)
      break;
  }
  snprintf (why, BENCH_WHY_LEN, "the code of %s can't decode these losses",
            q->ops->name);
  return -1;
}

/* The cell length that this method supports, and its packets. */
static int
fit_cell (struct run *run, enum code code, unsigned w, size_t *packet_len,
          char *why)
{
  struct run_request *q = &run->request;
  size_t unit = code == CODE_CRS ? 64 * w : 64, len;

  len = MAX (q->cell_len / unit * unit, unit);
  *packet_len = code_packet_len (q->ops, code, w, len, q->option, &unit);
  if (len % unit != 0) {
    len = MAX (len / unit * unit, unit);
    *packet_len = code_packet_len (q->ops, code, w, len, q->option, &unit);
  }
  if (len % unit != 0 || (code == CODE_CRS && *packet_len == 0)) {
    snprintf (why, BENCH_WHY_LEN, "cells of %zu bytes are not for %s",
              q->cell_len, q->ops->name);
    return -1;
  }
  run->bc.cell_len = len;
  return 0;
}

static int
make_matrix (struct run *run, char *why)
{
  struct run_request *q = &run->request;
  enum code code = code_of (q->ops, q->code);
  CLEANUP_FREE uint8_t *parity = NULL, *coef = NULL;
  unsigned rows = q->m, w;
  size_t packet_len;

  if (q->k + q->m > CODE_MAX || q->k > MATRIX_MAX || q->m > MATRIX_MAX) {
    snprintf (why, BENCH_WHY_LEN, "%u+%u is too big", q->k, q->m);
    return -1;
  }
  if (code_w (q->ops, code, q->k, q->m, q->w, q->w_floor, &w, why) == -1 ||
      fit_cell (run, code, w, &packet_len, why) == -1)
    return -1;
  parity = malloc (q->m * q->k);
  coef = malloc (q->m * q->k);
  if (parity == NULL || coef == NULL) {
    snprintf (why, BENCH_WHY_LEN, "malloc: %m");
    return -1;
  }
  if (method_parity (q->ops, code, q->k, q->m, w, parity, why) == -1)
    return -1;
  if (q->loss == LOSS_NONE)
    memcpy (coef, parity, q->m * q->k);
  else if (make_decode (run, w, parity, coef, &rows, why) == -1)
    return -1;
  run->bc.w = w;
  run->matrix = packet_len > 0
    ? matrix_new_packets (w, packet_len, rows, q->k, coef)
    : matrix_new (rows, q->k, coef);
  if (run->matrix == NULL)
    snprintf (why, BENCH_WHY_LEN, "matrix: %m");
  return run->matrix ? 0 : -1;
}

static void
make_case (struct run *run)
{
  const struct run_request *q = &run->request;
  struct bench_case *bc = &run->bc;
  size_t rect_len = (run->matrix->cols + run->matrix->rows) * bc->cell_len;

  bc->k = q->k;
  bc->m = q->m;
  bc->matrix = run->matrix;
  bc->nr_rects = q->nr_rects;
  if (bc->nr_rects == 0)
    bc->nr_rects = MAX (q->memory_len / rect_len, MAX (q->least_rects, 1));
  bc->threads = q->threads;
  bc->slices = q->slices;
  bc->option = q->option;
}

/* Random bytes are made once and then copied from different places, which is as
 * fast as copying.
 */
#define POOL_LEN (2 * MIB)
#define PART_LEN (64 * KIB)

static int
fill_inputs (struct run *run, char *why)
{
  CLEANUP_FREE uint8_t *pool = malloc (POOL_LEN + PART_LEN);

  if (pool == NULL) {
    snprintf (why, BENCH_WHY_LEN, "malloc: %m");
    return -1;
  }
  reference_fill (&run->random, pool, POOL_LEN + PART_LEN);
  for (size_t r = 0; r < run->bc.nr_rects; r++) {
    for (unsigned i = 0; i < run->matrix->cols; i++) {
      uint8_t *cell = run->method->ops->in (run->method, r, i);

      for (size_t off = 0; off < run->bc.cell_len; off += PART_LEN)
        memcpy (cell + off, pool + reference_random (&run->random) % POOL_LEN,
                MIN (PART_LEN, run->bc.cell_len - off));
    }
  }
  return 0;
}

struct run *
run_open (const struct run_request *q, char *why)
{
  struct run *run = calloc (1, sizeof *run);

  if (run == NULL) {
    snprintf (why, BENCH_WHY_LEN, "calloc: %m");
    return NULL;
  }
  run->request = *q;
  run->random = q->seed;
  if (make_matrix (run, why) == -1)
    goto err;
  make_case (run);
  run->method = q->ops->open (&run->bc, why);
  if (run->method == NULL || fill_inputs (run, why) == -1)
    goto err;
  return run;

 err:
  run_close (run);
  return NULL;
}

void
run_close (struct run *run)
{
  if (run == NULL)
    return;
  if (run->method)
    run->method->ops->close (run->method);
  matrix_free (run->matrix);
  free (run);
}

bool
run_can (const struct run *run, enum metric metric)
{
  const struct method_ops *ops = run->method->ops;

  return metric == METRIC_RAW ? ops->raw != NULL : ops->overall != NULL;
}

const char *
run_metric_name (enum metric metric)
{
  return metric == METRIC_RAW ? "raw" : "overall";
}

int
run_code (struct run *run, enum metric metric, unsigned nr, double *seconds,
          char *why)
{
  const struct method_ops *ops = run->method->ops;

  return (metric == METRIC_RAW ? ops->raw : ops->overall)
    (run->method, nr, seconds, why);
}

/* Code once, into outputs that were wrong before.  A run by raw needs a load
 * after this.
 */
static int
code_once (struct run *run, enum metric metric, char *why)
{
  const struct method_ops *ops = run->method->ops;
  double seconds;

  for (size_t r = 0; r < run->bc.nr_rects; r++)
    for (unsigned j = 0; j < run->matrix->rows; j++)
      memset (ops->out (run->method, r, j), 0xa5, run->bc.cell_len);
  if (ops->spoil && ops->spoil (run->method, why) == -1)
    return -1;
  if (metric == METRIC_RAW && ops->load && ops->load (run->method, why) == -1)
    return -1;
  if (run_code (run, metric, 1, &seconds, why) == -1)
    return -1;
  if (metric == METRIC_RAW && ops->fetch && ops->fetch (run->method, why) == -1)
    return -1;
  return 0;
}

/* One stretch of an output cell: 0, or 1: why. */
static int
check (struct run *run, size_t r, unsigned j, size_t off, size_t len,
       uint8_t *expect, char *why)
{
  const struct method_ops *ops = run->method->ops;
  const uint8_t *in[MATRIX_MAX], *out = ops->out (run->method, r, j) + off;

  for (unsigned i = 0; i < run->matrix->cols; i++)
    in[i] = ops->in (run->method, r, i);
  reference_row (run->matrix, j, in, off, len, expect);
  if (memcmp (expect, out, len) == 0)
    return 0;
  for (size_t b = 0; b < len; b++) {
    if (expect[b] != out[b]) {
      snprintf (why, BENCH_WHY_LEN, "rect %zu, output %u, byte %zu is %02x "
                "and not %02x", r, j, off + b, out[b], expect[b]);
      break;
    }
  }
  return 1;
}

/* About 16 KiB, and not less than a block of packets. */
static size_t
stretch_len (const struct run *run)
{
  size_t unit = run->matrix->packet_len * run->matrix->w;

  if (unit == 0)
    unit = 64;
  return MIN (MAX (16 * KIB / unit, 1) * unit, run->bc.cell_len);
}

int
run_verify (struct run *run, enum metric metric, size_t max_len, char *why)
{
  const struct method_ops *ops = run->method->ops;
  size_t len = stretch_len (run), rows = run->matrix->rows;
  size_t nr = div_round_up (run->bc.cell_len, len);
  size_t all = run->bc.nr_rects * rows * nr, want = all, i;
  CLEANUP_FREE uint8_t *expect = malloc (len);

  if (expect == NULL) {
    snprintf (why, BENCH_WHY_LEN, "malloc: %m");
    return -1;
  }
  if (code_once (run, metric, why) == -1)
    return -1;
  if (ops->check && ops->check (run->method, why) == -1)
    return 1;
  if (max_len > 0)
    want = MIN (MAX (max_len / len, 4 * rows), all);
  for (size_t n = 0; n < want; n++) {
    /* All in order; or as many from either end, and half of them drawn. */
    if (want == all || n < want / 4)
      i = n;
    else if (n < want / 2)
      i = all - 1 - (n - want / 4);
    else
      i = reference_random (&run->random) % all;
    size_t off = i % nr * len;

    if (check (run, i / nr / rows, i / nr % rows, off,
               MIN (len, run->bc.cell_len - off), expect, why) == 1)
      return 1;
  }
  return 0;
}

double
run_data_len (const struct run *run)
{
  return (double) run->bc.nr_rects * run->matrix->cols * run->bc.cell_len;
}
