/* gpuraid bench: the options that say what is coded.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "array/config.h"
#include "cli/bench-case.h"
#include "common/bits.h"
#include "common/log.h"

unsigned
bench_nr_cpus (void)
{
  cpu_set_t set;

  if (sched_getaffinity (0, sizeof set, &set) == 0)
    return CPU_COUNT (&set);
  return MAX (sysconf (_SC_NPROCESSORS_ONLN), 1);
}

int
bench_parse_list (const char *name, const char *text, uint64_t least,
                  uint64_t most, struct values *values)
{
  char why[BENCH_WHY_LEN];

  if (values_parse (text, least, most, 0, values, why) == 0)
    return 0;
  log_error ("%s%s: %s", name[1] ? "--" : "-", name, why);
  return -1;
}

int
bench_parse_number (const char *name, const char *text, uint64_t most,
                    uint64_t *n)
{
  struct values values;

  if (bench_parse_list (name, text, 0, most, &values) == -1)
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

int
bench_set_k (struct bench_options *o, const char *arg)
{
  struct values k;
  char why[BENCH_WHY_LEN];

  /* It may contain m, which comes later. */
  o->sweep.k = arg;
  if (values_parse (arg, 1, CODE_MAX - 1, 1, &k, why) == 0)
    return 0;
  log_error ("-k: %s", why);
  return -1;
}

int
bench_set_m (struct bench_options *o, const char *arg)
{
  return bench_parse_list ("m", arg, 1, CODE_MAX - 1, &o->sweep.m);
}

int
bench_set_pairs (struct bench_options *o, const char *arg)
{
  struct shapes shapes;

  o->sweep.pairs = arg;
  return sweep_shapes (&o->sweep, &shapes);
}

int
bench_set_code (struct bench_options *o, const char *arg)
{
  o->sweep.code = strcmp (arg, "crs") == 0 ? CODE_CRS : CODE_RS;
  if (o->sweep.code == CODE_CRS || strcmp (arg, "rs") == 0)
    return 0;
  log_error ("--code: %s: not rs or crs", arg);
  return -1;
}

int
bench_set_w (struct bench_options *o, const char *arg)
{
  struct sweep *s = &o->sweep;

  if (strlen (arg) == 2 && arg[1] == '+' && arg[0] >= '1' && arg[0] <= '8') {
    s->w_floor = arg[0] - '0';
    s->w = (struct values) { .nr = 1 };
    return 0;
  }
  return bench_parse_list ("w", arg, 1, 8, &s->w);
}

int
bench_set_cell (struct bench_options *o, const char *arg)
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

int
bench_set_batch (struct bench_options *o, const char *arg)
{
  return bench_parse_list ("batch", arg, 1, 1 << 24, &o->sweep.batch);
}

int
bench_set_memory (struct bench_options *o, const char *arg)
{
  uint64_t n;

  if (parse_size ("memory", arg, &n) == -1)
    return -1;
  o->sweep.memory_len = n;
  return 0;
}

/* "1,4,all" */
int
bench_set_threads (struct bench_options *o, const char *arg)
{
  char list[1024];
  size_t len = 0;

  for (const char *p = arg; *p && len + 8 < sizeof list;) {
    if (strncmp (p, "all", 3) == 0) {
      len += snprintf (list + len, sizeof list - len, "%u",
                       bench_nr_cpus ());
      p += 3;
    }
    else
      list[len++] = *p++;
  }
  list[len] = '\0';
  return bench_parse_list ("threads", list, 1, 1024, &o->sweep.threads);
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

int
bench_set_encode (struct bench_options *o, const char *arg)
{
  return add_loss (o, LOSS_NONE, 0);
}

/* "0,1,m,data" */
int
bench_set_decode (struct bench_options *o, const char *arg)
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
      if (bench_parse_number ("decode", text, CODE_MAX - 1, &n) == -1)
        return -1;
      if (n == 0)
        loss = LOSS_NONE;
    }
    if (add_loss (o, loss, n) == -1)
      return -1;
  }
  return 0;
}

int
bench_set_lost (struct bench_options *o, const char *arg)
{
  struct values values;

  if (bench_parse_list ("lost", arg, 0, CODE_MAX - 1, &values) == -1)
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
