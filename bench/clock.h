/* gpuraid: the clock that gpuraid bench measures by.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_BENCH_CLOCK_H
#define GPURAID_BENCH_CLOCK_H

#include <time.h>

/* Seconds, from any start. */
static inline double
now (void)
{
  struct timespec ts;

  clock_gettime (CLOCK_MONOTONIC, &ts);
  return ts.tv_sec + ts.tv_nsec / 1e9;
}

#endif
