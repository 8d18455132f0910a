/* gpuraid bench: coder throughput, side by side.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/ceilings.h"
#include "bench/gpu.h"
#include "bench/methods.h"
#include "bench/model.h"
#include "bench/tunings.h"
#include "bench/xors.h"
#include "cli/bench.h"
#include "cli/cli.h"
#include "common/bits.h"
#include "common/log.h"
#include "common/version.h"
#include "gpu/compiler-child.h"

static void
all_to_stderr (enum log_level level, const char *fmt, va_list args)
{
  flockfile (stderr);
  fputs ("gpuraid: ", stderr);
  vfprintf (stderr, fmt, args);
  fputc ('\n', stderr);
  funlockfile (stderr);
}

static int
list_methods (void)
{
  for (size_t i = 0; methods[i]; i++) {
    printf ("%-12s %s%s\n", methods[i]->name, methods[i]->what,
            methods[i]->gpu ? " [GPU]" : "");
    if (methods[i]->options)
      printf ("%12s options: %s%s%s\n", "", methods[i]->options,
              methods[i]->others ? "; " : "", methods[i]->others ?: "");
  }
  return EXIT_SUCCESS;
}

static struct json_object *
text (const char *s)
{
  return json_object_new_string (s);
}

/* "Xeon ..., 16 threads" */
static struct json_object *
describe_cpu (void)
{
  char line[256], model[160] = "unknown processor";
  FILE *fp = fopen ("/proc/cpuinfo", "r");

  while (fp && fgets (line, sizeof line, fp))
    if (sscanf (line, "model name : %159[^\n]", model) == 1)
      break;
  if (fp)
    fclose (fp);
  return text (model);
}

static struct json_object *
rate (double bytes_per_second)
{
  char s[40];

  snprintf (s, sizeof s, "%.2f", bytes_per_second / 1e9);
  return json_object_new_double_s (bytes_per_second / 1e9, s);
}

/* The machine, and its ceilings in GB/s. */
static void
describe (struct report *r, const struct bench_options *o, bool gpu,
          bool ceilings)
{
  const struct values *threads = &o->sweep.threads;
  char why[BENCH_WHY_LEN], key[40];
  const struct ceilings *c = NULL;
  struct bench_gpu *g = gpu ? bench_gpu_get (why) : NULL;

  report_add (r, "version", text (GPURAID_VERSION));
  report_add (r, "processor", describe_cpu ());
  if (gpu)
    report_add (r, "device", text (g ? g->name : why));
  for (unsigned i = 0; ceilings && i < threads->nr; i++) {
    snprintf (key, sizeof key, "memcpy_%u", (unsigned) threads->v[i]);
    report_add (r, key, rate (ceilings_memcpy (threads->v[i])));
  }
  if (g == NULL || !ceilings)
    return;
  c = ceilings_gpu (why);
  if (c == NULL) {
    log_error ("ceilings: %s", why);
    return;
  }
  report_add (r, "device_copy", rate (c->copy));
  report_add (r, "h2d", rate (c->h2d));
  report_add (r, "d2h", rate (c->d2h));
  report_add (r, "both_ways", rate (c->both));
}

static bool
any_gpu (const struct sweep *s)
{
  for (unsigned i = 0; i < s->nr_choices; i++)
    if (s->choice[i].ops->gpu)
      return true;
  return false;
}

/* It is an error if nothing was measured; the last row says why. */
static int
check_rows (const struct report *r)
{
  if (r->nr_wrong > 0)
    return -1;
  if (r->nr_measured > 0)
    return 0;
  if (r->nr_rows == 0)
    log_error ("nothing to measure");
  else
    log_error ("nothing could be measured: %s: %s",
               r->rows[r->nr_rows - 1].method, r->rows[r->nr_rows - 1].why);
  return -1;
}

static int
run_sweep (const struct bench_options *o)
{
  const struct sweep *s = &o->sweep;
  enum report_kind kind = s->verify_only ? REPORT_VERIFY
    : s->nr_latencies > 0 ? REPORT_LATENCY : REPORT_RATES;
  struct report r;
  int status;

  if (report_begin (&r, stdout, o->json, kind) == -1)
    return -1;
  describe (&r, o, any_gpu (s), kind == REPORT_RATES);
  status = sweep_run (s, &r);
  if (report_end (&r, true) == -1)
    status = -1;
  if (status == 0)
    status = check_rows (&r);
  if (status == 0 && o->plot)
    status = plot_rows (r.rows, r.nr_rows, kind == REPORT_LATENCY, o->plot);
  report_free (&r);
  return status;
}

static int
run_ceilings (const struct bench_options *o)
{
  struct report r;
  int status;

  if (report_begin (&r, stdout, o->json, REPORT_RATES) == -1)
    return -1;
  describe (&r, o, true, true);
  status = report_end (&r, false);
  report_free (&r);
  return status;
}

/* Modes with a table of their own. */
static int
run_other (const struct bench_options *o,
           int (*run) (const struct sweep *, struct report *), bool gpu)
{
  struct report r;
  int status;

  if (report_begin (&r, stdout, o->json, REPORT_RATES) == -1)
    return -1;
  describe (&r, o, gpu, false);
  status = run (&o->sweep, &r);
  if (status == 0 && report_end (&r, false) == -1)
    status = -1;
  report_free (&r);
  return status;
}

/* Many kernels are compiled at once, in processes, because NVRTC does some of
 * its work under a lock; not with --verbose, as children print no messages.
 */
static int
run_tunings (const struct bench_options *o)
{
  static const char *const child[] = { "/proc/self/exe", "compile", NULL };

  if (!o->verbose)
    compiler_use_child (child);
  return run_other (o, tunings_run, true);
}

static int
run_mode (struct bench_options *o)
{
  switch (o->mode) {
  case BENCH_CEILINGS:
    return run_ceilings (o);
  case BENCH_XORS:
    return run_other (o, xors_run, false);
  case BENCH_CROSSOVER:
    return run_other (o, crossover_run, true);
  case BENCH_MODEL:
    return run_other (o, model_run, true);
  case BENCH_TUNINGS:
    return run_tunings (o);
  case BENCH_LIST:
    return list_methods ();
  default:
    return bench_parse_methods (o) == 0 ? run_sweep (o) : -1;
  }
}

/* Devices that were named must exist, if the machine has any. */
static int
check_devices (uint64_t devices)
{
  char why[BENCH_WHY_LEN];
  unsigned nr = bench_gpu_count (why);

  if (nr == 0 || devices == ~UINT64_C (0) || devices >> nr == 0)
    return 0;
  log_error ("--gpus: no CUDA device %u: there are %u",
             next_bit (devices, nr), nr);
  return -1;
}

int
cmd_bench (int argc, char **argv)
{
  struct bench_options o;

  if (argc < 2)
    return cli_usage (argv[0]);
  if (bench_parse (&o, argc, argv) == -1)
    return EXIT_FAILURE;
  if (o.plot && (o.sweep.verify_only || o.mode != BENCH_SWEEP)) {
    log_error ("--plot: there is nothing to plot");
    return EXIT_FAILURE;
  }
  if (o.devices != 1 && check_devices (o.devices) == -1)
    return EXIT_FAILURE;
  if (o.verbose)
    log_set_sink (all_to_stderr);
  method_devices = o.devices;
  bench_gpu_choose (next_bit (o.devices, 0));
  ceilings_set (o.sweep.memory_len, o.devices);
  return run_mode (&o) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
