/* gpuraid: compile, compare and measure tunings.
 *
 * A device gets slower when it gets warm.  So the fastest few, and the one that
 * kernel_tune chooses, are measured again, in turn, and only that counts.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/ceilings.h"
#include "bench/gpu.h"
#include "bench/method-kernel.h"
#include "bench/tuning-grid.h"
#include "bench/tunings.h"
#include "bench/variants.h"
#include "common/bits.h"
#include "common/log.h"
#include "gpu/compiler.h"

/* How much of the outputs is compared before a variant is timed. */
#define VERIFY_LEN (1 * MIB)

/* How many are measured again, and how often. */
#define NR_FINAL 8u
#define NR_ROUNDS 3u

struct tunings {
  const struct sweep *s;
  struct report *r;
  struct json_object *list;
  struct bench_gpu *gpu;
  size_t nr_measured, nr_wrong;
  char why[BENCH_WHY_LEN];      /* the last that was not measured */

  /* Of the case. */
  struct run *run;
  struct variants all;
  double ceiling;               /* data bytes a second */
};

/* the current step */

/* NULL: nothing any more. */
static void
say (const struct tunings *t, const char *what, unsigned done, unsigned all)
{
  if (!isatty (STDERR_FILENO))
    return;
  fprintf (stderr, "\r\033[K");
  if (what)
    fprintf (stderr, "%u+%u: %s %u of %u", t->run->bc.k, t->run->bc.m, what,
             done, all);
}

struct compiling {
  const struct tunings *t;
  unsigned all;
};

static void
compiled (void *opaque, unsigned done)
{
  const struct compiling *c = opaque;

  say (c->t, "compiled", done, c->all);
}

/* ---- measuring */

/* The seconds stay 0 if it is impossible. */
static void
measure (struct tunings *t, struct variant *v)
{
  struct method *method = t->run->method;
  double seconds;

  if (v->code == NULL ||
      kernel_method_use (method, &v->shape, v->code, &v->nr_registers,
                         &v->local_len, v->why) == -1 ||
      method->ops->raw (method, 1, &seconds, v->why) == -1)
    return;
  if (run_verify (t->run, METRIC_RAW, VERIFY_LEN, v->why) == -1) {
    v->wrong = true;
    return;
  }
  if (meter_run (t->run, METRIC_RAW, &t->s->effort, &v->sample,
                 v->why) == -1)
    v->sample.seconds = 0;
}

static void
add (struct tunings *t, const struct kernel_tuning *tuning, unsigned nr)
{
  for (unsigned i = 0; i < nr; i++)
    variants_add (&t->all, &tuning[i]);
}

static void
measure_from (struct tunings *t, unsigned first)
{
  struct compiling c = { t, t->all.nr - first };

  compiled (&c, 0);
  variants_compile (&t->all, first, t->run->matrix, t->gpu->arch,
                    t->s->threads.v[0], compiled, &c);
  for (unsigned i = first; i < t->all.nr; i++) {
    say (t, "measured", i - first, c.all);
    measure (t, &t->all.v[i]);
  }
}

/* The measured ones first, sorted by speed. */
static int
compare (const void *a, const void *b)
{
  double x = ((const struct variant *) a)->sample.seconds;
  double y = ((const struct variant *) b)->sample.seconds;

  if (x == 0 || y == 0)
    return (x == 0) - (y == 0);
  return (x > y) - (x < y);
}

static void
sort (struct tunings *t)
{
  qsort (t->all.v, t->all.nr, sizeof t->all.v[0], compare);
}

/* Both steps of the grid, around the choice of kernel_tune. */
static void
measure_grid (struct tunings *t)
{
  const struct matrix *a = t->run->matrix;
  struct kernel_tuning tuning[GRID_MAX];

  for (unsigned step = 0; step < GRID_NR_STEPS; step++) {
    unsigned first = t->all.nr;

    sort (t);
    add (t, tuning, grid_fill (step, a, &t->all.v[0].tuning, tuning));
    measure_from (t, first);
  }
}

static int
compare_samples (const void *a, const void *b)
{
  double x = ((const struct meter_rate *) a)->seconds;
  double y = ((const struct meter_rate *) b)->seconds;

  return (x > y) - (x < y);
}

