/* gpuraid: measure the cases, one after the other, and make rows of them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>

#include "bench/ceilings.h"
#include "bench/sweep-internal.h"
#include "common/bits.h"
#include "common/log.h"

/* How much of the outputs is compared before a case is timed. */
#define VERIFY_LEN (1 * MIB)

/* There is nothing to copy. */
static bool
in_memory (const struct method_ops *ops)
{
  return !ops->gpu && ops->overall == NULL;
}

void
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
  snprintf (row->method, sizeof row->method, "%s%s%s", q->ops->name,
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
  const struct method_ops *ops = run->method->ops;
  unsigned cols = run->matrix->cols, rows = run->matrix->rows;
  char why[BENCH_WHY_LEN];
  const struct ceilings *c;

  if (in_memory (ops))
    return ceiling_memory (run->bc.threads, cols, rows);
  if (!ops->gpu)                /* the program can't know what it runs on */
    return 0;
  c = ceilings_gpu (why);
  /* For both together no ceiling applies. */
  if (c == NULL || ops->gpu_and_cpu)
    return 0;
  return metric == METRIC_RAW ? ceiling_raw (c, cols, rows)
                              : ceiling_overall (c, cols, rows);
}

/* Put the measurement into the row. */
static void
row_rate (struct row *row, struct meter *m)
{
  struct meter_rate rate;

  meter_rate (m, &rate);
  row->seconds = rate.seconds;
  row->low = rate.low;
  row->high = rate.high;
  if (m->metric == METRIC_OVERALL || !m->run->method->ops->gpu)
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

int
row_open (const struct sweep *s, struct entry *e, struct run *run,
          enum metric metric)
{
  e->run = run;
  e->metric = metric;
  row_start (&e->row, &run->request);
  row_case (&e->row, run);
  e->row.metric = in_memory (run->method->ops) ? "memory"
    : run_metric_name (metric);
  if (run_verify (run, metric, s->verify_only ? 0 : VERIFY_LEN,
                  e->row.why) == 0)
    return 0;
  e->row.wrong = true;
  return -1;
}

int
row_begin (const struct sweep *s, struct entry *e)
{
  const bool rates = s->nr_latencies == 0;

  if (meter_begin (&e->meter, e->run, e->metric,
                   rates ? s->effort.seconds : 0, e->row.why) == -1)
    return -1;
  return rates ? 0 : meter_warm (&e->meter, s->nr_latencies / 10,
                                 e->row.why);
}

void
row_end (const struct sweep *s, struct entry *e)
{
  const struct method_ops *ops = e->run->method->ops;

  if (s->nr_latencies > 0)
    row_latency (&e->row, &e->meter);
  else
    row_rate (&e->row, &e->meter);
  if (ops->note)
    ops->note (e->run->method, e->row.note, sizeof e->row.note);
}

int
row_report (const struct entry *e, struct report *report)
{
  if (report_row (report, &e->row) == -1)
    return -1;
  if (!e->row.wrong)
    return 0;
  log_error ("%s is wrong: %s", e->row.method, e->row.why);
  return -1;
}

unsigned
row_nr_metrics (const struct sweep *s, const struct run *run,
                enum metric metric[2])
{
  unsigned nr = 0;

  if (in_memory (run->method->ops))
    metric[nr++] = METRIC_RAW;
  else {
    if (s->raw && run_can (run, METRIC_RAW))
      metric[nr++] = METRIC_RAW;
    if (s->overall && run_can (run, METRIC_OVERALL))
      metric[nr++] = METRIC_OVERALL;
  }
  return nr;
}

static void
measure (const struct sweep *s, struct entry *e)
{
  const unsigned nr = s->nr_latencies > 0 ? s->nr_latencies
    : s->effort.samples;

  if (!s->verify_only && row_begin (s, e) == 0 &&
      meter_take (&e->meter, nr, e->row.why) == 0)
    row_end (s, e);
}

static int
run_case (const struct sweep *s, const struct run_request *q, void *opaque)
{
  struct report *report = opaque;
  enum metric metric[2];
  struct entry e;
  struct run *run;
  int r = 0;

  row_start (&e.row, q);
  run = run_open (q, e.row.why);
  if (run == NULL)
    return report_row (report, &e.row);
  for (unsigned n = row_nr_metrics (s, run, metric), i = 0;
       r == 0 && i < n; i++) {
    if (row_open (s, &e, run, metric[i]) == 0)
      measure (s, &e);
    r = row_report (&e, report);
  }
  run_close (run);
  return r;
}

int
sweep_run (const struct sweep *s, struct report *report)
{
  return s->in_turn ? sweep_in_turn (s, report)
    : sweep_each (s, run_case, report);
}
