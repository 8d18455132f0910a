/* gpuraid: a balance, and jobs that come one at a time; without any coder, in
 * virtual time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_BALANCE_LONE_H
#define GPURAID_BALANCE_LONE_H

#include "gf/balance.h"
#include "tests/auto-sim.h"
#include "tests/gf-reference.h"

/* What a job takes on each side.  Jobs of other kinds are not alike. */
#define LONE_KINDS 12

struct lone {
  double seconds[2];            /* by side */
  double noise;                 /* so much more or less, as a part */
  unsigned kind;                /* below LONE_KINDS */
};

/* For the noise; set by the test. */
extern struct ref_random lone_random;

extern struct balance_job lone_job (const struct lone *);
/* As if start had measured that all take so many seconds. */
extern void lone_init (struct balance *, double near, double far);
/* One after the other, from *now on, which is the time when it is done: where
 * did it go?
 */
extern unsigned lone_one (struct balance *, double *now, const struct lone *);
/* So many: how many of them went far? */
extern unsigned lone_far (struct balance *, double *now, const struct lone *,
                          unsigned nr);

#endif