/* The median of the rounds, and the extremes of all. */
static void
combine (struct variant *v, struct meter_rate s[NR_ROUNDS])
{
  qsort (s, NR_ROUNDS, sizeof s[0], compare_samples);
  v->sample = s[NR_ROUNDS / 2];
  for (unsigned n = 0; n < NR_ROUNDS; n++) {
    v->sample.low = MIN (v->sample.low, s[n].low);
    v->sample.high = MAX (v->sample.high, s[n].high);
  }
}

/* A variant that fails now stays unchanged. */
static void
measure_again (struct tunings *t)
{
  struct meter_rate s[VARIANTS_MAX][NR_ROUNDS] = { 0 };
  struct method *method = t->run->method;
  char why[BENCH_WHY_LEN];
  unsigned nr_ok[VARIANTS_MAX] = { 0 };

  for (unsigned n = 0; n < NR_ROUNDS; n++)
    for (unsigned i = 0; i < t->all.nr; i++) {
      struct variant *v = &t->all.v[i];

      if (v->sample.seconds == 0 || (i >= NR_FINAL && !v->chosen))
        continue;
      say (t, "measured again", n, NR_ROUNDS);
      if (kernel_method_use (method, &v->shape, v->code, &v->nr_registers,
                             &v->local_len, why) == 0 &&
          meter_run (t->run, METRIC_RAW, &t->s->effort, &s[i][nr_ok[i]],
                     why) == 0)
        nr_ok[i]++;
    }
  for (unsigned i = 0; i < t->all.nr; i++)
    if (nr_ok[i] == NR_ROUNDS)
      combine (&t->all.v[i], s[i]);
}

/* ---- what is said of it */

static void
print_case (const struct tunings *t, const char *op)
{
  const struct bench_case *bc = &t->run->bc;
  char size[REPORT_SIZE_LEN];

  fprintf (t->r->fp, "\n%s, %u+%u, %s", op, bc->k, bc->m,
           bc->matrix->packet_len > 0 ? "crs" : "rs");
  if (bc->matrix->packet_len > 0)
    fprintf (t->r->fp, " w %u", bc->w);
  fprintf (t->r->fp, ", cells of %s, %zu rects (* is what kernel_tune "
           "chooses)\n", report_size (bc->cell_len, size), bc->nr_rects);
  fprintf (t->r->fp, "  %-36s %5s %6s %9s %6s %6s\n", "tuning", "regs",
           "local", "GB/s", "share", "spread");
}

static void
print_variant (const struct tunings *t, const struct variant *v)
{
  double rate = run_data_len (t->run) / v->sample.seconds;

  fprintf (t->r->fp, "%c %-36s", v->chosen ? '*' : ' ', v->name);
  if (v->nr_registers > 0)
    fprintf (t->r->fp, " %5d %6d", v->nr_registers, v->local_len);
  else
    fprintf (t->r->fp, " %5s %6s", "-", "-");
  if (v->sample.seconds > 0)
    fprintf (t->r->fp, " %9.3f %5.1f%% %5.1f%%\n", rate / 1e9,
             100 * rate / t->ceiling,
             100 * (v->sample.high - v->sample.low) / v->sample.seconds);
  else
    fprintf (t->r->fp, " %s%s\n", v->wrong ? "WRONG: " : "- ", v->why);
}

static struct json_object *
json_variant (const struct tunings *t, const struct variant *v)
{
  struct json_object *o = json_object_new_object ();
  double rate = run_data_len (t->run) / v->sample.seconds;

  json_object_object_add (o, "tuning", json_object_new_string (v->name));
  json_object_object_add (o, "chosen", json_object_new_boolean (v->chosen));
  if (v->nr_registers > 0) {
    json_object_object_add (o, "registers",
                            json_object_new_int (v->nr_registers));
    json_object_object_add (o, "local", json_object_new_int (v->local_len));
  }
  if (v->sample.seconds > 0) {
    report_double (o, "seconds", v->sample.seconds);
    report_double (o, "gb_per_s", rate / 1e9);
    report_double (o, "share", rate / t->ceiling);
    report_double (o, "spread", (v->sample.high - v->sample.low) /
                   v->sample.seconds);
  }
  else
    json_object_object_add (o, v->wrong ? "wrong" : "skipped",
                            json_object_new_string (v->why));
  return o;
}

