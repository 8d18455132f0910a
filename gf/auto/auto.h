/* gpuraid: the CPU and a device share jobs.
 *
 * Does not depend on what the two coders are, only on that the second one takes
 * longer to begin, and costs the CPU less.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CODER_AUTO_H
#define GPURAID_CODER_AUTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gf/coder.h"

/* The new coder owns cpu and gpu at once: they are freed if this fails.
 * cpu_threads is how many slices cpu may do at the same time, the number of its
 * workers; 0: none. matrix is borrowed until this returns; start measures both
 * coders with it, in cells of the arena, whose content is lost.  If it is NULL,
 * nothing is measured, and defaults are used.  NULL: reported.
 *
 * start takes 0.3 s at most.  It fails if cpu's start does; if gpu's does, cpu
 * gets all jobs.
 *
 * If gpu fails a job, cpu does it, and gpu gets no more, unless the error is
 * ENOTSUP: then gpu refused only this job.
 */
extern struct coder *coder_auto_new (struct coder *cpu, unsigned cpu_threads,
                                     struct coder *gpu,
                                     const struct matrix *matrix,
                                     size_t cell_len);

/* How many workers cpu should have.  Two processors are left to the threads
 * that launch and poll: without that a device sometimes fell to half of its
 * rate, at 32+16.
 */
static inline unsigned
coder_auto_cpu_threads (unsigned nr_cpus)
{
  return nr_cpus >= 4 ? nr_cpus - 2 : nr_cpus - 1;
}

/* For tests, before start: another clock, in seconds. start calls pause
 * repeatedly while it waits for a job.
 */
struct coder_auto_clock {
  double (*now) (void *opaque);
  void (*pause) (void *opaque);
  void *opaque;
};
extern void coder_auto_set_clock (struct coder *,
                                  const struct coder_auto_clock *);

#endif
