/* gpuraid: measure from which size of batch a GPU is faster.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>
#include <stdlib.h>

#include "bench/meter.h"
#include "bench/methods.h"
#include "bench/model.h"
#include "common/bits.h"
#include "common/log.h"

/* Batches of 1, 2, 4 ... 256 rects. */
#define NR_SIZES 9

/* A turn of each side begins with this many batches that don't count, while
 * processors and device wake up.
 */
#define TURN_COLD 8

/* Each one alone is measured twice, with cells of its own each time: the
 * difference between the two shows how much a difference means.
 */
enum { ISAL, CUDA, AUTO, ISAL_AGAIN, CUDA_AGAIN, NR_SIDES };

static const struct {
  const struct method_ops *ops;
  enum metric metric;
  const char *key;
} sides[NR_SIDES] = {
  [ISAL] = { &method_isal, METRIC_RAW, "isal_us" },
  [CUDA] = { &method_cuda, METRIC_OVERALL, "cuda_us" },
  [AUTO] = { &method_auto, METRIC_OVERALL, "auto_us" },
  [ISAL_AGAIN] = { &method_isal, METRIC_RAW, "isal_again_us" },
  [CUDA_AGAIN] = { &method_cuda, METRIC_OVERALL, "cuda_again_us" },
};

/* The sides of one shape and batch. */
struct group {
  struct run *run[NR_SIDES];
  struct meter meter[NR_SIDES];
};

/* Compared with the better one of isal and cuda, for all batches. */
struct ratios {
  size_t nr;
  double of_auto[SWEEP_MAX_SHAPES * NR_SIZES];
  double of_again[SWEEP_MAX_SHAPES * NR_SIZES]; /* it, the second time */
};

static int
open_side (const struct sweep *s, struct group *g, unsigned side, unsigned k,
           unsigned m, size_t nr_rects, char *why)
{
  const struct run_request q = {
    .ops = sides[side].ops, .code = s->code, .k = k, .m = m,
    .w = s->w.v[0], .cell_len = s->cell.v[0], .nr_rects = nr_rects,
    .memory_len = s->memory_len, .threads = s->threads.v[0], .slices = 1,
    .seed = s->seed,
  };

  g->run[side] = run_open (&q, why);
  if (g->run[side] == NULL)
    return -1;
  return meter_begin (&g->meter[side], g->run[side], sides[side].metric, 0,
                      why);
}

/* A sample: batches one after the other, for one side. */
static int
take_turn (const struct sweep *s, struct meter *m, char *why)
{
  if (meter_warm (m, TURN_COLD, why) == -1)
    return -1;
  return meter_take_mean (m, s->effort.seconds, why);
}

/* Each round begins with another side, and every second round goes backwards,
 * so that no side always follows the same one.
 */
static int
take_all (const struct sweep *s, struct group *g, unsigned *side, char *why)
{
  for (unsigned turn = 0; turn < s->effort.samples; turn++)
    for (unsigned i = 0; i < NR_SIDES; i++) {
      *side = (turn + (turn % 2 ? NR_SIDES - i : i)) % NR_SIDES;
      if (take_turn (s, &g->meter[*side], why) == -1)
        return -1;
    }
  return 0;
}

/* Seconds of a single batch, on all sides: the median of the turns. */
static int
measure (const struct sweep *s, unsigned k, unsigned m, size_t nr_rects,
         double seconds[])
{
  struct group g = { 0 };
  char why[BENCH_WHY_LEN];
  unsigned side;
  int r = 0;

  for (side = 0; side < NR_SIDES && r == 0; side++)
    r = open_side (s, &g, side, k, m, nr_rects, why);
  if (r == -1)
    side--;
  else
    r = take_all (s, &g, &side, why);
  if (r == -1)
    log_error ("--crossover: %s: %s", sides[side].ops->name, why);
  for (unsigned i = 0; i < NR_SIDES; i++) {
    struct meter_rate rate;

    if (r == 0) {
      meter_rate (&g.meter[i], &rate);
      seconds[i] = rate.seconds;
    }
    run_close (g.run[i]);
  }
  return r;
}

static void
print_batch (FILE *fp, unsigned k, unsigned m, size_t nr_rects,
             size_t cell_len, const double seconds[], double of_auto,
             double of_again)
{
  fprintf (fp, "%3u %3u %6zu %9.0f %10.1f %10.1f %10.1f %6.2f %6.2f\n", k, m,
           nr_rects, nr_rects * k * cell_len / 1024.0, seconds[ISAL] * 1e6,
           seconds[CUDA] * 1e6, seconds[AUTO] * 1e6, of_auto, of_again);
  fflush (fp);
}