static struct json_object *
json_case (const struct tunings *t, const char *op)
{
  const struct bench_case *bc = &t->run->bc;
  struct json_object *o = json_object_new_object ();

  json_object_object_add (o, "op", json_object_new_string (op));
  json_object_object_add (o, "code", json_object_new_string
                          (bc->matrix->packet_len > 0 ? "crs" : "rs"));
  json_object_object_add (o, "k", json_object_new_int (bc->k));
  json_object_object_add (o, "m", json_object_new_int (bc->m));
  json_object_object_add (o, "w", json_object_new_int (bc->w));
  json_object_object_add (o, "cell", json_object_new_int64 (bc->cell_len));
  json_object_object_add (o, "rects", json_object_new_int64 (bc->nr_rects));
  report_double (o, "ceiling_gb_per_s", t->ceiling / 1e9);
  return o;
}

static void
report_case (struct tunings *t)
{
  struct json_object *rows = json_object_new_array (), *o;
  const struct matrix *a = t->run->matrix;
  char op[24] = "encode";

  if (t->run->request.loss != LOSS_NONE)
    snprintf (op, sizeof op, "decode %u", a->rows);
  say (t, NULL, 0, 0);
  if (!t->r->json)
    print_case (t, op);
  for (unsigned i = 0; i < t->all.nr; i++) {
    const struct variant *v = &t->all.v[i];

    if (!t->r->json)
      print_variant (t, v);
    json_object_array_add (rows, json_variant (t, v));
    t->nr_measured += v->sample.seconds > 0;
    t->nr_wrong += v->wrong;
    if (v->why[0])
      snprintf (t->why, sizeof t->why, "%s: %s", v->name, v->why);
  }
  fflush (t->r->fp);
  o = json_case (t, op);
  json_object_object_add (o, "rows", rows);
  json_object_array_add (t->list, o);
}

/* ---- the cases */

/* The coder's choice, made as in the coder: the first variant, or the second if
 * the compiler needs less local memory for that.
 */
static void
choose (struct tunings *t, bool is_second)
{
  struct variant *v = t->all.v;

  v[is_second && v[1].nr_registers > 0 && v[1].local_len < v[0].local_len]
    .chosen = true;
}

static void
run_open_case (struct tunings *t)
{
  struct kernel_tuning tuning[TUNING_MAX_LIST];
  bool has_spare;

  kernel_tune (t->run->matrix, &tuning[0]);
  variants_add (&t->all, &tuning[0]);
  has_spare = kernel_tune_spare (t->run->matrix, &tuning[0]);
  if (has_spare)
    variants_add (&t->all, &tuning[0]);
  if (t->s->tunings)
    add (t, tuning, tuning_parse_list (t->s->tunings, tuning, t->why));
  measure_from (t, 0);
  choose (t, has_spare);
  if (t->s->tunings == NULL)
    measure_grid (t);
  sort (t);
  measure_again (t);
  sort (t);
  report_case (t);
}

static int
run_case (const struct sweep *s, const struct run_request *q, void *opaque)
{
  struct tunings *t = opaque;
  const struct ceilings *c = ceilings_gpu (t->why);

  t->run = c ? run_open (q, t->why) : NULL;
  if (t->run == NULL) {
    log_error ("--tunings: %u+%u: %s", q->k, q->m, t->why);
    return -1;
  }
  t->ceiling = ceiling_raw (c, t->run->matrix->cols, t->run->matrix->rows);
  run_open_case (t);
  variants_close (&t->all);
  run_close (t->run);
  return 0;
}

static int
start (struct tunings *t)
{
  const struct ceilings *c;
  char text[40];

  t->gpu = bench_gpu_get (t->why);
  if (t->gpu == NULL || compiler_version (t->why, sizeof t->why) == NULL ||
      (c = ceilings_gpu (t->why)) == NULL) {
    log_error ("--tunings: %s", t->why);
    return -1;
  }
  snprintf (text, sizeof text, "%.2f", c->copy / 1e9);
  report_add (t->r, "device_copy",
              json_object_new_double_s (c->copy / 1e9, text));
  t->list = json_object_new_array ();
  json_object_object_add (t->r->top, "tunings", t->list);
  return 0;
}

int
tunings_run (const struct sweep *s, struct report *r)
{
  struct sweep one = *s;
  struct tunings t = { .s = s, .r = r };

  one.choice[0] = (struct choice) { &method_kernel_any, NULL };
  one.nr_choices = 1;
  if (start (&t) == -1 || sweep_each (&one, run_case, &t) == -1)
    return -1;
  if (t.nr_wrong > 0)
    log_error ("--tunings: %s", t.why);
  else if (t.nr_measured == 0)
    log_error ("--tunings: nothing could be measured: %s", t.why);
  return t.nr_wrong == 0 && t.nr_measured > 0 ? 0 : -1;
}
