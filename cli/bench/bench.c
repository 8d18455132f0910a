/* gpuraid bench: the coders of the array, side by side.
 *
 * All coders of a case are open at the same time and take their samples in
 * turn, so that changes of the machine's speed affect all of them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <json-c/json.h>

#include "cli/bench/bench.h"
#include "cli/cli.h"
#include "common/bits.h"
#include "common/json-text.h"
#include "common/log.h"
#include "measure/clock.h"
#include "measure/coders.h"
#include "measure/cpu.h"

/* How much of the outputs is compared before a coder is timed. */
#define VERIFY_LEN (1 * MIB)

/* A coder in one case. */
struct entry {
  struct run_request request;
  struct run *run;              /* NULL: why */
  enum metric metric;
  unsigned nr_times;            /* times that a sample codes everything */
  unsigned nr;                  /* samples taken */
  double sample[BENCH_MAX_SAMPLES]; /* seconds, for coding everything once */
  double cpu;                   /* of all processors, of all samples */
  char why[BENCH_WHY_LEN];      /* not empty: not measured */
  bool wrong;                   /* because it made wrong bytes */
};

struct bench {
  const struct bench_options *o;
  struct json_object *rows;
  struct entry *entry;          /* one for each engine */
  unsigned nr_good, nr_wrong;
  char why[BENCH_WHY_LEN];      /* the last that was not measured */
};

/* ---- measuring */

static void
open_entry (const struct bench_options *o, struct entry *e)
{
  double once;
  int r;

  e->why[0] = '\0';
  e->nr = 0;
  e->cpu = 0;
  e->metric = e->request.ops->raw ? METRIC_RAW : METRIC_OVERALL;
  e->run = run_open (&e->request, e->why);
  e->wrong = false;
  if (e->run == NULL)
    return;
  r = run_verify (e->run, e->metric, o->verify_only ? 0 : VERIFY_LEN, e->why);
  e->wrong = r == 1;
  if (r != 0)
    return;
  /* Once to warm up, once to know how often makes a sample. */
  if (o->verify_only ||
      run_code (e->run, e->metric, 1, &once, e->why) == -1 ||
      run_code (e->run, e->metric, 1, &once, e->why) == -1)
    return;
  e->nr_times = MIN (MAX (o->seconds / MAX (once, 1e-6) + 0.999, 1), 100000);
}

/* The first time of a turn does not count: processors and device wake up. */
static void
take_sample (struct entry *e)
{
  double *seconds = &e->sample[e->nr], cpu;

  if (e->why[0] || run_code (e->run, e->metric, 1, seconds, e->why) == -1)
    return;
  cpu = cpu_now ();
  if (run_code (e->run, e->metric, e->nr_times, seconds, e->why) == -1)
    return;
  *seconds /= e->nr_times;
  e->cpu += (cpu_now () - cpu) / e->nr_times;
  e->nr++;
}

static int
compare (const void *a, const void *b)
{
  double x = *(const double *) a, y = *(const double *) b;

  return (x > y) - (x < y);
}

/* ---- what is said of it */

/* Further digits are noise. */
static void
add_double (struct json_object *o, const char *key, double x)
{
  char text[40];

  snprintf (text, sizeof text, "%.6g", x);
  json_object_object_add (o, key, json_object_new_double_s (x, text));
}

static void
add_number (struct json_object *o, const char *key, int64_t n)
{
  json_object_object_add (o, key, json_object_new_int64 (n));
}

static void
add_text (struct json_object *o, const char *key, const char *text)
{
  json_object_object_add (o, key, json_text (text));
}

static struct json_object *
row_case (const struct entry *e)
{
  const struct run_request *q = &e->request;
  struct json_object *o = json_object_new_object ();
  char op[24] = "encode";

  if (q->loss != LOSS_NONE)
    snprintf (op, sizeof op, "decode %u", q->nr_lost ? q->nr_lost : q->m);
  add_text (o, "engine", q->ops->name);
  add_text (o, "op", op);
  add_text (o, "code", q->code == CODE_CRS ? "crs" : "rs");
  add_number (o, "k", q->k);
  add_number (o, "m", q->m);
  add_number (o, "cell", e->run ? e->run->bc.cell_len : q->cell_len);
  if (e->run)
    add_number (o, "rects", e->run->bc.nr_rects);
  add_number (o, "threads", q->threads);
  return o;
}

