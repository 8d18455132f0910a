/* gpuraid: a clock as one number.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CLOCK_H
#define GPURAID_CLOCK_H

#include <stdint.h>
#include <time.h>

/* ns, of one of the clocks of clock_gettime. */
static inline uint64_t
clock_ns (clockid_t clock)
{
  struct timespec ts;

  clock_gettime (clock, &ts);
  return ts.tv_sec * UINT64_C (1000000000) + ts.tv_nsec;
}

/* From any start; nothing sets this clock. */
static inline uint64_t
monotonic_ns (void)
{
  return clock_ns (CLOCK_MONOTONIC);
}

static inline int64_t
monotonic_ms (void)
{
  return monotonic_ns () / 1000000;
}

#endif
