/* gpuraid: go through the cases.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <stdlib.h>

#include "bench/sweep.h"
#include "common/bits.h"
#include "common/log.h"

static int
parse_number (const char **p, uint64_t m, uint64_t *n)
{
  char *end;

  if (m > 0 && **p == 'm') {
    *n = m;
    ++*p;
    return 0;
  }
  if (**p < '0' || **p > '9')
    return -1;
  errno = 0;
  *n = strtoull (*p, &end, 10);
  *p = end;
  return errno ? -1 : 0;
}

/* "4", "2-45" or "2-45:5" */
static int
parse_range (const char **p, uint64_t m, uint64_t *first, uint64_t *last,
             uint64_t *step)
{
  *step = 1;
  if (parse_number (p, m, first) == -1)
    return -1;
  *last = *first;
  if (**p == '-') {
    ++*p;
    if (parse_number (p, m, last) == -1)
      return -1;
    if (**p == ':') {
      ++*p;
      if (parse_number (p, 0, step) == -1 || *step == 0)
        return -1;
    }
  }
  return **p == ',' || **p == '\0' ? 0 : -1;
}

int
values_parse (const char *text, uint64_t least, uint64_t most, uint64_t m,
              struct values *values, char *why)
{
  const char *p = text;
  uint64_t first, last, step;

  values->nr = 0;
  do {
    if (*p == ',')
      p++;
    if (parse_range (&p, m, &first, &last, &step) == -1) {
      snprintf (why, BENCH_WHY_LEN, "%s: not a list of numbers", text);
      return -1;
    }
    for (uint64_t n = first; n <= last; n += step) {
      if (n < least || n > most) {
        snprintf (why, BENCH_WHY_LEN, "%s: not from %llu to %llu", text,
                  (unsigned long long) least, (unsigned long long) most);
        return -1;
      }
      if (values->nr == SWEEP_MAX_VALUES) {
        snprintf (why, BENCH_WHY_LEN, "%s: more than %u values", text,
                  SWEEP_MAX_VALUES);
        return -1;
      }
      values->v[values->nr++] = n;
    }
  } while (*p == ',');
  return 0;
}

static int
run_losses (const struct sweep *s, struct run_request *q,
            sweep_case *one, void *opaque)
{
  q->lost = s->lost;
  for (unsigned i = 0; i < s->nr_losses; i++) {
    q->loss = s->lose[i].loss;
    q->nr_lost = s->lose[i].nr;
    if (one (s, q, opaque) == -1)
      return -1;
  }
  return 0;
}

/* The rest of the loops.  Threads make no difference to most methods on a GPU.
 */
static int
run_method (const struct sweep *s, struct run_request *q,
            sweep_case *one, void *opaque)
{
  bool threads = !q->ops->gpu || q->ops->gpu_and_cpu;

  for (unsigned c = 0; c < s->cell.nr; c++) {
    for (unsigned b = 0; b < s->batch.nr; b++) {
      for (unsigned t = 0; t < (threads ? s->threads.nr : 1); t++) {
        for (unsigned p = 0; p < s->slices.nr; p++) {
          q->cell_len = s->cell.v[c];
          q->nr_rects = s->batch.v[b];
          q->threads = s->threads.v[t];
          q->slices = s->slices.v[p];
          if (run_losses (s, q, one, opaque) == -1)
            return -1;
        }
      }
    }
  }
  return 0;
}

/* Codes over bytes have only one w. */
static int
run_widths (const struct sweep *s, struct run_request *q,
            sweep_case *one, void *opaque)
{
  bool crs = code_of (q->ops, q->code) == CODE_CRS;

  for (unsigned i = 0; i < (crs ? s->w.nr : 1); i++) {
    q->w = crs ? s->w.v[i] : 8;
    if (run_method (s, q, one, opaque) == -1)
      return -1;
  }
  return 0;
}

static int
add_shape (struct shapes *shapes, unsigned k, unsigned m)
{
  if (shapes->nr == SWEEP_MAX_SHAPES) {
    log_error ("more than %u different k and m", SWEEP_MAX_SHAPES);
    return -1;
  }
  shapes->v[shapes->nr++] = (struct shape) { k, m };
  return 0;
}

/* "4+2,10+4" */
static int
read_pairs (const char *text, struct shapes *shapes)
{
  const char *p = text;
  uint64_t k, m;

  do {
    p += *p == ',';
    if (parse_number (&p, 0, &k) == -1 || *p++ != '+' ||
        parse_number (&p, 0, &m) == -1 || (*p != ',' && *p != '\0') ||
        k < 1 || m < 1 || k >= CODE_MAX || m >= CODE_MAX) {
      log_error ("--pairs: %s: not a list like 4+2,10+4", text);
      return -1;
    }
    if (add_shape (shapes, k, m) == -1)
      return -1;
  } while (*p == ',');
  return 0;
}

int
sweep_shapes (const struct sweep *s, struct shapes *shapes)
{
  struct values k;
  char why[BENCH_WHY_LEN];

  shapes->nr = 0;
  if (s->pairs)
    return read_pairs (s->pairs, shapes);
  for (unsigned i = 0; i < s->m.nr; i++) {
    if (values_parse (s->k, 1, CODE_MAX - 1, s->m.v[i], &k, why) == -1) {
      log_error ("-k: %s", why);
      return -1;
    }
    for (unsigned j = 0; j < k.nr; j++)
      if (add_shape (shapes, k.v[j], s->m.v[i]) == -1)
        return -1;
  }
  return 0;
}

int
sweep_each (const struct sweep *s, sweep_case *one, void *opaque)
{
  struct run_request q = {
    .code = s->code, .w_floor = s->w_floor, .memory_len = s->memory_len,
    .least_rects = s->least_rects, .seed = s->seed,
  };
  struct shapes shapes;

  if (sweep_shapes (s, &shapes) == -1)
    return -1;
  for (unsigned i = 0; i < shapes.nr; i++) {
    q.k = shapes.v[i].k;
    q.m = shapes.v[i].m;
    for (unsigned c = 0; c < s->nr_choices; c++) {
      q.ops = s->choice[c].ops;
      q.option = s->choice[c].option;
      if (run_widths (s, &q, one, opaque) == -1)
        return -1;
    }
  }
  return 0;
}
