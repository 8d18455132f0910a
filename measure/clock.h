/* gpuraid: the clock that benchmarks measure by.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_MEASURE_CLOCK_H
#define GPURAID_MEASURE_CLOCK_H

#include <sys/resource.h>

#include "common/threads/clock.h"

/* Seconds, from any start. */
static inline double
now (void)
{
  return monotonic_ns () / 1e9;
}

/* Seconds of processor time that this process has used. */
static inline double
cpu_now (void)
{
  struct rusage u;

  getrusage (RUSAGE_SELF, &u);
  return u.ru_utime.tv_sec + u.ru_stime.tv_sec +
    (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

#endif
