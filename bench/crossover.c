/* gpuraid: how big a batch must be for a GPU to pay.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>

#include "bench/engines.h"
#include "bench/meter.h"
#include "bench/model.h"
#include "common/bits.h"
#include "common/log.h"

#define MAX_RECTS 256

/* A turn of each side begins with so many batches that don't count, while
 * processors and device wake up.
 */
#define TURN_COLD 8

static const struct {
  const struct engine_ops *ops;
  enum metric metric;
} sides[] = {
  { &engine_isal, METRIC_RAW },
  { &engine_cuda, METRIC_OVERALL },
  { &engine_auto, METRIC_OVERALL },
};

#define NR_SIDES ARRAY_LEN (sides)

/* The sides of one shape and batch. */
struct group {
  struct run *run[NR_SIDES];
  struct meter meter[NR_SIDES];
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

/* A sample: batches one after the other, until it is time for the next side.
 */
static int
take_turn (const struct sweep *s, struct meter *m, char *why)
{
  if (meter_warm (m, TURN_COLD, why) == -1)
    return -1;
  return meter_take_mean (m, s->effort.seconds, why);
}

static int
take_all (const struct sweep *s, struct group *g, unsigned *side, char *why)
{
  for (unsigned turn = 0; turn < s->effort.samples; turn++)
    for (*side = 0; *side < NR_SIDES; ++*side)
      if (take_turn (s, &g->meter[*side], why) == -1)
        return -1;
  return 0;
}

/* Seconds of one batch by itself, on all sides: the median of the turns. */
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

static int
one_batch (const struct sweep *s, unsigned k, unsigned m, size_t nr_rects,
           double seconds[], struct report *r, struct json_object *list)
{
  struct json_object *o;

  if (measure (s, k, m, nr_rects, seconds) == -1)
    return -1;
  if (!r->json)
    fprintf (r->fp, "%3u %3u %6zu %9.0f %10.1f %10.1f %10.1f %6.2f\n", k, m,
             nr_rects, nr_rects * k * s->cell.v[0] / 1024.0,
             seconds[0] * 1e6, seconds[1] * 1e6, seconds[2] * 1e6,
             seconds[2] / MIN (seconds[0], seconds[1]));
  fflush (r->fp);
  o = json_object_new_object ();
  json_object_object_add (o, "k", json_object_new_int (k));
  json_object_object_add (o, "m", json_object_new_int (m));
  json_object_object_add (o, "rects", json_object_new_int64 (nr_rects));
  for (unsigned i = 0; i < NR_SIDES; i++) {
    char key[40];

    snprintf (key, sizeof key, "%s_us", sides[i].ops->name);
    report_double (o, key, seconds[i] * 1e6);
  }
  json_object_array_add (list, o);
  return 0;
}

/* The smallest batch from which on the GPU alone is the faster one. */
static int
one_shape (const struct sweep *s, unsigned k, unsigned m, struct report *r,
           struct json_object *list)
{
  double seconds[NR_SIDES];
  size_t from = 0;
  char key[40], text[80];

  for (size_t n = 1; n <= MAX_RECTS; n *= 2) {
    if ((k + m) * n * s->cell.v[0] > s->memory_len)
      break;
    if (one_batch (s, k, m, n, seconds, r, list) == -1)
      return -1;
    if (seconds[1] >= seconds[0])
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

int
crossover_run (const struct sweep *s, struct report *r)
{
  struct json_object *list = json_object_new_array ();
  struct shapes shapes;

  json_object_object_add (r->top, "crossover", list);
  if (sweep_shapes (s, &shapes) == -1)
    return -1;
  if (!r->json)
    fprintf (r->fp, "%3s %3s %6s %9s %10s %10s %10s %6s\n", "k", "m", "rects",
             "data KiB", "isal us", "cuda us", "auto us", "ratio");
  for (unsigned i = 0; i < shapes.nr; i++)
    if (one_shape (s, shapes.v[i].k, shapes.v[i].m, r, list) == -1)
      return -1;
  return 0;
}
