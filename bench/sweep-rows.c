/* gpuraid: measure the cases, and make rows of them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>

#include "bench/ceilings.h"
#include "bench/sweep.h"
#include "common/bits.h"
#include "common/log.h"

/* Before a case is timed, so much of its outputs is compared. */
#define VERIFY_LEN (1 * MIB)

/* There is nothing to copy. */
static bool
in_memory (const struct engine_ops *ops)
{
  return !ops->gpu && ops->overall == NULL;
}

/* What a row says of its case, whether or not it can be run. */
static void
row_start (struct row *row, const struct run_request *q)
{
  unsigned w = q->w;

  *row = (struct row) {
    .code = code_of (q->ops, q->code) == CODE_RS ? "rs" : "crs",
    .metric = "", .k = q->k, .m = q->m, .w = q->w,
    .cell_len = q->cell_len, .nr_rects = q->nr_rects,
    .threads = q->ops->gpu && !q->ops->gpu_and_cpu ? 0 : q->threads,
    .slices = q->slices, .cpu_seconds = -1,
  };
  if (code_w (q->ops, code_of (q->ops, q->code), q->k, q->m, q->w,
              q->w_floor, &w, row->why) == 0)
    row->w = w;
  row->why[0] = '\0';
  snprintf (row->engine, sizeof row->engine, "%s%s%s", q->ops->name,
            q->option ? ":" : "", q->option ? q->option : "");
  snprintf (row->op, sizeof row->op, "%s",
            q->loss == LOSS_NONE ? "encode" : "decode");
}

static void
row_case (struct row *row, const struct run *run)
{
  row->w = run->bc.w;
  row->cell_len = run->bc.cell_len;
  row->nr_rects = run->bc.nr_rects;
  row->data_len = run_data_len (run);
  row->all_len = run_all_len (run);
  if (run->request.loss != LOSS_NONE)
    snprintf (row->op, sizeof row->op, "decode %u", run->matrix->rows);
}

static double
find_ceiling (const struct run *run, enum metric metric)
{
  const struct engine_ops *ops = run->engine->ops;
  unsigned cols = run->matrix->cols, rows = run->matrix->rows;
  char why[BENCH_WHY_LEN];
  const struct ceilings *c;

  if (in_memory (ops))
    return ceiling_memory (run->bc.threads, cols, rows);
  if (!ops->gpu)                /* what it runs on is not ours to know */
    return 0;
  c = ceilings_gpu (why);
  /* For both together neither is a ceiling. */
  if (c == NULL || ops->gpu_and_cpu)
    return 0;
  return metric == METRIC_RAW ? ceiling_raw (c, cols, rows)
                              : ceiling_overall (c, cols, rows);
}

/* What was measured, in the row. */
static void
row_rate (struct row *row, struct meter *m)
{
  struct meter_rate rate;

  meter_rate (m, &rate);
  row->seconds = rate.seconds;
  row->low = rate.low;
  row->high = rate.high;
  if (m->metric == METRIC_OVERALL || !m->run->engine->ops->gpu)
    row->cpu_seconds = rate.cpu_seconds;
  row->ceiling = find_ceiling (m->run, m->metric);
}

static void
row_latency (struct row *row, struct meter *m)
{
  struct meter_latency l;

  meter_latency (m, &l);
  row->p50 = l.p50;
  row->p90 = l.p90;
  row->p99 = l.p99;
  row->low = l.low;
  row->high = l.high;
}

/* 0, or -1: row->why. */
static int
begin (const struct sweep *s, struct meter *m, struct run *run,
       enum metric metric, struct row *row)
{
  const bool rates = s->nr_latencies == 0;

  if (meter_begin (m, run, metric, rates ? s->effort.seconds : 0,
                   row->why) == -1)
    return -1;
  return rates ? 0 : meter_warm (m, s->nr_latencies / 10, row->why);
}

static void
end (const struct sweep *s, struct meter *m, struct row *row)
{
  const struct engine_ops *ops = m->run->engine->ops;

  if (s->nr_latencies > 0)
    row_latency (row, m);
  else
    row_rate (row, m);
  if (ops->note)
    ops->note (m->run->engine, row->note, sizeof row->note);
}

/* How many samples it takes. */
static unsigned
nr_samples (const struct sweep *s)
{
  return s->nr_latencies > 0 ? s->nr_latencies : s->effort.samples;
}

static void
measure (const struct sweep *s, struct run *run, enum metric metric,
         struct row *row)
{
  struct meter m;

  if (!s->verify_only && begin (s, &m, run, metric, row) == 0 &&
      meter_take (&m, nr_samples (s), row->why) == 0)
    end (s, &m, row);
}

/* One row of a case that is open. */
static int
run_row (const struct sweep *s, struct run *run, enum metric metric,
         struct report *report)
{
  struct row row;
  int r;

  row_start (&row, &run->request);
  row_case (&row, run);
  row.metric = in_memory (run->engine->ops) ? "memory"
    : run_metric_name (metric);
  r = run_verify (run, metric, s->verify_only ? 0 : VERIFY_LEN, row.why);
  if (r == -1)
    row.wrong = true;
  else
    measure (s, run, metric, &row);
  if (report_row (report, &row) == -1)
    return -1;
  if (r == -1)
    log_error ("%s is wrong: %s", row.engine, row.why);
  return r;
}

static int
run_case (const struct sweep *s, const struct run_request *q, void *opaque)
{
  struct report *report = opaque;
  struct row row;
  struct run *run;
  bool raw, overall;
  int r = 0;

  row_start (&row, q);
  run = run_open (q, row.why);
  if (run == NULL)
    return report_row (report, &row);
  raw = run_can (run, METRIC_RAW);
  overall = run_can (run, METRIC_OVERALL);
  if (in_memory (q->ops))
    r = run_row (s, run, METRIC_RAW, report);
  else {
    if (s->raw && raw)
      r = run_row (s, run, METRIC_RAW, report);
    if (r == 0 && s->overall && overall)
      r = run_row (s, run, METRIC_OVERALL, report);
  }
  run_close (run);
  return r;
}

int
sweep_run (const struct sweep *s, struct report *report)
{
  return sweep_each (s, run_case, report);
}
