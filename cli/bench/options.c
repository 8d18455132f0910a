/* gpuraid bench: read the options.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/config/config.h"
#include "cli/bench/bench.h"
#include "cli/cli.h"
#include "common/bits.h"
#include "common/log.h"
#include "measure/coders.h"
#include "measure/cpu.h"

/* All of the word, from least to most. */
static int
parse_number (const char *word, uint64_t least, uint64_t most, unsigned *n)
{
  char *end;
  unsigned long long value;

  errno = 0;
  value = strtoull (word, &end, 10);
  if (word[0] < '0' || word[0] > '9' || *end || errno || value < least ||
      value > most)
    return -1;
  *n = value;
  return 0;
}

static int
add_engine (struct bench_options *o, const char *word)
{
  const struct method_ops *ops = method_find (coder_methods, word);

  if (ops)
    o->engine[o->nr_engines++] = ops;
  return ops ? 0 : -1;
}

static int
add_pair (struct bench_options *o, const char *word)
{
  unsigned *k = &o->pair[o->nr_pairs].k, *m = &o->pair[o->nr_pairs].m;
  char text[32];
  char *plus;

  snprintf (text, sizeof text, "%s", word);
  plus = strchr (text, '+');
  if (plus == NULL)
    return -1;
  *plus = '\0';
  if (parse_number (text, 1, CODE_MAX - 1, k) == -1 ||
      parse_number (plus + 1, 1, CODE_MAX - 1, m) == -1)
    return -1;
  o->nr_pairs++;
  return 0;
}

static int
add_threads (struct bench_options *o, const char *word)
{
  unsigned *nr = &o->threads[o->nr_threads];

  *nr = cpu_count ();
  if (strcmp (word, "all") != 0 && parse_number (word, 1, 1024, nr) == -1)
    return -1;
  o->nr_threads++;
  return 0;
}

static int
add_decode (struct bench_options *o, const char *word)
{
  unsigned nr = 0;

  if (strcmp (word, "m") != 0 &&
      parse_number (word, 0, CODE_MAX - 1, &nr) == -1)
    return -1;
  o->decode[o->nr_decodes].loss = strcmp (word, "0") == 0 ? LOSS_NONE
    : LOSS_RANDOM;
  o->decode[o->nr_decodes++].nr = nr;
  return 0;
}

static int
add_device (struct bench_options *o, const char *word)
{
  unsigned nr;

  if (strcmp (word, "all") == 0)
    o->devices = ~UINT64_C (0);
  else if (parse_number (word, 0, 63, &nr) == 0)
    o->devices |= BIT (nr);
  else
    return -1;
  return 0;
}

static int
set_code (struct bench_options *o, const char *word)
{
  o->code = strcmp (word, "crs") == 0 ? CODE_CRS : CODE_RS;
  return o->code == CODE_CRS || strcmp (word, "rs") == 0 ? 0 : -1;
}

static int
set_size (const char *word, size_t *len)
{
  uint64_t n;

  if (config_parse_size (word, &n) == -1 || n == 0 || n > 1024 * GIB)
    return -1;
  *len = n;
  return 0;
}

static int
set_cell (struct bench_options *o, const char *word)
{
  return set_size (word, &o->cell_len);
}

static int
set_memory (struct bench_options *o, const char *word)
{
  return set_size (word, &o->memory_len);
}

static int
set_samples (struct bench_options *o, const char *word)
{
  return parse_number (word, 1, BENCH_MAX_SAMPLES, &o->nr_samples);
}

static int
set_seconds (struct bench_options *o, const char *word)
{
  char *end;

  o->seconds = strtod (word, &end);
  return end != word && *end == '\0' && o->seconds >= 0 && o->seconds <= 60
    ? 0 : -1;
}

#define FLAG(member) .flag = offsetof (struct bench_options, member)