static void
print_row (const struct entry *e, struct json_object *o)
{
  const struct run_request *q = &e->request;
  char pair[24];

#define GET(type, key) \
  json_object_get_##type (json_object_object_get (o, key))
  snprintf (pair, sizeof pair, "%u+%u", q->k, q->m);
  printf ("%-12s %-10s %-4s %-8s %7d ", q->ops->name, GET (string, "op"),
          GET (string, "code"), pair, (int) GET (int, "cell"));
  if (q->threads > 0)
    printf ("%4u", q->threads);
  else
    printf ("%4s", "-");
  if (e->why[0])
    printf (" %s%s", e->wrong ? "WRONG: " : "- ", e->why);
  else if (e->nr == 0)
    printf (" right");
  else
    printf (" %9.3f %8.4f %5.1f%%", GET (double, "gb_per_s"),
            GET (double, "cpu_s_per_gb"), 100 * GET (double, "spread"));
  if (json_object_object_get (o, "note"))
    printf ("  (%s)", GET (string, "note"));
  printf ("\n");
  fflush (stdout);
#undef GET
}

static void
report (struct bench *b, struct entry *e)
{
  struct json_object *o = row_case (e);
  char note[BENCH_WHY_LEN] = "";

  if (e->why[0]) {
    add_text (o, e->wrong ? "wrong" : "skipped", e->why);
    snprintf (b->why, sizeof b->why, "%s: %.200s", e->request.ops->name,
              e->why);
  }
  else if (e->nr > 0) {
    double len = run_data_len (e->run), median;

    qsort (e->sample, e->nr, sizeof e->sample[0], compare);
    median = e->sample[e->nr / 2];
    add_double (o, "seconds", median);
    add_double (o, "gb_per_s", len / median / 1e9);
    add_double (o, "cpu_s_per_gb", e->cpu / e->nr / len * 1e9);
    add_double (o, "spread", (e->sample[e->nr - 1] - e->sample[0]) / median);
    if (e->request.ops->note)
      e->request.ops->note (e->run->method, note, sizeof note);
  }
  if (note[0])
    add_text (o, "note", note);
  b->nr_good += e->why[0] == '\0';
  b->nr_wrong += e->wrong;
  if (!b->o->json)
    print_row (e, o);
  json_object_array_add (b->rows, o);
}

/* ---- the cases */

static void
run_case (struct bench *b, const struct run_request *q, bool with_devices)
{
  const struct bench_options *o = b->o;
  unsigned nr = 0;

  for (unsigned i = 0; i < o->nr_engines; i++) {
    const struct method_ops *ops = o->engine[i];
    const bool threads = !ops->gpu || ops->gpu_and_cpu;
    struct entry *e = &b->entry[nr];

    if (!threads && !with_devices)
      continue;
    nr++;
    e->request = *q;
    e->request.ops = ops;
    if (!threads)
      e->request.threads = 0;
    open_entry (o, e);
  }
  for (unsigned n = 0; !o->verify_only && n < o->nr_samples; n++)
    for (unsigned i = 0; i < nr; i++)
      take_sample (&b->entry[i]);
  for (unsigned i = 0; i < nr; i++) {
    report (b, &b->entry[i]);
    run_close (b->entry[i].run);
  }
}

static unsigned
least_rects (const struct bench_options *o)
{
  return o->verify_only ? 3 : 1;
}

/* Threads make no difference to a device, so it is measured once. */
static void
run_all (struct bench *b)
{
  const struct bench_options *o = b->o;

  for (unsigned p = 0; p < o->nr_pairs; p++)
    for (unsigned d = 0; d < o->nr_decodes; d++)
      for (unsigned t = 0; t < o->nr_threads; t++) {
        const struct run_request q = {
          .code = o->code, .k = o->pair[p].k, .m = o->pair[p].m,
          .loss = o->decode[d].loss, .nr_lost = o->decode[d].nr,
          .cell_len = o->cell_len, .memory_len = o->memory_len,
          .least_rects = least_rects (o), .threads = o->threads[t],
          .option = o->crc ? "crc" : NULL, .seed = 1,
        };

        run_case (b, &q, t == 0);
      }
}

