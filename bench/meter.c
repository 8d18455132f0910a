/* gpuraid: samples of how long a case takes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include <stdlib.h>
#include <sys/resource.h>

#include "bench/clock.h"
#include "bench/meter.h"
#include "common/bits.h"

static double
cpu_now (void)
{
  struct rusage u;

  getrusage (RUSAGE_SELF, &u);
  return u.ru_utime.tv_sec + u.ru_stime.tv_sec +
    (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

int
meter_warm (struct meter *m, unsigned nr_times, char *why)
{
  double seconds;

  for (unsigned n = 0; n < nr_times; n++)
    if (run_code (m->run, m->metric, 1, &seconds, why) == -1)
      return -1;
  return 0;
}

int
meter_begin (struct meter *m, struct run *run, enum metric metric,
             double seconds, char *why)
{
  const struct method_ops *ops = run->method->ops;
  double once;

  m->run = run;
  m->metric = metric;
  m->nr = 0;
  m->cpu = 0;
  if (metric == METRIC_RAW && ops->load && ops->load (run->method, why) == -1)
    return -1;
  /* Once to warm up, once to know how often makes a sample. */
  if (meter_warm (m, 1, why) == -1 ||
      run_code (run, metric, 1, &once, why) == -1)
    return -1;
  m->nr_times = MIN (MAX (seconds / MAX (once, 1e-6) + 0.999, 1), 100000);
  return 0;
}

int
meter_take (struct meter *m, unsigned nr, char *why)
{
  const double cpu = cpu_now ();

  for (nr = MIN (nr, METER_MAX - m->nr); nr > 0; nr--) {
    double *seconds = &m->sample[m->nr];

    if (run_code (m->run, m->metric, m->nr_times, seconds, why) == -1)
      return -1;
    *seconds /= m->nr_times;
    m->nr++;
  }
  m->cpu += cpu_now () - cpu;
  return 0;
}

int
meter_take_mean (struct meter *m, double seconds, char *why)
{
  const double end = now () + seconds;
  double sum = 0;
  unsigned nr = 0;

  if (m->nr == METER_MAX)
    return 0;
  do {
    double once;

    if (run_code (m->run, m->metric, 1, &once, why) == -1)
      return -1;
    sum += once;
    nr++;
  } while (now () < end);
  m->sample[m->nr++] = sum / nr;
  return 0;
}

static int
compare (const void *a, const void *b)
{
  double x = *(const double *) a, y = *(const double *) b;

  return (x > y) - (x < y);
}

void
meter_rate (struct meter *m, struct meter_rate *r)
{
  qsort (m->sample, m->nr, sizeof m->sample[0], compare);
  *r = (struct meter_rate) {
    .seconds = m->sample[m->nr / 2],
    .low = m->sample[0], .high = m->sample[m->nr - 1],
    .cpu_seconds = m->cpu / m->nr / m->nr_times,
  };
}

void
meter_latency (struct meter *m, struct meter_latency *l)
{
  qsort (m->sample, m->nr, sizeof m->sample[0], compare);
  *l = (struct meter_latency) {
    .p50 = m->sample[m->nr / 2], .p90 = m->sample[m->nr * 9 / 10],
    .p99 = m->sample[m->nr * 99 / 100],
    .low = m->sample[0], .high = m->sample[m->nr - 1],
  };
}

int
meter_run (struct run *run, enum metric metric,
           const struct meter_effort *effort, struct meter_rate *rate,
           char *why)
{
  struct meter m;

  if (meter_begin (&m, run, metric, effort->seconds, why) == -1 ||
      meter_take (&m, MAX (effort->samples, 1), why) == -1)
    return -1;
  meter_rate (&m, rate);
  return 0;
}