static const struct bench_option {
  const char *name, *value;     /* value: NULL, no argument; "LIST", apart by
                                 * commas */
  const char *what;
  int (*set) (struct bench_options *, const char *word);
  const char *wants;            /* that a word must be */
  size_t flag;                  /* without set: the place of a bool */
} options[] = {
  { "engine", "LIST", "the coders (all of --list; without a device, those "
    "of the processor)", add_engine,
    "a coder (--list lists them)" },
  { "pairs", "LIST", "data and parity cells: 4+2,10+4 (10+4)", add_pair,
    "a pair like 10+4, up to 255" },
  { "code", "rs|crs", "(rs)", set_code, "rs or crs" },
  { "cell", "SIZE", "of a cell (64K)", set_cell, "a size" },
  { "memory", "SIZE", "of all cells (512M, 4M to verify)", set_memory,
    "a size" },
  { "threads", "LIST", "of the processor: 1,4,all (all)", add_threads,
    "all, or from 1 to 1024" },
  { "decode", "LIST", "make this many lost cells, or m; 0: make the parity (0)",
    add_decode, "m, or from 0 to 255" },
  { "crc", NULL, "with the CRC32C of every block", FLAG (crc) },
  { "gpus", "LIST", "devices of cuda and auto, or all (0)", add_device,
    "all, or from 0 to 63" },
  { "verify-only", NULL, "compare every byte, measure nothing",
    FLAG (verify_only) },
  { "samples", "N", "measurements, of which the median counts (7)",
    set_samples, "from 1 to 1000" },
  { "seconds", "S", "how long each takes at least (0.05)", set_seconds,
    "from 0 to 60" },
  { "json", NULL, "one object instead of a table", FLAG (json) },
  { "list", NULL, "the coders", FLAG (list) },
};

void
cmd_bench_help (void)
{
  printf ("\n");
  for (size_t i = 0; i < ARRAY_LEN (options); i++) {
    const struct bench_option *p = &options[i];
    char text[40];

    snprintf (text, sizeof text, "--%s%s%s", p->name, p->value ? " " : "",
              p->value ?: "");
    printf ("  %-19s %s\n", text, p->what);
  }
  printf ("\nA LIST is apart by commas.\n");
}

static int
apply (struct bench_options *o, const struct bench_option *p, const char *arg)
{
  const bool is_list = p->value && strcmp (p->value, "LIST") == 0;
  char word[32];
  unsigned nr = 0;

  if (p->value == NULL)
    *(bool *) ((char *) o + p->flag) = true;
  for (const char *next = arg; next; next = strchr (next, ',')) {
    size_t len;

    next += nr > 0;
    len = is_list ? strcspn (next, ",") : strlen (next);
    snprintf (word, sizeof word, "%.*s", (int) len, next);
    if (nr++ == BENCH_MAX) {
      log_error ("--%s: more than %u", p->name, BENCH_MAX);
      return -1;
    }
    if (len >= sizeof word || p->set (o, word) == -1) {
      log_error ("--%s: %s: not %s", p->name, word, p->wants);
      return -1;
    }
    if (!is_list)
      break;
  }
  return 0;
}

/* All that this machine has. */
static void
add_engines (struct bench_options *o)
{
  char why[BENCH_WHY_LEN];
  const bool has_gpu = method_nr_devices (why) > 0;

  for (size_t i = 0; coder_methods[i]; i++)
    if (has_gpu || !coder_methods[i]->gpu)
      o->engine[o->nr_engines++] = coder_methods[i];
}

static void
set_defaults (struct bench_options *o)
{
  if (o->nr_engines == 0)
    add_engines (o);
  if (o->nr_pairs == 0)
    add_pair (o, "10+4");
  if (o->nr_threads == 0)
    add_threads (o, "all");
  if (o->nr_decodes == 0)
    add_decode (o, "0");
  if (o->devices == 0)
    o->devices = 1;
  if (o->memory_len == 0)
    o->memory_len = o->verify_only ? 4 * MIB : 512 * MIB;
}

int
bench_parse (struct bench_options *o, int argc, char **argv)
{
  struct option longs[ARRAY_LEN (options) + 1] = { { 0 } };
  bool seen[ARRAY_LEN (options)] = { false };
  int id;

  *o = (struct bench_options) {
    .cell_len = 64 * KIB, .nr_samples = 7, .seconds = 0.05,
  };
  for (size_t i = 0; i < ARRAY_LEN (options); i++)
    longs[i] = (struct option) { options[i].name, options[i].value != NULL,
                                 NULL, 256 + i };
  /* getopt's own messages would not name the subcommand. */
  opterr = 0;
  while ((id = getopt_long (argc, argv, ":", longs, NULL)) != -1) {
    if (id == ':')
      log_error ("bench: %s needs a value", argv[optind - 1]);
    else if (id == '?')
      log_error ("bench: %s: no such option (gpuraid bench --help)",
                 argv[optind - 1]);
    else if (options[id - 256].value && seen[id - 256])
      log_error ("--%s: is there twice", options[id - 256].name);
    else if (apply (o, &options[id - 256], optarg) == 0) {
      seen[id - 256] = true;
      continue;
    }
    return -1;
  }
  if (optind < argc) {
    log_error ("bench: %s: not an option (gpuraid bench --help)",
               argv[optind]);
    return -1;
  }
  set_defaults (o);
  return 0;
}
