/* gpuraid-bench: when a job calls the driver.
 *
 * The driver's functions, with three of them wrapped.  A launch belongs to the
 * job that the calling thread has named, a query to the job of the event.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_BENCH_TRACE_H
#define GPURAID_BENCH_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "gpu/device/driver.h"

/* One job, in seconds of now (); zeroed before it is submitted. */
struct trace {
  double launch, launched;      /* cuLaunchKernel was called, and returned */
  double recorded;              /* cuEventRecord returned */
  double first_look;            /* the first cuEventQuery was called, */
  double last_look;             /* the last one before the event was over, */
  double seen;                  /* and the one returned that said so */
  double query;                 /* in all calls of cuEventQuery together */
  unsigned nr_looks, nr_launches;
  _Atomic (CUevent) event;      /* launched and not yet seen */
};

/* Watch nr jobs, borrowed until this is called again. */
extern void trace_watch (struct trace *const *, unsigned nr);
/* This thread's next launches are of that job; NULL: of none. */
extern void trace_name (struct trace *);
/* The launching thread looks, until the event is over: the shortest time that
 * there can be.
 */
extern void trace_look_at_once (bool);

/* NULL: why (BENCH_WHY_LEN bytes). */
extern const struct driver *trace_driver (char *why);

#endif
