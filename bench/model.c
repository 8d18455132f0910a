/* gpuraid: fit G-CRS's model, and compare its predictions.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <math.h>
#include <stdio.h>

#include "bench/ceilings.h"
#include "bench/gcrs-model.h"
#include "bench/gpu.h"
#include "bench/meter.h"
#include "bench/methods.h"
#include "bench/model.h"
#include "common/bits.h"
#include "common/log.h"

/* The k at which the cost of an operation is measured: large, so that there are
 * many operations for each access that is left.
 */
#define FIT_K 12

/* Data bytes a second; 0: why. */
static double
measure (const struct sweep *s, const char *option, unsigned k, unsigned m,
         unsigned w, char *why)
{
  struct run_request q = {
    .ops = &method_gcrs, .option = option, .k = k, .m = m, .w = w,
    .cell_len = s->cell.v[0], .nr_rects = s->batch.v[0],
    .memory_len = s->memory_len, .threads = 1, .seed = s->seed,
  };
  struct run *run = run_open (&q, why);
  struct meter_rate sample;
  double rate = 0;

  if (run == NULL)
    return 0;
  if (meter_run (run, METRIC_RAW, &s->effort, &sample, why) == 0)
    rate = run_data_len (run) / sample.seconds;
  run_close (run);
  return rate;
}

/* The mean over all m and w: the model has one constant for all. */
static int
fit (const struct sweep *s, const struct shapes *shapes,
     struct gcrs_model *model, char *why)
{
  const struct ceilings *c = ceilings_gpu (why);
  struct bench_gpu *gpu = bench_gpu_get (why);
  unsigned nr = 0;
  double sum = 0;

  if (c == NULL || gpu == NULL)
    return -1;
  *model = (struct gcrs_model) {
    .core_hz = gpu->core_hz, .nr_sms = gpu->nr_sms,
  };
  model->t_access = gcrs_model_fit_access (model, c->copy);
  for (unsigned i = 0; i < shapes->nr; i++) {
    unsigned m = shapes->v[i].m;

    if (i > 0 && m == shapes->v[i - 1].m)
      continue;
    for (unsigned j = 0; j < s->w.nr; j++) {
      unsigned w = s->w.v[j], k = MIN (FIT_K, (1u << w) - m);
      double rate;

      if (m >= 1u << w)
        continue;
      rate = measure (s, "no-loads", k, m, w, why);
      if (rate == 0)
        return -1;
      sum += gcrs_model_fit_sm (model, m, w, rate);
      nr++;
    }
  }
  if (nr == 0) {
    snprintf (why, BENCH_WHY_LEN, "no w that these m can do");
    return -1;
  }
  model->t_sm = sum / nr;
  return 0;
}

/* One case; its error is added to *sum. */
static int
one (const struct sweep *s, const struct gcrs_model *model, unsigned k,
     unsigned m, unsigned w, struct report *r, struct json_object *list,
     double *sum)
{
  char why[BENCH_WHY_LEN];
  double predicted = gcrs_model_rate (model, k, m, w), error;
  double measured = measure (s, NULL, k, m, w, why);
  double ratio = gcrs_model_r (k, m, w);
  double traffic = measured * (k + m) / k;
  struct json_object *o;

  if (measured == 0) {
    log_error ("gcrs %u+%u, w %u: %s", k, m, w, why);
    return -1;
  }
  error = fabs (predicted - measured) / measured;
  *sum += error;
  if (!r->json)
    fprintf (r->fp, "%3u %3u %1u %7.4f %10.2f %10.2f %9.2f %7.2f%%\n", k, m, w,
             ratio, predicted / 1e9, measured / 1e9, traffic / 1e9,
             100 * error);
  fflush (r->fp);
  o = json_object_new_object ();
  json_object_object_add (o, "k", json_object_new_int (k));
  json_object_object_add (o, "m", json_object_new_int (m));
  json_object_object_add (o, "w", json_object_new_int (w));
  report_double (o, "r", ratio);
  report_double (o, "predicted_gb_per_s", predicted / 1e9);
  report_double (o, "measured_gb_per_s", measured / 1e9);
  report_double (o, "traffic_gb_per_s", traffic / 1e9);
  report_double (o, "error", error);
  json_object_array_add (list, o);
  return 0;
}

static int
all (const struct sweep *s, const struct shapes *shapes,
     const struct gcrs_model *model, struct report *r,
     struct json_object *list, double *sum)
{
  for (unsigned j = 0; j < s->w.nr; j++) {
    for (unsigned i = 0; i < shapes->nr; i++) {
      unsigned k = shapes->v[i].k, m = shapes->v[i].m, w = s->w.v[j];

      if (k + m <= 1u << w && one (s, model, k, m, w, r, list, sum) == -1)
        return -1;
    }
  }
  return 0;
}

int
model_run (const struct sweep *s, struct report *r)
{
  struct gcrs_model model;
  struct shapes shapes;
  struct json_object *list;
  char why[BENCH_WHY_LEN];
  double sum = 0, nr;

  if (sweep_shapes (s, &shapes) == -1)
    return -1;
  for (unsigned i = 0; i < s->w.nr; i++) {
    if (s->w.v[i] == 0) {
      log_error ("--model: which -w?");
      return -1;
    }
  }
  if (fit (s, &shapes, &model, why) == -1) {
    log_error ("--model: %s", why);
    return -1;
  }
  report_add (r, "t_access", json_object_new_double (model.t_access));
  report_add (r, "t_sm", json_object_new_double (model.t_sm));
  report_add (r, "rho", json_object_new_double (gcrs_model_rho (&model)));
  if (!r->json)
    fprintf (r->fp, "%3s %3s %1s %7s %10s %10s %9s %8s\n", "k", "m", "w", "r",
             "predicted", "measured", "traffic", "error");
  list = json_object_new_array ();
  json_object_object_add (r->top, "model", list);
  if (all (s, &shapes, &model, r, list, &sum) == -1)
    return -1;
  nr = json_object_array_length (list);
  if (nr == 0) {
    log_error ("--model: no k that these m and w can do");
    return -1;
  }
  report_add (r, "mean_error", json_object_new_double (sum / nr));
  return 0;
}
