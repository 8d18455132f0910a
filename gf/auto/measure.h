/* gpuraid: measure the rates of the CPU and a device.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_AUTO_MEASURE_H
#define GPURAID_AUTO_MEASURE_H

#include "gf/auto/auto.h"

/* Seconds of a slice, for all of the device and for one worker.  The device's
 * is long enough to be worth a launch, and short enough that later jobs need
 * not wait for long.
 */
#define AUTO_GPU_SLICE 150e-6
#define AUTO_CPU_SLICE 100e-6
/* The least input bytes of a slice for a worker of the CPU. */
#define AUTO_MIN_SLICE ((size_t) 128 << 10)
/* Slices that the device is given ahead, so that it copies in, computes and
 * copies out at the same time.
 */
#define AUTO_GPU_AHEAD 3
/* The CPU takes a slice only if the device would need more than this many times
 * as long for the rest of the list, and a small job only if it would for this
 * job.  Coding costs the device little, and the CPU, which has other work, a
 * lot.
 */
#define AUTO_CPU_MARGIN 2

static inline double
auto_now (const struct coder_auto_clock *clock)
{
  return clock->now (clock->opaque);
}

struct auto_measure {
  struct coder *cpu, *gpu;      /* started */
  unsigned cpu_threads;         /* see coder_auto_new */
  const struct matrix *matrix;
  size_t cell_len;              /* as the jobs to come will have it */
  uint8_t *arena;               /* 64-byte aligned; written to */
  size_t arena_len;
  const struct coder_auto_clock *clock;
};

struct auto_rates {
  double cpu, gpu;              /* input bytes a second, each alone, with the
                                 * most slices at once that it may have */
  uint64_t threshold;           /* work, which is bytes of input times rows,
                                 * from which a job is divided into slices;
                                 * UINT64_MAX: no job is */
};

/* 0, or a positive errno, with *found unchanged: the error of a job, or ENOSPC
 * or ENOMEM.
 */
extern int auto_measure (const struct auto_measure *, struct auto_rates *found);

#endif
