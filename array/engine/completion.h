/* gpuraid: wait until several things have ended.
 *
 * The one that waits sets waiter.  Each thing counts in pending from its begin
 * on, and ends with completion_end; the last one has the waiter run.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ENGINE_COMPLETION_H
#define GPURAID_ENGINE_COMPLETION_H

#include "array/engine/shared.h"

struct completion {
  unsigned pending;
  int error;                    /* 0 or a positive errno, of one that failed */
  struct waiter *waiter;        /* borrowed */
};

/* With the array lock held. */
static inline void
completion_end (struct array *a, struct completion *c)
{
  if (--c->pending == 0)
    list_move (&a->engine.ready, &c->waiter->link);
}

#endif
