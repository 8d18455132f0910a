/* gpuraid bench: read the options.
 *
 * The table of options, and what is measured and shown.  bench-case.c reads
 * what is coded, and how much of the machine is used.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/tuning.h"
#include "cli/bench-case.h"
#include "cli/bench.h"
#include "cli/cli.h"
#include "common/bits.h"
#include "common/log.h"

static int
set_method (struct bench_options *o, const char *arg)
{
  o->methods = arg;
  return 0;
}

static int
set_option (struct bench_options *o, const char *arg)
{
  o->option = arg;
  return 0;
}

static int
set_latency (struct bench_options *o, const char *arg)
{
  o->sweep.nr_latencies = 1000;
  return 0;
}

static int
set_slices (struct bench_options *o, const char *arg)
{
  return bench_parse_list ("slices", arg, 1, 4096, &o->sweep.slices);
}

static int
set_gpus (struct bench_options *o, const char *arg)
{
  struct values values;

  o->devices = ~UINT64_C (0);
  if (strcmp (arg, "all") == 0)
    return 0;
  if (bench_parse_list ("gpus", arg, 0, 15, &values) == -1)
    return -1;
  o->devices = 0;
  for (unsigned i = 0; i < values.nr; i++)
    o->devices |= BIT (values.v[i]);
  return 0;
}

static int
set_tuning (struct bench_options *o, const char *arg)
{
  struct kernel_tuning t[TUNING_MAX_LIST];
  char why[BENCH_WHY_LEN];

  o->sweep.tunings = arg;
  o->mode = BENCH_TUNINGS;
  if (tuning_parse_list (arg, t, why) >= 0)
    return 0;
  log_error ("--tuning: %s", why);
  return -1;
}

static int
set_samples (struct bench_options *o, const char *arg)
{
  uint64_t n;

  if (bench_parse_number ("samples", arg, 1000, &n) == -1)
    return -1;
  o->sweep.effort.samples = MAX (n, 1);
  return 0;
}

static int
set_seconds (struct bench_options *o, const char *arg)
{
  double *seconds = &o->sweep.effort.seconds;
  char *end;

  *seconds = strtod (arg, &end);
  if (end != arg && *end == '\0' && *seconds >= 0 && *seconds <= 60)
    return 0;
  log_error ("--seconds: %s: not from 0 to 60", arg);
  return -1;
}

static int
set_seed (struct bench_options *o, const char *arg)
{
  return bench_parse_number ("seed", arg, INT64_MAX, &o->sweep.seed);
}

static int
set_plot (struct bench_options *o, const char *arg)
{
  o->plot = arg;
  return 0;
}

#define FLAG(member) .flag = offsetof (struct bench_options, member)

static const struct bench_option {
  const char *name;             /* one letter: with one dash */
  const char *value;            /* NULL: no argument */
  const char *what;
  int (*set) (struct bench_options *, const char *arg);
  enum bench_mode mode;         /* or the function called instead of a sweep */
  size_t flag;                  /* or the place of a bool, set to true */
} options[] = {
  { "k", "LIST", "data cells: 10 or 4,10 or 2-45 or 2-45:5, m is that of -m "
    "(10)", bench_set_k },
  { "m", "LIST", "parity cells (4)", bench_set_m },
  { "pairs", "LIST", "instead of -k and -m: 4+2,10+4", bench_set_pairs },
  { "code", "rs|crs", "of engines that have no code of their own (rs)",
    bench_set_code },
  { "w", "LIST", "bits of a symbol of crs; 4+: the smallest from 4 on (the "
    "smallest)", bench_set_w },
  { "cell", "LIST", "bytes of a cell: 64K,1M (64K)", bench_set_cell },
  { "batch", "LIST", "rects coded at once (as many as --memory holds)",
    bench_set_batch },
  { "memory", "SIZE", "of all cells (512M, 4M to verify)", bench_set_memory },
  { "threads", "LIST", "of the processor: 1,4,all (all)", bench_set_threads },
  { "engine", "LIST", "NAME or NAME:OPTION; all, cpu, gpu, ours, seeds (isal)",
    set_method },
  { "option", "LIST", "of those engines that have it; all: each in turn",
    set_option },
  { "encode", NULL, "make parity: what is done without --decode",
    bench_set_encode },
  { "decode", "LIST", "make this many random cells of all, or m; data: as "
    "many data cells as can be; 0: encode", bench_set_decode },
  { "lost", "LIST", "make these: data from 0 on, then parity", bench_set_lost },
  { "raw", NULL, "only on what lies on the device", FLAG (sweep.raw) },
  { "overall", NULL, "only from host memory to host memory",
    FLAG (sweep.overall) },
  { "latency", NULL, "of one batch (1 rect) alone", set_latency },
  { "crc", NULL, "with the CRC32C of every block", FLAG (crc) },
  { "slices", "LIST", "parts of a pipeline (the engine's choice)",
    set_slices },
  { "gpus", "all|LIST", "devices of cuda and auto; the others use the first "
    "(0)", set_gpus },
  { "verify-only", NULL, "compare every byte, measure nothing",
    FLAG (sweep.verify_only) },
  { "ceilings", NULL, "only how fast this machine can copy",
    .mode = BENCH_CEILINGS },
  { "crossover", NULL, "only from what batch on a GPU pays",
    .mode = BENCH_CROSSOVER },
  { "model", NULL, "only G-CRS's model, predicted and measured",
    .mode = BENCH_MODEL },
  { "tunings", NULL, "only how fast differently tuned kernels are, and which "
    "is used", .mode = BENCH_TUNINGS },
  { "tuning", "LIST", "as --tunings, but of these: 8x128-min4-g3,16x64",
    set_tuning },
  { "xors", NULL, "only count the XORs of the programs of crs",
    .mode = BENCH_XORS },
  { "list", NULL, "the engines and their options", .mode = BENCH_LIST },
  { "samples", "N", "measurements, of which the median counts (7)",
    set_samples },
  { "in-turn", NULL, "engines take their samples in turn, with all their cells "
    "there at once", FLAG (sweep.in_turn) },
  { "seconds", "S", "how long each takes at least (0.05)", set_seconds },
  { "seed", "N", "of random bytes and losses (1)", set_seed },
  { "json", NULL, "one object instead of a table", FLAG (json) },
  { "plot", "FILE", "an .svg or .png too, made by gnuplot", set_plot },
  { "verbose", NULL, "what compilers and drivers say, too", FLAG (verbose) },
};