static int
one_batch (const struct sweep *s, unsigned k, unsigned m, size_t nr_rects,
           double seconds[], struct ratios *ratios, struct report *r,
           struct json_object *list)
{
  struct json_object *o;
  double of_auto, of_again;
  unsigned better;

  if (measure (s, k, m, nr_rects, seconds) == -1)
    return -1;
  better = seconds[CUDA] < seconds[ISAL] ? CUDA : ISAL;
  of_auto = seconds[AUTO] / seconds[better];
  of_again = seconds[better == CUDA ? CUDA_AGAIN : ISAL_AGAIN]
             / seconds[better];
  ratios->of_auto[ratios->nr] = of_auto;
  ratios->of_again[ratios->nr++] = of_again;
  if (!r->json)
    print_batch (r->fp, k, m, nr_rects, s->cell.v[0], seconds, of_auto,
                 of_again);
  o = json_object_new_object ();
  json_object_object_add (o, "k", json_object_new_int (k));
  json_object_object_add (o, "m", json_object_new_int (m));
  json_object_object_add (o, "rects", json_object_new_int64 (nr_rects));
  for (unsigned i = 0; i < NR_SIDES; i++)
    report_double (o, sides[i].key, seconds[i] * 1e6);
  json_object_array_add (list, o);
  return 0;
}

/* The smallest batch from which the GPU alone is faster. */
static int
one_shape (const struct sweep *s, unsigned k, unsigned m,
           struct ratios *ratios, struct report *r, struct json_object *list)
{
  double seconds[NR_SIDES];
  size_t from = 0;
  char key[40], text[80];

  for (unsigned i = 0; i < NR_SIZES; i++) {
    const size_t n = (size_t) 1 << i;

    if ((k + m) * n * s->cell.v[0] > s->memory_len)
      break;
    if (one_batch (s, k, m, n, seconds, ratios, r, list) == -1)
      return -1;
    if (seconds[CUDA] >= seconds[ISAL])
      from = 0;
    else if (from == 0)
      from = n;
  }
  snprintf (key, sizeof key, "crossover_%u+%u", k, m);
  if (from > 0)
    snprintf (text, sizeof text, "cuda is faster from %zu rects on", from);
  else
    snprintf (text, sizeof text, "isal is faster");
  report_add (r, key, json_object_new_string (text));
  return 0;
}

static int
compare_ratios (const void *a, const void *b)
{
  const double x = *(const double *) a, y = *(const double *) b;

  return (x > y) - (x < y);
}

/* Median, worst, and how many are more than a few percent slower. */
static void
add_summary (struct report *r, const char *key, double ratio[], size_t nr)
{
  size_t slow[2] = { 0 };
  char text[120];

  if (nr == 0)
    return;
  qsort (ratio, nr, sizeof ratio[0], compare_ratios);
  for (size_t i = 0; i < nr; i++) {
    slow[0] += ratio[i] > 1.05;
    slow[1] += ratio[i] > 1.08;
  }
  snprintf (text, sizeof text,
            "median %.2f, worst %.2f; %zu of %zu over 1.05, %zu over 1.08",
            ratio[nr / 2], ratio[nr - 1], slow[0], nr, slow[1]);
  report_add (r, key, json_object_new_string (text));
}

int
crossover_run (const struct sweep *s, struct report *r)
{
  struct json_object *list = json_object_new_array ();
  struct ratios *ratios;
  struct shapes shapes;
  int ret = 0;

  json_object_object_add (r->top, "crossover", list);
  if (sweep_shapes (s, &shapes) == -1)
    return -1;
  if (!r->json)
    fprintf (r->fp, "%3s %3s %6s %9s %10s %10s %10s %6s %6s\n", "k", "m",
             "rects", "data KiB", "isal us", "cuda us", "auto us", "auto",
             "again");
  ratios = calloc (1, sizeof *ratios);
  if (ratios == NULL) {
    log_error ("--crossover: calloc: %m");
    return -1;
  }
  for (unsigned i = 0; i < shapes.nr && ret == 0; i++)
    ret = one_shape (s, shapes.v[i].k, shapes.v[i].m, ratios, r, list);
  if (ret == 0) {
    add_summary (r, "crossover_auto", ratios->of_auto, ratios->nr);
    add_summary (r, "crossover_again", ratios->of_again, ratios->nr);
  }
  free (ratios);
  return ret;
}
