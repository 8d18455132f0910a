/* gpuraid: share jobs between two coders, each where it will finish first.
 *
 * Knows nothing of what the two are.  A large job is cut in two where that
 * ends it sooner, or given slice by slice to both while others are under
 * way.  What near costs in time of processors is not counted, but where one
 * side alone gets more done, it does all.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_CODER_AUTO_H
#define GPURAID_CODER_AUTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gf/coder.h"

/* near costs the caller's processors; far does not, but takes longer to
 * begin.  Both become the new coder's own, at once: they are freed where
 * this fails.  near_leaves: so many of near's threads rest while far has
 * something to do.  matrix, borrowed until this returns, is what start
 * measures them with, at several batch sizes, in cells of the arena (their
 * content is lost); NULL: what they do is learnt from the jobs alone.  NULL:
 * reported.
 *
 * start takes 0.3 s at most for that.  It fails where near's does; where
 * far's does, near has all jobs.  A job that far fails is done by near.
 */
extern struct coder *coder_auto_new (struct coder *near, unsigned near_leaves,
                                     struct coder *far,
                                     const struct matrix *matrix,
                                     size_t cell_len);

/* The near_leaves of a near with a thread less than there are processors.
 * So two are left to the threads that keep far busy: with every processor of
 * a host taken, its device fell to half at times, at 32+16.
 */
static inline unsigned
coder_auto_near_leaves (unsigned nr_cpus)
{
  return nr_cpus >= 4 ? 1 : 0;
}

#define CODER_AUTO_MAX_POINTS 12

/* What start measured: jobs of the matrix, each alone. */
struct coder_auto_measured {
  unsigned rows, cols;
  unsigned nr_points;           /* by bytes, ascending; 0: nothing */
  struct coder_auto_point {
    size_t nr_rects, cell_len;
    uint64_t bytes;             /* of the inputs */
    double near, far;           /* seconds */
    double both;                /* cut in two; 0: was not tried */
  } point[CODER_AUTO_MAX_POINTS];
  /* Input bytes a second of large jobs, several under way: each alone, and
   * while the other is busy too.
   */
  double near_rate, far_rate;
  double near_shared_rate, far_shared_rate;
  /* Input bytes from which a job ends sooner on far than on near;
   * UINT64_MAX: it never does.
   */
  uint64_t crossover;
};

/* false: this is no such coder, or it has measured nothing (yet). */
extern bool coder_auto_measured (struct coder *,
                                 struct coder_auto_measured *);

/* For tests, before start: another clock, in seconds.  pause is called
 * again and again while start waits for a job.
 */
struct coder_auto_clock {
  double (*now) (void *opaque);
  void (*pause) (void *opaque);
  void *opaque;
};
extern void coder_auto_set_clock (struct coder *,
                                  const struct coder_auto_clock *);

#endif