void
cmd_bench_help (void)
{
  printf ("\n");
  for (size_t i = 0; i < ARRAY_LEN (options); i++) {
    const struct bench_option *p = &options[i];
    char text[40];

    snprintf (text, sizeof text, "%s%s%s%s", p->name[1] ? "--" : "-", p->name,
              p->value ? " " : "", p->value ? p->value : "");
    printf ("  %-19s %s\n", text, p->what);
  }
  printf ("\nA LIST is apart by commas.\n");
}

static int
apply (struct bench_options *o, const struct bench_option *p, const char *arg)
{
  if (p->set)
    return p->set (o, arg);
  if (p->mode)
    o->mode = p->mode;
  else
    *(bool *) ((char *) o + p->flag) = true;
  return 0;
}

/* getopt's own messages would not name the subcommand, so it is silent. */
static int
next_option (struct bench_options *o, int argc, char **argv,
             const struct option *longs)
{
  int id = getopt_long (argc, argv, ":k:m:w:", longs, NULL);

  if (id == -1)
    return 0;
  if (id == ':')
    log_error ("bench: %s needs a value", argv[optind - 1]);
  else if (id == '?')
    log_error ("bench: %s: no such option (gpuraid bench --help)",
               argv[optind - 1]);
  else
    for (size_t i = 0; i < ARRAY_LEN (options); i++)
      if (id == 256 + (int) i ||
          (options[i].name[1] == '\0' && id == options[i].name[0]))
        return apply (o, &options[i], optarg) == 0 ? 1 : -1;
  return -1;
}

static const struct bench_options defaults = {
  .methods = "isal",
  .devices = 1,
  .sweep = {
    .k = "10",
    .m = { .nr = 1, .v = { 4 } },
    .w = { .nr = 1 },
    .cell = { .nr = 1, .v = { 64 * KIB } },
    .batch = { .nr = 1 },
    .threads = { .nr = 1 },
    .slices = { .nr = 1 },
    .effort = { .samples = 7, .seconds = 0.05 },
    .seed = 1,
  },
};

int
bench_parse (struct bench_options *o, int argc, char **argv)
{
  struct option longs[ARRAY_LEN (options) + 1] = { { 0 } };
  struct sweep *s = &o->sweep;
  unsigned nr = 0;
  int r;

  *o = defaults;
  s->threads.v[0] = bench_nr_cpus ();
  for (size_t i = 0; i < ARRAY_LEN (options); i++)
    if (options[i].name[1])
      longs[nr++] = (struct option) { options[i].name, options[i].value != NULL,
                                      NULL, 256 + i };
  opterr = 0;
  while ((r = next_option (o, argc, argv, longs)) == 1)
    ;
  if (r == 0 && optind < argc) {
    log_error ("bench: %s: not an option (gpuraid bench --help)",
               argv[optind]);
    r = -1;
  }
  if (!s->raw && !s->overall)
    s->raw = s->overall = true;
  if (s->nr_losses == 0)
    s->nr_losses = 1;           /* LOSS_NONE */
  if (s->memory_len == 0) {
    s->memory_len = s->verify_only ? 4 * MIB : 512 * MIB;
    s->least_rects = s->verify_only ? 3 : 1;
  }
  /* A latency is that of one stripe unless the user says otherwise. */
  if (s->nr_latencies > 0 && s->batch.v[0] == 0)
    s->batch.v[0] = 1;
  return r;
}