/* It is an error if nothing was measured. */
static int
check_rows (const struct bench *b)
{
  if (b->nr_wrong > 0)
    log_error ("wrong bytes: %s", b->why);
  else if (b->nr_good == 0)
    log_error ("nothing could be measured: %s", b->why);
  return b->nr_wrong > 0 || b->nr_good == 0 ? -1 : 0;
}

static int
run (const struct bench_options *o)
{
  struct json_object *top = json_object_new_object ();
  struct bench b = { .o = o, .rows = json_object_new_array () };
  char model[CPU_MODEL_LEN];
  int r;

  b.entry = calloc (o->nr_engines, sizeof b.entry[0]);
  if (b.entry == NULL) {
    log_error ("calloc: %m");
    json_object_put (b.rows);
    json_object_put (top);
    return -1;
  }
  add_text (top, "version", GPURAID_VERSION);
  add_text (top, "processor", cpu_model (model));
  json_object_object_add (top, "rows", b.rows);
  if (!o->json)
    printf ("# gpuraid %s, %s\n%-12s %-10s %-4s %-8s %7s %4s %9s %8s %6s\n",
            GPURAID_VERSION, model, "engine", "op", "code", "k+m", "cell",
            "thr", o->verify_only ? "" : "GB/s",
            o->verify_only ? "" : "CPU s/GB", o->verify_only ? "" : "spread");
  run_all (&b);
  if (o->json)
    cli_print_json (top);
  r = check_rows (&b);
  json_object_put (top);
  free (b.entry);
  return r;
}

static void
list (void)
{
  for (size_t i = 0; coder_methods[i]; i++)
    printf ("%-12s %s%s\n", coder_methods[i]->name, coder_methods[i]->what,
            coder_methods[i]->gpu ? " [GPU]" : "");
}

/* Devices that were named must exist, if the machine has any. */
static int
check_devices (uint64_t devices)
{
  char why[BENCH_WHY_LEN];
  unsigned nr = method_nr_devices (why);

  if (nr == 0 || nr > 63 || devices == ~UINT64_C (0) || devices >> nr == 0)
    return 0;
  log_error ("--gpus: no CUDA device %u: there are %u",
             next_bit (devices, nr), nr);
  return -1;
}

/* All cells of a case, for all of its coders, are in memory at once. */
static int
check_memory (const struct bench_options *o)
{
  const uint64_t memory =
    (uint64_t) sysconf (_SC_PHYS_PAGES) * sysconf (_SC_PAGESIZE);
  char need[CLI_SIZE_LEN], has[CLI_SIZE_LEN];

  for (unsigned i = 0; i < o->nr_pairs; i++) {
    const uint64_t cells = (uint64_t) (o->pair[i].k + o->pair[i].m) *
      o->cell_len * least_rects (o);
    const uint64_t len = o->nr_engines * MAX (cells, o->memory_len);

    if (len <= memory)
      continue;
    log_error ("%u+%u: %u coder%s need%s %s of memory, and this machine has "
               "%s: give a smaller --cell or --memory, or fewer with --engine",
               o->pair[i].k, o->pair[i].m, o->nr_engines,
               o->nr_engines == 1 ? "" : "s", o->nr_engines == 1 ? "s" : "",
               cli_size (len, need), cli_size (memory, has));
    return -1;
  }
  return 0;
}

int
cmd_bench (int argc, char **argv)
{
  struct bench_options o;

  if (argc < 2)
    return CLI_USAGE;
  if (bench_parse (&o, argc, argv) == -1)
    return EXIT_USAGE;
  if (o.list) {
    list ();
    return EXIT_SUCCESS;
  }
  if ((o.devices != 1 && check_devices (o.devices) == -1) ||
      check_memory (&o) == -1)
    return EXIT_FAILURE;
  method_devices = o.devices;
  return run (&o) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
