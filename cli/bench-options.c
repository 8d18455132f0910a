/* gpuraid bench: read the options.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "array/config.h"
#include "cli/bench.h"
#include "cli/cli.h"
#include "common/bits.h"
#include "common/log.h"

static unsigned
nr_cpus (void)
{
  cpu_set_t set;

  if (sched_getaffinity (0, sizeof set, &set) == 0)
    return CPU_COUNT (&set);
  return MAX (sysconf (_SC_NPROCESSORS_ONLN), 1);
}

static int
parse_list (const char *name, const char *text, uint64_t least, uint64_t most,
            struct values *values)
{
  char why[BENCH_WHY_LEN];

  if (values_parse (text, least, most, 0, values, why) == 0)
    return 0;
  log_error ("%s%s: %s", name[1] ? "--" : "-", name, why);
  return -1;
}

static int
parse_number (const char *name, const char *text, uint64_t most, uint64_t *n)
{
  struct values values;

  if (parse_list (name, text, 0, most, &values) == -1)
    return -1;
  if (values.nr != 1) {
    log_error ("--%s: %s: not one number", name, text);
    return -1;
  }
  *n = values.v[0];
  return 0;
}

static int
parse_size (const char *name, const char *text, uint64_t *n)
{
  if (config_parse_size (text, n) == 0 && *n > 0 && *n <= 1024 * GIB)
    return 0;
  log_error ("--%s: %s: not a size", name, text);
  return -1;
}

/* ---- a function for each option */

static int
set_k (struct bench_options *o, const char *arg)
{
  struct values k;
  char why[BENCH_WHY_LEN];

  /* It may say m, which comes later. */
  o->sweep.k = arg;
  if (values_parse (arg, 1, CODE_MAX - 1, 1, &k, why) == 0)
    return 0;
  log_error ("-k: %s", why);
  return -1;
}

static int
set_m (struct bench_options *o, const char *arg)
{
  return parse_list ("m", arg, 1, CODE_MAX - 1, &o->sweep.m);
}

static int
set_pairs (struct bench_options *o, const char *arg)
{
  struct shapes shapes;

  o->sweep.pairs = arg;
  return sweep_shapes (&o->sweep, &shapes);
}

static int
set_code (struct bench_options *o, const char *arg)
{
  o->sweep.code = strcmp (arg, "crs") == 0 ? CODE_CRS : CODE_RS;
  if (o->sweep.code == CODE_CRS || strcmp (arg, "rs") == 0)
    return 0;
  log_error ("--code: %s: not rs or crs", arg);
  return -1;
}

static int
set_w (struct bench_options *o, const char *arg)
{
  struct sweep *s = &o->sweep;

  if (strlen (arg) == 2 && arg[1] == '+' && arg[0] >= '1' && arg[0] <= '8') {
    s->w_floor = arg[0] - '0';
    s->w = (struct values) { .nr = 1 };
    return 0;
  }
  return parse_list ("w", arg, 1, 8, &s->w);
}

static int
set_cell (struct bench_options *o, const char *arg)
{
  struct values *values = &o->sweep.cell;
  char text[64];

  values->nr = 0;
  for (const char *p = arg; p; p = strchr (p, ',')) {
    p += *p == ',';
    snprintf (text, sizeof text, "%.*s", (int) strcspn (p, ","), p);
    if (values->nr == SWEEP_MAX_VALUES) {
      log_error ("--cell: more than %u", SWEEP_MAX_VALUES);
      return -1;
    }
    if (parse_size ("cell", text, &values->v[values->nr++]) == -1)
      return -1;
  }
  return 0;
}

static int
set_batch (struct bench_options *o, const char *arg)
{
  return parse_list ("batch", arg, 1, 1 << 24, &o->sweep.batch);
}

static int
set_memory (struct bench_options *o, const char *arg)
{
  uint64_t n;

  if (parse_size ("memory", arg, &n) == -1)
    return -1;
  o->sweep.memory_len = n;
  return 0;
}

