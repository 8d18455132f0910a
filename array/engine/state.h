/* gpuraid: whether the array may write now.
 *
 * While a change of the membership is under way or wanted, nothing is
 * acknowledged and nothing begins to write.  A failed array writes nothing.
 *
 * Call all of these with the array lock held.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */

#ifndef GPURAID_ENGINE_STATE_H
#define GPURAID_ENGINE_STATE_H

#include "array/engine/shared.h"

/* A seat is failing: a record without it is wanted. */
static inline void
change_request (struct array *a)
{
  a->change_wanted = true;
}

/* False if a change is under way or wanted; w, if not NULL, is run when it is
 * over.  Also true when the array has failed.
 */
static inline bool
change_is_over (struct array *a, struct waiter *w)
{
  if (a->failed || (a->change == NULL && !a->change_wanted))
    return true;
  if (w)
    list_move (&a->change_waiters, &w->link);
  return false;
}

/* True if something may begin to write to the members. */
static inline bool
array_may_write (const struct array *a)
{
  return a->writable && !a->failed && a->change == NULL && !a->change_wanted;
}

/* Stop all writes; why is for the log. */
extern void array_set_failed (struct array *a, const char *why);

#endif
