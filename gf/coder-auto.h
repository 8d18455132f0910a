/* gpuraid: the CPU and a device share jobs.
 *
 * Knows nothing of what the two coders are, but that the second one takes
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

/* cpu and gpu become the new coder's own at once: they are freed where this
 * fails.  cpu_threads: how many slices cpu may do at the same time, which is
 * the number of its workers; 0: none.  matrix is borrowed until this
 * returns; start measures both coders with it, in cells of the arena, whose
 * content is lost.  NULL: nothing is measured, and defaults are used.  NULL
 * is returned after an error, reported.
 *
 * start takes 0.3 s at most.  It fails where cpu's start does; where gpu's
 * does, cpu gets all jobs.
 *
 * What gpu fails is done by cpu.  gpu gets nothing more then, unless the
 * error is ENOTSUP: this job only is none for it.
 */
extern struct coder *coder_auto_new (struct coder *cpu, unsigned cpu_threads,
                                     struct coder *gpu,
                                     const struct matrix *matrix,
                                     size_t cell_len);

/* How many workers cpu should have.  Two processors are left to the threads
 * that launch and poll: with all of them taken a device fell to half of its
 * rate at times, at 32+16.
 */
static inline unsigned
coder_auto_cpu_threads (unsigned nr_cpus)
{
  return nr_cpus >= 4 ? nr_cpus - 2 : nr_cpus - 1;
}

/* For tests, before start: another clock, in seconds.  pause is called again
 * and again while start waits for a job.
 */
struct coder_auto_clock {
  double (*now) (void *opaque);
  void (*pause) (void *opaque);
  void *opaque;
};
extern void coder_auto_set_clock (struct coder *,
                                  const struct coder_auto_clock *);

#endif