/* "1,4,all" */
static int
set_threads (struct bench_options *o, const char *arg)
{
  char list[1024];
  size_t len = 0;

  for (const char *p = arg; *p && len + 8 < sizeof list;) {
    if (strncmp (p, "all", 3) == 0) {
      len += snprintf (list + len, sizeof list - len, "%u", nr_cpus ());
      p += 3;
    }
    else
      list[len++] = *p++;
  }
  list[len] = '\0';
  return parse_list ("threads", list, 1, 1024, &o->sweep.threads);
}

static int
set_engine (struct bench_options *o, const char *arg)
{
  o->engines = arg;
  return 0;
}

static int
set_option (struct bench_options *o, const char *arg)
{
  o->option = arg;
  return 0;
}

static int
add_loss (struct bench_options *o, enum loss loss, unsigned nr)
{
  struct sweep *s = &o->sweep;

  if (s->nr_losses == SWEEP_MAX_LOSSES) {
    log_error ("--decode: more than %u", SWEEP_MAX_LOSSES);
    return -1;
  }
  s->lose[s->nr_losses++] = (struct lose) { loss, nr };
  return 0;
}

static int
set_encode (struct bench_options *o, const char *arg)
{
  return add_loss (o, LOSS_NONE, 0);
}

/* "0,1,m,data" */
static int
set_decode (struct bench_options *o, const char *arg)
{
  char text[32];

  for (const char *p = arg; p; p = strchr (p, ',')) {
    uint64_t n = 0;
    enum loss loss = LOSS_RANDOM;

    p += *p == ',';
    snprintf (text, sizeof text, "%.*s", (int) strcspn (p, ","), p);
    if (strcmp (text, "data") == 0)
      loss = LOSS_DATA;
    else if (strcmp (text, "m") != 0 && strcmp (text, "all") != 0) {
      if (parse_number ("decode", text, CODE_MAX - 1, &n) == -1)
        return -1;
      if (n == 0)
        loss = LOSS_NONE;
    }
    if (add_loss (o, loss, n) == -1)
      return -1;
  }
  return 0;
}

static int
set_lost (struct bench_options *o, const char *arg)
{
  struct values values;

  if (parse_list ("lost", arg, 0, CODE_MAX - 1, &values) == -1)
    return -1;
  for (unsigned i = 0; i < values.nr; i++) {
    if (i > 0 && values.v[i] <= values.v[i - 1]) {
      log_error ("--lost: %s: not ascending", arg);
      return -1;
    }
    o->sweep.lost[i] = values.v[i];
  }
  return add_loss (o, LOSS_GIVEN, values.nr);
}

static int
set_raw (struct bench_options *o, const char *arg)
{
  o->sweep.raw = true;
  return 0;
}

static int
set_overall (struct bench_options *o, const char *arg)
{
  o->sweep.overall = true;
  return 0;
}

static int
set_latency (struct bench_options *o, const char *arg)
{
  o->sweep.nr_latencies = 1000;
  return 0;
}

static int
set_crc (struct bench_options *o, const char *arg)
{
  o->crc = true;
  return 0;
}

static int
set_slices (struct bench_options *o, const char *arg)
{
  return parse_list ("slices", arg, 1, 4096, &o->sweep.slices);
}

static int
set_gpus (struct bench_options *o, const char *arg)
{
  struct values values;

  o->devices = ~UINT64_C (0);
  if (strcmp (arg, "all") == 0)
    return 0;
  if (parse_list ("gpus", arg, 0, 15, &values) == -1)
    return -1;
  o->devices = 0;
  for (unsigned i = 0; i < values.nr; i++)
    o->devices |= BIT (values.v[i]);
  return 0;
}

static int
set_verify_only (struct bench_options *o, const char *arg)
{
  o->sweep.verify_only = true;
  return 0;
}

static int
set_ceilings (struct bench_options *o, const char *arg)
{
  o->mode = BENCH_CEILINGS;
  return 0;
}

static int
set_xors (struct bench_options *o, const char *arg)
{
  o->mode = BENCH_XORS;
  return 0;
}

static int
set_crossover (struct bench_options *o, const char *arg)
{
  o->mode = BENCH_CROSSOVER;
  return 0;
}

static int
set_model (struct bench_options *o, const char *arg)
{
  o->mode = BENCH_MODEL;
  return 0;
}

static int
set_list (struct bench_options *o, const char *arg)
{
  o->mode = BENCH_LIST;
  return 0;
}

static int
set_samples (struct bench_options *o, const char *arg)
{
  uint64_t n;

  if (parse_number ("samples", arg, 1000, &n) == -1)
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
  return parse_number ("seed", arg, INT64_MAX, &o->sweep.seed);
}

static int
set_json (struct bench_options *o, const char *arg)
{
  o->json = true;
  return 0;
}

static int
set_plot (struct bench_options *o, const char *arg)
{
  o->plot = arg;
  return 0;
}

static int
set_verbose (struct bench_options *o, const char *arg)
{
  o->verbose = true;
  return 0;
}

static const struct bench_option {
  const char *name;             /* one letter: with one dash */
  const char *value;            /* NULL: it takes none */
  const char *what;
  int (*set) (struct bench_options *, const char *arg);
} options[] = {
  { "k", "LIST", "data cells: 10 or 4,10 or 2-45 or 2-45:5, m is that of -m "
    "(10)", set_k },
  { "m", "LIST", "parity cells (4)", set_m },
  { "pairs", "LIST", "instead of -k and -m: 4+2,10+4", set_pairs },
  { "code", "rs|crs", "of engines that have no code of their own (rs)",
    set_code },
  { "w", "LIST", "bits of a symbol of crs; 4+: the smallest from 4 on (the "
    "smallest)", set_w },
  { "cell", "LIST", "bytes of a cell: 64K,1M (64K)", set_cell },
  { "batch", "LIST", "rects coded at once (as many as --memory holds)",
    set_batch },
  { "memory", "SIZE", "of all cells (512M, 4M to verify)", set_memory },
  { "threads", "LIST", "of the processor: 1,4,all (all)", set_threads },
  { "engine", "LIST", "NAME or NAME:OPTION; all, cpu, gpu, ours, seeds (isal)",
    set_engine },
  { "option", "LIST", "of those engines that have it; all: each in turn",
    set_option },
  { "encode", NULL, "make parity: what is done without --decode", set_encode },
  { "decode", "LIST", "make so many random cells of all; m: so many; data: as "
    "many data cells as can be; 0: encode", set_decode },
  { "lost", "LIST", "make these: data from 0 on, then parity", set_lost },
  { "raw", NULL, "only on what lies on the device", set_raw },
  { "overall", NULL, "only from host memory to host memory", set_overall },
  { "latency", NULL, "of one batch (1 rect) alone", set_latency },
  { "crc", NULL, "with the CRC32C of every block", set_crc },
  { "slices", "LIST", "parts of a pipeline (the engine's choice)",
    set_slices },
  { "gpus", "all|LIST", "devices of cuda and auto; the others use the first "
    "(0)", set_gpus },
  { "verify-only", NULL, "compare every byte, measure nothing",
    set_verify_only },
  { "ceilings", NULL, "only how fast this machine can copy", set_ceilings },
  { "crossover", NULL, "only from what batch on a GPU pays", set_crossover },
  { "model", NULL, "only G-CRS's model, predicted and measured", set_model },
  { "xors", NULL, "only count the XORs of the programs of crs", set_xors },
  { "list", NULL, "the engines and their options", set_list },
  { "samples", "N", "measurements, of which the median counts (7)",
    set_samples },
  { "seconds", "S", "how long each takes at least (0.05)", set_seconds },
  { "seed", "N", "of random bytes and losses (1)", set_seed },
  { "json", NULL, "one object instead of a table", set_json },
  { "plot", "FILE", "an .svg or .png too, made by gnuplot", set_plot },
  { "verbose", NULL, "what compilers and drivers say, too", set_verbose },
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

/* getopt's own words would name no subcommand, so it is silent. */
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
        return options[i].set (o, optarg) == 0 ? 1 : -1;
  return -1;
}

static const struct bench_options defaults = {
  .engines = "isal",
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
  s->threads.v[0] = nr_cpus ();
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
  /* A latency is that of one stripe where nothing else is said. */
  if (s->nr_latencies > 0 && s->batch.v[0] == 0)
    s->batch.v[0] = 1;
  return r;
}
